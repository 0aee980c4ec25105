//! Tensors some of whose cells were not observed.

pub(crate) mod ascent;
pub(crate) mod completion;
mod evidence;
pub(crate) mod incomplete;
mod totals;
