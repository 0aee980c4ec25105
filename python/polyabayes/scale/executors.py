"""Tasks on any executor: shared data are sent once, and results are returned as they finish."""

import _thread
import atexit
import functools
import hashlib
import multiprocessing
import os
import pickle
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple
from weakref import WeakSet

from polyabayes._support import checks
from polyabayes._support.output.progress import look
from polyabayes.exceptions import InvalidTypeError, WorkerError
from polyabayes.scale.scratch import scratch_folder

# Tasks in flight per worker, so that none is idle, and in all if the number of workers is unknown.
_TASKS_PER_WORKER = 4
_UNKNOWN_WORKERS = 32

# Number of latest shared objects that a worker keeps.
_MOST_HELD = 2

# Seconds between checks of whether to stop and, on a worker, of whether the caller still waits; and
# most seconds that the caller waits until tasks are cancelled.
_LOOK_SECONDS = 0.2

# Exceptions of engines whose workers died, besides those of the standard library.
_DEATHS = {
    "KilledWorker",  # distributed
    "FutureCancelledError",  # distributed: data of tasks were lost with their worker
}


def check_executor(executor: Any) -> Executor | None:
    """Check an executor or None; the error says what to pass instead, if known."""
    if executor is None or isinstance(executor, Executor):
        return executor
    remedy = "made by concurrent.futures, loky, mpi4py.futures or Dask's client.get_executor()"
    if hasattr(executor, "get_executor"):
        remedy = "and this is the client of a cluster: pass client.get_executor()"
    elif type(executor).__module__.startswith("multiprocessing."):
        remedy = "not a pool of multiprocessing: use concurrent.futures.ProcessPoolExecutor"
    elif type(executor).__module__.startswith("joblib."):
        remedy = "not joblib's Parallel: use joblib.externals.loky.get_reusable_executor()"
    rule = f"must be a concurrent.futures.Executor or None, {remedy}; got {executor!r:.100}"
    raise checks.wrong_type("executor", executor, rule)


def threads_of_task(executor: Executor | None, n_jobs: Any) -> int:
    """Threads per task: `n_jobs`; by default 1 with an executor, else all cores."""
    return 1 if executor is not None and n_jobs is None else checks.n_threads(n_jobs)


def n_workers(executor: Executor) -> int | None:
    """Number of tasks that the executor runs at a time, if known."""
    client = _dask_client(executor)
    if client is not None:
        return sum(client.ncores().values()) or None
    number = getattr(executor, "_max_workers", None)
    return number if isinstance(number, int) and number > 0 else None


class Workers:
    """Workers of an executor that have the shared data; made by :func:`sharing`."""

    def __init__(self, executor: Executor | None, shared: Any) -> None:
        self._executor, self._shared = executor, shared
        self._most = 1
        if executor is not None:
            self._most = _TASKS_PER_WORKER * (n_workers(executor) or _UNKNOWN_WORKERS)

    def run(
        self,
        function: Callable[..., Any],
        tasks: Iterable[tuple[Any, ...]],
        describe: Callable[[int], str],
        stopped: Callable[[], bool] | None = None,
    ) -> Generator[tuple[int, Any]]:
        """Yield task numbers and results of ``function(shared, *task)``, in order of completion.

        Without an executor, tasks run in turn in this thread. The function must be defined in a
        module. A few tasks per worker are submitted at a time; `describe`
        names a task by its number. If `stopped` returns True, all tasks are abandoned and a
        KeyboardInterrupt is raised: for threads that Ctrl-C does not interrupt. A WorkerError means
        that a worker died and its engine did not rerun its tasks.
        """
        if self._executor is None:
            for number, task in enumerate(tasks):
                yield number, function(self._shared, *task)
            return
        executor, pending = self._executor, dict[Future[Any], tuple[int, tuple[Any, ...]]]()
        finished: list[Future[Any]] = []
        news, abandoned = SimpleQueue[None](), threading.Lock()
        abandoned.acquire()

        def tell(future: Future[Any]) -> None:
            finished.append(future)
            news.put(None)

        def submit(shared: Any, number: int, task: tuple[Any, ...]) -> None:
            with _naming(describe(number)):
                future = executor.submit(_call, shared, function, task)
            pending[future] = number, task
            future.add_done_callback(tell)

        # The bytes stay here, as long as workers can read the file.
        whole = self._shared
        reference = whole._replace(content=None) if isinstance(whole, _Packed) else whole
        numbered = enumerate(tasks)
        try:
            while True:
                for number, task in islice(numbered, self._most - len(pending)):
                    submit(reference, number, task)
                if not pending:
                    return
                interruption: KeyboardInterrupt | None = None
                try:
                    with suppress(Empty):
                        news.get(timeout=_LOOK_SECONDS)
                except KeyboardInterrupt as error:
                    interruption = error
                for _ in range(len(finished)):
                    future = finished.pop(0)
                    number, task = pending.pop(future)
                    with _naming(describe(number)):
                        result = future.result()
                    if isinstance(result, KeyboardInterrupt):
                        interruption = interruption or result
                    elif isinstance(result, _Missing):
                        # The worker cannot read the shared file: the task takes the bytes.
                        submit(whole, number, task)
                    else:
                        yield number, result
                if interruption is not None:
                    raise interruption
                if stopped is not None and stopped():
                    raise KeyboardInterrupt
        except BaseException:
            # A second Ctrl-C interrupts this thread, even while it holds the lock of a future, but
            # no other thread; Python looks for signals only after the call that starts one.
            _thread.start_new_thread(self._abandon, (pending, abandoned))
            abandoned.acquire(timeout=_LOOK_SECONDS)
            raise

    def _abandon(self, pending: Iterable[Future[Any]], abandoned: threading.Lock) -> None:
        """Cancel tasks; workers interrupt those that run when the shared file is gone."""
        if isinstance(self._shared, _Packed):
            shutil.rmtree(self._shared.path.parent, ignore_errors=True)
        for future in pending:
            future.cancel()
        abandoned.release()


@contextmanager
def sharing(executor: Executor | None, shared: Any) -> Iterator[Workers]:
    """Send shared data to the workers of an executor, once for all tasks.

    This thread, if there is no executor, and threads of this process get the object itself. At the
    end, remaining tasks are cancelled, and processes of this machine interrupt running tasks; the
    executor is not shut down.
    """
    if executor is None or isinstance(executor, ThreadPoolExecutor):
        yield Workers(executor, shared)
        return
    client = _dask_client(executor)
    if client is not None:
        yield Workers(executor, client.scatter(shared, broadcast=True, hash=False))
        return
    try:
        content = pickle.dumps(shared, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InvalidTypeError(
            f"an argument cannot be sent to processes ({error}): use functions and classes of a "
            "module, or a ThreadPoolExecutor"
        ) from error
    _watch_from_start(executor)
    with scratch_folder(Path(tempfile.gettempdir()), "polyabayes-") as folder:
        path = folder / "shared"
        path.write_bytes(content)
        yield Workers(executor, _Packed(path, hashlib.sha256(content).hexdigest(), content))


@contextmanager
def _naming(task: str) -> Iterator[None]:
    """Raise a WorkerError where a worker died."""
    try:
        yield
    except Exception as error:
        is_death = isinstance(error, BrokenExecutor | CancelledError)
        if not is_death and type(error).__name__ not in _DEATHS:
            raise
        raise WorkerError(
            f"a worker of the executor died during {task} or another task ({type(error).__name__}: "
            f"{error!s:.300}): most often it had too little memory, or the program starts "
            'processes without `if __name__ == "__main__":`; take a new executor, '
            "with fewer workers"
        ) from error


class _Missing(NamedTuple):
    """Answer of a worker that cannot read the shared file."""

    path: str


class _Packed(NamedTuple):
    """Shared data in a file; also as bytes, for workers without access to the same storage."""

    path: Path
    digest: str
    content: bytes | None = None

    def value(self) -> Any:
        """The data, unpickled once per process."""
        return _held.get(self.digest, lambda: self.content or self.path.read_bytes())


class _Held:
    """Shared objects that this process has unpickled."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._lock = threading.Lock()

    def get(self, digest: str, read: Callable[[], bytes]) -> Any:
        with self._lock:
            if digest not in self._values:
                content = read()
                if hashlib.sha256(content).hexdigest() != digest:
                    raise FileNotFoundError
                self._values[digest] = pickle.loads(content)
                for oldest in list(self._values)[:-_MOST_HELD]:
                    del self._values[oldest]
            return self._values[digest]


_held = _Held()


def _call(reference: Any, function: Callable[..., Any], task: tuple[Any, ...]) -> Any:
    if not isinstance(reference, _Packed):
        look.set(_dask_look())
        try:
            return function(reference, *task)
        except KeyboardInterrupt as interruption:
            # If it were raised, it would end the event loop of Dask, and so its cluster.
            return interruption
    _end_with_parent()
    try:
        shared = reference.value()
    except OSError:
        return _Missing(str(reference.digest))
    in_main = threading.current_thread() is threading.main_thread()
    if reference.content is not None or not in_main:
        return function(shared, *task)
    with _while_wanted(reference.path):
        return function(shared, *task)


# Pools whose workers end with this process.
_pools: WeakSet[Any] = WeakSet()


def _watch_from_start(pool: Any) -> None:
    """Let workers that start from now on end with this process, even if they never get a task."""
    if hasattr(pool, "_initializer") and pool not in _pools:
        pool._initializer = functools.partial(_start, pool._initializer)
        _pools.add(pool)
        _end_workers_at_exit(os.getpid())


@functools.cache
def _end_workers_at_exit(maker: int) -> None:
    """End workers that outlive their pool because the exit was interrupted.

    Python before 3.13 then believes that the pool is shut down, and waits for them forever.
    """

    def end() -> None:
        for pool in _pools if os.getpid() == maker else ():
            for process in list((getattr(pool, "_processes", None) or {}).values()):
                process.terminate()

    atexit.register(end)


def _start(first: Callable[..., object] | None, *arguments: Any) -> None:
    """Start a worker, with the initializer of the pool's own."""
    _end_with_parent()
    if first is not None:
        first(*arguments)


@functools.cache
def _end_with_parent() -> None:
    """End this worker when the process that made it is gone: it would wait for tasks forever."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    # Workers of loky have no pipe that tells the end of the parent, and no server between them.
    has_pipe = parent.sentinel is not None
    maker = os.getppid() if has_pipe else parent.pid

    def watch() -> None:
        # Siblings that were forked hold the pipe, too.
        while os.getppid() == maker and (not has_pipe or parent.is_alive()):
            time.sleep(_LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _while_wanted(path: Path) -> Iterator[None]:
    """Interrupt this process when the shared file is gone, since then no caller waits."""
    over, lock = threading.Event(), threading.Lock()

    def watch() -> None:
        while not over.wait(_LOOK_SECONDS):
            if not path.exists():
                with lock:
                    if not over.is_set():
                        _thread.interrupt_main()
                return

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        # An interrupt before this point belongs to this task; none comes later.
        with lock:
            over.set()


def _dask_look() -> Callable[..., None] | None:
    """A function that raises KeyboardInterrupt once nobody waits for this task, if it is Dask's."""
    distributed: Any = sys.modules.get("distributed")
    try:
        worker = distributed.get_worker()
    except (AttributeError, ValueError):
        return None
    key = worker.get_current_task()

    def stop(*_: Any) -> None:
        task = worker.state.tasks.get(key)
        is_over = worker.status.name in ("closing", "closed", "failed")
        if is_over or task is None or task.state == "cancelled":
            raise KeyboardInterrupt

    return stop


def _dask_client(executor: Executor) -> Any:
    if type(executor).__module__.partition(".")[0] != "distributed":
        return None
    return getattr(executor, "_client", None)
