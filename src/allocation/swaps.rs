//! Moves of all tokens of a cell at a time.
//!
//! Where the prior is sparse, the tokens of a cell share their hidden values, and a Gibbs sweep, which
//! moves them one by one, hardly ever takes many from one to another. A swap exchanges two joint
//! values that differ in one node: all tokens of the cell at one go to the other.

use super::chains::Order;
use super::kernel::{Counts, States, Target};
use super::plan::{Clique, Factor};
use super::problem::Problem;
use crate::math::lanes;
use crate::rng::{LANES, Lanes, UniformLanes};

/// Tokens of a cell from which on it is moved as a whole, too: fewer move well enough one by one.
const LEAST_TOKENS: u64 = 16;

/// Cells that are moved, and the moves there are.
pub(super) struct Swaps<'a> {
    problem: &'a Problem,
    cells: Vec<u32>,
    /// First token of every cell, and the end.
    starts: Vec<usize>,
    /// Hidden nodes of more than one value.
    nodes: Vec<Node>,
    /// Other values that one of them can take.
    n_choices: usize,
    n_cliques: usize,
}

struct Node {
    size: usize,
    /// Cliques with the node, and its stride there.
    strides: Vec<(usize, usize)>,
}

/// A swap in every lane.
struct Swap {
    /// State of every clique before and after.
    before: Vec<States>,
    after: Vec<States>,
}

impl<'a> Swaps<'a> {
    pub(super) fn new(problem: &'a Problem) -> Self {
        let cliques = &problem.plan.cliques;
        let inner = cliques.iter().flat_map(Clique::inner);
        let nodes = inner.filter(|(.., size)| *size > 1).map(|&(node, _, size)| {
            let strides = cliques.iter().enumerate().filter_map(|(index, clique)| {
                let digit = clique.digits().iter().find(|(other, ..)| *other == node);
                digit.map(|&(_, stride, _)| (index, stride))
            });
            Node { size, strides: strides.collect() }
        });
        let nodes: Vec<Node> = nodes.collect();
        let mut starts = vec![0];
        for &count in &problem.counts {
            starts.push(starts[starts.len() - 1] + count as usize);
        }
        let n_choices = nodes.iter().map(|node| node.size - 1).sum();
        let has_many = |&cell: &u32| problem.counts[cell as usize] >= LEAST_TOKENS;
        let cells = (0..problem.n_cells() as u32).filter(|cell| n_choices > 0 && has_many(cell));
        Swaps {
            problem,
            cells: cells.collect(),
            starts,
            nodes,
            n_choices,
            n_cliques: cliques.len(),
        }
    }

    /// Proposes one swap in each cell, in every lane: reversible moves under the law of the target.
    pub(super) fn sweep(
        &self,
        order: Order,
        target: Target<'_>,
        states: &mut [States],
        rows: &mut [Counts],
        uniforms: &mut impl UniformLanes,
    ) {
        let n = self.cells.len();
        for step in 0..n {
            let cell = self.cells[if order == Order::Forward { step } else { n - 1 - step }];
            self.propose(cell, target, &mut states[self.states_of(cell)], rows, uniforms);
        }
    }

    fn propose(
        &self,
        cell: u32,
        target: Target<'_>,
        states: &mut [States],
        rows: &mut [Counts],
        uniforms: &mut impl UniformLanes,
    ) {
        let swap = self.draw(states, uniforms);
        let excess = swap.excess(states);
        let ln_ratio = self.shift(&swap, cell, excess, target, rows);
        let dart = uniforms.next();
        let accepted = std::array::from_fn(|lane| dart[lane].ln() < ln_ratio[lane]);
        self.put_back(&swap, cell, excess, accepted, rows);
        swap.exchange(states, accepted);
    }

    /// Takes the joint values of a token of the cell, and another value of one node: as likely as the
    /// way back, as the values change places.
    fn draw(&self, states: &[States], uniforms: &mut impl UniformLanes) -> Swap {
        let n_tokens = (states.len() / self.n_cliques) as f64;
        let (tokens, choices) = (uniforms.next(), uniforms.next());
        let mut before = vec![[0; LANES]; self.n_cliques];
        for lane in 0..LANES {
            let token = (tokens[lane] * n_tokens) as usize;
            for (before, states) in before.iter_mut().zip(&states[token * self.n_cliques..]) {
                before[lane] = states[lane];
            }
        }
        let mut after = before.clone();
        for lane in 0..LANES {
            let mut choice = (choices[lane] * self.n_choices as f64) as usize;
            for node in &self.nodes {
                if choice >= node.size - 1 {
                    choice -= node.size - 1;
                    continue;
                }
                for &(clique, stride) in &node.strides {
                    let state = before[clique][lane] as usize;
                    let value = state / stride % node.size;
                    let other = (value + 1 + choice) % node.size;
                    after[clique][lane] = (state - value * stride + other * stride) as u32;
                }
                break;
            }
        }
        Swap { before, after }
    }

    fn states_of(&self, cell: u32) -> std::ops::Range<usize> {
        let cell = cell as usize;
        self.starts[cell] * self.n_cliques..self.starts[cell + 1] * self.n_cliques
    }

    /// Moves the counts of a cell, and returns ln of the ratio of the laws: factor by factor, so that
    /// it is right where several share a row.
    fn shift(
        &self,
        swap: &Swap,
        cell: u32,
        excess: Counts,
        target: Target<'_>,
        rows: &mut [Counts],
    ) -> Lanes {
        let mut ln_ratio = [0.0; LANES];
        for (clique, factor) in self.factors() {
            let base = self.problem.bases(cell)[factor.slot];
            let (mut x, mut y, mut n) = ([1.0; LANES], [1.0; LANES], [0.0; LANES]);
            for lane in 0..LANES {
                let (from, to) = swap.rows(clique, &factor.rows, base, lane);
                if from != to {
                    x[lane] = target.base[from] / target.unit + f64::from(rows[from][lane]);
                    y[lane] = target.base[to] / target.unit + f64::from(rows[to][lane]);
                    n[lane] = f64::from(excess[lane]);
                    rows[from][lane] -= excess[lane];
                    rows[to][lane] += excess[lane];
                }
            }
            let ln_factor = ln_shift(x, y, n);
            for lane in 0..LANES {
                ln_ratio[lane] += f64::from(factor.exponent) * ln_factor[lane];
            }
        }
        ln_ratio
    }

    /// Moves the counts back where the swap is refused.
    fn put_back(
        &self,
        swap: &Swap,
        cell: u32,
        excess: Counts,
        accepted: [bool; LANES],
        rows: &mut [Counts],
    ) {
        for (clique, factor) in self.factors() {
            let base = self.problem.bases(cell)[factor.slot];
            for lane in (0..LANES).filter(|&lane| !accepted[lane]) {
                let (from, to) = swap.rows(clique, &factor.rows, base, lane);
                rows[from][lane] += excess[lane];
                rows[to][lane] -= excess[lane];
            }
        }
    }

    /// All factors, with the clique of each.
    fn factors(&self) -> impl Iterator<Item = (usize, &Factor)> {
        let cliques = self.problem.plan.cliques.iter().enumerate();
        cliques.flat_map(|(index, clique)| clique.factors.iter().map(move |factor| (index, factor)))
    }
}

impl Swap {
    /// Rows that the tokens leave and go to.
    fn rows(&self, clique: usize, offsets: &[u32], base: u32, lane: usize) -> (usize, usize) {
        let row = |states: &[States]| (base + offsets[states[clique][lane] as usize]) as usize;
        (row(&self.before), row(&self.after))
    }

    /// Tokens at the values before, less those at the values after.
    fn excess(&self, states: &[States]) -> Counts {
        let mut excess = [0; LANES];
        for states in states.chunks_exact(self.before.len()) {
            let (mut is_before, mut is_after) = ([1; LANES], [1; LANES]);
            for (clique, states) in states.iter().enumerate() {
                for lane in 0..LANES {
                    is_before[lane] &= i32::from(states[lane] == self.before[clique][lane]);
                    is_after[lane] &= i32::from(states[lane] == self.after[clique][lane]);
                }
            }
            for lane in 0..LANES {
                excess[lane] += is_before[lane] - is_after[lane];
            }
        }
        excess
    }

    fn exchange(&self, states: &mut [States], accepted: [bool; LANES]) {
        for states in states.chunks_exact_mut(self.before.len()) {
            for lane in (0..LANES).filter(|&lane| accepted[lane]) {
                let at = |values: &[States]| {
                    states.iter().zip(values).all(|(state, value)| state[lane] == value[lane])
                };
                let to = match (at(&self.before), at(&self.after)) {
                    (true, _) => &self.after,
                    (_, true) => &self.before,
                    _ => continue,
                };
                states.iter_mut().zip(to).for_each(|(state, value)| state[lane] = value[lane]);
            }
        }
    }
}

/// ln Γ(x - n) Γ(y + n) / Γ(x) Γ(y).
#[multiversion::multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx2"))]
fn ln_shift(x: Lanes, y: Lanes, n: Lanes) -> Lanes {
    let (mut less, mut more) = (x, y);
    for lane in 0..LANES {
        less[lane] -= n[lane];
        more[lane] += n[lane];
    }
    let [less, more, x, y] = [less, more, x, y].map(lanes::ln_gamma);
    let mut result = [0.0; LANES];
    for lane in 0..LANES {
        result[lane] = (less[lane] - x[lane]) + (more[lane] - y[lane]);
    }
    result
}
