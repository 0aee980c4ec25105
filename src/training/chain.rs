//! A chain of Gibbs sampling: topics of all tokens, φ and the other parameters in turn.

use super::bursts::{BurstState, RepeatedWords};
use super::globals::{DocumentTotals, Globals, Swept, WordCounts};
use super::kept::{KeptSums, PosteriorMeans};
use super::limits::check_finite;
use super::schedule::{Schedule, TopicStep};
use super::start::{TopicStart, find_topics};
use super::sweeps::{BurstCounts, ExposedTokens, SweptTokens, TopicWeights};
use super::tokens::{ChainState, FirstTopics, Position, Tokens};
use crate::control::Observer;
use crate::error::{Error, Result, array_of, check_all, check_length, room_for};
use crate::rng::{Key, Purpose};

/// A chain between two sweeps.
pub struct Chain<T> {
    globals: Box<dyn Globals>,
    tokens: T,
    schedule: Schedule,
    /// Tokens of every word in each topic, words x topics; empty where they are freed.
    counts: Vec<u32>,
    /// Tokens of every word that opened tables in each topic, where some topic is bursty; else empty.
    tables: Vec<u32>,
    n_kept: u64,
    kept: Option<KeptSums>,
    /// Coefficients of covariates and ln of learned concentrations of every sweep after the burn-in, one
    /// after the other: intervals need more draws than means of topics, and these are small.
    kept_coefficients: Vec<f64>,
}

impl<T: Tokens> Chain<T> {
    /// A chain from the topics that `start` finds, or from uniform ones.
    ///
    /// `begun` is the state of a start that was broken off.
    ///
    /// # Errors
    /// The errors of [`find_topics`]; [`Error::Memory`] where there is no room for the counts.
    pub fn new(
        globals: Box<dyn Globals>,
        tokens: T,
        schedule: Schedule,
        start: Option<&TopicStart>,
        begun: Option<&ChainState>,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let mut chain = Chain::at(globals, tokens, schedule)?;
        if let Some(start) = start {
            chain.counts = find_topics(&mut chain.tokens, start, schedule.seed, begun, observer)?;
        } else {
            let at = Position::Chain { sweep: 0 };
            let topics = FirstTopics::new(chain.n_topics(), at.key(schedule.seed));
            chain.tokens.draw_first(at, topics)?;
            chain.count(at)?;
        }
        if chain.is_bursty() {
            chain.tables.clone_from(&chain.counts);
        }
        chain.update_topics();
        chain.tokens.commit(&chain.state(), None)?;
        Ok(chain)
    }

    /// The chain in an earlier state, whose sum over kept sweeps is given, too.
    ///
    /// # Errors
    /// Values outside their domain, or of another number of topics.
    pub fn resumed(
        globals: Box<dyn Globals>,
        tokens: T,
        schedule: Schedule,
        state: &ChainState,
        kept_sum: Option<Vec<f64>>,
    ) -> Result<Self> {
        let Position::Chain { sweep } = state.position else {
            let (name, domain) = ("position of the state", "in the chain");
            return Err(Error::Parameter { name, index: 0, value: 0.0, domain });
        };
        let mut chain = Chain::at(globals, tokens, schedule)?;
        let n_others = chain.globals.expected().len() + chain.drawn_concentrations().len();
        let sizes = [chain.globals.topics().n_words(), chain.n_topics(), n_others];
        chain.n_kept = state.n_kept;
        chain.kept = match kept_sum.map(|sum| KeptSums::of_flat(&sum, sizes)) {
            None if state.n_kept == 0 => None,
            Some(Some(kept)) if state.n_kept > 0 => Some(kept),
            _ => {
                let (name, value) = ("kept sweeps of the state", state.n_kept as f64);
                let domain = "the number of sweeps whose sums it holds, for these words and topics";
                return Err(Error::Parameter { name, index: 0, value, domain });
            }
        };
        chain.count(state.position)?;
        let parameters = chain.restore_bursts(&state.parameters)?;
        chain.globals.restore(sweep, parameters)?;
        chain.update_topics();
        Ok(chain)
    }

    /// The same chain with the coefficients and ln of learned concentrations of its sweeps after the
    /// burn-in.
    ///
    /// # Errors
    /// Another number of them than so many sweeps have; values that are not finite.
    pub fn with_kept_coefficients(mut self, coefficients: Vec<f64>) -> Result<Self> {
        let n_sweeps = self.n_sweeps().saturating_sub(self.schedule.burn_in);
        let n_each = self.globals.coefficients().len() + self.drawn_concentrations().len();
        let expected = n_sweeps as usize * n_each;
        check_finite("coefficients of the state", &coefficients, expected)?;
        self.kept_coefficients = coefficients;
        Ok(self)
    }

    fn at(globals: Box<dyn Globals>, tokens: T, schedule: Schedule) -> Result<Self> {
        let n_counts = globals.topics().n_cells();
        let n_documents = tokens.lengths().len();
        let found = globals.pseudo_counts().n_documents().unwrap_or(n_documents);
        check_length("documents with covariates", found, n_documents)?;
        let counts = room_for("counts of words by topic", n_counts)?;
        let mut tables = vec![];
        if globals.topics().bursts.is_some() {
            check_lengths(tokens.lengths())?;
            tables = array_of("tables of words by topic", n_counts, 0)?;
        }
        let (n_kept, kept, kept_coefficients) = (0, None, vec![]);
        Ok(Chain { globals, tokens, schedule, counts, tables, n_kept, kept, kept_coefficients })
    }

    /// Number of topics.
    pub fn n_topics(&self) -> usize {
        self.globals.pseudo_counts().n_topics()
    }

    /// Counts the topics of all tokens at a position.
    fn count(&mut self, at: Position) -> Result<()> {
        self.counts.resize(self.globals.topics().n_cells(), 0);
        self.tokens.count(at, self.globals.pseudo_counts().n_topics(), &mut self.counts)
    }

    /// Sets φ of the current state, given the counts.
    fn update_topics(&mut self) {
        let step = self.last_step();
        self.globals.update_topics(word_counts(&self.counts, &self.tables), step);
    }

    /// How the topics of the current state have been set.
    fn last_step(&self) -> TopicStep {
        let before = self.n_sweeps().checked_sub(1);
        before.map_or(TopicStep::Mean, |n_sweeps| self.schedule.step(n_sweeps, self.is_bursty()))
    }

    /// Makes the counts and φ of the current state again, if [`mean`](Self::mean) has freed them.
    ///
    /// # Errors
    /// The errors of the tokens.
    pub fn restore(&mut self) -> Result<()> {
        if self.counts.is_empty() {
            self.count(Position::Chain { sweep: self.n_sweeps() })?;
            self.update_topics();
        }
        Ok(())
    }

    /// The topics of all tokens.
    pub fn tokens(&self) -> &T {
        &self.tokens
    }

    /// Tokens of every word in each topic, words x topics; empty where [`mean`](Self::mean) has freed them.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// The part of [`counts`](Self::counts) that φ rests on: tokens that open tables of bursty topics.
    pub fn tables(&self) -> &[u32] {
        word_counts(&self.counts, &self.tables).tables
    }

    /// Parameters of the current state beside φ, one array after the other; ln of learned
    /// concentrations come last.
    pub fn parameters(&self) -> Vec<f64> {
        [&self.globals.parameters(), self.drawn_concentrations()].concat()
    }

    fn is_bursty(&self) -> bool {
        self.globals.topics().bursts.is_some()
    }

    /// ln of the concentrations of topics, where they are learned.
    fn drawn_concentrations(&self) -> &[f64] {
        self.globals.topics().bursts.as_ref().map_or(&[], BurstState::drawn)
    }

    /// Takes up tables and concentrations from the end of a state's parameters; returns the others.
    fn restore_bursts<'a>(&mut self, parameters: &'a [f64]) -> Result<&'a [f64]> {
        let (n_drawn, n_tables) = (self.drawn_concentrations().len(), self.tables.len());
        let n_others = parameters.len().saturating_sub(n_drawn + n_tables);
        check_length("parameters of the state", parameters.len(), n_others + n_drawn + n_tables)?;
        let (others, own) = parameters.split_at(n_others);
        let (ln_s, tables) = own.split_at(n_drawn);
        if let Some(bursts) = &mut self.globals.common_mut().topics.bursts {
            bursts.restore(ln_s)?;
        }
        for ((to, &n), &most) in self.tables.iter_mut().zip(tables).zip(&self.counts) {
            let (name, value) = ("tables of the state", f64::from(most));
            check_all(name, &[n], "whole, at most the tokens", |n| {
                n.fract() == 0.0 && (0.0..=value).contains(&n)
            })?;
            *to = n as u32;
        }
        Ok(others)
    }

    /// φ of the current state times a factor of the topic, word-major; empty where [`mean`](Self::mean) has
    /// freed it.
    pub fn weights(&self) -> Vec<f64> {
        self.globals.topics().scaled()
    }

    /// The current state; the topics of tokens and the sum over kept sweeps are apart.
    pub fn state(&self) -> ChainState {
        let tables = self.tables.iter().map(|&n| f64::from(n));
        ChainState {
            position: Position::Chain { sweep: self.n_sweeps() },
            best: None,
            parameters: self.parameters().into_iter().chain(tables).collect(),
            n_kept: self.n_kept,
        }
    }

    /// Sums of φ, φ² and the other parameters over the kept sweeps, in one array; few numbers where most
    /// words have no tokens in most topics.
    pub fn kept_sum(&self) -> Option<Vec<f64>> {
        self.kept.as_ref().map(KeptSums::flat)
    }

    /// Coefficients of covariates and ln of learned concentrations of every sweep after the burn-in, one
    /// after the other.
    pub fn kept_coefficients(&self) -> &[f64] {
        &self.kept_coefficients
    }

    /// Sweeps done.
    pub fn n_sweeps(&self) -> u64 {
        self.globals.common().n_sweeps
    }

    /// Samples until there are `until` sweeps in all, at most those of the schedule; `look` is
    /// given the number of sweeps and ln of the joint density every `look_every` sweeps, and at the
    /// end of the schedule. Ends early when the observer asks to stop.
    ///
    /// A run in parts is the same, to the bit, as one in one go.
    ///
    /// # Errors
    /// The errors of the tokens; a stop is not an error.
    pub fn run(
        &mut self,
        until: u64,
        look_every: u64,
        observer: &dyn Observer,
        mut look: impl FnMut(u64, f64),
    ) -> Result<()> {
        let (last, mut is_seen) = (self.schedule.max_iter, false);
        while self.n_sweeps() < until.min(last) {
            let swept = self.sweep(observer).and_then(|()| {
                let n_sweeps = self.n_sweeps();
                observer.advance(1);
                is_seen = n_sweeps.is_multiple_of(look_every) || n_sweeps == last;
                if is_seen { self.ln_joint().map(|value| look(n_sweeps, value)) } else { Ok(()) }
            });
            match swept {
                Err(Error::Stopped) => return Ok(()),
                result => result?,
            }
        }
        if !is_seen && self.n_sweeps() == last {
            look(last, self.ln_joint()?);
        }
        Ok(())
    }

    /// One sweep over all tokens and all parameters.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the observer asks to stop: the state is then that of the sweep before,
    /// but for the topics of tokens in memory, some of which have been drawn again.
    pub fn sweep(&mut self, observer: &dyn Observer) -> Result<()> {
        self.restore()?;
        let (n_sweeps, seed) = (self.n_sweeps(), self.schedule.seed);
        let to = Position::Chain { sweep: n_sweeps + 1 };
        let step = self.schedule.step(n_sweeps, self.is_bursty());
        let (tables, exposed) = self.globals.needs();
        let is_bursty = self.is_bursty() && !self.schedule.is_plain(n_sweeps);
        let factors = factors(&*self.globals);
        let weights =
            topic_weights(&*self.globals, is_bursty.then_some((&factors[..], self.last_step())));
        let SweptTokens { n_tables, bursts } =
            self.tokens.sweep(to, weights, seed, tables, &mut self.counts, observer)?;
        self.seat(bursts, n_sweeps + 1);
        let a = self.globals.pseudo_counts();
        check_length("tables of topics", n_tables.len(), a.n_groups() * a.n_topics())?;
        let exposed = if exposed { self.exposed(to)? } else { vec![] };
        let (n_tables, lengths, exposed) = (&n_tables[..], self.tokens.lengths(), &exposed[..]);
        let counts = word_counts(&self.counts, &self.tables);
        self.globals.update(counts, Swept { n_tables, lengths, exposed }, step);
        let keeps = self.schedule.keeps(n_sweeps + 1);
        if keeps {
            let kept = self.kept.take();
            self.kept = Some(self.added(kept));
            self.n_kept += 1;
        }
        if n_sweeps >= self.schedule.burn_in {
            let drawn = [self.globals.coefficients(), self.drawn_concentrations()].concat();
            self.kept_coefficients.extend(drawn);
        }
        if self.tokens.keeps_states() {
            let kept_sum = if keeps { self.kept_sum() } else { None };
            self.tokens.commit(&self.state(), kept_sum.as_deref())?;
        }
        Ok(())
    }

    /// Draws concentrations given φ and the topics of all tokens, then the tables.
    fn seat(&mut self, found: BurstCounts, n_sweeps: u64) {
        let n_topics = self.n_topics();
        let Some(bursts) = &mut self.globals.common_mut().topics.bursts else { return };
        let key = Key::new(self.schedule.seed, Purpose::Parameters).unit(n_sweeps);
        let words = RepeatedWords::new(found, n_topics);
        if n_sweeps > self.schedule.n_warm() {
            bursts.update(&words, key.unit(u64::MAX - 3));
        }
        self.tables.copy_from_slice(&self.counts);
        for (topic, word, joined) in bursts.joined(&words, key.unit(u64::MAX - 4)) {
            self.tables[word as usize * n_topics + topic] -= joined;
        }
    }

    /// Posterior means over the kept sweeps; of the last state where none was kept.
    ///
    /// The counts and φ of the current state are freed first if `release`: they are most of the memory of
    /// a chain of thousands of topics. [`restore`](Self::restore) or the next sweep makes them
    /// again.
    ///
    /// # Errors
    /// [`Error::Memory`] where there is no room for them.
    pub fn mean(&mut self, release: bool) -> Result<PosteriorMeans> {
        let sums = if let Some(sums) = self.kept.take() {
            sums
        } else {
            self.restore()?;
            self.added(None)
        };
        if release {
            self.counts = vec![];
            self.globals.release_topics();
        }
        let means = sums.means(self.n_kept.max(1));
        self.kept = (self.n_kept > 0).then_some(sums);
        means
    }

    /// ln of the joint density of the current state, up to a constant.
    ///
    /// # Errors
    /// The errors of the tokens.
    pub fn ln_joint(&mut self) -> Result<f64> {
        self.restore()?;
        let at = Position::Chain { sweep: self.n_sweeps() };
        let ln_urns = self.tokens.ln_urns(at, self.globals.pseudo_counts())?;
        let exposed = &self.exposed(at)?[..];
        let ln_words = match &self.globals.topics().bursts {
            Some(bursts) => {
                let factors = factors(&*self.globals);
                let weights = topic_weights(&*self.globals, None);
                let ln_words =
                    self.tokens.ln_bursts(weights, bursts.weights(&factors, TopicStep::Draw))?;
                ln_words.value() + bursts.ln_prior()
            }
            None => self.globals.topics().ln_words(&self.counts),
        };
        let lengths = self.tokens.lengths();
        Ok(self.globals.ln_joint(DocumentTotals { ln_urns, ln_words, lengths, exposed }))
    }

    /// Tokens of every topic by exposure, checked; none where documents have no exposures.
    fn exposed(&mut self, at: Position) -> Result<Vec<ExposedTokens>> {
        let (n_topics, n_exposures) = (self.n_topics(), self.globals.n_exposures());
        let parts = if n_exposures > 0 { self.tokens.exposed(at, n_topics)? } else { vec![] };
        parts.iter().try_for_each(|part| part.check(n_topics, n_exposures))?;
        Ok(parts)
    }

    /// The expected parameters, added to sums if they are given.
    fn added(&self, sums: Option<KeptSums>) -> KeptSums {
        let topics = self.globals.topics();
        let mut sums = sums.unwrap_or_else(|| KeptSums::new(topics.n_words(), self.n_topics()));
        let others = [&self.globals.expected(), self.drawn_concentrations()].concat();
        sums.add(topics, self.tables(), &others);
        sums
    }
}

/// Topics and pseudo-counts for a sweep over the tokens; concentrations where factors are given, and how
/// the topics have been set.
fn topic_weights<'a>(
    globals: &'a dyn Globals,
    factors: Option<(&'a [f64], TopicStep)>,
) -> TopicWeights<'a> {
    let topics = globals.topics();
    let bursts = topics.bursts.as_ref().zip(factors);
    TopicWeights {
        a: globals.pseudo_counts(),
        weights: &topics.weights,
        scale: &topics.scale,
        rates: globals.rates(),
        bursts: bursts.map(|(bursts, (factors, step))| bursts.weights(factors, step)),
    }
}

/// Urn weights of words in each topic over their probabilities φ.
fn factors(globals: &dyn Globals) -> Vec<f64> {
    globals.factors().map_or_else(|| vec![1.0; globals.pseudo_counts().n_topics()], <[f64]>::to_vec)
}

/// Counts of tokens, and of tables where there are any.
fn word_counts<'a>(tokens: &'a [u32], tables: &'a [u32]) -> WordCounts<'a> {
    WordCounts { tokens, tables: if tables.is_empty() { tokens } else { tables } }
}

/// Checks that the tokens of documents fit into 16 bits, as bursty topics need.
fn check_lengths(lengths: &[u32]) -> Result<()> {
    let Some(index) = lengths.iter().position(|&n| n > u32::from(u16::MAX)) else { return Ok(()) };
    let (name, domain) = ("tokens of a document of bursty topics", "at most 65535");
    Err(Error::Parameter { name, index, value: f64::from(lengths[index]), domain })
}
