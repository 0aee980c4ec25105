"""Every accepted `random_state` as a generator or as one seed."""

from typing import TypeAlias

import numpy as np

from polyabayes._support.arrays import Floats
from polyabayes.exceptions import InvalidArgumentError, argument

RandomState: TypeAlias = (
    int | np.random.RandomState | np.random.Generator | np.random.SeedSequence | None
)


def random_generator(random_state: RandomState) -> np.random.Generator:
    """Make a NumPy generator from any accepted `random_state`; a generator is used as it is."""
    if isinstance(random_state, np.random.RandomState):
        random_state = np.random.SeedSequence(
            random_state.randint(2**32, size=4, dtype=np.uint32).tolist()
        )
    try:
        if isinstance(random_state, bool):
            raise TypeError
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"{argument('random_state')} must be a non-negative int, None, a RandomState, a "
            f"Generator or a SeedSequence, got {random_state!r}",
            argument="random_state",
            value=random_state,
        ) from error


def draw_seed(random_state: RandomState) -> int:
    """One 64-bit seed from any accepted `random_state`; fresh entropy for None."""
    return int(random_generator(random_state).integers(2**64, dtype=np.uint64))


def dirichlet(generator: np.random.Generator, parameters: Floats, axis: int) -> Floats:
    """Dirichlet draws along an axis; ln of the gamma variates keeps the small ones."""
    # Gamma(α) is Gamma(α + 1) U^(1/α).
    ln_draws = np.log(generator.standard_gamma(parameters + 1))
    ln_draws += np.log1p(-generator.random(parameters.shape)) / parameters
    draws: Floats = np.exp(ln_draws - ln_draws.max(axis=axis, keepdims=True))
    draws /= draws.sum(axis=axis, keepdims=True)
    return draws
