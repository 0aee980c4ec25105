"""Sources of scores: a function, the evidence of a model, or an estimator grown from few topics."""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy import special
from sklearn.base import clone

from polyabayes._support import checks
from polyabayes._support.storage.state_folder import StateFolder
from polyabayes._support.warnings import quiet
from polyabayes.allocation.layout import lay_out
from polyabayes.allocation.model import AllocationModel
from polyabayes.allocation.options import METHODS, Options
from polyabayes.data.corpus import Corpus
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import FileFormatError, InvalidArgumentError
from polyabayes.likelihood.reliability import warn_of_caveats
from polyabayes.likelihood.result import LogLikelihood
from polyabayes.likelihood.scoring import log_likelihood
from polyabayes.models.files.load import load
from polyabayes.models.fitting import fingerprint
from polyabayes.sizes.scores import (
    ROUNDING,
    Record,
    Score,
    Sizes,
    checked_score,
    identity_of,
    named,
)

SCORINGS = ("likelihood", "bound")

# Models grown from smaller ones fall behind models trained afresh: one of these is tried whenever
# the size has grown by this factor.
_FRESH_EVERY = 1.1

# Arguments that the search sets or does not use, and parameters that do not affect the model.
_NOT_FOR_LIKELIHOODS = ("model", "documents", "event", "given_length", "random_state")
_NOT_FOR_EVIDENCES = ("self", "data", "observed", "max_total", "random_state", "options")
_NOT_OF_THE_MODEL = ("n_components", "fit_method", "init", "n_jobs", "progress", "checkpoint_every")


class FunctionScorer:
    """Scores from a function of the sizes; predictions from a function of documents and sizes."""

    def __init__(self, score: Callable[..., Any], predictive: Callable[..., Any] | None) -> None:
        self._function = score
        self.is_lower_bound = False
        self._predictive = predictive

    def score(self, sizes: Sizes, witness: Record | None) -> Any:  # noqa: ARG002
        """Call the function."""
        return self._function(*sizes)

    def model(self, sizes: Sizes) -> Any:  # noqa: ARG002
        """Refuse, since there are no models."""
        raise InvalidArgumentError("the scores came from a function: there are no models")

    def predict(self, sizes: Sizes, documents: Any) -> Score:
        """Call the function for predictions."""
        if self._predictive is None:
            raise InvalidArgumentError(
                "predictive_bounds needs predictive=, a function that gives ln p(documents | data, "
                "sizes) as predictive(documents, *sizes)"
            )
        return checked_score(self._predictive(documents, *sizes), sizes)

    def can_resume(self, record: Record) -> bool:  # noqa: ARG002
        """Always True, since there are only scores."""
        return True

    def identity(self) -> dict[str, Any]:
        """The name of the function."""
        kind = type(self._function)
        names = [
            getattr(self._function, name, getattr(kind, name))
            for name in ("__module__", "__qualname__")
        ]
        return {"score": ".".join(names)}


class NestedEstimator:
    """An estimator that is trained at each size from a smaller one.

    It needs parameters ``n_components``, ``fit_method="em"`` and ``init`` (a fitted model with
    fewer components), as in LatentDirichletAllocation. `scoring` is "likelihood",
    ``log_likelihood`` of the training documents with these options, or "bound", the estimator's
    ``bound_``. An estimator without a seed gets the seed of the search. Models are kept in the
    folder, or in memory if there is none or a model cannot be saved.
    """

    def __init__(
        self,
        estimator: Any,
        corpus: Corpus,
        scoring: str,
        options: Mapping[str, Any],
        seed: int,
        folder: StateFolder | None,
    ) -> None:
        self._estimator, self._corpus = estimator, corpus
        self._scoring = checks.choice("scoring", scoring, SCORINGS)
        self.is_lower_bound = self._scoring == "bound"
        _check_names(options, log_likelihood, _NOT_FOR_LIKELIHOODS)
        self._options, self._seed, self._folder = dict(options), seed, folder
        self._models: dict[Sizes, Any] = {}
        self._saved: set[Sizes] = set()
        self._predictions: dict[tuple[Sizes, str], Score] = {}
        self._parameters = estimator.get_params(deep=False)
        missing = {"n_components", "fit_method", "init"} - self._parameters.keys()
        if missing:
            raise InvalidArgumentError(
                f"{type(estimator).__name__} has no parameter {' and no '.join(sorted(missing))}: "
                "a nested search trains every size from a smaller one; give a "
                "LatentDirichletAllocation, or a function of the size"
            )

    def score(self, sizes: Sizes, witness: Record | None) -> Score:
        """Train, and score the training documents.

        The model of the witness with unused topics added is a model of this size, too. It is kept
        if training finds no higher score, so that scores never fall.
        """
        smaller = None if witness is None else self.model(witness.sizes)
        model = self._trained(sizes[0], smaller)
        score = (
            Score(float(model.bound_))
            if self._scoring == "bound"
            else self._likelihood(model, self._corpus)
        )
        if witness is not None and witness.score is not None and score.value < witness.score.value:
            model, score = smaller, witness.score
        self._keep(model, sizes)
        return score

    def _keep(self, model: Any, sizes: Sizes) -> None:
        """Save a model; the last model and unsaved models stay in memory."""
        if self._folder is not None:
            path = self._path(sizes)
            is_saved = self._folder.put(partial(model.save, path), f"the model of {named(sizes)}")
            for other in self._models.keys() & self._saved:
                del self._models[other]
            if is_saved:
                self._saved.add(sizes)
            else:
                # A model of another search must not be used by this search.
                self._folder.remove([path])
        self._models[sizes] = model

    def _trained(self, size: int, smaller: Any) -> Any:
        """The better of a model grown from a smaller one and, if due, one trained afresh."""
        starts = [smaller]
        if smaller is not None and starts_afresh(size):
            starts.append(None)
        return max((self._fitted(size, init) for init in starts), key=lambda model: model.bound_)

    def _fitted(self, size: int, init: Any) -> Any:
        model = clone(self._estimator).set_params(n_components=size, fit_method="em", init=init)
        if "random_state" in self._parameters and self._parameters["random_state"] is None:
            model.set_params(random_state=self._seed)
        model.fit(self._corpus)
        # References to earlier models would keep all of them in memory.
        return model.set_params(init=None)

    def predict(self, sizes: Sizes, documents: Any) -> Score:
        """Score documents by the model of a size, once."""
        key = sizes, fingerprint(documents)
        file = f"prediction-{sizes[0]}-{key[1]}.safetensors"
        if key not in self._predictions and self._folder is not None:
            kept = self._folder.read(file)
            if kept is not None:
                self._predictions[key] = Score(*kept[0]["score"])
        if key not in self._predictions:
            score = self._likelihood(self.model(sizes), documents)
            self._predictions[key] = score
            if self._folder is not None:
                self._folder.keep(file, {"score": list(score)}, {}, "a score of new documents")
        return self._predictions[key]

    def model(self, sizes: Sizes) -> Any:
        """The model of a scored size."""
        if sizes not in self._models and self._folder is not None:
            return load(self._path(sizes))
        if sizes not in self._models:
            raise InvalidArgumentError(f"there is no model of {named(sizes)}")
        return self._models[sizes]

    def _path(self, sizes: Sizes) -> Path:
        assert self._folder is not None
        return self._folder.path / f"topics-{sizes[0]}.safetensors"

    def can_resume(self, record: Record) -> bool:
        """Whether the folder holds the complete model; a failed size needs none."""
        if record.score is None:
            return True
        if self._folder is None or not self._path(record.sizes).exists():
            return False
        try:
            model = load(self._path(record.sizes))
        except FileFormatError as error:
            self._folder.damaged(error)
            return False
        # A size without improvement has the model of a smaller size.
        return isinstance(model, type(self._estimator)) and (
            len(model.components_) <= record.sizes[0]
        )

    def identity(self) -> dict[str, Any]:
        """Class and parameters of the estimator, and how it is scored."""
        parameters = {
            name: _plain(value)
            for name, value in self._parameters.items()
            if name not in _NOT_OF_THE_MODEL
        }
        return {
            "score": type(self._estimator).__name__,
            **{f"{name} of the estimator": value for name, value in parameters.items()},
            "scoring": self._scoring,
            "scoring_options": repr(sorted(self._options.items())),
        }

    def _likelihood(self, model: Any, documents: Any) -> Score:
        # The event whose probability the multinomial ceiling bounds.
        options = {"n_jobs": self._parameters.get("n_jobs"), **self._options}
        with quiet():
            result = log_likelihood(
                model,
                documents,
                event="sequence",
                given_length=True,
                random_state=self._seed,
                **options,
            )
        warn_of_caveats(result, "WitnessSearch(scoring_options=dict({}))")
        return Score(result.total, result.total_std_error, degrees_of_freedom(result))


@dataclass(frozen=True, eq=False)
class EvidenceOf:
    """Ln of the evidence of a tensor, as a function of the unknown sizes of a model."""

    model: AllocationModel
    tensor: CountTensor
    options: dict[str, Any]

    def __call__(self, *sizes: int) -> Score:
        """The value with its error; degrees of freedom if the error is from replicates."""
        found = _sized(self.model, sizes).log_evidence(self.tensor, **self.options)
        if not found.n_replicates:
            return Score(found.value)
        return Score(found.value, found.std_error, max(found.n_free, 1))


class EvidenceScorer(FunctionScorer):
    """An allocation model whose unknown sizes are searched.

    Unknown sizes are the variables of the search, in their order; `first` are sizes for a check
    that model and data fit.
    """

    def __init__(
        self,
        model: AllocationModel,
        data: Any,
        first: Sizes,
        options: Mapping[str, Any],
        seed: int,
        predictive: Callable[..., Any] | None,
    ) -> None:
        if len(model.unknown_sizes) != len(first):
            unknown = ", ".join(model.unknown_sizes) or "none"
            raise InvalidArgumentError(
                f"prior is of {len(first)} sizes, but the unknown sizes of the model are "
                f"{unknown}; give a prior of each, such as priors.Product"
            )
        if data is None:
            raise InvalidArgumentError("X is missing: an allocation model needs counts")
        _check_names(options, AllocationModel.log_evidence, _NOT_FOR_EVIDENCES, Options.names())
        method = checks.choice("method", options.get("method", "auto"), tuple(METHODS))
        tensor = lay_out(_sized(model, first), data).tensor
        self._evidence = EvidenceOf(model, tensor, {**options, "random_state": seed})
        super().__init__(self._evidence, predictive)
        self.is_lower_bound = METHODS[method].is_lower_bound

    def model(self, sizes: Sizes) -> AllocationModel:
        """The model of these sizes."""
        return _sized(self._evidence.model, sizes)

    def log_ceiling(self) -> float:
        """Ln of the probability of the tensor, given its total, by its own frequencies.

        Given the total and the observed axes of each token, the evidence of every network is an
        average of products of multinomial distributions, one for each set of observed axes.
        """
        tensor = self._evidence.tensor
        _, patterns = np.unique(tensor.coordinates < 0, axis=0, return_inverse=True)
        counts = tensor.counts.astype(np.float64)
        totals = np.bincount(patterns.ravel(), counts)
        ways = special.gammaln(totals + 1.0).sum() - special.gammaln(counts + 1.0).sum()
        shares = float((counts * np.log(counts / totals[patterns.ravel()])).sum())
        room = ROUNDING * (abs(shares) + 2.0 * float(special.gammaln(totals + 1.0).sum()))
        return min(float(ways) + shares + room, 0.0)

    def identity(self) -> dict[str, Any]:
        """Model, data and options of the evidence."""
        model, tensor, options = self._evidence.model, self._evidence.tensor, self._evidence.options
        identity = identity_of(model, tensor, options)
        told = {"concentration": model.concentration, "scoring_options": identity.pop("options")}
        return {**identity, **told}


Scorer: TypeAlias = FunctionScorer | NestedEstimator


def is_estimator(estimator: Any) -> bool:
    """Whether an argument of the search is an estimator."""
    return hasattr(estimator, "get_params") and hasattr(estimator, "fit")


def log_multinomial_ceiling(corpus: Corpus) -> float:
    """Sum of n_dw ln(n_dw / n_d) over documents and words, rounded up.

    No mixture of multinomials exceeds each document's own frequencies.
    """
    counts = corpus.counts.data.astype(np.float64)
    lengths = np.repeat(corpus._lengths().astype(np.float64), np.diff(corpus.counts.indptr))
    return float((counts * np.log(counts / lengths)).sum()) * (1.0 - ROUNDING)


def starts_afresh(size: int) -> bool:
    """Whether a size is the first at or above a power of the factor."""
    power = math.floor(math.log(size) / math.log(_FRESH_EVERY))
    return math.ceil(_FRESH_EVERY**power) == size


def degrees_of_freedom(result: LogLikelihood) -> float:
    """Degrees of freedom of a total's error (Welch-Satterthwaite); infinite if exact.

    Equal documents share one estimate, so their errors add linearly.
    """
    errors = np.where(result.methods == "exact", 0.0, result.std_errors)
    variances = np.bincount(result.groups, weights=errors) ** 2
    free = np.ones(len(variances))
    free[result.groups] = np.maximum(result.n_replicates - 1, 1)
    spread = float((variances**2 / free).sum())
    return float(variances.sum() ** 2 / spread) if spread > 0 else math.inf


def _sized(model: AllocationModel, sizes: Sizes) -> AllocationModel:
    """The model with its unknown sizes filled in."""
    return model.with_sizes(**dict(zip(model.unknown_sizes, sizes, strict=True)))


def _check_names(
    options: Mapping[str, Any],
    function: Callable[..., Any],
    own: tuple[str, ...],
    further: tuple[str, ...] = (),
) -> None:
    """Refuse scoring options that the function does not take, or that the search sets.

    `further` are options that it takes besides its named parameters.
    """
    taken = [known for known in inspect.signature(function).parameters if known not in own]
    taken += [known for known in further if known not in taken]
    for option in options:
        if option not in taken:
            raise InvalidArgumentError(
                f"scoring_options has {option!r}, but {function.__name__} takes "
                f"{', '.join(taken)} here"
            )


def _plain(value: Any) -> Any:
    """Parameters as JSON returns them; a path or a random state as text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return np.asarray(value).tolist() if hasattr(value, "__array__") else repr(value)
