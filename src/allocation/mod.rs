//! The allocation model: every token of a count tensor is a draw from a discrete Bayesian network,
//! whose tables are integrated out and whose hidden nodes are summed out.
//!
//! The urn's colour is a tuple of node values, and its weight a product of marginal counts; no
//! computation holds more of an allocation than those.

mod ancestry;
mod annealed;
mod annealing;
mod bidirectional;
mod chains;
mod decomposition;
mod evidence;
mod exact;
mod kernel;
mod labels;
mod law;
mod lookahead;
mod missing;
mod missing_ascent;
mod mixture;
mod modes;
mod network;
mod openings;
mod particles;
mod plan;
mod problem;
mod responsibilities;
mod rounds;
mod smc;
mod splits;
mod sum_product;

pub use bidirectional::{Sandwich, sandwich};
pub use decomposition::{Ascent, Decomposition, Limits, Sweeps, ascend, best_particle, gibbs};
pub use evidence::{Algorithm, ln_probability};
pub use missing::{Completion, Incomplete};
pub use missing_ascent::{MissingAscent, ascend_missing};
pub use network::{Network, Prior};
pub use problem::Problem;
pub use smc::{Filter, TokenOrder};
