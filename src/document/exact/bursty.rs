//! Exact urn sums whose topics are bursty, by two algorithms of positive terms.
//!
//! With n_k tokens of topic k and c_kw of word w among them, Z = Π y_w! times the sum over all splits of
//! the words' counts among the topics of
//!
//! ```text
//! Π_k h_k(n_k) Π_w g_kw(c_kw),   h_k(n) = Π_{j<n} (a_k + j) / (1 + r_k j),
//!                                g_kw(c) = Π_{j<c} (q_kw + e_kw j) / c!.
//! ```
//!
//! Topic after topic, over the partial documents: F_k(c) = h_k(|c|) Π_w g_kw(c_w), convolved over the box
//! Π (y_w + 1). Word after word, over the totals of the topics: all splits of a word are added to all
//! totals, and h comes last. What is special to plain urns, whose generating functions are powers,
//! does not carry over.

use super::cost::Cost;
use super::real::{Real, Wide};
use crate::control::Observer;
use crate::error::{Result, array_of};
use crate::math::{ln_binomial, ln_factorial, ln_rising_by};
use crate::urn::{Bursts, LocalUrn};

/// Name of the arrays.
const STATES: &str = "partial documents";

/// Steps of a wide number for one of a double.
const WIDE: f64 = 4.0;

/// States between two looks at the observer.
const POLL_EVERY: usize = 4_096;

/// Cost of the convolution of topics.
pub fn cost_by_topics(urn: &LocalUrn) -> Cost {
    let counts = || urn.counts().iter().map(|&y| f64::from(y));
    let states: f64 = counts().map(|y| y + 1.0).product();
    let pairs: f64 = counts().map(|y| (y + 1.0) * (y + 2.0) / 2.0).product();
    let k = urn.n_topics() as f64;
    // The last topic has what the others leave.
    let operations = WIDE * ((k - 2.0).max(0.0) * pairs + (k + 1.0) * states);
    Cost { operations, bytes: 3.0 * size_of::<Wide>() as f64 * states }
}

/// Cost of the convolution of words.
pub fn cost_by_words(urn: &LocalUrn) -> Cost {
    let (mut n, mut operations) = (0.0, 0.0);
    let others = urn.n_topics() as f64 - 1.0;
    for &y in urn.counts() {
        let splits = ln_binomial(f64::from(y) + others, others).exp();
        operations += (n + 1.0_f64).powf(others) * splits;
        n += f64::from(y);
    }
    let states = (n + 1.0).powf(others);
    let bytes = 2.0 * size_of::<Wide>() as f64 * states;
    Cost { operations: WIDE * (operations + (others + 1.0) * states), bytes }
}

/// The factors h and g of an urn, and the logarithm of Π y_w! and of what the words are scaled by.
struct Factors<'a> {
    urn: &'a LocalUrn,
    bursts: &'a Bursts,
}

impl Factors<'_> {
    /// h_k(0), h_k(1), ..., h_k(N).
    fn of_totals(&self, topic: usize) -> Vec<Wide> {
        let (a, r) = (self.urn.pseudo_counts()[topic], self.bursts.rates[topic]);
        running(self.urn.n_tokens(), |n| (a + n) / (1.0 + r * n))
    }

    /// g_kw(0), ..., g_kw(y_w).
    fn of_word(&self, cell: usize, topic: usize) -> Vec<Wide> {
        let (q, e) = (self.urn.weights(cell)[topic], self.bursts.repeat(cell, topic));
        let y = self.urn.counts()[cell];
        running(u64::from(y), |c| (q + e * c) / (c + 1.0))
    }
}

/// 1, f(0), f(0) f(1), ...
fn running(n: u64, factor: impl Fn(f64) -> f64) -> Vec<Wide> {
    let mut value = Wide::START;
    let next = |j| {
        value = value.times(factor(j as f64));
        value
    };
    std::iter::once(Wide::START).chain((0..n).map(next)).collect()
}

/// ln Z, topic after topic.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop;
/// [`Error::Memory`](crate::Error::Memory) where there is no room.
pub fn ln_sum_by_topics(urn: &LocalUrn, bursts: &Bursts, observer: &dyn Observer) -> Result<f64> {
    if urn.n_topics() == 1 {
        return Ok(ln_of_one(urn, bursts));
    }
    let factors = Factors { urn, bursts };
    let n_states = urn.counts().iter().map(|&y| y as usize + 1).product();
    let mut so_far = array_of(STATES, n_states, Wide::ZERO)?;
    so_far[0] = Wide::START;
    let (mut own, mut sums) = (array_of(STATES, n_states, Wide::ZERO)?, Vec::new());
    let last = urn.n_topics() - 1;
    for topic in 0..last {
        fill(&factors, topic, &mut own);
        if topic == 0 {
            so_far.copy_from_slice(&own);
            continue;
        }
        sums.clear();
        for whole in 0..n_states {
            if whole % POLL_EVERY == 0 {
                observer.check_stop()?;
            }
            let mut sum = Wide::ZERO;
            for_each_part(urn.counts(), whole, |part| {
                sum = sum.plus(so_far[whole - part].product(own[part]));
            });
            sums.push(sum);
        }
        std::mem::swap(&mut so_far, &mut sums);
    }
    fill(&factors, last, &mut own);
    let parts = so_far.iter().zip(own.iter().rev());
    let sum = parts.fold(Wide::ZERO, |sum, (x, y)| sum.plus(x.product(*y)));
    Ok(urn.ln_scale() + ln_permutations(urn) + sum.ln())
}

/// F_k of all partial documents, the first word being the slowest index.
fn fill(factors: &Factors<'_>, topic: usize, values: &mut [Wide]) {
    let h = factors.of_totals(topic);
    let words: Vec<_> =
        (0..factors.urn.n_distinct()).map(|cell| factors.of_word(cell, topic)).collect();
    for (state, value) in values.iter_mut().enumerate() {
        let (mut rest, mut product, mut total) = (state, Wide::START, 0);
        for word in words.iter().rev() {
            let c = rest % word.len();
            rest /= word.len();
            total += c;
            product = product.product(word[c]);
        }
        *value = product.product(h[total]);
    }
}

/// Calls `f` with the places of all partial documents that are part of one.
fn for_each_part(counts: &[u32], whole: usize, mut f: impl FnMut(usize)) {
    let (mut digits, mut rest) = (Vec::with_capacity(counts.len()), whole);
    let mut stride = 1;
    for &y in counts.iter().rev() {
        let size = y as usize + 1;
        digits.push((rest % size, stride));
        rest /= size;
        stride *= size;
    }
    let mut part = vec![0; digits.len()];
    let mut place = 0;
    loop {
        f(place);
        let Some(word) = (0..digits.len()).find(|&word| part[word] < digits[word].0) else {
            return;
        };
        for (part, (_, stride)) in part[..word].iter_mut().zip(&digits) {
            place -= *part * stride;
            *part = 0;
        }
        part[word] += 1;
        place += digits[word].1;
    }
}

/// ln Z, word after word.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop;
/// [`Error::Memory`](crate::Error::Memory) where there is no room.
pub fn ln_sum_by_words(urn: &LocalUrn, bursts: &Bursts, observer: &dyn Observer) -> Result<f64> {
    if urn.n_topics() == 1 {
        return Ok(ln_of_one(urn, bursts));
    }
    let factors = Factors { urn, bursts };
    let others = urn.n_topics() - 1;
    let width = urn.n_tokens() as usize + 1;
    let n_states = width.pow(others as u32);
    let mut so_far = array_of(STATES, n_states, Wide::ZERO)?;
    so_far[0] = Wide::START;
    let mut next = array_of(STATES, n_states, Wide::ZERO)?;
    let mut n_before = 0;
    for (cell, &y) in urn.counts().iter().enumerate() {
        let splits = splits(&factors, cell, width, y as usize);
        next.fill(Wide::ZERO);
        let mut n_seen = 0;
        for_each_total(others, width, n_before, |from, _| {
            n_seen += 1;
            if n_seen % POLL_EVERY == 0 {
                observer.check_stop()?;
            }
            for &(shift, weight) in &splits {
                next[from + shift] = next[from + shift].plus(so_far[from].product(weight));
            }
            Ok(())
        })?;
        std::mem::swap(&mut so_far, &mut next);
        n_before += y as usize;
    }
    let h: Vec<_> = (0..=others).map(|topic| factors.of_totals(topic)).collect();
    let mut sum = Wide::ZERO;
    for_each_total(others, width, n_before, |place, totals| {
        let rest = n_before - totals.iter().sum::<usize>();
        let of_last = so_far[place].product(h[others][rest]);
        let term = totals.iter().zip(&h).fold(of_last, |term, (&n, h)| term.product(h[n]));
        sum = sum.plus(term);
        Ok(())
    })?;
    Ok(urn.ln_scale() + ln_permutations(urn) + sum.ln())
}

/// All splits of the tokens of a word: how they shift the totals, and Π_k g_kw(c_k).
fn splits(factors: &Factors<'_>, cell: usize, width: usize, y: usize) -> Vec<(usize, Wide)> {
    let others = factors.urn.n_topics() - 1;
    let words: Vec<_> = (0..=others).map(|topic| factors.of_word(cell, topic)).collect();
    // (tokens placed, shift, weight) topic after topic.
    let mut partial = vec![(0, 0, Wide::START)];
    for (topic, word) in words[..others].iter().enumerate() {
        let stride = width.pow((others - 1 - topic) as u32);
        let longer = partial.iter().flat_map(|&(n, shift, weight)| {
            (0..=y - n).map(move |c| (n + c, shift + c * stride, weight.product(word[c])))
        });
        partial = longer.collect();
    }
    let complete =
        |(n, shift, weight): (usize, usize, Wide)| (shift, weight.product(words[others][y - n]));
    partial.into_iter().map(complete).filter(|(_, weight)| weight.magnitude() > 0.0).collect()
}

/// Calls `f` with the place and the totals of the first topics, for all totals of at most n tokens.
fn for_each_total(
    n_topics: usize,
    width: usize,
    n: usize,
    mut f: impl FnMut(usize, &[usize]) -> Result<()>,
) -> Result<()> {
    let mut totals = vec![0; n_topics];
    let (mut sum, mut place) = (0, 0);
    loop {
        f(place, &totals)?;
        // The last total is the fastest.
        let (mut topic, mut stride) = (n_topics, 1);
        loop {
            if topic == 0 {
                return Ok(());
            }
            topic -= 1;
            if sum < n {
                totals[topic] += 1;
                sum += 1;
                place += stride;
                break;
            }
            sum -= totals[topic];
            place -= totals[topic] * stride;
            totals[topic] = 0;
            stride *= width;
        }
    }
}

/// ln Z of one topic: a Dirichlet-multinomial.
fn ln_of_one(urn: &LocalUrn, bursts: &Bursts) -> f64 {
    let n = urn.n_tokens();
    let words = urn.cells().enumerate();
    let ln_words: f64 =
        words.map(|(cell, (q, y))| ln_rising_by(q[0], bursts.repeat(cell, 0), u64::from(y))).sum();
    let ln_balls = ln_rising_by(urn.pseudo_counts()[0], 1.0, n);
    urn.ln_scale() + ln_balls - ln_rising_by(1.0, bursts.rates[0], n) + ln_words
}

fn ln_permutations(urn: &LocalUrn) -> f64 {
    urn.counts().iter().map(|&y| ln_factorial(u64::from(y))).sum()
}
