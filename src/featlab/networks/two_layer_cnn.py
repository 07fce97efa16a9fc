"""The two-layer convolutional network of benign-overfitting theory, and its published variants."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from featlab.core.sees import Sees
from featlab.core.validation import flag, function, real, whole
from featlab.networks._network import AbstractProductNetwork
from featlab.networks.activations import leaky_relu, relu, relu_power


class Filters(eqx.Module):
    """What the network learns. The classes are +1, then -1."""

    filters: Float[Array, "class filter column"]
    bias: Float[Array, "class filter"] | None = None
    head: Float[Array, "class filter"] | None = None


class TwoLayerCNN(AbstractProductNetwork):
    r"""Two classes of filters, shared by all patches, under a head of +1 and -1.

    $$f(x) = F_{+1}(x) - F_{-1}(x), \qquad
      F_j(x) = \frac1m \sum_{r=1}^{m} \sum_p \sigma(\langle w_{j,r}, x^{(p)} \rangle), \qquad
      w_{j,r} \sim N(0, \sigma_0^2 I)$$

    The variants are those of published scripts: sums over filters instead of means, means over patches instead
    of sums, a bias $b_{j,r}$ inside the activation, a head that trains, and PyTorch's default start, where
    weights and biases are uniform on $\pm d^{-1/2}$ (`init_scale` then plays no part).
    """

    sees: ClassVar[Sees] = Sees.PRODUCTS

    width: int = whole(at_least=1, symbol="m", means="filters in each class", span=(1, 256))
    activation: Callable = function(
        "an activation, such as relu or relu_power(3)",
        each=True,
        default=relu,
        symbol=r"\sigma",
        means="activation",
    )
    init_scale: float = real(default=0.01, at_least=0, symbol=r"\sigma_0", means="scale of the start")
    average_filters: bool = flag(default=True, means="mean over filters, not their sum")
    average_patches: bool = flag(default=False, means="mean over patches, not their sum")
    bias: bool = flag(default=False, means="a bias in each filter")
    train_head: bool = flag(default=False, means="the head trains")
    uniform_start: bool = flag(default=False, means="PyTorch's default start")

    classes: ClassVar[tuple[int, ...]] = (1, -1)

    @classmethod
    def examples(cls):
        return (
            cls(width=3, init_scale=0.1),
            cls(width=3, activation=relu_power(3), init_scale=0.3),
            cls(width=2, activation=leaky_relu(0.2), train_head=True, average_filters=False, init_scale=0.1),
            cls(width=3, uniform_start=True, bias=True, average_patches=True),
        )

    @property
    def starts_first(self):
        return self.uniform_start

    @property
    def output_scale(self) -> float:
        """The factor of one filter's response in the output: 1/m, or 1 where filters are summed."""
        return 1 / self.width if self.average_filters else 1.0

    def vectors(self):
        return 2 * self.width

    def init(self, key, space):
        filter_key, bias_key = jax.random.split(key)
        shape = (2, self.width)
        if self.uniform_start:
            bound = 1 / jnp.sqrt(space.dimension)
            rows, space = space.uniform(filter_key, 2 * self.width)
            rows = bound * rows
            bias = bound * jax.random.uniform(bias_key, shape, jnp.float32, -1, 1).astype(float)
        else:
            rows, space = space.gaussian(filter_key, 2 * self.width)
            rows = self.init_scale * rows
            bias = jnp.zeros(shape)
        params = Filters(
            rows.reshape(*shape, -1), bias if self.bias else None, self._signs() if self.train_head else None
        )
        return params, space

    def weights(self, params):
        return params.filters.reshape(2 * self.width, -1)

    def without_weights(self, params):
        return eqx.tree_at(lambda p: p.filters, params, None)

    def respond(self, params, products):
        head = self._signs() if params.head is None else params.head
        return jnp.einsum("jr,jr...->...", head, self._features(params, products)) * self.output_scale

    def features(self, params, inputs):
        return self._features(params, inputs @ self.weights(params).T)

    def _features(self, params, products):
        def one(patch):
            pre_activations = patch.reshape(2, self.width, *patch.shape[1:])
            if params.bias is not None:
                # A product with ones, because its derivative, unlike that of a broadcast, is a product again.
                ones = jnp.ones(patch.shape[1:])
                pre_activations = pre_activations + jnp.tensordot(params.bias, ones, axes=0)
            return self.activation(pre_activations)

        total = functools.reduce(jnp.add, map(one, products))
        return total / len(products) if self.average_patches else total

    def _signs(self):
        return jnp.broadcast_to(jnp.array(self.classes, float)[:, None], (2, self.width))
