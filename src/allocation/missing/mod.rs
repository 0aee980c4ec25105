//! Tensors some of whose cells were not observed.

pub(crate) mod ascent;
pub(crate) mod completion;
mod evidence;
mod grouped_cells;
pub(crate) mod incomplete;
mod release;
mod tempered;
mod totals;
