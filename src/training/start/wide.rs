//! One start: more topics than asked for, and how they are merged.

use super::merge::Merger;
use crate::control::Observer;
use crate::error::{Result, check_positive};
use crate::rng::Key;
use crate::training::limits::check_n_topics;
use crate::training::pseudo_counts::PseudoCounts;
use crate::training::schedule::TopicStep;
use crate::training::sweeps::{TopicWeights, Topics};
use crate::training::tokens::Position;
use crate::urn::MAX_TOPICS;

/// Topics at first, for each topic asked for.
const WIDTH: f64 = 1.5;

/// Most topics at first: all pairs of them are compared.
const MOST_TOPICS: usize = 2048;

/// One in so many of the surplus topics is merged at a time.
const MERGERS_SHARE: usize = 4;

/// Bounds of the Dirichlet parameters of a start. Below the first, tokens keep the topics that they
/// have by chance; above the second in sum over the topics, documents do not tell topics apart.
const LEAST_PRIOR: f64 = 0.01;
const MOST_PRIOR_SUM: f64 = 5.0;

/// Topics at first of a start of so many sweeps.
pub(super) fn n_first(n_topics: usize, n_sweeps: u64) -> usize {
    let wide = ((WIDTH * n_topics as f64).ceil() as usize).min(MOST_TOPICS.min(MAX_TOPICS));
    if n_topics > 1 && n_sweeps > 0 { wide.max(n_topics) } else { n_topics }
}

/// Dirichlet parameters of a start, the same for all topics and words.
#[derive(Clone, Copy)]
pub(super) struct Priors {
    pub(super) a: f64,
    beta: f64,
}

impl Priors {
    /// Priors that come near the Dirichlet parameters of a model.
    pub(super) fn of(alpha: &[f64], beta: f64) -> Result<Self> {
        check_n_topics(alpha.len())?;
        check_positive("doc_topic_prior", alpha)?;
        check_positive("topic_word_prior", &[beta])?;
        let n_topics = alpha.len() as f64;
        let most = (MOST_PRIOR_SUM / n_topics).max(LEAST_PRIOR);
        let mean = alpha.iter().sum::<f64>() / n_topics;
        Ok(Priors { a: mean.clamp(LEAST_PRIOR, most), beta: beta.max(LEAST_PRIOR) })
    }
}

/// More topics than asked for.
pub(super) struct WideStart {
    n_topics: usize,
    priors: Priors,
    key: Key,
    topics: Topics,
    a: Vec<f64>,
}

impl WideStart {
    /// The start of number `run` of `n_first` topics, for a model of `n_topics`.
    pub(super) fn new(
        n_words: usize,
        (n_first, n_topics): (usize, usize),
        priors: Priors,
        seed: u64,
        run: u64,
    ) -> Result<Self> {
        let topics = Topics::new(n_words, n_first, priors.beta)?;
        let key = Position::Merged { run }.key(seed);
        Ok(WideStart { n_topics, priors, key, topics, a: vec![priors.a; n_first] })
    }

    /// Topics at first.
    pub(super) fn n_topics(&self) -> usize {
        self.a.len()
    }

    /// Size of the vocabulary.
    pub(super) fn n_words(&self) -> usize {
        self.topics.n_words()
    }

    /// φ at its mean for a sweep over the tokens.
    pub(super) fn weights(&mut self, counts: &[u32]) -> TopicWeights<'_> {
        self.topics.update(counts, TopicStep::Mean, self.key);
        let Topics { weights, scale, .. } = &self.topics;
        let a = PseudoCounts::shared(&self.a);
        TopicWeights { a, weights, scale, rates: None, bursts: None }
    }

    /// Merges topics until as many are left as were asked for: the number that each of those at first
    /// has then.
    pub(super) fn merge(&mut self, counts: &[u32], observer: &dyn Observer) -> Result<Vec<u16>> {
        self.topics.update(counts, TopicStep::Mean, self.key);
        let mut merger = Merger::new(counts, &self.topics.n_tokens);
        while merger.n_topics() > self.n_topics {
            let surplus = merger.n_topics() - self.n_topics;
            // The best merger depends on the mergers before.
            merger.merge(surplus.div_ceil(MERGERS_SHARE), self.priors.beta, observer)?;
        }
        Ok(merger.numbers())
    }
}

/// ln p(words | topics of all tokens) after the mergers.
pub(super) fn ln_words(counts: &[u32], n_topics: usize, priors: Priors) -> Result<f64> {
    let mut topics = Topics::new(counts.len() / n_topics, n_topics, priors.beta)?;
    topics.update(counts, TopicStep::Mean, Position::Merged { run: 0 }.key(0));
    Ok(topics.ln_words(counts))
}

/// New numbers of topics with so many tokens each, by which the largest has the largest parameter,
/// and so on.
pub(super) fn numbers_by_size(n_tokens: &[u64], alpha: &[f64]) -> Vec<u16> {
    if alpha.windows(2).all(|pair| pair[0].to_bits() == pair[1].to_bits()) {
        return (0..alpha.len()).map(|topic| topic as u16).collect();
    }
    let mut by_size: Vec<usize> = (0..alpha.len()).collect();
    by_size.sort_by_key(|&topic| std::cmp::Reverse(n_tokens[topic]));
    let mut by_parameter: Vec<usize> = (0..alpha.len()).collect();
    by_parameter.sort_by(|&i, &j| alpha[j].total_cmp(&alpha[i]));
    let mut numbers = vec![0u16; alpha.len()];
    for (from, to) in by_size.into_iter().zip(by_parameter) {
        numbers[from] = to as u16;
    }
    numbers
}
