"""Allocation models compared by the evidence of the same tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import special, stats

from polyabayes._support import checks
from polyabayes._support.docs import shared_docs
from polyabayes._support.output.tables import Column, text_table
from polyabayes._support.random import RandomState, draw_seed
from polyabayes._support.results import Result
from polyabayes._support.storage.state_folder import StateFolder, fingerprint_of
from polyabayes._support.warnings import quiet, warn
from polyabayes.allocation.evidence.result import Evidence
from polyabayes.allocation.model import AllocationModel
from polyabayes.allocation.observed_cells import lay_out_observed
from polyabayes.allocation.options import METHODS
from polyabayes.exceptions import (
    Interrupted,
    InvalidArgumentError,
    InvalidTypeError,
    UnreliableErrorWarning,
    argument,
)

_NO_ODDS = (
    "lower bounds may be far below the evidence, so they give no odds: use "
    f"{argument('method', 'tempered')} or {argument('method', 'smc')}, or look at the bounds by "
    "log_evidence"
)


@shared_docs
@dataclass(frozen=True, repr=False, eq=False)
class ModelPosterior(Result):
    """Allocation models by their posterior probability, best first.

    ``to_frame()`` has a row per model: evidence, log odds against the best, probability and its
    interval. Evidences that are lower bounds are refused, since they give no odds.

    Attributes
    ----------
    evidences : dict of str to Evidence
        Evidence of every model, by decreasing posterior probability.
    prior : dict of str to float
        Prior probability of every model.

    Examples
    --------
    >>> models = {f"rank {K}": pb.AllocationModel.nmf(K) for K in (1, 2, 3)}
    >>> found = pb.posterior_over_models(models, counts)
    >>> found.best, found.to_frame().index[0]
    ('rank 3', 'rank 3')
    """

    _index = "model"
    evidences: dict[str, Evidence]
    prior: dict[str, float]

    def __post_init__(self) -> None:
        bounds = [name for name, found in self.evidences.items() if found.is_lower_bound]
        if bounds:
            raise InvalidArgumentError(f"the evidence of {bounds[0]!r} is a bound; {_NO_ODDS}")

    @property
    def best(self) -> str:
        """Name of the most probable model."""
        return next(iter(self.evidences))

    @property
    def probabilities(self) -> dict[str, float]:
        """Posterior probability of every model."""
        weights = special.softmax(np.array([self._ln_weight(name) for name in self.evidences]))
        return dict(zip(self.evidences, weights.tolist(), strict=True))

    def log_odds(self, first: str, second: str) -> tuple[float, float]:
        """Posterior log odds of `first` against `second` in nats, and their standard error.

        Parameters
        ----------
        {first, second}

        Returns
        -------
        log_odds, std_error : float
            In nats.

        {raises: no such model}

        Examples
        --------
        >>> models = {f"rank {K}": pb.AllocationModel.nmf(K) for K in (1, 2, 3)}
        >>> found = pb.posterior_over_models(models, counts)
        >>> odds, std_error = found.log_odds("rank 3", "rank 2")
        >>> f"{odds:.4f} {std_error:g}"
        '0.2629 0'
        """
        for name in (first, second):
            if name not in self.evidences:
                known = ", ".join(repr(known) for known in self.evidences)
                raise InvalidArgumentError(f"no model {name!r} here; there are {known}")
        if first == second:
            return 0.0, 0.0
        errors = [self.evidences[name].std_error for name in (first, second)]
        return self._ln_weight(first) - self._ln_weight(second), float(np.hypot.reduce(errors))

    def quantile(self, level: float = 0.95) -> float:
        """Half-width of a confidence interval of log odds, in standard errors.

        A quantile of Student's t with the smallest `Evidence.n_free` of all models.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level.

        Returns
        -------
        float
            The normal quantile if all evidences are exact.

        {raises: bad level}

        Examples
        --------
        >>> models = {f"rank {K}": pb.AllocationModel.nmf(K) for K in (1, 2, 3)}
        >>> found = pb.posterior_over_models(models, counts)
        >>> round(found.quantile(0.95), 2)
        1.96
        """
        numbers = [found.n_free for found in self.evidences.values() if found.n_replicates]
        n_free = max(min(numbers, default=np.inf), 1)
        return float(stats.t.ppf(0.5 + checks.share("level", level) / 2, n_free))

    def interval(self, name: str, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of a model's posterior probability, from the errors of all evidences.

        It is computed for the log odds of the model against all others together. With posterior
        shares w of the others among themselves, the variance is σ² + Σ w² σ'².

        Parameters
        ----------
        name : str
            Name of the model.
        {level}

        Returns
        -------
        low, high : float
            Probabilities.

        Raises
        ------
        InvalidArgumentError
            If there is no such model, or `level` is not between 0 and 1.

        Examples
        --------
        >>> models = {f"rank {K}": pb.AllocationModel.nmf(K) for K in (1, 2, 3)}
        >>> found = pb.posterior_over_models(models, counts)
        >>> low, high = found.interval("rank 3")
        >>> bool(low == high)  # all evidences are exact
        True
        """
        quantile = self.quantile(level)
        self.log_odds(name, name)
        others = [other for other in self.evidences if other != name]
        if not others:
            return 1.0, 1.0
        ln_weights = np.array([self._ln_weight(other) for other in others])
        errors = np.array([self.evidences[other].std_error for other in others])
        ln_odds = self._ln_weight(name) - special.logsumexp(ln_weights)
        shares = special.softmax(ln_weights)
        error = np.hypot(self.evidences[name].std_error, np.sqrt(((shares * errors) ** 2).sum()))
        ends = special.expit(ln_odds + quantile * error * np.array([-1.0, 1.0]))
        return float(ends[0]), float(ends[1])

    def _ln_weight(self, name: str) -> float:
        return float(np.log(self.prior[name])) + self.evidences[name].value

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        for name, probability in self.probabilities.items():
            ln_odds, std_error = self.log_odds(name, self.best)
            low, high = self.interval(name)
            rows.append(
                {
                    "model": name,
                    "log_evidence": self.evidences[name].value,
                    "std_error": self.evidences[name].std_error,
                    "method": self.evidences[name].method,
                    "log_odds": ln_odds,
                    "log_odds_std_error": std_error,
                    "probability": probability,
                    "probability_low": low,
                    "probability_high": high,
                }
            )
        return rows

    def __str__(self) -> str:
        found = self._columns()
        ends = zip(found["probability_low"], found["probability_high"], strict=True)
        return text_table(
            [
                Column("model", found["model"], is_left=True),
                Column("log evidence", [f"{x:,.4f}" for x in found["log_evidence"]], 14),
                Column("± evidence", [f"{x:.2g}" for x in found["std_error"]]),
                Column("log odds", [f"{x:,.4f}" for x in found["log_odds"]], 10),
                Column("± odds", [f"{x:.2g}" for x in found["log_odds_std_error"]]),
                Column("probability", [f"{x:.4f}" for x in found["probability"]]),
                Column("95 % interval", [f"{low:.4f} - {high:.4f}" for low, high in ends], 15),
                Column("method", found["method"], is_left=True),
            ]
        )

    def __repr__(self) -> str:
        return f"<ModelPosterior of {len(self.evidences)} models>\n{self}"


def posterior_over_models(
    models: Mapping[str, AllocationModel],
    data: Any,
    method: str = "auto",
    *,
    prior: Mapping[str, float] | None = None,
    random_state: RandomState = None,
    checkpoint: Any = None,
    **options: Any,
) -> ModelPosterior:
    """Posterior probabilities of allocation models, given the same tensor.

    Parameters
    ----------
    models : mapping of str to AllocationModel
        The models by name.
    data : CountTensor, Corpus, array or sparse matrix
        As for :meth:`AllocationModel.log_evidence`.
    method : str, default="auto"
        As for :meth:`AllocationModel.log_evidence`, but not ``"vb"``, whose bounds give no odds.
    prior : mapping of str to float, optional
        Prior weights of the models, not necessarily normalised; default: equal.
    random_state : None, int, RandomState, Generator or SeedSequence
        Seed; every model gets a seed of its own, drawn in the order of `models`.
    checkpoint : path-like, optional
        Folder that keeps the evidence of each model; the same call resumes from there.
    **options
        Further options of :meth:`AllocationModel.log_evidence`.

    Returns
    -------
    ModelPosterior
        Log odds and probabilities with intervals.

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If an argument is bad.
    Interrupted
        A KeyboardInterrupt whose ``partial`` is the posterior over the models done, if any.

    References
    ----------
    R. E. Kass and A. E. Raftery (1995). Bayes factors. Journal of the American Statistical
    Association 90(430).

    Examples
    --------
    >>> models = {f"rank {K}": AllocationModel.nmf(K) for K in (1, 2, 3)}
    >>> posterior = posterior_over_models(models, counts)
    >>> {name: round(p, 4) for name, p in posterior.probabilities.items()}
    {'rank 3': 0.5643, 'rank 2': 0.4339, 'rank 1': 0.0018}
    """
    checks.models_by_name(models)
    for name, model in models.items():
        if not isinstance(model, AllocationModel):
            raise InvalidTypeError(f"models[{name!r}] must be an AllocationModel, got {model!r}")
    if checks.choice("method", method, tuple(METHODS)) and METHODS[method].is_lower_bound:
        raise InvalidArgumentError(f"method {method!r} gives a bound; {_NO_ODDS}")
    weights = _checked_prior(prior, [str(name) for name in models])
    seed = draw_seed(random_state)
    options = {"method": method, **options}
    folder = None if checkpoint is None else StateFolder(checkpoint, "the comparison")
    if folder is not None:
        _claim(folder, models, data, options, seed)
    seeds = np.random.SeedSequence(seed).spawn(len(models))
    evidences: dict[str, Evidence] = {}
    for number, (name, model) in enumerate(models.items()):
        file = f"model-{number}.safetensors"
        try:
            find = partial(model.log_evidence, data, random_state=seeds[number], **options)
            evidence = kept_evidence(folder, file, f"the evidence of {file}", find)
        except KeyboardInterrupt:
            found = _best_first(evidences, weights) if evidences else None
            message = f"{len(evidences)} of {len(models)} models are done"
            raise Interrupted(message, found) from None
        evidences[str(name)] = evidence
        if evidence.doubt:
            warn(f"{name}: {evidence.doubt}", UnreliableErrorWarning)
    return _best_first(evidences, weights)


def kept_evidence(
    folder: StateFolder | None, file: str, what: str, find: Callable[[], Evidence]
) -> Evidence:
    """The evidence in a file of a folder; it is found, and kept there, if there is none."""
    kept = None if folder is None else folder.read(file)
    if kept is not None:
        return Evidence.from_plain(kept[0]["evidence"])
    with quiet(UnreliableErrorWarning):
        found = find()
    if folder is not None:
        folder.keep(file, {"evidence": asdict(found)}, {}, what)
    return found


# Options that change no value.
_OF_THE_RUN = ("executor", "n_jobs", "progress")


def _claim(
    folder: StateFolder,
    models: Mapping[str, AllocationModel],
    data: Any,
    options: Mapping[str, Any],
    seed: int,
) -> None:
    """Claim the folder for these models and data; refuse a folder of others."""
    given = {n: v for n, v in options.items() if n not in _OF_THE_RUN}
    order, observed = given.get("elimination_order"), given.pop("observed", None)
    layout, missing = lay_out_observed(next(iter(models.values())), data, observed, order)
    tensor = layout.tensor
    identity = {
        "data": fingerprint_of(tensor.shape, tensor.coordinates, tensor.counts, missing),
        "models": [
            [name, repr(model), repr((model.concentration, model.rate, model.prior, model.tied))]
            for name, model in models.items()
        ],
        "options": {name: repr(value) for name, value in given.items()},
        "random_state": seed,
    }
    folder.claim("comparison.safetensors", "comparison", identity)


def _best_first(evidences: dict[str, Evidence], weights: Mapping[str, float]) -> ModelPosterior:
    total = sum(weights[name] for name in evidences)
    prior = {name: weights[name] / total for name in evidences}
    unsorted = ModelPosterior(evidences, prior)
    names = sorted(evidences, key=lambda name: -unsorted._ln_weight(name))
    return ModelPosterior({name: evidences[name] for name in names}, prior)


def _checked_prior(prior: Any, names: list[str]) -> dict[str, float]:
    if prior is None:
        return dict.fromkeys(names, 1.0)
    if not isinstance(prior, Mapping) or sorted(map(str, prior)) != sorted(names):
        raise InvalidArgumentError(
            f"prior must give a weight to each of the models {', '.join(names)}, got {prior!r}"
        )
    return {str(name): checks.positive_number(f"prior[{name!r}]", x) for name, x in prior.items()}
