"""The curve of a choice on real corpora, and on planted ones that do not follow LDA.

    python -m benches.choice.curves [CASE ...]

A case is a corpus of the data folder, as `ap`, `poliblog5k` or `20ng`; `cells`, those of
``benches.choice.cells``; or one of the laws of ``benches.choice.laws`` and a seed, as `bursty:0`.
Choices are kept as they are made; the tables are made of all that are kept. Processor seconds are
those of all threads: two cores take half of the time.
"""

import sys
import warnings
from typing import Any

import numpy as np
from benches.choice import cells
from benches.choice.laws import LAWS
from benches.choice.pieces import near
from benches.record import Table, corpus, keep, kept, save, timed, told

import polyabayes as pb
from polyabayes.exceptions import PolyabayesWarning

MOST_TOPICS = 200
KEPT = "choice-curves"
# Loss in nats per token within which errors of differences and gains are told.
NEAR = 0.05


def data_of(case: str) -> tuple[Any, Any, dict[str, Any], tuple[int, ...]]:
    """Model and data of a case, options of its choice, and the numbers planted in it."""
    law, _, seed = case.partition(":")
    lda = pb.LatentDirichletAllocation(n_jobs=1)
    if law in LAWS:
        planted, drawn = LAWS[law]
        counts = drawn(np.random.default_rng([int(seed), *law.encode()]))
        return lda, pb.Corpus(counts[:, counts.any(axis=0)]), {}, planted
    if law == "cells":
        options = {"layer": "counts", "exposure": "total", "groups": "donor"}
        model = pb.PoissonFactorAnalysis(n_jobs=1)
        return model, cells.simulated(0), options, (cells.N_PROGRAMMES,)
    return lda, corpus(law), {"sizes": MOST_TOPICS}, ()


def chosen(case: str) -> dict[str, Any]:
    """The choice for one corpus, and its processor time."""
    model, data, options, planted = data_of(case)
    choice, seconds = timed(pb.choose_n_components, model, data, random_state=0, **options)
    print(f"{case}: {choice}\n{choice.to_frame().round(4).to_string()}", flush=True)
    counts = data.layers[options["layer"]] if case == "cells" else data.counts
    lost = {row["size"]: row["behind"] for row in choice.rows}
    behind = [row["behind_std_error"] for row in choice.rows if row["behind"] <= NEAR]
    gains = [gain.std_error for gain in choice.gains if lost[gain.larger] <= NEAR]
    return {
        "case": case,
        "planted": planted,
        "documents": counts.shape[0],
        "tokens": int(counts.sum()),
        "recommended": choice.recommended,
        "elbows": {size: lost[size] for size in sorted(choice.elbows)},
        "within": [choice.within(loss) for loss in (0.05, 0.02, 0.01)],
        "best": choice.best,
        "error": float(np.max(behind)),
        "error of a gain": float(np.max(gains)) if gains else None,
        "fits": sum(row["n_folds"] for row in choice.rows),
        "seconds": seconds,
    }


CORPORA = {"corpus": "s", "documents": ",d", "tokens": ",d", "planted": "s"}
CORPORA |= {"within 0.05, 0.02, 0.01": "s", "best": "d"}
CORPORA |= {"largest error of a difference within 0.05": ".4f"}
CORPORA |= {"largest error of a doubling's gain there": ".4f"}
CORPORA |= {"fits": "d", "processor time [s]": ",.0f"}
COMMAND = "python -m benches.choice.curves"


def table_of_corpora(pieces: list[dict[str, Any]]) -> None:
    """A line a corpus."""
    table = Table("choice-minutes", COMMAND, CORPORA, ["lda, Gibbs", "pfa, beta-gamma-gamma"])
    for piece in sorted(pieces, key=lambda piece: piece["case"]):
        sizes = [piece[name] for name in ("case", "documents", "tokens")]
        planted = " or ".join(map(str, piece["planted"])) or None
        figures = [piece[name] for name in ("best", "error", "error of a gain", "fits", "seconds")]
        table.add(*sizes, planted, ", ".join(map(str, piece["within"])), *figures)
    save(table, note=told(pieces))


LAW_COLUMNS = {"corpora": "s", "planted": "s", "recommended": "s"}
LAW_COLUMNS |= {"planted, or 1 or a tenth beside": "s", "bends (nats per token behind)": "s"}
LAW_COLUMNS |= {"best": "s", "processor time [s]": ",.0f"}


def table_of_laws(pieces: list[dict[str, Any]]) -> None:
    """A line a law: sizes by corpus, and how many are a planted one, or 1 or a tenth beside it."""
    table = Table("choice-laws", COMMAND, LAW_COLUMNS, ["lda, Gibbs"])
    for law in LAWS:
        own = [piece for piece in pieces if piece["case"].partition(":")[0] == law]
        if not own:
            continue
        named = sum(
            any(near(piece["recommended"], size) for size in piece["planted"]) for piece in own
        )
        bends = [
            ", ".join(f"{size} ({lost:.3f})" for size, lost in piece["elbows"].items()) or "none"
            for piece in own
        ]
        planted = " or ".join(map(str, own[0]["planted"]))
        recommended, best = (
            ", ".join(str(piece[name]) for piece in own) for name in ("recommended", "best")
        )
        seconds = float(np.median([piece["seconds"] for piece in own]))
        right = f"{named} of {len(own)}"
        table.add(law, planted, recommended, right, "; ".join(bends), best, seconds)
    save(table, note=told(pieces))


def main() -> None:
    """Choose for the corpora named, and make the tables of all that are kept."""
    warnings.simplefilter("ignore", PolyabayesWarning)
    for case in sys.argv[1:]:
        keep(KEPT, chosen(case))
    latest = {piece["case"]: piece for piece in kept(KEPT)}
    of_laws = [piece for case, piece in latest.items() if ":" in case]
    of_corpora = [piece for case, piece in latest.items() if ":" not in case]
    for make, pieces in ((table_of_laws, of_laws), (table_of_corpora, of_corpora)):
        if pieces:
            make(pieces)


if __name__ == "__main__":
    main()
