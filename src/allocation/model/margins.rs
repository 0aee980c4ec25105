//! The margins of a network over the cells of a tensor, and where their rows are.

use std::collections::HashMap;

use super::network::Margin;
use super::patterns::Patterns;
use super::plan::{MAX_STATES, SlotRows};
use crate::counts::{CountTensor, UNKNOWN};
use crate::error::{Error, Result};
use crate::math::ln_rising;

/// Rows that all margins may have in all.
const MAX_ROWS: usize = 1 << 31;

/// Margins that have rows, and hidden nodes that are summed out together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MarginForm {
    pub(crate) margins: Margins,
    /// Whether margins of visible nodes alone have rows, too.
    pub(crate) all_rows: bool,
    /// Whether slots of one margin are factors apart.
    pub(crate) slots_apart: bool,
    /// Joint states that the cliques of a token may have in all.
    pub(crate) most_states: f64,
}

impl MarginForm {
    /// The distribution of allocations: margins of visible nodes are constants, and a token may add
    /// to a row of a tied table twice.
    pub(crate) const LAW: MarginForm = MarginForm {
        margins: Margins::Law,
        all_rows: false,
        slots_apart: false,
        most_states: MAX_STATES,
    };

    /// Every family and its parents have rows: the counts of all tables.
    pub(crate) const WHOLE: MarginForm =
        MarginForm { margins: Margins::Whole, all_rows: true, ..MarginForm::LAW };
}

/// Margins of a network.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Margins {
    /// Margins of the distribution: what is in numerator and denominator is cancelled.
    Law,
    /// All families and parents.
    Whole,
    /// Families alone, what products of conditional probabilities read.
    Families,
}

/// Cells that tokens may fall in: those of the data that are not zero, and coordinates of cells
/// that were not observed, one after the other.
pub(crate) struct Cells<'a> {
    pub(crate) data: &'a CountTensor,
    pub(crate) missing: &'a [u32],
}

impl Cells<'_> {
    pub(super) fn all(&self) -> impl Iterator<Item = &[u32]> {
        let n_axes = self.data.shape().len();
        self.data.cells().map(|(cell, _)| cell).chain(self.missing.chunks_exact(n_axes))
    }
}

/// A margin and its rows.
#[derive(Debug, Clone)]
pub(crate) struct MarginLayout {
    pub(crate) margin: Margin,
    /// Position in a slot of each dimension, those of blocks first.
    pub(super) dimensions: Vec<usize>,
    n_outer: usize,
    /// First row.
    pub(crate) start: usize,
    /// Rows of a block.
    pub(crate) block: usize,
    /// Number of each block, by the values of its visible dimensions.
    blocks: HashMap<Vec<u32>, usize>,
}

impl MarginLayout {
    /// Rows of the margin.
    pub(crate) fn rows(&self) -> std::ops::Range<usize> {
        self.start..self.start + self.block * self.blocks.len()
    }

    /// Size of a dimension, in the order of rows.
    fn size(&self, rank: usize) -> usize {
        self.margin.shape[self.dimensions[rank]]
    }

    /// Stride of a dimension within a block.
    pub(super) fn stride(&self, rank: usize) -> usize {
        (rank + 1..self.dimensions.len()).map(|rank| self.size(rank)).product()
    }

    /// Values of the rows in the whole margin, flat; 0 where it has no row.
    pub(crate) fn whole(&self, rows: &[f64]) -> Vec<f64> {
        let mut whole = vec![0.0; self.margin.shape.iter().product()];
        self.cells().into_iter().zip(rows).for_each(|(cell, value)| whole[cell] += value);
        whole
    }

    /// Position of every row in the whole margin, with axes in the order of its shape.
    pub(crate) fn cells(&self) -> Vec<usize> {
        let shape = &self.margin.shape;
        let mut cells = vec![0; self.block * self.blocks.len()];
        for (outer, &number) in &self.blocks {
            for inner in 0..self.block {
                let mut values = vec![0; shape.len()];
                for (rank, &dimension) in self.dimensions.iter().enumerate() {
                    values[dimension] = match outer.get(rank) {
                        Some(&value) => value as usize,
                        None => inner / self.stride(rank) % self.size(rank),
                    };
                }
                cells[number * self.block + inner] =
                    values.iter().zip(shape).fold(0, |cell, (value, size)| cell * size + value);
            }
        }
        cells
    }
}

/// Reads the values that cells show of the nodes of a margin.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) axes: &'a [usize],
    pub(super) patterns: &'a Patterns,
}

impl Reader<'_> {
    /// Value of a node in a cell that shows it.
    fn value(&self, node: usize, cell: &[u32]) -> Option<u32> {
        let axis = self.axes.iter().position(|&other| other == node)?;
        (cell[axis] != UNKNOWN).then_some(cell[axis])
    }

    /// Slots of a margin that count tokens of a pattern.
    fn active<'m>(
        &self,
        margin: &'m Margin,
        pattern: usize,
    ) -> impl Iterator<Item = &'m Vec<usize>> {
        let slots = margin.slots.iter().zip(&margin.owners);
        let patterns = self.patterns;
        slots.filter(move |(_, owner)| patterns.is_active(pattern, **owner)).map(|(slot, _)| slot)
    }

    /// Finds the blocks of a margin that the data reach.
    pub(super) fn lay(
        &self,
        margin: &Margin,
        cells: &Cells<'_>,
        start: usize,
    ) -> Result<MarginLayout> {
        let always_seen = |&dimension: &usize| {
            let mut slots = margin.slots.iter().zip(&margin.owners);
            slots.all(|(slot, &owner)| self.patterns.is_seen(owner, slot[dimension]))
        };
        let (mut dimensions, inner): (Vec<usize>, Vec<usize>) =
            (0..margin.shape.len()).partition(always_seen);
        let n_outer = dimensions.len();
        // A product of sizes does not wrap in floating point.
        check_rows(inner.iter().map(|&dimension| margin.shape[dimension] as f64).product())?;
        let block = inner.iter().map(|&dimension| margin.shape[dimension]).product();
        dimensions.extend(inner);
        let mut laid = MarginLayout {
            margin: margin.clone(),
            dimensions,
            n_outer,
            start,
            block,
            blocks: HashMap::new(),
        };
        for (number, cell) in cells.all().enumerate() {
            for slot in self.active(margin, self.patterns.of(number)) {
                let next = laid.blocks.len();
                laid.blocks
                    .entry(self.outer(&laid.dimensions[..n_outer], slot, cell))
                    .or_insert(next);
            }
        }
        Ok(laid)
    }

    /// Values of a slot that name a block.
    fn outer(&self, dimensions: &[usize], slot: &[usize], cell: &[u32]) -> Vec<u32> {
        dimensions.iter().filter_map(|&dimension| self.value(slot[dimension], cell)).collect()
    }

    /// Row of each slot of a margin in a cell, summed nodes at zero; 0 for slots that do not count it.
    pub(super) fn bases(&self, laid: &MarginLayout, cell: &[u32], pattern: usize) -> Vec<u32> {
        let base = |(slot, &owner): (&Vec<usize>, &usize)| {
            if !self.patterns.is_active(pattern, owner) {
                return 0;
            }
            let outer = self.outer(&laid.dimensions[..laid.n_outer], slot, cell);
            let inner = (laid.n_outer..laid.dimensions.len()).map(|rank| {
                let value = self.value(slot[laid.dimensions[rank]], cell).unwrap_or(0);
                value as usize * laid.stride(rank)
            });
            (laid.start + laid.blocks[&outer] * laid.block + inner.sum::<usize>()) as u32
        };
        laid.margin.slots.iter().zip(&laid.margin.owners).map(base).collect()
    }

    /// Slots that count tokens of a pattern, and how the nodes that are summed over change their rows.
    pub(super) fn slots(&self, margins: &[MarginLayout], pattern: usize) -> Vec<SlotRows> {
        let (mut slots, mut number) = (Vec::new(), 0);
        for (index, laid) in margins.iter().enumerate() {
            for (slot, &owner) in laid.margin.slots.iter().zip(&laid.margin.owners) {
                if self.patterns.is_active(pattern, owner) {
                    let ranks = laid.n_outer..laid.dimensions.len();
                    let node = |rank: usize| (slot[laid.dimensions[rank]], laid.stride(rank));
                    let is_latent =
                        |&(node, _): &(usize, usize)| self.patterns.is_latent(pattern, node);
                    let summed = ranks.map(node).filter(is_latent).collect();
                    slots.push(SlotRows { slot: number, margin: index, summed });
                }
                number += 1;
            }
        }
        slots
    }

    /// ln of a margin of seen nodes: power of Π (α)_X over its cells.
    pub(super) fn ln_margin(&self, margin: &Margin, data: &CountTensor) -> f64 {
        let mut counts: HashMap<Vec<u32>, u64> = HashMap::new();
        for (number, (cell, count)) in data.cells().enumerate() {
            for slot in self.active(margin, self.patterns.of(number)) {
                let values = slot.iter().filter_map(|&node| self.value(node, cell)).collect();
                *counts.entry(values).or_default() += count;
            }
        }
        // The sum must not depend on the order of a hash map.
        let mut counts: Vec<u64> = counts.into_values().collect();
        counts.sort_unstable();
        let ln_cells = counts.iter().map(|&count| ln_rising(margin.alpha, count));
        f64::from(margin.exponent) * ln_cells.sum::<f64>()
    }
}

/// Refuses more rows than an index of 31 bits numbers.
pub(super) fn check_rows(n_rows: f64) -> Result<()> {
    if n_rows > MAX_ROWS as f64 {
        let bytes = size_of::<f64>() as f64 * n_rows;
        return Err(Error::Memory { name: "marginal counts", bytes });
    }
    Ok(())
}
