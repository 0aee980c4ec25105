//! A network laid out for a tensor and for cells of it that were not observed.

use crate::allocation::ascent::decomposition::Tables;
use crate::allocation::memory::Load;
use crate::allocation::model::margins::{Cells, MarginForm};
use crate::allocation::model::network::Network;
use crate::allocation::model::problem::Problem;
use crate::counts::CountTensor;
use crate::error::{Error, Result, check_positive};

/// A network, the rate of its intensity, and a tensor of which some cells were not observed.
#[derive(Debug, Clone)]
pub struct Incomplete {
    pub(super) network: Network,
    pub(super) data: CountTensor,
    /// Coordinates of the cells that were not observed, one after the other.
    pub(super) missing: Vec<u32>,
    /// Order in which hidden nodes are summed out, if it was given.
    pub(super) order: Option<Vec<usize>>,
    pub(super) problem: Problem,
    pub(super) concentration: f64,
    pub(super) rate: f64,
    /// ln of the greatest probability of the observed cells, given their total, under any tables.
    pub(super) ln_greatest: f64,
}

impl Incomplete {
    /// Lays out a network for a tensor; `missing` has the coordinates of the cells that were not
    /// observed, one after the other, and hidden nodes are summed out in `order`.
    ///
    /// # Errors
    /// The errors of [`Problem::new`]; [`Error::Range`]; [`Error::SamplerMemory`]; a rate that is not
    /// positive; missing cells that are none, outside of the tensor, not in increasing order, or have
    /// a count.
    pub fn new(
        network: &Network,
        data: &CountTensor,
        missing: &[u32],
        rate: f64,
        order: Option<&[usize]>,
    ) -> Result<Self> {
        check_positive("rate", &[rate])?;
        check_missing(data, missing)?;
        let n_missing = missing.len() / data.shape().len();
        Load { n_missing, ..Load::default() }.check(1)?;
        let problem = Problem::lay_out(network, &Cells { data, missing }, order, MarginForm::LAW)?;
        problem.check_range()?;
        let share = |count: u64| count as f64 / data.total() as f64;
        let ln_cells = data.counts().iter().map(|&count| count as f64 * share(count).ln());
        let ln_greatest = problem.ln_arrangements + ln_cells.sum::<f64>();
        let concentration = network.prior().concentration;
        Ok(Incomplete {
            network: network.clone(),
            data: data.clone(),
            missing: missing.to_vec(),
            order: order.map(<[usize]>::to_vec),
            problem,
            concentration,
            rate,
            ln_greatest,
        })
    }

    /// The tables of the network over all cells that tokens may fall in.
    pub(super) fn tables(&self) -> Result<Tables> {
        let cells = Cells { data: &self.data, missing: &self.missing };
        Tables::new(&self.network, &cells, self.order.as_deref(), false)
    }

    /// Number of cells that were not observed.
    pub fn n_missing(&self) -> usize {
        self.problem.missing.len()
    }
}

/// Checks that missing cells lie inside of the tensor, in increasing order, and have no count.
fn check_missing(data: &CountTensor, missing: &[u32]) -> Result<()> {
    let n_axes = data.shape().len();
    if missing.is_empty() || !missing.len().is_multiple_of(n_axes) {
        let (found, expected) = (missing.len(), n_axes * missing.len().div_ceil(n_axes).max(1));
        return Err(Error::Length { name: "coordinates of missing cells", found, expected });
    }
    let mut observed = data.cells().map(|(cell, _)| cell).peekable();
    let mut before: Option<&[u32]> = None;
    for (number, cell) in missing.chunks_exact(n_axes).enumerate() {
        let refuse = |axis, problem| Err(Error::Cell { cell: number, axis, problem });
        if let Some(axis) = (0..n_axes).find(|&axis| cell[axis] as usize >= data.shape()[axis]) {
            return refuse(axis, "is missing outside the axis");
        }
        if before.replace(cell).is_some_and(|before| before >= cell) {
            return refuse(0, "is missing out of increasing order");
        }
        while observed.next_if(|&other| other < cell).is_some() {}
        if observed.peek() == Some(&cell) {
            return refuse(0, "is missing and has a count");
        }
    }
    Ok(())
}
