"""Gaussian inputs whose labels depend on a few directions: single- and multi-index models."""

import abc
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from featlab.core.sees import Sees
from featlab.core.validation import InputError, function, whole
from featlab.data._data import AbstractDataModel, Batch
from featlab.data._fields import dimension, noise_of_labels, sample_size


class Teacher(eqx.Module):
    """The directions that labels depend on: orthonormal rows."""

    directions: jax.Array


class AbstractIndexModel(AbstractDataModel):
    r"""$x \sim N(0, I_d)$ and $y = g(\langle v_1, x \rangle, ..., \langle v_r, x \rangle) + \varepsilon$."""

    sees: ClassVar[Sees] = Sees.VECTORS
    label_noise: eqx.AbstractVar[float]

    @property
    @abc.abstractmethod
    def directions(self) -> int:
        """How many directions the label depends on."""

    @abc.abstractmethod
    def clean(self, projections: jax.Array) -> jax.Array:
        """The labels of many inputs, before noise, from their products with the directions."""

    def vectors(self, rows):
        return self.directions + rows

    def truth(self, key, space):
        rows, space = space.given(np.eye(self.directions))
        return Teacher(rows), space

    def draw(self, key, truth, space, rows):
        input_key, noise_key = jax.random.split(key)
        mask = jnp.arange(rows) < self.n
        inputs, space = space.gaussian(input_key, rows, real=mask)
        return self._labelled(noise_key, truth, inputs, mask), space

    def fresh(self, key, truth, space, count, *, training=False):
        input_key, noise_key = jax.random.split(key)
        inputs = space.fresh(input_key, count)
        return self._labelled(noise_key, truth, inputs, jnp.ones(count, bool))

    def _labelled(self, key, truth, inputs, mask):
        keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(len(mask)))
        noise = jax.vmap(lambda one: jax.random.normal(one, (), jnp.float32))(keys).astype(float)
        clean = self.clean(inputs @ truth.directions.T)
        return Batch(inputs[:, None], clean + self.label_noise * noise, clean, mask)


class SingleIndex(AbstractIndexModel):
    r"""One direction: $y = \sigma_\star(\langle \beta_\star, x \rangle) + \varepsilon$, with $x \sim N(0, I_d)$.

    $\|\beta_\star\| = 1$ and $\varepsilon \sim N(0, \sigma_\varepsilon^2)$. The link is any function of one
    number, applied elementwise. (Papers also take $\beta_\star \sim N(0, I/d)$, whose length tends to 1.)
    """

    n: int = sample_size()
    d: float = dimension()
    link: Callable = function(
        "a function of one number, such as jnp.tanh or hermite_series((0, 1, 0.5))",
        symbol=r"\sigma_\star",
        means="link of the teacher",
    )
    label_noise: float = noise_of_labels()

    @classmethod
    def examples(cls):
        return (cls(n=6, d=40, link=jnp.tanh), cls(n=5, d=40, link=jnp.sin, label_noise=0.5))

    @property
    def directions(self):
        return 1

    def clean(self, projections):
        labels = self.link(projections[:, 0])
        if jnp.shape(labels) != (len(projections),):
            raise InputError(
                f"SingleIndex.link must be a function of one number, got the shape {jnp.shape(labels)}."
            )
        return labels


class MultiIndex(AbstractIndexModel):
    r"""Several orthonormal directions: $y = g(\langle v_1, x \rangle, ..., \langle v_r, x \rangle) + \varepsilon$.

    The link is a function of one input's $r$ projections.
    """

    n: int = sample_size()
    d: float = dimension()
    link: Callable = function("a function of r numbers, such as jnp.prod", symbol="g", means="link of the teacher")
    rank: int = whole(default=2, at_least=1, symbol="r", means="directions of the teacher", span=(1, 10))
    label_noise: float = noise_of_labels()

    @classmethod
    def examples(cls):
        return (cls(n=6, d=40, link=jnp.prod), cls(n=5, d=40, link=jnp.sum, rank=3, label_noise=0.5))

    def __check_init__(self):
        if isinstance(self.d, float) and isinstance(self.rank, int) and self.d < self.rank:
            raise InputError(f"MultiIndex.rank must be at most d = {self.d:g}, got {self.rank}.")

    @property
    def directions(self):
        return self.rank

    def clean(self, projections):
        labels = jax.vmap(self.link)(projections)
        if labels.shape != (len(projections),):
            raise InputError(
                f"MultiIndex.link must return one number for one input, got the shape {labels.shape[1:]}."
            )
        return labels
