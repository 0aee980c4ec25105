"""How many: search over unknown sizes, and priors of sizes."""

from polyabayes.sizes.witness import WitnessSearch, cross_validate

__all__ = [
    "WitnessSearch",
    "cross_validate",
]
