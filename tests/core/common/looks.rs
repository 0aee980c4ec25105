//! An observer that counts how often work looks whether to stop.

use std::sync::atomic::{AtomicUsize, Ordering};

use polyabayes::Observer;

/// Number of looks so far, and of those before the wish to stop.
pub(crate) struct Looks(AtomicUsize, usize);

impl Looks {
    pub(crate) fn stopping_after(n_looks: usize) -> Self {
        Looks(AtomicUsize::new(0), n_looks)
    }

    pub(crate) fn count(self) -> usize {
        self.0.into_inner()
    }
}

impl Observer for Looks {
    fn stopped(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) >= self.1
    }
}
