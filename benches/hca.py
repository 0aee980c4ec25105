"""Bursty topics of Buntine and Mishra's C program hca beside ours, on AP and one thread.

``python benches/hca.py run 20`` needs the program on the path: build
https://github.com/wbuntine/topic-models with https://github.com/wbuntine/libstb, both without
-DH_THREADS. Without a discount of bursts, its default, its model is ours, but for the priors of
parameters. Times are processor time; split and scores are those of the leaderboard.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from leaderboard import scored, split
from record import Table, main, processor_seconds, save, timed

import polyabayes as pb

# By number of topics: sweeps of ours; sweeps of hca, and the one from which it learns bursts.
OURS = {20: (200, 1000), 100: (200,)}
HCA = {20: ((30, 0), (30, 10), (180, 60)), 100: ((16, 0), (60, 20))}


def from_hca(folder: Path, train: pb.Corpus, *run: int) -> tuple[dict[str, Any], float]:
    """Parameters of a fit of hca, averaged over its second half of sweeps, and its seconds."""
    n_topics, n_sweeps, first = run
    pb.write_corpus(train, folder / "ap.ldac")
    # All concentrations begin with that of its manual, or close to LDA until they are learned.
    command = ["hca", "-s1", f"-K{n_topics}", f"-C{n_sweeps}", "-fldac", "-Ahdp", "-B0.01"]
    command += [f"-Sbdk={5000 if first else 100}", f"-Gbdk,3,{first}"]
    command += [f"-l{what},2,{n_sweeps // 2}" for what in ("phi", "alpha")]
    start = processor_seconds()
    subprocess.run([*command, folder / "ap", folder / "fit"], check=True, capture_output=True)
    lines = (folder / "fit.par").read_text().splitlines()
    values = dict(line.split(" = ") for line in lines if line.count(" = ") == 1)
    topics = np.fromfile(folder / "fit.phi", "<f4", offset=12).reshape(n_topics, train.n_words)
    return {
        "doc_topic_prior": float(values["b"]) * np.loadtxt(folder / "fit.alpha").ravel(),
        "topic_word": topics / topics.sum(axis=1, keepdims=True, dtype=float),
        "topic_concentration": np.array(values["bdk"].split(), float),
        "vocabulary": train.vocabulary,
    }, processor_seconds() - start


def run(topics: int, /) -> None:
    """Fit 20 or 100 topics by both, and score the same held-out documents under each."""
    if shutil.which("hca") is None:
        sys.exit("hca is not on the path: the docstring of this file says where it comes from")
    columns = {"program": "s", "sweeps": ",d", "bursts learned from sweep": "d"}
    columns |= {"training": "s", "nats per token": ".4f", "±": ".4f", "with bursts by us": ".4f"}
    golden = ["bursty lda, annealed", "bursty lda, Gibbs"]
    table = Table(f"hca-{topics}", f"python benches/hca.py run {topics}", columns, golden)
    (train, test), make = split("AP"), pb.LatentDirichletAllocation
    options: dict[str, Any] = {"random_state": 0, "n_jobs": 1}
    for n_sweeps in OURS[topics]:
        lda = make(topics, topic_concentration="learn", max_iter=n_sweeps, **options)
        model, seconds = timed(lda.fit, train)
        found = scored(model, test)
        figures = (found.nats_per_token, found.nats_per_token_std_error)
        table.add("polyabayes", n_sweeps, None, f"{seconds:.0f} s", *figures, None)
    for n_sweeps, first in HCA[topics]:
        with TemporaryDirectory() as folder:
            made, seconds = from_hca(Path(folder), train, topics, n_sweeps, first)
        model = make.from_parameters(**made)
        found = scored(model, test)
        figures = (found.nats_per_token, found.nats_per_token_std_error)
        s = pb.learn_topic_concentration(model, train, per_topic=True, **options).value
        again = scored(make.from_parameters(**made | {"topic_concentration": s}), test)
        table.add("hca", n_sweeps, first, f"{seconds:.0f} s", *figures, again.nats_per_token)
    save(table)


if __name__ == "__main__":
    main(run)
