"""How probable are count data under a model? Exact and unbiased likelihoods with error bars."""

import logging

import lazy_loader

__version__ = "0.1.0"

# Silent, unless the program that uses the package sets logging up.
logging.getLogger(__name__).addHandler(logging.NullHandler())

# The public names and their rooms are those of the stub beside this file.
_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """A public name, with what enters itself for it: adapters of models, and readers of files."""
    found = _public(name)
    if name in ("load", "read_model"):
        from polyabayes import latent_classes  # noqa: F401
    rooms = (f"{__name__}.likelihood", f"{__name__}.models.concentrations")
    if name in ("topics", "plotting") or getattr(found, "__module__", name).startswith(rooms):
        from polyabayes import interop  # noqa: F401
    return found
