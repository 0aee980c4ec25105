//! The names of hidden values, told from the cells in which the tokens are.
//!
//! The values of a hidden node are exchangeable: the law of allocations has as many equal modes as
//! they have names. Whoever starts near one mode has named them, and the names that an allocation
//! may have are then weighed by how well it fits what was expected of each.

use std::cmp::Reverse;

use rand::RngExt as _;
use rand::seq::SliceRandom as _;

use crate::allocation::ascent::sum_product::SumProduct;
use crate::allocation::kernel::chains::Chains;
use crate::allocation::kernel::counts::States;
use crate::allocation::model::problem::Problem;
use crate::math::{LogSum, ln_factorial, pick};
use crate::rng::{Stream, UniformLanes};

/// Power of the probabilities of names: what comes along a path has forgotten a part of its start.
const SHARPNESS: f64 = 0.1;

/// The hidden nodes of a problem in which each can be renamed alone.
pub(crate) struct Labels {
    nodes: Vec<Node>,
}

/// A hidden node, as the states of the clique have it that sums it out.
struct Node {
    number: usize,
    clique: usize,
    stride: usize,
    size: usize,
}

/// ln of the weight of every name of the values of the hidden nodes: node after node, cell after
/// cell.
pub(crate) type LnShares = Vec<Vec<f64>>;

impl Labels {
    /// None where the values of a hidden node cannot be renamed alone.
    pub(crate) fn new(problem: &Problem) -> Option<Self> {
        let mut nodes = Vec::new();
        for (clique, states) in problem.plan.cliques.iter().enumerate() {
            for &(node, stride, size) in states.inner() {
                if !problem.renames(node) {
                    return None;
                }
                nodes.push(Node { number: node, clique, stride, size });
            }
        }
        Some(Labels { nodes })
    }

    /// ln of the number of ways to name all values.
    pub(crate) fn ln_n_names(&self) -> f64 {
        self.nodes.iter().map(|node| ln_factorial(node.size as u64)).sum()
    }

    /// What independent tokens do, `rows` being the weights of the rows, to the rows' powers.
    pub(crate) fn ln_shares(&self, problem: &Problem, rows: &[f64]) -> LnShares {
        let mut tokens = SumProduct::new(problem);
        let mut weights = rows.to_vec();
        for laid in &problem.margins {
            let power = laid.margin.exponent;
            weights[laid.rows()].iter_mut().for_each(|weight| *weight = weight.powi(power));
        }
        let new = |node: &Node| vec![0.0; problem.n_cells() * node.size];
        let mut all: LnShares = self.nodes.iter().map(new).collect();
        for cell in 0..problem.n_cells() {
            tokens.collect(cell as u32, &weights);
            tokens.believe();
            for (node, ln_shares) in self.nodes.iter().zip(&mut all) {
                let shares = &mut ln_shares[cell * node.size..][..node.size];
                for (state, belief) in tokens.beliefs(node.clique).iter().enumerate() {
                    shares[state / node.stride % node.size] += belief;
                }
                shares.iter_mut().for_each(|share| *share = SHARPNESS * share.ln());
            }
        }
        all
    }

    /// How the values of one chain fit those expected.
    pub(crate) fn fit(
        &self,
        chains: &Chains<'_, impl UniformLanes>,
        lane: usize,
        ln_shares: &LnShares,
    ) -> Fit {
        let of_node = |(node, ln_shares): (&Node, &Vec<f64>)| {
            let size = node.size;
            let (mut n_tokens, mut ln_weights) = (vec![0; size], vec![0.0; size * size]);
            for (cell, state, n) in chains.tallies(node.clique, lane) {
                let value = state as usize / node.stride % size;
                let ln_shares = &ln_shares[cell as usize * size..][..size];
                let ln_weights = &mut ln_weights[value * size..][..size];
                ln_weights.iter_mut().zip(ln_shares).for_each(|(sum, x)| *sum += f64::from(n) * x);
                n_tokens[value] += n;
            }
            (n_tokens, ln_weights)
        };
        Fit { nodes: self.nodes.iter().zip(ln_shares).map(of_node).collect() }
    }

    /// Gives the values in the states of a chain's tokens their new names.
    pub(crate) fn rename(
        &self,
        problem: &Problem,
        names: &[Vec<usize>],
        states: &mut [States],
        lane: usize,
    ) {
        let cliques = &problem.plan.cliques;
        for token in states.chunks_exact_mut(cliques.len()) {
            for (clique, states) in cliques.iter().zip(token) {
                let old = states[lane] as usize;
                for (node, names) in self.nodes.iter().zip(names) {
                    let digit = clique.digits().iter().find(|digit| digit.0 == node.number);
                    let Some(&(_, stride, size)) = digit else { continue };
                    let value = old / stride % size;
                    states[lane] += (names[value] * stride) as u32;
                    states[lane] -= (value * stride) as u32;
                }
            }
        }
    }
}

/// Of every hidden node, the tokens of its values, and ln of the weight of the tokens of each value
/// under each name.
pub(crate) struct Fit {
    nodes: Vec<(Vec<u32>, Vec<f64>)>,
}

impl Fit {
    /// Σ over values of ln of the mean over names: the same for all namings of an allocation.
    pub(crate) fn ln_fit(&self) -> f64 {
        let of_node = |(n_tokens, ln_weights): &(Vec<u32>, Vec<f64>)| -> f64 {
            let values = ln_weights.chunks_exact(n_tokens.len());
            values.map(|ln_names| ln_names.iter().copied().collect::<LogSum>().ln_mean()).sum()
        };
        self.nodes.iter().map(of_node).sum()
    }

    /// ln of the probability with which [`draw`](Fit::draw) leaves all names as they are.
    pub(crate) fn ln_unchanged(self, rng: &mut impl Stream) -> f64 {
        self.take(rng, |value, _, _| value).1
    }

    /// Draws names; and ln of their probability.
    pub(crate) fn draw(self, rng: &mut impl Stream) -> (Vec<Vec<usize>>, f64) {
        self.take(rng, |_, ln_names, dart| {
            let total: LogSum = ln_names.iter().copied().collect();
            let ln_total = total.ln_sum();
            pick(ln_names.iter().map(|ln_name| (ln_name - ln_total).exp()), dart).unwrap_or(0)
        })
    }

    /// Values choose in turn among the names that are left, those of most tokens first. Returns the
    /// names, and ln of the probability of all choices.
    fn take(
        self,
        rng: &mut impl Stream,
        choose: impl Fn(usize, &[f64], f64) -> usize,
    ) -> (Vec<Vec<usize>>, f64) {
        let mut ln_probability = 0.0;
        let mut names = Vec::new();
        for (n_tokens, mut ln_weights) in self.nodes {
            let size = n_tokens.len();
            // Which of equals comes first must not depend on their names.
            let mut order: Vec<usize> = (0..size).collect();
            order.shuffle(rng);
            order.sort_by_key(|&value| Reverse(n_tokens[value]));
            let mut taken = vec![0; size];
            for value in order {
                let ln_names = &ln_weights[value * size..][..size];
                let total: LogSum = ln_names.iter().copied().collect();
                taken[value] = choose(value, ln_names, rng.random());
                ln_probability += ln_names[taken[value]] - total.ln_mean() - (size as f64).ln();
                let rest = ln_weights.iter_mut().skip(taken[value]).step_by(size);
                rest.for_each(|ln_weight| *ln_weight = f64::NEG_INFINITY);
            }
            names.push(taken);
        }
        (names, ln_probability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::kernel::counts::{self, Rows, Target};
    use crate::allocation::model::network::{Network, Prior};
    use crate::counts::CountTensor;
    use crate::rng::{Key, LANES, Purpose};

    /// All orders of the numbers below `n`.
    fn orders(n: usize) -> Vec<Vec<usize>> {
        if n == 0 {
            return vec![vec![]];
        }
        let longer = |order: Vec<usize>| {
            (0..n).map(move |place| {
                let mut order = order.clone();
                order.insert(place, n - 1);
                order
            })
        };
        orders(n - 1).into_iter().flat_map(longer).collect()
    }

    /// 0 <- 2 -> 3 -> 1 with nodes 2 and 3 hidden: of 2 and 3 values, with 12 different names.
    #[test]
    fn probabilities_of_all_names_sum_to_one_and_the_fit_is_that_of_any() {
        let parents = vec![vec![2], vec![3], vec![], vec![2]];
        let prior = Prior { concentration: 1.0, tables: None };
        let network = Network::new(vec![3, 3, 2, 3], parents, vec![0, 1], &[], prior).unwrap();
        let cells = [0, 0, 0, 1, 1, 1, 2, 0, 2, 2];
        let data = CountTensor::new(vec![3, 3], &cells, &[3, 1, 2, 1, 2]).unwrap();
        let problem = Problem::new(&network, &data, None).unwrap();
        let labels = Labels::new(&problem).unwrap();
        assert!((labels.ln_n_names() - 12f64.ln()).abs() < 1e-14);
        let rows: Vec<f64> = (0..problem.n_rows).map(|row| 1.0 + (row * 7 % 5) as f64).collect();
        let ln_shares = labels.ln_shares(&problem, &rows);
        let rng = || Key::new(1, Purpose::Score).rng();
        let chains = Chains::uniform(&problem, &mut rng(), &()).unwrap();
        // Values of equal numbers of tokens would take turns that depend on the names.
        let differ = |lane: &usize| {
            let fit = labels.fit(&chains, *lane, &ln_shares);
            fit.nodes.iter().all(|(n, _)| (1..n.len()).all(|k| !n[..k].contains(&n[k])))
        };
        let lanes: Vec<usize> = (0..LANES).filter(differ).collect();
        assert!(lanes.len() > 1);
        for lane in lanes {
            let ln_fit = labels.fit(&chains, lane, &ln_shares).ln_fit();
            let mut total = 0.0;
            for first in orders(2) {
                for second in orders(3) {
                    let mut names = vec![first.clone(), second];
                    if labels.nodes[0].size == 3 {
                        names.swap(0, 1);
                    }
                    let mut states = chains.states();
                    labels.rename(&problem, &names, &mut states, lane);
                    let renamed = Chains::of_states(&problem, &states, &mut rng()).unwrap();
                    let fit = labels.fit(&renamed, lane, &ln_shares);
                    assert!((fit.ln_fit() - ln_fit).abs() < 1e-12);
                    total += fit.ln_unchanged(&mut rng()).exp();
                }
            }
            assert!((total - 1.0).abs() < 1e-12, "{total}");
        }
    }

    /// 0 <- 2 -> 1 with node 2 hidden: its own margin divides.
    #[test]
    fn expected_names_are_those_of_independent_tokens() {
        let parents = vec![vec![2], vec![2], vec![]];
        let prior = Prior { concentration: 1.0, tables: None };
        let network = Network::new(vec![3, 3, 3], parents, vec![0, 1], &[], prior).unwrap();
        let data = CountTensor::new(vec![3, 3], &[0, 0, 0, 1, 1, 1, 2, 2], &[3, 1, 2, 2]).unwrap();
        let problem = Problem::new(&network, &data, None).unwrap();
        assert!(problem.margins.iter().any(|laid| laid.margin.exponent < 0));
        let rows: Vec<f64> = (0..problem.n_rows).map(|row| 1.0 + (row * 7 % 5) as f64).collect();
        let ln_shares = &Labels::new(&problem).unwrap().ln_shares(&problem, &rows)[0];
        let mut counts = vec![[0; LANES]; problem.n_rows];
        let mut sums = [[0.0; LANES]; 3];
        for cell in 0..problem.n_cells() as u32 {
            let target = Target { base: &rows, unit: 0.0 };
            let token = Rows { counts: &mut counts, bases: problem.bases(cell), target };
            let total = counts::weigh(&problem.plan, &token, &mut sums)[0];
            let mut before = 0.0;
            for (sum, ln_share) in sums.iter().zip(&ln_shares[cell as usize * 3..]) {
                let expected = (sum[0] - before) / total;
                assert!(((ln_share / SHARPNESS).exp() - expected).abs() < 1e-12);
                before = sum[0];
            }
        }
    }

    #[test]
    fn names_are_drawn_with_their_probabilities() {
        const N: u32 = 20_000;
        let fit = || Fit { nodes: vec![(vec![5, 1], vec![0.5f64.ln(), 1.5f64.ln(), 0.0, 0.0])] };
        let mut rng = Key::new(2, Purpose::Score).rng();
        let mut n_changed = 0;
        for _ in 0..N {
            let (names, ln_probability) = fit().draw(&mut rng);
            let changed = names[0] == [1, 0];
            assert!((ln_probability.exp() - if changed { 0.75 } else { 0.25 }).abs() < 1e-12);
            n_changed += u32::from(changed);
        }
        let error = (0.75f64 * 0.25 / f64::from(N)).sqrt();
        assert!((f64::from(n_changed) / f64::from(N) - 0.75).abs() < 4.0 * error);
    }
}
