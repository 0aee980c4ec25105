"""Latent transition analysis as a scikit-learn estimator."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.docs import shared_docs
from polyabayes._support.random import RandomState
from polyabayes._support.results import ResultTable
from polyabayes.allocation import Evidence
from polyabayes.allocation.options import Run
from polyabayes.data.conversion.frames import frame_of
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument
from polyabayes.latent_classes.answers import Answers, RowWeights, like_answers, read_answers
from polyabayes.latent_classes.choice import ClassChoice, checked_ln_prior, checked_sizes, choice_of
from polyabayes.latent_classes.membership import chain_draws, warn_of_chains
from polyabayes.latent_classes.saved import (
    SavedClasses,
    answer_frames,
    arrays_of,
    names_of_tables,
    profile_table,
    stored_tables,
)
from polyabayes.latent_classes.tables import Floats
from polyabayes.latent_classes.waves.sampler import (
    ChainPrior,
    Chains,
    Levels,
    Waves,
    aligned,
    sampled,
)
from polyabayes.models.fitted.stored_model import StoredModel
from polyabayes.models.model_files import readers
from polyabayes.sizes.evidence import Candidate, Comparison, Concentrations
from polyabayes.sizes.priors import Geometric, SizePrior
from polyabayes.sizes.scores import Sizes

if TYPE_CHECKING:
    import pandas as pd

# Particles of the looks at a number of classes, one after the other, in each of the replicates.
_PARTICLES, _REPLICATES = (64, 128, 256), 4
# Dirichlet parameters: uniform class weights and transitions, and those of the answers of
# LatentClassAnalysis.
_PRIOR = ChainPrior(1.0, 1.0, tuple(4.0**power for power in range(-1, 7)))


class _ChainComparison(Comparison):
    """Evidences of numbers of classes, and draws, for rows in waves."""

    def __init__(self, waves: Waves, ln_masses: Mapping[int, float], run: Run) -> None:
        masses: dict[Sizes, float] = {(n,): mass for n, mass in ln_masses.items()}
        super().__init__(Concentrations.even([None]), masses, 0)
        self._waves, self._run = waves, run
        self.draws: dict[Candidate, Chains] = {}

    def label(self, sizes: Sizes) -> str:
        """Sizes in words."""
        return f"{sizes[0]} classes"

    def look(self, one: Candidate, level: int) -> None:
        """The mean of unbiased estimates by independent sets of particles."""
        began, n_classes = time.perf_counter(), one[0][0]
        seeds = np.random.SeedSequence([self._run.seed, n_classes, level]).spawn(_REPLICATES)
        with ThreadPoolExecutor(self._run.n_jobs) as pool:
            logs, chains = zip(
                *pool.map(
                    lambda seed: sampled(self._waves, _PRIOR, n_classes, _PARTICLES[level], seed),
                    seeds,
                ),
                strict=True,
            )
        shares = special.softmax(logs)
        spread = np.sqrt(((shares * _REPLICATES - 1) ** 2).sum() / (_REPLICATES - 1) / _REPLICATES)
        # Where one replicate dominates the mean, the spread of the logarithms tells more.
        error = float(max(spread, np.std(logs, ddof=1) / np.sqrt(_REPLICATES)))
        n_eff = float(1 / (shares**2).sum())
        self.evidences[one] = Evidence(
            value=float(special.logsumexp(logs) - np.log(_REPLICATES)),
            std_error=error,
            method="smc",
            given_total=True,
            log_probability_of_total=np.nan,
            n_tokens=len(self._waves.rows),
            is_unbiased=True,
            is_lower_bound=False,
            n_replicates=_REPLICATES,
            n_eff=n_eff,
            seconds=time.perf_counter() - began,
            converged=not _core.is_doubtful(error, n_eff, _REPLICATES),
            n_free=_REPLICATES - 1,
        )
        self.origins[one] = one
        # Draws of each replicate in proportion to its estimate, as of one set of particles.
        joined, n_each = Chains.joined(chains), _PARTICLES[level]
        points = (np.arange(_REPLICATES * n_each) + 0.5) / (_REPLICATES * n_each)
        ends = np.cumsum(np.repeat(shares / n_each, n_each))
        chosen = np.minimum(np.searchsorted(ends, points), len(ends) - 1)
        self.draws[one] = joined.take(chosen)

    def refine(self, tell: Callable[..., None]) -> None:
        """More particles for numbers of classes whose errors change probabilities."""
        n_looks = len(self.evidences)
        for level in range(1, len(_PARTICLES)):
            for one in self.uncertain():
                self.look(one, level)
                tell(n_looks := n_looks + 1, self.label(one[0]))


@shared_docs
class LatentTransitionAnalysis(SavedClasses):
    """Latent transition analysis: latent classes of the same rows in several waves.

    A row is in class k in the first wave with probability w_k, and goes from class j to class k
    from a wave to the next with probability A_jk. Within a class, answers of a wave are
    independent. Missing answers and missing waves are summed out. Class weights, transitions and
    answers have Dirichlet priors: uniform ones of weights and transitions; the parameter of all
    answers is 1/4, 1, 4, ... or 4,096, and is learned. The number of classes has a posterior, from
    evidences in which all parameters and the classes of all rows are integrated out.

    Particles of the parameters take up the rows one after the other; forward sums make the classes
    of each row exact. The cost is particles x rows x waves x classes² for each of about a hundred
    steps.

    Parameters
    ----------
    n_classes : int or iterable of int, optional
        Number of classes, or numbers to choose from. By default 1, 2, 3 and so on, until a further
        class has no chance or there are `max_classes`.
    is_invariant : bool, default=True
        Whether classes have the same answers in all waves (measurement invariance). Items are then
        matched by their place in `waves`.
    is_stationary : bool, default=False
        Whether transitions are the same between all waves.
    size_prior : SizePrior, optional
        Prior of the number of classes; by default P(K) ∝ 2^-K.
    max_classes : int, default=6
        Largest number of classes to try if `n_classes` is not given.
    formula : str, optional
        Covariates of the first class, such as ``"~ age + party"``: columns of `X`, or of the
        `covariates` of :meth:`fit`. Needs formulaic.
    {seed}
    {n_jobs}
    progress : bool, default=False
        Show the evaluations of numbers of classes (needs tqdm).

    Attributes
    ----------
    n_classes_ : int
        Number of classes.
    class_weights_ : ndarray of shape (n_classes,)
        Probabilities of the classes in the first wave, the largest first.
    transition_probabilities_ : ndarray of shape (n_waves - 1, n_classes, n_classes)
        Probabilities of the class in the next wave (columns, "to") given that in a wave (rows,
        "from").
    item_probabilities_ : dict of str to DataFrame, shape (n_classes, n_levels)
        Probabilities of the answers, one row per class, by the names of the first wave; of all
        waves, if classes are not invariant.
    choice_ : ClassChoice
        Every number of classes that was tried.
    log_evidence_ : float
        ln of the probability of the rows with all parameters integrated out, in nats; NaN with
        covariates or sampling weights.
    coefficients_ : ndarray of shape (n_classes, n_columns)
        If the first class depends on covariates: log odds ratios against class 0, per unit of each
        column; means over ``coefficient_draws_``. ``covariate_names_`` has the columns.

    References
    ----------
    L. M. Collins and S. T. Lanza (2010). Latent class and latent transition analysis. Wiley.

    N. Chopin (2002). A sequential particle filter method for static models. Biometrika 89(3).

    Examples
    --------
    >>> import pandas as pd
    >>> first = [0] * 20 + [1] * 20
    >>> then = [0] * 14 + [1] * 26
    >>> frame = pd.DataFrame({"a1": first, "b1": first, "a2": then, "b2": then})
    >>> model = pb.LatentTransitionAnalysis(2, random_state=0)
    >>> model = model.fit(frame, waves=[["a1", "b1"], ["a2", "b2"]])
    >>> model.transition_probabilities_.shape, model.predict(frame).shape
    ((1, 2, 2), (40, 2))
    """

    def __init__(
        self,
        n_classes: int | Iterable[int] | None = None,
        *,
        is_invariant: bool = True,
        is_stationary: bool = False,
        size_prior: SizePrior | None = None,
        max_classes: int = 6,
        formula: str | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> None:
        self.n_classes = n_classes
        self.is_invariant = is_invariant
        self.is_stationary = is_stationary
        self.size_prior = size_prior
        self.max_classes = max_classes
        self.formula = formula
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        *,
        waves: Sequence[Sequence[str]],
        weights: Any = None,
        covariates: Any = None,
        missing: Sequence[Any] = (),
    ) -> Self:
        """Find the classes and how rows move between them.

        Parameters
        ----------
        X : DataFrame or table of polars or pyarrow
            One row per respondent; missing values are missing answers.
        {y}
        waves : sequence of sequences of str
            Columns of the items of each wave, in order of time: in each wave the same items in the
            same order. Waves that a row lacks are missing; so are the last ones of shorter
            sequences.
        weights : array of shape (n_rows,) or str, optional
            Number of respondents that each row stands for, or the column with these numbers.
            Weights with fractions are sampling weights, as for :meth:`LatentClassAnalysis.fit`.
        covariates : DataFrame, mapping or matrix, optional
            Covariates of the first class; with `formula`, the columns that it names.
        missing : sequence, optional
            Values that are missing answers, such as ``[9, "No answer"]``.

        Returns
        -------
        LatentTransitionAnalysis
            The estimator itself.

        Warns
        -----
        UnreliableErrorWarning
            If an evidence that matters cannot be trusted.

        {raises: bad argument}

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"a1": [0, 0, 1, 1] * 9, "a2": [0, 0, 1, None] * 9})
        >>> frame = frame.assign(b1=frame.a1, b2=frame.a2)
        >>> waves = [["a1", "b1"], ["a2", "b2"]]
        >>> pb.LatentTransitionAnalysis(2, random_state=0).fit(frame, waves=waves).n_classes_
        2
        """
        columns = _checked_waves(waves)
        if frame_of(X) is None:
            raise InvalidTypeError(f"X must be a data frame, got {type(X).__name__}")
        flat = [column for wave in columns for column in wave]
        answers = read_answers(X, flat, weights, missing=missing)
        self._sampling = "" if weights is None else RowWeights.of(answers, weights).sentence(self)
        self._columns, self._missing = columns, tuple(missing)
        self._labels = self._labels_of(answers)
        self._design, answers = self._with_design(answers, X, covariates)
        if is_sampled := answers.has_fractions:
            counted = answers.take(answers.weights > 0).scaled()
            whole = counted.systematic().one_each()
        else:
            counted = whole = answers.one_each()
        rows = self._waves(self._levels(whole))
        sizes, ends = checked_sizes(self.n_classes, self.max_classes, len(rows.shown[0]))
        prior = Geometric(0.5) if self.size_prior is None else self.size_prior
        run = Run.of(self.random_state, self.n_jobs, self.progress)
        self.seed_ = run.seed
        compared = _ChainComparison(rows, checked_ln_prior(prior, sizes), run)
        self.choice_: ClassChoice = compared.compare(
            lambda: choice_of([(compared, 0.0)]), progress=run.progress, ends=ends
        )
        compared.warn(compared.uncertain(), with_remedy=False)
        best = compared.best((self.choice_.best,))
        self.log_evidence_ = compared.averaged(best[0]).value
        chains = aligned(compared.draws[best], rows)
        if self._design is not None or is_sampled:
            self.log_evidence_ = np.nan
            rows = self._waves(self._levels(counted), counted.covariates)
            rows = replace(rows, row_weights=counted.weights if is_sampled else None)
            found, numbers = chain_draws(chains, rows, _PRIOR, run)
            chains = aligned(Chains.joined([drawn for _, drawn in found]), rows)
            what, values = "class weights", chains.weights
            if chains.coefficients is not None:
                what = "coefficients of the covariates"
                values = chains.coefficients - chains.coefficients[:, :1]
            warn_of_chains(what, values, numbers)
        self._set(chains)
        return self

    @property
    def class_weights_(self) -> Floats:
        """Probabilities of the classes in the first wave."""
        found: Floats = self._fitted().weights.mean(axis=0)
        return found

    @property
    def transition_probabilities_(self) -> Floats:
        """Transitions from wave to wave, shape (n_waves - 1, from, to)."""
        found: Floats = self._of_waves(self._fitted().transitions).mean(axis=0)
        return found

    @property
    def item_probabilities_(self) -> dict[str, pd.DataFrame]:
        """Probabilities of the answers to each item, one row per class."""
        return answer_frames(self._items(), self._labels, self._fitted().tables())

    def transitions(self, level: float = 0.95) -> ResultTable:
        """Transitions with intervals.

        Parameters
        ----------
        {level}

        Returns
        -------
        ResultTable
            Columns ``wave`` (from 0, that of ``from``), ``from``, ``to``, ``probability``, and
            ``lower`` and ``upper``, quantiles over draws.

        {raises: bad level}

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"a1": [0, 0, 1, 1] * 9, "a2": [0, 1, 1, 1] * 9})
        >>> frame = frame.assign(b1=frame.a1, b2=frame.a2)
        >>> model = pb.LatentTransitionAnalysis(2, random_state=0)
        >>> model.fit(frame, waves=[["a1", "b1"], ["a2", "b2"]]).transitions().n_rows
        4
        """
        draws, half = self._of_waves(self._fitted().transitions), checks.share("level", level) / 2
        low, high = np.quantile(draws, [0.5 - half, 0.5 + half], axis=0)
        tables = draws.mean(axis=0), low, high
        keys = np.ndindex(low.shape)
        rows = [[*key, *(float(table[key]) for table in tables)] for key in keys]
        return ResultTable(["wave", "from", "to", "probability", "lower", "upper"], rows)

    def profiles(self, level: float = 0.95) -> ResultTable:
        """Class weights in the first wave and answers of each class, with intervals.

        Parameters
        ----------
        {level}

        Returns
        -------
        ResultTable
            Columns ``class``, ``item`` and ``answer`` (empty for the weights), ``probability``, and
            ``lower`` and ``upper``, quantiles over draws.

        {raises: bad level}

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"a1": [0, 0, 1, 1] * 9, "a2": [0, 1, 1, 1] * 9})
        >>> frame = frame.assign(b1=frame.a1, b2=frame.a2)
        >>> model = pb.LatentTransitionAnalysis(2, random_state=0)
        >>> model.fit(frame, waves=[["a1", "b1"], ["a2", "b2"]]).profiles().n_rows
        10
        """
        tables, half = self._fitted().tables(), checks.share("level", level) / 2
        ends = [tables.quantile(0.5 + side) for side in (-half, half)]
        return profile_table(self._items(), self._labels, [tables.mean(), *ends])

    def predict_proba(self, X: Any, *, covariates: Any = None) -> Floats:
        """Class probabilities of rows in every wave, given their answers in all waves.

        Parameters
        ----------
        X : DataFrame or table of polars or pyarrow
            Rows with the columns of the fit; answers may be missing, even all of a wave.
        covariates : DataFrame, mapping or matrix, optional
            Covariates of these rows, if the first class depends on some; by default, columns of
            `X`.

        Returns
        -------
        ndarray of shape (n_rows, n_waves, n_classes)
            Means over the draws.

        {raises: bad rows}

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"a1": [0, 0, 1, 1] * 9, "a2": [0, 1, 1, 1] * 9})
        >>> frame = frame.assign(b1=frame.a1, b2=frame.a2)
        >>> model = pb.LatentTransitionAnalysis(2, random_state=0)
        >>> model.fit(frame, waves=[["a1", "b1"], ["a2", "b2"]]).predict_proba(frame).shape
        (36, 2, 2)
        """
        chains = self._fitted()
        names, n_waves = self.feature_names_in_.tolist(), len(self._columns)
        repeats = n_waves if self.is_invariant else 1
        answers = like_answers(X, names, self._labels * repeats, None, self._missing)
        levels = answers.levels.reshape(len(answers.levels), n_waves, -1)
        rows = self._waves(levels, self._covariates_of(X, covariates, len(levels)))
        return chains.smoothed(rows)[rows.rows]

    def predict(self, X: Any, *, covariates: Any = None) -> NDArray[np.intp]:
        """The most probable class of each row in every wave.

        Parameters
        ----------
        X, covariates
            As for :meth:`predict_proba`.

        Returns
        -------
        ndarray of int, shape (n_rows, n_waves)

        {raises: bad rows}

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"a1": [0, 0, 1, 1] * 9, "a2": [0, 1, 1, 1] * 9})
        >>> frame = frame.assign(b1=frame.a1, b2=frame.a2)
        >>> model = pb.LatentTransitionAnalysis(2, random_state=0)
        >>> model.fit(frame, waves=[["a1", "b1"], ["a2", "b2"]]).predict(frame).shape
        (36, 2)
        """
        found: NDArray[np.intp] = self.predict_proba(X, covariates=covariates).argmax(axis=2)
        return found

    def _set(self, chains: Chains) -> None:
        """Keep draws of the classes of the waves whose columns are known."""
        self._chains, self.n_classes_ = chains, int(chains.weights.shape[1])
        self.feature_names_in_ = np.array([c for wave in self._columns for c in wave], dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)

    @property
    def _coefficients(self) -> Floats | None:
        return self._chains.coefficients

    def _waves(self, levels: Levels, covariates: Floats | None = None) -> Waves:
        """Rows in waves, with the table of each wave and item."""
        n_waves, n_items = levels.shape[1:]
        slots = np.tile(np.arange(n_items), (n_waves, 1))
        if not self.is_invariant:
            slots += n_items * np.arange(n_waves)[:, None]
        n_levels = tuple(map(len, self._labels))
        return Waves.of(levels, slots, n_levels, bool(self.is_stationary), covariates)

    def _content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        chains, scalars = self._fitted(), dict[str, Any](log_evidence_=self.log_evidence_)
        scalars |= {"waves": self._columns}
        own = {"transitions": chains.transitions} | arrays_of(chains.tables())
        if self._design is not None and chains.coefficients is not None:
            scalars |= {"design": self._design._asdict()}
            own |= {"coefficients": chains.coefficients}
        return scalars, own

    @classmethod
    def _of_store(cls, content: StoredModel) -> LatentTransitionAnalysis:
        """Classes of the content of a file."""
        model, scalars, arrays = cls(**content.parameters), content.scalars, content.arrays
        model._restore(scalars)
        model._columns = _checked_waves(scalars["waves"])
        model.log_evidence_ = float(scalars["log_evidence_"])
        known = ["transitions", *["coefficients"][: "design" in scalars]]
        content.refuse_others([*known, *names_of_tables(len(model._items()))])
        tables, moves = stored_tables(content), arrays["transitions"]
        n_steps = 1 if model.is_stationary else len(model._columns) - 1
        if moves.shape[1] != n_steps or not np.allclose(moves.sum(axis=3), 1.0):
            raise ValueError("transitions are not of the waves, or do not sum to 1")
        if len(tables.items) != len(model._items()):
            raise ValueError("tables are not those of the items")
        coefficients = model._restored_coefficients(content)
        model._set(Chains(tables.weights, moves, tables.items, coefficients))
        return model

    def _fitted(self) -> Chains:
        self._check_fitted()
        return self._chains

    def _items(self) -> list[str]:
        """Names of the tables of answers."""
        first = [str(column) for column in self._columns[0]]
        return first if self.is_invariant else [str(c) for wave in self._columns for c in wave]

    def _of_waves(self, transitions: Floats) -> Floats:
        """A table for each step between waves."""
        return np.repeat(transitions, len(self._columns) - 1 if self.is_stationary else 1, axis=1)

    def _labels_of(self, answers: Answers) -> tuple[tuple[str, ...], ...]:
        """Labels of each table: of invariant items, those of any wave, in the order of the first.

        Numbers are sorted.
        """
        if not self.is_invariant:
            return answers.labels
        n_items = len(self._columns[0])
        found = []
        for item in range(n_items):
            union = list(dict.fromkeys(x for own in answers.labels[item::n_items] for x in own))
            if all(label.lstrip("-").isdecimal() for label in union):
                union.sort(key=int)
            found.append(tuple(union))
        return tuple(found)

    def _levels(self, answers: Answers) -> Levels:
        """Levels of the rows in the numbers of the tables, (n_rows, n_waves, n_items)."""
        columns = []
        tables = self._labels * (len(self._columns) if self.is_invariant else 1)
        for own, known, codes in zip(answers.labels, tables, answers.levels.T, strict=True):
            number = np.array([*(known.index(label) for label in own), -1])
            columns.append(number[codes])
        return np.stack(columns, axis=1).reshape(len(answers.levels), len(self._columns), -1)

    def _methods_text(self) -> str:
        """Sentences about the model for a methods section."""
        self._fitted()
        stays = self.transitions().to_frame()
        stays = stays[stays["from"] == stays["to"]]
        told = ", ".join(
            f"{row.probability:.2f} ({row.lower:.2f} to {row.upper:.2f})"
            for row in stays.itertuples()
        )
        answers = "the same" if self.is_invariant else "other"
        return (
            f"We used latent transition analysis of {len(self._columns)} waves of "
            f"{len(self._columns[0])} items, with {answers} answers of a class in each wave and "
            f"Dirichlet priors, missing answers summed out.{self._sampling}"
            f"{self._covariates_text()} {self.choice_._methods_text()} Probabilities to stay in a "
            f"class are {told}, with 95 % intervals."
        )


def _checked_waves(waves: Any) -> tuple[tuple[Any, ...], ...]:
    """Columns of each wave; anything else is refused."""
    is_list = isinstance(waves, Sequence) and not isinstance(waves, str)
    if not is_list or any(isinstance(w, str) or not isinstance(w, Sequence) for w in waves):
        raise InvalidTypeError(
            f"{argument('waves')} must be a list of lists of columns, as "
            f"[['a1', 'b1'], ['a2', 'b2']], got {waves!r:.100}"
        )
    found = tuple(tuple(wave) for wave in waves)
    if len(found) < 2 or len({len(wave) for wave in found}) > 1 or not found[0]:
        numbers = ", ".join(str(len(wave)) for wave in found)
        raise InvalidArgumentError(
            f"{argument('waves')} must be two or more, with the same items in the same order, got "
            f"{len(found)} with {numbers} items"
        )
    return found


readers["LatentTransitionAnalysis"] = LatentTransitionAnalysis._of_store
