"""Choices, one corpus and method at a time: kept as they are made, so that long runs are many.

A line of JSON for each in ``benches/records/runs``, or in the folder that POLYABAYES_RUNS names.
"""

import math
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from benches.record import Table, keep, kept, save, timed, told

import polyabayes as pb


class Case(NamedTuple):
    """Data with a known number of topics, or rank, and the sizes to choose from."""

    truth: int
    data: Any
    sizes: list[int]


class Choice(NamedTuple):
    """A size that a criterion names, and the others that it takes for as good."""

    size: int
    equally_good: tuple[int, ...] = ()
    seconds: float | None = None


Method = Callable[[Case], dict[str, Choice]]


class Part(NamedTuple):
    """Regimes of one kind of data, and the methods that choose there.

    Shares leave out the regimes where the data cannot tell.
    """

    name: str
    regimes: dict[str, Any]
    drawn: Callable[[Any, int], Case]
    methods: dict[str, Method]
    vague: frozenset[str] = frozenset()
    # Golden value of what is measured.
    rests_on: str = "lda, Gibbs"


class OutOfBudget(BaseException):
    """A method took more processor seconds than it was granted."""


@contextmanager
def budget(seconds: float) -> Iterator[None]:
    """Ends the work inside after so many processor seconds."""

    def end(_signal: int, _frame: object) -> None:
        raise OutOfBudget

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def grid(largest: int) -> list[int]:
    """Sizes from 2 to `largest`, each a sixth or more beyond the last."""
    sizes = [2]
    while sizes[-1] < largest:
        sizes.append(max(sizes[-1] + 1, round(sizes[-1] * 7 / 6)))
    return sizes


def least(costs: dict[int, float]) -> int:
    """The size of the least cost that is a number."""
    known = {size: cost for size, cost in costs.items() if not math.isnan(cost)}
    return min(known, key=known.__getitem__)


def pieces_of(part: Part) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The latest choices of a part, by regime, seed and method."""
    pieces = kept(f"choice-{part.name}")
    return {(piece["regime"], piece["seed"], piece["method"]): piece for piece in pieces}


def measure(
    part: Part,
    methods: Sequence[str],
    regimes: Sequence[str],
    seeds: Sequence[int],
    seconds: float,
    until: float,
    anew: bool,
) -> None:
    """Make the choices that are not kept yet, each within `seconds`; none begins after `until`."""
    done = {} if anew else pieces_of(part)
    for method, seed, regime in product(methods, seeds, regimes):
        if (regime, seed, method) in done:
            continue
        if time.monotonic() > until:
            return
        case = part.drawn(part.regimes[regime], seed)
        piece = {"regime": regime, "seed": seed, "method": method, "truth": case.truth}
        piece |= {"choices": chosen(part.methods[method], case, seconds)}
        show(keep(f"choice-{part.name}", piece))


def by_choice(model: Any, of: str = "") -> Method:
    """Our call, without sizes; `of` names the model beside others."""

    def choose(case: Case) -> dict[str, Choice]:
        return choices_of(pb.choose_n_components(model, case.data, random_state=0), of)

    return choose


def choices_of(found: pb.SizeChoice, of: str) -> dict[str, Choice]:
    """What our call recommends, and what is best."""
    good = tuple(map(int, found.equally_good))
    sizes = {f"`recommended`{of}": found.recommended, f"`best`{of}": found.best}
    return {name: Choice(size, good) for name, size in sizes.items()}


def chosen(method: Method, case: Case, seconds: float) -> dict[str, Any] | None:
    """Choices of a method, or None where it was out of its budget."""
    try:
        with budget(seconds):
            found, spent = timed(method, case)
    except OutOfBudget:
        return None
    return {
        criterion: {
            "size": int(choice.size),
            "equally_good": [int(size) for size in choice.equally_good],
            "seconds": spent if choice.seconds is None else choice.seconds,
        }
        for criterion, choice in found.items()
    }


def show(piece: dict[str, Any]) -> None:
    """Print the choices of one method."""
    head = f"{piece['regime']:<16} {piece['seed']:>2}  true {piece['truth']:>3}"
    if piece["choices"] is None:
        print(f"{head}  {piece['method']}: out of its budget", flush=True)
        return
    for criterion, choice in piece["choices"].items():
        good = f"  equally good {choice['equally_good']}" if choice["equally_good"] else ""
        print(
            f"{head}  chosen {choice['size']:>3}  {choice['seconds']:6.1f} s  {criterion}{good}",
            flush=True,
        )


def by_criterion(pieces: list[dict[str, Any]]) -> dict[str, list[tuple[dict[str, Any], Any]]]:
    """Pieces and choices of every criterion."""
    found: dict[str, list[tuple[dict[str, Any], Any]]] = {}
    for piece in pieces:
        for criterion, choice in (piece["choices"] or {}).items():
            found.setdefault(criterion, []).append((piece, choice))
    return found


def share_table(part: Part) -> None:
    """A line a criterion: the shares of all corpora that it chose for, the bias and the time."""
    pieces = [piece for piece in pieces_of(part).values() if piece["regime"] not in part.vague]
    if not pieces:
        return
    columns = {part.name: "s", "exact": "s", "within 1": "s", "within a tenth, or 1": "s"}
    columns |= {"mean of ln(chosen / true)": "+.2f", "seconds": ".0f"}
    command = f"python -m benches.choice {part.name}"
    table = Table(f"choice-{part.name}", command, columns, [part.rests_on])
    rows = []
    for criterion, chosen in by_criterion(pieces).items():
        truth = np.array([piece["truth"] for piece, _ in chosen], dtype=float)
        size = np.array([choice["size"] for _, choice in chosen], dtype=float)
        gap = np.abs(size - truth)
        hits = [gap == 0, gap <= 1, near(size, truth)]
        counts = [f"{hit.sum()} of {len(truth)}" for hit in hits]
        seconds = float(np.median([choice["seconds"] for _, choice in chosen]))
        bias = float(np.log(size / truth).mean())
        merit = (hits[2].mean(), hits[0].mean())
        rows.append((merit, [criterion, *counts, bias, seconds]))
    for _, row in sorted(rows, key=lambda row: row[0], reverse=True):
        table.add(*row)
    save(table, note=told(pieces))


def near(size: Any, truth: Any) -> Any:
    """Within a tenth of the truth, or 1."""
    return np.abs(np.subtract(size, truth)) <= np.maximum(1, np.asarray(truth) / 10)


def size_table(part: Part) -> None:
    """A line a regime: the truth, and the sizes that the criteria named, one a corpus."""
    pieces = [*pieces_of(part).values()]
    if not pieces:
        return
    found = by_criterion(pieces)
    columns = {part.name: "s", "truth": "d", **dict.fromkeys(found, "s")}
    command = f"python -m benches.choice {part.name}"
    table = Table(f"choice-{part.name}-sizes", command, columns, [part.rests_on])
    for regime in part.regimes:
        truths = [piece["truth"] for piece in pieces if piece["regime"] == regime]
        if not truths:
            continue
        named = []
        for chosen in found.values():
            own = [(piece["seed"], x["size"]) for piece, x in chosen if piece["regime"] == regime]
            named.append(", ".join(str(size) for _, size in sorted(own)))
        table.add(regime, truths[0], *(sizes or None for sizes in named))
    save(table, note=told(pieces))
