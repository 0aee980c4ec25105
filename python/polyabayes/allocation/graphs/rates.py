"""The rate b of the intensity's prior: a number, or unknown with a gamma prior."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import special

from polyabayes._support.arrays import Floats
from polyabayes._support.log_space import log_sum
from polyabayes.allocation.graphs.checks import checked_parameter
from polyabayes.exceptions import InvalidTypeError

# A number, or shape and rate of a gamma distribution.
Rate: TypeAlias = float | tuple[float, float]

# Nats below the largest weight at which points end, and points per width of the weights: fine, for
# sums exact to rounding; coarse, if every point is a run of a method.
_FINE = (45.0, 8.0)
_COARSE = (18.0, 1.0)


class RatePoints(NamedTuple):
    """Points b of a quadrature over the rate, and ln w: Σ w f(b) is the prior mean of f."""

    values: Floats
    ln_weights: Floats

    def ln_mean(self, ln_function: Callable[[float], float]) -> float:
        """Ln of the mean of a function under the prior."""
        return log_sum(self._ln_terms(ln_function))

    def intensity_factor(self, ln_function: Callable[[float], float]) -> float:
        """E[1 / (b + 1)], with every b weighted by exp(`ln_function`)."""
        return float(special.softmax(self._ln_terms(ln_function)) @ (1 / (self.values + 1)))

    def _ln_terms(self, ln_function: Callable[[float], float]) -> Floats:
        values = [ln_function(float(b)) for b in self.values]
        return np.asarray(self.ln_weights + np.array(values), dtype=np.float64)


def checked_rate(rate: Any) -> Rate | None:
    """Check the rate of a model: None, a number, or shape and rate of its gamma prior."""
    if rate is None or np.ndim(rate) == 0:
        return None if rate is None else checked_parameter("rate", rate)
    if np.shape(rate) != (2,):
        raise InvalidTypeError(
            f"rate must be a number, or the pair (shape, rate) of its gamma prior, got {rate!r}"
        )
    return checked_parameter("shape of rate", rate[0]), checked_parameter("rate of rate", rate[1])


def rate_points(concentration: float, total: int, rate: Rate, *, fine: bool) -> RatePoints:
    """Points b and weights of a quadrature of P(T | b) over b.

    Trapezoidal rule in x = ln b. The integrand, ∝ b^(a+s) (1+b)^-(a+T) exp(-t b), is analytic and
    log-concave in x, so the error falls exponentially in the number of points. A known rate is the
    only point.
    """
    if not isinstance(rate, tuple):
        return RatePoints(np.array([rate]), np.zeros(1))
    (shape, inverse_scale), exponent = rate, concentration + rate[0]
    depth, n_per_width = _FINE if fine else _COARSE

    def ln_integrand(x: Floats) -> Floats:
        b = np.exp(x)
        return exponent * x - (concentration + total) * np.log1p(b) - inverse_scale * b

    # The mode solves t b² + (t + T - s) b = a + s.
    linear = inverse_scale + total - shape
    root = np.hypot(linear, 2 * np.sqrt(inverse_scale * exponent))
    at_mode = 2 * exponent / (linear + root)
    if linear < 0:
        at_mode = (root - linear) / (2 * inverse_scale)
    mode = np.log(np.array([at_mode]))
    step = 1 / (n_per_width * np.sqrt(1 + exponent))
    ends = []
    for side in (-step, step):
        n_steps = 1
        while ln_integrand(mode)[0] - ln_integrand(mode + side * n_steps)[0] < depth:
            n_steps *= 2
        ends.append(n_steps)
    x = mode + step * np.arange(-ends[0], ends[1] + 1)
    x = x[ln_integrand(x) > ln_integrand(mode) - depth]
    ln_density = shape * (x + np.log(inverse_scale)) - inverse_scale * np.exp(x)
    return RatePoints(np.exp(x), ln_density - special.gammaln(shape) + np.log(step))
