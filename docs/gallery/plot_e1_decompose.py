"""
Decompose a tensor
==================

Hidden groups explain who ordered what and when. Each picture shows conditional
probabilities, so each column sums to one.
"""

import matplotlib.pyplot as plt
import numpy as np

import polyabayes as pb

rng = np.random.default_rng(0)
rate = np.zeros((4, 5, 3))
rate[:2, :2, 0] = rate[2:, 3:, 2] = 12.0
tensor = pb.CountTensor.from_dense(
    rng.poisson(rate + 0.5),
    ["who", "what", "when"],
    {
        "who": ["Ada", "Ben", "Cleo", "Dan"],
        "what": ["tea", "toast", "soup", "wine", "cheese"],
        "when": ["morning", "noon", "evening"],
    },
)
model = pb.AllocationModel.cp(["who", "what", "when"], 2)
found = model.decompose(tensor, random_state=0)
(hidden,) = model.sizes
figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
for ax, node in zip(axes, tensor.axes, strict=True):
    pb.plotting.plot_table(found, node, ax=ax)
plt.show()
