//! An observer that counts how often work looks whether to stop.

use std::sync::atomic::{AtomicUsize, Ordering};

use polyabayes::Observer;

/// Number of looks so far.
#[derive(Default)]
pub(crate) struct Looks(pub(crate) AtomicUsize);

impl Observer for Looks {
    fn stopped(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        false
    }
}
