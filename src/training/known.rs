//! Topics that are known, of LDA or of a gamma-Poisson model: only the topics of tokens are drawn, and
//! the concentrations that these tell.

use crate::error::{Result, check_length, check_positive};

use super::bursts::BurstState;
use super::globals::{Common, DocumentTotals, Globals, Swept, WordCounts};
use super::limits::check_n_topics;
use super::schedule::TopicStep;
use super::sweeps::Topics;

/// Known φ and pseudo-counts.
pub struct KnownGlobals {
    common: Common,
    /// Urn weights of words over φ: 1, or p.
    factors: Vec<f64>,
}

impl KnownGlobals {
    /// Pseudo-counts `a`, word-major φ, and urn weights of words over φ, one a topic.
    ///
    /// # Errors
    /// No topics or more than 65,535; sizes that disagree; parameters that are not positive.
    pub fn new(
        a: Vec<f64>,
        phi: Vec<f64>,
        factors: Vec<f64>,
        bursts: Option<BurstState>,
    ) -> Result<Self> {
        check_n_topics(a.len())?;
        check_positive("doc_topic_prior", &a)?;
        check_positive("factors of topics", &factors)?;
        check_length("factors of topics", factors.len(), a.len())?;
        let mut topics = Topics::new(phi.len() / a.len(), a.len(), 1.0)?;
        check_length("topic_word", phi.len(), topics.n_cells())?;
        (topics.weights, topics.bursts) = (phi, bursts);
        topics.scale.copy_from_slice(&factors);
        Ok(KnownGlobals { common: Common::new(topics, a, 0), factors })
    }
}

impl Globals for KnownGlobals {
    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn parameters(&self) -> Vec<f64> {
        vec![]
    }

    fn restore(&mut self, n_sweeps: u64, parameters: &[f64]) -> Result<()> {
        self.common.restore(n_sweeps, parameters, 0, |_| Ok(())).map(drop)
    }

    fn update_topics(&mut self, counts: WordCounts<'_>, _: TopicStep) {
        self.common.topics.count(counts.tables);
    }

    /// Known topics do not follow from the topics of tokens.
    fn release_topics(&mut self) {}

    fn needs(&self) -> (bool, bool) {
        (false, false)
    }

    fn update(&mut self, counts: WordCounts<'_>, _: Swept<'_>, step: TopicStep) {
        self.common.n_sweeps += 1;
        self.update_topics(counts, step);
    }

    fn ln_joint(&self, documents: DocumentTotals<'_>) -> f64 {
        documents.ln_urns.value() + documents.ln_words
    }

    fn factors(&self) -> Option<&[f64]> {
        Some(&self.factors)
    }
}
