"""How probable are count data under a model? Exact and unbiased likelihoods with error bars."""

import lazy_loader

__version__ = "0.1.0"

# The public names and their rooms are those of the stub beside this file.
_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """A public name. Functions of models know the adapters of other packages' models first."""
    found = _public(name)
    if getattr(found, "__module__", name).startswith(f"{__name__}.likelihood"):
        from polyabayes import interop  # noqa: F401
    return found
