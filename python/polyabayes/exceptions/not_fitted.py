"""The error that is also scikit-learn's."""

from sklearn.exceptions import NotFittedError as _SklearnNotFittedError

from polyabayes.exceptions import PolyabayesError


class NotFittedError(PolyabayesError, _SklearnNotFittedError):  # type: ignore[misc]
    """An estimator is used before ``fit`` or ``from_parameters``."""


# The public module, which pickles refer to.
NotFittedError.__module__ = "polyabayes.exceptions"
