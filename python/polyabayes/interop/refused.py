"""Models of other packages that cannot be scored."""

from __future__ import annotations

from functools import partial
from typing import Any, NoReturn

from polyabayes.exceptions import InvalidTypeError
from polyabayes.likelihood.foreign import adapter

_EMBEDDINGS = "it clusters embeddings of documents and gives no probabilities of words"
_REASONS = {
    "bertopic": f"it {_EMBEDDINGS}",
    "top2vec": f"it {_EMBEDDINGS}",
    "fastopic": "it transports embeddings and has no distribution of a document's words",
    "scvi": "its parameters are in its module. It has a logistic-normal prior: make the model by "
    "DocumentModel.logistic_normal(model.get_feature_by_topic().T.to_numpy(), mean, covariance)",
}


def _refuse(package: str, model: Any) -> NoReturn:
    raise InvalidTypeError(
        f"a {type(model).__name__} of {package} cannot be scored as it is: {_REASONS[package]}"
    )


for _package in _REASONS:
    adapter(_package, is_refused=True)(partial(_refuse, _package))
