"""A kernel machine whose kernel has a metric that can be learnt."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from featlab.core.validation import real
from featlab.networks._network import AbstractNetwork, _stored_dimension


class Expansion(eqx.Module):
    """A function as a sum of kernels around centres."""

    centres: Float[Array, "centre column"]  # z_j
    coefficients: Float[Array, " centre"]  # alpha_j
    metric: Float[Array, "column column"]  # M


class KernelMachine(AbstractNetwork):
    r"""A sum of Laplace kernels under a metric $M$.

    $$f(x) = \sum_j \alpha_j K_M(x, z_j), \quad K_M(x, z) = \exp(-\|x - z\|_M / L), \quad \|v\|_M^2 = v^\top M v$$

    It begins without centres, as $f = 0$ and $M = I$: `RecursiveFeatureMachine` makes centres of the training
    inputs. An input of several patches counts as their sum. Points whose squared distance is less than `floor`
    rounding errors of their squared lengths count as one, where the kernel is 1 and its gradient 0.
    """

    bandwidth: float = real(default=10.0, above=0, symbol="L", means="bandwidth of the kernel")
    floor: float = real(default=100.0, at_least=0, means="rounding errors within which two points are one")

    def init(self, key, space):
        d = _stored_dimension(space)
        return Expansion(jnp.zeros((0, d)), jnp.zeros(0), jnp.eye(d)), space

    def __call__(self, params, inputs):
        point = jnp.sum(inputs, axis=0)
        return self.kernel(self.distances(params, point[None]))[0] @ params.coefficients

    def kernel(self, distances: Array) -> Array:
        r"""$\exp(-\|x - z\|_M / L)$."""
        return jnp.exp(-distances / self.bandwidth)

    def distances(self, params: Expansion, points: Float[Array, "point column"]) -> Float[Array, "point centre"]:
        r"""$\|x - z_j\|_M$ of each point from each centre, by one matrix product."""
        turned = points @ params.metric
        here = jnp.sum(turned * points, axis=1)[:, None]
        there = jnp.sum((params.centres @ params.metric) * params.centres, axis=1)[None]
        squared = here + there - 2 * turned @ params.centres.T
        apart = squared > self.floor * jnp.finfo(squared.dtype).eps * (here + there)
        return jnp.where(apart, jnp.sqrt(jnp.where(apart, squared, 1)), 0)

    def gradients(self, params: Expansion, points: Array, distances: Array | None = None) -> Array:
        r"""$\nabla f(x) = -\frac1L M \sum_j w_j(x)\, (x - z_j)$, $w_j(x) = \alpha_j K_M(x, z_j) / \|x - z_j\|_M$.

        Of many points at once, $\sum_j w_j x$ and $\sum_j w_j z_j$ being matrix products: no array of points by
        centres by columns is made. `distances`, if given, are those of the points from the centres.
        """
        distances = self.distances(params, points) if distances is None else distances
        apart = distances > 0
        nearness = jnp.where(apart, self.kernel(distances) / jnp.where(apart, distances, 1), 0)
        weights = nearness * params.coefficients[None]
        pulls = jnp.sum(weights, axis=1)[:, None] * points - weights @ params.centres
        return -(pulls @ params.metric) / self.bandwidth
