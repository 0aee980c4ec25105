//! Particle filters over a document's tokens, plain and with a lookahead.
//!
//! The filter passes through the twisted targets
//! `γ_l(k_1..k_l) = Π_{m<=l} (a + n) q · h_l(n)`, `h_l(n) = Π_k Γ(a_k + n_k + f_k)/Γ(a_k + n_k)`,
//! f being a guess of the balls that the tokens after l will add, and `h_N = 1`. The locally
//! optimal proposal is an urn with those balls added, `P(k) ∝ (a_k + n_k + f_k) q_k`; a particle's
//! weight is that sum times `h_l(n)/h_{l-1}(n)`, n before the draw. f = 0 is the plain filter. Any
//! f gives an unbiased estimate of Z, resampling included.
//!
//! Three things make a step cheap. All runs go through the tokens together and share what does
//! not depend on a particle. The sum splits into a part without n, whose cumulative sums serve
//! every particle, and one over the few topics that the particle has used. And h changes only in
//! the topics that may have produced the token.

mod lookahead;

use rand::{Rng, RngExt};

use lookahead::Lookahead;

use crate::control::Observer;
use crate::error::{Result, room_for};
use crate::filter::{self, FilterTarget, Options, Population, Replicate};
use crate::math::{Cumulative, LogSum, Move, Resampling, ln_gamma_ratio, ln_rising};
use crate::urn::{Bursts, LocalUrn};

/// Bytes that a particle takes for every topic of its document.
pub(super) const BYTES_PER_TOPIC: usize = 14;

/// Particles are resampled when fewer than half of them are effective.
const OPTIONS: Options = Options { threshold: 0.5, resampling: Resampling::Systematic };

/// ln Ẑ of `n_runs` independent filters of `n_particles` each.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
pub fn ln_urn_sums(
    urn: &LocalUrn,
    lookahead: bool,
    n_runs: usize,
    n_particles: usize,
    rng: &mut impl Rng,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    let population = Population::new(n_runs, n_particles, OPTIONS);
    filter(urn, lookahead, population, &[], rng, observer)
}

/// ln Ẑ of filters in each of which one particle follows given topics of all tokens, a draw of
/// their posterior: the mean of 1/Ẑ is 1/Z (conditional SMC; Andrieu, Doucet & Holenstein 2010).
///
/// `paths` has the topics of all tokens for each of the runs.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
pub fn ln_urn_sums_conditional(
    urn: &LocalUrn,
    lookahead: bool,
    paths: &[Vec<u16>],
    n_particles: usize,
    rng: &mut impl Rng,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    let references: Vec<usize> = paths.iter().map(|_| rng.random_range(0..n_particles)).collect();
    let population = Population::new(paths.len(), n_particles, OPTIONS).conditional(references);
    filter(urn, lookahead, population, paths, rng, observer)
}

/// Particles between two looks at the observer.
const POLL_EVERY: usize = 1 << 12;

/// Name of the arrays over all particles.
const PARTICLES: &str = "topics of all particles";

/// Takes all particles through all tokens.
fn filter(
    urn: &LocalUrn,
    lookahead: bool,
    mut population: Population<f64>,
    paths: &[Vec<u16>],
    rng: &mut impl Rng,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    let guess = if lookahead { Lookahead::new(urn, observer)? } else { Lookahead::none(urn) };
    let mut target = ParticleUrns::new(urn, &guess, paths, &population, observer)?;
    let n_tokens = target.tokens.len();
    filter::run(&mut target, &mut population, n_tokens, rng, observer)?;
    // Particles of equal weight are put right for the raised pseudo-counts.
    population.resample(&mut target, rng);
    Ok(target.ln_values(&population))
}

/// The urns of the particles of all runs, one run after the other.
struct ParticleUrns<'a, O> {
    urn: &'a LocalUrn,
    guess: &'a Lookahead,
    n_topics: usize,
    /// Particles of a run.
    n_particles: usize,
    /// Distinct word of each token in the order of visits, and the token's number in the document.
    tokens: Vec<(usize, usize)>,
    /// ln h_0(0).
    ln_start: f64,
    /// a + f, and the remaining tokens that still add to f.
    expected: Vec<f64>,
    pending: Vec<u64>,
    /// Topics of all tokens that the reference particle of every run follows; empty where there is
    /// none.
    paths: &'a [Vec<u16>],
    /// Balls n of each particle.
    balls: Vec<u32>,
    /// Topics with n > 0 of each particle, in order of first use.
    used: Vec<u16>,
    n_used: Vec<u16>,
    /// Tokens of the present word by topic, of each particle; empty where topics are not bursty.
    held: Vec<u32>,
    // Buffers of a step.
    darts: Vec<f64>,
    /// Per particle: cumulative sums of n q over its used topics.
    sums: Vec<f64>,
    cumulative: Cumulative,
    changes: Vec<FactorChange>,
    /// A step over many particles ends early, and unfinished, where this asks to stop.
    observer: &'a O,
}

/// How the step changes one topic's factor of h.
#[derive(Default)]
struct FactorChange {
    topic: usize,
    /// a + f before and after the token.
    before: f64,
    after: f64,
    lowest: u32,
    /// Γ(n + after)/Γ(n + before) for n = lowest, lowest + 1, ...
    ratios: Vec<f64>,
}

impl<O: Observer> Replicate for ParticleUrns<'_, O> {
    type Block = f64;

    fn replicate(&mut self, run: usize, _: &[f64], moves: &[Move]) {
        let (k, first) = (self.n_topics, run * self.n_particles);
        for &(to, from) in moves {
            let (from, to) = (first + from as usize, first + to as usize);
            self.balls.copy_within(from * k..(from + 1) * k, to * k);
            let n_used = usize::from(self.n_used[from]);
            self.used.copy_within(from * k..from * k + n_used, to * k);
            self.n_used[to] = self.n_used[from];
            if !self.held.is_empty() {
                self.held.copy_within(from * k..(from + 1) * k, to * k);
            }
        }
    }
}

impl<O: Observer> FilterTarget for ParticleUrns<'_, O> {
    fn extend(&mut self, step: usize, population: &mut Population<f64>, rng: &mut impl Rng) {
        let (cell, token) = self.tokens[step];
        self.look_ahead(cell);
        let q = self.urn.weights(cell);
        let fresh = self.cumulative.fill(&self.expected, q);
        // Any constant keeps the weights near 1; this one is the total number of balls.
        let all = step as f64 + self.expected.iter().sum::<f64>();
        if let Some(bursts) = self.urn.bursts() {
            if step == 0 || self.tokens[step - 1].0 != cell {
                self.held.fill(0);
            }
            self.weigh_bursty(bursts, cell, fresh, all.recip(), population.weights_mut(), rng);
        } else {
            self.weigh(q, fresh, all.recip(), population.weights_mut(), rng);
        }
        self.draw(token, q, population);
        population.scale(all.ln());
    }
}

impl<'a, O: Observer> ParticleUrns<'a, O> {
    fn new(
        urn: &'a LocalUrn,
        guess: &'a Lookahead,
        paths: &'a [Vec<u16>],
        population: &Population<f64>,
        observer: &'a O,
    ) -> Result<Self> {
        let n_topics = urn.n_topics();
        let n = population.weights().len();
        let mut expected = guess.pseudo_counts.clone();
        let mut pending = vec![0; n_topics];
        for (support, &count) in guess.support.iter().zip(urn.counts()) {
            for &(k, g) in support {
                expected[k] += f64::from(count) * g;
                pending[k] += u64::from(count);
            }
        }
        let ln_start = (expected.iter().zip(&guess.pseudo_counts))
            .filter(|(x, a)| x > a)
            .map(|(x, a)| ln_gamma_ratio(*a, x - a))
            .sum();
        let starts = urn.starts();
        let of_cell = |&cell: &usize| {
            let tokens = starts[cell]..starts[cell] + urn.counts()[cell] as usize;
            tokens.map(move |token| (cell, token))
        };
        let mut tokens = room_for("words of the tokens of a document", urn.n_tokens() as usize)?;
        tokens.extend(guess.order.iter().flat_map(of_cell));
        Ok(ParticleUrns {
            urn,
            guess,
            n_topics,
            n_particles: population.n_particles(),
            tokens,
            ln_start,
            expected,
            pending,
            paths,
            balls: filled(n * n_topics, 0, observer)?,
            used: filled(n * n_topics, 0, observer)?,
            n_used: vec![0; n],
            held: if urn.bursts().is_some() { filled(n * n_topics, 0, observer)? } else { vec![] },
            cumulative: Cumulative::new(n_topics),
            darts: vec![0.0; n],
            sums: filled(n * n_topics, 0.0, observer)?,
            changes: Vec::new(),
            observer,
        })
    }

    /// Updates the weights, and throws each particle's dart at its sum.
    ///
    /// Apart from `draw` so that nothing here waits for an unpredictable branch.
    fn weigh(
        &mut self,
        q: &[f64],
        fresh: f64,
        scale: f64,
        weights: &mut [f64],
        rng: &mut impl Rng,
    ) {
        let balls = self.balls.chunks_exact(self.n_topics);
        let used = self.used.chunks_exact(self.n_topics).zip(&self.n_used);
        let sums = self.sums.chunks_exact_mut(self.n_topics);
        let below_fresh = fresh.next_down();
        let particles = balls.zip(used).zip(sums).zip(weights).zip(&mut self.darts);
        for (n, ((((balls, (used, &n_used)), sums), weight), dart)) in particles.enumerate() {
            if n % POLL_EVERY == 0 && self.observer.stopped() {
                return;
            }
            let mut seen = 0.0;
            for (sum, &k) in sums.iter_mut().zip(&used[..usize::from(n_used)]) {
                seen += f64::from(balls[usize::from(k)]) * q[usize::from(k)];
                *sum = seen;
            }
            *weight *= (fresh + seen) * scale;
            for change in &self.changes {
                *weight *= change.ratio(balls[change.topic]);
            }
            // Negative darts hit the balls that the particle has, at -dart of their sum.
            *dart = (rng.random::<f64>() * (fresh + seen) - seen).min(below_fresh);
        }
    }

    /// The same where topics are bursty: the topics that a particle has used weigh otherwise than those
    /// that it has not.
    fn weigh_bursty(
        &mut self,
        bursts: &Bursts,
        cell: usize,
        fresh: f64,
        scale: f64,
        weights: &mut [f64],
        rng: &mut impl Rng,
    ) {
        let (q, repeats) = (self.urn.weights(cell), bursts.repeats(cell));
        for (particle, (weight, dart)) in weights.iter_mut().zip(&mut self.darts).enumerate() {
            if particle % POLL_EVERY == 0 && self.observer.stopped() {
                return;
            }
            let own = particle * self.n_topics..(particle + 1) * self.n_topics;
            let (balls, held) = (&self.balls[own.clone()], &self.held[own.clone()]);
            let used = &self.used[own.clone()][..usize::from(self.n_used[particle])];
            let (mut seen, mut unused) = (0.0, fresh);
            for (sum, &topic) in self.sums[own].iter_mut().zip(used) {
                let k = usize::from(topic);
                let (n, word) = (f64::from(balls[k]), q[k] + repeats[k] * f64::from(held[k]));
                seen += (self.expected[k] + n) * word / (1.0 + bursts.rates()[k] * n);
                unused -= self.expected[k] * q[k];
                *sum = seen;
            }
            // A difference of equal sums leaves a rounding.
            let unused = if used.len() < self.n_topics { unused.max(0.0) } else { 0.0 };
            *weight *= (unused + seen) * scale;
            for change in &self.changes {
                *weight *= change.ratio(balls[change.topic]);
            }
            *dart = rng.random::<f64>() * (unused + seen) - seen;
        }
    }

    /// Draws each particle's colour where its dart fell; the reference particles follow their
    /// paths.
    fn draw(&mut self, token: usize, q: &[f64], population: &Population<f64>) {
        let is_bursty = !self.held.is_empty();
        let mut held = self.held.chunks_exact_mut(self.n_topics);
        let balls = self.balls.chunks_exact_mut(self.n_topics);
        let used = self.used.chunks_exact_mut(self.n_topics).zip(&mut self.n_used);
        let sums = self.sums.chunks_exact(self.n_topics);
        let mut particles = balls.zip(used).zip(sums).zip(&self.darts);
        for run in 0..population.n_runs() {
            let place = population.reference(run);
            let reference = place.map(|place| (place, usize::from(self.paths[run][token])));
            let particles = particles.by_ref().take(self.n_particles).enumerate();
            for (particle, (((balls, (used, n_used)), sums), &dart)) in particles {
                if particle % POLL_EVERY == 0 && self.observer.stopped() {
                    return;
                }
                let end = usize::from(*n_used);
                let topic = match reference {
                    Some((place, topic)) if place == particle => topic,
                    _ if dart < 0.0 => {
                        let passed: usize =
                            sums[..end].iter().map(|&s| usize::from(s < -dart)).sum();
                        usize::from(used[passed])
                    }
                    _ if is_bursty => find_unused(&self.expected, q, balls, dart),
                    _ => self.cumulative.find(dart),
                };
                if let Some(held) = held.next() {
                    held[topic] += 1;
                }
                // Without a branch: whether a topic is new cannot be predicted.
                let new = balls[topic] == 0;
                let slot = end.min(used.len() - 1);
                used[slot] = if new { topic as u16 } else { used[slot] };
                *n_used += u16::from(new);
                balls[topic] += 1;
            }
        }
    }

    /// Takes the token out of the expected balls and tabulates how that changes h.
    fn look_ahead(&mut self, cell: usize) {
        let support = &self.guess.support[cell];
        self.changes.resize_with(support.len(), FactorChange::default);
        for (change, &(topic, g)) in self.changes.iter_mut().zip(support) {
            if self.observer.stopped() {
                return;
            }
            let a = self.guess.pseudo_counts[topic];
            change.topic = topic;
            change.before = self.expected[topic];
            self.pending[topic] -= 1;
            change.after = if self.pending[topic] == 0 { a } else { (change.before - g).max(a) };
            self.expected[topic] = change.after;
            let column = self.balls[topic..].iter().step_by(self.n_topics);
            let (lowest, highest) =
                column.fold((u32::MAX, 0), |(lo, hi), &n| (lo.min(n), hi.max(n)));
            change.tabulate(lowest, highest, self.darts.len());
        }
    }

    /// ln of every run's estimate.
    fn ln_values(&self, population: &Population<f64>) -> Vec<f64> {
        let ln_start = self.ln_start + self.urn.ln_scale();
        let run = |run: usize| {
            ln_start + population.ln_scale(run) + self.ln_mean_weight(run, population.weights())
        };
        (0..population.n_runs()).map(run).collect()
    }

    /// ln of the mean weight of a run's particles, each put right for the pseudo-counts that the
    /// filter raised: Π_k (a_k)_{n_k} / (raised a_k)_{n_k}.
    fn ln_mean_weight(&self, run: usize, weights: &[f64]) -> f64 {
        let particles = run * self.n_particles..(run + 1) * self.n_particles;
        let ln_weights = particles.map(|particle| {
            let balls = &self.balls[particle * self.n_topics..][..self.n_topics];
            let priors = self.guess.pseudo_counts.iter().zip(self.urn.pseudo_counts());
            let raised = balls.iter().zip(priors).filter(|&(&n, (raised, a))| n > 0 && raised > a);
            let ln_correction: f64 = raised
                .map(|(&n, (&raised, &a))| {
                    ln_rising(a, u64::from(n)) - ln_rising(raised, u64::from(n))
                })
                .sum();
            weights[particle].ln() + ln_correction
        });
        ln_weights.collect::<LogSum>().ln_mean()
    }
}

/// The topic without balls on which a dart falls, given their weights one after the other; the last that
/// is possible, or the last of all, where rounding carries the dart past.
fn find_unused(expected: &[f64], q: &[f64], balls: &[u32], mut dart: f64) -> usize {
    let mut found = None;
    for k in (0..q.len()).filter(|&k| balls[k] == 0 && q[k] > 0.0) {
        found = Some(k);
        dart -= expected[k] * q[k];
        if dart < 0.0 {
            break;
        }
    }
    let possible = || (0..q.len()).rfind(|&k| q[k] > 0.0);
    found.or_else(possible).unwrap_or(0)
}

/// Copies of a value for all particles. Several threads that touch new memory at once take seconds
/// for a gigabyte, so it is filled piece by piece.
fn filled<T: Copy>(n: usize, value: T, observer: &impl Observer) -> Result<Vec<T>> {
    let mut array = room_for(PARTICLES, n)?;
    while array.len() < n {
        observer.check_stop()?;
        array.resize(n.min(array.len() + POLL_EVERY * 64), value);
    }
    Ok(array)
}

impl FactorChange {
    /// Fills the table for n in lowest..=highest, unless it would outgrow the particles it serves.
    fn tabulate(&mut self, lowest: u32, highest: u32, n_particles: usize) {
        self.lowest = lowest;
        self.ratios.clear();
        if (highest - lowest) as usize > 4 * n_particles {
            return;
        }
        let mut ratio = self.exact_ratio(lowest);
        self.ratios.push(ratio);
        for n in lowest..highest {
            ratio *= (f64::from(n) + self.after) / (f64::from(n) + self.before);
            self.ratios.push(ratio);
        }
    }

    #[inline]
    fn ratio(&self, n: u32) -> f64 {
        match self.ratios.get((n - self.lowest) as usize) {
            Some(&ratio) => ratio,
            None => self.exact_ratio(n),
        }
    }

    fn exact_ratio(&self, n: u32) -> f64 {
        (-ln_gamma_ratio(f64::from(n) + self.after, self.before - self.after)).exp()
    }
}
