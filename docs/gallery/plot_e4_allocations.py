"""
All allocations of a small table
================================

The evidence is a sum over every way to hand the counts to hidden values. A small table lets one
look at all of them: a few thousand, over many orders of magnitude.
"""

import matplotlib.pyplot as plt

import polyabayes as pb

table = [[4, 3, 0], [0, 0, 3], [0, 0, 3]]
allocations = pb.AllocationModel.nmf(2).allocations(table)
pb.plotting.plot_allocations(allocations, bins=40)
plt.show()
