"""
The rank of a table
===================

The evidence has all parameters integrated out, so unnecessary parameters lower it. It
falls again once the rank suffices, while a fit by maximum likelihood improves with
every rank. The table is drawn from three components, but its 150 counts support only
two.
"""

import matplotlib.pyplot as plt
import numpy as np

import polyabayes as pb

rng = np.random.default_rng(0)
rows, columns = rng.dirichlet(np.full(8, 0.2), 3), rng.dirichlet(np.full(8, 0.2), 3)
counts = rng.multinomial(
    150, np.einsum("ki,kj->ij", rows, columns).ravel() / 3
).reshape(8, 8)
evidences = {
    rank: pb.AllocationModel.nmf(rank).log_evidence(
        counts, "tempered", target_std_error=0.3, random_state=0
    )
    for rank in range(1, 7)
}
pb.plotting.plot_evidence(evidences)
plt.title("The evidence of the table is highest at rank 2")
plt.show()
