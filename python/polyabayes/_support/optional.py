"""Optional dependencies."""

from importlib import import_module
from types import ModuleType

from polyabayes.exceptions import MissingDependencyError


def import_optional(module: str, why: str, extra: str = "") -> ModuleType:
    """Import a module, or say how to install it, by an extra or its name; `why` needs it."""
    try:
        return import_module(module)
    except ImportError as error:
        name = f"'polyabayes[{extra}]'" if extra else module.partition(".")[0]
        raise MissingDependencyError(f"{why}: pip install {name}") from error
