//! Particle filters over the tokens of a problem.
//!
//! The constants of this room are those with which `benches/evidence.py` made its record.

pub(crate) mod lanes;
mod moves;
pub(crate) mod smc;
pub(crate) mod steps;
