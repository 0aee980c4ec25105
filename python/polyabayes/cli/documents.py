"""Commands on documents: fit, score, compare, split and the demo."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polyabayes as pb
from polyabayes._support.tables import counted
from polyabayes.cli.demo import run_demo
from polyabayes.cli.keywords import GENERAL, SCORING, TRAINING, given
from polyabayes.cli.messages import INTERRUPTED, say
from polyabayes.cli.output import (
    check_table,
    checked_file,
    checked_folder,
    checked_picture,
    escaped,
    keep,
    need,
    refuse_unwritable,
    save_picture,
    write_table,
)
from polyabayes.cli.parsers.shared import CORPUS_SUFFIXES
from polyabayes.exceptions import Interrupted, InvalidArgumentError, argument

# Bytes of a topic and word in the file of a model.
_FLOAT_BYTES = 8

_MODELS: dict[str, Any] = {"lda": pb.LatentDirichletAllocation, "pfa": pb.PoissonFactorAnalysis}
_OPTIONS_OF_ONE_MODEL = {
    "prior": "pfa",
    "sampler": "pfa",
    "fit_method": "lda",
    "doc_topic_prior": "lda",
    "learn_priors": "lda",
}
# These formats do not tell the number of words, only the largest that occurs.
_FORMATS_WITHOUT_WIDTH = (".ldac", ".dat", ".lda-c", ".svmlight", ".libsvm")


def fit(arguments: argparse.Namespace) -> int:
    """Train a model."""
    output = checked_file(arguments.output, (".safetensors",))
    model = untrained(arguments, TRAINING)
    try:
        corpus = pb.read_corpus(
            arguments.corpus, vocabulary=arguments.vocabulary, exposure=arguments.exposure
        )
        n_bytes = _FLOAT_BYTES * arguments.n_components * corpus.n_words
        refuse_unwritable(output.parent, n_bytes)
        say(f"training on {size(corpus)}")
        start = time.perf_counter()
        model.fit(corpus, **_asked_for(corpus, arguments))
    except Interrupted as interrupted:
        keep({output: interrupted.partial.save})
        say(f"interrupted: {interrupted}; {output} holds the model reached")
        return INTERRUPTED
    except KeyboardInterrupt:
        say(f"interrupted before the first sweep: there is no model, and {output} is not written")
        return INTERRUPTED
    keep({output: model.save})
    unit = "iteration" if arguments.fit_method == "em" else "sweep"
    say(f"{counted(model.n_iter_, unit)} in {time.perf_counter() - start:.1f} s; wrote {output}")
    return 0


def untrained(arguments: argparse.Namespace, options: tuple[str, ...]) -> Any:
    """The model that the options describe."""
    for option, model in _OPTIONS_OF_ONE_MODEL.items():
        if arguments.model != model and getattr(arguments, option) is not None:
            raise InvalidArgumentError(
                f"{argument(option)} is an option of {model}, not of {arguments.model}"
            )
    model = _MODELS[arguments.model](**given(arguments, options))
    # Documents may take long to read.
    model._check_parameters()
    return model


def _columns(result: pb.LogLikelihood, arguments: argparse.Namespace) -> Mapping[str, Any]:
    return escaped(result._columns(), wanted=arguments.escape_formulas)


def score(arguments: argparse.Namespace) -> int:
    """Score documents."""
    if arguments.output is not None:
        check_table(arguments.output)
    model = pb.interop.read_model(arguments.model)
    corpus = _read_for(model, arguments)
    try:
        result = pb.log_likelihood(
            model, corpus, **_asked_for(corpus, arguments), **given(arguments, SCORING)
        )
    except Interrupted as interrupted:
        if arguments.output is None:
            say(f"interrupted: {interrupted}")
            return INTERRUPTED
        write_table(_columns(interrupted.partial, arguments), arguments.output)
        place = "the output" if arguments.output == "-" else arguments.output
        say(f"interrupted: {interrupted}, the others are empty in {place}")
        return INTERRUPTED
    if arguments.output is None:
        print(_summary(result))
        return 0
    write_table(_columns(result, arguments), arguments.output)
    print(_summary(result), file=sys.stderr)
    return 0


def compare(arguments: argparse.Namespace) -> int:
    """Compare models on the same documents."""
    plot = checked_picture(arguments.plot)
    models = {
        name: pb.interop.read_model(path)
        for name, path in zip(_model_names(arguments.models), arguments.models, strict=True)
    }
    corpus = _read_for(next(iter(models.values())), arguments)
    say(f"comparing on {size(corpus)}")
    comparison = pb.compare(
        models, corpus, **_asked_for(corpus, arguments), **given(arguments, SCORING)
    )
    print(comparison)
    if plot is not None:
        save_picture(pb.plotting.plot_comparison(comparison), plot)
        say(f"wrote {plot}")
    return 0


def split(arguments: argparse.Namespace) -> int:
    """Hold documents out."""
    parts = [checked_file(path, CORPUS_SUFFIXES) for path in (arguments.train, arguments.test)]
    corpus = pb.read_corpus(arguments.corpus, vocabulary=arguments.vocabulary)
    halves = corpus.split(**given(arguments, ("test_size", "random_state")))
    for path, half in zip(parts, halves, strict=True):
        pb.write_corpus(half, path)
        say(f"wrote {size(half)} to {path}")
    return 0


def demo(arguments: argparse.Namespace) -> int:
    """Train, score and compare on data that need no download."""
    need("pandas", "frames", "the demo")
    need("matplotlib", "plot", "the demo")
    folder = checked_folder(arguments.output)
    options = given(arguments, GENERAL)
    if "random_state" in options:
        options["seed"] = options.pop("random_state")
    run_demo(folder, **options)
    return 0


def read_as_wide(
    n_words: int, path: str, vocabulary: str | None, exposure: str | None = None
) -> pb.Corpus:
    """Read a corpus of so many words where its format does not tell their number."""
    name = path.lower().removesuffix(".gz")
    if vocabulary is None and (path == "-" or name.endswith(_FORMATS_WITHOUT_WIDTH)):
        return pb.read_corpus(path, n_words=n_words, exposure=exposure)
    return pb.read_corpus(path, vocabulary=vocabulary, exposure=exposure)


def _asked_for(corpus: pb.Corpus, arguments: argparse.Namespace) -> dict[str, Any]:
    """Exposures that the user gave, which LDA refuses; others come with the corpus."""
    return {} if arguments.exposure is None else {"exposure": corpus.exposure}


def size(corpus: pb.Corpus) -> str:
    """How large a corpus is."""
    return repr(corpus).removeprefix("<Corpus: ").removesuffix(">")


def _read_for(model: Any, arguments: argparse.Namespace) -> pb.Corpus:
    return read_as_wide(
        model.n_features_in_, arguments.corpus, arguments.vocabulary, arguments.exposure
    )


def _model_names(paths: list[str]) -> list[str]:
    """Stems of the files; where those are equal, whole paths, numbered if those are equal too."""
    stems = Counter(Path(path).stem for path in paths)
    names: list[str] = []
    for path in paths:
        stem = Path(path).stem
        name = wanted = stem if stems[stem] == 1 else path.removesuffix(".safetensors")
        number = 1
        while name in names:
            number += 1
            name = f"{wanted} ({number})"
        names.append(name)
    return names


def _summary(result: pb.LogLikelihood) -> str:
    used = ", ".join(f"{method} {n:,}" for method, n in Counter(result.methods.tolist()).items())
    lines = [
        f"documents       {len(result.values):,} ({used})",
        f"event           {result.event}{', given the length' if result.given_length else ''}",
        f"total           {result.total:,.2f} +- {result.total_std_error:.2g} nats",
        f"nats per token  {result.nats_per_token:.6f} +- {result.nats_per_token_std_error:.2g}",
        f"perplexity      {result.perplexity:,.2f}",
    ]
    if result.n_unseen_tokens:
        lines.append(f"unseen words    {result.n_unseen_tokens:,} tokens left out")
    return "\n".join(lines)
