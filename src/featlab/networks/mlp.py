r"""Fully connected networks of any depth, in four scalings with the width.

A scaling says how large a layer's weights are at the start and how fast they move. What a network computes with is
$W = A\,\theta$, a fixed multiplier times what is trained: descent on $\theta$ with one rate $\eta$ for all layers
is descent on $W$ with the layer's rate $\eta A^2$. So each scaling is a choice of the standard deviation of $W$ at
the start and of its rate, both as powers of the width.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from featlab.core.validation import InputError, function, real, whole
from featlab.networks._network import AbstractProductNetwork
from featlab.networks.activations import relu


class Powers(NamedTuple):
    """How a layer depends on the width $m$: $W$ starts as $m^{start}$ and moves at the rate $m^{rate}$."""

    start: float  # of the standard deviation of W; beside it the first layer has d^(-1/2)
    rate: float  # of the learning rate that W has; the multiplier of the forward pass is A = m^(rate / 2)


# Powers of m for the first layer (and all biases), for the layers between, and for the last one.
SCALINGS: dict[str, tuple[Powers, Powers, Powers]] = {
    "standard": (Powers(0, 0), Powers(-1 / 2, 0), Powers(-1 / 2, 0)),
    "ntk": (Powers(0, 0), Powers(-1 / 2, -1), Powers(-1 / 2, -1)),
    "mean_field": (Powers(0, 1), Powers(-1, 0), Powers(-1, -1)),
    "maximal_update": (Powers(0, 1), Powers(-1 / 2, 0), Powers(-1, -1)),
}


class Stack(eqx.Module):
    """What is trained of each layer, and of the biases where there are any."""

    first: Float[Array, "neuron column"]
    between: tuple[Float[Array, "neuron neuron"], ...]
    last: Float[Array, " neuron"]
    biases: tuple[Float[Array, " neuron"], ...]  # of each hidden layer, or none


class MLP(AbstractProductNetwork):
    r"""A network of $L$ hidden layers of one width, in one of four scalings.

    $$h_1 = \sigma(W_1 x + b_1), \quad h_l = \sigma(W_l h_{l-1} + b_l), \quad f(x) = \langle W_{L+1}, h_L \rangle,
    \qquad W = A\,\theta, \quad \theta \sim N(0, B^2)$$

    Gradient descent on $\theta$ with the rate $\eta$ moves $W$ at the rate $\eta A^2$. With the width $m$, $A$,
    the start $AB$ of $W$ (times `init_scale`, or `output_scale` for the last layer) and its rate $A^2$ are

    | scaling | | first layer | between | last layer |
    |---|---|---|---|---|
    | `standard` | $A$ | $1$ | $1$ | $1$ |
    | | start | $d^{-1/2}$ | $m^{-1/2}$ | $m^{-1/2}$ |
    | | rate | $1$ | $1$ | $1$ |
    | `ntk` | $A$ | $1$ | $m^{-1/2}$ | $m^{-1/2}$ |
    | | start | $d^{-1/2}$ | $m^{-1/2}$ | $m^{-1/2}$ |
    | | rate | $1$ | $m^{-1}$ | $m^{-1}$ |
    | `mean_field` | $A$ | $m^{1/2}$ | $1$ | $m^{-1/2}$ |
    | | start | $d^{-1/2}$ | $m^{-1}$ | $m^{-1}$ |
    | | rate | $m$ | $1$ | $m^{-1}$ |
    | `maximal_update` | $A$ | $m^{1/2}$ | $1$ | $m^{-1/2}$ |
    | | start | $d^{-1/2}$ | $m^{-1/2}$ | $m^{-1}$ |
    | | rate | $m$ | $1$ | $m^{-1}$ |

    The rates are those of gradient descent; an algorithm that divides by the gradient's size moves $W$ by $A$
    instead. Standard and `ntk` are one network at the start, and so are the last two if $L = 1$, where they remain
    one: $f = \frac1m \sum_r a_r \sigma(\langle w_r, x \rangle)$ with the rate $\eta m$. In one step of fixed
    $\eta$, as $m$ grows, features move by $m^{-1/2}$ with `ntk` and by order 1 in the last two, where the output
    begins as $m^{-1/2}$; with `standard` the output moves by $m$ if $L = 1$, by more if $L > 1$. A mean field of
    two hidden layers or more begins with $h_2 \to 0$.

    Biases, where `bias_scale` is given, start as $N(0, s_b^2)$ and have the first layer's rate. An input of
    several patches has the sum of their $h_1$. The features of an input are $h_L$.

    Jacot et al. (2018); Mei, Montanari and Nguyen (2018); Yang and Hu (2021).
    """

    width: int = whole(at_least=1, symbol="m", means="neurons in each layer", span=(1, 256))
    depth: int = whole(default=1, at_least=1, symbol="L", means="hidden layers", span=(1, 8))
    activation: Callable = function(
        "an activation, such as jnp.tanh or relu", each=True, default=relu, symbol=r"\sigma", means="activation"
    )
    scaling: str = "standard"
    init_scale: float = real(default=1.0, at_least=0, symbol="s", means="scale of the start")
    output_scale: float = real(default=1.0, at_least=0, means="scale of the last layer at the start")
    bias_scale: float | None = real(
        default=None, at_least=0, optional=True, symbol="s_b", means="scale of the biases at the start"
    )

    @classmethod
    def examples(cls):
        return (
            cls(width=4),
            cls(width=3, activation=jnp.tanh, scaling="mean_field"),
            cls(width=3, depth=3, scaling="maximal_update", bias_scale=0.5),
            cls(width=4, depth=2, activation=jnp.tanh, scaling="ntk", init_scale=1.5, output_scale=0.5),
        )

    def __check_init__(self):
        if self.scaling not in SCALINGS:
            raise InputError(f"MLP.scaling must be one of {', '.join(SCALINGS)}, got {self.scaling!r}.")

    def multipliers(self) -> tuple[float, float, float]:
        """$A$ of the first layer, of those between and of the last one."""
        first, between, last = (self.width ** (powers.rate / 2) for powers in SCALINGS[self.scaling])
        return first, between, last

    def rates(self) -> tuple[float, float, float]:
        r"""$A^2$: what a learning rate is multiplied by for the $W$ of the first layer, of those between, of the
        last one."""
        first, between, last = (a**2 for a in self.multipliers())
        return first, between, last

    def starts(self) -> tuple[float, float, float]:
        r"""The standard deviations of $W$ at the start; of the first layer, times $\sqrt d$."""
        first, between, last = (self.width**powers.start for powers in SCALINGS[self.scaling])
        return self.init_scale * first, self.init_scale * between, self.output_scale * last

    def vectors(self):
        return self.width

    def init(self, key, space):
        first_key, rest_key = jax.random.split(key)
        rows, space = space.gaussian(first_key, self.width)
        m, squares = self.width, (self.depth - 1) * self.width**2
        of_biases = 0 if self.bias_scale is None else self.depth
        drawn = jax.random.normal(rest_key, (squares + (1 + of_biases) * m,), jnp.float32).astype(float)
        first, between, last = (start / a for start, a in zip(self.starts(), self.multipliers()))  # B
        vectors = drawn[squares:].reshape(1 + of_biases, m)
        biases = () if self.bias_scale is None else tuple(self.bias_scale / self.multipliers()[0] * vectors[1:])
        return Stack(
            first / jnp.sqrt(space.dimension) * rows,
            tuple(between * drawn[:squares].reshape(-1, m, m)),
            last * vectors[0],
            biases,
        ), space

    def weights(self, params):
        return self.multipliers()[0] * params.first

    def biases(self, params: Stack) -> tuple[Float[Array, " neuron"], ...]:
        """$b_1, ..., b_L$: zeros where there are none."""
        given = params.biases or (jnp.zeros(self.width),) * self.depth
        return tuple(self.multipliers()[0] * bias for bias in given)

    def respond(self, params, products):
        return self.multipliers()[2] * params.last @ self._hidden(params, products)

    def features(self, params, inputs):
        return self._hidden(params, inputs @ self.weights(params).T)

    def _hidden(self, params, products) -> Float[Array, " neuron"]:
        biases = self.biases(params)
        awake = [self.activation(patch + _along(biases[0], patch)) for patch in products]
        hidden = functools.reduce(jnp.add, awake)
        for weights, bias in zip(params.between, biases[1:]):
            mixed = self.multipliers()[1] * weights @ hidden
            hidden = self.activation(mixed + _along(bias, mixed))
        return hidden


def _along(bias, products):
    """Biases beside the products of one input, or of many with the sample as last axis."""
    return bias.reshape(-1, *[1] * (products.ndim - 1))
