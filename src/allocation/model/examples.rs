//! Problems that tests of several rooms look at.

use super::network::{Network, Prior};
use super::problem::Problem;
use crate::counts::CountTensor;

/// Parents of two visible nodes and a hidden one: a mixture.
pub(crate) const MIXTURE: &[&[usize]] = &[&[2], &[2], &[]];

/// Parents of two visible nodes and two hidden ones between them: a chain.
pub(crate) const CHAIN: &[&[usize]] = &[&[], &[3], &[0], &[2]];

/// Five cells of a 3 x 3 table.
pub(crate) const FIVE_CELLS: [i64; 10] = [0, 0, 0, 1, 1, 1, 2, 0, 2, 2];

/// Counts of cells of a table of the first two nodes of a network.
pub(crate) fn table_under(
    (sizes, parents): (&[usize], &[&[usize]]),
    ties: &[Vec<usize>],
    concentration: f64,
    (cells, counts): (&[i64], &[i64]),
) -> Problem {
    let parents = parents.iter().map(|parents| parents.to_vec()).collect();
    let prior = Prior { concentration, tables: None };
    let network = Network::new(sizes.to_vec(), parents, vec![0, 1], ties, prior).unwrap();
    let data = CountTensor::new(sizes[..2].to_vec(), cells, counts).unwrap();
    Problem::new(&network, &data, None).unwrap()
}
