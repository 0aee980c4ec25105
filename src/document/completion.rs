//! Document completion: the probability of further tokens of a document given the first ones.

use rayon::prelude::*;

use super::limits::{check, check_exact, check_sampler, exact_plans};
use super::settings::{Method, Settings};
use super::urn_sum::ln_urn_sum;
use super::{Event, Score, TopicModel};
use crate::control::{Observer, unless_stopped};
use crate::counts::{CountMatrix, Document};
use crate::error::{Error, Result, check_length};
use crate::estimate::Estimate;
use crate::math::ln_rising;
use crate::rng::{Key, Purpose};
use crate::urn::LocalUrn;

/// ln p(held-out tokens | observed tokens, numbers of both), document by document.
///
/// `Z(observed, held out) / Z(observed, as many tokens of any word)`: the denominator has a closed
/// form beyond Z(observed) where all topics are equally productive, as they are in LDA. Numerator
/// and denominator are estimated independently. NaN where the observed tokens are impossible.
///
/// # Errors
/// Errors of [`score`](super::score), and matrices that disagree in size or exposure.
pub fn completion(
    model: &TopicModel,
    observed: &CountMatrix,
    held_out: &CountMatrix,
    settings: &Settings,
    seed: u64,
    observer: &impl Observer,
) -> Result<Vec<Option<Score>>> {
    check_completion(model, observed, held_out, settings)?;
    let pair = |row: usize| SplitDocument {
        model,
        observed: observed.document(row),
        held_out: held_out.document(row),
    };
    let key = Key::new(seed, Purpose::Score);
    (0..observed.n_documents())
        .into_par_iter()
        .with_max_len(1)
        .map(|row| {
            unless_stopped(pair(row).score(settings, key, observer).map(|score| {
                observer.advance(1);
                let is_bag = settings.query.event == Event::Counts;
                let ln_orders = || model.vocabularies().ln_orders(held_out.document(row));
                score.scaled(if is_bag { ln_orders() } else { 0.0 })
            }))
        })
        .collect()
}

/// Refuses what [`completion`] would refuse, without any work.
///
/// # Errors
/// The errors of [`completion`].
pub fn check_completion(
    model: &TopicModel,
    observed: &CountMatrix,
    held_out: &CountMatrix,
    settings: &Settings,
) -> Result<()> {
    check(model, observed, settings)?;
    check(model, held_out, settings)?;
    check_length("held-out documents", held_out.n_documents(), observed.n_documents())?;
    for (row, (observed, held_out)) in observed.documents().zip(held_out.documents()).enumerate() {
        let exposures = [observed, held_out].map(Document::exposure);
        if exposures[0].to_bits() != exposures[1].to_bits() {
            let (value, domain) = (exposures[1], "that of the observed tokens");
            return Err(Error::Parameter { name: "exposure", index: row, value, domain });
        }
        if observed.prior() != held_out.prior() {
            return Err(Error::PriorsDiffer { document: row });
        }
        let pair = SplitDocument { model, observed, held_out };
        if let CompletionUrns::Two { all, first, .. } = pair.urns()? {
            for urn in [&all, &first] {
                match settings.method {
                    Method::Exact => check_exact(urn, row, settings)?,
                    _ => check_sampler(urn.extent(), row, settings)?,
                }
            }
        }
    }
    Ok(())
}

struct SplitDocument<'a> {
    model: &'a TopicModel,
    observed: Document<'a>,
    held_out: Document<'a>,
}

/// Urns whose sums give the completion of a document.
enum CompletionUrns {
    /// Nothing: its value.
    None(f64),
    /// Z of all tokens over Z of the first, and ln of what the latter lacks.
    Two { all: Box<LocalUrn>, first: Box<LocalUrn>, ln_rest: f64 },
}

impl<'a> SplitDocument<'a> {
    fn rows(&self, document: Document<'a>) -> Vec<(&'a [f64], u32)> {
        document.cells().map(|(word, y)| (self.model.urn().weights(word), y)).collect()
    }

    fn urns(&self) -> Result<CompletionUrns> {
        let a = self.model.pseudo_counts(self.observed);
        let n_held_out = self.held_out.n_tokens();
        if n_held_out == 0 {
            return Ok(CompletionUrns::None(0.0));
        }
        let mut rows = self.rows(self.observed);
        let factors = self.model.topic_factors(self.observed.exposure());
        let urn_of =
            |rows: &[(&[f64], u32)]| LocalUrn::from_scaled_rows(a, rows, factors.as_deref());
        if urn_of(&rows).is_none() {
            return Ok(CompletionUrns::None(f64::NAN));
        }
        let all = [&rows[..], &self.rows(self.held_out)].concat();
        let ln_rest = if let Some(totals) = self.model.token_weights() {
            let n = u32::try_from(n_held_out).map_err(|_| Error::Memory {
                name: "held-out tokens of a document",
                bytes: n_held_out as f64,
            })?;
            rows.push((totals, n));
            0.0
        } else {
            ln_rising(a.iter().sum::<f64>() + self.observed.n_tokens() as f64, n_held_out)
        };
        Ok(match (urn_of(&all), urn_of(&rows)) {
            (Some(all), Some(first)) => {
                CompletionUrns::Two { all: Box::new(all), first: Box::new(first), ln_rest }
            }
            _ => CompletionUrns::None(f64::NEG_INFINITY),
        })
    }

    fn score(&self, settings: &Settings, key: Key, observer: &impl Observer) -> Result<Score> {
        let (all, first, ln_rest) = match self.urns()? {
            CompletionUrns::None(value) => {
                return Ok(Score::of(Estimate::exact(value), Method::Exact.estimator()));
            }
            CompletionUrns::Two { all, first, ln_rest } => (all, first, ln_rest),
        };
        let mut rng = key.document(self.observed).document(self.held_out).rng();
        let plans = exact_plans([&all, &first], settings);
        let [above, below] = plans.map_or([None; 2], |plans| plans.map(Some));
        let above = ln_urn_sum(&all, above, settings, &mut rng, observer)?;
        let below = ln_urn_sum(&first, below, settings, &mut rng, observer)?;
        let estimate = above.estimate.over(below.estimate).scaled(-ln_rest);
        Ok(Score { estimate, ..above })
    }
}
