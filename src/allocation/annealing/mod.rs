//! Annealed importance sampling over the tokens of a problem, forward and backward.

pub(crate) mod annealed;
pub(crate) mod bidirectional;
pub(crate) mod chains;
pub(crate) mod labels;
pub(crate) mod modes;
