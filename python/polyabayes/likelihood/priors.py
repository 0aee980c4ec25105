"""Priors of single documents, in place of the prior of the model."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from polyabayes._support import checks
from polyabayes._support.arrays import Floats
from polyabayes._support.output.frames import import_pandas
from polyabayes.data.corpus import Corpus
from polyabayes.data.naming import columns_by_name, rows_by_name
from polyabayes.exceptions import InvalidArgumentError, argument
from polyabayes.likelihood.foreign import Scorable
from polyabayes.scale.shards import Shards


class GivenPriors(NamedTuple):
    """Priors of documents as given in a call.

    They are Dirichlet parameters or gamma shapes, of shape (n_documents, n_components), or
    covariates from which the model computes them.
    """

    doc_topic_prior: Any = None
    shape: Any = None
    covariates: Any = None

    def rows(self, model: Scorable, documents: Corpus | Shards) -> Floats | None:
        """Parameters of each document's prior; None if all documents share one."""
        given = {name: value for name, value in self._asdict().items() if value is not None}
        if len(given) > 1:
            raise InvalidArgumentError(
                f"give one of {' and '.join(argument(name) for name in given)}: each sets the "
                "priors of the documents"
            )
        if not given or "covariates" in given:
            return model._priors_of(documents, self.covariates)
        ((name, values),) = given.items()
        if name != model._prior_argument:
            takes = model._prior_argument or "none"
            raise InvalidArgumentError(
                f"{argument(name)}: this model takes no such prior of documents; it takes: {takes}"
            )
        topics = getattr(model, "topic_names_", None)
        if isinstance(values, Mapping) and topics is not None and {*values} == {*topics}:
            values = import_pandas().DataFrame([values] * documents.n_documents)
        values = rows_by_name(name, values, getattr(documents, "ids", None))
        values = columns_by_name(name, values, topics)
        wanted = (documents.n_documents, model._n_prior_parameters())
        rows = checked_rows(name, values, wanted)
        _check_prior(name, rows)
        return rows


def checked_rows(name: str, values: Any, wanted: tuple[int, int]) -> Floats:
    """Check an array with a row of finite numbers per document."""
    rows = checks.matrix(name, values, str(wanted))
    if rows.shape != wanted:
        rule = f"has shape {rows.shape}; these documents need {wanted}, a row for each"
        raise checks.wrong(name, rows.shape, rule, wanted)
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        document, place = bad[0]
        value = float(rows[document, place])
        raise checks.wrong(name, value, f"[{document}, {place}] is {value}; it must be finite")
    return np.ascontiguousarray(rows)


def _check_prior(name: str, rows: Floats) -> None:
    """Check that no parameter is negative, and that each document has a positive one."""
    bad = np.argwhere(rows < 0)
    if len(bad):
        document, place = bad[0]
        value = float(rows[document, place])
        rule = "it must be positive, or zero for a topic that the document lacks"
        raise checks.wrong(name, value, f"[{document}, {place}] is {value}; {rule}")
    empty = np.flatnonzero(~rows.any(axis=1))
    if len(empty):
        rule = f"[{empty[0]}] is zero for every topic; at least one must be positive"
        raise checks.wrong(name, 0.0, rule)


def covariates_by_model(
    known: Mapping[str, Scorable], models: Mapping[str, Any], covariates: Any
) -> dict[str, Any]:
    """Covariates by the names of the models that use them."""
    if covariates is None:
        return {}
    given = covariates if isinstance(covariates, Mapping) else {}
    if any(name in models or getattr(rows, "ndim", 1) > 1 for name, rows in given.items()):
        strangers = [name for name in covariates if name not in models]
        if strangers:
            rule = (
                f"has the name {strangers[0]!r:.100}, which is not one of the models "
                f"({', '.join(map(str, models)):.200})"
            )
            raise checks.wrong("covariates", strangers[0], rule)
        return {str(name): rows for name, rows in covariates.items()}
    taking = [name for name, model in known.items() if hasattr(model, "coefficients_")]
    if not taking:
        raise InvalidArgumentError(
            f"{argument('covariates')}: no compared model has a prior that depends on covariates",
            argument="covariates",
        )
    return dict.fromkeys(taking, covariates)
