//! Which nodes of a token are seen, summed over, or left out.

use std::collections::HashMap;

use super::network::Network;
use crate::counts::{CountTensor, UNKNOWN};

/// Tokens of the same unknown axes have one pattern. A node that is unknown, and all of whose
/// descendants are, sums to one and is left out; an unknown node above one that is seen is summed over
/// as hidden nodes are.
#[derive(Debug, Clone)]
pub(crate) struct Patterns {
    patterns: Vec<Pattern>,
    /// Pattern of every cell of the data; empty where there is but one.
    of_cell: Vec<u32>,
}

/// The part that every node plays for tokens of a pattern.
#[derive(Debug, Clone)]
struct Pattern {
    is_active: Vec<bool>,
    is_latent: Vec<bool>,
}

impl Pattern {
    fn new(network: &Network, is_unknown: &[bool]) -> Self {
        let (n_nodes, axes) = (network.sizes().len(), network.axes());
        let mut is_seen = vec![false; n_nodes];
        axes.iter().zip(is_unknown).for_each(|(&node, unknown)| is_seen[node] = !unknown);
        let is_axis = |node: &usize| axes.contains(node);
        let mut is_active = vec![true; n_nodes];
        for &node in network.order().iter().rev().filter(|&&node| !is_seen[node]) {
            let mut children = network.children(node).peekable();
            // A hidden leaf is kept: its table is asked for.
            let is_leaf = children.peek().is_none();
            is_active[node] =
                if is_leaf { !is_axis(&node) } else { children.any(|child| is_active[child]) };
        }
        let is_latent = (0..n_nodes).map(|node| is_active[node] && !is_seen[node]).collect();
        Pattern { is_active, is_latent }
    }
}

impl Patterns {
    pub(crate) fn new(network: &Network, data: &CountTensor) -> Self {
        let mut numbers: HashMap<Vec<bool>, u32> = HashMap::new();
        let mut patterns = Vec::new();
        let mut number = |is_unknown: Vec<bool>| {
            *numbers.entry(is_unknown).or_insert_with_key(|is_unknown| {
                patterns.push(Pattern::new(network, is_unknown));
                patterns.len() as u32 - 1
            })
        };
        let unknown = |(cell, _): (&[u32], u64)| cell.iter().map(|&x| x == UNKNOWN).collect();
        let mut of_cell: Vec<u32> = data.cells().map(|cell| number(unknown(cell))).collect();
        if of_cell.is_empty() {
            number(vec![false; network.axes().len()]);
        }
        if patterns.len() == 1 {
            of_cell.clear();
        }
        Patterns { patterns, of_cell }
    }

    pub(crate) fn len(&self) -> usize {
        self.patterns.len()
    }

    /// Pattern of a cell.
    pub(crate) fn of(&self, cell: usize) -> usize {
        self.of_cell.get(cell).map_or(0, |&pattern| pattern as usize)
    }

    /// Tokens of each pattern.
    pub(crate) fn totals(&self, counts: &[u64]) -> Vec<u64> {
        let mut totals = vec![0; self.len()];
        counts.iter().enumerate().for_each(|(cell, n)| totals[self.of(cell)] += n);
        totals
    }

    /// Whether the tables of a node count tokens of a pattern.
    pub(crate) fn is_active(&self, pattern: usize, node: usize) -> bool {
        self.patterns[pattern].is_active[node]
    }

    /// Whether tokens of a pattern are summed over a node.
    pub(crate) fn is_latent(&self, pattern: usize, node: usize) -> bool {
        self.patterns[pattern].is_latent[node]
    }

    /// Whether the tables of two nodes count the same tokens.
    pub(crate) fn are_alike(&self, one: usize, other: usize) -> bool {
        self.patterns.iter().all(|pattern| pattern.is_active[one] == pattern.is_active[other])
    }

    /// Whether a node is seen in all tokens that the table of `owner` counts.
    pub(crate) fn is_seen(&self, owner: usize, node: usize) -> bool {
        self.patterns.iter().all(|pattern| !pattern.is_active[owner] || !pattern.is_latent[node])
    }
}
