//! Choice of a document's sampler and of its size.
//!
//! The constants are those with which `python -m benches.truth.coverage` made its records.

use super::super::limits::most;
use crate::control::Observer;
use crate::document::estimators::annealed::{Ends, urn_path};
use crate::document::estimators::prepared::{Opening, Prepared};
use crate::document::estimators::runs::{Replicates, Runs};
use crate::document::estimators::sampler::{Pilot, Sampler};
use crate::document::settings::{AUTO_EXACT, BUDGET, Method, RARE_EXACT, Settings};
use crate::error::Result;
use crate::estimate::{Estimate, log_normal_error};
use crate::math::variance;
use crate::rng::Rng;
use crate::urn::LocalUrn;

/// Growth of the sample size between two attempts at a target error.
const GROWTH: std::ops::RangeInclusive<f64> = 2.0..=16.0;

/// Standard deviation of ln Ẑ that a single run is given its size for: from there on, the mean of
/// some runs is far from normal and its error cannot be read off them.
const RUN_DEVIATION: f64 = 0.4;

/// Largest size that a pilot may choose.
const MOST: usize = 5_000;

/// Temperatures of the shortest runs that lower pseudo-counts.
const LEAST_LOWERED: usize = 100;

/// Most runs of a replicate: Student's law of 64 has 1 in 6,000 beyond 4 errors, that of 16 has 1 in 900.
const MOST_RUNS: usize = 4;

/// The same where weights are softened, and how much shorter these runs are: many short runs
/// end in more ways than few long ones, which settle before pseudo-counts count.
const MOST_SOFTENED: usize = 64;
const SHORTER: usize = 4;

/// Binary digits of the largest size that a budget may allow.
const LARGEST_BITS: u32 = 31;

/// Share of the size that the smaller run has.
const SHARE_BESIDE: f64 = 0.2;

/// Difference from the smaller run, in standard errors, that is no sign of anything.
const PLAIN_DRIFT: f64 = 2.0;

/// ln of how many times more another path finds if it is taken: twice as much, since its errors are larger.
const MORE: f64 = std::f64::consts::LN_2;

/// Effective number of runs below which another path is taken that has twice as many. Of 24 estimates
/// of the rings of a test, five have errors above 3 nats without it.
const FEW: f64 = 3.0;

/// The size of a sampler, and what other runs tell, where there are any.
pub(crate) struct Choice {
    pub(crate) size: usize,
    pub(crate) beside: Option<SmallerRuns>,
    /// ln of the mean Ẑ of runs along another path.
    other: f64,
}

/// A sampler made ready for a document, and its size.
type Ready<'a> = (Prepared<'a>, Choice);

/// Runs of another size, which are no part of the estimate.
pub(crate) struct SmallerRuns {
    size: usize,
    ln_sums: Vec<f64>,
    ends: Option<Ends>,
}

impl SmallerRuns {
    fn estimate(&self) -> Estimate {
        Estimate::from_replicates(&self.ln_sums, self.ln_sums.len() * self.size)
    }
}

impl Choice {
    fn new(size: usize, beside: Option<SmallerRuns>) -> Self {
        Choice { size, beside, other: f64::NEG_INFINITY }
    }

    /// The estimate from these runs, its error by what the smaller runs tell as well.
    ///
    /// A standard error of 16 runs is too small by chance in some documents, most of all where
    /// the runs missed the largest weights: the error is at least that by the variance of ln Ẑ in
    /// both kinds of runs, which falls with their size. It is also at least as large as the drift
    /// from the smaller runs beyond what the errors of both explain: replicates that agree with
    /// each other may all have missed something.
    pub(crate) fn with_beside(&self, estimate: Estimate, ln_sums: &[f64]) -> Estimate {
        let estimate = estimate.beside(self.other);
        let Some(runs) = &self.beside else { return estimate };
        let (beside, SmallerRuns { size, ln_sums: smaller, .. }) = (runs.estimate(), runs);
        let share = *size as f64 / self.size as f64;
        let degrees = [ln_sums.len() - 1, smaller.len() - 1].map(|n| n as f64);
        let squares = degrees[0] * variance(ln_sums) + degrees[1] * share * variance(smaller);
        let pooled = log_normal_error(squares / (degrees[0] + degrees[1]), ln_sums.len());
        // Not a number where a run is zero.
        let least = estimate.std_error.max(pooled);
        let plain = PLAIN_DRIFT * least.hypot(beside.std_error);
        let drift = (estimate.ln_value - beside.ln_value).abs() - plain;
        Estimate { std_error: least.hypot(drift.max(0.0)), ..estimate }
    }
}

/// Finds sizes by pilots: replicates that are not those of the estimate, which is accepted
/// whatever it is and so remains unbiased.
pub(crate) struct Sizing<'a, O> {
    pub(crate) urn: &'a LocalUrn,
    pub(crate) settings: &'a Settings,
    pub(crate) observer: &'a O,
}

impl<'a, O: Observer> Sizing<'a, O> {
    /// The sampler made ready for the document, and its size.
    pub(crate) fn ready(&self, rng: &mut Rng) -> Result<Ready<'a>> {
        let mut prepared = self.prepared(rng)?;
        let mut choice = self.choice(&prepared, rng)?;
        let late = self.may_be_late();
        if let Some(lowered) = prepared.lowered(choice.size, late, rng, self.observer)? {
            prepared = lowered;
            choice = self.choice(&prepared, rng)?;
        }
        if self.is_free() {
            return self.softened_or((prepared, choice), rng);
        }
        let choice = self.for_target(&prepared, choice, rng)?;
        Ok((prepared, choice))
    }

    /// The path of softened weights, where pseudo-counts are lowered and short runs find far more along
    /// it, or most of them something where a few of the others hold all.
    fn softened_or(&self, (prepared, choice): Ready<'a>, rng: &mut Rng) -> Result<Ready<'a>> {
        let softened = prepared.softened(rng, self.observer)?;
        let (Some(softened), Some(SmallerRuns { size, ln_sums, .. })) = (softened, &choice.beside)
        else {
            return Ok((prepared, choice));
        };
        let size = (size / SHORTER).max(LEAST_LOWERED);
        let runs = Runs { n: 2 * SHORTER * ln_sums.len(), sizes: &[size] };
        let found = softened.ln_urn_sums(runs, rng, self.observer)?;
        let [other, own] = [&found, ln_sums]
            .map(|ln_sums| Estimate::from_replicates(ln_sums, ln_sums.len() * size));
        let rests_on_few = own.n_eff < FEW && other.n_eff > MORE.exp() * own.n_eff;
        let (other, own) = (other.ln_value, own.ln_value);
        if rests_on_few || other > own + MORE {
            Ok((softened, Choice { size, beside: None, other: own }))
        } else {
            Ok((prepared, Choice { other, ..choice }))
        }
    }

    /// The sampler of the settings, that of `auto` being annealing unless they ask for particles,
    /// made ready for the document.
    fn prepared(&self, rng: &mut Rng) -> Result<Prepared<'a>> {
        let sampler = match self.settings.method {
            Method::Sample(sampler) => sampler,
            _ if self.settings.n_particles.is_some() => Sampler::SmcLookahead,
            _ => Sampler::Annealed(None),
        };
        let effort = self.settings.size(sampler);
        Prepared::new(sampler, self.urn, effort, rng, self.observer)
    }

    /// The size asked for, or the default, or what pilots find.
    fn choice(&self, prepared: &Prepared<'_>, rng: &mut Rng) -> Result<Choice> {
        match (self.settings.size(prepared.sampler), prepared.sampler.pilot()) {
            (Some(size), _) => Ok(Choice::new(size, None)),
            (None, None) => Ok(Choice::new(1, None)),
            (None, Some(pilot)) if matches!(self.settings.method, Method::Sample(_)) => {
                let runs = self.pilot_runs(prepared, pilot, rng)?;
                Ok(Choice::new(self.size_from(prepared, pilot, &runs.ln_sums), None))
            }
            (None, Some(pilot)) => self.best(prepared, pilot, rng),
        }
    }

    /// Size of `auto`.
    ///
    /// A first pilot finds a size; where that is far above the pilot's, a run of a fifth of it
    /// measures the deviation again, nearer to where it counts, and stays as the smaller run
    /// beside.
    fn best(&self, prepared: &Prepared<'_>, pilot: Pilot, rng: &mut Rng) -> Result<Choice> {
        let runs = self.pilot_runs(prepared, pilot, rng)?;
        let size = self.size_from(prepared, pilot, &runs.ln_sums);
        let smaller = (SHARE_BESIDE * size as f64) as usize;
        if smaller <= pilot.size {
            return Ok(Choice::new(size, Some(runs)));
        }
        let pilot = Pilot { size: smaller, ..pilot };
        let runs = self.pilot_runs(prepared, pilot, rng)?;
        let size = self.size_from(prepared, pilot, &runs.ln_sums).max(smaller);
        Ok(Choice::new(size, Some(runs)))
    }

    /// Runs of a pilot.
    fn pilot_runs(
        &self,
        prepared: &Prepared<'_>,
        pilot: Pilot,
        rng: &mut Rng,
    ) -> Result<SmallerRuns> {
        let runs = Runs { n: pilot.n_runs, sizes: &[prepared.size_for(pilot.size)] };
        let (replicates, ends) = prepared.replicates_and_ends(runs, rng, self.observer)?;
        Ok(SmallerRuns { size: pilot.size, ln_sums: replicates.ln_values, ends })
    }

    /// Replicates of the sampler.
    ///
    /// A whole bursty topic may be open in some runs and closed in the others, which sweeps hardly change.
    /// If `auto` is free in the size of runs and the estimate is doubtful, these runs are a pilot as well:
    /// the start is moved to their ends, or to those of smaller runs that found more, and others follow
    /// that are no shorter.
    pub(crate) fn replicates(
        &self,
        (prepared, choice): &mut Ready<'a>,
        runs: Runs<'_>,
        rng: &mut Rng,
    ) -> Result<Replicates> {
        let (replicates, ends) = prepared.replicates_and_ends(runs, rng, self.observer)?;
        let (Some(ends), Some(pilot)) = (&ends, prepared.sampler.pilot()) else {
            return Ok(replicates);
        };
        let found = Estimate::from_replicates(&replicates.ln_values, runs.n * choice.size);
        let whole = choice.with_beside(found, &replicates.ln_values);
        if !self.is_free() || !whole.is_doubtful() {
            return Ok(replicates);
        }
        let smaller = choice.beside.as_ref();
        let smaller =
            smaller.and_then(|runs| Some((runs.estimate().ln_value, runs.ends.as_ref()?)));
        let found_more = smaller.filter(|runs| runs.0 > found.ln_value);
        let (best, ends_of_best) = found_more.unwrap_or((found.ln_value, ends));
        prepared.move_to(ends_of_best, rng, self.observer)?;
        let other = choice.other.max(best);
        let smaller = ((SHARE_BESIDE * choice.size as f64) as usize).max(pilot.size);
        let pilot = Pilot { size: smaller, ..pilot };
        let beside = self.pilot_runs(prepared, pilot, rng)?;
        let size = self.size_from(prepared, pilot, &beside.ln_sums).max(choice.size);
        *choice = Choice { size, beside: Some(beside), other };
        prepared.replicates(Runs { sizes: &[size], ..runs }, rng, self.observer)
    }

    /// Particles, draws or steps of a run, given its size in the units of pilots.
    pub(crate) fn made(&self, prepared: &Prepared<'_>, size: usize) -> usize {
        match self.settings.n_samples {
            Some(_) => prepared.size_given(size),
            None => prepared.size_for(size),
        }
    }

    /// Whether `auto` is free in the size of runs.
    fn is_free(&self) -> bool {
        let Settings { method, n_samples, target_std_error, .. } = *self.settings;
        method == Method::Auto && n_samples.is_none() && target_std_error.is_none()
    }

    /// Whether runs of `auto` that lower pseudo-counts are as cheap as exact sums of any document may be.
    fn may_be_late(&self) -> bool {
        let n_runs = self.settings.n_replicates as f64;
        self.is_free() && n_runs * urn_path::lowered_cost(self.urn, LEAST_LOWERED) <= AUTO_EXACT
    }

    /// Size by the ln Ẑ of a pilot's runs, whose variance falls with it.
    ///
    /// Runs of `auto` that lower pseudo-counts take as long as an exact sum of the document may: as few
    /// as one in ten open the topics that it needs most, and those of a pilot agree on what they all
    /// miss.
    fn size_from(&self, prepared: &Prepared<'_>, pilot: Pilot, ln_sums: &[f64]) -> usize {
        let size = pilot.size as f64 * (variance(ln_sums).sqrt() / RUN_DEVIATION).powi(2);
        let most = self.largest(prepared).clamp(pilot.least, MOST);
        let least = match prepared.opening {
            _ if self.settings.method != Method::Auto => 0,
            Opening::ByToken | Opening::Softened => 0,
            Opening::Late => self.within(prepared, AUTO_EXACT),
            Opening::Rare => self.within(prepared, RARE_EXACT / MOST_RUNS as f64),
        };
        (size as usize).max(least).clamp(pilot.least, most)
    }

    /// Runs of a replicate, which is their mean: some where `auto` is free and lowers pseudo-counts, within
    /// the budget of a document. The largest of 16 weights, on which most may rest, is
    /// too often missing among them.
    pub(crate) fn runs_each(&self, prepared: &Prepared<'_>, size: usize) -> usize {
        if prepared.opening == Opening::ByToken || !self.is_free() {
            return 1;
        }
        let operations = self.settings.n_replicates as f64 * prepared.cost(size);
        let most = if prepared.opening == Opening::Softened { MOST_SOFTENED } else { MOST_RUNS };
        ((BUDGET / operations) as usize).clamp(1, most)
    }

    /// The choice for a target error: twice the size at which a pilot reaches it. The estimate's own
    /// error is then above the target in a few documents of a hundred.
    ///
    /// The smaller run beside is then the last pilot that missed the target. The first one, far
    /// smaller, would be the drift of every document that needs large sizes.
    fn for_target(
        &self,
        prepared: &Prepared<'_>,
        mut choice: Choice,
        rng: &mut Rng,
    ) -> Result<Choice> {
        let Some(target) = self.settings.target_std_error else { return Ok(choice) };
        let largest = self.largest(prepared);
        loop {
            let size = choice.size;
            let runs = Runs { n: self.settings.n_replicates, sizes: &[self.made(prepared, size)] };
            let ln_sums = prepared.ln_urn_sums(runs, rng, self.observer)?;
            let pilot = Estimate::from_replicates(&ln_sums, ln_sums.len() * size);
            let std_error = choice.with_beside(pilot, &ln_sums).std_error;
            if std_error <= target || size >= largest {
                choice.size = (2 * size).min(largest.max(size));
                return Ok(choice);
            }
            let growth = (1.3 * (std_error / target).powi(2)).clamp(*GROWTH.start(), *GROWTH.end());
            choice.size = ((size as f64 * growth) as usize).min(largest);
            choice.beside = choice.beside.map(|_| SmallerRuns { size, ln_sums, ends: None });
        }
    }

    /// Size that the budget and the memory of one document have room for.
    fn largest(&self, prepared: &Prepared<'_>) -> usize {
        let n_runs = self.settings.n_replicates;
        let budget = match self.settings.budget {
            Some(budget) if self.settings.is_auto_without_target() => budget.max(BUDGET),
            budget => budget.unwrap_or(BUDGET),
        };
        let most = most(prepared.sampler, self.urn.extent(), n_runs);
        self.within(prepared, budget).min(most).max(1)
    }

    /// Largest size of which all runs take so many multiply-adds at most.
    fn within(&self, prepared: &Prepared<'_>, operations: f64) -> usize {
        let operations = operations / self.settings.n_replicates as f64;
        let mut size = 0;
        for bit in (0..LARGEST_BITS).rev() {
            let larger = size | 1 << bit;
            if prepared.cost(larger) <= operations {
                size = larger;
            }
        }
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::exact::bursty::ln_sum_by_words;
    use crate::document::{Event, Query};
    use crate::rng::{Key, Purpose};
    use crate::urn::TopicBursts;

    const LN_SUMS: [f64; 4] = [-3.0, -3.1, -3.0, -3.1];

    #[test]
    fn errors_rest_on_the_smaller_runs_as_well() {
        let alone = Estimate::from_replicates(&LN_SUMS, 400);
        let beside = |smaller: [f64; 4]| {
            let beside = Some(SmallerRuns { size: 20, ln_sums: smaller.to_vec(), ends: None });
            Choice::new(100, beside).with_beside(alone, &LN_SUMS)
        };
        let (pooled, together) = ((0.01 + 0.2) / 6.0_f64, beside([-3.0, -4.0, -3.0, -4.0]));
        assert!((together.std_error - (pooled.exp_m1() / 4.0).sqrt()).abs() < 1e-12);
        assert!(together.std_error > alone.std_error);
        assert_eq!(beside([-3.05; 4]), alone);
        assert_eq!(beside([-3.0, -3.1, -3.0, f64::NEG_INFINITY]), alone);
    }

    /// A start that pilots, of which the runs beside are said to find more than there is, put into one of two
    /// topics: other runs follow, are unbiased all the same, and their error says what was found.
    #[test]
    fn doubtful_runs_of_bursty_topics_start_again_from_those_that_found_more() {
        let (even, bursts) =
            ([0.5, 0.5], TopicBursts { rates: vec![0.1; 2], repeats: vec![0.1; 2] });
        let rows: [(&[f64], u32); 4] =
            [(&[0.2, 0.1], 20), (&[0.1, 0.2], 20), (&even, 9), (&even, 9)];
        let urn = LocalUrn::from_scaled_rows(&even, &rows, None, Some(&bursts)).unwrap();
        let exact = ln_sum_by_words(&urn, urn.bursts().unwrap(), &()).unwrap();
        let settings = Settings::new(Query { event: Event::Sequence, given_length: true });
        let sizing = Sizing { urn: &urn, settings: &settings, observer: &() };
        for more in [0.0, 20.0] {
            let mut rng = Key::new(3, Purpose::Score).rng();
            let mut ready = sizing.ready(&mut rng).unwrap();
            let size = ready.1.size;
            let beside = ready.1.beside.as_mut().unwrap();
            beside.ln_sums.iter_mut().for_each(|ln_sum| *ln_sum += more);
            let told = beside.estimate().ln_value;
            beside.ends.as_mut().unwrap().put_into(1);
            let runs = Runs { n: settings.n_replicates, sizes: &[size] };
            let ln_sums = sizing.replicates(&mut ready, runs, &mut rng).unwrap().ln_values;
            let found = Estimate::from_replicates(&ln_sums, ln_sums.len() * ready.1.size);
            assert!((found.ln_value - exact).abs() < 4.0 * found.std_error, "{found:?} {exact}");
            let whole = ready.1.with_beside(found, &ln_sums);
            if more == 0.0 {
                assert_eq!((ready.1.size, ready.1.other), (size, f64::NEG_INFINITY));
                assert!(whole.std_error < 0.2, "{whole:?}");
            } else {
                assert!(ready.1.size >= size);
                assert_eq!(ready.1.other.to_bits(), told.to_bits());
                assert!(whole.std_error > 0.45 * more, "{whole:?}");
            }
        }
    }
}
