"""A model as picklable arrays, and a cache of the compiled models."""

from __future__ import annotations

from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from polyabayes import _core
from polyabayes._support.arrays import Floats


class CoreParts(NamedTuple):
    """Arguments of a model of the compiled core.

    `kind` is "lda", "gamma_poisson", "logistic_normal", "product_of_experts" or "mixture". Sizes of
    vocabularies are given if there are several.
    """

    kind: str
    arrays: tuple[Floats, ...]
    flags: tuple[bool, ...] = ()
    vocabulary_sizes: tuple[int, ...] = ()

    def core_model(self) -> _core.Model:
        """Make the model of the compiled core."""
        # Unpickled arrays may not be aligned.
        arrays = [np.require(array, requirements=["C", "A"]) for array in self.arrays]
        sizes = {"sizes": self.vocabulary_sizes} if self.vocabulary_sizes else {}
        return getattr(_core.Model, self.kind)(*arrays, *self.flags, **sizes)

    def copied(self) -> CoreParts:
        """Copy the parts; arrays that cannot change are shared."""
        arrays = (array if _is_sealed(array) else array.copy() for array in self.arrays)
        return self._replace(arrays=tuple(arrays))

    def makes_the_same(self, copied: CoreParts) -> bool:
        """Whether parts from :meth:`copied` make the same model.

        An immutable array is compared by identity, any other by content.
        """
        mine, other = (parts._replace(arrays=()) for parts in (self, copied))
        same_number = len(self.arrays) == len(copied.arrays)
        return (mine == other and same_number) and all(
            mine is other if _is_sealed(mine) else mine is not other and np.array_equal(mine, other)
            for mine, other in zip(self.arrays, copied.arrays, strict=True)
        )


# The compiled model of each living object that was scored, and its parts. They are kept outside the
# objects, so that pickles, copies and comparisons of attributes ignore them.
_kept: WeakKeyDictionary[Any, tuple[CoreParts, _core.Model]] = WeakKeyDictionary()
_lock = Lock()


def kept_model(owner: Any, parts: CoreParts) -> _core.Model:
    """The compiled model of these parts; made anew only if the parts of `owner` changed."""
    with _lock:
        parts_before, model = _kept.get(owner, (None, None))
        if parts_before is None or model is None or not parts.makes_the_same(parts_before):
            model = parts.core_model()
            _kept[owner] = parts.copied(), model
        return model


def seal(array: Floats) -> None:
    """Make an array and its memory read-only; the caller must own both."""
    held: Any = array
    while isinstance(held, np.ndarray):
        held.setflags(write=False)
        held = held.base


def _is_sealed(array: Floats) -> bool:
    held: Any = array
    while isinstance(held, np.ndarray):
        if held.flags.writeable:
            return False
        held = held.base
    return True
