r"""Sparse parities: a label that is a product of few coordinates, and depends on nothing less."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from featlab.core.validation import InputError, whole
from featlab.data._data import AbstractDataModel, Batch, signed
from featlab.data._fields import dimension, sample_size

_WORD = 32  # coin flips in one random word


class Relevant(eqx.Module):
    """Which coordinates the label depends on."""

    coordinates: Bool[Array, " column"]  # True on S


class SparseParity(AbstractDataModel):
    r"""Inputs uniform on the cube, and the product of $k$ of their coordinates as label.

    $$x \sim \mathrm{Unif}\{-1, 1\}^d, \qquad y = \chi_S(x) = \prod_{i \in S} x_i, \qquad |S| = k$$

    $y$ is uncorrelated with every function of fewer than all $k$ coordinates of $S$. $S$ is the first $k$
    coordinates: for a network that begins with exchangeable ones that is no restriction. Coordinates of the cube
    are preferred, so nothing here commutes with rotations.

    Barak, Edelman, Goel, Kakade, Malach and Zhang (2022).
    """

    n: int = sample_size()
    d: float = dimension()
    k: int = whole(default=3, at_least=1, symbol="|S|", means="relevant coordinates", span=(1, 6))

    @classmethod
    def examples(cls):
        return (cls(n=6, d=40, k=3),)

    def __check_init__(self):
        if not isinstance(self.d, jax.Array) and self.k > self.d:
            raise InputError(f"SparseParity.k must be at most d = {self.d:g}, got {self.k}.")

    def truth(self, key, space):
        return Relevant(jnp.arange(_stored(space)) < self.k), space

    def draw(self, key, truth, space, rows):
        return self._labelled(key, truth, jnp.arange(rows) < self.n), space

    def fresh(self, key, truth, space, count, *, training=False):
        return self._labelled(key, truth, jnp.ones(count, bool))

    def _labelled(self, key, truth, mask):
        inputs = _signs(key, len(mask), len(truth.coordinates))
        labels = jnp.prod(jnp.where(truth.coordinates[None], inputs, 1), axis=1)
        return Batch(inputs[:, None], labels, labels, mask)


def _signs(key: PRNGKeyArray, rows: int, count: int) -> Float[Array, "row sign"]:
    """Independent uniform signs, one for each bit of as many random words as a row takes.

    All words are one draw, of which more rows only ask for more: padding changes nothing for the others.
    """
    words = -(-count // _WORD)
    drawn = jax.random.bits(key, (rows * words,), jnp.uint32).reshape(rows, words, 1)
    bits = (drawn >> jnp.arange(_WORD, dtype=jnp.uint32)[None, None]) & 1
    return signed(bits.reshape(rows, -1)[:, :count] == 1).astype(float)


def _stored(space) -> int:
    size = getattr(space, "size", None)
    if not isinstance(size, int):
        raise InputError("SparseParity has coordinates, which only Ambient stores.")
    return size
