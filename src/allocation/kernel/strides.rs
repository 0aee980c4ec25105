//! Gibbs draws of how very many tokens divide between two states, from some `√n` of the `n + 1`
//! divisions at a time.
//!
//! Two draws leave the law as it is. One is among the divisions that differ by multiples of a stride
//! from the present one or from its mirror image, the other among as many neighbours as a stride has
//! steps, whose first is drawn uniformly: a division is met from each of its neighbours as often as
//! they from it.

use crate::math::elementary::exp;
use crate::urn::Order;

/// The draws of one division, of `n` tokens.
pub(super) struct Strides<'a, L> {
    pub(super) n: i32,
    /// ln of the weight of so many tokens in the first state.
    pub(super) ln_weight: L,
    pub(super) divisions: &'a mut Vec<(i32, f64)>,
}

impl<L: Fn(i32) -> f64> Strides<'_, L> {
    /// Both draws, one after the other, backwards in the opposite order: the tokens in the first
    /// state, where `now` are before.
    pub(super) fn redraw(&mut self, now: i32, order: Order, darts: [f64; 3]) -> i32 {
        let [far, offset, near] = darts;
        match order {
            Order::Forward => {
                let now = self.far(now, far);
                self.near(now, offset, near)
            }
            Order::Backward => {
                let now = self.near(now, offset, near);
                self.far(now, far)
            }
        }
    }

    fn stride(&self) -> i32 {
        f64::from(self.n).sqrt().ceil().max(1.0) as i32
    }

    /// Among multiples of a stride.
    fn far(&mut self, now: i32, dart: f64) -> i32 {
        let stride = self.stride();
        let (rest, mirrored) = (now % stride, (self.n - now) % stride);
        self.divisions.clear();
        self.weigh(rest, stride, self.n);
        if mirrored != rest {
            self.weigh(mirrored, stride, self.n);
        }
        self.pick(dart)
    }

    /// Among neighbours.
    fn near(&mut self, now: i32, offset: f64, dart: f64) -> i32 {
        let stride = self.stride();
        let first = now - (offset * f64::from(stride)) as i32;
        self.divisions.clear();
        self.weigh(first.max(0), 1, (first + stride - 1).min(self.n));
        self.pick(dart)
    }

    /// Weighs the divisions from `first` to `last`.
    fn weigh(&mut self, first: i32, stride: i32, last: i32) {
        let divisions = (first..=last).step_by(stride as usize);
        self.divisions.extend(divisions.map(|n| (n, (self.ln_weight)(n))));
    }

    /// Draws one of the divisions that have been weighed.
    fn pick(&mut self, dart: f64) -> i32 {
        let most = self.divisions.iter().fold(f64::NEG_INFINITY, |most, &(_, ln)| most.max(ln));
        let mut total = 0.0;
        for (_, weight) in &mut *self.divisions {
            total += exp(*weight - most);
            *weight = total;
        }
        let passed = self.divisions.partition_point(|&(_, sum)| sum <= dart * total);
        self.divisions[passed.min(self.divisions.len() - 1)].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::{LogSum, ln_binomial, ln_rising};
    use crate::rng::{Key, Purpose};
    use rand::RngExt as _;

    /// Tokens that shun a division in halves, with other states that hold more of one than of the
    /// other.
    fn ln_weight(n: i32, n_tokens: i32) -> f64 {
        let others = f64::from(n_tokens - n);
        ln_binomial(f64::from(n_tokens), others)
            + 1.2 * (ln_rising(0.3, n as u64) + ln_rising(0.31, others as u64))
    }

    #[test]
    fn draws_have_the_probabilities_of_the_law_in_both_orders() {
        const N_DRAWS: usize = 400_000;
        for (n_tokens, order) in
            [(150, Order::Forward), (137, Order::Backward), (1, Order::Forward)]
        {
            let mut all = LogSum::default();
            (0..=n_tokens).for_each(|n| all.push(ln_weight(n, n_tokens)));
            let ln_total = all.ln_sum();
            let mut rng = Key::new(7, Purpose::Score).rng();
            let (mut now, mut n_drawn) = (n_tokens / 2, vec![0.0; n_tokens as usize + 1]);
            let mut divisions = Vec::new();
            for _ in 0..N_DRAWS {
                let ln_weight = |n| ln_weight(n, n_tokens);
                let mut strides = Strides { n: n_tokens, ln_weight, divisions: &mut divisions };
                now = strides.redraw(now, order, std::array::from_fn(|_| rng.random()));
                n_drawn[now as usize] += 1.0;
            }
            for (n, drawn) in (0..).zip(n_drawn) {
                let expected = (ln_weight(n, n_tokens) - ln_total).exp();
                // Successive draws are nearly independent.
                let error = (2.0 * expected / N_DRAWS as f64).sqrt();
                let share = drawn / N_DRAWS as f64;
                assert!(
                    (share - expected).abs() < 4.5 * error,
                    "{n} of {n_tokens}: {share} {expected}"
                );
            }
        }
    }

    #[test]
    fn a_backward_draw_is_the_reversal_of_a_forward_draw() {
        const N: i32 = 12;
        const N_DRAWS: usize = 200_000;
        let law: Vec<f64> = (0..=N).map(|n| (1.5 * f64::from(n)).cos().exp()).collect();
        let mut divisions = Vec::new();
        let mut rng = Key::new(8, Purpose::Score).rng();
        let mut shares = |from: i32, order| {
            let mut n_drawn = [0.0; N as usize + 1];
            for _ in 0..N_DRAWS {
                let ln_weight = |n: i32| law[n as usize].ln();
                let mut strides = Strides { n: N, ln_weight, divisions: &mut divisions };
                let to = strides.redraw(from, order, std::array::from_fn(|_| rng.random()));
                n_drawn[to as usize] += 1.0 / N_DRAWS as f64;
            }
            n_drawn
        };
        let forward: Vec<_> = (0..=N).map(|from| shares(from, Order::Forward)).collect();
        let backward: Vec<_> = (0..=N).map(|from| shares(from, Order::Backward)).collect();
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
        // Of the same order, it would be seen.
        assert!(largest_asymmetry > 20.0, "{largest_asymmetry}");
    }
}
