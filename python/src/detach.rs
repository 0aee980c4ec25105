//! The one door through which Python calls the core for long work.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use polyabayes::{Observer, Result};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors;

/// Time between two looks at Python's signals.
const SLICE: Duration = Duration::from_millis(100);

/// Counts finished work and carries the wish to stop.
#[derive(Default)]
pub(crate) struct Watch {
    stopped: AtomicBool,
    done: AtomicU64,
}

impl Observer for Watch {
    fn advance(&self, units: u64) {
        self.done.fetch_add(units, Ordering::Relaxed);
    }

    fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// What work came to, and the exception that cut it short, if any.
pub(crate) struct Outcome<T> {
    /// The result, partial where there is an interruption.
    pub(crate) value: T,
    /// `KeyboardInterrupt`, or whatever a signal handler or the progress callback raised.
    pub(crate) interruption: Option<PyErr>,
}

/// Runs `work` on `n_jobs` threads without the GIL, watching for signals and calling `progress`
/// with the units done.
///
/// An exception from a signal handler or from `progress` stops the work and is handed back beside
/// what the work returns.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    n_jobs: usize,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Watch) -> Result<T> + Send,
) -> PyResult<Outcome<T>> {
    let watch = Watch::default();
    let (value, interruption) = py.detach(|| {
        let (finished, waiting) = channel::<()>();
        std::thread::scope(|scope| {
            let watch = &watch;
            let worker = scope.spawn(move || {
                let _finished = finished;
                let pool = rayon::ThreadPoolBuilder::new().num_threads(n_jobs);
                pool.build().map(|pool| pool.install(|| work(watch)))
            });
            let mut interruption = None;
            while waiting.recv_timeout(SLICE) == Err(RecvTimeoutError::Timeout) {
                if interruption.is_none()
                    && let Err(error) = Python::attach(|py| look(py, watch, progress.as_ref()))
                {
                    watch.stopped.store(true, Ordering::Relaxed);
                    interruption = Some(error);
                }
            }
            (worker.join(), interruption)
        })
    });
    // A signal of the last slice, left alone, would be raised by the caller and lose the result.
    let interruption = interruption.or_else(|| py.check_signals().err());
    let value = value.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let value = value.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    match value {
        Ok(value) => {
            if let (None, Some(progress)) = (&interruption, &progress) {
                progress.call1(py, (watch.done.load(Ordering::Relaxed),))?;
            }
            Ok(Outcome { value, interruption })
        }
        Err(error) => Err(interruption.unwrap_or_else(|| errors::to_python(py, &error))),
    }
}

fn look(py: Python<'_>, watch: &Watch, progress: Option<&Py<PyAny>>) -> PyResult<()> {
    py.check_signals()?;
    if let Some(progress) = progress {
        progress.call1(py, (watch.done.load(Ordering::Relaxed),))?;
    }
    Ok(())
}
