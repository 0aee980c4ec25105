//! Decompositions: tables and expected counts of the allocation, by ascent or by samples.

pub(crate) mod decomposition;
pub(crate) mod sum_product;
