//! The one door through which Python calls the core for long work.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use std::{mem, process};

use polyabayes::{Observer, Result};
use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use signal_hook::{SigId, consts::SIGINT, flag, low_level};

use crate::errors;

/// Time between two looks at Python's signals.
const SLICE: Duration = Duration::from_millis(100);

thread_local! {
    /// A pool of one thread that waits for the next call of this thread, as making threads takes as
    /// long as short work; and the process that it is in, as threads do not survive a fork. It stays on
    /// the processors that were allowed when it was made.
    static IDLE: Cell<Option<(u32, ThreadPool)>> = const { Cell::new(None) };
}

/// Counts finished work and carries the wish to stop.
#[derive(Default)]
pub(crate) struct Watch {
    stopped: Arc<AtomicBool>,
    done: AtomicU64,
}

impl Watch {
    /// The wish to stop, for whoever cannot wait for the end of the work.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stopped)
    }
}

impl Observer for Watch {
    fn advance(&self, units: u64) {
        self.done.fetch_add(units, Ordering::Relaxed);
    }

    fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// Result of work, and the exception that cut it short, if any. The signal behind that exception
/// is consumed, so that the exception is raised by whoever takes the outcome apart, or never.
#[must_use = "an interruption that is dropped is a Ctrl-C that is lost"]
pub(crate) struct Outcome<T> {
    value: T,
    interruption: Option<PyErr>,
}

impl<T> Outcome<T> {
    /// The result, if nothing interrupted the work.
    pub(crate) fn uninterrupted(self) -> PyResult<T> {
        self.interruption.map_or(Ok(self.value), Err)
    }

    /// The result, partial where there is an interruption, and that exception for Python to raise.
    pub(crate) fn into_parts(self, py: Python<'_>) -> (T, Option<Py<PyAny>>) {
        (self.value, self.interruption.map(|error| error.into_value(py).into_any()))
    }
}

/// Keywords that all calls of long work take behind their own.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Running {
    seed: u64,
    n_jobs: usize,
    #[pyo3(default)]
    progress: Option<Py<PyAny>>,
}

/// [`run`] by the keywords of a call, on `most` threads at most, with its seed.
pub(crate) fn call<T: Send>(
    py: Python<'_>,
    running: Option<Running>,
    most: usize,
    work: impl FnOnce(u64, &Watch) -> Result<T> + Send,
) -> PyResult<Outcome<T>> {
    let wanted = || PyTypeError::new_err("seed and n_jobs are wanted");
    let Running { seed, n_jobs, progress } = running.ok_or_else(wanted)?;
    run(py, n_jobs.min(most).max(1), progress, |watch| work(seed, watch))
}

/// Runs `work` on `n_jobs` threads without the GIL, watching for signals and calling `progress`
/// with the units done.
///
/// An exception from a signal handler or from `progress` stops the work and is handed back beside
/// what the work returns. A panic becomes an `InternalError`.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    n_jobs: usize,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Watch) -> Result<T> + Send,
) -> PyResult<Outcome<T>> {
    let (watch, mut work, mut found) = (Watch::default(), Some(work), None);
    let interruption = watched(py, n_jobs, progress.as_ref(), &watch, &mut || {
        found = work.take().map(|work| work(&watch));
    })?;
    match found {
        Some(Ok(value)) => {
            if let (None, Some(progress)) = (&interruption, &progress) {
                progress.call1(py, (watch.done.load(Ordering::Relaxed),))?;
            }
            Ok(Outcome { value, interruption })
        }
        Some(Err(error)) => Err(interruption.unwrap_or_else(|| errors::to_python(py, &error))),
        None => unreachable!("work without a panic has a result"),
    }
}

/// The exception that cut work short. One function for work of every kind: it compiles once.
fn watched(
    py: Python<'_>,
    n_jobs: usize,
    progress: Option<&Py<PyAny>>,
    watch: &Watch,
    work: &mut (dyn FnMut() + Send),
) -> PyResult<Option<PyErr>> {
    let interrupts = Interrupts::new(py)?;
    let made = py.detach(|| {
        let pool = pool_of(n_jobs)?;
        let (finished, waiting) = channel::<()>();
        let (mut interruption, mut ended) = (None, Ok(()));
        pool.in_place_scope(|scope| {
            let ended = &mut ended;
            scope.spawn(move |_| {
                let _finished = finished;
                *ended = catch_unwind(AssertUnwindSafe(work));
            });
            while waiting.recv_timeout(SLICE) == Err(RecvTimeoutError::Timeout) {
                if interruption.is_none()
                    && let Err(error) = Python::attach(|py| look(py, watch, &interrupts, progress))
                {
                    watch.stopped.store(true, Ordering::Relaxed);
                    interruption = Some(error);
                }
            }
        });
        if n_jobs == 1 {
            IDLE.set(Some((process::id(), pool)));
        }
        Ok((ended, interruption))
    });
    let (ended, interruption) = made.map_err(|error| errors::no_threads(py, n_jobs, &error))?;
    // A signal of the last slice, left alone, would be raised by the caller and lose the result.
    let interruption = interruption.or_else(|| interrupts.check(py).err());
    ended.map_err(|panic| errors::internal(py, &*panic))?;
    Ok(interruption)
}

/// A pool of so many threads: the one that waits, or a new one.
fn pool_of(n_jobs: usize) -> std::result::Result<ThreadPool, ThreadPoolBuildError> {
    if n_jobs == 1
        && let Some((process, pool)) = IDLE.take()
    {
        if process == process::id() {
            return Ok(pool);
        }
        mem::forget(pool);
    }
    ThreadPoolBuilder::new().num_threads(n_jobs).build()
}

/// Runs short work of the core on the calling thread; a panic becomes an `InternalError`.
pub(crate) fn briefly<T>(py: Python<'_>, work: impl FnOnce() -> Result<T>) -> PyResult<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(value) => value.map_err(|error| errors::to_python(py, &error)),
        Err(panic) => Err(errors::internal(py, &*panic)),
    }
}

fn look(
    py: Python<'_>,
    watch: &Watch,
    interrupts: &Interrupts,
    progress: Option<&Py<PyAny>>,
) -> PyResult<()> {
    interrupts.check(py)?;
    if let Some(progress) = progress {
        progress.call1(py, (watch.done.load(Ordering::Relaxed),))?;
    }
    Ok(())
}

/// Whether Ctrl-C was pressed since the work began.
///
/// Python runs signal handlers on its main thread only: work on any other thread would go on to its
/// end, and a process whose main thread waits for it would not stop. Such work listens itself, as
/// long as Ctrl-C means what it means by default.
struct Interrupts(Option<(SigId, Arc<AtomicBool>)>);

impl Interrupts {
    fn new(py: Python<'_>) -> PyResult<Self> {
        let threading = py.import("threading")?;
        let here = threading.call_method0("get_ident")?;
        if here.eq(threading.call_method0("main_thread")?.getattr("ident")?)? {
            return Ok(Interrupts(None));
        }
        let signal = py.import("signal")?;
        let handler = signal.call_method1("getsignal", (SIGINT,))?;
        if !handler.is(&signal.getattr("default_int_handler")?) {
            return Ok(Interrupts(None));
        }
        let pressed = Arc::new(AtomicBool::new(false));
        Ok(Interrupts(Some((flag::register(SIGINT, Arc::clone(&pressed))?, pressed))))
    }

    fn check(&self, py: Python<'_>) -> PyResult<()> {
        match &self.0 {
            Some((_, pressed)) if pressed.load(Ordering::Relaxed) => {
                Err(PyKeyboardInterrupt::new_err(()))
            }
            _ => py.check_signals(),
        }
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        if let Some((id, _)) = &self.0 {
            low_level::unregister(*id);
        }
    }
}
