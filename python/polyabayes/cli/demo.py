"""The demo: train, score and compare, on documents with a known truth and on real ones."""

from pathlib import Path
from typing import Any

import polyabayes as pb
from polyabayes.cli.output import checked_folder, need
from polyabayes.cli.parser import Given


def demo(given: Given, *, output: str = "demo-output") -> int:
    """Train, score and compare on made-up and on real documents.

    Parameters
    ----------
    output : FOLDER
        Where models, scores and pictures go; by default demo-output.

    Examples
    --------
    $ polyabayes demo -o demo-output
    """
    need("pandas", "frames", "the demo")
    need("matplotlib", "plot", "the demo")
    folder, options = checked_folder(output), {"random_state": 0, **given.of("log_likelihood")}
    folder.mkdir(parents=True, exist_ok=True)
    _known_truth(options)
    print("\nwritten:", *_real_documents(folder, options), sep="\n  ")
    return 0


def _known_truth(options: dict[str, Any]) -> None:
    """Trained models beside the model that made the documents, which nothing should beat."""
    seed = options["random_state"]
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
    lda = pb.LatentDirichletAllocation(8, doc_topic_prior=0.1, **options).fit(train)
    pfa = pb.PoissonFactorAnalysis(8, **options).fit(train)
    print("1. Documents drawn from a model with 8 topics, scored by that model, too: the truth")
    print(f"   lda, pfa: trained\n   train {train}\n   test  {test}\n")
    print(pb.compare({"the truth": true, "lda": lda, "pfa": pfa}, test, **options))


def _real_documents(folder: Path, options: dict[str, Any]) -> list[Path]:
    """Models of several sizes on the documentation of Python; the files written."""
    corpus = pb.datasets.load_python_docs()
    train, test = corpus.split(test_size=0.2, random_state=options["random_state"])
    print("\n2. The documentation of Python, by models of 10, 20 and 40 topics")
    print(f"   train {train}\n   test  {test}\n")
    models: dict[str, Any] = {}
    for k in (10, 20, 40):
        models[f"lda-{k}"] = pb.LatentDirichletAllocation(k, **options).fit(train)
        models[f"pfa-{k}"] = pb.PoissonFactorAnalysis(k, **options).fit(train)
    comparison = pb.compare(models, test, **options)
    print(comparison)
    score = comparison.results[comparison.best]
    lower, upper = score.total_interval(0.95)
    print(
        f"\n   best: {comparison.best}, log-likelihood of all test documents "
        f"{score.total:,.1f} nats (95 %: {lower:,.1f} to {upper:,.1f})"
    )
    for name, model in models.items():
        model.save(folder / f"{name}.safetensors")
    score.to_frame().to_csv(folder / "scores.csv", index=False)
    pictures: dict[str, Any] = {
        "comparison.png": pb.plotting.plot_comparison(comparison),
        "topics.png": pb.plotting.plot_topics(models[comparison.best]),
    }
    for name, ax in pictures.items():
        ax.figure.savefig(folder / name, dpi=300)
    return [
        folder / name for name in (*(f"{m}.safetensors" for m in models), "scores.csv", *pictures)
    ]
