"""Warnings of documents without a finite score, and of unreliable errors."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from polyabayes._support.arrays import Indices, Integers
from polyabayes._support.warnings import warn
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import (
    ImpossibleDocumentWarning,
    InvalidArgumentError,
    PolyabayesWarning,
    TargetWarning,
    UnreliableErrorWarning,
    argument,
)
from polyabayes.likelihood.blocks import has_error, size_wanted, unreliable
from polyabayes.likelihood.methods import ESTIMATORS
from polyabayes.likelihood.result import LogLikelihood

# Number of blocks of times: long blocks contain the dependence between neighbours, and a standard
# error with 19 degrees of freedom has a relative error of a sixth.
_N_BLOCKS = 20
# Groups below which the spread between groups is poorly known.
_FEW_GROUPS = 10


class Caveat(NamedTuple):
    """Documents that share a warning.

    `what` describes the documents; `remedy` says what helps, or why nothing does; `helps` names the
    argument that helps; `n_wanted` is the size that it needs, 0 if it is not a size.
    """

    category: type[PolyabayesWarning]
    what: str
    n_documents: int
    first: str
    remedy: str
    helps: str = ""
    n_wanted: int = 0

    def __str__(self) -> str:
        return f"{self.what}: {self.n_documents:,}, {self.first} first; {self.remedy}"


def warn_of_caveats(result: LogLikelihood, call: str = "{}") -> None:
    """Warn of all :func:`caveats`."""
    for caveat in caveats(result, call):
        warn(str(caveat), caveat.category)


def shared_caveats(
    results: Mapping[str, LogLikelihood],
) -> list[tuple[type[PolyabayesWarning], str]]:
    """Warnings for several models: one warning of each kind, with the names of its models.

    Models that need the same argument share a remedy, with the largest size that any needs.
    """
    by_kind: dict[str, dict[str, Caveat]] = {}
    for name, result in results.items():
        for caveat in caveats(result):
            by_kind.setdefault(caveat.what, {})[name] = caveat
    found = []
    for what, of_models in by_kind.items():
        (name, one), *others = of_models.items()
        numbers = ", ".join(f"{name} {caveat.n_documents:,}" for name, caveat in of_models.items())
        message = f"{what}: {numbers}; {_remedies(of_models)}" if others else f"{name}: {one}"
        found.append((one.category, message))
    return found


def _remedies(of_models: Mapping[str, Caveat]) -> str:
    """Remedies, with the names of the models if they differ."""
    by_argument: dict[str, dict[str, Caveat]] = {}
    for name, caveat in of_models.items():
        by_argument.setdefault(caveat.helps, {})[name] = caveat
    remedies = {
        ", ".join(group): max(group.values(), key=lambda caveat: caveat.n_wanted).remedy
        for group in by_argument.values()
    }
    if len(remedies) == 1:
        return next(iter(remedies.values()))
    return "; ".join(f"for {names} {remedy}" for names, remedy in remedies.items())


def caveats(result: LogLikelihood, call: str = "{}") -> list[Caveat]:
    """Impossible documents, and errors that rest on few draws or leave something out.

    `call` is how to say the argument that would help, put in place of ``{}``: a call of
    :func:`log_likelihood` where the function at work does not take it.
    """
    if (result.methods == "exact").all() and np.isfinite(result.values).all():
        return []
    is_unsure = np.isnan(result.n_effs) & has_error(result)
    is_annealed = result.methods == "annealed"
    consistent = [name for name, method in ESTIMATORS.items() if method.is_consistent]
    is_biased = has_error(result) & ~np.isin(np.array(result.methods), consistent)
    auto = f"score them by {call.format(argument('method', 'auto'))}"
    impossible = np.flatnonzero(np.isneginf(result.values) & (result.methods == "exact"))
    shaky = unreliable(result, result.n_replicates)
    shaky = shaky[~is_biased[shaky]]
    # A missed target of the total has a warning of its own, which says what the error is.
    is_total = result.correction_std_error is not None
    missed = np.flatnonzero(~result.reached & (result.methods != "") & (not is_total))
    kinds: list[tuple[type[PolyabayesWarning], str, Indices, tuple[Any, ...]]] = [
        (
            ImpossibleDocumentWarning,
            "documents of probability zero",
            impossible,
            ("they contain a word that no topic can produce",),
        ),
        (
            UnreliableErrorWarning,
            "documents with a logistic normal prior so wide that all replicates may miss the "
            "same topics",
            np.flatnonzero(is_unsure & is_annealed),
            ("errors are reliable for variances up to 10, or in up to two dimensions",),
        ),
        (
            UnreliableErrorWarning,
            "documents that may need topics with tiny priors, which all replicates of this method "
            "may miss",
            np.flatnonzero(is_unsure & ~is_annealed),
            (f"{auto}, without n_particles", "method"),
        ),
        (
            UnreliableErrorWarning,
            "documents whose draws vary too much for a reliable standard error",
            shaky,
            _remedy(result, shaky, call, auto) if len(shaky) else (),
        ),
        (
            UnreliableErrorWarning,
            "documents scored by a biased method, whose bias the standard error leaves out",
            np.flatnonzero(is_biased),
            (auto, "method"),
        ),
        (
            TargetWarning,
            "documents whose standard error is above target_std_error",
            missed,
            ("ask for a smaller one, or raise the budget if it is spent", "budget"),
        ),
    ]
    return [
        Caveat(category, what, len(rows), _name(result, rows[0]), *remedy)
        for category, what, rows, remedy in kinds
        if len(rows)
    ]


def _remedy(result: LogLikelihood, shaky: Indices, call: str, auto: str) -> tuple[str, str, int]:
    """Remedy for the worst document: text, argument, and its value if that is a size.

    Heavy-tailed weights, whose effective number is 0, would take too many samples.
    """
    worst = shaky[np.argmin(result.n_effs[shaky])]
    method, size = ESTIMATORS[str(result.methods[worst])], int(result.sizes[worst])
    if not method.is_consistent or not method.size or not size or not result.n_effs[worst]:
        return auto, "method", 0
    wanted = size_wanted(size, result.n_effs[worst], result.n_replicates)
    power = 10 ** int(np.log10(wanted))
    rounded = power * int(np.ceil(wanted / power))
    remedy = f"use {call.format(argument(method.size, rounded))}, they had up to {size:,}"
    return remedy, method.size, rounded


def _name(result: LogLikelihood, row: int) -> str:
    return f"document {row}" if result.ids is None else f"document {row} ({result.ids[row]!r})"


def groups_of(corpus: Corpus, groups: Any, times: Any) -> Integers | None:
    """The group of every document, numbered from 0; None if neither argument is given.

    Times are cut into blocks of about equally many documents; equal times share a block.
    """
    if groups is not None and times is not None:
        told = f"{argument('groups')} and {argument('times')} exclude each other"
        raise InvalidArgumentError(told)
    if groups is not None:
        return corpus._labels_of("groups", groups)
    if times is None:
        return None
    blocks = corpus._ranks_of(times) * _N_BLOCKS // len(corpus)
    return np.unique(blocks, return_inverse=True)[1]


def warn_of_few_groups(groups: Integers | None) -> None:
    """Warn if there are too few groups to estimate the spread between groups."""
    n_groups = _FEW_GROUPS if groups is None else int(groups.max()) + 1
    if n_groups < _FEW_GROUPS:
        told = "standard errors for new groups are themselves uncertain"
        warn(f"there are only {n_groups} groups: {told}", UnreliableErrorWarning)
