"""What a network is: parameters drawn from a space, and the output for one input."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from featlab.fields import Part
from featlab.space import AbstractSpace


class AbstractNetwork(Part):
    """The hypothesis class. The mathematics is written for one input; whoever has many vmaps it.

    A network declares itself `equivariant` when it sees inputs only through inner products with its weights
    and starts from Gaussian weights, or from weights given by their Gram matrix; only then may a run use `Span`.
    """

    equivariant: ClassVar[bool] = False

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
    """A network that sees inputs only through their inner products with its weight vectors."""

    equivariant: ClassVar[bool] = True

    @abc.abstractmethod
    def weights(self, params: Any) -> Float[Array, "row column"]:
        """The weight vectors that meet the input, one a row."""

    @abc.abstractmethod
    def respond(self, params: Any, products: Float[Array, "patch row"]) -> Array:
        """The output, given the inner products of one input's patches with the weights."""

    def __call__(self, params, inputs):
        return self.respond(params, inputs @ self.weights(params).T)


class PlainNetwork(AbstractNetwork):
    """A pair of plain functions as a network: `init(key, d) -> params` and `apply(params, inputs)`."""

    initialise: Any
    apply: Any

    @classmethod
    def examples(cls):
        def initialise(key, d):
            return 0.1 * jax.random.normal(key, (d,))

        def apply(weights, inputs):
            return (inputs @ weights).sum()

        return (cls(initialise, apply),)

    def init(self, key, space):
        return self.initialise(key, int(space.size)), space

    def __call__(self, params, inputs):
        return self.apply(params, inputs)
