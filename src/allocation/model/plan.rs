//! Variable elimination: in which order, and over which joint states, hidden nodes are summed out.

use std::cmp::Reverse;

use super::network::{Margin, Network};
use crate::error::{Error, Result};
use crate::memory::check_bytes;
use crate::rng::Lanes;

/// Joint states that the cliques of a token may have in all.
pub(crate) const MAX_STATES: f64 = 1e8;

/// Bytes of a pair of a slot and a joint state: the row, 4, and the place in memory of its counts
/// of all particles, 32.
const PAIR_BYTES: f64 = 36.0;

/// A factor of a clique: one slot of a margin.
#[derive(Debug, Clone)]
pub(crate) struct Factor {
    /// Index among all slots of the problem.
    pub(crate) slot: usize,
    /// Power of the factor.
    pub(crate) exponent: i32,
    /// Whether other slots of its margin are factors too.
    pub(crate) tied: bool,
    /// Row, relative to that of the visible values, of every joint state.
    pub(crate) rows: Vec<u32>,
    /// Whether all states share one row, on which no draw of a state depends.
    pub(crate) is_constant: bool,
    /// Factors of the same clique that are earlier slots of the same margin: a token that has
    /// already added to a cell through them finds it there.
    pub(crate) earlier: Vec<usize>,
}

/// Hidden nodes that are summed out together, and the separator to the clique that takes over.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clique {
    /// Nodes summed out.
    pub(crate) nodes: Vec<usize>,
    /// Number of joint states of the nodes summed out.
    pub(crate) n_inner: usize,
    /// Number of joint states of separator and nodes, the separator varying slowest.
    pub(crate) n_states: usize,
    /// First of its states among those of all cliques.
    pub(crate) start: usize,
    /// First of its separator's states among those of all cliques.
    pub(crate) first_separator: usize,
    /// Factors, those of positive power first.
    pub(crate) factors: Vec<Factor>,
    /// Number of factors of positive power.
    pub(crate) n_above: usize,
    /// Number of pairs of a factor and a state in the cliques before.
    pub(crate) n_before: usize,
    /// Cliques whose sums enter here, with the separator's state for each of the states here.
    pub(crate) children: Vec<(usize, Vec<u32>)>,
    /// Whether no two states share a row of counts, but those that all states share.
    pub(crate) is_apart: bool,
    /// Values of the clique's nodes that make up a state: (node, stride, size).
    pub(crate) digits: Vec<(usize, usize, usize)>,
    parent: Option<usize>,
}

impl Clique {
    /// Row of a factor in a state, given the first row of each slot.
    #[inline]
    pub(crate) fn row(&self, factor: usize, state: usize, bases: &[u32]) -> usize {
        let factor = &self.factors[factor];
        (bases[factor.slot] + factor.rows[state]) as usize
    }

    /// Earlier slots through which a token itself has added to the row.
    pub(crate) fn own_hits(&self, factor: usize, state: usize, bases: &[u32]) -> u32 {
        let row = self.row(factor, state, bases);
        let hit = |&&earlier: &&usize| self.row(earlier, state, bases) == row;
        self.factors[factor].earlier.iter().filter(hit).count() as u32
    }

    fn states_are_apart(&self) -> bool {
        let distinct = |rows: &[u32]| {
            let mut rows = rows.to_vec();
            rows.sort_unstable();
            rows.windows(2).all(|pair| pair[0] < pair[1])
        };
        let is_apart = |factor: &Factor| factor.is_constant || distinct(&factor.rows);
        self.factors.iter().all(|factor| !factor.tied && is_apart(factor))
    }

    fn n_pairs(&self) -> usize {
        self.factors.len() * self.n_states
    }

    /// Number of joint states of the separator.
    pub(crate) fn n_separators(&self) -> usize {
        self.n_states / self.n_inner
    }

    /// Number of a pair of a factor and a state among those of all cliques, factors varying
    /// fastest.
    #[inline]
    pub(crate) fn pair(&self, factor: usize, state: usize) -> usize {
        self.n_before + state * self.factors.len() + factor
    }

    /// Digits of the nodes summed out.
    pub(crate) fn inner(&self) -> &[(usize, usize, usize)] {
        &self.digits[..self.nodes.len()]
    }

    /// Value of a node in a joint state.
    pub(crate) fn value(&self, node: usize, state: usize) -> Option<usize> {
        let digit = self.digits.iter().find(|(other, ..)| *other == node);
        digit.map(|&(_, stride, size)| state / stride % size)
    }
}

/// Cliques in the order in which they are summed out.
#[derive(Debug, Clone)]
pub(crate) struct EliminationPlan {
    pub(crate) cliques: Vec<Clique>,
    /// Cliques that hand over to no other.
    pub(crate) roots: Vec<usize>,
    /// Joint states of all cliques.
    pub(crate) n_states: usize,
    /// Joint states of all separators.
    pub(crate) n_separators: usize,
    /// Pairs of a factor and a state, of all cliques.
    pub(crate) n_pairs: usize,
}

/// A slot of a margin, and what the nodes that are summed over add to its row.
pub(crate) struct SlotRows {
    /// Index among all slots of the problem.
    pub(crate) slot: usize,
    pub(crate) margin: usize,
    /// Nodes and their strides.
    pub(crate) summed: Vec<(usize, usize)>,
}

impl EliminationPlan {
    /// The only clique, if none but all of its states share a row of counts.
    pub(crate) fn mixture(&self) -> Option<&Clique> {
        let [clique] = &self.cliques[..] else { return None };
        clique.is_apart.then_some(clique)
    }

    /// Plans the elimination of `summed` nodes: those that an `order` of all hidden nodes does not
    /// name, then in this order, or in that of least states. Slots of one margin may be in cliques
    /// apart where the weight of a token is a product of weights of rows. Cliques of more than
    /// `most_states` in all are refused.
    pub(crate) fn new(
        network: &Network,
        margins: &[Margin],
        slots: &[SlotRows],
        summed: &[usize],
        order: Option<&[usize]>,
        (slots_apart, most_states): (bool, f64),
    ) -> Result<Self> {
        let sizes = network.sizes();
        let hidden: Vec<usize> =
            (0..sizes.len()).filter(|node| !network.axes().contains(node)).collect();
        let nodes_of = |slots: &mut dyn Iterator<Item = &SlotRows>| {
            sorted(slots.flat_map(|slot| slot.summed.iter().map(|&(node, _)| node)).collect())
        };
        let scope = |slot: &SlotRows| {
            if slots_apart {
                return nodes_of(&mut std::iter::once(slot));
            }
            // Slots of one margin do not factorise where a token may hit a cell twice.
            nodes_of(&mut slots.iter().filter(|other| other.margin == slot.margin))
        };
        let scopes: Vec<Vec<usize>> = slots.iter().map(scope).collect();
        let order = match order {
            Some(order) if sorted(order.to_vec()) == hidden => {
                let first = summed.iter().filter(|node| !order.contains(node));
                first.chain(order.iter().filter(|node| summed.contains(node))).copied().collect()
            }
            Some(order) => {
                let node = order.first().copied().unwrap_or(0);
                let problem = "opens an elimination order that is not one of all hidden nodes";
                return Err(Error::Graph { node, problem });
            }
            None => least_states(summed, &scopes, sizes),
        };
        let mut plan = EliminationPlan {
            cliques: cliques(&order, &scopes, sizes, most_states)?,
            roots: vec![],
            n_states: 0,
            n_separators: 0,
            n_pairs: 0,
        };
        plan.assign(margins, slots, &scopes);
        plan.connect();
        Ok(plan)
    }

    /// The plan that sums all hidden nodes out together, if they have at most `most` joint states.
    pub(crate) fn joined(&self, most: usize) -> Option<EliminationPlan> {
        let (mut digits, mut stride) = (Vec::new(), 1_usize);
        for &(node, _, size) in self.cliques.iter().flat_map(Clique::inner) {
            digits.push((node, stride, size));
            stride = stride.checked_mul(size).filter(|&n| n <= most)?;
        }
        let mut clique = Clique {
            nodes: digits.iter().map(|&(node, ..)| node).collect(),
            n_inner: stride,
            n_states: stride,
            n_above: self.cliques.iter().map(|part| part.n_above).sum(),
            digits,
            ..Clique::default()
        };
        let all = self.cliques.iter().flat_map(|part| part.factors.iter().map(move |f| (part, f)));
        let (above, below): (Vec<_>, Vec<_>) = all.partition(|(_, factor)| factor.exponent > 0);
        // Slots of one margin stay in their order.
        let slots: Vec<usize> = above.iter().chain(&below).map(|(_, factor)| factor.slot).collect();
        for &(part, factor) in above.iter().chain(&below) {
            let state_of = |state: usize| {
                let digit = |&(node, stride, _): &(usize, usize, usize)| {
                    clique.value(node, state).unwrap_or(0) * stride
                };
                part.digits.iter().map(digit).sum::<usize>()
            };
            let rows = (0..clique.n_states).map(|state| factor.rows[state_of(state)]).collect();
            let place = |&earlier: &usize| {
                slots.iter().position(|&slot| slot == part.factors[earlier].slot)
            };
            let earlier = factor.earlier.iter().filter_map(place).collect();
            clique.factors.push(Factor { rows, earlier, ..factor.clone() });
        }
        clique.is_apart = clique.states_are_apart();
        let (n_states, n_pairs) = (clique.n_states, clique.n_pairs());
        let (cliques, roots) = (vec![clique], vec![0]);
        Some(EliminationPlan { cliques, roots, n_states, n_separators: 1, n_pairs })
    }

    /// The clique that takes a clique's sums over, with the separator's state for each of its states.
    #[inline]
    pub(crate) fn above(&self, index: usize) -> Option<(usize, &[u32])> {
        self.cliques.iter().enumerate().skip(index + 1).find_map(|(above, clique)| {
            let link = clique.children.iter().find(|(child, _)| *child == index);
            link.map(|(_, separators)| (above, separators.as_slice()))
        })
    }

    /// Gives every slot to the first clique that holds the scope of its margin.
    fn assign(&mut self, margins: &[Margin], slots: &[SlotRows], scopes: &[Vec<usize>]) {
        let power = |slot: &SlotRows| margins[slot.margin].exponent;
        let (above, below): (Vec<_>, Vec<_>) =
            slots.iter().enumerate().partition(|(_, slot)| power(slot) > 0);
        for (index, slot) in above.into_iter().chain(below) {
            let holds = |clique: &&mut Clique| {
                scopes[index].iter().all(|&node| clique.value(node, 0).is_some())
            };
            // Every scope is complete when the first of its nodes is summed out.
            let Some(clique) = self.cliques.iter_mut().find(holds) else { continue };
            let row = |state: usize| -> u32 {
                let offset = |&(node, stride): &(usize, usize)| {
                    clique.value(node, state).map_or(0, |value| value * stride)
                };
                slot.summed.iter().map(offset).sum::<usize>() as u32
            };
            let rows: Vec<u32> = (0..clique.n_states).map(row).collect();
            let is_constant = rows.iter().all(|&row| row == rows[0]);
            let of_margin = |factor: &Factor| {
                slots.iter().any(|other| other.slot == factor.slot && other.margin == slot.margin)
            };
            let earlier =
                (0..clique.factors.len()).filter(|&f| of_margin(&clique.factors[f])).collect();
            let exponent = power(slot);
            clique.n_above += usize::from(exponent > 0);
            let tied = margins[slot.margin].slots.len() > 1;
            let slot = slot.slot;
            clique.factors.push(Factor { slot, exponent, tied, rows, is_constant, earlier });
        }
    }

    fn connect(&mut self) {
        for index in 0..self.cliques.len() {
            self.cliques[index].start = self.n_states;
            self.cliques[index].first_separator = self.n_separators;
            self.cliques[index].n_before = self.n_pairs;
            self.n_states += self.cliques[index].n_states;
            self.n_separators += self.cliques[index].n_separators();
            self.n_pairs += self.cliques[index].n_pairs();
            self.cliques[index].is_apart = self.cliques[index].states_are_apart();
            let Some(parent) = self.cliques[index].parent else {
                self.roots.push(index);
                continue;
            };
            let (child, above) = (&self.cliques[index], &self.cliques[parent]);
            let separator: Vec<_> =
                child.digits.iter().filter(|(node, ..)| !child.nodes.contains(node)).collect();
            let states = (0..above.n_states).map(|state| {
                let part = |&&(node, stride, _): &&(usize, usize, usize)| {
                    above.value(node, state).unwrap_or(0) * (stride / child.n_inner)
                };
                separator.iter().map(part).sum::<usize>() as u32
            });
            let states = states.collect();
            self.cliques[parent].children.push((index, states));
        }
    }
}

fn sorted(mut nodes: Vec<usize>) -> Vec<usize> {
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Nodes that share a scope with one of `nodes` when the others before them are gone.
fn neighbours(node: usize, scopes: &[Vec<usize>]) -> Vec<usize> {
    sorted(scopes.iter().filter(|scope| scope.contains(&node)).flatten().copied().collect())
}

/// Greedy order: next, the node whose elimination makes the smallest table; of equal ones the
/// last, as children come after their parents in most graphs.
fn least_states(hidden: &[usize], scopes: &[Vec<usize>], sizes: &[usize]) -> Vec<usize> {
    let (mut left, mut scopes) = (hidden.to_vec(), scopes.to_vec());
    let mut order = Vec::new();
    while !left.is_empty() {
        let states = |&node: &usize| -> f64 {
            neighbours(node, &scopes).iter().map(|&node| sizes[node] as f64).product()
        };
        let Some(&next) = left
            .iter()
            .min_by(|a, b| states(a).total_cmp(&states(b)).then(Reverse(a).cmp(&Reverse(b))))
        else {
            break;
        };
        let mut message = neighbours(next, &scopes);
        message.retain(|&node| node != next);
        scopes.retain(|scope| !scope.contains(&next));
        scopes.push(message);
        left.retain(|&node| node != next);
        order.push(next);
    }
    order
}

/// Cliques of an elimination order, those that another contains merged into it.
fn cliques(
    order: &[usize],
    given: &[Vec<usize>],
    sizes: &[usize],
    most_states: f64,
) -> Result<Vec<Clique>> {
    let scopes_without_nodes = given.iter().any(Vec::is_empty);
    let mut scopes = given.to_vec();
    // (nodes summed out, separator)
    let mut parts: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
    for &node in order {
        let mut separator = neighbours(node, &scopes);
        separator.retain(|&other| other != node);
        scopes.retain(|scope| !scope.contains(&node));
        scopes.push(separator.clone());
        // A clique whose separator is all that is left of it takes the node in.
        let whole = sorted(std::iter::once(node).chain(separator.iter().copied()).collect());
        match parts.iter_mut().find(|(_, above)| *above == whole) {
            Some((nodes, above)) => {
                nodes.push(node);
                *above = separator;
            }
            None => parts.push((vec![node], separator)),
        }
    }
    // A margin that depends on no hidden node is a factor of every token, of any of its cliques.
    if scopes_without_nodes && parts.is_empty() {
        parts.push((vec![], vec![]));
    }
    // A clique comes before the one that sums out the first node of its separator.
    let position = |node: &usize| order.iter().position(|other| other == node);
    parts.sort_by_key(|(nodes, _)| nodes.iter().map(position).max());
    let takers: Vec<Option<usize>> = (0..parts.len())
        .map(|index| {
            let first = parts[index].1.iter().min_by_key(|node| position(node))?;
            parts.iter().position(|(nodes, _)| nodes.contains(first))
        })
        .collect();
    let of_part = |(nodes, above): &(Vec<usize>, Vec<usize>)| n_states(nodes, above, sizes);
    let whole: f64 = parts.iter().map(of_part).sum();
    let holds = |scope: &Vec<usize>, (nodes, above): &&(Vec<usize>, Vec<usize>)| {
        scope.iter().all(|node| nodes.contains(node) || above.contains(node))
    };
    let of_slot =
        |scope| parts.iter().find(|part| holds(scope, part)).map_or(0.0, of_part) * PAIR_BYTES;
    let name = "joint states of the hidden nodes";
    let bytes = size_of::<Lanes>() as f64 * whole + given.iter().map(of_slot).sum::<f64>();
    if whole > most_states {
        return Err(Error::Memory { name, bytes });
    }
    check_bytes(name, bytes)?;
    let clique = |((nodes, separator), parent): ((Vec<usize>, Vec<usize>), Option<usize>)| {
        let (mut digits, mut stride) = (Vec::new(), 1);
        for &node in nodes.iter().chain(&separator) {
            digits.push((node, stride, sizes[node]));
            stride *= sizes[node];
        }
        let n_inner = nodes.iter().map(|&node| sizes[node]).product();
        Clique { nodes, n_inner, n_states: stride, digits, parent, ..Clique::default() }
    };
    Ok(parts.into_iter().zip(takers).map(clique).collect())
}

fn n_states(nodes: &[usize], separator: &[usize], sizes: &[usize]) -> f64 {
    nodes.iter().chain(separator).map(|&node| sizes[node] as f64).product()
}
