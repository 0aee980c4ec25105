//! One word's part of the lattice of partial documents.

/// Tokens that a document may have: more make states by the billion.
pub(super) const MAX_TOKENS: usize = 40;

/// One word's axis of the lattice of partial documents.
#[derive(Debug, Clone, Copy)]
pub(super) struct WordAxis {
    /// The word.
    pub(super) cell: usize,
    /// Its count.
    pub(super) y: usize,
    /// Number of states of the axes below this one.
    pub(super) stride: usize,
}

impl WordAxis {
    /// States of this axis and those below it.
    pub(super) fn states(&self) -> usize {
        self.stride * (self.y + 1)
    }

    /// Copies of the word in a state.
    pub(super) fn digit(&self, state: usize) -> usize {
        state / self.stride % (self.y + 1)
    }
}
