"""Cells of an AnnData: 10,000 by 2,000 genes, 20 programmes, 10 donors.

    python -m benches.choice.cells

trains 30 programmes on four fifths of them and scores the others to 0.001 nats per token. The
choice of the number of programmes is the case `cells` of ``benches.choice.curves``.
"""

import warnings
from typing import Any

import anndata
import numpy as np
import pandas as pd
from benches.record import Table, save, timed
from scipy import sparse

import polyabayes as pb
from polyabayes.exceptions import PolyabayesWarning

N_CELLS, N_GENES, N_PROGRAMMES, N_DONORS = 10_000, 2_000, 20, 10
N_TRAINED, ENOUGH = 30, 0.001


def simulated(seed: int) -> Any:
    """Cells whose programmes their donors prefer unequally; one count in eight is not 0.

    Genes differ in their mean expression by a standard deviation of ln of 2.5, and within a
    programme by a gamma distribution of shape 0.3. A cell has some 1,100 counts.
    """
    rng = np.random.default_rng(seed)
    expression = rng.lognormal(0.0, 2.5, N_GENES)
    programmes = expression * rng.gamma(0.3, size=(N_PROGRAMMES, N_GENES))
    programmes /= programmes.sum(axis=1, keepdims=True)
    donor = np.arange(N_CELLS) % N_DONORS
    preference = rng.gamma(2.0, size=(N_DONORS, N_PROGRAMMES))
    activity = rng.gamma(0.3, preference[donor] / 0.3)
    activity *= N_PROGRAMMES / preference.sum(axis=1)[donor, np.newaxis]
    depth = rng.lognormal(np.log(1_000), 0.4, N_CELLS)
    counts = rng.poisson(depth[:, np.newaxis] / N_PROGRAMMES * activity @ programmes)
    return anndata.AnnData(
        sparse.csr_matrix(np.log1p(counts).astype(np.float32)),
        obs=pd.DataFrame({"donor": [f"donor {d}" for d in donor]}).set_axis(
            [f"cell {c}" for c in range(N_CELLS)]
        ),
        layers={"counts": sparse.csr_matrix(counts)},
    )


def main() -> None:
    """Processor seconds of training and of scores, on one thread."""
    warnings.simplefilter("ignore", PolyabayesWarning)
    corpus = pb.Corpus.from_anndata(simulated(0), "counts").with_exposure("total")
    train, test = corpus.split(0.2, random_state=0)
    columns = {"programmes": "d", "cells trained on": ",d", "cells scored": ",d"}
    columns |= {"counts": ",d", "not 0": ".1%", "training [s]": ",.0f", "scores [s]": ",.0f"}
    columns |= {"nats per token": ".4f", "their error": ".5f"}
    table = Table("cells", "python -m benches.choice.cells", columns, ["pfa, beta-gamma-gamma"])
    pfa = pb.PoissonFactorAnalysis(N_TRAINED, random_state=0, n_jobs=1)
    model, of_training = timed(pfa.fit, train)
    options = {"nats_per_token_std_error": ENOUGH, "random_state": 0, "n_jobs": 1}
    found, of_scores = timed(pb.log_likelihood, model, test, **options)
    sizes = N_TRAINED, train.n_documents, test.n_documents, corpus.n_tokens
    share_above_0 = corpus.counts.nnz / (N_CELLS * N_GENES)
    score = found.nats_per_token, found.total_std_error / test.n_tokens
    table.add(*sizes, share_above_0, of_training, of_scores, *score)
    save(table)


if __name__ == "__main__":
    main()
