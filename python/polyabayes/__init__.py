"""How probable are count data under a model? Exact and unbiased likelihoods with error bars."""

import lazy_loader

__version__ = "0.1.0"

# The public names and their rooms are those of the stub beside this file.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
