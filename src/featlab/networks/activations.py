"""Activations: plain functions of one number. Any function of the user's own does as well.

Those with a parameter are written in lower case too, since they are read as functions: `relu_power(3)`.
"""

from __future__ import annotations

import jax.numpy as jnp

from featlab.fields import Part, real


def relu(z):
    r"""$\sigma(z) = \max(0, z)$, with $\sigma'(0) = 0$."""
    return jnp.where(z > 0, z, 0)


class relu_power(Part):
    r"""$\sigma(z) = \max(0, z)^q$."""

    power: float = real(above=0, keep_whole=True)  # q

    @classmethod
    def examples(cls):
        return (cls(3), cls(2.5))

    def __call__(self, z):
        # The inner where keeps the power's derivative finite where the outer one discards it.
        return jnp.where(z > 0, jnp.where(z > 0, z, 1.0) ** self.power, 0)


class leaky_relu(Part):
    r"""$\sigma(z) = z$ for $z > 0$, else $sz$."""

    slope: float = real(default=0.1, at_least=0)  # s

    def __call__(self, z):
        return jnp.where(z > 0, z, self.slope * z)
