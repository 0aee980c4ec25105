//! Counts over any number of axes, by their non-zero cells.

use crate::error::{Error, Result, check_length};

/// Coordinate of a cell on an axis that its tokens do not show; -1 where cells are given.
pub const UNKNOWN: u32 = u32::MAX;

/// Sparse tensor of counts: the coordinates of its cells, and a positive count for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountTensor {
    shape: Vec<usize>,
    /// Coordinates, cell after cell.
    coordinates: Vec<u32>,
    counts: Vec<u64>,
    total: u64,
}

impl CountTensor {
    /// Checks and takes over cells in strictly increasing lexicographic order; -1 is [`UNKNOWN`].
    ///
    /// # Errors
    /// No axes, an axis of size 0 or beyond 2^32, coordinates out of range or out of order,
    /// counts below 1, a total of 2^63 and more.
    pub fn new(shape: Vec<usize>, coordinates: &[i64], counts: &[i64]) -> Result<Self> {
        if shape.is_empty() || shape.contains(&0) {
            return Err(Error::Empty { name: "size of every axis, and the number of axes," });
        }
        let n_axes = shape.len();
        check_length("coordinates", coordinates.len(), counts.len() * n_axes)?;
        let mut total = 0u64;
        for (cell, (index, &count)) in coordinates.chunks_exact(n_axes).zip(counts).enumerate() {
            let bad = |axis: &usize| {
                !(-1..shape[*axis] as i64).contains(&index[*axis])
                    || index[*axis] >= i64::from(UNKNOWN)
            };
            if let Some(axis) = (0..n_axes).find(bad) {
                return Err(Error::Cell { cell, axis, problem: "is outside the axis" });
            }
            if cell > 0 && coordinates[(cell - 1) * n_axes..][..n_axes] >= *index {
                return Err(Error::Cell { cell, axis: 0, problem: "is not in increasing order" });
            }
            let sum = u64::try_from(count).ok().filter(|&n| n > 0).map(|n| total + n);
            let Some(sum) = sum.filter(|&sum| i64::try_from(sum).is_ok()) else {
                let problem = "has a count below 1, or the total passes 2^63";
                return Err(Error::Cell { cell, axis: 0, problem });
            };
            total = sum;
        }
        Ok(CountTensor {
            shape,
            coordinates: coordinates.iter().map(|&i| i as u32).collect(),
            counts: counts.iter().map(|&n| n as u64).collect(),
            total,
        })
    }

    /// Size of every axis.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Number of cells that are not zero.
    pub fn n_cells(&self) -> usize {
        self.counts.len()
    }

    /// Coordinates and count of every cell.
    pub fn cells(&self) -> impl Iterator<Item = (&[u32], u64)> {
        self.coordinates.chunks_exact(self.shape.len()).zip(self.counts.iter().copied())
    }

    /// Counts of the cells.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Sum of all counts.
    pub fn total(&self) -> u64 {
        self.total
    }
}
