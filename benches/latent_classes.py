"""Latent classes: numbers of classes named, coverage of intervals, and StepMix on the same sets.

``python benches/latent_classes.py WHAT`` prints a table and keeps it as a record; ``--help`` lists
what there is, ``--sets N`` makes N sets a cell. Sets are planted: weights as given below, items of
two to four levels, their probabilities from Dirichlet(1). Run one at a time.

``choice`` and ``items`` keep every set in ``benches/records/runs`` and go on where they ended, for
``--minutes`` of processor time; sets of many rows come last.
"""

import itertools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from record import Table, keep, kept, main, save, timed, told
from scipy import special

import polyabayes as pb
from polyabayes.allocation.options import Run
from polyabayes.latent_classes.answers import read_answers
from polyabayes.latent_classes.choice import PRIORS
from polyabayes.latent_classes.maximum import bootstrap_p_value, maxima

COMMAND = "python benches/latent_classes.py"
WEIGHTS = {2: [0.6, 0.4], 3: [0.55, 0.3, 0.15], 4: [0.4, 0.3, 0.2, 0.1]}
WEIGHTS[5] = [0.35, 0.25, 0.2, 0.12, 0.08]
CELLS = [(n_rows, n_items) for n_items in (6, 20) for n_rows in (100, 300, 1000)]
# Rows of the cells that wait until the others are full.
LAST = 5000
# Seed of the first set of the choice: those below served to choose the prior.
FIRST_SEED = 10_000
CRITERIA = ("bic", "aic", "sabic")
# Most rows of the sets of which a tenth has a bootstrap test, and its samples.
TESTED, BOOTSTRAP = 300, 99
RESTS_ON = ["nmf, tempered"]
# Options of StepMix.
QUIET = {"random_state": 0, "progress_bar": 0, "verbose": 0}


def planted(n_rows: int, n_items: int, n_classes: int, seed: int, missing: float = 0.0) -> Any:
    """Answers, their probabilities by class, and the weights."""
    rng = np.random.default_rng([seed, n_rows, n_items, n_classes])
    of = rng.choice(n_classes, size=n_rows, p=WEIGHTS[n_classes])
    columns, tables = {}, []
    for item in range(n_items):
        table = rng.dirichlet(np.ones(rng.integers(2, 5)), size=n_classes)
        points = rng.random((n_rows, 1))
        answers = (points > np.cumsum(table, axis=1)[of][:, :-1]).sum(axis=1)
        shown = rng.random(n_rows) >= (missing if item else 0.0)
        codes, levels = np.where(shown, answers, -1), list(range(table.shape[1]))
        columns[f"q{item}"] = pd.Categorical.from_codes(codes, levels)
        tables.append(table)
    return pd.DataFrame(columns), tables, np.array(WEIGHTS[n_classes])


def choice(sets: int = 30, minutes: float = 60.0) -> None:
    """How often the planted number is named, of the sets of each cell that there was time for."""
    name = "latent-classes-choice"
    sizes = [(*cell, k) for cell in (*CELLS, (LAST, 6), (LAST, 20)) for k in WEIGHTS]
    keys = [(*size, FIRST_SEED + nth) for nth in range(sets) for size in sizes]
    pieces = made(name, sorted(keys, key=lambda key: key[0] == LAST), named, minutes)
    note = told_with_commits(pieces)
    keep_counted("choice", pieces, sizes, ("P(K)", *CRITERIA), has_seconds=True, note=note)


def told_with_commits(pieces: list[dict[str, Any]]) -> str:
    """The note of sets that several states of the code have made."""
    commits = ", ".join(sorted({piece["commit"] for piece in pieces}))
    return f"sets by {commits}; {told(pieces)}"


def made(
    name: str, keys: list[Any], make: Callable[..., dict[str, Any]], minutes: float
) -> list[dict[str, Any]]:
    """Pieces of sets, given by cell and seed: those that are kept, and those there is time for."""
    pieces, end = kept(name), time.process_time() + 60 * minutes
    done = {(*piece["cell"], piece["seed"]) for piece in pieces}
    for *cell, seed in keys:
        if (*cell, seed) not in done and time.process_time() < end:
            piece = {"cell": cell, "seed": seed, **make(*cell, seed)}
            pieces.append(keep(name, piece))
    return pieces


def items(minutes: float = 40.0) -> None:
    """The sets of `choice` again, in a random order, with items that may have one profile.

    Those of more than 300 rows come last. P(K) of `choice` had one concentration of all items.
    """
    name = "latent-classes-items"
    before = {(*piece["cell"], piece["seed"]): piece for piece in kept("latent-classes-choice")}
    keys = np.random.default_rng(0).permutation(sorted(before)).tolist()

    def again(*key: int) -> dict[str, Any]:
        fit, seconds = ours_of(*key)
        old = before[key]["named"]
        named = old | {"P(K)": fit.n_classes_, "one concentration": old["P(K)"]}
        return {"named": named, "probabilities": fit.choice_.probabilities, "ours": seconds}

    pieces = made(name, sorted(keys, key=lambda key: key[0] // 1000), again, minutes)
    names, note = ("P(K)", "one concentration", *CRITERIA), told_with_commits(pieces)
    sizes = sorted({tuple(piece["cell"]) for piece in pieces})
    keep_counted("items", pieces, sizes, names, has_seconds=True, note=note)


def small() -> None:
    """The sets of `choice` of 100 rows and six items, under other priors of two to five classes.

    P(K) of `choice` again, with two to five classes equally probable; and the posterior of somebody
    who knows the planted weights and the law of the items, too, by 1,000 particles.
    """
    names = ("P(K)", "P(K), 2 to 5", "weights known", "sabic")
    found = []
    for piece in kept("latent-classes-choice"):
        if piece["cell"][:2] == [100, 6]:
            values = {int(k): p * 2.0 ** int(k) for k, p in piece["probabilities"].items()}
            even = max(WEIGHTS, key=lambda k, values=values: values.get(k, 0.0))
            frame = telling(*piece["cell"], piece["seed"])
            known = max(WEIGHTS, key=lambda k, frame=frame: ln_known(frame, k))
            found.append(piece | {"named": piece["named"] | {names[1]: even, names[2]: known}})
    keep_counted("small", found, [(100, 6, k) for k in WEIGHTS], names)


def ln_known(frame: Any, n_classes: int, n_particles: int = 1000) -> float:
    """Ln of the evidence of planted weights, items from Dirichlet(1), by a particle filter."""
    rng, weights = np.random.default_rng(n_classes), np.array(WEIGHTS[n_classes])
    levels = np.array([len(frame[name].cat.categories) for name in frame])
    items, particles = np.arange(len(levels)), np.arange(n_particles)
    counts = np.zeros((n_particles, len(levels), levels.max(), n_classes))
    total, logs = 0.0, np.zeros(n_particles)
    for row in frame.apply(lambda column: column.cat.codes).to_numpy():
        sums = counts.sum(axis=2)[:, :1] + levels[:, None]
        joint = weights * ((counts[:, items, row] + 1) / sums).prod(axis=1)
        logs += np.log(joint.sum(axis=1))
        ends = joint.cumsum(axis=1)
        of = (rng.random((n_particles, 1)) * ends[:, -1:] > ends[:, :-1]).sum(axis=1)
        counts[particles[:, None], items, row, of[:, None]] += 1
        shares = np.exp(logs - logs.max())
        if shares.sum() ** 2 < n_particles / 2 * shares @ shares:
            total += logs.max() + np.log(shares.mean())
            logs[:] = 0.0
            counts = counts[rng.choice(n_particles, n_particles, p=shares / shares.sum())]
    return float(total + np.log(np.exp(logs).mean()))


def bootstrap() -> None:
    """How often bootstrap tests name the planted number, for a tenth of the sets of few rows."""
    pieces = kept("latent-classes-bootstrap")
    tested = {(*piece["cell"], piece["seed"]): piece["bootstrap"] for piece in pieces}
    compared = []
    for piece in kept("latent-classes-choice"):
        cell, seed = piece["cell"], piece["seed"]
        if cell[0] > TESTED or seed % 10:
            continue
        if (*cell, seed) not in tested:
            found = bootstrapped(telling(*cell, seed), seed)
            tested[*cell, seed] = found
            part = {"cell": cell, "seed": seed, "bootstrap": found}
            pieces.append(keep("latent-classes-bootstrap", part))
        named = piece["named"] | {"bootstrap": tested[*cell, seed]}
        compared.append(piece | {"named": named})
    names, sizes = ("P(K)", *CRITERIA, "bootstrap"), {tuple(piece["cell"]) for piece in compared}
    keep_counted("bootstrap", compared, sorted(sizes), names, note=told(pieces))


def bootstrapped(frame: Any, seed: int) -> int:
    """The first number of classes that a parametric bootstrap test does not reject at 5 %.

    K against K + 1 classes, one after the other (Nylund, Asparouhov and Muthén 2007).
    """
    answers, run = read_answers(frame, None, None), Run(seed, 1, False)
    fits = maxima(answers, range(1, 8), run, n_restarts=5, tol=1e-7)
    for n_classes in range(1, 7):
        if bootstrap_p_value(answers, fits, n_classes + 1, BOOTSTRAP, run) > 0.05:
            return n_classes
    return 7


def named(n_rows: int, n_items: int, n_classes: int, seed: int) -> dict[str, Any]:
    """Numbers of classes that are named, the probability of ours, and processor seconds of all."""
    ours, seconds = ours_of(n_rows, n_items, n_classes, seed)
    frame = telling(n_rows, n_items, n_classes, seed)
    point = pb.LatentClassAnalysis(range(1, 8), method="em", tol=1e-7, random_state=0, n_jobs=1)
    fitted, more = timed(point.fit, frame)
    rows = fitted.choice_.rows
    found = {name: min(rows, key=lambda row: row[name])["n_classes"] for name in CRITERIA}
    return {
        "named": {"P(K)": ours.n_classes_, **found},
        "probabilities": ours.choice_.probabilities,
        "ours": seconds,
        "seconds": seconds + more,
    }


def telling(*cell: int) -> Any:
    """Answers of a planted set, without items that all rows answer alike."""
    frame, _, _ = planted(*cell)
    return frame.loc[:, frame.nunique() > 1]


def ours_of(*cell: int) -> tuple[Any, float]:
    """Our classes of a planted set, and their processor seconds."""
    classes = pb.LatentClassAnalysis(max_classes=7, random_state=0, n_jobs=1)
    return timed(classes.fit, telling(*cell))


def keep_counted(
    part: str,
    pieces: list[dict[str, Any]],
    sizes: list[tuple[int, ...]],
    names: tuple[str, ...],
    *,
    has_seconds: bool = False,
    note: str | None = None,
) -> None:
    """A row a cell, and one of all sets: how many, how often each is right, mean seconds."""
    columns = dict.fromkeys(("rows", "items", "classes", "sets", *names), ",")
    columns |= {"s a set": ".1f"} if has_seconds else {}
    table = Table(f"latent-classes-{part}", f"{COMMAND} {part}", columns, RESTS_ON)
    for cell in (*sizes, None):
        own = [piece for piece in pieces if cell is None or piece["cell"] == list(cell)]
        if own:
            right = [[piece["named"][name] == piece["cell"][2] for piece in own] for name in names]
            seconds = np.mean([piece["ours"] for piece in own])
            row = [*(cell or [None] * 3), len(own), *map(sum, right), seconds]
            table.add(*row[: len(columns)])
    save(table, note=note)


def table_of(
    part: str, sets: int, columns: dict[str, str], rests_on: Sequence[str] = RESTS_ON
) -> Table:
    """The empty table of a part that makes so many sets."""
    return Table(f"latent-classes-{part}", f"{COMMAND} {part} --sets {sets}", columns, rests_on)


def coverage(sets: int = 30) -> None:
    """Share of 95 % intervals that hold the planted weights and probabilities; two classes."""
    columns = {"answers missing": ".0%", "rows": ",", "weights": ".3f", "answers": ".3f"}
    columns |= {"mean weight of the first, planted 0.6": ".3f"}
    table = table_of("coverage", sets, columns)
    for missing in (0.0, 0.2, 0.5):
        held: list[list[bool]] = [[], []]
        firsts = []
        for seed in range(sets):
            frame, tables, weights = planted(300, 8, 2, seed, missing)
            found = pb.LatentClassAnalysis(2, random_state=0, n_jobs=1).fit(frame)
            rows = found.profiles().to_frame()
            parts = [weights, *tables]
            truths = [np.concatenate([part[::step].ravel() for part in parts]) for step in (1, -1)]
            # Labels of the nearer of both orders.
            nearer = int(np.argmin([np.abs(rows.probability - truth).sum() for truth in truths]))
            truth = truths[nearer]
            inside = ((rows.lower <= truth) & (truth <= rows.upper)).to_numpy()
            held[0] += inside[:1].tolist()
            held[1] += inside[2:].tolist()
            firsts.append(found.class_weights_[nearer])
        table.add(missing, 300, np.mean(held[0]), np.mean(held[1]), np.mean(firsts))
    save(table)


def outcomes(sets: int = 200) -> None:
    """Share of 95 % intervals of outcomes by class that hold what was planted.

    Two classes of 60 and 40 % of 400 rows; a class says yes to each of six items with probability
    p, the other with 1 - p. A numeric outcome is normal or exponential within a class, with means 0
    and 1.5; one of two levels has probabilities 0.2 and 0.7.
    """
    methods, truths = ("draws", "bch", "three-step"), np.array([[0.0, 1.5], [0.0, 1.5], [0.2, 0.7]])
    kinds = ("normal", "skewed", "two levels")
    columns = {"p": ".2f", "sets": ",", "entropy": ".2f", "outcome": "s"}
    columns |= dict.fromkeys(methods, ".3f") | {f"width, {name}": ".2f" for name in methods}
    table = table_of("outcomes", sets, columns)
    for sharp in (0.7, 0.74, 0.78, 0.83):
        held: Any = {name: [[] for _ in kinds] for name in methods}
        widths, entropies = {name: [[] for _ in kinds] for name in methods}, []
        for seed in range(sets // 4):
            rng, of, rows = two_classes(sharp, seed)
            ys = [
                rng.normal(1.5 * of, np.where(of, 0.6, 1.0)),
                rng.exponential(np.where(of, 0.6, 1.0)) - np.where(of, 0.6, 1.0) + 1.5 * of,
                np.where(rng.random(400) < truths[2][of], "yes", "no"),
            ]
            fit = pb.LatentClassAnalysis(2, random_state=0, n_jobs=1).fit(rows)
            entropies.append(fit.entropy(rows))
            # The first class is that of fewer answers yes.
            order = np.argsort(fit._means().items[0][0, 1])
            for name in methods:
                for y, truth, hits, wide in zip(ys, truths, held[name], widths[name], strict=True):
                    found = fit.outcome(rows, y, method=name)
                    low, high = found.lower[order, -1], found.upper[order, -1]
                    hits += ((low < truth) & (truth < high)).tolist()
                    wide += (high - low).tolist()
        for nth, kind in enumerate(kinds):
            figures = [np.mean(part[name][nth]) for part in (held, widths) for name in methods]
            table.add(sharp, sets // 4, np.mean(entropies), kind, *figures)
    save(table)


def two_classes(sharp: float, seed: int) -> tuple[np.random.Generator, Any, Any]:
    """Classes of 400 rows and their answers to six items; the generator can draw an outcome."""
    rng = np.random.default_rng([seed, int(100 * sharp)])
    of = rng.choice(2, 400, p=[0.6, 0.4])
    rows = (rng.random((400, 6)) < np.where(of, sharp, 1 - sharp)[:, None]).astype(int)
    return rng, of, rows


def steps(sets: int = 5) -> None:
    """Three steps and standard errors beside StepMix, on sets as those of `outcomes`.

    Largest distances of means of a normal outcome by class, and mean errors of the items'
    probabilities: ours by the sandwich, theirs by 100 samples of a bootstrap.
    """
    from stepmix import StepMix

    columns = {"p": ".2f", "sets": ",", "BCH apart": ".6f", "three-step apart": ".3f"}
    columns |= dict.fromkeys(("error of a mean", "errors, sandwich", "errors, bootstrap"), ".4f")
    table = table_of("steps", sets, columns, ["decomposition, em"])
    for sharp in (0.74, 0.83):
        found = []
        for seed in range(sets):
            rng, of, rows = two_classes(sharp, seed)
            y, frame = rng.normal(1.5 * of, np.where(of, 0.6, 1.0)), pd.DataFrame(rows)
            fit = pb.LatentClassAnalysis(2, method="em", random_state=0, n_jobs=1).fit(rows)
            part, options = [], {"measurement": "binary", "n_init": 5, **QUIET}
            for ours, correction in (("bch", "BCH"), ("three-step", "ML")):
                mine = fit.outcome(rows, y, method=ours)
                third = {"n_steps": 3, "correction": correction, "assignment": "modal"}
                other = StepMix(2, structural="gaussian_diag", **third | options)
                means = other.fit(frame, y[:, None]).get_parameters()["structural"]["means"]
                part.append(np.abs(np.sort(mine.values, axis=0) - np.sort(means, axis=0)).max())
            part.append((mine.upper - mine.lower).mean() / (2 * special.ndtri(0.975)))
            shown = fit.profiles().to_frame()[2:]
            reach = special.logit(shown.upper) - special.logit(shown.lower)
            reach *= shown.probability * (1 - shown.probability) / (2 * special.ndtri(0.975))
            theirs = StepMix(2, **options).fit(frame)
            spread = theirs.bootstrap_stats(frame, n_repetitions=100, progress_bar=False)["mm_std"]
            found.append([*part, reach.mean(), np.mean(spread)])
        figures = np.array(found)
        table.add(sharp, sets, *figures[:, :2].max(axis=0), *figures[:, 2:].mean(axis=0))
    save(table)


def peers(sets: int = 30) -> None:
    """Log-likelihoods and seconds of both for the maximum of three classes, 20 starts each."""
    from stepmix import StepMix

    columns = {"rows": ",", "items": "d"}
    columns |= {"polyabayes, nats per row": ".5f", "StepMix, nats per row": ".5f"}
    columns |= {"polyabayes, s": ".2f", "StepMix, s": ".2f"}
    table = table_of("peers", sets, columns, ["decomposition, em"])
    for n_rows, n_items in (*CELLS, (5000, 20)):
        found = []
        for seed in range(sets):
            frame, _, _ = planted(n_rows, n_items, 3, seed)
            codes = frame.apply(lambda column: column.cat.codes)
            ours = pb.LatentClassAnalysis(3, method="em", random_state=0, n_jobs=1)
            theirs = StepMix(3, measurement="categorical", n_init=20, **QUIET)
            seconds = [timed(ours.fit, frame)[1], timed(theirs.fit, codes)[1]]
            found.append([ours.log_likelihood_ / n_rows, theirs.score(codes), *seconds])
        table.add(n_rows, n_items, *np.mean(found, axis=0))
    save(table)


def speed(sets: int = 30) -> None:
    """Processor seconds for the choice among six numbers of classes, beside StepMix and BIC.

    StepMix fits the first `sets`; the last takes it minutes.
    """
    from stepmix import StepMix

    columns = {"answers": "s", "rows": ",", "items": "d", "ours named": "d", "P": ".2f"}
    columns |= {"polyabayes, s": ".1f", "StepMix named": "d", "StepMix, s": ".1f"}
    answers = [("3 classes", planted(n, 8, 3, 1)[0]) for n in (300, 1000)]
    noise = np.random.default_rng(0).integers(5, size=(200, 20))
    rng = np.random.default_rng(0)
    of, yes = rng.choice(3, size=5000, p=[0.5, 0.3, 0.2]), rng.random((3, 20))
    binary = (rng.random((5000, 20)) < yes[of]).astype(int)
    answers.append(("noise, 5 levels", pd.DataFrame(noise)))
    answers.append(("3 classes, binary", pd.DataFrame(binary)))
    command = f"{COMMAND} speed" + (f" --sets {sets}" if sets < len(answers) else "")
    table = Table("latent-classes-speed", command, columns, RESTS_ON)
    for nth, (name, frame) in enumerate(answers):
        ours, mine = timed(pb.LatentClassAnalysis(range(1, 7), random_state=0).fit, frame)
        named = theirs = None
        if nth < sets:
            codes = frame.apply(lambda column: column.astype("category").cat.codes)
            models = [StepMix(k, measurement="categorical", n_init=5, **QUIET) for k in range(1, 7)]
            theirs = sum(timed(model.fit, codes)[1] for model in models)
            named = 1 + int(np.argmin([model.bic(codes) for model in models]))
        probability = ours.choice_.probabilities[ours.n_classes_]
        table.add(name, *frame.shape, ours.n_classes_, probability, mine, named, theirs)
    save(table)


def mixed(sets: int = 30) -> None:
    """Two classes by five items that tell them apart, beside fifteen of noise, and without them.

    Items whose probability to tell is below 1/2, and the number named, also by a flatter prior: 1/2
    for one class, and the zero-truncated Poisson law of mean 3 for others. The same of as many sets
    with 20 items of one concentration.
    """
    columns = {"items": "s", "sets": ",", "items left out": ".1f", "2 named": ","}
    columns |= {"mean P(2)": ".2f", "flatter prior": ",", "s a set": ".1f"}
    table = table_of("mixed", sets, columns)
    found: dict[str, list[tuple[float, ...]]] = {}
    poisson = [3.0**k / math.factorial(k) / (np.exp(3) - 4) for k in range(2, 6)]
    flatter = 0.5 * np.array([1.0, *poisson])

    def chosen(name: str, frame: pd.DataFrame) -> None:
        classes = pb.LatentClassAnalysis(range(1, 6), random_state=0, n_jobs=1)
        fit, seconds = timed(classes.fit, frame)
        n_out = int((fit.item_discrimination()["probability"] < 0.5).sum())
        chances = np.array(list(fit.choice_.probabilities.values()))
        even = (chances * 2.0 ** np.arange(1, 6) * flatter).argmax() == 1
        found.setdefault(name, []).append((n_out, fit.n_classes_ == 2, chances[1], even, seconds))

    for seed in range(sets):
        rng = np.random.default_rng(seed)
        of = rng.choice(2, size=200, p=[0.6, 0.4])
        telling = rng.random((200, 5)) < np.where(of, 0.85, 0.2)[:, None]
        frame = pd.DataFrame(np.hstack([telling, rng.integers(5, size=(200, 15))]))
        chosen("all", frame)
        chosen("the five alone", frame.iloc[:, :5])
        chosen("all, of one concentration", planted(200, 20, 2, seed)[0])
    for name, rows in found.items():
        n_out, named_2, chances, even, seconds = np.transpose(rows)
        counts = int(named_2.sum()), chances.mean(), int(even.sum())
        table.add(name, len(rows), n_out.mean(), *counts, seconds.mean())
    save(table)


def invariance(sets: int = 20) -> None:
    """Two groups of 300 rows, eight binary items, of which none or two differ by 0.25 in a class.

    Sets with the right answer, and items that are named as they were planted.
    """
    columns = {"items that differ": ",", "sets": ",", "answer right": ",", "items right": ","}
    columns |= {"items": ",", "mean P of the right answer": ".2f", "s a set": ".1f"}
    table = table_of("invariance", sets, columns)
    for n_differ in (0, 2):
        rows = []
        for seed in range(sets):
            rng = np.random.default_rng([seed, n_differ])
            groups = np.repeat([0, 1], 300)
            of = (rng.random(600) < np.where(groups, 0.6, 0.35)).astype(int)
            yes = np.repeat(np.array([[0.8, 0.2]]), 8, axis=0)
            shown = np.stack([yes, yes])
            shown[1, :n_differ] += [-0.25, 0.25]
            frame = (rng.random((600, 8)) < shown[groups, :, of]).astype(int)
            fit = pb.LatentClassAnalysis(2, random_state=0, n_jobs=1).fit(frame)
            found, seconds = timed(fit.invariance, frame, groups)
            truth = "partial" if n_differ else "invariant"
            right = ((found.probabilities >= 0.5) == (np.arange(8) < n_differ)).sum()
            chosen = max(found.answer, key=lambda name: found.answer[name])
            rows.append([chosen == truth, right, found.answer[truth], seconds])
        hits, right, chance, seconds = np.transpose(rows)
        sums = int(hits.sum()), int(right.sum()), 8 * sets
        table.add(n_differ, sets, *sums, chance.mean(), seconds.mean())
    save(table)


def calibration(sets: int = 30) -> None:
    """Numbers of classes and data drawn from the prior: how often what is called probable is so."""
    columns = {"P(K) called": "s", "claims": ",", "mean": ".3f", "true": ".3f"}
    table = table_of("calibration", sets, columns)
    called, is_true = [], []
    for seed in range(sets):
        rng = np.random.default_rng([seed, 7])
        n_classes, items = int(rng.geometric(0.5)), rng.choice(PRIORS["learned"].items)
        weights = rng.dirichlet(np.full(n_classes, PRIORS["learned"].weights))
        of = rng.choice(n_classes, size=100, p=weights)
        tables = [rng.dirichlet(np.full(3, items), size=n_classes) for _ in range(6)]
        points = rng.random((6, 100, 1))
        ends = np.cumsum(tables, axis=2)[:, of, :-1]
        answers = (points > ends).sum(axis=2)
        # Leaving sets out by their data alone keeps the posterior of the others calibrated.
        if any(len(set(column)) == 1 for column in answers):
            continue
        frame = {f"q{n}": pd.Categorical(a, [0, 1, 2]) for n, a in enumerate(answers)}
        analysis = pb.LatentClassAnalysis(max_classes=8, random_state=0, n_jobs=1)
        found = analysis.fit(pd.DataFrame(frame))
        for number, probability in found.choice_.probabilities.items():
            called.append(probability)
            is_true.append(number == n_classes)
    ends = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]
    claims, truths = np.array(called), np.array(is_true)
    for low, high in itertools.pairwise(ends):
        at = (claims > low) & (claims <= high)
        if at.any():
            name = f"{low:.0%} to {high:.0%}"
            table.add(name, int(at.sum()), claims[at].mean(), truths[at].mean())
    save(table)


if __name__ == "__main__":
    of_choice = choice, items, small, bootstrap
    main(*of_choice, coverage, outcomes, steps, mixed, invariance, calibration, peers, speed)
