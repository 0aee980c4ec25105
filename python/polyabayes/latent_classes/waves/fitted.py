"""Fitted classes of rows in waves: transitions, the classes of rows, and files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes._support.arrays import Floats
from polyabayes._support.docs import shared_docs
from polyabayes._support.output.tables import some
from polyabayes._support.results import ResultTable
from polyabayes._support.warnings import warn
from polyabayes.data.names import CALLS
from polyabayes.exceptions import DataWarning, InvalidArgumentError, InvalidTypeError, argument
from polyabayes.latent_classes.answers import Answers, like_answers
from polyabayes.latent_classes.chains import Chains, Levels, Waves
from polyabayes.latent_classes.saved import SavedClasses, arrays_of, names_of_tables, stored_tables
from polyabayes.latent_classes.tables import ClassTables
from polyabayes.models.fitted.stored_model import StoredModel


@shared_docs
class FittedWaves(SavedClasses):
    """Fitted latent classes of rows in several waves."""

    is_invariant: bool
    is_stationary: bool

    # Columns of the items of each wave.
    _columns: tuple[tuple[Any, ...], ...]
    # Draws of all parameters.
    _chains: Chains

    @property
    def transition_probabilities_(self) -> Floats:
        """Transitions from wave to wave, shape (n_waves - 1, from, to)."""
        return self._of_waves(self._fitted().transitions).mean(axis=0)

    def transitions(self, level: float = 0.95) -> ResultTable:
        """Transitions with intervals.

        Parameters
        ----------
        {level}

        Returns
        -------
        ResultTable
            Columns ``wave`` (from 0, that of ``from``), ``from``, ``to``, ``probability``, and
            ``lower`` and ``upper``, quantiles over draws.

        {raises: bad level}

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"a1": [0, 0, 1, 1] * 9, "a2": [0, 1, 1, 1] * 9})
        >>> frame = frame.assign(b1=frame.a1, b2=frame.a2)
        >>> model = pb.LatentTransitionAnalysis(2, random_state=0)
        >>> model.fit(frame, waves=[["a1", "b1"], ["a2", "b2"]]).transitions().n_rows
        4
        """
        draws, half = self._of_waves(self._fitted().transitions), checks.share("level", level) / 2
        low, high = np.quantile(draws, [0.5 - half, 0.5 + half], axis=0)
        tables = draws.mean(axis=0), low, high
        keys = np.ndindex(low.shape)
        rows = [[*key, *(float(table[key]) for table in tables)] for key in keys]
        return ResultTable(["wave", "from", "to", "probability", "lower", "upper"], rows)

    def predict_proba(self, X: Any, *, covariates: Any = None) -> Floats:
        """Class probabilities of rows in every wave, given their answers in all waves.

        Parameters
        ----------
        X : DataFrame or table of polars or pyarrow
            Rows with the columns of the fit; answers may be missing, even all of a wave.
        covariates : DataFrame, mapping or matrix, optional
            Covariates of these rows, if the first class depends on some; by default, columns of
            `X`.

        Returns
        -------
        ndarray of shape (n_rows, n_waves, n_classes)
            Means over the draws.

        {raises: bad rows}

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"a1": [0, 0, 1, 1] * 9, "a2": [0, 1, 1, 1] * 9})
        >>> frame = frame.assign(b1=frame.a1, b2=frame.a2)
        >>> model = pb.LatentTransitionAnalysis(2, random_state=0)
        >>> model.fit(frame, waves=[["a1", "b1"], ["a2", "b2"]]).predict_proba(frame).shape
        (36, 2, 2)
        """
        chains = self._fitted()
        names, n_waves = self.feature_names_in_.tolist(), len(self._columns)
        repeats = n_waves if self.is_invariant else 1
        answers = like_answers(X, names, self._labels * repeats, None, self._missing)
        levels = answers.levels.reshape(len(answers.levels), n_waves, -1)
        rows = self._waves(levels, self._covariates_of(X, covariates, len(levels)))
        return chains.smoothed(rows)[rows.rows]

    def _set(self, chains: Chains) -> None:
        """Keep draws of the classes of the waves whose columns are known."""
        self._chains, self.n_classes_ = chains, int(chains.weights.shape[1])
        self.feature_names_in_ = np.array([c for wave in self._columns for c in wave], dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)

    def _kept_tables(self) -> ClassTables:
        return self._fitted().tables()

    def _waves(self, levels: Levels, covariates: Floats | None = None) -> Waves:
        """Rows in waves, with the table of each wave and item."""
        n_waves, n_items = levels.shape[1:]
        slots = np.tile(np.arange(n_items), (n_waves, 1))
        if not self.is_invariant:
            slots += n_items * np.arange(n_waves)[:, None]
        n_levels = tuple(map(len, self._labels))
        return Waves.of(levels, slots, n_levels, bool(self.is_stationary), covariates)

    def _content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        chains = self._fitted()
        own = {"transitions": chains.transitions} | arrays_of(chains.tables())
        return {"waves": self._columns}, own

    @classmethod
    def _of_store(cls, content: StoredModel) -> Self:
        """Classes of the content of a file."""
        model, scalars, arrays = cls(**content.parameters), content.scalars, content.arrays
        coefficients = model._restore(content)
        model._columns = checked_waves(scalars["waves"])
        known = ["transitions", *["coefficients"][: "design" in scalars]]
        content.refuse_others([*known, *names_of_tables(len(model._items()))])
        tables, moves = stored_tables(content), arrays["transitions"]
        n_steps = 1 if model.is_stationary else len(model._columns) - 1
        if moves.shape[1] != n_steps or not np.allclose(moves.sum(axis=3), 1.0):
            raise ValueError("transitions are not of the waves, or do not sum to 1")
        if len(tables.items) != len(model._items()):
            raise ValueError("tables are not those of the items")
        model._set(Chains(tables.weights, moves, tables.items, coefficients))
        return model

    def _fitted(self) -> Chains:
        self._check_fitted()
        return self._chains

    def _items(self) -> list[str]:
        """Names of the tables of answers."""
        first = [str(column) for column in self._columns[0]]
        return first if self.is_invariant else [str(c) for wave in self._columns for c in wave]

    def _of_waves(self, transitions: Floats) -> Floats:
        """A table for each step between waves."""
        return np.repeat(transitions, len(self._columns) - 1 if self.is_stationary else 1, axis=1)

    def _labels_of(self, answers: Answers) -> tuple[tuple[str, ...], ...]:
        """Labels of each table: of invariant items, those of any wave, in the order of the first.

        Numbers are sorted.
        """
        if not self.is_invariant:
            return answers.labels
        n_items = len(self._columns[0])
        found = []
        for item in range(n_items):
            levels, columns = answers.labels[item::n_items], answers.items[item::n_items]
            union = list(dict.fromkeys(x for own in levels for x in own))
            plain = {label.strip().casefold() for label in union}
            has_others = any(set(levels[0]).isdisjoint(own) for own in levels[1:])
            if has_others or len(plain) < len(union):
                told = some(columns, 3), some(union, 8), columns[1]
                warn(CALLS["union"].format(*told), DataWarning)
            if all(label.lstrip("-").isdecimal() for label in union):
                union.sort(key=int)
            found.append(tuple(union))
        return tuple(found)

    def _levels(self, answers: Answers) -> Levels:
        """Levels of the rows in the numbers of the tables, (n_rows, n_waves, n_items)."""
        columns = []
        tables = self._labels * (len(self._columns) if self.is_invariant else 1)
        for own, known, codes in zip(answers.labels, tables, answers.levels.T, strict=True):
            number = np.array([*(known.index(label) for label in own), -1])
            columns.append(number[codes])
        return np.stack(columns, axis=1).reshape(len(answers.levels), len(self._columns), -1)

    def _methods_text(self) -> str:
        """Sentences about the model for a methods section."""
        self._fitted()
        stays = self.transitions().to_frame()
        stays = stays[stays["from"] == stays["to"]]
        told = ", ".join(
            f"{row.probability:.2f} ({row.lower:.2f} to {row.upper:.2f})"
            for row in stays.itertuples()
        )
        answers = "the same" if self.is_invariant else "other"
        beside = f"{self._sampling}{self._covariates_text()} {self.choice_._methods_text()}"
        sizes = len(self._columns), len(self._columns[0])
        return CALLS["transitions"].format(*sizes, answers, beside, told)


def checked_waves(waves: Any) -> tuple[tuple[Any, ...], ...]:
    """Columns of each wave; anything else is refused."""
    is_list = isinstance(waves, Sequence) and not isinstance(waves, str)
    if not is_list or any(isinstance(w, str) or not isinstance(w, Sequence) for w in waves):
        raise InvalidTypeError(CALLS["no waves"].format(argument("waves"), waves))
    found = tuple(tuple(wave) for wave in waves)
    if len(found) < 2 or len({len(wave) for wave in found}) > 1 or not found[0]:
        numbers = ", ".join(str(len(wave)) for wave in found)
        told = CALLS["other waves"].format(argument("waves"), len(found), numbers)
        raise InvalidArgumentError(told)
    return found
