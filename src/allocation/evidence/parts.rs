//! Replicates of a sampler one by one: in processes of their own, and to go on from.

use super::samplers::{self, Run, filtered, of_runs};
use super::settings::{Sampler, Settings};
use super::{Evidence, given_visible};
use crate::allocation::model::problem::Problem;
use crate::allocation::tempering;
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::rng::{Key, Purpose};
use crate::temper::{Course, Found, Outcome};

/// Replicates of a sampler of the evidence, with the same bits as
/// [`evidence`](super::evidence()) in whatever process each of them runs.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// Tensor and network.
    pub problem: &'a Problem,
    /// The sampler.
    pub sampler: Sampler,
    /// Its options.
    pub settings: &'a Settings,
    /// Seed of all replicates.
    pub seed: u64,
}

impl Parts<'_> {
    fn key(&self) -> Key {
        Key::new(self.seed, Purpose::Score)
    }

    /// One replicate of a filter: ln Ẑ, and the relative variance of Ẑ that it knows of.
    ///
    /// # Errors
    /// [`Error::SamplerMemory`](crate::Error::SamplerMemory);
    /// [`Error::NoSampler`](crate::Error::NoSampler) for tempering; those of the filter.
    pub fn run(&self, replicate: usize, observer: &impl Observer) -> Result<Run> {
        let Parts { problem, sampler, settings, seed } = *self;
        samplers::check_memory(problem, sampler, settings, 1)?;
        filtered(problem, sampler, settings, seed, replicate, observer)
    }

    /// The evidence by all replicates of a filter.
    pub fn of_runs(&self, runs: &[Run]) -> Evidence {
        given_visible(self.problem, self.sampler, (of_runs(self.settings, runs), None))
    }

    /// Parameter of the reference that all ladders of a tempering share.
    ///
    /// # Errors
    /// [`Error::SamplerMemory`](crate::Error::SamplerMemory);
    /// [`Error::Stopped`](crate::Error::Stopped).
    pub fn reference(&self, observer: &impl Observer) -> Result<f64> {
        samplers::check_memory(self.problem, Sampler::Tempered, self.settings, 1)?;
        tempering::reference(self.problem, self.key(), observer)
    }

    /// The ladder of a replicate before its first round, as bytes: four for each chain and token at
    /// most, and for each heavy cell and state.
    ///
    /// # Errors
    /// As of [`reference`](Parts::reference).
    pub fn ladder(
        &self,
        kappa: f64,
        replicate: usize,
        observer: &impl Observer,
    ) -> Result<Vec<u8>> {
        samplers::check_memory(self.problem, Sampler::Tempered, self.settings, 1)?;
        let options = samplers::options(self.problem, self.settings);
        tempering::ladder(self.problem, kappa, &options, replicate, self.key(), observer)
    }

    /// The ladder after a part of a round of `n_scans` scans, and what a round that ended has found,
    /// as bytes.
    ///
    /// # Errors
    /// [`Error::Saved`](crate::Error::Saved) for bytes that are no ladder of this work;
    /// [`Error::Stopped`](crate::Error::Stopped).
    pub fn ladder_part(
        &self,
        kappa: f64,
        saved: &[u8],
        n_scans: usize,
        observer: &impl Observer,
    ) -> Result<(Vec<u8>, Option<Vec<u8>>)> {
        let (saved, found) = tempering::ladder_part(self.problem, kappa, saved, n_scans, observer)?;
        let found = found.map(|found| postcard::to_allocvec(&found)).transpose();
        Ok((saved, found.map_err(|_| Error::Saved)?))
    }

    /// The evidence by the rounds of tempering so far, the findings of all ladders in each of them,
    /// and the scans of the next round, if there is to be one.
    ///
    /// # Errors
    /// [`Error::Saved`] for rounds beyond the last one, or of other work.
    pub fn course<B: AsRef<[u8]>>(&self, rounds: &[Vec<B>]) -> Result<(Evidence, Option<usize>)> {
        let course = self.course_so_far(rounds)?;
        Ok((self.of_outcome(course.outcome), course.next_scans))
    }

    /// The evidence by all rounds of tempering, or by another path where they have not settled.
    ///
    /// # Errors
    /// As of [`course`](Parts::course) and [`reference`](Parts::reference).
    pub fn finish<B: AsRef<[u8]>>(
        &self,
        rounds: &[Vec<B>],
        observer: &impl Observer,
    ) -> Result<Evidence> {
        let (found, key) = (self.course_so_far(rounds)?.outcome, self.key());
        let options = samplers::options(self.problem, self.settings);
        let found = tempering::finish(self.problem, found, &options, key, observer)?;
        Ok(self.of_outcome(found))
    }

    fn of_outcome(&self, outcome: Outcome) -> Evidence {
        given_visible(self.problem, self.sampler, (outcome.estimate(), Some(outcome)))
    }

    fn course_so_far<B: AsRef<[u8]>>(&self, rounds: &[Vec<B>]) -> Result<Course> {
        let n_replicates = self.settings.n_replicates();
        let read = |found: &Vec<B>| {
            let of_ladders = found.iter().map(|bytes| postcard::from_bytes(bytes.as_ref()));
            let found: Vec<Found> = of_ladders.collect::<postcard::Result<_>>().ok()?;
            (found.len() == n_replicates).then_some(found)
        };
        let rounds: Option<Vec<Vec<Found>>> = rounds.iter().map(read).collect();
        let options = samplers::options(self.problem, self.settings);
        tempering::course(self.problem, &options, &rounds.ok_or(Error::Saved)?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Method, evidence};
    use super::*;
    use crate::allocation::model::examples::{CHAIN, FIVE_CELLS, MIXTURE, table_under};

    /// A table with light and heavy cells, under one hidden node or under a chain of two.
    fn problem(is_chain: bool) -> Problem {
        let network: (&[usize], _) =
            if is_chain { (&[3, 3, 2, 3], CHAIN) } else { (&[3, 3, 3], MIXTURE) };
        let problem = table_under(network, &[], 1.0, (&FIVE_CELLS, &[41, 1, 34, 1, 2]));
        assert!(problem.counts.iter().any(|&count| problem.is_heavy(count)));
        problem
    }

    #[test]
    fn replicates_one_by_one_are_the_evidence() {
        let problem = problem(false);
        for sampler in [Sampler::Smc, Sampler::SmcLookahead] {
            let settings =
                Settings { n_particles: Some(50), ..Settings::new(Method::Sample(sampler)) };
            let whole = evidence(&problem, &settings, 3, &()).unwrap();
            let parts = Parts { problem: &problem, sampler, settings: &settings, seed: 3 };
            let runs: Vec<Run> =
                (0..4).map(|replicate| parts.run(replicate, &()).unwrap()).collect();
            assert_eq!(parts.of_runs(&runs), whole);
        }
    }

    #[test]
    fn ladders_part_by_part_are_the_evidence() {
        for is_chain in [false, true] {
            let problem = problem(is_chain);
            let sampler = Sampler::Tempered;
            let settings =
                Settings { n_samples: Some(64), ..Settings::new(Method::Sample(sampler)) };
            let whole = evidence(&problem, &settings, 3, &()).unwrap();
            let parts = Parts { problem: &problem, sampler, settings: &settings, seed: 3 };
            let kappa = parts.reference(&()).unwrap();
            let start = |replicate| parts.ladder(kappa, replicate, &()).unwrap();
            let mut ladders: Vec<Vec<u8>> = (0..4).map(start).collect();
            let mut rounds: Vec<Vec<Vec<u8>>> = Vec::new();
            while let (_, Some(n_scans)) = parts.course(&rounds).unwrap() {
                let round = |saved: &mut Vec<u8>| {
                    let (after, found) = parts.ladder_part(kappa, saved, n_scans, &()).unwrap();
                    *saved = after;
                    found.unwrap()
                };
                rounds.push(ladders.iter_mut().map(round).collect());
            }
            assert_eq!(parts.finish(&rounds, &()).unwrap(), whole);
        }
    }
}
