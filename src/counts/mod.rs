//! Count data, validated once.

mod csr;
mod tensor;

pub use csr::{CountMatrix, Distinct, Document};
pub use tensor::{CountTensor, UNKNOWN};
