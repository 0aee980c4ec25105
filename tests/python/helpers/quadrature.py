"""Normal laws by Gauss-Hermite rules."""

import numpy as np


def hermite(mean, covariance, n_points):
    """Points of a normal law and ln of their masses, by a product of rules."""
    places, weights = np.polynomial.hermite_e.hermegauss(n_points)
    values, vectors = np.linalg.eigh(np.atleast_2d(covariance))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    points = np.stack(np.meshgrid(*[places] * len(mean), indexing="ij"), axis=-1)
    masses = np.meshgrid(*[np.log(weights / weights.sum())] * len(mean), indexing="ij")
    return mean + points.reshape(-1, len(mean)) @ root.T, sum(masses).ravel()
