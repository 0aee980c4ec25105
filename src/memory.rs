//! The memory of the machine, and arrays that would not fit.

use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use crate::error::{Error, Result};

/// Taken for the memory of a system that does not tell.
const UNKNOWN: u64 = 1 << 33;

/// Refuses an array that the machine could not hold.
pub(crate) fn check_bytes(name: &'static str, bytes: f64) -> Result<()> {
    if bytes <= available() { Ok(()) } else { Err(Error::Memory { name, bytes }) }
}

/// Bytes of memory that this process may use: those of the machine, or of its control group.
pub(crate) fn available() -> f64 {
    let memory = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(memory);
    let granted = system.cgroup_limits().map_or(u64::MAX, |limits| limits.total_memory);
    let installed = Some(system.total_memory()).filter(|&bytes| bytes > 0).unwrap_or(UNKNOWN);
    installed.min(granted) as f64
}
