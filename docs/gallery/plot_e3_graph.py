"""
A network in a line of text
===========================

Nodes that name an axis of the data are visible (grey), the others hidden. Here a word depends
on a topic, and the topic on a super-topic of the document.
"""

import matplotlib.pyplot as plt

import polyabayes as pb

model = pb.AllocationModel(
    "doc -> theme -> topic -> word; doc -> topic", sizes={"theme": 2, "topic": 5}
)
pb.plotting.plot_graph(model)
plt.show()
