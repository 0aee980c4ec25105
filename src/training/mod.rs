//! Learning topic models by Gibbs sampling on the urn.
//!
//! Topic weights of documents are integrated out: a token's topic is drawn from its document's
//! urn given the topics φ, then φ and the other parameters given the topics of all tokens. The
//! documents are independent given φ, so a sweep runs over them in parallel and without races,
//! and its result cannot depend on the number of threads.

mod assignments;
mod blocks;
mod lanes;
mod lda;
mod pfa;
mod schedule;
mod tallies;
mod topics;

pub use lda::{LdaParameters, LdaPrior, LdaSampler};
pub use pfa::{PfaParameters, PfaPrior, PfaSampler};
pub use schedule::{Fit, Progress, Sampler, Schedule, State, fit};
pub use topics::TopicStep;
