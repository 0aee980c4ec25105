"""
All allocations of a small table
================================

The evidence is a sum over all allocations of the counts to hidden values. A small table
has a few hundred allocations, so all can be shown. Their probabilities span many orders
of magnitude.
"""

import matplotlib.pyplot as plt

import polyabayes as pb

table = [[4, 3, 0], [0, 0, 3], [0, 0, 3]]
allocations = pb.AllocationModel.nmf(2).allocations(table)
pb.plotting.plot_allocations(allocations, bins=40)
plt.title("log probability of every allocation")
plt.show()
