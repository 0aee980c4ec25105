"""The error that is also scikit-learn's."""

from sklearn.exceptions import NotFittedError as _SklearnNotFittedError

from polyabayes.exceptions import PolyabayesError


class NotFittedError(PolyabayesError, _SklearnNotFittedError):  # type: ignore[misc]
    """An estimator is used before ``fit`` or ``from_parameters``."""


# The module that a caller imports it from, which is also the one that pickles name.
NotFittedError.__module__ = "polyabayes.exceptions"
