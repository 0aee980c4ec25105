//! Allocation models.

pub(crate) mod missing;
pub(crate) mod model;
mod options;
pub(crate) mod results;
pub(crate) mod run;
