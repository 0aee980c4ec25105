"""Groups of dependent documents: by donor, author or thread, or by time."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes._support.warnings import warn
from polyabayes.exceptions import InvalidArgumentError, UnreliableErrorWarning, argument

if TYPE_CHECKING:
    import pandas as pd

# Groups below which the spread between groups is poorly known.
_FEW_GROUPS = 10
# Number of blocks of times: long blocks contain the dependence between neighbours, and a standard
# error with 19 degrees of freedom has a relative error of a sixth.
_N_BLOCKS = 20
# Names of missing values of numpy and pandas.
_MISSING = ("None", "nan", "NaT", "<NA>")


class Grouped:
    """Labels, groups and times of documents, given or in a column of their metadata."""

    ids: NDArray[np.object_] | None
    metadata: pd.DataFrame | None

    def __len__(self) -> int:
        raise NotImplementedError

    def _column(self, name: str, column: str) -> NDArray[Any]:
        """The column of the metadata that the argument `name` refers to."""
        if self.metadata is None or column not in self.metadata:
            known = [] if self.metadata is None else list(self.metadata.columns)
            raise InvalidArgumentError(
                f"{argument(name, column)}: the metadata of the documents have no such column; "
                f"there are {', '.join(map(repr, known)) or 'none'}"
            )
        return self.metadata[column].to_numpy()

    def _values_of(self, name: str, given: Any) -> NDArray[Any]:
        """One value for each document: given, or a column of the metadata."""
        values = self._column(name, given) if isinstance(given, str) else given
        checks.row_names(name, values, self.ids)
        if np.shape(values) != (len(self),):
            raise InvalidArgumentError(
                f"{argument(name)} must have one label for each of the {len(self):,} documents, "
                f"got shape {np.shape(values)}"
            )
        found = np.fromiter(values, dtype=object, count=len(self))
        for row, value in enumerate(found):
            if not isinstance(value, str) and str(value) in _MISSING:
                raise InvalidArgumentError(
                    f"{argument(name)}: document {row} has no label ({value}); give it one, or "
                    "leave the document out"
                )
        return found

    def _labels_of(self, name: str, labels: Any) -> NDArray[np.int64]:
        """A number for each distinct label of the documents, in order of appearance."""
        number_of: dict[Hashable, int] = {}
        values = self._values_of(name, labels)
        return np.array([number_of.setdefault(value, len(number_of)) for value in values])

    def _ranks_of(self, times: Any) -> NDArray[np.int64]:
        """Number of earlier documents, for each document."""
        values = self._values_of("times", times)
        try:
            # Text dates in ISO 8601 sort by time; other formats are refused.
            kind = np.str_ if all(isinstance(value, str) for value in values) else None
            known = values.astype(kind).astype("datetime64[us]") if kind else values
            order = np.sort(known)
            return np.searchsorted(order, known)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"{argument('times')} must be numbers, or dates as 2008-01-31: {error}"
            ) from None

    def _groups_of(self, groups: Any, times: Any) -> NDArray[np.int64] | None:
        """The group of every document, numbered from 0; None if neither argument is given.

        Times are cut into blocks of about equally many documents; equal times share a block.
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
    """Warn if there are too few groups to estimate the spread between groups."""
    n_groups = _FEW_GROUPS if groups is None else int(groups.max()) + 1
    if n_groups < _FEW_GROUPS:
        warn(
            f"there are only {n_groups} groups: standard errors for new groups are themselves "
            "uncertain",
            UnreliableErrorWarning,
        )
