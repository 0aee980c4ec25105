"""
All allocations of a small table
================================

The evidence is a sum over all allocations of the counts to hidden values. A small table
has 320 allocations. The two most probable ones, which differ only in the names of the
topics, have 97 % of the probability.
"""

import matplotlib.pyplot as plt

import polyabayes as pb

table = [[4, 3, 0], [0, 0, 3], [0, 0, 3]]
allocations = pb.AllocationModel.nmf(2).allocations(table)
pb.plotting.plot_allocations(allocations, bins=40)
plt.title("Two of 320 allocations have most of the probability")
plt.show()
