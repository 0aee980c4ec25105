//! The distributions that annealing goes through, from a start that can be drawn to the urn.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::rc::Rc;

use super::ends::Ends;
use super::independent_words::IndependentWords;
use super::rare::{RareTopics, Rarity};
use super::single_topic;
use crate::control::Observer;
use crate::document::estimators::mean_field::{self, MeanField};
use crate::error::Result;
use crate::rng::{LANES, Stream, UniformLanes};
use crate::urn::{
    BurstTarget, Bursts, LEFT_OUT, LocalUrn, Shortlists, SweepOrder, TopicChains, UrnTarget,
};

// Values were chosen by hand: no bench compares others. Those of starts, steps and lowered ends are those
// with which `python -m benches.truth.coverage` made its records. [`FEWEST_TEMPERATURES`] and [`LEAST_LN_GAIN`], for
// runs too short to open topics, are younger: they were chosen on the document of 100 overlapping topics that
// is a test of scores now.

/// Balls that every topic is expected to have at least, or an equal share where there are fewer
/// tokens: the mean field settles on one mode, and the start must not rule out the others.
const LEAST_EXPECTED: f64 = 0.5;

/// Bounds on the same where the start is refined, and how much likelier two tokens of a topic that
/// holds nothing else may be in the urn than at the start. The fewer balls the start has there, the
/// less it takes to empty such topics, but the rarer and heavier are the runs that fill them.
const LEAST_REFINED: RangeInclusive<f64> = 0.02..=0.5;
const HEAVIEST_PAIR: f64 = 3.0;

/// Mean-field sweeps before a start is refined.
const FIRST_ITERATIONS: usize = 4;

/// Mean pseudo-count below which topics hardly open or close at the end: the last steps are smaller
/// still.
const SMALL: f64 = 0.05;

fn has_small(urn: &LocalUrn) -> bool {
    urn.pseudo_counts().iter().sum::<f64>() < SMALL * urn.n_topics() as f64
}

/// Least pseudo-counts at the end of annealing where they are lowered afterwards: topics open and
/// close freely there.
const RAISED: f64 = 0.1;

/// Power of softened weights until then. In three documents of topics in a ring, where runs of all
/// weights are low by 3 to 6.5 nats and agree, powers of .4 to .5 were best; .7 misses two.
const SOFTENED: f64 = 0.5;

/// Steps in which the power rises to 1, each of which takes as long as a short sweep.
const SOFTENED_STEPS: f64 = 64.0;

/// Temperatures of the shortest runs that are judged by the topics that they leave closed.
const FEWEST_TEMPERATURES: usize = 100;

/// ln of the least odds of a topic's opening that matter, and the least probability of a word in it,
/// as a share of that in the topic that likes it best.
const LEAST_LN_GAIN: f64 = -3.0;
const LEAST_SHARE: f64 = 1e-3;

/// Steps up to which all sweeps are over all topics, unless topics are bursty: documents that need no more
/// have errors so small that a token outside its list matters. Beyond, one sweep of so many is.
const ALL_FULL: usize = 128;
const FULL_EVERY: usize = 16;

/// Largest r of a topic's second layer that the start has whole. Topics of larger r hardly hold two words, and
/// get there on a logarithmic scale: in linear steps, the first would be too late to part the words.
const LARGEST_WHOLE: f64 = 100.0;

/// Balls that all such topics share at the start, if their pseudo-counts are fewer: with about half a ball, the
/// tokens of a word stay in one of them.
const FEWEST_PARTED: f64 = 0.5;

/// The reference distribution from which annealing starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The urn that knows of each word only which topics can produce it:
    /// `γ_β(k) = Π (a + n) q^β`, drawn in sequence at β = 0.
    Prior,
    /// Independent tokens under the balls m that the mean field expects:
    /// `γ_β(k) = Π ((1-β) m + β (a + n)) q`, an urn at every β.
    MeanField,
    /// The same with raised pseudo-counts, which are then lowered to a on a logarithmic scale.
    ///
    /// A topic of pseudo-count a costs ln a to open, so that chains at fixed a leave it closed, and
    /// agree with one another on what they all miss. Here all topics are open first, and those
    /// close that the document does not need, as pseudo-counts are lowered. Moves of all tokens of a topic
    /// to a closed one ([`TopicChains::relabel`]) choose among them then, and moves that open a topic,
    /// close it or both at once ([`TopicChains::open_or_close`]) lead from some topics to others.
    Lowered,
    /// The same with softened weights q of words, whose power rises to 1 as pseudo-counts fall: a choice
    /// among topics that share words is made where pseudo-counts count. Those of bursty topics stay whole.
    Softened,
}

impl Start {
    /// Whether pseudo-counts are raised first.
    pub(in crate::document) fn lowers(self) -> bool {
        matches!(self, Start::Lowered | Start::Softened)
    }
}

/// Distributions from the start to the urn.
pub(crate) struct UrnPath<'a> {
    pub(super) urn: &'a LocalUrn,
    pub(in crate::document) start: Start,
    /// m; pseudo-counts where the start is the prior.
    expected: Vec<f64>,
    /// ln q, where paths go through powers of q.
    pub(super) ln_q: Vec<f64>,
    /// The power of q that was asked for last, and q to that power.
    weights: RefCell<(f64, Rc<[f64]>)>,
    /// Pseudo-counts at the end of annealing; those of the urn, unless they are lowered to these.
    raised: Cow<'a, [f64]>,
    /// Power of the distance from the end, in steps, that 1 - β is.
    bend: i32,
    /// Topics that most sweeps move tokens among, where that is less than all.
    pub(super) lists: Option<Shortlists>,
}

impl<'a> UrnPath<'a> {
    /// Finds the start, the mean field by so many sweeps.
    pub(crate) fn new(
        urn: &'a LocalUrn,
        start: Start,
        n_iterations: usize,
        observer: &impl Observer,
    ) -> Result<Self> {
        let (expected, ln_q) = (urn.pseudo_counts().to_vec(), Vec::new());
        let raised = match start {
            _ if start.lowers() => urn.pseudo_counts().iter().map(|a| a.max(RAISED)).collect(),
            _ => Cow::Borrowed(urn.pseudo_counts()),
        };
        let weights = RefCell::new((1.0, Rc::from(urn.all_weights())));
        let mut path =
            UrnPath { urn, start, expected, ln_q, weights, raised, bend: 2, lists: None };
        if matches!(start, Start::Prior | Start::Softened) {
            path.ln_q = urn.all_weights().iter().map(|q| q.ln()).collect();
        }
        if start != Start::Prior {
            let mean_field = MeanField::first_order(n_iterations);
            let g = mean_field::responsibilities(urn, mean_field, observer)?;
            path.expected = mean_field::expected_balls(urn, &g);
            let share = urn.n_tokens() as f64 / urn.n_topics() as f64;
            path.expected.iter_mut().for_each(|m| *m = m.max(share.min(LEAST_EXPECTED)));
            path.thin();
            path.close();
        }
        Ok(path)
    }

    /// A path from the pseudo-counts and the balls that chains of the urn hold on average, in the
    /// second half of some sweeps from the mean field. That start is nearer to the urn: it knows of
    /// more than one mode, and topics in which chains hold nothing need not be emptied on the way.
    /// It is apart from the chains that are weighed, which are unbiased from any start. Chains that
    /// have all tokens in one topic of a small pseudo-count stay there: all topics that might have
    /// them count by their probability, or all runs would miss those that no chain is in. Sweeps are
    /// within short lists of topics where these are short, unless pseudo-counts are lowered.
    pub(crate) fn refined<S: Stream>(
        urn: &'a LocalUrn,
        start: Start,
        n_sweeps: usize,
        rng: &mut S,
        observer: &impl Observer,
    ) -> Result<Self> {
        let mut path = UrnPath::new(urn, start, FIRST_ITERATIONS, observer)?;
        let mut chains = TopicChains::new(urn, rng)?;
        chains.extend_all(path.level(0.0).target(), observer, |_| {})?;
        path.refine_from(chains, n_sweeps, observer)?;
        Ok(path)
    }

    /// Moves the start to where runs end, each by its weight, and some sweeps on.
    pub(crate) fn move_to<S: Stream>(
        &mut self,
        ends: &Ends,
        n_sweeps: usize,
        rng: &mut S,
        observer: &impl Observer,
    ) -> Result<()> {
        let mut chains = TopicChains::new(self.urn, rng)?;
        let dart = chains.uniforms()[0];
        chains.refill(&ends.drawn(dart));
        self.refine_from(chains, n_sweeps, observer)
    }

    /// Moves the start to chains, and finds the lists of topics.
    fn refine_from(
        &mut self,
        chains: TopicChains<impl UniformLanes>,
        n_sweeps: usize,
        observer: &impl Observer,
    ) -> Result<()> {
        let mut held = self.refine(chains, n_sweeps, observer)?;
        if self.start.lowers() {
            return Ok(());
        }
        let lists = match self.independent_words(observer)? {
            None => Shortlists::new(self.urn, &self.expected, LEFT_OUT),
            Some(words) => {
                words.add_expected(&mut held);
                Shortlists::of_tokens(self.urn, &held, LEFT_OUT)
            }
        };
        self.lists = lists.if_short(self.urn);
        if has_small(self.urn) {
            self.bend = 3;
        }
        Ok(())
    }

    /// Moves the start to the balls that chains hold on average at the end of annealing. Returns the
    /// tokens of each distinct word that each topic has there, where topics are bursty.
    fn refine(
        &mut self,
        mut chains: TopicChains<impl UniformLanes>,
        n_sweeps: usize,
        observer: &impl Observer,
    ) -> Result<Vec<f64>> {
        let urn = self.urn;
        let n_averaged = n_sweeps.div_ceil(2);
        let mut sums = vec![0.0; urn.n_topics()];
        let all = if self.start == Start::MeanField && has_small(urn) {
            urn.n_tokens() as f64
        } else {
            f64::INFINITY
        };
        let mut n_in_one = 0;
        let n_states = (n_averaged * LANES) as f64;
        let n_held = if urn.bursts().is_some() { urn.all_weights().len() } else { 0 };
        let mut held = vec![0.0; n_held];
        let end = self.level(1.0);
        for sweep in 0..n_sweeps {
            chains.sweep_words(None, end.target(), SweepOrder::Forward, observer)?;
            if sweep >= n_sweeps - n_averaged {
                let is_in_one =
                    |lane: &usize| chains.balls().iter().any(|x| f64::from(x[*lane]) >= all);
                let (in_one, in_more): (Vec<_>, Vec<_>) = (0..LANES).partition(is_in_one);
                n_in_one += in_one.len();
                for (sum, balls) in sums.iter_mut().zip(chains.balls()) {
                    *sum += in_more.iter().map(|&lane| f64::from(balls[lane])).sum::<f64>();
                }
                if n_held > 0 {
                    chains.add_tokens(1.0 / n_states, &mut held);
                }
            }
        }
        if n_in_one > 0 {
            let tokens = n_in_one as f64 * all;
            let shares = single_topic::shares(urn);
            sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += tokens * share);
        }
        let share = urn.n_tokens() as f64 / urn.n_topics() as f64;
        let expected = sums.iter().zip(self.raised.iter()).map(|(sum, a)| {
            let least = (a * (1.0 + a) / HEAVIEST_PAIR).sqrt();
            let least = least.clamp(*LEAST_REFINED.start(), *LEAST_REFINED.end());
            (a + sum / n_states).max(least.min(share))
        });
        self.expected = expected.collect();
        self.thin();
        self.close();
        Ok(held)
    }

    /// Divides the balls of bursty topics by what their tokens take from the weight of each: the start then
    /// has the weights of the urn on average. Topics of large r share about as many balls as they have
    /// pseudo-counts: the tokens of a word join the first of them in one topic, and words are apart.
    fn thin(&mut self) {
        let Some(bursts) = self.urn.bursts() else { return };
        let topics = || self.raised.iter().zip(&bursts.rates);
        let (mut held, mut own) = (0.0, 0.0);
        for (m, (a, rate)) in self.expected.iter_mut().zip(topics()) {
            if *rate > LARGEST_WHOLE {
                held += *m;
                own += a;
            } else {
                *m /= 1.0 + rate * (*m - a).max(0.0);
            }
        }
        let share = (own.max(FEWEST_PARTED) / held).min(1.0);
        let parted = self.expected.iter_mut().zip(topics()).filter(|x| *x.1.1 > LARGEST_WHOLE);
        parted.for_each(|(m, _)| *m *= share);
    }

    /// Leaves topics closed at the start that the document cannot open: chains that come to hold
    /// tokens there do not get rid of them again.
    fn close(&mut self) {
        let is_closed = RareTopics::of(self.urn, Rarity::LOWERED).is_closed;
        let closed = is_closed.iter().zip(&mut self.expected).zip(self.urn.pseudo_counts());
        closed.filter(|((is_closed, _), _)| **is_closed).for_each(|((_, m), a)| *m = *a);
        if let Cow::Owned(raised) = &mut self.raised {
            let closed = is_closed.iter().zip(raised.iter_mut()).zip(self.urn.pseudo_counts());
            closed.filter(|((is_closed, _), _)| **is_closed).for_each(|((_, x), a)| *x = *a);
        }
    }

    /// The least pseudo-count, of at most `most`, of a topic that the document may need.
    pub(in crate::document) fn rarest(&self, most: f64) -> Option<f64> {
        let a = self.urn.pseudo_counts();
        let mut rare: Vec<usize> = (0..a.len()).filter(|&topic| a[topic] <= most).collect();
        rare.sort_unstable_by(|&x, &y| a[x].total_cmp(&a[y]));
        rare.into_iter().find(|&topic| self.ln_gain(topic) > LEAST_LN_GAIN).map(|topic| a[topic])
    }

    /// ln of how much likelier the document is where a closed topic takes two or more tokens, as
    /// many as suit it best, from the topics that are expected to hold them.
    fn ln_gain(&self, topic: usize) -> f64 {
        let a = self.urn.pseudo_counts();
        let mut held = self.expected.clone();
        held[topic] = 0.0;
        let by_others =
            |held: &[f64], q: &[f64]| -> f64 { held.iter().zip(q).map(|(held, q)| held * q).sum() };
        let mut words: Vec<(f64, &[f64], u32)> = (self.urn.cells())
            .map(|(q, count)| (q[topic] / by_others(&held, q), q, count))
            .collect();
        words.sort_unstable_by(|x, y| y.0.total_cmp(&x.0));
        let (mut balls, mut ln_gain, mut most) = (a[topic], 0.0, f64::NEG_INFINITY);
        for (_, q, count) in words {
            if q[topic] < LEAST_SHARE * q.iter().copied().fold(0.0, f64::max) {
                break;
            }
            for _ in 0..count {
                // The token leaves the topics that may hold it, each by its share.
                let total = by_others(&held, q);
                for (k, held) in held.iter_mut().enumerate() {
                    let left = *held - *held * q[k] / total;
                    *held = if k == topic { 0.0 } else { left.max(a[k]) };
                }
                ln_gain += (balls * q[topic] / by_others(&held, q)).ln();
                if balls >= 1.0 {
                    most = most.max(ln_gain);
                }
                balls = balls.floor() + 1.0;
            }
        }
        most
    }

    /// Inverse temperatures of annealing in `n` steps, denser where the path bends. Those from 1 to 2
    /// lower the pseudo-counts, in half of the steps.
    pub(super) fn betas(&self, n: usize) -> Vec<f64> {
        let n_lowering = if self.start.lowers() { n.div_ceil(2) } else { 0 };
        let n = n - n_lowering;
        let beta = |t: usize| {
            let share = t as f64 / n.max(1) as f64;
            match self.start {
                Start::Prior => share * share,
                _ => 1.0 - (1.0 - share).powi(self.bend),
            }
        };
        let lowering = (1..=n_lowering).map(|t| 1.0 + t as f64 / n_lowering as f64);
        (0..=n).map(beta).chain(lowering).collect()
    }

    /// Balls of every topic before the first draw at an inverse temperature: from m to the raised
    /// pseudo-counts, then on to the urn's.
    pub(super) fn bases(&self, beta: f64) -> impl Iterator<Item = f64> {
        let ends = self.expected.iter().zip(self.raised.iter()).zip(self.urn.pseudo_counts());
        ends.map(move |((m, raised), a)| {
            if beta <= 1.0 {
                (1.0 - beta) * m + beta * raised
            } else {
                raised * (a / raised).powf(beta - 1.0)
            }
        })
    }

    /// The urn at an inverse temperature.
    pub(super) fn level(&self, beta: f64) -> UrnLevel<'a> {
        let bursts = self.urn.bursts().map(|bursts| self.second_layer(bursts, beta.min(1.0)));
        let (base, unit) = match self.start {
            Start::Prior => (Cow::Borrowed(self.urn.pseudo_counts()), 1.0),
            _ => (self.bases(beta).collect(), beta.min(1.0)),
        };
        let q = self.weights(self.power(beta));
        UrnLevel { base, unit, q, bursts, is_full: true, turns: None }
    }

    /// Power of q at an inverse temperature.
    pub(super) fn power(&self, beta: f64) -> f64 {
        match self.start {
            Start::Prior => beta,
            Start::Softened if self.urn.bursts().is_none() => {
                let step = (SOFTENED_STEPS * (beta - 1.0).max(0.0)).ceil();
                SOFTENED + (1.0 - SOFTENED) * step / SOFTENED_STEPS
            }
            _ => 1.0,
        }
    }

    /// q to a power.
    fn weights(&self, power: f64) -> Rc<[f64]> {
        let mut last = self.weights.borrow_mut();
        if last.0.to_bits() != power.to_bits() {
            let weight =
                |&ln_q: &f64| if ln_q > f64::NEG_INFINITY { (power * ln_q).exp() } else { 0.0 };
            *last = (power, self.ln_q.iter().map(weight).collect());
        }
        Rc::clone(&last.1)
    }

    /// r and e of bursty topics at an inverse temperature: nothing at the prior; the mean field starts with
    /// the whole of e, so that the tokens of a word are together from the start. Topics of large r start
    /// with e = 1/m: the tokens of a word grow as in the urn, whatever the topic.
    fn second_layer(&self, bursts: &'a Bursts, beta: f64) -> (&'a Bursts, [Vec<f64>; 2]) {
        let scaled = |x: &[f64], factor: f64| {
            let topics = x.iter().zip(&bursts.rates).zip(&self.expected);
            let distance = |r, m| eased(r, m).powf(1.0 - beta * beta);
            topics.map(|((x, &rate), &m)| factor * distance(rate, m) * x).collect()
        };
        let repeating = if self.start == Start::Prior { beta } else { 1.0 };
        (bursts, [scaled(&bursts.rates, beta), scaled(&bursts.repeats, repeating)])
    }

    /// The words of the start, where topics are bursty and the words are independent there.
    pub(super) fn independent_words(
        &self,
        observer: &impl Observer,
    ) -> Result<Option<IndependentWords>> {
        let bursts = self.urn.bursts().filter(|_| self.start != Start::Prior);
        let Some(bursts) = bursts else { return Ok(None) };
        let (_, [rates, repeats]) = self.second_layer(bursts, 0.0);
        let start = Bursts { rates, repeats, ..bursts.clone() };
        IndependentWords::new(self.urn, &start, &self.expected, observer).map(Some)
    }

    /// Number of sweeps over all topics in so many steps.
    pub(super) fn n_full(&self, n_steps: usize) -> usize {
        let few = n_steps <= ALL_FULL && self.urn.bursts().is_none();
        if self.lists.is_none() || few { n_steps } else { n_steps.div_ceil(FULL_EVERY) }
    }

    /// Multiply-adds of one chain through so many steps, about.
    pub(crate) fn cost(&self, n_temperatures: usize) -> f64 {
        if self.start.lowers() {
            return lowered_cost(self.urn, n_temperatures);
        }
        let full = self.urn.n_tokens() as f64 * self.urn.n_topics() as f64;
        let Some(lists) = &self.lists else { return n_temperatures as f64 * full };
        let n_full = self.n_full(n_temperatures) as f64;
        n_full * full + (n_temperatures as f64 - n_full) * lists.cost(self.urn)
    }
}

/// Pseudo-count up to which runs through so many temperatures may leave a topic closed.
///
/// A token enters an empty topic of pseudo-count a, which suits it as well as its own, with a
/// probability of about a in each sweep, and a topic whose a is large enough is found by some
/// run. Any other is missed by all of them alike.
pub(in crate::document) fn rare(n_temperatures: usize) -> f64 {
    1.0 / n_temperatures.max(FEWEST_TEMPERATURES) as f64
}

/// Multiply-adds of one chain through so many steps that lower pseudo-counts: a move of whole topics takes
/// as long as a sweep.
pub(in crate::document) fn lowered_cost(urn: &LocalUrn, n_temperatures: usize) -> f64 {
    2.0 * n_temperatures as f64 * urn.n_tokens() as f64 * urn.n_topics() as f64
}

/// Factor of e at the start, in a topic of that r and m.
fn eased(rate: f64, m: f64) -> f64 {
    if rate > LARGEST_WHOLE { (rate * m).recip().min(1.0) } else { 1.0 }
}

/// The urn at one β.
pub(super) struct UrnLevel<'a> {
    base: Cow<'a, [f64]>,
    unit: f64,
    q: Rc<[f64]>,
    /// The second layer, with its r and e at this level.
    bursts: Option<(&'a Bursts, [Vec<f64>; 2])>,
    /// Whether a sweep moves tokens among all topics.
    pub(super) is_full: bool,
    /// Turns of the moves that open and close topics, where pseudo-counts are lowered.
    pub(super) turns: Option<[usize; 2]>,
}

impl UrnLevel<'_> {
    pub(super) fn target(&self) -> UrnTarget<'_> {
        let bursts = self.bursts.as_ref().map(|(bursts, [rates, repeats])| BurstTarget {
            rates,
            repeats,
            ..bursts.target()
        });
        UrnTarget { base: &self.base, unit: self.unit, q: &self.q, bursts }
    }
}
