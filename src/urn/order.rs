//! The order in which a sweep visits the tokens.

/// The order in which a sweep visits the tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweepOrder {
    /// The first token comes first.
    Forward,
    /// The last token comes first: the reversal of a forward sweep.
    Backward,
}

impl SweepOrder {
    /// Number of the token, of `n`, that is visited after `step` others.
    #[inline]
    pub fn nth(self, step: usize, n: usize) -> usize {
        if self == SweepOrder::Forward { step } else { n - 1 - step }
    }
}
