"""Fully connected two-layer networks, with a first layer that trains or with random features."""

import functools
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from featlab.core.validation import flag, function, real, whole
from featlab.networks._network import AbstractProductNetwork
from featlab.networks.activations import leaky_relu, relu


class Layers(eqx.Module):
    """Both layers; of a centred network also those it began with, which never train."""

    weights: Float[Array, "neuron column"]
    head: Float[Array, " neuron"]
    origin: tuple[Float[Array, "neuron column"], Float[Array, " neuron"]] | None = None


class AbstractTwoLayer(AbstractProductNetwork):
    r"""$f(x) = N^{-p} \sum_{r \leq N} a_r\, \sigma(\langle w_r, x \rangle)$ with $w_r \sim N(0, s^2 I/d)$, or of
    length s in a random direction, $a_r \sim N(0, 1)$.

    The features of one input are $\sigma(\langle w_r, x \rangle)$, and the output's weights on them
    $N^{-p} a_r$. An input of several patches has the sum of their features.
    """

    width: eqx.AbstractVar[int]
    activation: eqx.AbstractVar[Callable]
    init_scale: eqx.AbstractVar[float]
    unit_rows: eqx.AbstractVar[bool]
    centred: eqx.AbstractVar[bool]
    power: eqx.AbstractVar[float]

    @property
    def output_scale(self):
        """$N^{-p}$."""
        return self.width**-self.power

    @property
    def feature_scale(self):
        """$N^{-1/2}$, under which the kernel of the features is a mean over neurons."""
        return self.width**-0.5

    def vectors(self):
        return self.width

    def init(self, key, space):
        weights_key, head_key = jax.random.split(key)
        rows, space = space.gaussian(weights_key, self.width)
        lengths = jnp.linalg.norm(rows, axis=1, keepdims=True) if self.unit_rows else jnp.sqrt(space.dimension)
        weights = self.init_scale / lengths * rows
        head = jax.random.normal(head_key, (self.width,), jnp.float32).astype(float)
        return Layers(weights, head, (weights, head) if self.centred else None), space

    def weights(self, params):
        return params.weights if params.origin is None else jnp.concatenate([params.weights, params.origin[0]])

    def first_layer(self, params):
        return params.weights

    def head(self, params: Layers) -> Float[Array, " neuron"]:
        """The output's weights on the features."""
        return self.output_scale * params.head

    def with_head(self, params: Layers, head: Float[Array, " neuron"]) -> Layers:
        """The same features under another head; a centred network then has nothing to subtract any more."""
        origin = None if params.origin is None else (params.origin[0], jnp.zeros_like(params.origin[1]))
        return Layers(params.weights, head / self.output_scale, origin)

    def particles(self, params: Layers) -> Float[Array, "neuron column"]:
        """What moves as particles of a mean field: the first-layer weights, one row for each neuron."""
        return params.weights

    def with_particles(self, params: Layers, particles: Float[Array, "neuron column"]) -> Layers:
        """The same network with its particles elsewhere."""
        return Layers(particles, params.head, params.origin)

    def respond(self, params, products):
        layers = self._trainable(params)

        def one(patch):
            value = jnp.tensordot(layers.head, self.activation(patch[: self.width]), axes=1)
            if layers.origin is None:
                return value
            return value - jnp.tensordot(layers.origin[1], self.activation(patch[self.width :]), axes=1)

        return functools.reduce(jnp.add, map(one, products)) * self.output_scale

    def __call__(self, params, inputs):
        return super().__call__(self._trainable(params), inputs)

    def features(self, params, inputs):
        return jnp.sum(self.activation(inputs @ params.weights.T), axis=0)

    def _trainable(self, params):
        """The same parameters, of which those that must not move have no gradient."""
        origin = None if params.origin is None else jax.lax.stop_gradient(params.origin)
        return Layers(params.weights, params.head, origin)


class TwoLayer(AbstractTwoLayer):
    r"""A two-layer network whose first layer trains.

    $$f(x) = N^{-p} \sum_{r \leq N} a_r\, \sigma(\langle w_r, x \rangle), \qquad w_r \sim N(0, s^2 I/d), \quad
    a_r \sim N(0, 1)$$

    $p = \frac12$ is the scaling of tangent kernels and of Moniri et al. (2023), where $a \sim N(0, I/N)$;
    $p = 1$ that of mean fields and of Ba et al. (2022). With `centred` the output is $f - f_0$, that of the
    start being taken away, so that the first residual is $y$ itself. With `unit_rows` each $w_r$ has length s: the
    lengths of Gaussian rows add a direction to the features, see `theory.one_step`.
    """

    width: int = whole(at_least=1, symbol="N", means="neurons", span=(1, 256))
    activation: Callable = function(
        "an activation, such as jnp.tanh or centred(relu)",
        each=True,
        default=relu,
        symbol=r"\sigma",
        means="activation",
    )
    power: float = real(default=0.5, symbol="p", means="power of the width over the output", span=(0, 1))
    init_scale: float = real(default=1.0, at_least=0, symbol="s", means="scale of the start")
    unit_rows: bool = flag(default=False, means="rows of the start have one length")
    centred: bool = flag(default=False, means="output of the start taken away")
    train_head: bool = flag(default=False, means="the head trains")

    @classmethod
    def examples(cls):
        return (
            cls(width=4, activation=jnp.tanh),
            cls(width=3, power=1.0, init_scale=2.0, centred=True),
            cls(width=3, activation=leaky_relu(0.2), unit_rows=True, centred=True, train_head=True),
        )

    def _trainable(self, params):
        head = params.head if self.train_head else jax.lax.stop_gradient(params.head)
        return eqx.tree_at(lambda p: p.head, super()._trainable(params), head)


class RandomFeatures(AbstractTwoLayer):
    r"""A first layer that stays as it was drawn:
    $f(x) = N^{-1/2} \sum_r a_r\, \sigma(\langle w_r, x \rangle)$, linear in $a$.

    Rahimi and Recht (2007).
    """

    width: int = whole(at_least=1, symbol="N", means="neurons", span=(1, 256))
    activation: Callable = function(
        "an activation, such as jnp.tanh or centred(relu)",
        each=True,
        default=relu,
        symbol=r"\sigma",
        means="activation",
    )
    init_scale: float = real(default=1.0, at_least=0, symbol="s", means="scale of the start")
    unit_rows: bool = flag(default=False, means="rows of the start have one length")
    centred: bool = flag(default=False, means="output of the start taken away")

    power: ClassVar[float] = 0.5

    @classmethod
    def examples(cls):
        return (cls(width=4, activation=jnp.tanh, unit_rows=True), cls(width=3, centred=True))

    def _trainable(self, params):
        weights = jax.lax.stop_gradient(params.weights)
        return eqx.tree_at(lambda p: p.weights, super()._trainable(params), weights)
