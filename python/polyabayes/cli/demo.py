"""The demo: train, score and compare, on documents with a known truth and on real ones.

It is also an example of the public API.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import polyabayes as pb

__all__ = ["run_demo"]


def run_demo(
    directory: str | os.PathLike[str],
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool = False,
) -> list[Path]:
    """Run the demo and print what it finds.

    Parameters
    ----------
    directory : str or path-like
        Folder for models, scores and pictures; made if it is not there.
    seed : int, default=0
        Equal seeds give equal results.
    n_jobs : int, optional
        Threads; None means all cores.
    progress : bool, default=False
        Show progress bars (needs tqdm).

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    FileAccessError
        If the folder cannot be made or a file cannot be written.
    MissingDependencyError
        If Matplotlib or pandas is not installed.
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    known_truth(seed, n_jobs, progress)
    written = real_documents(folder, seed, n_jobs, progress)
    print("\nwritten:", *written, sep="\n  ")
    return written


def known_truth(seed: int, n_jobs: int | None, progress: bool) -> pb.Comparison:
    """Trained models beside the model that made the documents, which nothing should beat."""
    data = pb.datasets.make_lda_corpus(
        n_documents=2000,
        n_words=500,
        n_topics=8,
        document_length=80,
        doc_topic_prior=0.1,
        random_state=seed,
    )
    train, test = data.corpus.split(test_size=0.2, random_state=seed)
    true = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=data.doc_topic_prior, topic_word=data.topic_word
    )
    options: dict[str, Any] = {"n_jobs": n_jobs, "random_state": seed, "progress": progress}
    lda = pb.LatentDirichletAllocation(8, doc_topic_prior=0.1, **options).fit(train)
    pfa = pb.PoissonFactorAnalysis(8, prior="beta-gamma-gamma", **options).fit(train)

    print(
        "1. Documents drawn from a model with 8 topics, scored by that model, too: the truth\n"
        "   lda: latent Dirichlet allocation; pfa: Poisson factor analysis, both trained\n"
        f"   train {train}\n   test  {test}\n"
    )
    comparison = pb.compare({"the truth": true, "lda": lda, "pfa": pfa}, test, **options)
    print(comparison)
    print(
        "\n   nats/token: log-likelihood of the test documents a token, higher is better\n"
        "   +- estimate: its error on these documents, which more computation makes smaller\n"
        "   +- new docs: error of the difference to the best model on other documents"
    )
    return comparison


def real_documents(folder: Path, seed: int, n_jobs: int | None, progress: bool) -> list[Path]:
    """Models of several sizes on the documentation of Python."""
    corpus = pb.datasets.load_python_docs()
    train, test = corpus.split(test_size=0.2, random_state=seed)
    print(
        "\n2. The documentation of Python, by models of 10, 20 and 40 topics\n"
        f"   train {train}\n   test  {test}\n"
    )

    options: dict[str, Any] = {"n_jobs": n_jobs, "random_state": seed, "progress": progress}
    models: dict[str, pb.LatentDirichletAllocation | pb.PoissonFactorAnalysis] = {}
    for k in (10, 20, 40):
        models[f"lda-{k}"] = pb.LatentDirichletAllocation(k, **options).fit(train)
        models[f"pfa-{k}"] = pb.PoissonFactorAnalysis(k, prior="beta-gamma-gamma", **options).fit(
            train
        )
    comparison = pb.compare(models, test, **options)
    print(comparison)
    best = comparison.best
    score = comparison.results[best]
    lower, upper = score.total_interval(0.95)
    print(
        f"\n   best: {best}, log-likelihood of all test documents {score.total:,.1f} nats "
        f"(95 %: {lower:,.1f} to {upper:,.1f})"
    )

    written = []
    for name, model in models.items():
        written.append(folder / f"{name}.safetensors")
        model.save(written[-1])
    written += [folder / "scores.csv", folder / "comparison.png", folder / "topics.png"]
    score.to_frame().to_csv(written[-3], index=False)
    figure: Any = pb.plotting.plot_comparison(comparison).figure
    figure.savefig(written[-2], dpi=150)
    figure = pb.plotting.plot_topics(models[best]).figure
    figure.savefig(written[-1], dpi=150)
    return written
