"""Models of scHPF: hierarchical Poisson factorisation of single cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from polyabayes._support import checks
from polyabayes._support.arrays import Floats
from polyabayes.data.counts import words_of
from polyabayes.exceptions import InvalidArgumentError
from polyabayes.interop.shared import attribute
from polyabayes.likelihood.foreign import adapter
from polyabayes.models import PoissonFactorAnalysis

_PACKAGE = "scHPF"


@adapter("schpf")
def from_schpf(
    model: Any, *, vocabulary: Any = None, random_state: Any = None
) -> PoissonFactorAnalysis:
    """Convert a trained scHPF model, given the capacities of the cells.

    In scHPF, cell i has a capacity xi_i ~ Gamma(ap, rate bp), weights
    theta_ik ~ Gamma(a, rate xi_i) and counts Poisson(sum_k theta_ik beta_gk). *Given* xi_i, this is
    exactly a gamma-Poisson model with exposures proportional to 1 / xi_i: ``shape`` is a,
    ``topic_word`` is the posterior mean of beta, and exposure 1 stands for the capacity of a
    typical cell, xi_0 = ap / bp. :func:`schpf_exposure` gives xi_0 / E[xi_i].

    Likelihoods are conditional on the capacities or, without exposures, on all cells being typical.
    The prior of the capacities and the uncertainty of beta are ignored. To include the prior,
    average likelihoods over draws of xi.

    Parameters
    ----------
    model : scHPF, or mapping of str to number or array
        A trained model, or a mapping with the numbers ``"a"``, ``"ap"`` and ``"bp"`` and the
        posterior means ``"beta"``, shape (n_genes, n_components), and ``"xi"``, shape (n_cells,),
        needed only by :func:`schpf_exposure`. scHPF's joblib files are never read, since they can
        run code.
    vocabulary : sequence of str of length n_genes, optional
        The genes; scHPF does not keep their names.
    {seed of transform}

    Returns
    -------
    PoissonFactorAnalysis

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If the model is not trained, or lacks an attribute.

    References
    ----------
    H. M. Levitin et al. (2019). De novo gene signature identification from single-cell RNA-seq with
    hierarchical Poisson factorization. Molecular Systems Biology 15.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> trained = SimpleNamespace(  # what an scHPF object holds
    ...     a=0.3, ap=1.0, bp=0.5, xi=SimpleNamespace(e_x=np.array([1.0, 4.0])),
    ...     beta=SimpleNamespace(e_x=np.array([[2.0, 0.1], [0.1, 1.0], [0.5, 0.5]])),
    ... )
    >>> cells = pb.Corpus([[4, 0, 1], [0, 1, 0]], exposure=pb.interop.schpf_exposure(trained))
    >>> pb.interop.from_schpf(trained).score_samples(cells).round(4).tolist()
    [-5.5095, -3.0965]
    >>> arrays = {"a": 0.3, "ap": 1.0, "bp": 0.5, "beta": [[2.0, 0.1], [0.1, 1.0], [0.5, 0.5]]}
    >>> pb.interop.from_schpf(arrays).score_samples(cells).round(4).tolist()
    [-5.5095, -3.0965]
    """
    weights = checks.matrix("beta.e_x", _mean(model, "beta").T)
    shape = checks.positive_number("a", _value(model, "a"))
    capacity = _typical_capacity(model)
    words = words_of(vocabulary, weights.shape[1], "the scHPF model")
    return PoissonFactorAnalysis.from_parameters(
        topic_word=weights,
        shape=shape,
        # Scale p / (1 - p) = 1 / capacity.
        probability=1.0 / (1.0 + capacity),
        vocabulary=words,
        random_state=random_state,
    )


def schpf_exposure(model: Any) -> Floats:
    """Exposures of the cells of an scHPF model, trained or projected.

    Parameters
    ----------
    model : scHPF, or mapping of str to number or array
        A trained model, the result of its ``project`` for new cells, or arrays as for
        :func:`from_schpf`.

    Returns
    -------
    ndarray of shape (n_cells,)
        xi_0 / E[xi_i], with xi_0 = ap / bp. The capacities are estimated from the counts of the
        same cells, so likelihoods given them are higher than with independently measured sizes.

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If the model is not trained, or lacks an attribute.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> trained = SimpleNamespace(ap=1.0, bp=0.5, xi=SimpleNamespace(e_x=np.array([1.0, 4.0])))
    >>> pb.interop.schpf_exposure(trained).tolist()
    [2.0, 0.5]
    """
    capacities = _mean(model, "xi")
    capacities = checks.positive_vector("xi.e_x", capacities, capacities.size)
    return _typical_capacity(model) / capacities


def _typical_capacity(model: Any) -> float:
    """The prior mean of the capacity of a cell."""
    ap, bp = (checks.positive_number(name, _value(model, name)) for name in ("ap", "bp"))
    return ap / bp


def _value(model: Any, name: str) -> Any:
    """An attribute of a trained model, or the value of this name."""
    is_arrays = isinstance(model, Mapping)
    value = model.get(name) if is_arrays else attribute(model, name, _PACKAGE)
    if value is None:
        what = "the mapping" if is_arrays else f"this {type(model).__name__}"
        why = "" if is_arrays else ": it is not trained"
        raise InvalidArgumentError(f"{what} has no {name}{why}")
    return value


def _mean(model: Any, name: str) -> Floats:
    """Posterior mean of a variational distribution, published as ``e_x``."""
    law = _value(model, name)
    means = law if isinstance(model, Mapping) else attribute(law, "e_x", _PACKAGE)
    # The array may be in single precision.
    return np.asarray(means, dtype=np.float64)
