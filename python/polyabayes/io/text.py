"""Raw text, counted by scikit-learn's CountVectorizer and stemmed by PyStemmer."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from polyabayes._support.files import read_lines, reading
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import Words
from polyabayes.exceptions import (
    FileAccessError,
    FileFormatError,
    InvalidArgumentError,
    MissingDependencyError,
)

Analyzer = Callable[[str], list[str]]


def read_text(
    path: Path,
    vocabulary: Words | None = None,
    *,
    encoding: str = "utf-8",
    stem: str | None = None,
    **options: Any,
) -> Corpus:
    """Count the words of a text file with a document a line, or of a folder of text files.

    Parameters
    ----------
    path : Path
        A file, plain or gzipped, of which each line is a document; or a folder of which each
        ``.txt`` file, at any depth, is one, with its relative path as its id.
    vocabulary : ndarray of str, shape (n_words,), optional
        The words to count; all others are left out.
    encoding : str, default="utf-8"
        Encoding of the text.
    stem : str, optional
        Language of the Snowball stemmer, such as "english"; needs the extra ``stem``. Words
        are stemmed after stop words are dropped and before they make n-grams.
    **options
        Passed to ``sklearn.feature_extraction.text.CountVectorizer``: ``lowercase``,
        ``stop_words``, ``min_df``, ``max_df``, ``token_pattern``, ``ngram_range``, ...

    Returns
    -------
    Corpus
        Documents in order of the lines or sorted paths; words sorted.
    """
    if path.is_dir():
        ids, texts = _read_folder(path, encoding)
    else:
        ids, texts = None, read_lines(path, encoding)
    if not texts:
        kind = "no .txt file, so it holds no documents" if path.is_dir() else "no documents"
        raise FileFormatError(f"{path} holds {kind}")
    return count_texts(path, ids, texts, vocabulary, stem, options)


def count_texts(
    path: Path,
    ids: list[str] | None,
    texts: list[str],
    vocabulary: Words | None,
    stem: str | None,
    options: dict[str, Any],
) -> Corpus:
    """Count the words of texts that stand in a file."""
    words = None if vocabulary is None else vocabulary.tolist()
    vectorizer = _vectorizer(words, stem, options)
    try:
        counts = vectorizer.fit_transform(texts)
    except ValueError as error:
        if isinstance(error, TypeError):
            raise InvalidArgumentError(f"a text option is not valid: {error}") from error
        raise FileFormatError(f"{path}: the words cannot be counted: {error}") from error
    return Corpus(counts, vectorizer.get_feature_names_out(), ids)


def _read_folder(folder: Path, encoding: str) -> tuple[list[str], list[str]]:
    def refuse(error: OSError) -> None:
        raise error

    found = {}
    with reading(folder):
        for parent, _, names in os.walk(folder, onerror=refuse):
            paths = (Path(parent, name) for name in names if name.endswith(".txt"))
            found.update({path.relative_to(folder).as_posix(): path for path in paths})
    for name, path in found.items():
        if not path.is_file():
            raise FileAccessError(f"cannot read {folder}: {name} is not a file of text")
    ids = sorted(found)
    return ids, ["\n".join(read_lines(found[name], encoding)) for name in ids]


def _vectorizer(words: list[str] | None, stem: str | None, options: dict[str, Any]) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer

    try:
        vectorizer = CountVectorizer(vocabulary=words, **options)
        if stem is not None:
            analyzer = _stemming_analyzer(stem, options)
            vectorizer.set_params(analyzer=analyzer, token_pattern=None, stop_words=None)
            vectorizer.set_params(ngram_range=(1, 1))
    except TypeError as error:
        raise InvalidArgumentError(f"unknown text option: {error}") from error
    return vectorizer


def _stemming_analyzer(language: str, options: dict[str, Any]) -> Analyzer:
    try:
        import Stemmer
    except ImportError as error:
        raise MissingDependencyError(
            "stemming needs PyStemmer; install it with: pip install 'polyabayes[stem]'"
        ) from error
    try:
        stemmer = Stemmer.Stemmer(language)
    except KeyError as error:
        raise InvalidArgumentError(
            f"stem={language!r} is not a language of PyStemmer; "
            f"it knows {', '.join(Stemmer.algorithms())}"
        ) from error
    if options.get("analyzer", "word") != "word":
        raise InvalidArgumentError("stem works on words only; leave analyzer at 'word'")
    from sklearn.feature_extraction.text import CountVectorizer

    shortest, longest = options.get("ngram_range", (1, 1))
    words_of: Analyzer = CountVectorizer(**{**options, "ngram_range": (1, 1)}).build_analyzer()

    def analyze(text: str) -> list[str]:
        stems = stemmer.stemWords(words_of(text))
        return [
            " ".join(stems[start : start + length])
            for length in range(shortest, longest + 1)
            for start in range(len(stems) - length + 1)
        ]

    return analyze
