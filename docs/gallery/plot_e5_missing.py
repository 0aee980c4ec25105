"""
Cells that nobody counted
=========================

One cell of a table is missing. The evidence for each total of all cells gives the
posterior of the missing count.
"""

import matplotlib.pyplot as plt
import numpy as np

import polyabayes as pb

table = np.ma.masked_equal([[-1, 3], [3, 3]], -1)
found = pb.AllocationModel.nmf(1, concentration=4.0, rate=0.2).predict_missing(table)
print(found.to_frame())
pb.plotting.plot_total(found)
plt.title("With one cell missing, the total is most probably 11")
plt.show()
