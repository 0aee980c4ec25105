"""
Hidden states behind a sequence
===============================

Sequences of three symbols are a count tensor with one axis per position. Is there a
hidden state, and how many values does it have?
"""

import matplotlib.pyplot as plt
import numpy as np

import polyabayes as pb

rng = np.random.default_rng(0)
state = rng.integers(2, size=40)
steps = []
for _ in range(3):
    state = np.where(rng.random(40) < 0.9, state, 1 - state)
    steps.append(np.where(rng.random(40) < 0.9, state, rng.integers(2, size=40)))
counts = np.zeros((2, 2, 2), dtype=int)
np.add.at(counts, tuple(steps), 1)

evidences = {}
for n_states in (1, 2, 3):
    model = pb.AllocationModel.hidden_markov(3, n_states)
    data = pb.CountTensor.from_dense(counts, model.axes)
    evidences[n_states] = model.log_evidence(data, n_samples=2000, random_state=0)
pb.plotting.plot_evidence(evidences, xlabel="hidden states")
plt.title("Two or three hidden states are far more probable than one")
plt.show()
