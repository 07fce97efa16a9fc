"""Mean-field networks with several outputs, and the linear attention that reads them in context."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from featlab.core.validation import function, real, whole
from featlab.networks._network import AbstractProductNetwork


class Particles(eqx.Module):
    r"""The particles $(a_r, w_r)$, and the attention matrix $\Gamma$."""

    weights: Float[Array, "neuron column"]  # w_r
    heads: Float[Array, "neuron feature"]  # a_r
    attention: Float[Array, "feature feature"]  # Gamma


class MeanFieldFeatures(AbstractProductNetwork):
    r"""Features that are a mean over particles: $h_\mu(x) = \frac1N \sum_{r \leq N} a_r\, \sigma(\langle w_r, x
    \rangle) \in \mathbb{R}^k$.

    $w_r \sim N(0, s^2 I/d)$ and $a_r \sim N(0, I_k)$. A linear attention layer of matrix $\Gamma$, the identity
    at the start, answers a query $x$ after a prompt of pairs by $\frac1n \sum_i y_i h_\mu(x_i)^\top \Gamma
    h_\mu(x)$; objectives that minimise over it leave it alone. One feature is a plain number.

    Kim and Suzuki (2024).
    """

    width: int = whole(at_least=1, symbol="N", means="particles", span=(1, 256))
    outputs: int = whole(default=1, at_least=1, symbol="k", means="features", span=(1, 20))
    activation: Callable = function(
        "an activation, such as jnp.tanh", each=True, default=jax.nn.sigmoid, symbol=r"\sigma", means="activation"
    )
    init_scale: float = real(default=1.0, at_least=0, symbol="s", means="scale of the start")

    @classmethod
    def examples(cls):
        return (cls(width=4), cls(width=3, activation=jnp.tanh, init_scale=2.0))

    def vectors(self):
        return self.width

    def init(self, key, space):
        weights_key, heads_key = jax.random.split(key)
        rows, space = space.gaussian(weights_key, self.width)
        weights = self.init_scale / jnp.sqrt(space.dimension) * rows
        heads = jax.random.normal(heads_key, (self.width, self.outputs), jnp.float32).astype(float)
        return Particles(weights, heads, jnp.eye(self.outputs)), space

    def weights(self, params):
        return params.weights

    def attention(self, params: Particles) -> Float[Array, "feature feature"]:
        r"""$\Gamma$."""
        return params.attention

    def particles(self, params: Particles) -> tuple[Array, Array]:
        """What moves as a particle: second and first layer, with the neuron as first axis."""
        return params.heads, params.weights

    def with_particles(self, params: Particles, particles: tuple[Array, Array]) -> Particles:
        """The same attention on other particles."""
        heads, weights = particles
        return Particles(weights, heads, params.attention)

    def respond(self, params, products):
        summed = sum(self.activation(patch) for patch in products)
        values = jnp.tensordot(params.heads, summed, axes=((0,), (0,))) / self.width
        return values[0] if self.outputs == 1 else values

    def features(self, params, inputs):
        return jnp.atleast_1d(self(params, inputs))
