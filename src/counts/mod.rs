//! Count data, validated once.

mod csr;

pub use csr::{CountMatrix, Distinct, Document};
