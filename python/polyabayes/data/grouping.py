"""Documents that belong together: of one donor, author or thread, or of one stretch of time."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.warnings import warn
from polyabayes.exceptions import InvalidArgumentError, UnreliableErrorWarning, argument

if TYPE_CHECKING:
    import pandas as pd

# Fewer groups than this tell little of the spread between groups.
_FEW_GROUPS = 10
# Blocks that times are cut into: long ones hold what neighbours in time share, and an error with 19
# degrees of freedom is known to a sixth.
_N_BLOCKS = 20
# Names of missing values of numpy and pandas.
_MISSING = ("None", "nan", "NaT", "<NA>")


class Grouped:
    """Labels, groups and times of documents, given or in a column of their metadata."""

    metadata: pd.DataFrame | None

    def __len__(self) -> int:
        raise NotImplementedError

    def _column(self, name: str, column: str) -> NDArray[Any]:
        """A column of the metadata, which the argument `name` asks for."""
        if self.metadata is None or column not in self.metadata:
            known = [] if self.metadata is None else list(self.metadata.columns)
            raise InvalidArgumentError(
                f"{argument(name, column)}: the metadata of the documents have no such column; "
                f"there are {', '.join(map(repr, known)) or 'none'}"
            )
        return self.metadata[column].to_numpy()

    def _values_of(self, name: str, given: Any) -> NDArray[Any]:
        """One value for each document, given or a column of the metadata; errors say `name`."""
        values = self._column(name, given) if isinstance(given, str) else given
        if np.shape(values) != (len(self),):
            raise InvalidArgumentError(
                f"{argument(name)} must have one label for each of the {len(self):,} documents, "
                f"got shape {np.shape(values)}"
            )
        found = np.fromiter(values, dtype=object, count=len(self))
        for row, value in enumerate(found):
            if not isinstance(value, str) and str(value) in _MISSING:
                raise InvalidArgumentError(
                    f"{argument(name)}: document {row} has none ({value}); give it a label, or "
                    "leave the document out"
                )
        return found

    def _labels_of(self, name: str, labels: Any) -> NDArray[np.int64]:
        """A number for each distinct label of the documents, in order of appearance."""
        number_of: dict[Hashable, int] = {}
        values = self._values_of(name, labels)
        return np.array([number_of.setdefault(value, len(number_of)) for value in values])

    def _ranks_of(self, times: Any) -> NDArray[np.int64]:
        """How many documents are earlier than each one."""
        values = self._values_of("times", times)
        try:
            # Dates as text come in the order of time if they are ISO 8601, and are refused if not.
            kind = np.str_ if all(isinstance(value, str) for value in values) else None
            known = values.astype(kind).astype("datetime64[us]") if kind else values
            order = np.sort(known)
            return np.searchsorted(order, known)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"{argument('times')} must be numbers, or dates as 2008-01-31: {error}"
            ) from None

    def _groups_of(self, groups: Any, times: Any) -> NDArray[np.int64] | None:
        """The group of every document, numbered from 0, or None where neither is given.

        Times are cut into blocks of about as many documents, those of one time in one block.
        """
        if groups is not None and times is not None:
            raise InvalidArgumentError(
                f"{argument('groups')} and {argument('times')} exclude each other; give one"
            )
        if groups is not None:
            return self._labels_of("groups", groups)
        if times is None:
            return None
        blocks = self._ranks_of(times) * _N_BLOCKS // len(self)
        return np.unique(blocks, return_inverse=True)[1]


def warn_of_few_groups(groups: NDArray[np.int64] | None) -> None:
    """Warn where the spread between groups is hardly known."""
    n_groups = _FEW_GROUPS if groups is None else int(groups.max()) + 1
    if n_groups < _FEW_GROUPS:
        warn(
            f"there are {n_groups} groups only: standard errors for new groups are uncertain "
            "themselves",
            UnreliableErrorWarning,
        )
