r"""Linear regression on anisotropic Gaussian inputs: one task, or many with random coefficients.

The laws of decay are functions of $j = 1, ..., d$ and read in lower case: `power_law(2)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from featlab.core.validation import InputError, Part, function, real, whole
from featlab.data._data import AbstractDataModel, Batch
from featlab.data._fields import dimension, noise_of_labels, sample_size


class power_law(Part):
    r"""$\max(j^{-a}, c)$."""

    exponent: float = real(symbol="a", means="exponent of the decay", span=(0, 4))
    floor: float = real(default=0.0, at_least=0, symbol="c", means="smallest value", span=(0, 1))

    @classmethod
    def examples(cls):
        return (cls(1.0), cls(0.5, floor=0.1))

    def __call__(self, j):
        return _arrays(j).maximum(j**-self.exponent, self.floor)


class spiked(Part):
    r"""$j^{-a}$, but $h$ at $j = k$."""

    exponent: float = real(symbol="a", means="exponent of the decay", span=(0, 4))
    at: int = whole(at_least=1, symbol="k", means="place of the spike", span=(1, 100))
    height: float = real(at_least=0, symbol="h", means="height of the spike", span=(0, 10))

    @classmethod
    def examples(cls):
        return (cls(1.0, at=3, height=5.0),)

    def __call__(self, j):
        return _arrays(j).where(j == self.at, self.height, j**-self.exponent)


class Regression(eqx.Module):
    """The covariances of inputs and of coefficients, both diagonal, and the coefficients of each task."""

    spectrum: Float[Array, " column"]  # lambda_j
    target: Float[Array, " column"]  # nu_j
    coefficients: Float[Array, "task column"]  # beta^(1), ..., beta^(m)


class LinearRegression(AbstractDataModel):
    r"""Tasks with random coefficients on shared inputs.

    $$x = \mathrm{diag}(\lambda)^{1/2} z, \quad z \sim N(0, I_d), \qquad \beta^{(j)} \sim
    N(0, \mathrm{diag}(\nu)), \qquad y^{(j)} = \langle \beta^{(j)}, x \rangle + \varepsilon^{(j)}, \quad
    \varepsilon^{(j)} \sim N(0, \sigma^2)$$

    `spectrum` and `target` give $\lambda_j$ and $\nu_j$ for an array of $j = 1, ..., d$. Labels are one number
    for one task, and one for each of several. Test inputs are labelled with noise too.
    """

    n: int = sample_size()
    d: float = dimension()
    spectrum: Callable = function(
        "a function of j = 1, ..., d, such as power_law(1)",
        symbol=r"\lambda_j",
        means="variances of the coordinates",
    )
    target: Callable = function(
        "a function of j = 1, ..., d, such as power_law(2)", symbol=r"\nu_j", means="variances of the coefficients"
    )
    tasks: int = whole(default=1, at_least=1, symbol="m", means="tasks", span=(1, 100))
    label_noise: float = noise_of_labels(r"\sigma")

    @classmethod
    def examples(cls):
        return (
            cls(n=6, d=40, spectrum=power_law(1), target=power_law(2), label_noise=0.5),
            cls(n=5, d=40, spectrum=power_law(1, floor=0.2), target=spiked(1, at=5, height=5), tasks=3),
        )

    def vectors(self, rows):
        return self.tasks + rows

    def truth(self, key, space):
        rows, space = space.gaussian(key, self.tasks)
        spectrum, target = (self._law(name, rows.shape[-1]) for name in ("spectrum", "target"))
        return Regression(spectrum, target, jnp.sqrt(target)[None] * rows), space

    def draw(self, key, truth, space, rows):
        input_key, noise_key = jax.random.split(key)
        mask = jnp.arange(rows) < self.n
        inputs, space = space.gaussian(input_key, rows, real=mask)
        return self._labelled(noise_key, truth, inputs, mask), space

    def fresh(self, key, truth, space, count, *, training=False):
        input_key, noise_key = jax.random.split(key)
        return self._labelled(noise_key, truth, space.fresh(input_key, count), jnp.ones(count, bool))

    def _labelled(self, key, truth, inputs, mask):
        inputs = jnp.sqrt(truth.spectrum)[None] * inputs
        keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(len(mask)))
        noise = jax.vmap(lambda one: jax.random.normal(one, (self.tasks,), jnp.float32))(keys).astype(float)
        clean = inputs @ truth.coefficients.T
        labels = clean + self.label_noise * noise
        if self.tasks == 1:
            labels, clean = labels[:, 0], clean[:, 0]
        return Batch(inputs[:, None], labels, clean, mask)

    def _law(self, name: str, d: int) -> Float[Array, " column"]:
        values = getattr(self, name)(jnp.arange(1, d + 1, dtype=float))
        if jnp.shape(values) != (d,):
            raise InputError(
                f"LinearRegression.{name} must return one number for each j = 1, ..., {d}, got the shape "
                f"{jnp.shape(values)}."
            )
        return values


def _arrays(j) -> Any:
    """The library whose array this is, so that theory gets float64 from NumPy's."""
    return np if isinstance(j, np.ndarray) else jnp
