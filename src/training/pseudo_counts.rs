//! Pseudo-counts of the topics of documents: α, or r.

use crate::regression::Regression;

/// Pseudo-counts of documents: the same for all, or by the group that a document is in.
#[derive(Debug, Clone, Copy)]
pub struct PseudoCounts<'a> {
    /// One row a group.
    rows: &'a [f64],
    n_topics: usize,
    /// Group of each document of the corpus; `None` where all share one row.
    groups: Option<&'a [u32]>,
}

impl<'a> PseudoCounts<'a> {
    /// The same pseudo-counts for all documents.
    pub fn shared(row: &'a [f64]) -> Self {
        PseudoCounts { rows: row, n_topics: row.len(), groups: None }
    }

    /// Pseudo-counts of the groups of documents that a regression has.
    pub(super) fn of(regression: &'a Regression) -> Self {
        let (rows, n_topics) = (regression.pseudo_counts(), regression.n_topics());
        PseudoCounts { rows, n_topics, groups: Some(regression.groups()) }
    }

    /// Number of topics.
    pub fn n_topics(self) -> usize {
        self.n_topics
    }

    /// Number of groups of documents.
    pub fn n_groups(self) -> usize {
        self.rows.len() / self.n_topics
    }

    /// Number of the documents that are grouped.
    pub(super) fn n_documents(self) -> Option<usize> {
        self.groups.map(<[u32]>::len)
    }

    /// Whether groups of documents have pseudo-counts of their own.
    pub fn is_grouped(self) -> bool {
        self.groups.is_some()
    }

    /// The row of the first group: of all documents, unless they are grouped.
    pub fn first(self) -> &'a [f64] {
        &self.rows[..self.n_topics]
    }

    /// The pseudo-count of a topic in each group.
    pub(super) fn of_topic(self, topic: usize) -> impl Iterator<Item = f64> {
        self.rows[topic..].iter().copied().step_by(self.n_topics)
    }

    /// Group of a document of the corpus.
    pub(super) fn group(self, doc_ix: usize) -> usize {
        self.groups.map_or(0, |groups| groups[doc_ix] as usize)
    }

    /// Pseudo-counts of a document of the corpus.
    pub(super) fn row(self, doc_ix: usize) -> &'a [f64] {
        &self.rows[self.group(doc_ix) * self.n_topics..][..self.n_topics]
    }
}
