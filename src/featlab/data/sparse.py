"""A signal of one coordinate beside noise of few coordinates: where Adam and gradient descent part."""

import math
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from featlab.core.sees import Sees
from featlab.core.validation import InputError, real, whole
from featlab.data._data import AbstractVectorModel, Batch, coin_flips, signed
from featlab.data._fields import dimension, flipped_labels, flipped_tests, sample_size


class Sparse(eqx.Module):
    """Vectors given by the coordinates that are not 0, and what is there."""

    places: Int[Array, "sample coordinate"]
    values: Float[Array, "sample coordinate"]


class SparseSignalNoise(AbstractVectorModel):
    r"""Two patches: the signal, and sparse noise that carries a little of the opposite signal.

    $$x = [y\,v,\ \xi - \alpha y\,v], \qquad v = \|v\| e_1, \qquad
      \xi \sim N(0, \sigma_p^2) \text{ on } s \text{ random coordinates other than the first}$$

    Sparse noise has preferred coordinates, so nothing here commutes with rotations: vectors are stored whole.

    Zou, Cao, Li and Gu (2023), Definition 3.1; without feature noise these are the two tokens, in either order, of
    Li, Huang, Han, Zhou, Suzuki, Zhu and Chen (2025).
    """

    n: int = sample_size()
    d: float = dimension(at_least=2)
    sparsity: int = whole(at_least=1, symbol="s", means="coordinates that noise touches", span=(1, 1000))
    noise_scale: float = real(default=1.0, above=0, symbol=r"\sigma_p", means="noise in each such coordinate")
    feature_noise: float = real(
        default=0.0, at_least=0, symbol=r"\alpha", means="noise along the feature", span=(0, 1)
    )
    signal_norm: float = real(default=1.0, at_least=0, symbol=r"\|v\|", means="length of the signal")
    label_flip: float = flipped_labels()
    test_flip: float = flipped_tests()

    sees: ClassVar[Sees] = Sees.COORDINATES
    signal_count: ClassVar[int] = 1
    signed_by_class: ClassVar[bool] = True

    @classmethod
    def examples(cls):
        return (cls(n=6, d=40, sparsity=5, feature_noise=0.2, label_flip=0.3),)

    def __check_init__(self):
        if isinstance(self.d, float) and self.sparsity > self.d - 1:
            raise InputError(
                f"SparseSignalNoise.sparsity must be at most d - 1 = {self.d - 1:g}, got {self.sparsity}."
            )

    def signals(self, space):
        return jnp.eye(1), jnp.atleast_1d(jnp.asarray(self.signal_norm, float))

    def noise_length(self, space):
        return jnp.asarray(self.noise_scale * math.sqrt(self.sparsity))

    def noise_off(self):
        return True

    def toss(self, key, training):
        heads, flipped = coin_flips(key, 0.5, self.label_flip if training else self.test_flip)
        clean = signed(heads)
        return jnp.where(flipped, -clean, clean), clean, heads

    def compose(self, clean_label, coins, signals, noise):
        signal = clean_label * signals[0]
        return signal, noise[0] - self.feature_noise * signal

    def draw(self, key, truth, space, rows):
        coin_key, noise_key = jax.random.split(key)
        mask = jnp.arange(rows) < self.n
        noise = jnp.where(mask[:, None], self._dense(self._sparse(noise_key, rows, space), space), 0)
        return self._assembled(coin_key, truth.vectors, noise, mask, training=True), space

    def fresh(self, key, truth, space, count, *, training=False):
        coin_key, noise_key = jax.random.split(key)
        noise = self._dense(self._sparse(noise_key, count, space), space)
        return self._assembled(coin_key, truth.vectors, noise, jnp.ones(count, bool), training=training)

    def test_coins(self, key, weights_shape, count):
        coin_key, noise_key = jax.random.split(key)
        noise: Any = self._sparse_of(noise_key, count, weights_shape[-1])
        batch = self._tossed(coin_key, jnp.zeros((count, 1, 0)), jnp.ones(count, bool), False)
        return eqx.tree_at(lambda b: b.noise, batch, noise)

    def test_products(self, coins: Batch, truth, space, weights):
        """Only the weights on the noise's own coordinates are asked for: s of them, not d."""
        noise: Any = coins.noise
        columns = weights.T

        def add(total, one):
            places, values = one
            return total + values[:, None] * columns[places], None

        nothing = jnp.zeros((len(noise.places), len(weights)))
        products, _ = jax.lax.scan(add, nothing, (noise.places.T, noise.values.T))
        return truth.vectors @ weights.T, products[:, None]

    def _sparse(self, key, count, space) -> Sparse:
        return self._sparse_of(key, count, space.size)

    def _sparse_of(self, key, count, size) -> Sparse:
        keys = jax.vmap(lambda i: jax.random.split(jax.random.fold_in(key, i)))(jnp.arange(count))
        places = jax.vmap(lambda one: _distinct(one, self.sparsity, size - 1))(keys[:, 0])
        values = jax.vmap(lambda one: jax.random.normal(one, (self.sparsity,), jnp.float32))(keys[:, 1])
        return Sparse(places + 1, self.noise_scale * values.astype(float))

    def _dense(self, noise: Sparse, space) -> Float[Array, "sample column"]:
        def one(places, values):
            return jnp.zeros(space.size).at[places].set(values)

        return jax.vmap(one)(noise.places, noise.values)


def _distinct(key: PRNGKeyArray, count: int, among: int) -> Int[Array, " place"]:
    """So many different whole numbers below `among`, every set of them equally likely (Floyd's method).

    The k-th is drawn from the first `among - count + k + 1` numbers; where it is taken already, the last of those
    takes its place.
    """
    highest = among - count + jnp.arange(count, dtype=jnp.int32)
    drawn = jax.random.randint(key, (count,), 0, highest + 1, jnp.int32)  # whatever the precision of the run

    def choose(k, chosen):
        taken = jnp.any((chosen == drawn[k]) & (jnp.arange(count) < k))
        return chosen.at[k].set(jnp.where(taken, highest[k], drawn[k]))

    return jax.lax.fori_loop(0, count, choose, jnp.zeros(count, drawn.dtype))
