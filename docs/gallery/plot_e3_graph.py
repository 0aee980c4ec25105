"""
A network in a line of text
===========================

Grey nodes are axes of the data, white nodes are hidden. These are the models of figure
7 of Cemgil et al. (2019): matrix factorisation (LDA), topics of topics, groups of rows
and of columns, a factorisation conditioned on sums, and tensor factorisations.
"""

import matplotlib.pyplot as plt

import polyabayes as pb

Model = pb.AllocationModel
models = {
    "NMF, LDA": Model.nmf(3),
    "pachinko": Model.pachinko([2, 3]),
    "blockmodel": Model.blockmodel(2, 2),
    "sum-conditioned": Model.sum_conditioned(3),
    "CP": Model.cp(["i", "j", "k"], 3),
    "Tucker": Model.tucker(["i", "j", "k"], [2, 2, 2]),
}
figure, axes = plt.subplots(2, 3, figsize=(12, 7))
for (name, model), ax in zip(models.items(), axes.flat, strict=True):
    pb.plotting.plot_graph(model, ax=ax)
    ax.set_title(name)
figure.tight_layout()
plt.show()

# %%
# Any other network is written in the same way. Here a topic depends on a theme and on
# the document.

pb.plotting.plot_graph(
    Model("doc -> theme -> topic -> word; doc -> topic", sizes={"theme": 2, "topic": 5})
)
plt.show()
