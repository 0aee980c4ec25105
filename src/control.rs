//! Progress and stopping, as one trait that composes.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

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

    /// Ends work that is to stop.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the work should end.
    fn check_stop(&self) -> Result<()> {
        if self.stopped() { Err(Error::Stopped) } else { Ok(()) }
    }
}

/// Neither watches nor stops.
impl Observer for () {}

impl<O: Observer + ?Sized> Observer for &O {
    fn advance(&self, units: u64) {
        (**self).advance(units);
    }

    fn stopped(&self) -> bool {
        (**self).stopped()
    }
}

/// The result of one unit of work; `None` where the observer has stopped it.
///
/// # Errors
/// All others.
pub fn unless_stopped<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(Error::Stopped) => Ok(None),
        other => other.map(Some),
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
