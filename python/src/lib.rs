//! The Python binding of polyabayes. It converts and nothing else: the mathematics is in the core
//! crate, the user's interface in the Python package.

mod convert;
mod detach;
mod errors;
mod scoring;
mod training;

use pyo3::prelude::*;

/// The compiled core of polyabayes.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::convert::{Documents, Model};
    #[pymodule_export]
    use super::scoring::{score, transform};
    #[pymodule_export]
    use super::training::{fit_lda, fit_pfa};
}
