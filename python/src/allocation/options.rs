//! Methods and options as Python names them.

use polyabayes::allocation::{
    Ascent, EvidenceMethod, EvidenceSampler, EvidenceSettings, TokenOrder,
};
use polyabayes::math::Resampling;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Methods of the evidence, by name.
const METHODS: [(&str, EvidenceMethod); 4] = [
    ("auto", EvidenceMethod::Auto),
    ("exact", EvidenceMethod::Exact),
    ("smc", EvidenceMethod::Sample(EvidenceSampler::Smc)),
    ("tempered", EvidenceMethod::Sample(EvidenceSampler::Tempered)),
];

/// The name of a method of the evidence.
pub(super) fn method_name(method: EvidenceMethod) -> &'static str {
    METHODS.iter().find(|(_, other)| *other == method).map_or("", |(name, _)| name)
}

/// The ascent of a method.
pub(super) fn ascent(method: &str) -> PyResult<Ascent> {
    match method {
        "vb" => Ok(Ascent::Variational),
        "em" => Ok(Ascent::Em),
        "dual-em" => Ok(Ascent::DualEm),
        "icm" => Ok(Ascent::Icm),
        "ml" => Ok(Ascent::Likelihood),
        other => Err(PyValueError::new_err(format!("method {other:?}"))),
    }
}

/// Options of the evidence, `None` where they are left to the method: read from an object with these
/// attributes.
#[derive(FromPyObject)]
pub(crate) struct EvidenceOptions {
    method: String,
    n_particles: Option<usize>,
    n_samples: Option<usize>,
    n_replicates: Option<usize>,
    resampling: String,
    resample_below: f64,
    order: OrderOption,
    n_sweeps: Option<usize>,
    budget: Option<f64>,
    target_std_error: Option<f64>,
}

impl EvidenceOptions {
    pub(crate) fn to_core(&self) -> PyResult<EvidenceSettings> {
        let found = METHODS.iter().find(|(name, _)| *name == self.method);
        let Some(&(_, method)) = found else {
            return Err(PyValueError::new_err(format!("method {:?}", self.method)));
        };
        let resampling = match self.resampling.as_str() {
            "multinomial" => Resampling::Multinomial,
            "residual" => Resampling::Residual,
            "stratified" => Resampling::Stratified,
            "systematic" => Resampling::Systematic,
            other => return Err(PyValueError::new_err(format!("resampling {other:?}"))),
        };
        let order = match &self.order {
            OrderOption::Cells(cells) => TokenOrder::Given(cells.clone()),
            OrderOption::Name(name) if name == "random" => TokenOrder::Random,
            OrderOption::Name(name) if name == "sorted" => TokenOrder::Sorted,
            OrderOption::Name(other) => {
                return Err(PyValueError::new_err(format!("order {other:?}")));
            }
        };
        Ok(EvidenceSettings {
            method,
            n_particles: self.n_particles,
            n_samples: self.n_samples,
            n_replicates: self.n_replicates,
            resample_below: self.resample_below,
            resampling,
            order,
            n_sweeps: self.n_sweeps,
            budget: self.budget,
            target_std_error: self.target_std_error,
        })
    }
}

/// Order in which tokens are drawn: "random", "sorted", or cells by number.
#[derive(FromPyObject)]
enum OrderOption {
    Name(String),
    Cells(Vec<u32>),
}
