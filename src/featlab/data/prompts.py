"""Tasks that share a few features: prompts for learning in context."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from featlab.core.validation import InputError, function, real, whole
from featlab.data._data import AbstractDataModel, Batch
from featlab.data._fields import dimension, sample_size

_NODES = 48  # of a Gauss-Hermite rule in each direction: the covariance of sigmoids to about 1e-7


class FeatureTeacher(eqx.Module):
    r"""The network behind the tasks: $f^\circ(x) = \frac1M \sum_{r \leq M} a_r^\circ \sigma(\langle w_r^\circ, x
    \rangle)$."""

    weights: Float[Array, "neuron column"]
    heads: Float[Array, "neuron feature"]


class FeatureTasks(AbstractDataModel):
    r"""Regression tasks $y = \langle v_t, f^\circ(x) \rangle$ with $v_t \sim N(0, I_k)$, that share the features
    $f^\circ$; $x \sim N(0, I_d)$.

    $f^\circ$ is a mean-field network of $M$ neurons, $w^\circ_r \sim N(0, s^2 I/d)$, and $\mathbb{E} f^\circ
    f^{\circ\top} = r^\circ I_k$ over the law of $x$: the second layer of a Gaussian draw is whitened by the
    covariance of the neurons, which is computed by quadrature in the plane of each pair of weights. The
    expectation over tasks being known, labels are the features themselves, $f^\circ(x) \in \mathbb{R}^k$ (a
    number for $k = 1$); `prompts` draws tasks.

    Kim and Suzuki (2024).
    """

    n: int = sample_size()
    d: float = dimension()
    features: int = whole(default=5, at_least=1, symbol="k", means="features behind all tasks", span=(1, 20))
    width: int = whole(default=30, at_least=1, symbol="M", means="neurons of the teacher", span=(1, 200))
    activation: Callable = function(
        "a bounded activation, such as jnp.tanh",
        default=jax.nn.sigmoid,
        symbol=r"\sigma",
        means="activation of the teacher",
    )
    steepness: float = real(default=2.0, above=0, symbol="s", means="typical size of what a neuron sees")
    variance: float = real(default=1.0, above=0, symbol=r"r^\circ", means="variance of each feature")

    @classmethod
    def examples(cls):
        return (cls(n=6, d=40, features=2, width=4), cls(n=5, d=40, features=1, width=3, activation=jnp.tanh))

    def __check_init__(self):
        if self.width < self.features:
            raise InputError(
                f"FeatureTasks.width must be at least the number of features, {self.features}, got {self.width}; "
                "fewer neurons cannot make that many uncorrelated features."
            )

    def truth(self, key, space):
        weights_key, heads_key = jax.random.split(key)
        rows, space = space.gaussian(weights_key, self.width)
        weights = self.steepness / jnp.sqrt(space.dimension) * rows
        heads = jax.random.normal(heads_key, (self.width, self.features), jnp.float32).astype(float)
        moments = neuron_moments(self.activation, weights) / self.width**2
        heads = whitened(heads, moments) * jnp.sqrt(self.variance)
        return FeatureTeacher(weights, heads), space

    def draw(self, key, truth, space, rows):
        mask = jnp.arange(rows) < self.n
        inputs, space = space.gaussian(key, rows, real=mask)
        return self._labelled(truth, inputs, mask), space

    def fresh(self, key, truth, space, count, *, training=False):
        return self._labelled(truth, space.fresh(key, count), jnp.ones(count, bool))

    def prompts(self, key, truth, space, tasks: int, length: int) -> tuple[Batch, Array]:
        r"""Finite prompts: T tasks of `length` pairs and a query each, one after the other, and the $v_t$.

        The rows of task t are `length + 1` following ones, of which the last is the query; labels are $\langle
        v_t, f^\circ(x) \rangle$.
        """
        input_key, task_key = jax.random.split(key)
        batch = self.fresh(input_key, truth, space, tasks * (length + 1))
        directions = task_vectors(task_key, tasks, self.features)
        task = jnp.repeat(jnp.arange(tasks), length + 1)
        features = batch.labels.reshape(len(task), self.features)
        labels = jnp.sum(features * directions[task], axis=1)
        return Batch(batch.inputs, labels, labels, batch.mask, task), directions

    def _labelled(self, truth, inputs, mask):
        labels = self.activation(inputs @ truth.weights.T) @ truth.heads / self.width
        labels = labels[:, 0] if self.features == 1 else labels
        return Batch(inputs[:, None], labels, labels, mask)


def task_vectors(key, tasks: int, features: int) -> Float[Array, "task feature"]:
    r"""$v_t \sim N(0, I_k)$, each by its number, so that more tasks leave the first as they are."""

    def one(t):
        return jax.random.normal(jax.random.fold_in(key, t), (features,), jnp.float32)

    return jax.vmap(one)(jnp.arange(tasks)).astype(float)


def neuron_moments(activation: Callable, weights: Float[Array, "neuron column"]) -> Float[Array, "neuron neuron"]:
    r"""$\mathbb{E}\,\sigma(\langle w_i, x \rangle) \sigma(\langle w_j, x \rangle)$ over $x \sim N(0, I)$."""
    nodes, masses = np.polynomial.hermite_e.hermegauss(_NODES)
    nodes, masses = jnp.asarray(nodes), jnp.asarray(masses / masses.sum())
    lengths = jnp.linalg.norm(weights, axis=1)
    cosines = jnp.clip((weights / lengths[:, None]) @ (weights / lengths[:, None]).T, -1, 1)

    def pair(length, other, cosine):
        first = activation(length * nodes)
        sine = jnp.sqrt(jnp.maximum(1 - cosine**2, 0))
        second = activation(other * (cosine * nodes[:, None] + sine * nodes[None])) @ masses
        return jnp.sum(masses * first * second)

    def row(length, cosine):
        return jax.vmap(pair, in_axes=(None, 0, 0))(length, lengths, cosine)

    moments = jax.lax.map(lambda one: row(*one), (lengths, cosines))
    return (moments + moments.T) / 2


def whitened(heads: Float[Array, "neuron feature"], moments: Float[Array, "neuron neuron"]):
    """The heads, combined among themselves so that the features they make are orthonormal."""
    lower = jnp.linalg.cholesky(heads.T @ moments @ heads)
    return jax.scipy.linalg.solve_triangular(lower, heads.T, lower=True).T
