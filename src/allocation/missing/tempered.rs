//! Missing cells by tempering, twice: from independent tokens to the distribution in which missing
//! cells are empty, and from there to the distribution in which they are missing ([`Release`]).
//!
//! Pr(X_observed) = Pr(X, empty) Z, with Z the ratio of the normalising constants of the second path.

use rayon::prelude::*;

use super::completion::Completion;
use super::evidence::LEFT_BY_SAMPLING;
use super::grouped_cells::GroupedMargins;
use super::incomplete::{Incomplete, joined};
use super::release::Release;
use super::totals::{AllocationSums, End};
use crate::allocation::evidence::{EvidenceSampler, EvidenceSettings};
use crate::allocation::memory::Load;
use crate::allocation::model::problem::Problem;
use crate::allocation::posterior::{Posterior, posterior};
use crate::control::Observer;
use crate::error::{Result, array_of};
use crate::math::{LogSum, ln_add, ln_factorial, ln_rising};
use crate::rng::{Key, Purpose};
use crate::temper::{
    EnergiesByRung, KeptStates, LadderTarget as _, RoundPlan, TemperingOutcome, WeightedEnergy,
    temper,
};

/// Chains of a ladder of the second path, at most.
const MAX_CHAINS: usize = 64;

/// Numbers that the draws of a replicate hold, between the least and the most draws.
const HELD: usize = 1 << 22;

/// Draws of a replicate that are held at the start of the second path.
const STARTS: [usize; 2] = [64, 1024];

/// Draws of a replicate at its end.
const KEPT: [usize; 2] = [32, 1024];

/// Cost of a round of a ladder of the second path that may be the last, in draws of one number, and
/// its scans: totals and expected counts take more draws than the evidence.
const CHEAP: f64 = 4e8;
const CHEAP_SCANS: [usize; 2] = [128, 1024];

/// Draws of a replicate from all rungs, about, by which totals are weighed.
const N_WEIGHTED: usize = 4096;

/// Parts of the draws of a replicate that are compared, beside the replicates.
const N_PARTS: usize = 4;

impl Incomplete {
    /// Evidence by total and expected counts.
    ///
    /// # Errors
    /// The errors of [`posterior`]; [`Graph`](crate::Error::Graph) for hidden nodes with too many
    /// joint states; [`Stopped`](crate::Error::Stopped) when the observer asks to stop.
    pub fn temper(
        &self,
        settings: &EvidenceSettings,
        max_total: Option<u64>,
        seed: u64,
        observer: &impl Observer,
    ) -> Result<Completion> {
        let Incomplete { network, data, .. } = self;
        let mut tables = self.tables()?;
        tables.problem = joined(tables.problem)?;
        let law = GroupedMargins::new(&self.problem, &tables)?;
        let n_replicates = settings.n_replicates(EvidenceSampler::Tempered);
        let (n_rows, n_missing) = (tables.problem.n_rows(), tables.problem.missing.len());
        let draws = |[least, most]: [usize; 2], n: usize| (HELD / n.max(1)).clamp(least, most);
        let (n_starts, n_kept) = (draws(STARTS, n_rows), draws(KEPT, n_missing));
        let n_shares = n_starts * n_rows
            + n_kept * n_missing
            + MAX_CHAINS * (3 * n_rows + 2 * n_missing + law.n_held());
        Load { n_shares: n_replicates * n_shares, ..Load::default() }.check(1)?;

        let problem = Problem::new(network, data, self.order.as_deref())?;
        let n_draws = problem.ln_only_allocation().map_or(n_replicates * n_starts, |_| 1);
        let found = posterior(&problem, &[], settings, n_draws, seed, observer)?;
        let shape = self.concentration + problem.n_tokens() as f64;
        let starts = self.starts(&found, &tables.problem, n_replicates);
        let release = Release::new(&tables, &law, shape, self.rate, starts);
        let [least, most] = CHEAP_SCANS;
        let plan = RoundPlan {
            n_replicates,
            target_std_error: settings.target_std_error(),
            min_scans: ((CHEAP / release.sweep_cost()) as usize).clamp(least, most),
            max_scans: settings.n_samples,
            max_chains: MAX_CHAINS,
        };
        let key = Key::new(seed, Purpose::Parameters);
        let keep = KeptStates { n_draws: n_kept, n_energies: N_WEIGHTED };
        let run = temper(&release, plan, keep, key, observer)?;
        observer.check_stop()?;
        let empty = found.tempering.as_ref().map(TemperingOutcome::estimate);
        let constant = problem.ln_total(self.rate);
        // One allocation is all there is where nothing was tempered.
        let ln_only = found.draws.first().map_or(0.0, |draw| draw.ln_law);
        let ln_empty = constant + empty.map_or(ln_only, |found| found.ln_value);
        let released = run.outcome.raised(ln_empty);
        let totals = Totals {
            shape,
            rate: self.rate,
            end: self.end(max_total, LEFT_BY_SAMPLING),
            ln_evidence: released.ln_value(),
        };
        let error = released.std_error().hypot(empty.map_or(0.0, |found| found.std_error));
        let mut completion = self.summed(&totals, &run.draws, &run.energies, observer)?;
        for found in completion.ln_joint.iter_mut().chain([&mut completion.evidence]) {
            found.std_error = found.std_error.hypot(error);
        }
        completion.tempering = Some(match found.tempering {
            Some(tempering) if !tempering.converged => tempering.raised(constant),
            _ => released,
        });
        Ok(completion)
    }

    /// Allocations with empty cells, row after row, those of each replicate.
    fn starts(
        &self,
        found: &Posterior,
        problem: &Problem,
        n_replicates: usize,
    ) -> Vec<Vec<Vec<f64>>> {
        // There is but one allocation where nothing is hidden.
        let (n_blocks, n_draws) =
            if found.tempering.is_some() { (n_replicates, found.draws.len()) } else { (1, 1) };
        let mut starts = vec![Vec::new(); n_blocks];
        for draw in &found.draws[..n_draws] {
            let counts = draw.counts(&self.network, &self.data, &found.hidden);
            starts[draw.replicate].push(by_row(problem, &counts));
        }
        starts
    }

    /// Sums over the draws, with the larger error of that between replicates and that between parts of
    /// them.
    fn summed(
        &self,
        totals: &Totals,
        kept: &[Vec<Vec<f64>>],
        weighted: &[EnergiesByRung],
        observer: &impl Observer,
    ) -> Result<Completion> {
        let n_draws = kept.iter().map(Vec::len).sum();
        let part_of =
            |draws: &[Vec<f64>], weighted: &[Vec<WeightedEnergy>], nth: usize, n: usize| {
                let range = |len: usize| nth * len / n..(nth + 1) * len / n;
                let weighted =
                    weighted.iter().map(|of_rung| of_rung[range(of_rung.len())].to_vec());
                totals.draws(&draws[range(draws.len())], weighted.collect())
            };
        let parts_of = |n: usize| -> Vec<MissingDraws> {
            let replicates = kept.iter().zip(weighted);
            let parts = replicates
                .flat_map(|(draws, weighted)| (0..n).map(move |nth| (draws, weighted, nth)));
            parts.map(|(draws, weighted, nth)| part_of(draws, weighted, nth, n)).collect()
        };
        let (whole, parts) = (parts_of(1), parts_of(N_PARTS));
        let n_totals = totals.n_totals(&whole, observer)?;
        let of = |draws: &[MissingDraws]| -> Result<Completion> {
            let sums = draws.par_iter().map(|draws| totals.sums(draws, n_totals, observer));
            Ok(self.completion(&sums.collect::<Result<Vec<_>>>()?, n_draws))
        };
        let (mut completion, of_parts) = (of(&whole)?, of(&parts)?);
        for (found, part) in completion.ln_joint.iter_mut().zip(&of_parts.ln_joint) {
            found.std_error = found.std_error.max(part.std_error);
        }
        let shares = [
            (&mut completion.posterior, &of_parts.posterior),
            (&mut completion.expected, &of_parts.expected),
        ];
        for (found, parts) in shares {
            for ((_, error), (_, of_part)) in found.iter_mut().zip(parts) {
                *error = error.max(*of_part);
            }
        }
        Ok(completion)
    }
}

/// Rows of a problem of all families, from their whole tables.
fn by_row(problem: &Problem, whole: &[Vec<f64>]) -> Vec<f64> {
    let tables = problem.margins.iter().zip(whole);
    tables.flat_map(|(laid, whole)| laid.cells().into_iter().map(|cell| whole[cell])).collect()
}

/// Draws of a replicate, or of a part of it.
struct MissingDraws {
    /// Share of every missing cell in the missing tokens.
    cells: Vec<f64>,
    /// Draws of the probability of all missing cells, from all rungs.
    weighted: EnergiesByRung,
}

impl MissingDraws {
    /// ln of the sum of all weights under the distribution with missing cells.
    fn ln_whole(&self) -> f64 {
        self.weighted.iter().flatten().map(ln_weight).collect::<LogSum>().ln_sum()
    }
}

/// ln of the weight of a draw under the distribution with missing cells.
fn ln_weight(draw: &WeightedEnergy) -> f64 {
    draw.ln_weight + draw.value
}

/// The distribution of the number of missing tokens.
struct Totals {
    /// a + T.
    shape: f64,
    /// b.
    rate: f64,
    end: End,
    ln_evidence: f64,
}

impl Totals {
    fn draws(&self, of_cells: &[Vec<f64>], weighted: EnergiesByRung) -> MissingDraws {
        let mut sums = vec![0.0; of_cells.first().map_or(0, Vec::len)];
        for cells in of_cells {
            let share = cells.iter().sum::<f64>().min(1.0);
            let mean = self.shape / (self.rate + 1.0 - share);
            sums.iter_mut().zip(cells).for_each(|(sum, cell)| *sum += mean * cell);
        }
        let total = sums.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        sums.iter_mut().for_each(|sum| *sum /= total);
        MissingDraws { cells: sums, weighted }
    }

    /// Calls with m < n and Pr(m missing tokens), where that is a normal number, given ρ / (b + 1): a
    /// negative binomial distribution, from its mean downwards and upwards.
    fn for_totals(&self, p_missing: f64, n: usize, mut call: impl FnMut(usize, f64)) {
        let mean = self.shape * p_missing / (1.0 - p_missing);
        let Some(last) = n.checked_sub(1) else { return };
        let centre = (mean as usize).min(last);
        let ln_ways = ln_rising(self.shape, centre as u64) - ln_factorial(centre as u64);
        let ln_powers = if centre == 0 { 0.0 } else { centre as f64 * p_missing.ln() };
        let at_centre = (ln_ways + ln_powers + self.shape * (-p_missing).ln_1p()).exp();
        let growth = |m: usize| p_missing * (self.shape + m as f64) / (m + 1) as f64;
        let (mut p, mut m) = (at_centre, centre);
        while p.is_normal() && m < n {
            call(m, p);
            p *= growth(m);
            m += 1;
        }
        (p, m) = (at_centre, centre);
        while m > 0 {
            m -= 1;
            p /= growth(m);
            if !p.is_normal() {
                break;
            }
            call(m, p);
        }
    }

    /// ln Pr(m missing tokens) for m from 0 on. Few tokens are likely where missing cells have small
    /// probabilities, which draws from the lower rungs have.
    fn ln_law(&self, draws: &MissingDraws, n: usize, observer: &impl Observer) -> Result<Vec<f64>> {
        let mut ln_law = array_of("totals", n, f64::NEG_INFINITY)?;
        let mut law = array_of("totals", n, 0.0)?;
        let ln_whole = draws.ln_whole();
        for of_rung in &draws.weighted {
            let top = of_rung.iter().map(ln_weight).fold(f64::NEG_INFINITY, f64::max);
            law.fill(0.0);
            for draw in of_rung {
                observer.check_stop()?;
                let weight = (ln_weight(draw) - top).exp();
                let p_missing = -(-draw.value / self.shape).exp_m1();
                self.for_totals(p_missing, n, |m, p| law[m] += weight * p);
            }
            for (ln_p, p) in ln_law.iter_mut().zip(&law).filter(|(_, p)| **p > 0.0) {
                *ln_p = ln_add(*ln_p, top - ln_whole + p.ln());
            }
        }
        Ok(ln_law)
    }

    /// Totals to list, until those beyond have next to none of the evidence.
    fn n_totals(&self, runs: &[MissingDraws], observer: &impl Observer) -> Result<usize> {
        let (ln_left, most) = match self.end {
            End::Drawn(n) => return Ok((n as usize).saturating_add(1)),
            End::Remainder { ln_left, most } => (ln_left, most as usize),
        };
        let mut n = 32;
        while n < most {
            let left = |run: &MissingDraws| Ok(left(&self.ln_law(run, n, observer)?));
            let left: Vec<f64> = runs.par_iter().map(left).collect::<Result<_>>()?;
            if left.into_iter().all(|left| left < ln_left.exp()) {
                break;
            }
            n *= 2;
        }
        Ok(n.min(most))
    }

    fn sums(
        &self,
        draws: &MissingDraws,
        n_totals: usize,
        observer: &impl Observer,
    ) -> Result<AllocationSums> {
        let mut ln_joint = self.ln_law(draws, n_totals, observer)?;
        let mean: f64 = (0..).zip(&ln_joint).map(|(m, ln_p)| f64::from(m) * ln_p.exp()).sum();
        let left = left(&ln_joint).max(f64::EPSILON);
        ln_joint.iter_mut().for_each(|ln_p| *ln_p += self.ln_evidence);
        Ok(AllocationSums {
            ln_joint,
            counts: draws.cells.iter().map(|share| mean * share).collect(),
            ln_unit: self.ln_evidence,
            ln_remainder: self.ln_evidence + left.ln(),
        })
    }
}

/// Probability of totals beyond the last of a distribution.
fn left(ln_law: &[f64]) -> f64 {
    1.0 - ln_law.iter().map(|ln_p| ln_p.exp()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::evidence::EvidenceMethod;
    use crate::allocation::model::network::{Network, Prior};
    use crate::counts::CountTensor;

    /// Sizes, parents and ties of the nodes.
    type Graph<'a> = (&'a [usize], &'a [&'a [usize]], &'a [Vec<usize>]);

    /// Tables with missing cells under a mixture, a core of two hidden nodes, two hidden nodes that
    /// are summed out apart, tied axes, and nothing hidden.
    fn cases() -> Vec<(Network, CountTensor, Vec<u32>)> {
        let graphs: [Graph<'_>; 5] = [
            (&[2, 3, 2], &[&[2], &[2], &[]], &[]),
            (&[2, 3, 2, 2], &[&[2], &[3], &[], &[2]], &[]),
            (&[2, 3, 2, 2], &[&[], &[3], &[0], &[2]], &[]),
            (&[3, 3, 2], &[&[2], &[2], &[]], &[vec![0, 1]]),
            (&[2, 3], &[&[], &[0]], &[]),
        ];
        let case = |(sizes, parents, ties): Graph<'_>| {
            let parents = parents.iter().map(|of| of.to_vec()).collect();
            // A tied table counts tokens twice, those of the prior too.
            let tables = (!ties.is_empty()).then(|| vec![2.0 / 3.0, 2.0 / 3.0, 1.0]);
            let prior = Prior { concentration: 2.0, tables };
            let network = Network::new(sizes.to_vec(), parents, vec![0, 1], ties, prior).unwrap();
            let data = CountTensor::new(vec![2, 3], &[0, 0, 0, 1, 1, 0], &[3, 1, 2]).unwrap();
            (network, data, vec![1, 1, 1, 2])
        };
        graphs.into_iter().map(case).collect()
    }

    #[test]
    fn totals_and_expected_counts_are_those_of_all_allocations() {
        let mut settings = EvidenceSettings::new(EvidenceMethod::Sample(EvidenceSampler::Tempered));
        (settings.n_replicates, settings.target_std_error) = (Some(16), Some(0.02));
        for (index, (network, data, missing)) in cases().into_iter().enumerate() {
            let most = Some(14);
            let incomplete = Incomplete::new(&network, &data, &missing, 0.5, None).unwrap();
            let exact = incomplete.enumerate(most, 1e9, &()).unwrap();
            let found = incomplete.temper(&settings, most, 1, &()).unwrap();
            assert_eq!(found.ln_joint.len(), exact.ln_joint.len());
            for (total, (found, exact)) in found.ln_joint.iter().zip(&exact.ln_joint).enumerate() {
                let (gap, error) = (found.ln_value - exact.ln_value, found.std_error);
                assert!(gap.abs() < 4.0 * error, "{index}, {total}: {gap} {error}");
                assert!(error < 0.2, "{index}, {total}: {error}");
            }
            for (found, exact) in found.expected.iter().zip(&exact.expected) {
                let gap = (found.0 - exact.0).abs();
                assert!(gap < 4.0 * found.1, "{index}: {found:?} {exact:?}");
            }
        }
    }

    #[test]
    fn totals_go_on_until_next_to_nothing_is_left() {
        let (network, data, missing) = cases().swap_remove(0);
        let settings = EvidenceSettings::new(EvidenceMethod::Sample(EvidenceSampler::Tempered));
        let incomplete = Incomplete::new(&network, &data, &missing, 0.5, None).unwrap();
        let found = incomplete.temper(&settings, None, 2, &()).unwrap();
        let listed: LogSum = found.ln_joint.iter().map(|joint| joint.ln_value).collect();
        assert!((listed.ln_sum() - found.evidence.ln_value).abs() < 1e-9);
        assert!(found.ln_remainder < found.evidence.ln_value + (2.0 * LEFT_BY_SAMPLING).ln());
        let shares: f64 = found.posterior.iter().map(|share| share.0).sum();
        assert!((shares - 1.0).abs() < 1e-9);
    }
}
