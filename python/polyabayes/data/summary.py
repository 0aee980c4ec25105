"""Size of a corpus."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyabayes._support.output.tables import columns_of, html_table
from polyabayes.data.counts import CountMatrix


@dataclass(frozen=True)
class CorpusSummary:
    """Size of a corpus; document lengths are in tokens.

    Attributes
    ----------
    n_documents, n_words : int
        Shape of the counts.
    n_tokens : int
        Sum of the counts.
    n_nonzero : int
        Number of non-zero counts: pairs of a document and a word in it.
    density : float
        Share of non-zero counts.
    mean_length, sd_length : float
        Mean and population standard deviation of the lengths.
    min_length, max_length : int
        Shortest and longest document.
    n_empty_documents : int
        Documents without a token.

    Examples
    --------
    >>> found = pb.Corpus([[2, 0, 1], [0, 3, 1]]).summary()
    >>> found.n_nonzero, found.mean_length
    (4, 3.5)
    """

    n_documents: int
    n_words: int
    n_tokens: int
    n_nonzero: int
    density: float
    mean_length: float
    sd_length: float
    min_length: int
    max_length: int
    n_empty_documents: int

    def _facts(self) -> dict[str, str]:
        return {
            "documents": f"{self.n_documents:,} ({self.n_empty_documents:,} empty)",
            "words": f"{self.n_words:,}",
            "tokens": f"{self.n_tokens:,}",
            "non-zeros": f"{self.n_nonzero:,} (density {self.density:.3%})",
            "length": f"{self.mean_length:.1f} +- {self.sd_length:.1f}, "
            f"from {self.min_length:,} to {self.max_length:,}",
        }

    def __str__(self) -> str:
        return "\n".join(f"{name:<9}  {value}" for name, value in self._facts().items())

    def _repr_html_(self) -> str:
        facts = self._facts()
        return html_table(columns_of({"": list(facts), "corpus": list(facts.values())}))


def summary_of(counts: CountMatrix) -> CorpusSummary:
    """Size of a matrix of counts without explicit zeros, and lengths of its rows."""
    n_documents, n_words = counts.shape
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    return CorpusSummary(
        n_documents=n_documents,
        n_words=n_words,
        n_tokens=int(counts.data.sum()),
        n_nonzero=int(counts.nnz),
        density=counts.nnz / (n_documents * n_words),
        mean_length=float(lengths.mean()),
        sd_length=float(lengths.std()),
        min_length=int(lengths.min()),
        max_length=int(lengths.max()),
        n_empty_documents=int((lengths == 0).sum()),
    )
