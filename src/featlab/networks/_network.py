"""What a network is: parameters drawn from a space, and the output for one input."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from featlab.core.sees import Sees
from featlab.core.space import AbstractSpace
from featlab.core.validation import InputError, Part, function


class AbstractNetwork(Part):
    """The hypothesis class. The mathematics is written for one input; the caller vmaps it over a batch.

    It `sees` no coordinates when it meets inputs only through inner products with its weights and starts from
    Gaussian weights, or from weights given by their Gram matrix.
    """

    sees: ClassVar[Sees] = Sees.COORDINATES

    def vectors(self) -> int:
        """How many d-vectors it draws: the span must make room for them."""
        return 0

    @property
    def starts_first(self) -> bool:
        """Whether its weights must be drawn before the data's noise, being given by their Gram matrix."""
        return False

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray, space: AbstractSpace) -> tuple[Any, AbstractSpace]:
        """Initial parameters."""

    @abc.abstractmethod
    def __call__(self, params: Any, inputs: Array) -> Array:
        """The output for one input."""

    def features(self, params: Any, inputs: Array) -> Array:
        """What the last layer sees of one input, where that makes sense."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its features are.")


class AbstractProductNetwork(AbstractNetwork):
    """A network that sees inputs only through their inner products with its weight vectors.

    It `sees` nothing but products when it says, by `without_weights`, what it has beside its weights, and when
    `respond` takes many samples at once.
    """

    sees: ClassVar[Sees] = Sees.VECTORS
    classes: ClassVar[tuple[int, ...]] = ()  # of the groups that the weights come in, where they do

    @abc.abstractmethod
    def weights(self, params: Any) -> Float[Array, "row column"]:
        """The weight vectors that meet the input, one a row."""

    def without_weights(self, params: Any) -> Any:
        """All parameters but the weight vectors."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it has beside its weights.")

    def first_layer(self, params: Any) -> Float[Array, "neuron column"]:
        """Those of the weight vectors that training may move, one for each neuron."""
        return self.weights(params)

    @abc.abstractmethod
    def respond(self, params: Any, products: Sequence[Array] | Array) -> Array:
        """The output, given the inner products of each of one input's patches with the weights.

        `params` may lack its weights. Where products have one more axis, at the end, it is the sample, and so
        has the output: sums over filters then run over whole rows of samples, several times faster.
        """

    def __call__(self, params, inputs):
        return self.respond(params, inputs @ self.weights(params).T)


class AbstractAttention(AbstractProductNetwork):
    """A network of softmax attention over the tokens of an input."""

    @property
    @abc.abstractmethod
    def groups(self) -> Mapping[str, slice]:
        """Which rows of the weights are queries, keys and values: `query`, `key` and `value`."""

    @abc.abstractmethod
    def attention(self, params: Any, products: Any) -> Float[Array, "query key *sample"]:
        """How much of each key a query attends to, given every token's products with the weights."""


class PlainNetwork(AbstractNetwork):
    """A pair of plain functions as a network: `init(key, d) -> params` and `apply(params, inputs)`."""

    initialise: Callable = function("a function of a key and d that returns parameters")
    apply: Callable = function("a function of parameters and one input")

    @classmethod
    def examples(cls):
        def initialise(key, d):
            return 0.1 * jax.random.normal(key, (d,))

        def apply(weights, inputs):
            return (inputs @ weights).sum()

        return (cls(initialise, apply),)

    def init(self, key, space):
        return self.initialise(key, _stored_dimension(space)), space

    def __call__(self, params, inputs):
        return self.apply(params, inputs)


class EquinoxNetwork(AbstractNetwork):
    """Any Equinox module as a network: `make(key, d)` returns the module, which is called with one input.

    The module's arrays are the parameters; what else it holds (activation functions, sizes) stays as `make` says.
    """

    make: Callable = function("a function of a key and d that returns an Equinox module")

    @classmethod
    def examples(cls):
        def make(key, d):
            return eqx.nn.Sequential([eqx.nn.Lambda(jnp.ravel), eqx.nn.MLP(2 * d, "scalar", 8, 1, key=key)])

        return (cls(make),)

    def init(self, key, space):
        return eqx.filter(self.make(key, _stored_dimension(space)), eqx.is_inexact_array), space

    def __call__(self, params, inputs):
        skeleton = eqx.filter_eval_shape(self.make, jax.random.key(0), inputs.shape[-1])
        fixed = eqx.filter(skeleton, lambda leaf: not isinstance(leaf, jax.ShapeDtypeStruct))
        return eqx.combine(params, fixed)(inputs)


def _stored_dimension(space: AbstractSpace) -> int:
    size = getattr(space, "size", None)
    if not isinstance(size, int):
        raise InputError("A network that is told d as a length needs Ambient, where vectors are stored whole.")
    return size
