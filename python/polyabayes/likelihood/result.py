"""The log-likelihood of documents: values, their errors, and how they came about."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from polyabayes._support import checks
from polyabayes._support.arrays import Flags, Floats, Integers
from polyabayes._support.docs import shared_docs
from polyabayes._support.optional import import_optional
from polyabayes._support.output.tables import counted, measured
from polyabayes._support.results import Record, Result
from polyabayes.exceptions import Interrupted
from polyabayes.likelihood.blocks import BlockScores
from polyabayes.likelihood.methods import ESTIMATORS, Method, Settings

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, repr=False, eq=False)
class Trace(Record):
    """Running estimates by number of samples, from one run.

    Attributes
    ----------
    n_samples : ndarray of shape (n_documents, n_points)
        Samples, particles, states or temperatures of all replicates behind each estimate; 0 if
        exact.
    values : ndarray of shape (n_documents, n_points)
        ln p, in nats.
    std_errors : ndarray of shape (n_documents, n_points)
        Standard error of each value.

    Examples
    --------
    >>> sizes = {"n_samples": 64, "trace": True, "random_state": 0}
    >>> trace = pb.log_likelihood(model, [[1, 1, 1, 0]], "direct", **sizes).trace
    >>> trace.values.shape == trace.n_samples.shape
    True
    """

    n_samples: Floats
    values: Floats
    std_errors: Floats

    def _columns(self) -> dict[str, Any]:
        document = np.indices(self.values.shape)[0].ravel()
        return {"document": document, **{n: c.ravel() for n, c in super()._columns().items()}}


@shared_docs
@dataclass(frozen=True, repr=False, eq=False)
class LogLikelihood(Result):
    """Log-likelihood of documents under a model, with standard errors, in nats.

    Attributes
    ----------
    values : ndarray of shape (n_documents,)
        ln p of each document; ``-inf`` if the model cannot produce it, NaN if an interrupted run
        did not reach it.
    std_errors : ndarray of shape (n_documents,)
        Standard error of each value (delta method over replicates); 0 if exact.
    n_effs : ndarray of shape (n_documents,)
        Effective number of replicates behind each error; ``inf`` if exact, 0 if the weights that
        the replicates average have a heavy tail. NaN if unknown: for ``"recursive"``, and if all
        replicates may miss topics with tiny priors.
    methods : ndarray of str, shape (n_documents,)
        The estimator that ran for each document.
    n_tokens : ndarray of int, shape (n_documents,)
        Length of each document.
    method : str
        The estimator that ran, if one served all documents; else the `method` argument of the
        call, and `methods` has those that ran.
    event : {"sequence", "counts"}
        Whether a document is its ordered tokens or its bag of words.
    given_length : bool
        Whether the values are conditional on the documents' lengths.
    n_replicates : int
        Replicates behind each error.
    sizes : ndarray of int, shape (n_documents,)
        Particles, draws, states or temperatures of each replicate; 0 if there are none.
    reached : ndarray of bool, shape (n_documents,)
        Whether the standard error is at most ``target_std_error`` (or, for a target of the total,
        that of the total). True without a target; False if an interrupted run did not reach the
        document.
    trace : Trace or None
        Running estimates, with ``trace=True``.
    is_ratio : bool
        Whether the values are ratios of two estimates, as in ``log_completion``: consistent but not
        unbiased.
    correction_std_error : float or None
        Standard error, in nats, that all values share, if a target for the total was given. Most
        values are then predicted from short runs and a correction, and serve for sums only.
    n_unseen_tokens : int
        Tokens dropped because their words are not in the model's vocabulary.
    ids : ndarray of str or None
        Names of the documents.

    Examples
    --------
    >>> result = pb.log_likelihood(model, [[1, 1, 1, 0], [0, 0, 2, 1]])
    >>> result.n_tokens.tolist(), result.is_unbiased
    ([3, 3], True)
    >>> print(f"{result.total:.6f} {result.perplexity:.4f}")
    -8.503204 4.1256
    """

    values: Floats
    std_errors: Floats
    n_effs: Floats
    methods: NDArray[np.str_]
    n_tokens: Integers
    method: str
    event: str
    given_length: bool
    n_replicates: int
    sizes: Integers
    reached: Flags
    trace: Trace | None
    n_unseen_tokens: int
    ids: NDArray[Any] | None
    groups: Integers
    is_ratio: bool = False
    correction_std_error: float | None = None

    @property
    def is_unbiased(self) -> bool:
        """Whether p is estimated without bias; ln p is then low by about half its variance."""
        known = not self.is_ratio or set(self.methods.tolist()) <= {"exact"}
        return known and all(method.is_unbiased for method in self._used())

    @property
    def is_consistent(self) -> bool:
        """Whether the estimates tend to p as the number of samples grows."""
        return all(method.is_consistent for method in self._used())

    @property
    def cost(self) -> dict[str, str]:
        """Multiply-adds of a replicate, by method that ran.

        N tokens, W distinct words, K topics, S samples, P particles.
        """
        return {name: ESTIMATORS[name].cost for name in np.unique(self.methods).tolist() if name}

    def _used(self) -> list[Method]:
        return [ESTIMATORS[name] for name in np.unique(self.methods).tolist() if name]

    @property
    def total(self) -> float:
        """Sum of the values: ln p of the corpus."""
        return float(self.values.sum())

    @property
    def total_std_error(self) -> float:
        """Standard error of :attr:`total`, including the expected bias of ln p.

        Equal documents share one estimate, so their errors add linearly. ln of an unbiased estimate
        is low by about half its variance; over many documents, this bias grows faster than the
        errors.
        """
        errors = self._errors()
        per_group = np.bincount(self.groups, weights=errors)
        beside = self.correction_std_error or 0.0
        # Exactly rounded sums do not depend on the order of documents.
        own = math.sqrt(math.fsum(per_group**2))
        return math.hypot(own, math.fsum(self.log_bias), beside)

    @property
    def log_bias(self) -> Floats:
        """Bias of each value to second order: -(standard error)² / 2, by Jensen's inequality.

        0 for ratios, whose two biases have opposite signs, and if the bias has been removed.
        """
        if self.is_ratio or self.correction_std_error is not None:
            return np.zeros_like(self.values)
        return np.asarray(-0.5 * self._errors() ** 2)

    def _errors(self) -> Floats:
        """Standard errors; 0 for documents that are impossible or were not reached."""
        known = (self.methods == "exact") | np.isnan(self.values)
        return np.where(known, 0.0, self.std_errors)

    @property
    def nats_per_token(self) -> float:
        """:attr:`total` divided by the number of tokens; NaN without tokens."""
        n_tokens = int(self.n_tokens.sum())
        return self.total / n_tokens if n_tokens else float("nan")

    @property
    def nats_per_token_std_error(self) -> float:
        """Standard error of :attr:`nats_per_token`."""
        n_tokens = int(self.n_tokens.sum())
        return self.total_std_error / n_tokens if n_tokens else float("nan")

    @property
    def perplexity(self) -> float:
        """``exp(-nats_per_token)``; infinite if that overflows, NaN for counts.

        It is the effective number of words from which each token is chosen. Counts have no
        perplexity, since their probability sums over all orders of the tokens.
        """
        if self.event == "counts":
            return float("nan")
        with np.errstate(over="ignore"):
            return float(np.exp(-self.nats_per_token))

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Confidence interval of each document's value.

        It uses Student's t with ``n_replicates - 1`` degrees of freedom.

        Parameters
        ----------
        {level}

        Returns
        -------
        lower, upper : ndarray of shape (n_documents,)
            Ends of the intervals in nats; equal if the value is exact.

        {raises: bad level}

        Examples
        --------
        >>> result = pb.log_likelihood(model, [[1, 1, 1, 0], [0, 0, 2, 1]])
        >>> low, high = result.interval()
        >>> (low == high).tolist()  # exact
        [True, True]
        """
        checks.share("level", level)
        half_width = stats.t.ppf(0.5 + level / 2, self.n_replicates - 1) * self._errors()
        # An inexact estimate of p = 0 has no upper bound.
        upper = np.where(np.isinf(half_width), np.inf, self.values + half_width)
        return self.values - half_width, upper

    def total_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of :attr:`total`, by the normal distribution.

        Parameters
        ----------
        {level}

        Returns
        -------
        lower, upper : float
            Ends of the interval in nats; equal if the total is exact.

        {raises: bad level}

        Examples
        --------
        >>> result = pb.log_likelihood(model, [[1, 1, 1, 0], [0, 0, 2, 1]])
        >>> low, high = result.total_interval()
        >>> low == high == result.total  # exact
        True
        """
        checks.share("level", level)
        half_width = float(stats.norm.ppf(0.5 + level / 2)) * self.total_std_error
        return self.total - half_width, self.total + half_width

    def to_arrow(self) -> pa.Table:
        """Give the table of :meth:`to_frame` as an Arrow table.

        Returns
        -------
        pyarrow.Table
            One row per document.

        Raises
        ------
        MissingDependencyError
            If pyarrow is not installed.

        Examples
        --------
        >>> result = pb.log_likelihood(model, [[1, 1, 1, 0], [0, 0, 2, 1]])
        >>> result.to_arrow().num_rows
        2
        """
        pyarrow = import_optional("pyarrow", "to_arrow needs pyarrow", "frames")
        return pyarrow.table(self._columns())

    def _columns(self) -> dict[str, Any]:
        ids = np.arange(len(self.values)) if self.ids is None else self.ids
        return {
            "document": ids,
            "n_tokens": self.n_tokens,
            "log_likelihood": self.values,
            "std_error": self.std_errors,
            "n_eff": self.n_effs,
            "size": self.sizes,
            "method": self.methods,
        }

    def __repr__(self) -> str:
        tally = zip(*np.unique(self.methods, return_counts=True), strict=True)
        used = ", ".join(f"{name or 'not scored'} {n:,}" for name, n in tally)
        head = f"<LogLikelihood of {self.event}: {counted(len(self.values), 'document')} ({used}),"
        total = f"{measured(self.total, self.total_std_error)} nats, {self._per_token()}"
        if self.n_unseen_tokens:
            total += f";\n    {counted(self.n_unseen_tokens, 'token')} of unseen words left out"
        total += ">"
        # A longer line would be cut, or wrap where it cannot be read.
        return f"{head} {total}" if len(head + total) < 88 else f"{head}\n    {total}"

    def _per_token(self) -> str:
        if not self.n_tokens.any():
            return "no tokens"
        told = f"{self.nats_per_token:z.4f} per token"
        return told if self.event == "counts" else f"{told}, perplexity {self.perplexity:,.1f}"


def collect(
    scores: BlockScores,
    settings: Settings,
    *,
    n_tokens: Any,
    n_unseen_tokens: int,
    ids: NDArray[Any] | None,
    groups: Integers,
    is_ratio: bool = False,
    correction_std_error: float | None = None,
) -> LogLikelihood:
    """Make a result from scores; after Ctrl-C, raise an error that holds it."""
    methods = scores.methods.astype(str)
    used = np.unique(methods).tolist()
    target = settings.target_std_error
    is_close = True if target is None else scores.std_errors <= target
    result = LogLikelihood(
        values=scores.values,
        std_errors=scores.std_errors,
        n_effs=scores.n_effs,
        methods=methods,
        n_tokens=np.asarray(n_tokens, dtype=np.int64).ravel(),
        method=used[0] if len(used) == 1 and used[0] else settings.method,
        event=settings.event,
        given_length=settings.given_length,
        n_replicates=settings.n_replicates,
        sizes=scores.sizes,
        reached=(methods != "") & is_close,
        trace=Trace(*scores.trace) if settings.trace else None,
        n_unseen_tokens=n_unseen_tokens,
        ids=ids,
        groups=groups,
        is_ratio=is_ratio,
        correction_std_error=correction_std_error,
    )
    if isinstance(scores.interruption, KeyboardInterrupt):
        done = int((methods != "").sum())
        raise Interrupted(f"{done:,} of {len(methods):,} documents are scored", result)
    if scores.interruption is not None:
        raise scores.interruption
    return result
