"""A vectoriser for pipelines that keeps the vocabulary with the counts."""

from __future__ import annotations

from typing import Any, Self

from sklearn.feature_extraction.text import CountVectorizer as _CountVectorizer

from polyabayes.data.corpus import Corpus


class CountVectorizer(_CountVectorizer):  # type: ignore[misc]
    """scikit-learn's ``CountVectorizer`` with a :class:`polyabayes.Corpus` as its result.

    scikit-learn's own result is a sparse matrix without words, and without ``set_output`` for the
    Pipeline.

    Parameters
    ----------
    input, encoding, decode_error, strip_accents, lowercase, preprocessor, tokenizer, stop_words
        As in ``sklearn.feature_extraction.text.CountVectorizer``.
    token_pattern, ngram_range, analyzer, max_df, min_df, max_features, vocabulary, binary, dtype
        As in ``sklearn.feature_extraction.text.CountVectorizer``.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> lda = pb.LatentDirichletAllocation(2, max_iter=20, random_state=0)
    >>> pipeline = make_pipeline(pb.interop.CountVectorizer(), lda)
    >>> pipeline = pipeline.set_output(transform="pandas").fit(["an urn", "a gene", "an urn"])
    >>> sorted(pipeline[-1].vocabulary_.tolist())
    ['an', 'gene', 'urn']
    >>> pipeline.transform(["an urn"]).columns.tolist()
    ['topic0', 'topic1']
    """

    def fit_transform(self, raw_documents: Any, y: Any = None) -> Corpus:
        """Learn the words of documents and count them.

        Parameters
        ----------
        raw_documents : iterable of str
            The documents.
        {y}

        Returns
        -------
        Corpus

        Examples
        --------
        >>> pb.interop.CountVectorizer().fit_transform(["an urn", "the urn"])
        <Corpus: 2 documents, 3 words, 4 tokens>
        """
        return self._named(super().fit_transform(raw_documents, y))

    def transform(self, raw_documents: Any) -> Corpus:
        """Count the known words of documents.

        Parameters
        ----------
        raw_documents : iterable of str
            The documents.

        Returns
        -------
        Corpus

        Examples
        --------
        >>> pb.interop.CountVectorizer().fit(["an urn"]).transform(["the urn"])
        <Corpus: 1 document, 2 words, 1 token>
        """
        return self._named(super().transform(raw_documents))

    def set_output(self, *, transform: Any = None) -> Self:  # noqa: ARG002
        """Do nothing: counts are always a Corpus.

        Parameters
        ----------
        transform : ignored
            Present for scikit-learn.

        Returns
        -------
        self

        Examples
        --------
        >>> type(pb.interop.CountVectorizer().set_output(transform="pandas")).__name__
        'CountVectorizer'
        """
        return self

    def _named(self, counts: Any) -> Corpus:
        return Corpus(counts, [str(word) for word in self.get_feature_names_out()])
