//! Tests of the core's public face, in one binary: one link, and its tests share the processors.

mod common;

mod allocation;
mod bursts;
mod calibration;
mod covariates;
mod enumeration;
mod exact;
mod hostile;
mod long_documents;
mod missing;
mod training;
