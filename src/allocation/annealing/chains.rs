//! Evidence by annealing: along the path from the average of all allocations, or along several, each
//! from a mode of the posterior.
//!
//! A path j is taken with probability p_j. Its mode has named the hidden values, so that allocations
//! come with one of K! names σ, which the law does not tell apart. The law is therefore extended by
//! r(j, σ | S), the probability that S would be said to have come along path j under the names σ.
//! As that sums to 1, an allocation S counts K! r(j, 1 | S)/p_j times its weight, and the mean is the
//! evidence, whatever r is; it varies little where r is right.

use rand::RngExt as _;

use super::annealed::{Path, Pilot};
use super::labels::{Fit, Labels, LnShares};
use super::modes::{self, Mode};
use crate::allocation::kernel::chains::Chains;
use crate::allocation::memory::Load;
use crate::allocation::model::problem::Problem;
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::math::{LogSum, pick};
use crate::rng::{Key, LANES, Lanes, Rng, Uniforms};

/// Populations of a replicate that has several paths.
const POPULATIONS: usize = 4;

/// Temperatures of each of them, as a share of those of a replicate that has one path.
const SHORTER: usize = 4;

/// Paths from modes.
const N_MODES: usize = 4;

/// Least probability of a path from a mode.
const LEAST_SHARE: f64 = 0.02;

/// Temperatures of the pilot along the path from the average.
const PILOT_TEMPERATURES: usize = 200;

/// Temperatures below which there are none to spare for a look for modes.
const LEAST_TEMPERATURES: usize = 100;

/// Share of the temperatures at which the two kinds of paths are compared.
const COMPARED: usize = 8;

/// By how many nats the paths from modes must find more than the path from the average.
const ADVANTAGE: f64 = 3.0;

/// Paths to the law of allocations.
pub(crate) struct Annealing<'a> {
    problem: &'a Problem,
    n_temperatures: usize,
    start: Start<'a>,
}

enum Start<'a> {
    /// From the average, which does not know names apart.
    Average(Path<'a>),
    /// From modes, which every replicate finds for itself: none finds all.
    Modes(Labels),
}

/// A path from a mode.
struct Route<'a> {
    path: Path<'a>,
    /// p.
    share: f64,
    ln_shares: LnShares,
}

impl<'a> Annealing<'a> {
    /// Chains of a replicate: populations from all modes at a time.
    pub(crate) fn load(problem: &Problem, n_chains: usize) -> Load {
        Load {
            n_chains: n_chains.max(N_MODES * LANES),
            n_shares: N_MODES * problem.n_cells() * problem.n_states(),
            ..problem.load()
        }
    }

    /// Takes the kind of paths that finds more in a short run.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the observer asks to stop.
    pub(crate) fn new(
        problem: &'a Problem,
        n_temperatures: usize,
        key: Key,
        observer: &impl Observer,
    ) -> Result<Self> {
        let average = problem.average();
        let mut rng = key.unit(0).rng();
        let n_pilot = PILOT_TEMPERATURES.min(n_temperatures);
        let pilot = Pilot::new(problem, &average, n_pilot, &mut rng, observer)?;
        let of_average = |n| Path::new(problem, average.clone(), &pilot, n);
        let spares = n_temperatures >= LEAST_TEMPERATURES;
        if let Some(labels) = Labels::new(problem).filter(|_| spares) {
            let n = n_temperatures.div_ceil(COMPARED);
            let by_average = of_average(n).ln_sum(1, uncounted, &mut rng, observer)?;
            let modes = Annealing { problem, n_temperatures: n, start: Start::Modes(labels) };
            let by_modes = modes.ln_sum(1, key.unit(1), observer)?;
            if by_modes > by_average + ADVANTAGE {
                return Ok(Annealing { n_temperatures, ..modes });
            }
        }
        let start = Start::Average(of_average(n_temperatures));
        Ok(Annealing { problem, n_temperatures, start })
    }

    /// ln Ẑ of one replicate of populations of `n_groups` times [`LANES`] chains. Unbiased.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the observer asks to stop.
    pub(crate) fn ln_sum(
        &self,
        n_groups: usize,
        key: Key,
        observer: &impl Observer,
    ) -> Result<f64> {
        let mut rng = key.rng();
        let labels = match &self.start {
            Start::Average(path) => {
                return path.ln_sum(n_groups, uncounted, &mut rng, observer);
            }
            Start::Modes(labels) => labels,
        };
        let routes = self.routes(labels, key.unit(0), observer)?;
        let start: f64 = rng.random();
        let mut sum = LogSum::default();
        for population in 0..POPULATIONS {
            let chosen = chosen(&routes, (population as f64 + start) / POPULATIONS as f64);
            let counted = |chains: &Chains<'_, _>, rng: &mut Rng| {
                ln_factors(labels, &routes, chosen, chains, rng, observer)
            };
            sum.push(routes[chosen].path.ln_sum(n_groups, counted, &mut rng, observer)?);
        }
        Ok(sum.ln_mean())
    }

    /// Paths from modes, with probabilities by what each of them is alone in finding.
    fn routes(
        &self,
        labels: &Labels,
        key: Key,
        observer: &impl Observer,
    ) -> Result<Vec<Route<'a>>> {
        let problem = self.problem;
        let modes = modes::find(problem, N_MODES, self.n_temperatures, key.unit(0), observer)?;
        let n_temperatures = self.n_temperatures.div_ceil(SHORTER);
        let even = (modes.len() as f64).recip();
        let route = |Mode { rows, pilot }: &Mode<'a>| Route {
            path: Path::new(problem, rows.clone(), pilot, n_temperatures),
            share: even,
            ln_shares: labels.ln_shares(problem, rows),
        };
        let mut routes: Vec<Route<'a>> = modes.iter().map(route).collect();
        let mut rng = key.unit(1).rng();
        let promise = |(index, mode): (usize, &Mode<'a>)| {
            let Pilot { ln_weights, chains, .. } = &mode.pilot;
            let ln_factors = ln_factors(labels, &routes, index, chains, &mut rng, observer)?;
            let ln_values = ln_weights.iter().zip(ln_factors).map(|(x, factor)| x + factor);
            Ok(ln_values.collect::<LogSum>().ln_mean())
        };
        let promises: Vec<f64> = modes.iter().enumerate().map(promise).collect::<Result<_>>()?;
        let best = promises.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Weights of short runs vary too much to be taken at their word.
        let roots: Vec<f64> =
            promises.iter().map(|promise| (0.5 * (promise - best)).exp()).collect();
        let total: f64 = roots.iter().sum();
        let shares: Vec<f64> = roots.iter().map(|root| (root / total).max(LEAST_SHARE)).collect();
        let total: f64 = shares.iter().sum();
        routes.iter_mut().zip(shares).for_each(|(route, share)| route.share = share / total);
        Ok(routes)
    }

    /// ln Ẑ of every chain, backwards from draws of the posterior, along paths and with names drawn
    /// given the allocations: the mean of 1/Ẑ is 1/Z.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the observer asks to stop.
    pub(crate) fn ln_sums_reversed(
        &self,
        chains: Chains<'a, Uniforms>,
        key: Key,
        observer: &impl Observer,
    ) -> Result<Lanes> {
        let labels = match &self.start {
            Start::Average(path) => return path.ln_sums_reversed(chains, observer),
            Start::Modes(labels) => labels,
        };
        let routes = self.routes(labels, key.unit(0), observer)?;
        let rng = &mut key.rng();
        let mut fits = Vec::with_capacity(LANES);
        for lane in 0..LANES {
            if observer.stopped() {
                return Err(Error::Stopped);
            }
            fits.push(RouteFits::new(&all_fits(labels, &routes, &chains, lane), &routes));
        }
        let drawn: Vec<usize> = fits.iter().map(|fits| fits.draw(&routes, rng.random())).collect();
        let mut ln_values = [0.0; LANES];
        for (index, route) in routes.iter().enumerate() {
            let is_drawn = |lane: &usize| drawn[*lane] == index;
            if !(0..LANES).any(|lane| is_drawn(&lane)) {
                continue;
            }
            // All lanes go along, and those that have drawn the path are looked at.
            let mut states = chains.states();
            let mut ln_factors = [labels.ln_n_names(); LANES];
            for (lane, ln_factor) in ln_factors.iter_mut().enumerate() {
                let (names, ln_names) = labels.fit(&chains, lane, &route.ln_shares).draw(rng);
                labels.rename(self.problem, &names, &mut states, lane);
                *ln_factor += fits[lane].ln_ratio(index) + ln_names;
            }
            let renamed = Chains::of_states(self.problem, &states, rng)?;
            let found = route.path.ln_sums_reversed(renamed, observer)?;
            for lane in (0..LANES).filter(is_drawn) {
                ln_values[lane] = found[lane] + ln_factors[lane];
            }
        }
        Ok(ln_values)
    }
}

/// The route at a point between 0 and 1.
fn chosen(routes: &[Route<'_>], dart: f64) -> usize {
    pick(routes.iter().map(|route| route.share), dart).unwrap_or(0)
}

/// ln of how often allocations count that came along the only path.
#[expect(clippy::unnecessary_wraps, reason = "the same as what tells paths apart")]
fn uncounted(_: &Chains<'_, Uniforms>, _: &mut Rng) -> Result<Lanes> {
    Ok([0.0; LANES])
}

/// ln K! r(j, 1 | S)/p_j of every chain.
///
/// # Errors
/// [`Error::Stopped`] when the observer asks to stop.
fn ln_factors(
    labels: &Labels,
    routes: &[Route<'_>],
    route: usize,
    chains: &Chains<'_, Uniforms>,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<Lanes> {
    let mut ln_factors = [labels.ln_n_names(); LANES];
    for (lane, ln_factor) in ln_factors.iter_mut().enumerate() {
        if observer.stopped() {
            return Err(Error::Stopped);
        }
        let mut fits = all_fits(labels, routes, chains, lane);
        *ln_factor += RouteFits::new(&fits, routes).ln_ratio(route);
        *ln_factor += fits.swap_remove(route).ln_unchanged(rng);
    }
    Ok(ln_factors)
}

/// How an allocation fits each route.
fn all_fits(
    labels: &Labels,
    routes: &[Route<'_>],
    chains: &Chains<'_, Uniforms>,
    lane: usize,
) -> Vec<Fit> {
    routes.iter().map(|route| labels.fit(chains, lane, &route.ln_shares)).collect()
}

/// How an allocation fits all routes.
struct RouteFits {
    ln_fits: Vec<f64>,
    /// ln Σ p_j exp(fit_j).
    ln_total: f64,
}

impl RouteFits {
    fn new(fits: &[Fit], routes: &[Route<'_>]) -> Self {
        let ln_fits: Vec<f64> = fits.iter().map(Fit::ln_fit).collect();
        let terms = ln_fits.iter().zip(routes).map(|(ln_fit, route)| ln_fit + route.share.ln());
        let total: LogSum = terms.collect();
        RouteFits { ln_fits, ln_total: total.ln_sum() }
    }

    /// ln r(j | S)/p_j.
    fn ln_ratio(&self, route: usize) -> f64 {
        self.ln_fits[route] - self.ln_total
    }

    /// Draws a route.
    fn draw(&self, routes: &[Route<'_>], dart: f64) -> usize {
        let probability = |index: usize| routes[index].share * self.ln_ratio(index).exp();
        pick((0..routes.len()).map(probability), dart).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use rayon::prelude::*;

    use super::*;
    use crate::allocation::exact::enumeration;
    use crate::allocation::kernel::counts::Target;
    use crate::allocation::model::network::{Network, Prior};
    use crate::counts::CountTensor;
    use crate::rng::Purpose;
    use crate::urn::Order;

    const N: u64 = 400;

    /// A table of few tokens under a network whose nodes `0` and `1` are visible.
    fn problem(
        sizes: &[usize],
        parents: &[&[usize]],
        concentration: f64,
        counts: [i64; 5],
    ) -> Problem {
        let parents = parents.iter().map(|parents| parents.to_vec()).collect();
        let prior = Prior { concentration, tables: None };
        let network = Network::new(sizes.to_vec(), parents, vec![0, 1], &[], prior).unwrap();
        let cells = [0, 0, 0, 1, 1, 1, 2, 0, 2, 2];
        let data = CountTensor::new(vec![3, 3], &cells, &counts).unwrap();
        Problem::new(&network, &data, None).unwrap()
    }

    /// A mixture; a core of two hidden nodes; a chain of two, which are summed out apart; and a
    /// mixture with cells whose tokens are redrawn together.
    fn problems() -> [Problem; 4] {
        let counts = [3, 1, 2, 1, 2];
        [
            problem(&[3, 3, 3], &[&[2], &[2], &[]], 0.5, counts),
            problem(&[3, 3, 2, 2], &[&[2], &[3], &[], &[2]], 1.0, counts),
            problem(&[3, 3, 2, 3], &[&[], &[3], &[0], &[2]], 1.0, counts),
            problem(&[3, 3, 2], &[&[2], &[2], &[]], 0.5, [25, 1, 18, 1, 2]),
        ]
    }

    fn from_modes(problem: &Problem) -> Annealing<'_> {
        let labels = Labels::new(problem).unwrap();
        Annealing { problem, n_temperatures: 400, start: Start::Modes(labels) }
    }

    /// The mean of many estimates over the truth, and its error.
    fn mean(ln_ratios: impl Iterator<Item = f64>) -> (f64, f64) {
        let sum: LogSum = ln_ratios.collect();
        (sum.ln_mean().exp(), sum.std_error() * sum.ln_mean().exp())
    }

    #[test]
    fn paths_from_modes_are_unbiased() {
        for problem in &problems() {
            let ln_truth = enumeration::ln_sum(problem, 1e8, &()).unwrap();
            let annealing = from_modes(problem);
            let key = Key::new(1, Purpose::Score);
            let run = |unit| annealing.ln_sum(1, key.unit(unit), &()).unwrap() - ln_truth;
            let found: Vec<f64> = (0..N).into_par_iter().map(run).collect();
            let (mean, error) = mean(found.into_iter());
            assert!((mean - 1.0).abs() < 4.0 * error, "{mean} {error}");
            assert!(error < 0.1, "{error}");
        }
    }

    #[test]
    fn backwards_from_the_posterior_their_inverses_are() {
        let [light, _, _, heavy] = &problems();
        for problem in [light, heavy] {
            let ln_truth = enumeration::ln_sum(problem, 1e8, &()).unwrap();
            let annealing = from_modes(problem);
            let alphas = problem.alphas();
            let key = Key::new(2, Purpose::Score);
            let run = |unit| {
                let (key, target) = (key.unit(unit), Target { base: &alphas, unit: 1.0 });
                let mut chains = Chains::uniform(problem, &mut key.unit(9).rng(), &()).unwrap();
                (0..500).for_each(|_| chains.sweep(target, Order::Forward, &()).unwrap());
                let ln_values = annealing.ln_sums_reversed(chains, key, &()).unwrap();
                ln_values.map(|x| ln_truth - x).into_iter().collect::<LogSum>().ln_mean()
            };
            let found: Vec<f64> = (0..N).into_par_iter().map(run).collect();
            let (mean, error) = mean(found.into_iter());
            assert!((mean - 1.0).abs() < 4.0 * error, "{mean} {error}");
            assert!(error < 0.1, "{error}");
        }
    }
}
