//! Document completion: the probability of further tokens of a document given the first ones.

use rayon::prelude::*;

use super::exact::Plan;
use super::runs::Runs;
use super::sampling::Sizing;
use super::scoring::{AUTO_EXACT, BUDGET, check, check_exact};
use super::{Event, Method, Sampler, Score, Settings, TopicModel, recursive, smc};
use crate::control::Observer;
use crate::counts::{CountMatrix, Document};
use crate::error::{Error, Result};
use crate::estimate::Estimate;
use crate::math::{ln_factorial, ln_rising};
use crate::rng::{Key, Purpose, Rng};
use crate::urn::LocalUrn;

/// ln p(held-out tokens | observed tokens, numbers of both), document by document.
///
/// `Z(observed, held out) / Z(observed, as many tokens of any word)`: the denominator has a closed
/// form beyond Z(observed) where all topics are equally productive, as they are in LDA. Numerator
/// and denominator come from the same particles where the filter estimates them under LDA, else
/// from independent runs. NaN where the observed tokens are impossible.
///
/// # Errors
/// What [`score`](super::score) refuses, and matrices that disagree in size.
pub fn completion(
    model: &TopicModel,
    observed: &CountMatrix,
    held_out: &CountMatrix,
    settings: &Settings,
    seed: u64,
    observer: &impl Observer,
) -> Result<Vec<Option<Score>>> {
    check(model, observed, settings)?;
    check(model, held_out, settings)?;
    if observed.n_documents() != held_out.n_documents() {
        return Err(Error::Length {
            name: "held-out documents",
            found: held_out.n_documents(),
            expected: observed.n_documents(),
        });
    }
    let pair = |row: usize| Pair {
        model,
        observed: observed.document(row),
        held_out: held_out.document(row),
    };
    if settings.method == Method::Exact {
        let budget = settings.budget.unwrap_or(BUDGET);
        for row in 0..observed.n_documents() {
            let all = pair(row).rows_of_all();
            if let Some(urn) = LocalUrn::of_rows(model.urn().pseudo_counts(), &all) {
                check_exact(&urn, row, budget)?;
            }
        }
    }
    let key = Key::new(seed, Purpose::Score);
    (0..observed.n_documents())
        .into_par_iter()
        .with_max_len(1)
        .map(|row| match pair(row).score(settings, key, observer) {
            Ok(score) => {
                observer.advance(1);
                let orders = settings.query.event == Event::Counts;
                let ln_factor = if orders { ln_orders(held_out.document(row)) } else { 0.0 };
                Ok(Some(score.scaled(ln_factor)))
            }
            Err(Error::Stopped) => Ok(None),
            Err(error) => Err(error),
        })
        .collect()
}

/// ln of the number of orders of a bag of words.
fn ln_orders(document: Document<'_>) -> f64 {
    let repeats = document.counts().iter().map(|&y| ln_factorial(u64::from(y)));
    ln_factorial(document.n_tokens()) - repeats.sum::<f64>()
}

struct Pair<'a> {
    model: &'a TopicModel,
    observed: Document<'a>,
    held_out: Document<'a>,
}

impl<'a> Pair<'a> {
    fn rows(&self, document: Document<'a>) -> Vec<(&'a [f64], u32)> {
        document.cells().map(|(word, y)| (self.model.urn().weights(word), y)).collect()
    }

    /// Those of the observed tokens first.
    fn rows_of_all(&self) -> Vec<(&'a [f64], u32)> {
        [self.rows(self.observed), self.rows(self.held_out)].concat()
    }

    fn score(&self, settings: &Settings, key: Key, observer: &impl Observer) -> Result<Score> {
        let a = self.model.urn().pseudo_counts();
        let n_held_out = self.held_out.n_tokens();
        let constant = |x| Score::of(Estimate::exact(x), Method::Exact);
        let mut first = self.rows(self.observed);
        if n_held_out == 0 {
            return Ok(constant(0.0));
        }
        if LocalUrn::of_rows(a, &first).is_none() {
            return Ok(constant(f64::NAN));
        }
        let Some(all) = LocalUrn::of_rows(a, &self.rows_of_all()) else {
            return Ok(constant(f64::NEG_INFINITY));
        };
        let n_first = first.len();
        let lengths = self.model.lengths();
        let n_anything = u32::try_from(n_held_out).map_err(|_| Error::Memory {
            name: "held-out tokens of a document",
            bytes: n_held_out as f64,
        })?;
        if let Some(lengths) = lengths {
            first.push((lengths.totals(), n_anything));
        }
        let Some(first) = LocalUrn::of_rows(a, &first) else { return Ok(constant(f64::NAN)) };
        let ln_anything = match lengths {
            Some(_) => 0.0,
            None => ln_rising(a.iter().sum::<f64>() + self.observed.n_tokens() as f64, n_held_out),
        };
        let shared = lengths.is_none().then_some(n_first);
        let mut rng = key.document(self.observed).document(self.held_out).rng();
        let score = ratio(&all, &first, shared, settings, &mut rng, observer)?;
        Ok(score.scaled(-ln_anything))
    }
}

/// Z of all over Z of the first words.
fn ratio(
    all: &LocalUrn,
    first: &LocalUrn,
    shared: Option<usize>,
    settings: &Settings,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<Score> {
    let empty = first.n_tokens() == 0;
    let sampler = match settings.method {
        Method::Recursive => {
            let ln_value = recursive::ln_urn_sum(all) - recursive::ln_urn_sum(first);
            return Ok(Score::of(Estimate::without_error(ln_value), Method::Recursive));
        }
        Method::Auto | Method::Exact => {
            let plan = Plan::new(all);
            let budget = AUTO_EXACT.min(settings.budget.unwrap_or(BUDGET));
            if settings.method == Method::Exact || plan.within(budget) {
                let below = if empty { 0.0 } else { Plan::new(first).run(first, observer)? };
                let ln_value = plan.run(all, observer)? - below;
                return Ok(Score::of(Estimate::exact(ln_value), Method::Exact));
            }
            None
        }
        Method::Sample(sampler) => Some(sampler),
    };
    let sizing = Sizing { urn: all, settings, observer };
    let (sampler, size) = match sampler {
        Some(sampler) => (sampler, sizing.first(sampler, rng)?),
        None => sizing.best(rng)?,
    };
    let n = settings.n_replicates;
    let n_samples = n * size;
    let estimate = match shared {
        Some(n_first) if sampler == Sampler::SmcLookahead => {
            let (below, above) =
                smc::ln_urn_sums_of_part_and_all(all, n_first, n, size, rng, observer)?;
            Estimate::ratio(&above, &below, n_samples)
        }
        _ => {
            let runs = Runs { n, sizes: &[size] };
            let above = sampler.ln_urn_sums(all, runs, rng, observer)?;
            let above = Estimate::from_replicates(&above, n_samples);
            if empty {
                above
            } else {
                let below = sampler.ln_urn_sums(first, runs, rng, observer)?;
                above.over(Estimate::from_replicates(&below, n_samples))
            }
        }
    };
    let method = Method::Sample(sampler);
    Ok(Score { estimate, method, size, reached: true, trace: Vec::new() })
}
