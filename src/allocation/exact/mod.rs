//! Sums over all allocations, where they can be enumerated.

pub(crate) mod enumeration;
mod joint;
