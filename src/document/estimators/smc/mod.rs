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
use crate::error::{Error, Result};
use crate::math::{Cumulative, LogSum, ln_gamma_ratio, ln_rising, systematic_offspring};
use crate::urn::LocalUrn;

/// Bytes that a particle takes for every topic of its document.
pub(super) const BYTES_PER_TOPIC: usize = 14;

/// ln Ẑ of `n_runs` independent filters of `n_particles` each.
///
/// # Errors
/// [`Error::Stopped`] when the observer asks to stop.
pub fn ln_urn_sums(
    urn: &LocalUrn,
    lookahead: bool,
    n_runs: usize,
    n_particles: usize,
    rng: &mut impl Rng,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    let guess = if lookahead { Lookahead::new(urn) } else { Lookahead::none(urn) };
    let mut filter = Filter::new(urn, &guess, n_runs, n_particles);
    filter.run(&guess.order, rng, observer)?;
    Ok(filter.ln_values())
}

/// ln Ẑ of filters in each of which one particle follows given topics of all tokens, a draw of
/// their posterior: the mean of 1/Ẑ is 1/Z (conditional SMC; Andrieu, Doucet & Holenstein 2010).
///
/// `paths` has the topics of all tokens for each of the runs.
///
/// # Errors
/// [`Error::Stopped`] when the observer asks to stop.
pub fn ln_urn_sums_conditional(
    urn: &LocalUrn,
    lookahead: bool,
    paths: &[Vec<u16>],
    n_particles: usize,
    rng: &mut impl Rng,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    let guess = if lookahead { Lookahead::new(urn) } else { Lookahead::none(urn) };
    let mut filter = Filter::new(urn, &guess, paths.len(), n_particles);
    filter.paths = paths;
    filter.reference = (0..paths.len()).map(|_| rng.random_range(0..n_particles)).collect();
    filter.run(&guess.order, rng, observer)?;
    Ok(filter.ln_values())
}

/// All particles of all runs, one run after the other.
struct Filter<'a> {
    urn: &'a LocalUrn,
    guess: &'a Lookahead,
    n_topics: usize,
    n_particles: usize,
    /// ln h_0(0).
    ln_start: f64,
    /// Per run: ln of the estimate up to its last resampling.
    runs: Vec<f64>,
    /// a + f, and the tokens to come that still add to f.
    expected: Vec<f64>,
    pending: Vec<u64>,
    n_seen: u64,
    /// Topics of all tokens that the reference particle of every run follows, and its place; empty
    /// where there is none.
    paths: &'a [Vec<u16>],
    reference: Vec<usize>,
    /// First token of each distinct word.
    starts: Vec<usize>,
    weights: Vec<f64>,
    /// Balls n of each particle.
    balls: Vec<u32>,
    /// Topics with n > 0 of each particle, in order of first use.
    used: Vec<u16>,
    n_used: Vec<u16>,
    // Buffers of a step.
    darts: Vec<f64>,
    /// Per particle: cumulative sums of n q over its used topics.
    sums: Vec<f64>,
    cumulative: Cumulative,
    changes: Vec<Change>,
    offspring: Vec<u32>,
}

/// How the step changes one topic's factor of h.
#[derive(Default)]
struct Change {
    topic: usize,
    /// a + f before and after the token.
    before: f64,
    after: f64,
    lowest: u32,
    /// Γ(n + after)/Γ(n + before) for n = lowest, lowest + 1, ...
    ratios: Vec<f64>,
}

impl<'a> Filter<'a> {
    fn new(urn: &'a LocalUrn, guess: &'a Lookahead, n_runs: usize, n_particles: usize) -> Self {
        let n_topics = urn.n_topics();
        let n = n_runs * n_particles;
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
        Filter {
            urn,
            guess,
            n_topics,
            n_particles,
            ln_start,
            runs: vec![0.0; n_runs],
            expected,
            pending,
            n_seen: 0,
            paths: &[],
            reference: Vec::new(),
            starts: urn.starts(),
            weights: vec![1.0; n],
            balls: vec![0; n * n_topics],
            used: vec![0; n * n_topics],
            n_used: vec![0; n],
            cumulative: Cumulative::new(n_topics),
            darts: vec![0.0; n],
            sums: vec![0.0; n * n_topics],
            changes: Vec::new(),
            offspring: vec![0; n_particles],
        }
    }

    /// All tokens of these distinct words.
    fn run(&mut self, cells: &[usize], rng: &mut impl Rng, observer: &impl Observer) -> Result<()> {
        for &cell in cells {
            for token in 0..self.urn.counts()[cell] as usize {
                if observer.stopped() {
                    return Err(Error::Stopped);
                }
                self.step(cell, token, rng);
            }
        }
        Ok(())
    }

    /// One token of the distinct word `cell`.
    fn step(&mut self, cell: usize, token: usize, rng: &mut impl Rng) {
        self.look_ahead(cell);
        let q = self.urn.weights(cell);
        let fresh = self.cumulative.fill(&self.expected, q);
        let all = self.n_seen as f64 + self.expected.iter().sum::<f64>();
        // Any constant keeps the weights near 1; this one is the total number of balls.
        let scale = all.recip();
        self.weigh(q, fresh, scale, rng);
        self.draw(self.starts[cell] + token);
        self.n_seen += 1;
        let ln_scale = all.ln();
        for run in 0..self.runs.len() {
            self.runs[run] += ln_scale;
            self.resample_if_needed(run, rng);
        }
    }

    /// Updates the weights, and throws each particle's dart at its sum.
    ///
    /// Apart from `draw` so that nothing here waits for an unpredictable branch.
    fn weigh(&mut self, q: &[f64], fresh: f64, scale: f64, rng: &mut impl Rng) {
        let balls = self.balls.chunks_exact(self.n_topics);
        let used = self.used.chunks_exact(self.n_topics).zip(&self.n_used);
        let sums = self.sums.chunks_exact_mut(self.n_topics);
        let below_fresh = fresh.next_down();
        let particles = balls.zip(used).zip(sums).zip(&mut self.weights).zip(&mut self.darts);
        for ((((balls, (used, &n_used)), sums), weight), dart) in particles {
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

    /// Draws each particle's colour where its dart fell; the reference particles follow their paths.
    fn draw(&mut self, token: usize) {
        let balls = self.balls.chunks_exact_mut(self.n_topics);
        let used = self.used.chunks_exact_mut(self.n_topics).zip(&mut self.n_used);
        let sums = self.sums.chunks_exact(self.n_topics);
        let mut particles = balls.zip(used).zip(sums).zip(&self.darts);
        for run in 0..self.runs.len() {
            let path = self.paths.get(run);
            let reference = path.map(|path| (self.reference[run], usize::from(path[token])));
            let particles = particles.by_ref().take(self.n_particles).enumerate();
            for (particle, (((balls, (used, n_used)), sums), &dart)) in particles {
                let end = usize::from(*n_used);
                let topic = match reference {
                    Some((place, topic)) if place == particle => topic,
                    _ if dart < 0.0 => {
                        let passed: usize =
                            sums[..end].iter().map(|&s| usize::from(s < -dart)).sum();
                        usize::from(used[passed])
                    }
                    _ => self.cumulative.find(dart),
                };
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
        self.changes.resize_with(support.len(), Change::default);
        for (change, &(topic, g)) in self.changes.iter_mut().zip(support) {
            let a = self.guess.pseudo_counts[topic];
            change.topic = topic;
            change.before = self.expected[topic];
            self.pending[topic] -= 1;
            change.after = if self.pending[topic] == 0 { a } else { (change.before - g).max(a) };
            self.expected[topic] = change.after;
            let column = self.balls[topic..].iter().step_by(self.n_topics);
            let (lowest, highest) =
                column.fold((u32::MAX, 0), |(lo, hi), &n| (lo.min(n), hi.max(n)));
            change.tabulate(lowest, highest, self.weights.len());
        }
    }

    fn resample_if_needed(&mut self, run: usize, rng: &mut impl Rng) {
        let first = run * self.n_particles;
        let weights = &mut self.weights[first..][..self.n_particles];
        let sum: f64 = weights.iter().sum();
        let squares: f64 = weights.iter().map(|w| w * w).sum();
        let n = self.n_particles as f64;
        let uneven = 2.0 * sum * sum < n * squares;
        if !uneven && (1e-100..1e100).contains(&sum) {
            return;
        }
        let mean = sum / n;
        self.runs[run] += mean.ln();
        if !uneven {
            weights.iter_mut().for_each(|w| *w /= mean);
            return;
        }
        let dart = match self.reference.get(run) {
            // A dart that hits the reference particle, uniformly, and the others a step apart.
            Some(&place) => {
                let before: f64 = weights[..place].iter().sum();
                (before + rng.random::<f64>() * weights[place]) / mean
            }
            None => rng.random(),
        };
        systematic_offspring(weights, &mut self.offspring, dart.fract());
        weights.fill(1.0);
        let copies = self.replicate(first, self.reference.get(run).copied());
        if !copies.is_empty() {
            // Any of the children may be the one that goes on.
            let child = rng.random_range(0..=copies.len());
            self.reference[run] = copies.get(child).copied().unwrap_or(self.reference[run]);
        }
    }

    /// Overwrites particles without offspring by copies of those with several; returns the places
    /// of the copies of the one that is asked for.
    fn replicate(&mut self, first: usize, asked: Option<usize>) -> Vec<usize> {
        let k = self.n_topics;
        let mut vacant = 0;
        let mut copies = Vec::new();
        for parent in 0..self.n_particles {
            for _ in 1..self.offspring[parent] {
                while self.offspring[vacant] > 0 {
                    vacant += 1;
                }
                let (from, to) = (first + parent, first + vacant);
                self.balls.copy_within(from * k..(from + 1) * k, to * k);
                let n_used = usize::from(self.n_used[from]);
                self.used.copy_within(from * k..from * k + n_used, to * k);
                self.n_used[to] = self.n_used[from];
                if asked == Some(parent) {
                    copies.push(vacant);
                }
                vacant += 1;
            }
        }
        copies
    }

    /// ln of every run's estimate.
    fn ln_values(&self) -> Vec<f64> {
        let ln_start = self.ln_start + self.urn.ln_scale();
        let run = |run: usize| ln_start + self.runs[run] + self.ln_mean_weight(run);
        (0..self.runs.len()).map(run).collect()
    }

    /// ln of the mean weight of a run's particles, each put right for the pseudo-counts that the
    /// filter raised: Π_k (a_k)_{n_k} / (raised a_k)_{n_k}.
    fn ln_mean_weight(&self, run: usize) -> f64 {
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
            self.weights[particle].ln() + ln_correction
        });
        ln_weights.collect::<LogSum>().ln_mean()
    }
}

impl Change {
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
