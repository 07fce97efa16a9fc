"""Activations: plain functions of one number. Any function of the user's own does as well.

Those with a parameter are written in lower case too, since they are read as functions: `relu_power(3)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from featlab.core.validation import InputError, Part, function, real
from featlab.theory import hermite


def relu(z):
    r"""$\sigma(z) = \max(0, z)$, with $\sigma'(0) = 0$."""
    return jnp.where(z > 0, z, 0)


class relu_power(Part):
    r"""$\sigma(z) = \max(0, z)^q$."""

    power: float = real(above=0, keep_whole=True, symbol="q", means="power of the activation", span=(0.5, 6))

    @classmethod
    def examples(cls):
        return (cls(3), cls(2.5))

    def __call__(self, z):
        # The inner where keeps the power's derivative finite where the outer one discards it.
        return jnp.where(z > 0, jnp.where(z > 0, z, 1.0) ** self.power, 0)


class leaky_relu(Part):
    r"""$\sigma(z) = z$ for $z > 0$, else $sz$."""

    slope: float = real(default=0.1, at_least=0, symbol="s", means="slope below 0", span=(0, 1))

    def __call__(self, z):
        return jnp.where(z > 0, z, self.slope * z)


def identity(z):
    r"""$\sigma(z) = z$."""
    return z


def erf(z):
    r"""$\sigma(z) = \mathrm{erf}(z)$."""
    return jax.scipy.special.erf(z)


class shifted(Part):
    r"""$\sigma(z) + s$."""

    activation: Callable = function("an activation, such as relu", each=True, means="activation that is shifted")
    shift: float = real(default=0.0, symbol="s", means="shift of the activation", span=(-1, 1))

    @classmethod
    def examples(cls):
        return (cls(relu, -0.4),)

    def __call__(self, z):
        return self.activation(z) + self.shift


def centred(activation: Callable) -> shifted:
    r"""The activation less its mean: $\sigma(z) - \mathbb{E}\,\sigma(Z)$, with $Z \sim N(0, 1)$."""
    return shifted(activation, -float(hermite.coefficients(activation, 0)[0]))


def _finite(numbers) -> tuple[float, ...]:
    try:
        values = np.asarray(numbers, float)
    except (TypeError, ValueError):
        values = np.array(math.nan)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise InputError(f"hermite_series needs finite numbers c_0, c_1, ..., such as (0, 1), got {numbers!r}.")
    return tuple(values.tolist())


class hermite_series(Part):
    r"""$\sigma(z) = \sum_k c_k H_k(z)$, with $H_0 = 1$, $H_1 = z$, $H_2 = z^2 - 1$, $H_3 = z^3 - 3z$, ..."""

    coefficients: tuple[float, ...] = eqx.field(converter=_finite)  # c_0, c_1, ...

    @classmethod
    def examples(cls):
        return (cls((0.0, 1.0, 0.5)),)

    def __call__(self, z):
        return hermite.polynomials(jnp.asarray(z), len(self.coefficients) - 1) @ jnp.array(self.coefficients)
