//! Document completion under an urn: the probability of further tokens given the first ones.
//!
//! `Z(observed, held out) / Z(observed, as many tokens of any word)`: the denominator has a closed form
//! beyond Z(observed) where all topics are equally productive, as they are in LDA. Numerator and
//! denominator are estimated independently.

use super::limits::{check_exact, check_sampler, exact_plans};
use super::topic_model::TopicModel;
use super::urn_sum::ln_urn_sum;
use crate::control::Observer;
use crate::counts::Document;
use crate::document::{Method, Pair, Score, Settings};
use crate::error::{Error, Result};
use crate::math::ln_rising;
use crate::rng::Key;
use crate::urn::LocalUrn;

/// Relative difference of topics that are equally productive.
const EQUAL: f64 = 1e-12;

/// A model, and the observed and held-out tokens of a document.
pub(super) struct SplitDocument<'a> {
    pub(super) model: &'a TopicModel,
    pub(super) pair: Pair<'a>,
}

/// Urns whose sums give the completion of a document.
enum CompletionUrns {
    /// Nothing: its value.
    None(f64),
    /// Z of all tokens over Z of the first, and ln of what the latter lacks.
    Two { all: Box<LocalUrn>, first: Box<LocalUrn>, ln_rest: f64 },
}

impl<'a> SplitDocument<'a> {
    fn rows(&self, document: Document<'_>) -> Vec<(&'a [f64], u32)> {
        document.cells().map(|(word, y)| (self.model.urn().weights(word), y)).collect()
    }

    fn urns(&self) -> Result<CompletionUrns> {
        let a = self.model.pseudo_counts(self.pair.observed);
        let n_held_out = self.pair.held_out.n_tokens();
        if n_held_out == 0 {
            return Ok(CompletionUrns::None(0.0));
        }
        let mut rows = self.rows(self.pair.observed);
        let factors = self.model.topic_factors(self.pair.observed.exposure());
        let urn_of = |rows: &[(&[f64], u32)]| {
            LocalUrn::from_scaled_rows(a, rows, factors.as_deref(), self.model.bursts())
        };
        if urn_of(&rows).is_none() {
            return Ok(CompletionUrns::None(f64::NAN));
        }
        let all = if self.model.bursts().is_some() {
            // All tokens of a word are together.
            self.rows(self.pair.joined()?.document(0))
        } else {
            [&rows[..], &self.rows(self.pair.held_out)].concat()
        };
        let ln_any = |weight: f64| {
            let n_balls = a.iter().sum::<f64>() + self.pair.observed.n_tokens() as f64;
            ln_rising(n_balls, n_held_out) + n_held_out as f64 * weight.ln()
        };
        let ln_rest = if let Some(totals) = self.model.token_weights() {
            if self.model.bursts().is_some() {
                // A token of any word is no token of one word: the second layer must not know it.
                let weights = totals.iter().enumerate();
                let of_topic = |(k, q): (usize, &f64)| q * factors.as_ref().map_or(1.0, |f| f[k]);
                let weights: Vec<f64> = weights.map(of_topic).collect();
                let is_equal = |q: &f64| (q / weights[0] - 1.0).abs() < EQUAL;
                if !weights.iter().all(is_equal) {
                    return Err(Error::BurstyCompletion);
                }
                return Ok(Self::two(urn_of(&all), urn_of(&rows), ln_any(weights[0])));
            }
            let n = u32::try_from(n_held_out).map_err(|_| Error::Memory {
                name: "held-out tokens of a document",
                bytes: n_held_out as f64,
            })?;
            rows.push((totals, n));
            0.0
        } else {
            ln_any(1.0)
        };
        Ok(Self::two(urn_of(&all), urn_of(&rows), ln_rest))
    }

    fn two(all: Option<LocalUrn>, first: Option<LocalUrn>, ln_rest: f64) -> CompletionUrns {
        match (all, first) {
            (Some(all), Some(first)) => {
                CompletionUrns::Two { all: Box::new(all), first: Box::new(first), ln_rest }
            }
            _ => CompletionUrns::None(f64::NEG_INFINITY),
        }
    }

    /// Refuses what would be too expensive.
    pub(super) fn check(&self, row: usize, settings: &Settings) -> Result<()> {
        let CompletionUrns::Two { all, first, .. } = self.urns()? else { return Ok(()) };
        [&all, &first].into_iter().try_for_each(|urn| match settings.method {
            Method::Exact => check_exact(urn, row, settings),
            _ => check_sampler(urn.extent(), urn.bursts().is_some(), row, settings),
        })
    }

    pub(super) fn score(
        &self,
        settings: &Settings,
        key: Key,
        observer: &dyn Observer,
    ) -> Result<Score> {
        let (all, first, ln_rest) = match self.urns()? {
            CompletionUrns::None(value) => return Ok(Score::exact(value)),
            CompletionUrns::Two { all, first, ln_rest } => (all, first, ln_rest),
        };
        let mut rng = key.document(self.pair.observed).document(self.pair.held_out).rng();
        let plans = exact_plans([&all, &first], settings);
        let [above, below] = plans.map_or([None; 2], |plans| plans.map(Some));
        let above = ln_urn_sum(&all, above, settings, &mut rng, &observer)?;
        let below = ln_urn_sum(&first, below, settings, &mut rng, &observer)?;
        let estimate = above.estimate.over(below.estimate).scaled(-ln_rest);
        Ok(Score { estimate, ..above })
    }
}
