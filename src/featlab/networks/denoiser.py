r"""A two-layer denoiser whose decoder is its encoder.

What it makes of one patch of a noisy input $x$ is $f(x) = \frac{1}{\sqrt m} \sum_r \langle w_r, x \rangle^2 w_r$,
the noise it takes to be in $x$. It is the gradient of an energy, and the energy is its output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from featlab.core.sees import Sees
from featlab.core.validation import InputError, real, whole
from featlab.networks._network import AbstractProductNetwork


class TiedWeights(eqx.Module):
    """What the denoiser learns: encoder and decoder in one."""

    weights: Float[Array, "neuron column"] | None  # w_r


class Denoiser(AbstractProductNetwork):
    r"""The gradient of a cubic energy, summed over patches:

    $$f(x^{(p)}) = \nabla \Phi(x^{(p)}) = \frac{1}{\sqrt m} \sum_{r=1}^m \langle w_r, x^{(p)} \rangle^2\, w_r,
      \qquad \Phi(x) = \frac{1}{3 \sqrt m} \sum_p \sum_r \langle w_r, x^{(p)} \rangle^3, \qquad
      w_r \sim N(0, \sigma_0^2 I)$$

    Its output for one input is $\Phi(x)$, a number; `denoise` gives $f$, patch by patch. Noise of scale $\beta_t$
    has the score $-f / \beta_t$, so that $-\Phi / \beta_t$ is the logarithm of the density it has learnt, up to a
    constant. It is trained by `Denoising`, whose loss contains the lengths of the weights: $d$ is free but finite.

    Han, Huang, Cao and Zou (2025).
    """

    sees: ClassVar[Sees] = Sees.PRODUCTS

    width: int = whole(at_least=1, symbol="m", means="neurons", span=(1, 256))
    init_scale: float = real(default=0.001, at_least=0, symbol=r"\sigma_0", means="scale of the start")

    @classmethod
    def examples(cls):
        return (cls(width=4, init_scale=0.1),)

    def vectors(self):
        return self.width

    def init(self, key, space):
        if getattr(space, "infinite", False):
            raise InputError(
                "Denoiser needs a finite d, got inf: its loss contains the lengths of its weights; give a large d."
            )
        rows, space = space.gaussian(key, self.width)
        return TiedWeights(self.init_scale * rows), space

    def weights(self, params):
        return params.weights

    def without_weights(self, params):
        return TiedWeights(None)

    def respond(self, params, products: Sequence[Array] | Array):
        return sum(jnp.sum(patch**3, axis=0) for patch in products) / (3 * jnp.sqrt(self.width))

    def denoise(self, params: Any, inputs: Float[Array, "patch column"]) -> Float[Array, "patch column"]:
        """The noise that it takes to be in each patch of one input."""
        return decoded(params.weights, inputs @ params.weights.T)

    def features(self, params, inputs):
        return (inputs @ params.weights.T) ** 2


def decoded(
    weights: Float[Array, "neuron column"], products: Float[Array, "*patch neuron"]
) -> Float[Array, "*patch column"]:
    r"""$\frac{1}{\sqrt m} \sum_r \langle w_r, x \rangle^2 w_r$, from the products of patches with the weights."""
    return products**2 @ weights / jnp.sqrt(len(weights))
