//! Gibbs draws of how very many tokens divide between two states, from few of all their divisions.
//!
//! Two draws leave the distribution as it is. One is among the divisions that differ by multiples
//! of a stride from the present one or from its mirror image, the other among as many neighbours as
//! a stride has steps, whose first is drawn uniformly: a division is met from each of its
//! neighbours as often as they from it. The stride is drawn first, whatever the division: two
//! narrow modes are some multiple apart for one stride in so many, but for none where it is fixed.

use super::counts::Counts;
use super::split_law::{CountChange, LanePair, SplitLaw, add_sums, pick};
use crate::math::elementary::ln;
use crate::math::ln_factorial;
use crate::urn::SweepOrder;

/// Weights of all divisions.
pub(super) trait Weights {
    /// ln of the weight of so many tokens in the first state.
    fn ln_weight(&self, n: i32) -> f64;

    /// Puts ln of the weights from `first` on in the place of zeros, up to a constant.
    fn ln_weights(&self, first: i32, ln_weights: &mut [f64]);
}

/// A stride of 7 to 14 √n. The weight of a neighbour costs some hundredth of that of a division far
/// from all others, so that both draws take about as long.
pub(super) fn stride(n_tokens: i32, dart: f64) -> i32 {
    (7.0 * (1.0 + dart) * f64::from(n_tokens).sqrt()).ceil() as i32
}

/// The draws of one division.
pub(super) struct StrideMoves<'a, W> {
    pub(super) n_tokens: i32,
    pub(super) stride: i32,
    pub(super) weights: W,
    pub(super) buffer: &'a mut Vec<f64>,
}

impl<W: Weights> StrideMoves<'_, W> {
    /// Both draws, one after the other, backwards in the opposite order: the tokens in the first
    /// state, where `now` are before.
    pub(super) fn redraw(&mut self, now: i32, order: SweepOrder, darts: [f64; 3]) -> i32 {
        let [far, offset, near] = darts;
        match order {
            SweepOrder::Forward => {
                let now = self.far(now, far);
                self.near(now, offset, near)
            }
            SweepOrder::Backward => {
                let now = self.near(now, offset, near);
                self.far(now, far)
            }
        }
    }

    /// Among multiples of a stride.
    fn far(&mut self, now: i32, dart: f64) -> i32 {
        let (rest, mirrored) = (now % self.stride, (self.n_tokens - now) % self.stride);
        let n_mirrored = if mirrored == rest { 0 } else { self.n_from(mirrored) };
        let n = self.n_from(rest);
        let division = |index: i32| match index - n {
            beyond if beyond < 0 => rest + index * self.stride,
            beyond => mirrored + beyond * self.stride,
        };
        self.buffer.clear();
        let ln_weights = (0..n + n_mirrored).map(|index| self.weights.ln_weight(division(index)));
        self.buffer.extend(ln_weights);
        division(draw(self.buffer, dart))
    }

    /// Divisions at multiples of the stride from `first` on.
    fn n_from(&self, first: i32) -> i32 {
        if first > self.n_tokens { 0 } else { (self.n_tokens - first) / self.stride + 1 }
    }

    /// Among neighbours.
    fn near(&mut self, now: i32, offset: f64, dart: f64) -> i32 {
        let from = now - (offset * f64::from(self.stride)) as i32;
        let (first, last) = (from.max(0), (from + self.stride - 1).min(self.n_tokens));
        self.buffer.clear();
        self.buffer.resize((last - first + 1) as usize, 0.0);
        self.weights.ln_weights(first, self.buffer);
        first + draw(self.buffer, dart)
    }
}

/// Draws an index with these ln of weights, which become cumulative sums.
fn draw(ln_weights: &mut [f64], dart: f64) -> i32 {
    let mut most = f64::NEG_INFINITY;
    for &ln_weight in &*ln_weights {
        most = if ln_weight > most { ln_weight } else { most };
    }
    pick(ln_weights, most, dart)
}

/// The tokens in two states of a cell, in one lane.
pub(super) struct PairTokens<'a, D> {
    pub(super) law: &'a D,
    pub(super) changes: &'a [CountChange],
    pub(super) rows: &'a [Counts],
    pub(super) pair: LanePair,
    /// Tokens in the first state.
    pub(super) now: i32,
    pub(super) n: i32,
}

impl<D: SplitLaw> PairTokens<'_, D> {
    /// Count of a row with `n` tokens in the first state.
    fn count(&self, change: &CountChange, n: i32) -> i32 {
        self.rows[change.row][self.pair.lane] + change.by * (n - self.now)
    }
}

impl<D: SplitLaw> Weights for PairTokens<'_, D> {
    fn ln_weight(&self, n: i32) -> f64 {
        let ln_row = |change| self.law.ln_row(change, self.count(change, n));
        let tokens = [n, self.n - n];
        let ln_ways: f64 = tokens.iter().map(|&n| -ln_factorial(n as u64)).sum();
        self.law.placed(self.pair, tokens, self.changes.iter().map(ln_row).sum()) + ln_ways
    }

    fn ln_weights(&self, first: i32, ln_weights: &mut [f64]) {
        weigh_neighbours(self, first, ln_weights);
    }
}

#[polyabayes_macros::vectorised]
fn weigh_neighbours<D: SplitLaw>(tokens: &PairTokens<'_, D>, first: i32, ln_weights: &mut [f64]) {
    for change in tokens.changes.iter().filter(|change| change.by != 0) {
        tokens.law.add_row(change, tokens.count(change, first), ln_weights);
    }
    tokens.law.place(tokens.pair, first as usize, tokens.n as usize, ln_weights);
    let (first, n_tokens) = (f64::from(first), f64::from(tokens.n));
    add_sums(ln_weights, |n| ln((n_tokens - first - n).max(1.0) / (first + n + 1.0)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};
    use rand::RngExt as _;

    impl<L: Fn(i32) -> f64> Weights for L {
        fn ln_weight(&self, n: i32) -> f64 {
            self(n)
        }

        fn ln_weights(&self, first: i32, ln_weights: &mut [f64]) {
            for (n, ln_weight) in (first..).zip(ln_weights) {
                *ln_weight = self(n) + 3.0;
            }
        }
    }

    #[test]
    fn narrow_modes_are_left_though_none_is_the_mirror_image_of_the_other() {
        const N: i32 = 5_000;
        const N_DRAWS: usize = 40_000;
        let mode = |n: i32, at: f64| -0.5 * ((f64::from(n) - at) / 10.0).powi(2);
        let mut rng = Key::new(9, Purpose::Score).rng();
        let (mut now, mut n_crossed, mut n_upper, mut buffer) = (900, 0, 0, Vec::new());
        for _ in 0..N_DRAWS {
            let weights = |n: i32| mode(n, 900.0).max(mode(n, 4_270.0));
            let stride = stride(N, rng.random());
            let mut strides = StrideMoves { n_tokens: N, stride, weights, buffer: &mut buffer };
            let next =
                strides.redraw(now, SweepOrder::Forward, std::array::from_fn(|_| rng.random()));
            n_crossed += usize::from((next > N / 2) != (now > N / 2));
            n_upper += usize::from(next > N / 2);
            now = next;
        }
        assert!(n_crossed > 400, "{n_crossed}");
        // As many independent visits as crossings, or more.
        let error = 0.5 / (n_crossed as f64).sqrt();
        let share = n_upper as f64 / N_DRAWS as f64;
        assert!((share - 0.5).abs() < 4.0 * error, "{share} {error}");
    }
    #[test]
    fn a_backward_draw_is_the_reversal_of_a_forward_draw() {
        const N: i32 = 12;
        const N_DRAWS: usize = 200_000;
        let law: Vec<f64> = (0..=N).map(|n| (1.5 * f64::from(n)).cos().exp()).collect();
        let mut buffer = Vec::new();
        let mut rng = Key::new(8, Purpose::Score).rng();
        let mut shares = |from: i32, order| {
            let mut n_drawn = [0.0; N as usize + 1];
            for _ in 0..N_DRAWS {
                let weights = |n: i32| law[n as usize].ln();
                let mut strides =
                    StrideMoves { n_tokens: N, stride: 4, weights, buffer: &mut buffer };
                let to = strides.redraw(from, order, std::array::from_fn(|_| rng.random()));
                n_drawn[to as usize] += 1.0 / N_DRAWS as f64;
            }
            n_drawn
        };
        let forward: Vec<_> = (0..=N).map(|from| shares(from, SweepOrder::Forward)).collect();
        let backward: Vec<_> = (0..=N).map(|from| shares(from, SweepOrder::Backward)).collect();
        let mut largest_asymmetry = 0.0_f64;
        for one in 0..=N as usize {
            for other in 0..=N as usize {
                let there = law[one] * forward[one][other];
                let back = law[other] * backward[other][one];
                let same_order = law[other] * forward[other][one];
                let error = (law[one] * there + law[other] * back + 1e-6) / N_DRAWS as f64;
                assert!((there - back).abs() < 5.0 * error.sqrt(), "{one} {other}: {there} {back}");
                largest_asymmetry =
                    largest_asymmetry.max((there - same_order).abs() / error.sqrt());
            }
        }
        // Two draws in the same order are not each other's reversal.
        assert!(largest_asymmetry > 20.0, "{largest_asymmetry}");
    }
}
