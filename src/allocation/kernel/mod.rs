//! The urn of a network in lanes: weights and draws of tokens, collapsed Gibbs sweeps over them.

pub(crate) mod chains;
pub(crate) mod counts;
pub(crate) mod law;
pub(crate) mod log_risings;
pub(crate) mod powered;
pub(crate) mod rounds;
mod split_law;
pub(crate) mod splits;
mod stride_moves;
pub(crate) mod tempered;
pub(crate) mod urns;
mod weights;
