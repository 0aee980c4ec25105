//! Learning topic models: by Gibbs sampling on the urn, LDA also by variational EM, and
//! factorisations without priors by multiplicative updates.
//!
//! The samplers integrate the topic weights of documents out: a token's topic is drawn from its
//! document's urn given the topics φ, then φ and the other parameters given the topics of all
//! tokens. The documents are independent given φ, so a sweep runs over them in parallel and without
//! races, and its result cannot depend on the number of threads.

mod em;
mod lda;
mod limits;
mod nmf;
mod parts;
mod pfa;
mod schedule;
mod sharded;
mod start;
mod sweeps;

pub use em::{EmFit, EmSettings, EmStart, fit_em};
pub use lda::{LdaGlobals, LdaParameters, LdaPrior, LdaSampler};
pub use nmf::{
    NmfParameters, NmfPart, NmfUpdates, nmf_start_topics, nmf_update_topics, nmf_weights,
};
pub use parts::{
    Part, Sweep, TopicWeights, count_part, exposed_of_part, ln_urns_of_part, order_tokens,
    order_topics, start_weights_of_part, sweep_part,
};
pub use pfa::{PfaGlobals, PfaParameters, PfaPrior, PfaSampler};
pub use schedule::{
    Averaged, Fit, Kept, Progress, Sampler, Schedule, State, TopicStep, fit, fit_and_look,
};
pub use sharded::{Globals, LnDocuments, ShardedChain, Swept};
pub use start::{FirstTopics, ShardedStart, Start, find_topics};
pub use sweeps::{ExposedPart, ExposedTokens, Scheme};
