"""Two ReLUs for each weight vector, one on either side, each silent up to a threshold."""

from __future__ import annotations

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from featlab.core.validation import real, whole
from featlab.networks._network import AbstractProductNetwork


class Neurons(eqx.Module):
    """The weights, which train, and what only an algorithm of its own changes: thresholds, and their unit."""

    weights: Float[Array, "neuron column"]  # w_i
    thresholds: Float[Array, " neuron"]  # b_i
    scale: Float[Array, ""]  # sigma_3, of what is still random in the weights; sigma_1 at the start


class SymmetricReLU(AbstractProductNetwork):
    r"""An odd two-layer network whose neurons are silent on inputs they have little of.

    $$f(x) = \sum_{i \leq m} [\mathrm{ReLU}(\langle w_i, x \rangle - b_i) -
      \mathrm{ReLU}(-\langle w_i, x \rangle - b_i)], \qquad w_i \sim N(0, \sigma_1^2 I), \quad b_i \geq 0$$

    Thresholds begin at `threshold` times $\sigma_1$ and have no gradient: `GrowingThresholds` sets them. With
    `smoothing` each ReLU is its mean over noise $\rho \sim N(0, \sigma_\rho^2)$ inside it,
    $\mathbb{E}\, \mathrm{ReLU}(u + \rho) = u \Phi(u / \sigma_\rho) + \sigma_\rho \varphi(u / \sigma_\rho)$. Of
    an input of several patches the responses are added.

    Allen-Zhu and Li (2020).
    """

    width: int = whole(at_least=1, symbol="m", means="neurons", span=(1, 256))
    init_scale: float = real(default=0.01, at_least=0, symbol=r"\sigma_1", means="scale of the start")
    threshold: float = real(
        default=0.0,
        at_least=0,
        symbol=r"b / \sigma_1",
        means="threshold over the scale of the start",
        span=(0, 10),
    )
    smoothing: float | None = real(
        default=None, above=0, optional=True, symbol=r"\sigma_\rho", means="noise that smooths each neuron"
    )

    @classmethod
    def examples(cls):
        return (
            cls(width=4, init_scale=0.1, threshold=0.5),
            cls(width=3, init_scale=0.1, threshold=1.0, smoothing=0.1),
        )

    def vectors(self):
        return self.width

    def init(self, key, space):
        rows, space = space.gaussian(key, self.width)
        scale = jnp.asarray(self.init_scale, float)
        return Neurons(scale * rows, jnp.full(self.width, self.threshold * scale), scale), space

    def weights(self, params):
        return params.weights

    def respond(self, params, products):
        return functools.reduce(jnp.add, [jnp.sum(self._respond(params, one), axis=0) for one in products])

    def features(self, params, inputs):
        return functools.reduce(jnp.add, [self._respond(params, one) for one in inputs @ params.weights.T])

    def _respond(self, params, products):
        """What each neuron says to one patch; the neuron is the first axis, the sample, if there, the last."""
        thresholds = jax.lax.stop_gradient(params.thresholds)
        thresholds = thresholds.reshape(-1, *[1] * (products.ndim - 1))
        return self._relu(products - thresholds) - self._relu(-products - thresholds)

    def _relu(self, u):
        if self.smoothing is None:
            return jax.nn.relu(u)
        v = u / self.smoothing
        return u * jax.scipy.stats.norm.cdf(v) + self.smoothing * jax.scipy.stats.norm.pdf(v)
