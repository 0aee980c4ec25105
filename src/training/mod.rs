//! Learning topic models: by Gibbs sampling on the urn, LDA also by variational EM.
//!
//! The samplers integrate the topic weights of documents out: a token's topic is drawn from its
//! document's urn given the topics φ, then φ and the other parameters given the topics of all
//! tokens. The documents are independent given φ, so a sweep runs over them in parallel and without
//! races, and its result cannot depend on the number of threads.
//!
//! One [`Chain`] serves all models, whose parameters are [`Globals`], and all corpora, whose topics are
//! [`Tokens`]: [`MemoryTokens`] keep them in memory; where they are elsewhere, the functions on a
//! [`Part`] of a corpus do the work of a sweep, to the same bits.

mod bursts;
mod chain;
mod em;
mod globals;
mod kept;
mod known;
mod lda;
mod limits;
mod parts;
mod pfa;
mod pseudo_counts;
mod schedule;
mod start;
mod sweeps;
mod tokens;

pub use bursts::{BurstState, Concentration};
pub use chain::Chain;
pub use em::{EmFit, EmSettings, EmStart, fit_em};
pub use globals::{Common, DocumentTotals, Globals, Swept, WordCounts};
pub use kept::PosteriorMeans;
pub use known::KnownGlobals;
pub use lda::{LdaGlobals, LdaPrior};
pub use parts::{
    Part, count_part, exposed_of_part, ln_urns_of_part, order_tokens, order_topics, sweep_part,
};
pub use pfa::{PfaGlobals, PfaPrior};
pub use pseudo_counts::PseudoCounts;
pub use schedule::{Schedule, TopicStep};
pub use start::{TopicStart, find_topics};
pub use sweeps::{
    BurstCounts, BurstWeights, CorpusSizes, ExposedTokens, RepeatedWord, SweptTokens, TopicWeights,
    Topics,
};
pub use tokens::{ChainState, ExposureGroups, FirstTopics, MemoryTokens, Position, Tokens};
