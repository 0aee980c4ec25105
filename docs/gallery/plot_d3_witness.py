"""
Bounds on the posterior of every size
=====================================

A witness search scores one size after another. After every step it bounds the evidence
and the probability of each size, including the sizes that it has not scored. The bounds
meet when all sizes are scored, except for the errors of the scores.
"""

import matplotlib.pyplot as plt

import polyabayes as pb

table = [[6, 2, 0, 0], [5, 1, 0, 1], [0, 0, 4, 3], [0, 1, 3, 5]]
search = pb.WitnessSearch(
    pb.AllocationModel.nmf(None),
    pb.priors.Uniform(1, 8),
    scoring_options={"method": "smc", "n_particles": 2000, "n_replicates": 16},
    random_state=0,
).fit(table)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
pb.plotting.plot_size_bounds(search, ax=left)
pb.plotting.plot_size_posterior(search, ax=right)
left.set_title("Bounds of the evidence meet as sizes are scored")
right.set_title("Two topics are the most probable number")
plt.show()
