r"""Labels that depend on two directions, as links of `MultiIndex`: `MultiIndex(n=400, d=20, link=two_stairs)`.

Each is a function of one input's two projections, with mean 0 for $z \sim N(0, I_2)$.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float


def product(z: Float[Array, " 2"]) -> Float[Array, ""]:
    r"""$z_1 z_2$: no direction shows in the labels' mean slope $E[\nabla y] = 0$. Variance 1."""
    return z[0] * z[1]


def two_stairs(z: Float[Array, " 2"]) -> Float[Array, ""]:
    r"""$z_1 + z_1 z_2$: the first direction shows in $E[\nabla y]$, the second beside it alone. Variance 2."""
    return z[0] + z[0] * z[1]


def sine_and_square(z: Float[Array, " 2"]) -> Float[Array, ""]:
    r"""$\sin z_1 + z_2^2 - 1$, a sum of functions of one direction each. Variance $2 + (1 - e^{-2})/2$."""
    return jnp.sin(z[0]) + z[1] ** 2 - 1


def two_squares(z: Float[Array, " 2"]) -> Float[Array, ""]:
    r"""$(2 (z_1^2 - 1) + z_2^2 - 1) / \sqrt{10}$: slopes along the two directions are as 2 to 1. Variance 1."""
    return (2 * (z[0] ** 2 - 1) + z[1] ** 2 - 1) / 10**0.5
