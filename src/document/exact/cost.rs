/// Time and memory of an exact algorithm for one document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Estimated multiply-adds.
    pub operations: f64,
    /// Estimated memory in bytes.
    pub bytes: f64,
}
