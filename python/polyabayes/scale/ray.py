"""Ray's workers as an executor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from typing import Any

from polyabayes.exceptions import InvalidArgumentError, MissingDependencyError

__all__ = ["RayExecutor"]


class RayExecutor(Executor):
    """An executor whose tasks run on Ray's workers; Ray brings none of its own.

    Ray is started by the caller (``ray.init``), and ended by the caller. Tasks whose worker dies
    are run again by Ray, up to its own ``max_retries``.

    Parameters
    ----------
    options : mapping, optional
        Options of every task, as ``ray.remote`` takes them: ``{"num_cpus": 1}``.

    Raises
    ------
    MissingDependencyError
        If Ray is not installed.
    InvalidArgumentError
        If Ray is not running.

    Examples
    --------
    >>> import polyabayes as pb
    >>> from polyabayes.scale import RayExecutor
    >>> def score(model, documents):  # where Ray is installed
    ...     import ray
    ...
    ...     ray.init(num_cpus=2)
    ...     with RayExecutor() as executor:
    ...         return pb.log_likelihood(model, documents, executor=executor)
    """

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        try:
            import ray
        except ImportError as error:
            raise MissingDependencyError("RayExecutor needs Ray: pip install ray") from error
        if not ray.is_initialized():
            raise InvalidArgumentError("Ray is not running: call ray.init() first")
        self._ray = ray
        self._run = ray.remote(_run).options(**(options or {}))
        self._references: dict[Future[Any], Any] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run ``fn(*args, **kwargs)`` on a worker.

        Parameters
        ----------
        fn : callable
            Pickled with its arguments; those that Ray holds already travel by reference.
        *args, **kwargs
            Its arguments.

        Returns
        -------
        concurrent.futures.Future

        Examples
        --------
        >>> from polyabayes.scale import RayExecutor
        >>> def total(numbers):  # where Ray is running
        ...     return RayExecutor().submit(sum, numbers).result()
        """
        reference = self._run.remote(fn, *args, **kwargs)
        future: Future[Any] = reference.future()
        self._references[future] = reference
        future.add_done_callback(self._forget)
        return future

    def scatter(self, value: Any) -> Any:
        """Put an object into Ray's store, from which workers read it once a machine.

        Parameters
        ----------
        value : object
            Anything that pickles.

        Returns
        -------
        ray.ObjectRef
            Stands for it among the arguments of :meth:`submit`.

        Examples
        --------
        >>> from polyabayes.scale import RayExecutor
        >>> def total(numbers):  # where Ray is running
        ...     executor = RayExecutor()
        ...     return executor.submit(sum, executor.scatter(numbers)).result()
        """
        return self._ray.put(value)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for the tasks, or cancel them; Ray itself goes on running.

        Parameters
        ----------
        wait : bool, default=True
            Return when all tasks are over.
        cancel_futures : bool, default=False
            Cancel the tasks that have not begun.

        Examples
        --------
        >>> from polyabayes.scale import RayExecutor
        >>> def stop(executor):  # where Ray is running
        ...     executor.shutdown(cancel_futures=True)
        """
        left = dict(self._references)
        if cancel_futures:
            for reference in left.values():
                self._ray.cancel(reference)
        if wait and left:
            self._ray.wait(list(left.values()), num_returns=len(left))

    def _forget(self, future: Future[Any]) -> None:
        reference = self._references.pop(future, None)
        if future.cancelled() and reference is not None:
            self._ray.cancel(reference)


def _run(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return fn(*args, **kwargs)
