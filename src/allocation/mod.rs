//! The allocation model: every token of a count tensor is a draw from a discrete Bayesian network,
//! whose tables are integrated out and whose hidden nodes are summed out.
//!
//! The urn's colour is a tuple of node values, and its weight a product of marginal counts; no
//! computation holds more of an allocation than those.
//!
//! The constants of this room are those with which `benches/evidence.py` made its records, but for
//! those of particles that draw step by step and of ascents to the largest likelihood.

mod ascent;
mod bidirectional;
mod evidence;
mod exact;
mod kernel;
mod memory;
mod missing;
mod model;
mod particles;
mod posterior;
mod tempering;

pub use ascent::decomposition::{
    Ascent, Decomposition, Limits, Sweeps, ascend, best_particle, gibbs,
};
pub use bidirectional::{BidirectionalBounds, bidirectional_bounds};
pub use evidence::{
    Evidence, EvidenceMethod, EvidenceRun, EvidenceSampler, EvidenceSettings, Task, TaskResult,
    evidence, from_bytes, to_bytes,
};
pub use missing::ascent::MissingAscent;
pub use missing::completion::Completion;
pub use missing::incomplete::Incomplete;
pub use model::network::{Network, Prior};
pub use model::problem::Problem;
pub use particles::smc::{Filter, TokenOrder};
pub use posterior::{Draw, Posterior, posterior};
