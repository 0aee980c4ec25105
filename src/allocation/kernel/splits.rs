//! Gibbs draws of how the tokens of a cell that are in one of two states divide between the two.
//!
//! Tokens of a cell are exchangeable: n of m are in the first state with probability proportional to
//! `C(m, n) Π_rows base (base + unit) ...`, each weight a rational multiple of the one before. The mass of
//! a cell moves between states at once, which tokens that move one by one do only against the urn's
//! pull.

// Compiled for several instruction sets, with all its parts in it.
#![allow(clippy::inline_always)]

use super::counts::{Counts, Target};
use super::powered::Path;
use super::rounds::pairs;
use crate::allocation::model::plan::{Clique, Factor};
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::math::elementary::{exp, ln};
use crate::rng::{LANES, Lanes, UniformLanes};
use crate::urn::Order;

/// Steps between two polls of the observer: some tens of milliseconds.
const STEPS_BETWEEN_POLLS: usize = 1 << 20;

/// Sums and weights that grow beyond this are divided by it.
const LARGE: f64 = 1e200;

/// Weights below this are too small for their digits, and are divided by it.
const SMALL: f64 = 1e-200;

/// A row whose count changes with each token that moves to the first state of a pair.
struct Change {
    row: usize,
    by: i32,
    /// Power of the row in the law.
    exponent: i32,
}

/// Two states, and the first of the changes between them.
struct Pair {
    states: [usize; 2],
    changes: usize,
}

/// A factor of the ratio of two weights: base + unit (S + by (n - now) + hit), where n is `now` for
/// the row's count S.
#[derive(Clone, Copy)]
struct Term {
    row: usize,
    by: i32,
    hit: i32,
    base: f64,
    unit: f64,
}

/// A linear factor of the ratio of two weights, size + step n, in every lane.
#[derive(Clone, Copy)]
struct Line {
    size: Lanes,
    step: Lanes,
}

const ONE: Line = Line { size: [1.0; LANES], step: [0.0; LANES] };

/// Buffers of the draws.
#[derive(Default)]
pub(crate) struct Splits {
    pairs: Vec<Pair>,
    changes: Vec<Change>,
    /// Factors of the numerator of every pair, then those of its denominator.
    terms: Vec<Term>,
    /// Factors of the pair that each lane is at: as many in the numerator as in the denominator.
    lines: Vec<Line>,
}

/// A cell in memory: its tokens in every state, and the counts of all rows.
pub(crate) struct Cell<'a> {
    pub(crate) clique: &'a Clique,
    /// First row of each slot.
    pub(crate) bases: &'a [u32],
    pub(crate) target: Target<'a>,
    pub(crate) piles: &'a mut [Counts],
    pub(crate) rows: &'a mut [Counts],
}

impl Splits {
    /// Redraws the tokens of a cell in the pairs of states of a round, at the lanes' places on a
    /// path, or under the law itself.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the observer asks to stop.
    pub(crate) fn draw(
        &mut self,
        cell: &mut Cell<'_>,
        round: usize,
        order: Order,
        path: Option<Path<'_>>,
        uniforms: &mut impl UniformLanes,
        observer: &impl Observer,
    ) -> Result<()> {
        let copies = |factor: &Factor| factor.exponent.unsigned_abs() as usize;
        let n_above: usize = cell.clique.factors.iter().map(copies).sum();
        self.lines.resize(2 * n_above, ONE);
        self.pairs.clear();
        self.changes.clear();
        self.terms.clear();
        let pairs = pairs(cell.piles.len(), round);
        match order {
            Order::Forward => pairs.for_each(|states| self.list(cell, states)),
            Order::Backward => pairs.rev().for_each(|states| self.list(cell, states)),
        }
        divide(self, cell, path, uniforms, observer)
    }

    /// Lists the rows that tell two states apart, if any chain has tokens in them.
    fn list(&mut self, cell: &Cell<'_>, states: [usize; 2]) {
        if states.iter().all(|&state| cell.piles[state] == [0; LANES]) {
            return;
        }
        let start = self.changes.len();
        for (index, factor) in cell.clique.factors.iter().enumerate() {
            for (state, by) in states.into_iter().zip([1, -1]) {
                let row = cell.clique.row(index, state, cell.bases);
                match self.changes[start..].iter_mut().find(|change| change.row == row) {
                    Some(change) => change.by += by,
                    None => self.changes.push(Change { row, by, exponent: factor.exponent }),
                }
            }
        }
        self.pairs.push(Pair { states, changes: start });
        let (above, below) = (self.terms.len(), self.terms.len() + self.lines.len() / 2);
        let one = Term { row: 0, by: 0, hit: 0, base: 1.0, unit: 0.0 };
        self.terms.resize(above + self.lines.len(), one);
        let mut next = [below, above];
        for &Change { row, by, exponent } in &self.changes[start..] {
            for hit in 0..by.abs() {
                let hit = if by > 0 { hit } else { -1 - hit };
                let next = &mut next[usize::from((by > 0) == (exponent > 0))];
                for _ in 0..exponent.abs() {
                    let Target { base, unit } = cell.target;
                    self.terms[*next] = Term { row, by, hit, base: base[row], unit };
                    *next += 1;
                }
            }
        }
    }

    #[inline(always)]
    fn range(&self, pair: usize) -> std::ops::Range<usize> {
        let end = self.pairs.get(pair + 1).map_or(self.changes.len(), |pair| pair.changes);
        self.pairs[pair].changes..end
    }

    /// Moves the tokens of a lane that have changed states.
    #[inline(always)]
    fn store(&self, pair: usize, lane: usize, drawn: i32, cell: &mut Cell<'_>) {
        let [first, second] = self.pairs[pair].states;
        let moved = drawn - cell.piles[first][lane];
        if moved == 0 {
            return;
        }
        cell.piles[first][lane] += moved;
        cell.piles[second][lane] -= moved;
        for change in &self.changes[self.range(pair)] {
            cell.rows[change.row][lane] += change.by * moved;
        }
    }

    /// Sets the lines of a lane to those of a pair.
    #[inline(always)]
    fn load(&mut self, pair: usize, lane: usize, n: i32, cell: &Cell<'_>) {
        let n_lines = self.lines.len();
        for (line, term) in self.lines.iter_mut().zip(&self.terms[pair * n_lines..]) {
            let count = cell.rows[term.row][lane] + term.hit - term.by * n;
            line.size[lane] = term.base + term.unit * f64::from(count);
            line.step[lane] = term.unit * f64::from(term.by);
        }
    }
}

/// Goes through the pairs in every lane, a token at a time.
#[multiversion::multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx2"))]
fn divide(
    splits: &mut Splits,
    cell: &mut Cell<'_>,
    path: Option<Path<'_>>,
    uniforms: &mut impl UniformLanes,
    observer: &impl Observer,
) -> Result<()> {
    let mut walk = Walk::default();
    for step in 1_usize.. {
        if walk.any_ended() {
            for lane in 0..LANES {
                if walk.n[lane] >= walk.tokens[lane] {
                    walk.turn(lane, splits, cell);
                }
            }
            if walk.n_at_end == LANES {
                break;
            }
        }
        if step % STEPS_BETWEEN_POLLS == 0 && observer.stopped() {
            return Err(Error::Stopped);
        }
        walk.step(&splits.lines, path, &uniforms.next());
    }
    Ok(())
}

/// The pair that every lane is at, and how far the lane has come.
#[derive(Default)]
struct Walk {
    /// Pairs that are done or begun.
    n_begun: [usize; LANES],
    /// Lanes that have no more.
    n_at_end: usize,
    /// Tokens in the two states.
    tokens: Lanes,
    /// Tokens in the first state at the present division.
    n: Lanes,
    /// Weight of that division.
    weight: Lanes,
    /// How often the weight has been raised above its due.
    raised: Lanes,
    /// Sum of the weights of all divisions so far.
    total: Lanes,
    /// The division that is drawn: its tokens in the first state.
    drawn: Lanes,
}

impl Walk {
    #[inline(always)]
    fn any_ended(&self) -> bool {
        let mut any_ended = false;
        for lane in 0..LANES {
            any_ended |= self.n[lane] >= self.tokens[lane];
        }
        any_ended
    }

    /// Ends a pair and begins the next in which the lane has tokens.
    #[inline(always)]
    fn turn(&mut self, lane: usize, splits: &mut Splits, cell: &mut Cell<'_>) {
        if self.tokens[lane] > 0.0 {
            splits.store(self.n_begun[lane] - 1, lane, self.drawn[lane] as i32, cell);
        }
        let both = |pair: usize| splits.pairs[pair].states.map(|state| cell.piles[state][lane]);
        let n_pairs = splits.pairs.len();
        let found = (self.n_begun[lane]..n_pairs).find(|&pair| both(pair) != [0, 0]);
        let Some(pair) = found else {
            self.n_at_end += 1;
            // The weight is not read any more.
            (self.tokens[lane], self.weight[lane]) = (f64::MAX, 0.0);
            return;
        };
        let [first, second] = both(pair);
        splits.load(pair, lane, first, cell);
        self.n_begun[lane] = pair + 1;
        self.tokens[lane] = f64::from(first + second);
        (self.n[lane], self.drawn[lane], self.raised[lane]) = (0.0, 0.0, 0.0);
        (self.weight[lane], self.total[lane]) = (1.0, 1.0);
    }

    /// One more token in the first state.
    #[inline(always)]
    fn step(&mut self, lines: &[Line], path: Option<Path<'_>>, darts: &Lanes) {
        let (above, below) = lines.split_at(lines.len() / 2);
        let (mut above, mut below) = (product(above, &self.n), product(below, &self.n));
        if let Some(Path { betas, kappa }) = path {
            for lane in 0..LANES {
                let left = self.tokens[lane] - self.n[lane];
                let urn = ln((self.n[lane] + kappa) / (left - 1.0 + kappa));
                let law = ln(above[lane] / below[lane]);
                above[lane] = exp(urn + betas[lane] * (law - urn));
                below[lane] = 1.0;
            }
        }
        for lane in 0..LANES {
            let left = self.tokens[lane] - self.n[lane];
            self.weight[lane] *= left * above[lane] / ((self.n[lane] + 1.0) * below[lane]);
            self.n[lane] += 1.0;
            let due = self.weight[lane] * if self.raised[lane] == 0.0 { 1.0 } else { 0.0 };
            self.total[lane] += due;
            let taken = if darts[lane] * self.total[lane] < due { 1.0 } else { 0.0 };
            self.drawn[lane] += taken * (self.n[lane] - self.drawn[lane]);
        }
        let mut any_far = false;
        for lane in 0..LANES {
            any_far |= self.weight[lane] > 0.0 && self.weight[lane] < SMALL;
            any_far |= self.total[lane] > LARGE;
            any_far |= self.raised[lane] > 0.0;
        }
        if any_far {
            (0..LANES).for_each(|lane| self.rescale(lane));
        }
    }

    /// Keeps weight and total where they have all their digits.
    fn rescale(&mut self, lane: usize) {
        if self.total[lane] > LARGE {
            self.total[lane] *= SMALL;
            self.weight[lane] *= SMALL;
        }
        if self.weight[lane] > 0.0 && self.weight[lane] < SMALL {
            self.weight[lane] *= LARGE;
            self.raised[lane] += 1.0;
        } else if self.raised[lane] > 0.0 && self.weight[lane] > 1.0 {
            self.weight[lane] *= SMALL;
            self.raised[lane] -= 1.0;
        }
    }
}

/// Product of linear factors at n tokens in the first state.
#[inline(always)]
fn product(lines: &[Line], n: &Lanes) -> Lanes {
    let mut product = [1.0; LANES];
    for line in lines {
        for lane in 0..LANES {
            product[lane] *= line.size[lane] + line.step[lane] * n[lane];
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::kernel::chains::Chains;
    use crate::allocation::kernel::law::ln_law;
    use crate::allocation::model::network::{Network, Prior};
    use crate::allocation::model::problem::Problem;
    use crate::counts::CountTensor;
    use crate::math::{LogSum, ln_factorial};
    use crate::rng::{Key, Purpose, Stream as _};

    /// Cells (0, 0), (0, 2) and (1, 1) under a network whose nodes `0` and `1` are visible.
    fn problem(
        sizes: &[usize],
        parents: &[&[usize]],
        ties: &[Vec<usize>],
        counts: [i64; 3],
    ) -> Problem {
        let parents = parents.iter().map(|parents| parents.to_vec()).collect();
        let prior = Prior { concentration: 1.0, tables: None };
        let network = Network::new(sizes.to_vec(), parents, vec![0, 1], ties, prior).unwrap();
        let data = CountTensor::new(vec![3, 3], &[0, 0, 0, 2, 1, 1], &counts).unwrap();
        Problem::new(&network, &data, None).unwrap()
    }

    /// All ways to put tokens into `n_states` piles.
    fn all_piles(n_tokens: i32, n_states: usize) -> Vec<Vec<i32>> {
        if n_states == 1 {
            return vec![vec![n_tokens]];
        }
        let with_first = |first: i32| {
            let rest = all_piles(n_tokens - first, n_states - 1);
            rest.into_iter().map(move |rest| [&[first], &rest[..]].concat())
        };
        (0..=n_tokens).flat_map(with_first).collect()
    }

    /// Posterior mean of Σ counts² over all marginal counts.
    fn mean_by_enumeration(problem: &Problem, target: Target<'_>) -> f64 {
        let clique = &problem.plan.cliques[0];
        let mut allocations: Vec<(Vec<i32>, f64)> = vec![(vec![0; problem.n_rows], 0.0)];
        for (cell, &count) in (0..).zip(&problem.counts) {
            let all = all_piles(count as i32, clique.n_states);
            let with = |(rows, ln_ways): &(Vec<i32>, f64), piles: &Vec<i32>| {
                let (mut rows, mut ln_ways) = (rows.clone(), *ln_ways);
                for (state, &n) in piles.iter().enumerate() {
                    for factor in 0..clique.factors.len() {
                        rows[clique.row(factor, state, problem.bases(cell))] += n;
                    }
                    ln_ways -= ln_factorial(n as u64);
                }
                (rows, ln_ways)
            };
            let before = std::mem::take(&mut allocations);
            allocations = before
                .iter()
                .flat_map(|old| all.iter().map(move |piles| with(old, piles)))
                .collect();
        }
        let (mut total, mut weighted) = (LogSum::default(), LogSum::default());
        for (rows, ln_ways) in &allocations {
            let counts: Vec<Counts> = rows.iter().map(|&n| [n; LANES]).collect();
            let ln_weight = ln_law(problem, target, &counts)[0] + ln_ways;
            let squares: i32 = rows.iter().map(|n| n * n).sum();
            total.push(ln_weight);
            weighted.push(ln_weight + f64::from(squares).ln());
        }
        (weighted.ln_mean() - total.ln_mean()).exp()
    }

    /// A mixture; a core of two hidden nodes, whose states share rows; two axes with one table.
    fn problems(counts: [i64; 3]) -> [Problem; 3] {
        [
            problem(&[3, 3, 3], &[&[2], &[2], &[]], &[], counts),
            problem(&[3, 3, 2, 2], &[&[2], &[3], &[], &[2]], &[], counts),
            problem(&[3, 3, 2], &[&[2], &[2], &[]], &[vec![0, 1]], counts),
        ]
    }

    #[test]
    fn sweeps_visit_allocations_with_their_probabilities() {
        const N: usize = 4_000;
        for (index, problem) in problems([17, 2, 1]).iter().enumerate() {
            let alphas = problem.alphas();
            let target = Target { base: &alphas, unit: 1.0 };
            let exact = mean_by_enumeration(problem, target);
            let mut rng = Key::new(index as u64, Purpose::Score).rng();
            let mut chains = Chains::uniform(problem, &mut rng, &()).unwrap();
            let mut means = [0.0; LANES];
            for sweep in 0..N + 100 {
                chains.sweep(target, &()).unwrap();
                for row in chains.rows().iter().filter(|_| sweep >= 100) {
                    for lane in 0..LANES {
                        means[lane] += f64::from(row[lane] * row[lane]) / N as f64;
                    }
                }
            }
            let mean = means.iter().sum::<f64>() / LANES as f64;
            let squares: f64 = means.iter().map(|x| (x - mean).powi(2)).sum();
            let error = (squares / (LANES * (LANES - 1)) as f64).sqrt();
            assert!((mean - exact).abs() < 4.0 * error, "{index}: {mean} {exact} {error}");
            assert!(error < 0.01 * exact, "{index}: {error} of {exact}");
        }
    }

    /// The tokens of a cell are all in one or all in the other of two states that hold many others:
    /// between them lie weights of e^-2000.
    #[test]
    fn tokens_move_together_across_weights_below_the_smallest_number() {
        const M: i32 = 3_000;
        const N: usize = 100;
        let [problem, ..] = problems([i64::from(M), 1, 1]);
        let (clique, bases) = (&problem.plan.cliques[0], problem.bases(0));
        let mut base = problem.alphas();
        for laid in problem.margins.iter().filter(|laid| laid.margin.exponent < 0) {
            base[laid.rows()].fill(5_000.0);
        }
        let mut rows = vec![[0; LANES]; problem.n_rows];
        let mut piles = [[M; LANES], [0; LANES], [0; LANES]];
        let factors = 0..clique.factors.len();
        factors.for_each(|factor| rows[clique.row(factor, 0, bases)] = piles[0]);
        let (mut splits, mut uniforms) =
            (Splits::default(), Key::new(1, Purpose::Score).rng().lanes());
        let round = (0..3).find(|&round| pairs(3, round).next() == Some([0, 1])).unwrap();
        let mut n_moved = 0;
        for _ in 0..N {
            let target = Target { base: &base, unit: 1.0 };
            let mut cell = Cell { clique, bases, target, piles: &mut piles, rows: &mut rows };
            splits.draw(&mut cell, round, Order::Forward, None, &mut uniforms, &()).unwrap();
            assert!(piles[0].iter().all(|n| !(50..=M - 50).contains(n)), "{piles:?}");
            n_moved += piles[0].iter().filter(|&&n| n < 50).count();
        }
        for state in 0..3 {
            assert_eq!(rows[clique.row(0, state, bases)], piles[state]);
        }
        let n = (N * LANES) as f64;
        assert!((n_moved as f64 / n - 0.5).abs() < 4.0 * 0.5 / n.sqrt(), "{n_moved}");
    }
}
