//! Variational expectation-maximisation of latent Dirichlet allocation (Blei, Ng and Jordan 2003,
//! "Latent Dirichlet Allocation", section 5.3), from scratch or grown from a smaller model.
//!
//! The topics φ are a point, q(θ_d) = Dirichlet(α + n_d) with n_dk = Σ_w n_dw q(z = k | d, w), and
//! q(z) is free. With q(θ) at its optimum given q(z), the bound of a document is
//!
//! ```text
//! ln Γ(α_+)/Γ(α_+ + N) + Σ_k ln Γ(α_k + n_k)/Γ(α_k) + Σ_w n_w Σ_k q_wk ln(φ_kw / q_wk)
//! ```
//!
//! and every step raises it, with ln of the prior density of φ where there is one: q(z) by document,
//! then φ and α given the expected counts. It is a sum
//! over the topics that a document uses, so a topic of no tokens takes nothing from it, and a
//! model with such topics added has the bound that it had without them.

mod document;
mod expectation;
mod growth;
mod prior;

use rayon::prelude::*;

use crate::control::Observer;
use crate::counts::CountMatrix;
use crate::error::{Error, Result, array_of, check_all, check_length, check_positive};
use crate::training::limits::check_n_topics;
use crate::training::start::{TopicStart, find_topics};
use crate::training::tokens::{MemoryTokens, Position, Tokens};
use crate::urn::LEAST_PRIOR;

use document::Effort;
use expectation::{Chunks, ExpectedCounts};

/// Updates of a document between two updates of the topics: its topics go on where they were.
const EFFORT: Effort = Effort { most: 10, change: 1e-3 };

/// Updates of a document from no knowledge, to learn the bound of a model that is given.
const FULL_EFFORT: Effort = Effort { most: 100, change: 1e-6 };

/// Bounds of the pseudo-count of a word in a topic while topics are found.
const LEAST_START_PRIOR: f64 = 0.01;
const MOST_START_PRIOR: f64 = 1.0;

/// Probabilities of a unit of parallel work on the prior of the topics.
const PRIOR_CHUNK: usize = 1 << 14;

/// Least probability of a word, under the topic that likes it best, in a model to start from.
const LEAST_PROBABILITY: f64 = 1e-40;

/// Settings of EM: which parameters it learns, where it starts, when it ends.
#[derive(Debug, Clone, PartialEq)]
pub struct EmSettings {
    /// α, one value a topic: where it starts, or its fixed value.
    pub alpha: Vec<f64>,
    /// Whether α is learned.
    pub learned: bool,
    /// Added to every expected count of a word in a topic; 0 for maximum likelihood.
    pub topic_word_prior: f64,
    /// Iterations at most.
    pub max_iter: u64,
    /// Change of what EM climbs, relative to the bound, below which it ends.
    pub tolerance: f64,
    /// Sweeps of every start without a model to grow from.
    pub start_sweeps: u64,
    /// Starts, of which the one with the largest joint density is taken.
    pub n_starts: u64,
    /// Seed of the start, or of the documents that new topics start from.
    pub seed: u64,
}

/// A model to grow from, of at most as many topics.
#[derive(Debug, Clone, PartialEq)]
pub struct EmStart {
    /// φ, word-major.
    pub phi: Vec<f64>,
    /// α.
    pub alpha: Vec<f64>,
    /// A bound that this model is known to have on the documents; `-inf` where none is known.
    pub bound: f64,
}

/// Result of EM.
#[derive(Debug, Clone, PartialEq)]
pub struct EmFit {
    /// φ, word-major.
    pub phi: Vec<f64>,
    /// α.
    pub alpha: Vec<f64>,
    /// Lower bound of ln p(words | φ, α), in nats; `-inf` where a stop came before the first.
    pub bound: f64,
    /// The quantity that EM climbs, at the start and after every iteration: the bound, and ln of the
    /// prior density of the topics, Dirichlet(1 + `topic_word_prior`), relative to its maximum.
    pub trace: Vec<f64>,
    /// Expected tokens of each topic.
    pub n_tokens: Vec<f64>,
}

/// Fits LDA by variational EM, from documents or, where one is given, from a smaller model.
///
/// A model grown from another has a bound that is never below that of the other: where EM does
/// not reach it, the result is the smaller model with topics of the least prior added. Ends early,
/// with what it has, when the observer asks to stop; `advance` counts iterations.
///
/// Cost of an iteration: cells x topics x up to 10 updates, less for topics that a document does
/// not use. Memory: documents x topics single-precision numbers, which hold each document's
/// expected counts from one iteration to the next, and three times words x topics doubles.
///
/// # Errors
/// No topics or more than 65,535, or fewer than those of `start`; values outside their domain; a
/// word of the documents that no topic of `start` can produce; too little memory.
pub fn fit_em(
    counts: &CountMatrix,
    start: Option<EmStart>,
    settings: &EmSettings,
    observer: &dyn Observer,
) -> Result<EmFit> {
    check(settings)?;
    let chunks = Chunks::new(counts);
    let Some(start) = start else {
        return Em::from_tokens(&chunks, settings, observer)?.run(settings, observer);
    };
    check_start(counts, &start, settings)?;
    let mut em = Em::uniform(&chunks, start.phi, start.alpha)?;
    let (known, stopped) = match em.expectation(FULL_EFFORT, observer) {
        Err(Error::Stopped) => (start.bound, true),
        bound => (bound?.max(start.bound), false),
    };
    let seed = em.padded(settings.alpha.len(), known)?;
    if stopped {
        return Ok(seed);
    }
    let fit = em.grown(settings)?.run(settings, observer)?;
    Ok(if fit.bound >= known { fit } else { seed })
}

/// A model, and the mean field of every document.
struct Em<'c, 'd> {
    chunks: &'c Chunks<'d>,
    /// φ, word-major.
    phi: Vec<f64>,
    alpha: Vec<f64>,
    /// Expected tokens of each topic in each document: α + these are the parameters of q(θ). To
    /// round them to single precision moves the bound by the square of the rounding.
    doc_topic: Vec<f32>,
    /// Bound of each document.
    ln_documents: Vec<f64>,
    /// Expected tokens of each word in each topic, word-major.
    word_topic: Vec<f64>,
    /// φ before the last update.
    previous: Vec<f64>,
}

impl<'c, 'd> Em<'c, 'd> {
    /// All topics alike in all documents, but for those of the least prior: none of them.
    fn uniform(chunks: &'c Chunks<'d>, phi: Vec<f64>, alpha: Vec<f64>) -> Result<Self> {
        let (counts, n_topics) = (chunks.counts(), alpha.len());
        let n_cells = counts.n_documents() * n_topics;
        let mut doc_topic = array_of("expected tokens of all documents", n_cells, 0.0f32)?;
        let n_used = alpha.iter().filter(|&&alpha| alpha > LEAST_PRIOR).count().max(1) as f32;
        for (row, document) in doc_topic.chunks_exact_mut(n_topics).zip(counts.documents()) {
            let share = document.n_tokens() as f32 / n_used;
            for (n, &alpha) in row.iter_mut().zip(&alpha) {
                *n = if alpha > LEAST_PRIOR { share } else { 0.0 };
            }
        }
        Ok(Em {
            chunks,
            doc_topic,
            ln_documents: vec![0.0; counts.n_documents()],
            word_topic: array_of("expected tokens of all words", phi.len(), 0.0)?,
            previous: array_of("topic-word probabilities", phi.len(), 0.0)?,
            phi,
            alpha,
        })
    }

    /// The state that follows from topics of all tokens, as a sampler has found them.
    fn from_tokens(
        chunks: &'c Chunks<'d>,
        settings: &EmSettings,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let (counts, n_topics) = (chunks.counts(), settings.alpha.len());
        let beta = settings.topic_word_prior.clamp(LEAST_START_PRIOR, MOST_START_PRIOR);
        let (n_words, alpha) = (counts.n_words(), settings.alpha.clone());
        let (n_sweeps, n_starts) = (settings.start_sweeps, settings.n_starts);
        let start = TopicStart { n_words, alpha, beta, n_sweeps, n_starts };
        let mut tokens = MemoryTokens::new(counts)?;
        let by_word = match find_topics(&mut tokens, &start, settings.seed, None, observer) {
            Err(Error::Stopped) => folded(&mut tokens, counts.n_words(), n_topics)?,
            found => found?,
        };
        let phi = array_of("topic-word probabilities", by_word.len(), 0.0)?;
        let mut em = Self::uniform(chunks, phi, settings.alpha.clone())?;
        em.word_topic.iter_mut().zip(by_word).for_each(|(to, n)| *to = f64::from(n));
        em.doc_topic.fill(0.0);
        let topics = tokens.topics();
        let mut rest = &topics[..];
        for (row, document) in em.doc_topic.chunks_exact_mut(n_topics).zip(counts.documents()) {
            let own = rest.split_off(..document.n_tokens() as usize).unwrap_or_default();
            own.iter().for_each(|&topic| row[usize::from(topic)] += 1.0);
        }
        em.update_topics(beta);
        Ok(em)
    }

    /// The same model and as many topics more as the settings ask for: each starts from a document
    /// drawn by what the model loses on it, and takes an equal share of all documents.
    fn grown(self, settings: &EmSettings) -> Result<Self> {
        let counts = self.chunks.counts();
        let (n_old, n_topics) = (self.alpha.len(), settings.alpha.len());
        let losses: Vec<f64> = (counts.documents().zip(&self.ln_documents))
            .map(|(document, ln_value)| (growth::ln_most(document) - ln_value).max(0.0))
            .collect();
        let drawn = growth::draw_documents(&losses, n_topics - n_old, settings.seed);
        let phi = growth::with_topics(counts, &self.phi, n_old, &drawn)?;
        let mut grown = Self::uniform(self.chunks, phi, settings.alpha.clone())?;
        let share = n_old as f32 / n_topics as f32;
        let rows = self.doc_topic.chunks_exact(n_old);
        for (to, from) in grown.doc_topic.chunks_exact_mut(n_topics).zip(rows) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = share * from);
        }
        Ok(grown)
    }

    /// The model as it is, with topics of the least prior that add nothing to it.
    fn padded(&self, n_topics: usize, bound: f64) -> Result<EmFit> {
        let n_old = self.alpha.len();
        let added = vec![None; n_topics - n_old];
        let phi = growth::with_topics(self.chunks.counts(), &self.phi, n_old, &added)?;
        let mut alpha = self.alpha.clone();
        alpha.resize(n_topics, LEAST_PRIOR);
        let mut n_tokens = self.n_tokens();
        n_tokens.resize(n_topics, 0.0);
        Ok(EmFit { phi, alpha, bound, trace: vec![bound], n_tokens })
    }

    fn run(mut self, settings: &EmSettings, observer: &dyn Observer) -> Result<EmFit> {
        let mut bound = match self.expectation(EFFORT, observer) {
            Err(Error::Stopped) => f64::NEG_INFINITY,
            bound => bound?,
        };
        let prior = settings.topic_word_prior;
        let mut climbed = bound + self.ln_prior(prior);
        let mut trace = vec![climbed];
        let mut n_tokens = self.n_tokens();
        while trace.len() as u64 <= settings.max_iter && !observer.stopped() {
            let alpha = self.alpha.clone();
            self.update_topics(prior);
            if settings.learned {
                prior::learn(&mut self.alpha, self.chunks.counts(), &self.doc_topic);
            }
            let next = match self.expectation(EFFORT, observer) {
                Err(Error::Stopped) => {
                    (self.phi, self.alpha) = (self.previous, alpha);
                    break;
                }
                next => next?,
            };
            n_tokens = self.n_tokens();
            bound = next;
            let before = std::mem::replace(&mut climbed, bound + self.ln_prior(prior));
            trace.push(climbed);
            observer.advance(1);
            let change = (climbed - before).abs();
            if change <= settings.tolerance * bound.abs() {
                break;
            }
        }
        Ok(EmFit { phi: self.phi, alpha: self.alpha, bound, trace, n_tokens })
    }

    /// Fits the mean field of all documents; returns the bound.
    fn expectation(&mut self, effort: Effort, observer: &dyn Observer) -> Result<f64> {
        let mut sums = ExpectedCounts {
            doc_topic: &mut self.doc_topic,
            ln_documents: &mut self.ln_documents,
            word_topic: &mut self.word_topic,
        };
        self.chunks.fit(&self.phi, &self.alpha, effort, &mut sums, observer)
    }

    /// Sets φ to the expected tokens and `prior` added to each.
    ///
    /// A topic of no tokens keeps its words where nothing is added to them.
    fn update_topics(&mut self, prior: f64) {
        let n_topics = self.alpha.len();
        let n_words = self.chunks.counts().n_words() as f64;
        let totals: Vec<f64> = self.n_tokens().iter().map(|n| n + n_words * prior).collect();
        std::mem::swap(&mut self.phi, &mut self.previous);
        let rows = self.phi.chunks_exact_mut(n_topics).zip(self.previous.chunks_exact(n_topics));
        for ((row, before), tokens) in rows.zip(self.word_topic.chunks_exact(n_topics)) {
            for (k, phi) in row.iter_mut().enumerate() {
                *phi = if totals[k] > 0.0 { (tokens[k] + prior) / totals[k] } else { before[k] };
            }
        }
    }

    /// ln of the density of the topics under Dirichlet(1 + `prior`), relative to its maximum.
    fn ln_prior(&self, prior: f64) -> f64 {
        if prior == 0.0 {
            return 0.0;
        }
        let n_words = self.chunks.counts().n_words() as f64;
        let ln_shares = |phi: &[f64]| phi.iter().map(|phi| libm::log(n_words * phi)).sum();
        // Chunks of one size: the sum does not depend on the threads.
        let sums: Vec<f64> = self.phi.par_chunks(PRIOR_CHUNK).map(ln_shares).collect();
        prior * sums.iter().sum::<f64>()
    }

    fn n_tokens(&self) -> Vec<f64> {
        let mut totals = vec![0.0; self.alpha.len()];
        for row in self.word_topic.chunks_exact(self.alpha.len()) {
            totals.iter_mut().zip(row).for_each(|(total, n)| *total += n);
        }
        totals
    }
}

/// Puts together whatever topics of a start that was stopped are too many: counts of words by topic.
fn folded(tokens: &mut impl Tokens, n_words: usize, n_topics: usize) -> Result<Vec<u32>> {
    let at = Position::Chain { sweep: 0 };
    let numbers: Vec<u16> = (0..=u16::MAX).map(|topic| topic % n_topics as u16).collect();
    tokens.renumber(at, at, &numbers)?;
    tokens.counted(at, n_words, n_topics)
}

fn check(settings: &EmSettings) -> Result<()> {
    check_n_topics(settings.alpha.len())?;
    check_positive("doc_topic_prior", &settings.alpha)?;
    let (prior, tolerance) = (settings.topic_word_prior, settings.tolerance);
    check_all("topic_word_prior", &[prior], "between 0 and 1e100", |x| (0.0..=1e100).contains(&x))?;
    let valid = |x: f64| x >= 0.0 && x.is_finite();
    check_all("tol", &[tolerance], "finite and not negative", valid)
}

fn check_start(counts: &CountMatrix, start: &EmStart, settings: &EmSettings) -> Result<()> {
    let n_old = start.alpha.len();
    check_n_topics(n_old)?;
    check_positive("init", &start.alpha)?;
    if n_old > settings.alpha.len() {
        let (found, expected) = (n_old, settings.alpha.len());
        return Err(Error::Length { name: "init", found, expected });
    }
    check_length("init", start.phi.len(), counts.n_words() * n_old)?;
    check_all("init", &start.phi, "between 0 and 1", |x| (0.0..=1.0).contains(&x))?;
    for (doc_ix, document) in counts.documents().enumerate() {
        let impossible = |&&word: &&u32| {
            let row = &start.phi[word as usize * n_old..][..n_old];
            row.iter().all(|&phi| phi < LEAST_PROBABILITY)
        };
        if let Some(&word) = document.words().iter().find(impossible) {
            return Err(Error::Impossible { document: doc_ix, word });
        }
    }
    Ok(())
}
