//! The model and its data: the network, its margins, and how they are laid out for samplers.

#[cfg(test)]
pub(crate) mod examples;
pub(crate) mod margins;
pub(crate) mod network;
pub(crate) mod patterns;
pub(crate) mod plan;
pub(crate) mod problem;
