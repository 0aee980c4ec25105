//! The Python binding of polyabayes. It converts and nothing else: the mathematics is in the core
//! crate, the user's interface in the Python package.

// PyO3 hands arguments over by value, each by its name.
#![allow(clippy::needless_pass_by_value, clippy::too_many_arguments)]

mod allocation;
mod convert;
mod detach;
mod em;
mod errors;
mod parts;
mod regression;
mod scoring;
mod training;

use pyo3::prelude::*;

/// The compiled core of polyabayes. Its objects are frozen, and the work shares nothing: a
/// free-threaded interpreter needs no lock for it.
#[pymodule(gil_used = false)]
mod _core {
    use super::{Bound, PyModule, PyResult, errors};

    #[pymodule_export]
    use super::allocation::missing::IncompleteAllocation;
    #[pymodule_export]
    use super::allocation::model::Allocation;
    #[pymodule_export]
    use super::allocation::results::{
        AllocationCompletion, AllocationDecomposition, AllocationDraws, AllocationEstimate,
        AllocationTempering, is_doubtful,
    };
    #[pymodule_export]
    use super::allocation::run::{AllocationRun, run_allocation_task};
    #[pymodule_export]
    use super::convert::{Documents, Model};
    #[pymodule_export]
    use super::em::{EmResult, fit_em};
    #[pymodule_export]
    use super::parts::{
        PyFirstTopics, count_part, exposed_of_part, ln_urns_of_part, order_tokens, order_topics,
        sweep_part,
    };
    #[pymodule_export]
    use super::regression::ClassRegression;
    #[pymodule_export]
    use super::scoring::{
        Scores, bidirectional, check_completion, check_score, completion, estimators, score,
        transform,
    };
    #[pymodule_export]
    use super::training::Training;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        errors::keep_places_of_panics();
        polyabayes::simd::check().map_err(|error| errors::to_python(module.py(), &error))
    }
}
