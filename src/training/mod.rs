//! Learning topic models by Gibbs sampling on the urn.
