r"""The loss of a denoiser, averaged over the noise by hand.

A patch $x$ is seen as $\alpha_t x + \beta_t \epsilon$, $\epsilon \sim N(0, I_d)$, and a denoiser with tied
weights and quadratic activation, $f(x) = \frac{1}{\sqrt m} \sum_r \langle w_r, x \rangle^2 w_r$, is to find
$\epsilon$. Its products with the weights are Gaussian, so the mean of the squared error over $\epsilon$ is a
polynomial of the products $u_r = \alpha_t \langle w_r, x \rangle$ and of the weights' Gram matrix $G$.
"""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from featlab.core.sees import Sees
from featlab.core.validation import real
from featlab.networks import AbstractNetwork, AbstractProductNetwork
from featlab.objectives._objective import AbstractObjective


class Denoising(AbstractObjective):
    r"""How badly the noise in noisy inputs is found, less the $d/2$ a patch of finding none.

    $$L = \frac{1}{2n} \sum_{i,p} \mathbb{E}_\epsilon \bigl[\|f(\alpha_t x_i^{(p)} + \beta_t \epsilon) -
      \epsilon\|^2 - \|\epsilon\|^2\bigr], \qquad \alpha_t = e^{-t}, \quad \beta_t^2 = 1 - e^{-2t}$$

    with the denoiser $f$ made of the network's weight vectors, and the mean over the noise in closed form:

    $$\mathbb{E} \|f\|^2 = \frac1m \sum_{r,s} G_{rs} \bigl[(u_r^2 + \beta_t^2 G_{rr})(u_s^2 + \beta_t^2 G_{ss}) +
      4 \beta_t^2 u_r u_s G_{rs} + 2 \beta_t^4 G_{rs}^2\bigr], \qquad
      \mathbb{E} \langle f, \epsilon \rangle = \frac{2 \beta_t}{\sqrt m} \sum_r u_r G_{rr}$$

    Nothing is drawn, and inputs are seen through their products with the weights alone: $d$ is free. Labels play
    no part. The aux is $u$.

    Han, Huang, Cao and Zou (2025).
    """

    sees: ClassVar[Sees] = Sees.VECTORS
    of: ClassVar[tuple[type, ...]] = (AbstractProductNetwork,)
    network: AbstractNetwork | None = None
    t: float = real(default=0.2, above=0, symbol="t", means="diffusion time")

    @classmethod
    def examples(cls):
        return (cls(t=0.2),)

    def __call__(self, params, batch, key):
        assert self.network is not None, "bind() the objective to a network first"
        assert isinstance(self.network, AbstractProductNetwork)
        weights = self.network.weights(params)
        alpha, beta = scales(self.t)
        products = alpha * batch.inputs @ weights.T
        return mean_loss(products, weights @ weights.T, batch.mask, beta), products


def scales(t) -> tuple[Array, Array]:
    r"""How much of the input is left after a time t, and how much noise there is: $\alpha_t$ and $\beta_t$."""
    return jnp.exp(-t), jnp.sqrt(-jnp.expm1(-2 * t))


def mean_loss(
    products: Float[Array, "sample patch neuron"],
    gram: Float[Array, "neuron neuron"],
    mask: Bool[Array, " sample"],
    beta,
) -> Float[Array, ""]:
    r"""The mean over samples and noise of $\frac12 \sum_p (\|f\|^2 - 2 \langle f, \epsilon \rangle)$."""
    width = len(gram)
    seen = jnp.where(mask[:, None, None], products, 0).reshape(-1, width)
    real = jnp.repeat(mask, products.shape[1])
    lengths = jnp.diagonal(gram)
    squares = jnp.where(real[:, None], seen**2 + beta**2 * lengths[None], 0)  # E <w, x_t>^2
    # Sums over patches before sums over neurons: matrices of the width's size, however many samples there are.
    fourth = squares.T @ squares + 4 * beta**2 * gram * (seen.T @ seen) + 2 * beta**4 * jnp.sum(real) * gram**2
    power = jnp.sum(gram * fourth) / width
    found = 2 * beta / jnp.sqrt(width) * jnp.sum(seen @ lengths)
    return (power - 2 * found) / 2 / jnp.maximum(jnp.sum(mask), 1)
