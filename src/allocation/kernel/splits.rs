//! Gibbs draws of how the tokens of a cell that are in one of two states divide between the two.
//!
//! Tokens of a cell are exchangeable: n of m are in the first state with probability proportional to
//! `C(m, n) Π_rows base (base + unit) ...`. The mass of a cell moves between states at once, which
//! tokens that move one by one do only against the urn's pull.

// Compiled for several instruction sets, with all its parts in it.
#![allow(clippy::inline_always)]

use rand_distr::{Binomial, Distribution as _};

use super::counts::Counts;
use super::rounds::pairs;
use super::split_law::{CountChange, LanePair, SplitLaw, pick};
use super::stride_moves::{PairTokens, StrideMoves, stride};
use crate::allocation::model::plan::Clique;
use crate::control::Observer;
use crate::error::Result;
use crate::math::elementary::ln;
use crate::rng::{LANES, UniformLanes};
use crate::urn::SweepOrder;

/// Tokens in two states up to which all their divisions are weighed, in time and memory for each.
pub(crate) const MAX_WEIGHED: i32 = 1 << 16;

/// Divisions that are weighed side by side in vector registers: those beyond the last weigh nothing.
const PART: usize = 8;

/// Divisions of n more tokens that take the time of their draws by strides, in √n.
const STRIDES: f64 = 30.0;

/// Divisions of the tokens of a cell that a round of pairs of its states weighs, about.
pub(crate) fn n_weighed(n_tokens: u64, n_states: usize) -> f64 {
    let n_pairs = (n_states / 2).max(1) as f64;
    let n = n_tokens as f64 / n_pairs;
    n_pairs * if n > f64::from(MAX_WEIGHED) { STRIDES * n.sqrt() } else { n }
}

/// Two states, and the first of the changes between them.
struct StatePair {
    states: [usize; 2],
    changes: usize,
}

/// Buffers of the draws.
#[derive(Default)]
pub(crate) struct Splits {
    pairs: Vec<StatePair>,
    changes: Vec<CountChange>,
    /// ln of the distribution of the divisions of one lane, then its cumulative sums.
    ln_laws: Vec<f64>,
    /// ln n!.
    ln_factorials: Vec<f64>,
}

/// A cell in memory: its tokens in every state, and the counts of all rows.
pub(crate) struct Cell<'a> {
    pub(crate) clique: &'a Clique,
    /// First row of each slot.
    pub(crate) bases: &'a [u32],
    pub(crate) by_state: &'a mut [Counts],
    pub(crate) rows: &'a mut [Counts],
}

impl Cell<'_> {
    /// Deals the tokens of one lane out afresh, state after state: each takes a share of those left,
    /// which is drawn for it and the number of states after it.
    pub(crate) fn deal<R: rand::Rng>(
        &mut self,
        lane: usize,
        n_tokens: u64,
        mut share: impl FnMut(usize, &mut R) -> f64,
        rng: &mut R,
    ) {
        let (n_states, mut left) = (self.by_state.len(), n_tokens);
        for state in 0..n_states {
            let share = match n_states - 1 - state {
                0 => 1.0,
                n_others => share(n_others, rng),
            };
            let drawn = Binomial::new(left, share).map_or(left, |law| law.sample(rng));
            left -= drawn;
            let moved = drawn as i32 - self.by_state[state][lane];
            self.by_state[state][lane] += moved;
            for factor in 0..self.clique.factors.len() {
                self.rows[self.clique.row(factor, state, self.bases)][lane] += moved;
            }
        }
    }

    /// Moves tokens from the second of two states to the first.
    #[inline(always)]
    fn shift(&mut self, states: [usize; 2], changes: &[CountChange], lane: usize, moved: i32) {
        if moved == 0 {
            return;
        }
        self.by_state[states[0]][lane] += moved;
        self.by_state[states[1]][lane] -= moved;
        for change in changes {
            self.rows[change.row][lane] += change.by * moved;
        }
    }
}

impl Splits {
    /// Redraws the tokens of a cell in the pairs of states of a round.
    pub(crate) fn draw(
        &mut self,
        cell: &mut Cell<'_>,
        round: usize,
        order: SweepOrder,
        law: &impl SplitLaw,
        uniforms: &mut impl UniformLanes,
        observer: &dyn Observer,
    ) -> Result<()> {
        self.pairs.clear();
        self.changes.clear();
        let pairs = pairs(cell.by_state.len(), round);
        match order {
            SweepOrder::Forward => pairs.for_each(|states| self.list(cell, states)),
            SweepOrder::Backward => pairs.rev().for_each(|states| self.list(cell, states)),
        }
        for pair in 0..self.pairs.len() {
            observer.check_stop()?;
            divide(self, pair, cell, law, uniforms);
            self.stride(pair, cell, order, law, uniforms, observer)?;
        }
        Ok(())
    }

    /// Redraws the tokens of a cell in two states, in the lanes where they are very many.
    fn stride(
        &mut self,
        pair: usize,
        cell: &mut Cell<'_>,
        order: SweepOrder,
        law: &impl SplitLaw,
        uniforms: &mut impl UniformLanes,
        observer: &dyn Observer,
    ) -> Result<()> {
        let [first, second] = self.pairs[pair].states;
        let changes = &self.changes[self.range(pair)];
        let held: Counts =
            std::array::from_fn(|lane| cell.by_state[first][lane] + cell.by_state[second][lane]);
        if held.iter().all(|&n| n <= MAX_WEIGHED) {
            return Ok(());
        }
        let darts = [uniforms.next(), uniforms.next(), uniforms.next()];
        let strides = uniforms.next();
        for lane in (0..LANES).filter(|&lane| held[lane] > MAX_WEIGHED) {
            observer.check_stop()?;
            let (now, n) = (cell.by_state[first][lane], held[lane]);
            let pair = LanePair { states: [first, second], lane };
            let weights = PairTokens { law, changes, rows: cell.rows, pair, now, n };
            let mut strides = StrideMoves {
                n_tokens: n,
                stride: stride(n, strides[lane]),
                weights,
                buffer: &mut self.ln_laws,
            };
            let moved = strides.redraw(now, order, darts.map(|dart| dart[lane])) - now;
            cell.shift([first, second], changes, lane, moved);
        }
        Ok(())
    }

    /// Lists the rows that tell two states apart, if any chain has tokens in them.
    fn list(&mut self, cell: &Cell<'_>, states: [usize; 2]) {
        if states.iter().all(|&state| cell.by_state[state] == [0; LANES]) {
            return;
        }
        let start = self.changes.len();
        for (index, factor) in cell.clique.factors.iter().enumerate() {
            for (state, by) in states.into_iter().zip([1, -1]) {
                let row = cell.clique.row(index, state, cell.bases);
                let same = self.changes[start..].iter_mut().find(|change| change.row == row);
                if let Some(same) = same {
                    same.by += by;
                } else {
                    let (exponent, slot) = (factor.exponent, factor.slot);
                    self.changes.push(CountChange { row, by, exponent, slot });
                }
            }
        }
        self.pairs.push(StatePair { states, changes: start });
    }

    fn range(&self, pair: usize) -> std::ops::Range<usize> {
        let end = self.pairs.get(pair + 1).map_or(self.changes.len(), |pair| pair.changes);
        self.pairs[pair].changes..end
    }

    /// Makes room for the divisions of `n` tokens: whole parts.
    #[inline(always)]
    fn start_law(&mut self, n: i32) {
        for n in self.ln_factorials.len()..=n as usize {
            let last = self.ln_factorials.last().map_or(0.0, |last| last + ln(n as f64));
            self.ln_factorials.push(last);
        }
        self.ln_laws.clear();
        self.ln_laws.resize((n as usize + 1).next_multiple_of(PART), 0.0);
    }

    /// Draws a division of `n` tokens: those in the first state.
    #[inline(always)]
    fn pick(&mut self, n: i32, dart: f64) -> i32 {
        let (laws, beyond) = self.ln_laws.split_at_mut(n as usize + 1);
        let factorials = &self.ln_factorials[..laws.len()];
        for (law, (one, other)) in
            laws.iter_mut().zip(factorials.iter().zip(factorials.iter().rev()))
        {
            *law -= one + other;
        }
        beyond.fill(f64::NEG_INFINITY);
        let mut most = [f64::NEG_INFINITY; PART];
        for part in self.ln_laws.as_chunks::<PART>().0 {
            for (most, &law) in most.iter_mut().zip(part) {
                *most = if law > *most { law } else { *most };
            }
        }
        let most = most.into_iter().fold(f64::NEG_INFINITY, f64::max);
        pick(&mut self.ln_laws, most, dart).min(n)
    }
}

/// Redraws the tokens of a cell in two states, lane after lane.
#[polyabayes_macros::vectorised]
fn divide(
    splits: &mut Splits,
    pair: usize,
    cell: &mut Cell<'_>,
    law: &impl SplitLaw,
    uniforms: &mut impl UniformLanes,
) {
    let ([first, second], changes) = (splits.pairs[pair].states, splits.range(pair));
    let darts = uniforms.next();
    for (lane, dart) in darts.into_iter().enumerate() {
        let (now, others) = (cell.by_state[first][lane], cell.by_state[second][lane]);
        if now + others == 0 || now + others > MAX_WEIGHED {
            continue;
        }
        let n = now + others;
        splits.start_law(n);
        let ln_laws = &mut splits.ln_laws[..=n as usize];
        for change in &splits.changes[changes.clone()] {
            let start = cell.rows[change.row][lane] - change.by * now;
            if change.by != 0 {
                law.add_row(change, start, ln_laws);
            }
        }
        law.place(LanePair { states: [first, second], lane }, 0, n as usize, ln_laws);
        let moved = splits.pick(n, dart) - now;
        cell.shift([first, second], &splits.changes[changes.clone()], lane, moved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::kernel::counts::CountWeights;
    use crate::allocation::model::examples::{MIXTURE, table_under};
    use crate::rng::{Key, Purpose, Stream as _};

    /// The tokens of a cell are all in one or all in the other of two states that hold many others:
    /// between them lie weights of e^-2000.
    #[test]
    fn tokens_move_together_across_weights_below_the_smallest_number() {
        const M: i32 = 3_000;
        const N: usize = 100;
        let cells: (&[i64], &[i64]) = (&[0, 0, 0, 2, 1, 1], &[i64::from(M), 1, 1]);
        let problem = table_under((&[3, 3, 3], MIXTURE), &[], 1.0, cells);
        let (clique, bases) = (&problem.plan.cliques[0], problem.bases(0));
        let mut base = problem.alphas();
        for laid in problem.margins.iter().filter(|laid| laid.margin.exponent < 0) {
            base[laid.rows()].fill(5_000.0);
        }
        let mut rows = vec![[0; LANES]; problem.n_rows];
        let mut by_state = [[M; LANES], [0; LANES], [0; LANES]];
        let factors = 0..clique.factors.len();
        factors.for_each(|factor| rows[clique.row(factor, 0, bases)] = by_state[0]);
        let (mut splits, mut uniforms) =
            (Splits::default(), Key::new(1, Purpose::Score).rng().lanes());
        let round = (0..3).find(|&round| pairs(3, round).next() == Some([0, 1])).unwrap();
        let mut n_moved = 0;
        for _ in 0..N {
            let target = CountWeights { base: &base, unit: 1.0 };
            let mut cell = Cell { clique, bases, by_state: &mut by_state, rows: &mut rows };
            splits
                .draw(&mut cell, round, SweepOrder::Forward, &target, &mut uniforms, &())
                .unwrap();
            assert!(by_state[0].iter().all(|n| !(50..=M - 50).contains(n)), "{by_state:?}");
            n_moved += by_state[0].iter().filter(|&&n| n < 50).count();
        }
        for state in 0..3 {
            assert_eq!(rows[clique.row(0, state, bases)], by_state[state]);
        }
        let n = (N * LANES) as f64;
        assert!((n_moved as f64 / n - 0.5).abs() < 4.0 * 0.5 / n.sqrt(), "{n_moved}");
    }
}
