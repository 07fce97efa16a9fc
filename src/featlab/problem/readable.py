"""What a probe may read of one run, beside what an algorithm may use."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from featlab.core.sees import Sees
from featlab.data import Batch
from featlab.networks import AbstractProductNetwork
from featlab.problem.base import AbstractProblem
from featlab.problem.draw import vector_model


class AbstractReadableProblem(AbstractProblem):
    """What a probe may read, beside all that an algorithm may use.

    weights(params)                      the weight vectors that meet the input
    products(params)                     their products with signals and training noise
    learnt(params, shrinks=)             what training added to them, as coefficients on signals and noise
    noise_geometry()                     lengths of the noise vectors, and their products with the signals
    test_outputs(params, count, coins)   outputs for fresh inputs; coins, if given, from test_coins(count)
    beside(batch, clean_labels)          the same samples' noise beside the signal of other classes
    respond(params, products)            outputs for inputs given by their products with the weights
    """

    @abc.abstractmethod
    def weights(self, params: Any) -> Array:
        """The weight vectors that meet the input, in the coordinates of the space."""

    @abc.abstractmethod
    def products(self, params: Any) -> tuple[Float[Array, "signal row"], Float[Array, "sample vector row"]]:
        """Products of the weight vectors with the signals and with the training noise."""

    @abc.abstractmethod
    def learnt(self, params: Any, *, shrinks: bool) -> tuple[Array, Array, Array]:
        """What training added to the weights, and what it left of the start, if it `shrinks` it.

        Its coefficients on the basis, the share of the start that is left, and the relative length of what
        both leave unexplained.
        """

    @abc.abstractmethod
    def noise_geometry(self) -> tuple[Array, Array]:
        """The squared length of each noise vector, and its products with the signals' directions."""

    @abc.abstractmethod
    def beside(self, batch: Batch, clean_labels: Array) -> Batch:
        """The same samples' noise, beside the signal of other classes."""

    @abc.abstractmethod
    def rest(self, params: Any) -> Any:
        """Those parameters that the network needs to respond to products with its weights."""

    def respond(self, params: Any, products: Float[Array, "input patch row"]) -> Array:
        """Outputs for inputs given by their products with the weights."""
        assert isinstance(self.network, AbstractProductNetwork)
        return jax.vmap(self.network.respond, in_axes=(None, 0))(self.rest(params), products)

    def respond_to_all(self, params: Any, patches: Sequence[Float[Array, "row input"]]) -> Array:
        """Outputs for all inputs at once, each patch given by its products with the weights."""
        assert isinstance(self.network, AbstractProductNetwork)
        return self.network.respond(self.rest(params), patches)

    def put_together(
        self,
        params: Any,
        batch: Batch,
        signals: Float[Array, "signal row"],
        noise: Float[Array, "vector row sample"],
    ) -> Array:
        """Outputs for a whole batch, from the products of the weights with the signals and with its noise."""
        # The sample is the last axis throughout, without vmap: everything up to the sum over filters is
        # elementwise. Signals are repeated by a product with ones, because its derivative, unlike that of a
        # broadcast, is a matrix product again: five times faster on a CPU.
        model = vector_model(self.data)
        assert model is not None
        repeated = jnp.einsum("sr,i->sri", signals, jnp.ones(len(batch.mask)))
        return self.respond_to_all(params, model.patches(batch, repeated, noise))

    def test_coins(self, count: int) -> Batch | None:
        """What can be drawn of the test inputs before the weights are known, where that is worth keeping."""
        vectors = vector_model(self.data)
        if vectors is None or not isinstance(self.network, AbstractProductNetwork):
            return None
        shape = self.network.weights(self.draw.start).shape
        return vectors.test_coins(self.draw.test_key, shape, count)

    def test_outputs(self, params: Any, count: int, coins: Batch | None = None) -> tuple[Array, Batch]:
        """Outputs for fresh test inputs; the same inputs every time, so that curves in time are smooth.

        Where the network sees inputs only through inner products, only those are drawn; `coins`, if given, are
        what `test_coins` returned.
        """
        if coins is None and count > _TEST_PRODUCTS:
            coins = jax.eval_shape(lambda: self.test_coins(1))
            return self._plain_test_outputs(params, count) if coins is None else self._many_outputs(params, count)
        coins = self.test_coins(count) if coins is None else coins
        if coins is None:
            return self._plain_test_outputs(params, count)
        return self._product_test_outputs(params, coins)

    def _many_outputs(self, params, count):
        """Product by product too many to hold: a few at a time, each part with a key of its own."""
        parts = -(-count // _TEST_PRODUCTS)

        def part(i):
            draw = eqx.tree_at(lambda d: d.test_key, self.draw, jax.random.fold_in(self.draw.test_key, i))
            problem = eqx.tree_at(lambda t: t.draw, self, draw)
            coins = problem.test_coins(_TEST_PRODUCTS)
            assert coins is not None
            values, batch = problem._product_test_outputs(params, coins)
            return values, batch.labels, batch.clean_labels

        read = jax.lax.map(part, jnp.arange(parts))
        values, labels, clean = (leaf.reshape(-1)[:count] for leaf in read)
        return values, Batch(values, labels, clean, jnp.ones(count, bool))

    def _product_test_outputs(self, params, coins):
        vectors = vector_model(self.data)
        assert vectors is not None and isinstance(self.network, AbstractProductNetwork)
        weights = self.weights(params)
        signals, noise = vectors.test_products(coins, self.draw.truth, self.draw.space, weights)
        if self.network.sees == Sees.PRODUCTS:  # all inputs at once, the sample last
            patches = vectors.patches(coins, signals[..., None], jnp.moveaxis(noise, 0, -1))
            return self.respond_to_all(params, patches), coins
        return self.respond(params, vectors.composed(coins, signals, noise)), coins

    def _plain_test_outputs(self, params, count):
        """The plain road: whole test vectors, a few at a time."""
        draw = self.draw
        one = jax.eval_shape(lambda: self.data.fresh(draw.test_key, draw.truth, draw.space, 1).inputs)
        chunk = max(1, min(count, _TEST_NUMBERS // one.size))
        chunks = -(-count // chunk)

        def outputs(key):
            batch = self.data.fresh(key, draw.truth, draw.space, chunk)
            return self.outputs(params, batch), (batch.labels, batch.clean_labels)

        values, labels = jax.lax.map(outputs, jax.random.split(draw.test_key, chunks))
        values, (labels, clean) = jax.tree.map(
            lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[:count], (values, labels)
        )
        return values, Batch(values, labels, clean, jnp.ones(count, bool))


_TEST_PRODUCTS = 20_000  # test inputs held at a time, given by their products
_TEST_NUMBERS = 1_000_000  # held at a time on the plain road
