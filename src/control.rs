//! Progress and stopping, as one trait that composes.

use std::sync::atomic::{AtomicBool, Ordering};

/// Watches long work and may ask it to stop.
///
/// Work reports units it has finished (documents scored, sweeps done) and polls [`stopped`]
/// often enough to end within a fraction of a second.
///
/// [`stopped`]: Observer::stopped
pub trait Observer: Sync {
    /// `units` more units of work are done.
    fn advance(&self, units: u64) {
        let _ = units;
    }

    /// Whether the work should end as soon as it can.
    fn stopped(&self) -> bool {
        false
    }
}

/// Neither watches nor stops.
impl Observer for () {}

impl<A: Observer, B: Observer> Observer for (A, B) {
    fn advance(&self, units: u64) {
        self.0.advance(units);
        self.1.advance(units);
    }

    fn stopped(&self) -> bool {
        self.0.stopped() || self.1.stopped()
    }
}

impl<O: Observer + ?Sized> Observer for &O {
    fn advance(&self, units: u64) {
        (**self).advance(units);
    }

    fn stopped(&self) -> bool {
        (**self).stopped()
    }
}

/// A flag that any thread may raise to stop the work.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Asks the work to stop.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Observer for Stop {
    fn stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
