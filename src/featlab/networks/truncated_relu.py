"""Two-layer networks of truncated ReLUs, with biases, from a start at which neurons cancel in pairs."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from featlab.core.validation import InputError, real, whole
from featlab.networks._network import AbstractProductNetwork


def truncated_relu(z):
    r"""$\sigma(z) = \min(1, \max(z, 0))$, with $\sigma'(0) = \sigma'(1) = 0$."""
    return jnp.where(z > 0, jnp.where(z < 1, z, 1.0), 0.0)


class BiasedNeurons(eqx.Module):
    r"""The neurons $(w_i, b_i, a_i)$, $i \leq 2m$."""

    weights: Float[Array, "neuron column"]  # w_i
    biases: Float[Array, " neuron"]  # b_i
    head: Float[Array, " neuron"]  # a_i


class TruncatedReLU(AbstractProductNetwork):
    r"""$g(x) = (2m)^{-p} \sum_{i \leq 2m} a_i\, \sigma(\langle w_i, x \rangle + b_i)$ with $\sigma(z) = \min(1,
    \max(z, 0))$.

    For $i \leq m$ $w_i \sim N(0, \sigma_w^2 I)$, $b_i \sim N(0, \sigma_b^2)$ and $a_i \sim N(0, \sigma_a^2)$;
    neuron $m + i$ begins as $(w_i, b_i, -a_i)$, so that $g = 0$ at the start. $p = 0$ is the paper's, $p = 1$ a
    mean field.

    With `noise_scale` neurons are noisy: $\sigma(\langle w_i, x \rangle + b_i + \xi_i)$ with
    $\xi_i \sim N(0, \sigma_\xi^2)$. Taken here is the mean over $\xi$, in closed form; a hinge loss is linear
    while all margins are below 1, and then the gradient is that of the mean loss. Outputs are this mean wherever
    they are asked for, on test inputs too; features are without noise.

    Shi, Wei and Liang (2022).
    """

    centred: ClassVar[bool] = True

    width: int = whole(at_least=2, symbol="2m", means="neurons", span=(2, 256))
    weights_scale: float = real(
        default=1.0, at_least=0, symbol=r"\sigma_w", means="scale of the weights at the start"
    )
    biases_scale: float = real(
        default=0.0, at_least=0, symbol=r"\sigma_b", means="scale of the biases at the start"
    )
    head_scale: float = real(default=1.0, at_least=0, symbol=r"\sigma_a", means="scale of the head at the start")
    power: float = real(default=0.0, symbol="p", means="power of the width over the output", span=(0, 1))
    noise_scale: float | None = real(
        default=None, above=0, optional=True, symbol=r"\sigma_\xi", means="noise inside each neuron"
    )

    @classmethod
    def examples(cls):
        return (
            cls(width=4, weights_scale=0.2, biases_scale=0.1),
            cls(width=6, weights_scale=0.2, biases_scale=0.2, power=1.0, noise_scale=0.3),
        )

    def __check_init__(self):
        if self.width % 2:
            raise InputError(
                f"TruncatedReLU.width must be even, since neurons come in pairs that cancel, got {self.width}."
            )

    def vectors(self):
        return self.width // 2

    def init(self, key, space):
        weights_key, other_key = jax.random.split(key)
        pairs = self.width // 2
        rows, space = space.gaussian(weights_key, pairs)
        normals = jax.random.normal(other_key, (2 * pairs,), jnp.float32).astype(float)
        weights, biases, head = (
            self.weights_scale * rows,
            self.biases_scale * normals[:pairs],
            self.head_scale * normals[pairs:],
        )
        twice = jnp.concatenate([weights, weights]), jnp.concatenate([biases, biases])
        return BiasedNeurons(*twice, jnp.concatenate([head, -head])), space

    def weights(self, params):
        return params.weights

    def head(self, params: BiasedNeurons) -> Float[Array, " neuron"]:
        """The output's weights on the features."""
        return self.width**-self.power * params.head

    def respond(self, params, products):
        summed = sum(self._activation(patch + _along(params.biases, patch)) for patch in products)
        return self.width**-self.power * jnp.tensordot(params.head, summed, axes=1)

    def features(self, params, inputs):
        return jnp.sum(truncated_relu(inputs @ params.weights.T + params.biases[None]), axis=0)

    def _activation(self, z):
        if self.noise_scale is None:
            return truncated_relu(z)
        # sigma(z) = max(z, 0) - max(z - 1, 0), and the mean of a noisy max(z, 0) is s h(z / s).
        scaled = z / self.noise_scale
        return self.noise_scale * (_softened(scaled) - _softened(scaled - 1 / self.noise_scale))


def _softened(u):
    r"""$h(u) = \mathbb{E} \max(u + Z, 0) = u\,\Phi(u) + \varphi(u)$, with $Z \sim N(0, 1)$."""
    return u * jax.scipy.stats.norm.cdf(u) + jax.scipy.stats.norm.pdf(u)


def _along(biases, patch):
    """Biases beside the products of one input, or of many with the sample as last axis."""
    return biases.reshape(-1, *(1,) * (patch.ndim - 1))
