//! The urn of a network in lanes: weights and draws of tokens, collapsed Gibbs sweeps over them.

pub(crate) mod chains;
pub(crate) mod counts;
mod divisions;
pub(crate) mod law;
pub(crate) mod powered;
pub(crate) mod risings;
pub(crate) mod rounds;
pub(crate) mod splits;
mod strides;
pub(crate) mod tempered;
pub(crate) mod urns;
mod weights;
