"""What one run is about: everything random about it, and what an algorithm may use of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from featlab.data import AbstractBatching, AbstractDataModel, AbstractVectorModel, Batch, Signals
from featlab.fields import InputError
from featlab.networks import AbstractNetwork, AbstractProductNetwork
from featlab.objectives import AbstractObjective
from featlab.space import AbstractSpace


class Draw(eqx.Module):
    """Everything that chance decided before training: one draw per seed."""

    space: AbstractSpace
    truth: Any
    training: Batch
    holdouts: tuple[Batch, ...]
    start: Any  # the network's initial parameters
    dual: Float[Array, "column vector"] | None  # weights @ dual = coefficients on the signals and noise vectors
    batch_key: PRNGKeyArray
    test_key: PRNGKeyArray
    algorithm_key: PRNGKeyArray


def draw_run(
    data: AbstractDataModel,
    network: AbstractNetwork,
    space: AbstractSpace,
    rows: int,
    holdouts: int,
    key: PRNGKeyArray,
) -> Draw:
    """Draw one run. Every purpose has its own key, so no two of them ever share randomness."""
    truth_key, training_key, start_key, holdout_key, batch_key, test_key, algorithm_key = jax.random.split(key, 7)
    truth, space = data.truth(truth_key, space)
    start: Any = None
    if network.starts_first:
        start, space = network.init(start_key, space)
    training, space = data.draw(training_key, truth, space, rows)
    held = []
    for i in range(holdouts):
        batch, space = data.draw(jax.random.fold_in(holdout_key, i), truth, space, rows)
        held.append(batch)
    if not network.starts_first:
        start, space = network.init(start_key, space)
    if not all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(start)):
        raise InputError(
            f"{type(network).__name__}.init must return nothing but arrays; an Equinox module that holds "
            "functions goes into EquinoxNetwork."
        )
    dual = _dual(truth, training) if vector_model(data) is not None else None
    return Draw(space, truth, training, tuple(held), start, dual, batch_key, test_key, algorithm_key)


class Task(eqx.Module):
    """What an algorithm may use."""

    data: AbstractDataModel
    network: AbstractNetwork
    objective: AbstractObjective
    draw: Draw
    begun: Any = None  # parameters to begin with, where they are not the draw's

    @property
    def start(self) -> Any:
        """The parameters to begin with."""
        return self.draw.start if self.begun is None else self.begun

    def starting_from(self, params: Any) -> Task:
        """The same task from other parameters."""
        return eqx.tree_at(lambda task: task.begun, self, params, is_leaf=lambda leaf: leaf is None)

    def batch(self, key: PRNGKeyArray, step: Array) -> Batch:
        """What this step sees: the whole training set, a mini-batch or fresh inputs, as the data says."""
        return self.data.batch(key, step, self.draw.training, self.draw)

    def value(self, params: Any, batch: Batch, key: PRNGKeyArray | None = None) -> Float[Array, ""]:
        """The objective's value."""
        return self.objective(params, batch, key)[0]

    def value_and_grad(self, params: Any, batch: Batch, key: PRNGKeyArray | None = None):
        """The objective's value and its gradient in the parameters."""
        return jax.value_and_grad(self.value)(params, batch, key)

    def gradient(self, params: Any, batch: Batch, key: PRNGKeyArray | None = None) -> Any:
        """The objective's gradient in the parameters."""
        return jax.grad(self.value)(params, batch, key)

    def norm(self, gradient: Any) -> Float[Array, ""]:
        """The length of a gradient, all parameters taken together."""
        return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(gradient)))

    def holdout(self, i: int) -> Batch:
        """The i-th independent set of the training law; the algorithm says beforehand how many it needs."""
        if i >= len(self.draw.holdouts):
            raise InputError(
                f"holdout({i}) was asked for and {len(self.draw.holdouts)} were drawn: "
                "an algorithm's `holdouts` must say how many it uses."
            )
        return self.draw.holdouts[i]

    def samples(self, which: int) -> Batch:
        """The training set for 0, the k-th independent set for k."""
        return self.draw.training if which == 0 else self.holdout(which - 1)

    def features(self, params: Any, inputs: Array) -> Array:
        """What the last layer sees of each input."""
        return jax.vmap(self.network.features, in_axes=(None, 0))(params, inputs)

    def outputs(self, params: Any, batch: Batch) -> Array:
        """The network's output for each input."""
        return jax.vmap(self.network, in_axes=(None, 0))(params, batch.inputs)

    def beside(self, batch: Batch, clean_labels: Array) -> Batch:
        """The same samples' noise, beside the signal of other classes."""
        vectors, training = vector_model(self.data), batch
        if vectors is None or training.noise is None:
            raise InputError(f"{type(self.data).__name__} has no noise apart from its signal.")
        batch = eqx.tree_at(lambda b: (b.labels, b.clean_labels), batch, (clean_labels, clean_labels))
        inputs = vectors.composed(batch, self.draw.truth.vectors, training.noise)
        return eqx.tree_at(lambda b: b.inputs, batch, inputs)

    def weights(self, params: Any) -> Array:
        """The weight vectors that meet the input, in the coordinates of the space."""
        assert isinstance(self.network, AbstractProductNetwork)
        return self.network.weights(params)

    def products(self, params: Any) -> tuple[Float[Array, "signal row"], Float[Array, "sample vector row"]]:
        """Products of the weight vectors with the signals and with the training noise."""
        weights, noise = self.weights(params), self.draw.training.noise
        assert noise is not None
        return self.draw.truth.vectors @ weights.T, noise @ weights.T

    def respond_to_all(self, params: Any, patches: Sequence[Float[Array, "row input"]]) -> Array:
        """Outputs for all inputs at once, each patch given by its products with the weights."""
        assert isinstance(self.network, AbstractProductNetwork)
        return self.network.respond(params, patches)

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

    def respond(self, params: Any, products: Float[Array, "input patch row"]) -> Array:
        """Outputs for inputs given by their products with the weights."""
        assert isinstance(self.network, AbstractProductNetwork)
        return jax.vmap(self.network.respond, in_axes=(None, 0))(params, products)

    def learnt(self, params: Any, *, shrinks: bool) -> tuple[Array, Array, Array]:
        """What training added to the weights, and what it left of the start, if it `shrinks` it.

        Its coefficients on the basis, the share of the start that is left, and the relative length of what
        both leave unexplained.
        """
        assert isinstance(self.network, AbstractProductNetwork) and self.draw.dual is not None
        weights, start = self.weights(params), self.network.weights(self.draw.start)
        dual, vectors = self.draw.dual, basis(self.draw.truth, self.draw.training)

        def outside(rows):
            return rows - (rows @ dual) @ vectors

        free = outside(start)
        power = jnp.sum(free**2)
        # Rounding leaves a little of a start that lies within the span; that little must not decide alpha.
        measurable = power > 1e-9 * jnp.sum(start**2)
        alpha = jnp.where(measurable, jnp.sum(free * outside(weights)) / jnp.where(measurable, power, 1), 1.0)
        # Where training adds other vectors too, what it adds along the start is not the start shrinking.
        alpha = alpha if shrinks and self.data.equivariant and not self.draw.holdouts else jnp.ones(())
        learnt = weights - alpha * start
        on_vectors = learnt @ dual
        rest = jnp.linalg.norm(learnt - on_vectors @ vectors, axis=-1)
        size = jnp.linalg.norm(weights, axis=-1)
        return on_vectors, alpha, jnp.max(rest / jnp.where(size > 0, size, 1))

    def noise_geometry(self) -> tuple[Array, Array]:
        """The squared length of each noise vector, and its products with the signals' directions."""
        noise = self.draw.training.noise
        assert noise is not None
        return jnp.sum(noise**2, axis=-1), noise @ self.draw.truth.directions.T

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
            task = eqx.tree_at(lambda t: t.draw, self, draw)
            coins = task.test_coins(_TEST_PRODUCTS)
            assert coins is not None
            values, batch = task._product_test_outputs(params, coins)
            return values, batch.labels, batch.clean_labels

        read = jax.lax.map(part, jnp.arange(parts))
        values, labels, clean = (leaf.reshape(-1)[:count] for leaf in read)
        return values, Batch(values, labels, clean, jnp.ones(count, bool))

    def _product_test_outputs(self, params, coins):
        vectors = vector_model(self.data)
        assert vectors is not None and isinstance(self.network, AbstractProductNetwork)
        weights = self.weights(params)
        signals, noise = vectors.test_products(coins, self.draw.truth, self.draw.space, weights)
        if self.network.separable:  # all inputs at once, the sample last
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


def unbatched(data: AbstractDataModel) -> AbstractDataModel:
    """The model under any batching."""
    return data.data if isinstance(data, AbstractBatching) else data


def vector_model(data: AbstractDataModel) -> AbstractVectorModel | None:
    """The model under any batching, if its inputs are linear in signals and Gaussian vectors."""
    data = unbatched(data)
    return data if isinstance(data, AbstractVectorModel) else None


def basis(truth: Signals, training: Batch) -> Float[Array, "vector column"]:
    """The vectors that training combines: the signals' directions, then the noise of each sample."""
    assert training.noise is not None
    columns = truth.directions.shape[-1]
    return jnp.concatenate([truth.directions, training.noise.reshape(-1, columns)])


def _dual(truth: Signals, training: Batch) -> Float[Array, "column vector"]:
    """The pseudo-inverse of the basis, by a QR: weights @ dual are their coefficients on it."""
    vectors = basis(truth, training)
    q, r = jnp.linalg.qr(vectors.T)
    if len(r) < len(vectors):  # more vectors than dimensions: the smallest coefficients that do it
        return jnp.linalg.pinv(vectors)
    per_sample = (len(vectors) - len(truth.norms)) // len(training.mask)
    real = jnp.concatenate([jnp.ones(len(truth.norms), bool), jnp.repeat(training.mask, per_sample)])
    r = r + jnp.diag(jnp.where(real, 0.0, 1.0))
    dual = jax.scipy.linalg.solve_triangular(r, q.T, lower=False).T
    return jnp.where(real[None], dual, 0)
