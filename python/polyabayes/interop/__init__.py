"""Models and corpora for other packages, and from them."""

from polyabayes.interop.pyldavis import pyldavis_arguments, to_pyldavis

__all__ = [
    "pyldavis_arguments",
    "to_pyldavis",
]
