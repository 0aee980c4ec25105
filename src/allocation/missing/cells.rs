//! Tensors with cells that were not observed.
//!
//! The total T is free then. The urn goes on after the observed tokens with tokens that may fall in
//! any missing cell: the sum of its weights after m of them gives Pr(S_+ = T, X_observed) for
//! T = T_o + m, so that one run serves all totals.

use rayon::prelude::*;

use crate::allocation::exact::enumeration::Enumeration;
use crate::allocation::model::network::Network;
use crate::allocation::model::problem::{Cells, Problem};
use crate::allocation::particles::smc::{Filter, Run, TokenOrder, ordered};
use crate::control::Observer;
use crate::counts::CountTensor;
use crate::error::{Error, Result, check_positive};
use crate::estimate::Estimate;
use crate::math::{LogSum, Resampling, ln_factorial, ln_rising};
use crate::rng::{Key, LANES, Purpose};

/// Shares of the evidence that totals beyond the last may have, where no last one is given.
const LEFT_BY_ENUMERATION: f64 = 1e-9;
const LEFT_BY_FILTER: f64 = 1e-6;

/// Most missing tokens, where no last total is given.
const MOST_MISSING: u64 = 1_000_000;

/// The run that finds the last total; none has more particles.
const PILOT: Filter = Filter {
    n_particles: 256,
    threshold: 0.5,
    resampling: Resampling::Systematic,
    order: TokenOrder::Random,
};

/// A network, the rate of its intensity, and a tensor of which some cells were not observed.
#[derive(Debug, Clone)]
pub struct Incomplete {
    problem: Problem,
    concentration: f64,
    rate: f64,
    /// ln of the greatest probability of the observed cells, given their total, under any tables.
    ln_greatest: f64,
}

/// What is known of a tensor with cells that were not observed.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// ln Pr(X_observed), summed over the totals.
    pub evidence: Estimate,
    /// ln Pr(S_+ = T, X_observed), for T from that of the observed cells on.
    pub ln_joint: Vec<Estimate>,
    /// Pr(S_+ = T | X_observed), and its standard error.
    pub posterior: Vec<(f64, f64)>,
    /// Expected counts of the missing cells given the observed ones, and their standard errors.
    pub expected: Vec<(f64, f64)>,
    /// ln of what the totals beyond the last would add to the evidence, about.
    pub ln_remainder: f64,
    /// ln of what they add at most.
    pub ln_remainder_bound: f64,
}

impl Incomplete {
    /// Lays out a network for a tensor; `missing` has the coordinates of the cells that were not
    /// observed, one after the other, and hidden nodes are summed out in `order`.
    ///
    /// # Errors
    /// Those of [`Problem::new`]; [`Error::Range`]; a rate that is not positive; missing cells that are none, outside
    /// of the tensor, not in increasing order, or have a count.
    pub fn new(
        network: &Network,
        data: &CountTensor,
        missing: &[u32],
        rate: f64,
        order: Option<&[usize]>,
    ) -> Result<Self> {
        check_positive("rate", &[rate])?;
        check_missing(data, missing)?;
        let problem =
            Problem::of_cells(network, network.margins(), &Cells { data, missing }, order)?;
        problem.check_range()?;
        let share = |count: u64| count as f64 / data.total() as f64;
        let ln_cells = data.counts().iter().map(|&count| count as f64 * share(count).ln());
        let ln_greatest = problem.ln_arrangements + ln_cells.sum::<f64>();
        let concentration = network.prior().concentration;
        Ok(Incomplete { problem, concentration, rate, ln_greatest })
    }

    /// The network laid out over all cells that tokens may fall in.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Sums over all allocations of up to `max_total` tokens; without, of as many as are needed to
    /// leave out less than 1e-9 of the evidence.
    ///
    /// # Errors
    /// A budget that is passed, or would be by the tokens to come; a stop.
    pub fn enumerate(
        &self,
        max_total: Option<u64>,
        budget: f64,
        observer: &impl Observer,
    ) -> Result<Completion> {
        let mut allocations = Enumeration::of_tokens(&self.problem, budget, observer)?;
        let end = self.end(max_total, LEFT_BY_ENUMERATION);
        let cells = &self.problem.missing;
        // What the tokens to come cost at least is known where their number is, about.
        let mut n_left = match end {
            End::Drawn(n) => n,
            End::Remainder { ln_left, most } => {
                let most = most.min(allocations.too_many(cells.len()));
                self.pilot(&PILOT, End::Remainder { ln_left, most }, 0, observer)?
            }
        };
        let ln_observed = allocations.ln_sum();
        let sums = self.sums(ln_observed, end, |shares| {
            allocations.foresee(cells.len(), n_left.max(1))?;
            n_left = n_left.saturating_sub(1);
            allocations.draw(cells.clone(), shares)
        })?;
        let mut completion = self.completion(&[sums], 0);
        completion.evidence = Estimate::exact(completion.evidence.ln_value);
        let exact = |joint: &mut Estimate| *joint = Estimate::exact(joint.ln_value);
        completion.ln_joint.iter_mut().for_each(exact);
        let shares = completion.posterior.iter_mut().chain(&mut completion.expected);
        shares.for_each(|(_, std_error)| *std_error = 0.0);
        Ok(completion)
    }

    /// Replicates of the particle filter over observed tokens, then missing ones. Every joint
    /// probability is unbiased. The last total, where none is given, is found by a pilot, so that
    /// totals beyond have about 1e-6 of the evidence.
    ///
    /// # Errors
    /// Too many particles, a stop.
    pub fn filter(
        &self,
        filter: &Filter,
        max_total: Option<u64>,
        n_replicates: usize,
        seed: u64,
        observer: &impl Observer,
    ) -> Result<Completion> {
        let key = Key::new(seed, Purpose::Score);
        let mut end = self.end(max_total, LEFT_BY_FILTER);
        if matches!(end, End::Remainder { .. }) {
            let n_particles = filter.n_particles.min(PILOT.n_particles);
            let pilot = Filter { n_particles, ..filter.clone() };
            end = End::Drawn(self.pilot(&pilot, end, seed, observer)?);
        }
        let one = |replicate| {
            self.replicate(filter, end, &key, replicate, observer).inspect(|_| observer.advance(1))
        };
        let runs: Result<Vec<Sums>> =
            (1..=n_replicates.max(1) as u64).into_par_iter().map(one).collect();
        Ok(self.completion(&runs?, n_replicates * filter.n_particles))
    }

    /// Missing tokens that a filter draws up to this end.
    fn pilot(&self, filter: &Filter, end: End, seed: u64, observer: &impl Observer) -> Result<u64> {
        let key = Key::new(seed, Purpose::Score);
        let found = self.replicate(filter, end, &key, 0, observer)?;
        Ok(found.ln_joint.len() as u64 - 1)
    }

    fn replicate(
        &self,
        filter: &Filter,
        end: End,
        key: &Key,
        replicate: u64,
        observer: &impl Observer,
    ) -> Result<Sums> {
        let mut rng = key.unit(replicate).rng();
        let tokens = ordered(&self.problem, &filter.order, &mut rng)?;
        let mut run = Run::new(&self.problem, filter, None, &mut rng)?;
        for cell in tokens {
            if observer.stopped() {
                return Err(Error::Stopped);
            }
            run.draw(cell);
            run.resample(&mut rng);
        }
        let cells = &self.problem.missing;
        let mut buffer = vec![[0.0; LANES]; cells.len()];
        self.sums(run.ln_mean(), end, |shares| {
            run.draw_among(cells.clone(), shares, &mut buffer, observer)?;
            run.resample(&mut rng);
            Ok(())
        })
    }

    fn end(&self, max_total: Option<u64>, left: f64) -> End {
        match max_total {
            Some(total) => End::Drawn(total.saturating_sub(self.problem.total)),
            None => End::Remainder { ln_left: left.ln(), most: MOST_MISSING },
        }
    }

    /// Draws missing tokens one by one. `draw` draws one, and tells the weight of every cell before.
    ///
    /// Pr(T_o + m, X) = NB(T_o + m) (T_o + m)!/(Π X! m!) Z_m, where Z_m = Π Σ weights.
    fn sums(
        &self,
        ln_observed: f64,
        end: End,
        mut draw: impl FnMut(&mut [f64]) -> Result<()>,
    ) -> Result<Sums> {
        let problem = &self.problem;
        let mut ln_joint = problem.ln_total(self.rate) + problem.ln_arrangements + ln_observed;
        let mut shares = vec![0.0; problem.missing.len()];
        let mut sums = Sums {
            ln_joint: vec![ln_joint],
            counts: vec![0.0; shares.len()],
            ln_unit: ln_joint,
            ln_remainder: f64::INFINITY,
        };
        let mut ln_evidence = ln_joint;
        for drawn in 0.. {
            let done = match end {
                End::Drawn(n) => drawn >= n,
                End::Remainder { ln_left, most } => {
                    let ln_remainder = sums.ln_remainder.min(self.ln_remainder_bound(drawn));
                    ln_remainder <= ln_evidence + ln_left || drawn >= most
                }
            };
            if done {
                break;
            }
            draw(&mut shares)?;
            // Intensity of every cell, expected with so many tokens.
            let scale = (self.concentration + (problem.total + drawn) as f64) / (self.rate + 1.0);
            shares.iter_mut().for_each(|share| *share *= scale);
            sums.add_counts(&shares);
            let intensity: f64 = shares.iter().sum();
            ln_joint += (intensity / (drawn + 1) as f64).ln();
            sums.ln_joint.push(ln_joint);
            sums.ln_remainder = ln_joint + self.ln_tail(intensity, drawn);
            ln_evidence = ln_sum(ln_evidence, ln_joint);
        }
        Ok(sums)
    }

    /// ln Σ over totals beyond `drawn` + 1 missing tokens of their probability over that of this
    /// one, `intensity` being that of the missing cells when one token less is drawn.
    ///
    /// Pr(T + 1, X)/Pr(T, X) = intensity/(m + 1), and an urn's intensity grows by 1/(b + 1) with
    /// every token that it draws.
    fn ln_tail(&self, intensity: f64, drawn: u64) -> f64 {
        let fading = self.rate / (self.rate + 1.0);
        let ratio = (intensity + (self.rate + 1.0).recip()) / (drawn + 2) as f64;
        if ratio < 1.0 { (ratio / fading.min(1.0 - ratio)).ln() } else { f64::INFINITY }
    }

    /// ln of a bound on Pr(S_+ > T, X_observed) after so many missing tokens: the greatest
    /// probability of the observed cells times the tail of the negative binomial.
    fn ln_remainder_bound(&self, drawn: u64) -> f64 {
        let (a, b) = (self.concentration, self.rate);
        let next = self.problem.total + drawn + 1;
        let ln_next = ln_rising(a, next)
            - ln_factorial(next)
            - a * b.recip().ln_1p()
            - next as f64 * b.ln_1p();
        let ratio = (a + next as f64) / ((b + 1.0) * (next + 1) as f64);
        let fading = (b / (b + 1.0)).min(1.0 - ratio).max(0.0);
        self.ln_greatest + (ln_next - fading.ln()).min(0.0)
    }

    fn completion(&self, runs: &[Sums], n_draws: usize) -> Completion {
        let n_totals = runs[0].ln_joint.len();
        let estimate = |ln_values: Vec<f64>| Estimate::from_replicates(&ln_values, n_draws);
        let ln_evidences: Vec<f64> = runs.iter().map(Sums::ln_evidence).collect();
        let ln_joint = |total: usize| runs.iter().map(move |run| run.ln_joint[total]);
        let ratio = |ln_parts: Vec<f64>| ratio(&ln_parts, &ln_evidences);
        let ln_counts =
            |cell: usize| runs.iter().map(move |run| run.counts[cell].ln() + run.ln_unit).collect();
        let ln_remainders = || runs.iter().map(|run| run.ln_remainder);
        let ln_remainder = if ln_remainders().all(f64::is_finite) {
            ln_remainders().collect::<LogSum>().ln_mean()
        } else {
            f64::INFINITY
        };
        let bound = self.ln_remainder_bound(n_totals as u64 - 1);
        Completion {
            evidence: estimate(ln_evidences.clone()),
            ln_joint: (0..n_totals).map(|total| estimate(ln_joint(total).collect())).collect(),
            posterior: (0..n_totals).map(|total| ratio(ln_joint(total).collect())).collect(),
            expected: (0..self.problem.missing.len()).map(|cell| ratio(ln_counts(cell))).collect(),
            ln_remainder: ln_remainder.min(bound),
            ln_remainder_bound: bound,
        }
    }
}

/// When no more missing tokens are drawn.
#[derive(Debug, Clone, Copy)]
enum End {
    /// After so many of them.
    Drawn(u64),
    /// When totals beyond have less of the evidence than this, by its ln, or after the most that
    /// may be drawn.
    Remainder { ln_left: f64, most: u64 },
}

/// Sums over allocations.
struct Sums {
    /// ln Pr(S_+ = T, X_observed).
    ln_joint: Vec<f64>,
    /// E[X_c; X_observed] of every missing cell, over exp `ln_unit`.
    counts: Vec<f64>,
    ln_unit: f64,
    ln_remainder: f64,
}

impl Sums {
    /// Adds the expected counts with one more token, given the intensities without it.
    fn add_counts(&mut self, intensities: &[f64]) {
        let ln_joint = self.ln_joint[self.ln_joint.len() - 1];
        if ln_joint > self.ln_unit {
            let shrink = (self.ln_unit - ln_joint).exp();
            self.counts.iter_mut().for_each(|count| *count *= shrink);
            self.ln_unit = ln_joint;
        }
        let joint = (ln_joint - self.ln_unit).exp();
        self.counts.iter_mut().zip(intensities).for_each(|(count, x)| *count += joint * x);
    }

    fn ln_evidence(&self) -> f64 {
        let sum: LogSum = self.ln_joint.iter().copied().collect();
        sum.ln_mean() + (sum.n_terms() as f64).ln()
    }
}

/// Ratio of the means of two estimates from the same replicates, and its standard error: that of the
/// delta method, and no less than that of the replicates' own ratios, were these independent of
/// their weights. It matters where one replicate has nearly all the weight.
fn ratio(ln_parts: &[f64], ln_wholes: &[f64]) -> (f64, f64) {
    let ln_unit = ln_wholes.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let n = ln_parts.len() as f64;
    let in_units = |ln_values: &[f64]| -> Vec<f64> {
        ln_values.iter().map(|ln_value| (ln_value - ln_unit).exp()).collect()
    };
    let (parts, wholes) = (in_units(ln_parts), in_units(ln_wholes));
    let whole = wholes.iter().sum::<f64>();
    let ratio = parts.iter().sum::<f64>() / whole;
    let residual = |(part, whole): (&f64, &f64)| (part - ratio * whole).powi(2);
    let residuals: f64 = parts.iter().zip(&wholes).map(residual).sum();
    let own: Vec<f64> = ln_parts.iter().zip(ln_wholes).map(|(x, y)| (x - y).exp()).collect();
    let mean = own.iter().sum::<f64>() / n;
    let spread: f64 = own.iter().map(|x| (x - mean).powi(2)).sum();
    let squares: f64 = wholes.iter().map(|whole| whole.powi(2)).sum();
    let variance = (residuals * n).max(spread * squares) / (n - 1.0);
    (ratio, variance.sqrt() / whole)
}

fn ln_sum(x: f64, y: f64) -> f64 {
    x.max(y) + (-(x - y).abs()).exp().ln_1p()
}

pub(crate) fn check_missing(data: &CountTensor, missing: &[u32]) -> Result<()> {
    let n_axes = data.shape().len();
    if missing.is_empty() || !missing.len().is_multiple_of(n_axes) {
        let (found, expected) = (missing.len(), n_axes * missing.len().div_ceil(n_axes).max(1));
        return Err(Error::Length { name: "coordinates of missing cells", found, expected });
    }
    let mut observed = data.cells().map(|(cell, _)| cell).peekable();
    let mut before: Option<&[u32]> = None;
    for (number, cell) in missing.chunks_exact(n_axes).enumerate() {
        let refuse = |axis, problem| Err(Error::Cell { cell: number, axis, problem });
        if let Some(axis) = (0..n_axes).find(|&axis| cell[axis] as usize >= data.shape()[axis]) {
            return refuse(axis, "is missing outside the axis");
        }
        if before.replace(cell).is_some_and(|before| before >= cell) {
            return refuse(0, "is missing out of increasing order");
        }
        while observed.next_if(|&other| other < cell).is_some() {}
        if observed.peek() == Some(&cell) {
            return refuse(0, "is missing and has a count");
        }
    }
    Ok(())
}
