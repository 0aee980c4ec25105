"""
Which network made these counts?
================================

Three variables may depend on each other in different ways. A table of counts gives each
network a posterior probability.
"""

import matplotlib.pyplot as plt
import numpy as np

import polyabayes as pb

rng = np.random.default_rng(0)
cause = rng.integers(2, size=120)
left = np.where(rng.random(120) < 0.85, cause, 1 - cause)
right = np.where(rng.random(120) < 0.85, cause, 1 - cause)
counts = np.zeros((2, 2, 2), dtype=int)
np.add.at(counts, (cause, left, right), 1)
data = pb.CountTensor.from_dense(counts, ["cause", "left", "right"])

models = {
    "common cause": pb.AllocationModel("left <- cause -> right"),
    "chain": pb.AllocationModel("cause -> left -> right"),
    "independent": pb.AllocationModel("cause; left; right"),
    "all edges": pb.AllocationModel("cause -> left; cause, left -> right"),
}
posterior = pb.posterior_over_models(models, data)
print(posterior)

# %%
# The picture shows log odds, with the probabilities on the right.

pb.plotting.plot_posterior(posterior)
plt.title("A common cause is most probable", loc="left")
plt.show()
