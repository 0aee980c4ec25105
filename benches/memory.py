"""Memory of training on 20 million tokens: the most that a fresh process ever holds, in GiB."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from recorded import Table, save

import polyabayes as pb

N_DOCUMENTS, LENGTH, N_WORDS = 100_000, 200, 20_000
SWEEPS = 10


def most_held() -> float:
    """The most that this process has held so far; Linux counts in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def generate(path: Path) -> None:
    truth = pb.datasets.make_lda_corpus(
        N_DOCUMENTS, N_WORDS, 50, document_length=LENGTH, random_state=1
    )
    pb.write_corpus(truth.corpus, path)


def train(path: Path, n_topics: int) -> None:
    corpus = pb.read_corpus(path)
    loaded = most_held()
    settings = {
        "max_iter": SWEEPS,
        "burn_in": SWEEPS // 2,
        "learn_priors": False,
        "random_state": 0,
    }
    pb.LatentDirichletAllocation(n_topics, **settings).fit(corpus)
    print(corpus.n_tokens, n_topics, loaded, most_held())


def main() -> int:
    if len(sys.argv) > 1:
        step, path, *n_topics = sys.argv[1:]
        if step == "generate":
            generate(Path(path))
        else:
            train(Path(path), int(n_topics[0]))
        return 0
    columns = {"tokens": ",d", "topics": ",d", "GiB, corpus loaded": ".2f", "GiB at most": ".2f"}
    table = Table("memory", "python benches/memory.py", columns)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "corpus.npz"))
        # Each step in a process of its own: what a process held once counts for ever.
        for step in (["generate", path], ["train", path, "200"], ["train", path, "1000"]):
            program = [sys.executable, __file__, *step]
            done = subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True)
            if done.stdout:
                n_tokens, n_topics, loaded, most = done.stdout.split()
                table.add(int(n_tokens), int(n_topics), float(loaded), float(most))
    save(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
