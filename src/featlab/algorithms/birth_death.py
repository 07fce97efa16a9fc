"""Particles that die and are born again, and that are pushed off saddles: the modified mean-field flow."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from featlab.algorithms._algorithm import AbstractAlgorithm, State
from featlab.algorithms.adaptive import Adam
from featlab.core.sees import Sees
from featlab.core.validation import InputError, part, probability, real, whole


class BirthDeath(AbstractAlgorithm):
    r"""Another algorithm, after each step of which every particle dies with a small probability and is replaced by
    a draw of the start's law; now and then all are moved by a random field.

    The replacement keeps the density of the start's law over that of the moment bounded. The field is Gaussian
    with the square of the Hessian as kernel, $\xi = \frac{\epsilon}{\sqrt N} H z$ with $z_r \sim N(0, I)$ for each
    particle and $H = N \nabla^2 L$ over the particles: it points where the curvature is. What the inner algorithm
    remembers of a particle that died it keeps.

    Kim and Suzuki (2024).
    """

    inner: AbstractAlgorithm = part(AbstractAlgorithm, "an algorithm, such as Adam(0.02)")
    rate: float = probability(default=1e-3, symbol="p", means="particles replaced in a step", span=(0, 0.1))
    perturbation: float | None = real(
        default=None, at_least=0, optional=True, symbol=r"\epsilon", means="strength of the random field"
    )
    every: int = whole(default=100, at_least=1, means="steps between two random fields", span=(1, 1000))

    sees: ClassVar[Sees] = Sees.COORDINATES  # new particles are fresh d-vectors

    @classmethod
    def examples(cls):
        return (cls(Adam(0.05), rate=0.3), cls(Adam(0.05), rate=0.1, perturbation=0.1, every=2))

    @property
    def holdouts(self):
        return self.inner.holdouts

    def init(self, key, problem):
        if not hasattr(problem.network, "with_particles"):
            raise InputError(
                f"BirthDeath replaces particles, and {type(problem.network).__name__} does not say what its "
                "particles are; use MeanFieldFeatures, or a network with particles() and with_particles()."
            )
        return self.inner.init(key, problem)

    def step(self, key, state, problem):
        inner_key, coin_key, birth_key, push_key = jax.random.split(key, 4)
        after, info = self.inner.step(inner_key, state, problem)
        params = self._replaced(coin_key, birth_key, after.params, problem)
        if self.perturbation is not None:
            params = jax.lax.cond(
                (state.step + 1) % self.every == 0,
                lambda params: self._pushed(push_key, params, state.step, problem),
                lambda params: params,
                params,
            )
        return State(params, after.step, after.memory), info

    def _replaced(self, coin_key, birth_key, params, problem):
        network: Any = problem.network
        old = network.particles(params)
        new = network.particles(network.init(birth_key, problem.draw.space)[0])
        lots = jax.random.uniform(coin_key, (_count(old),), jnp.float32)

        def chosen(one, other):
            return jnp.where((lots < self.rate).reshape(-1, *[1] * (one.ndim - 1)), other, one)

        return network.with_particles(params, jax.tree.map(chosen, old, new))

    def _pushed(self, key, params, step, problem):
        network: Any = problem.network
        batch_key, value_key, field_key = jax.random.split(key, 3)
        here, batch = network.particles(params), problem.batch(batch_key, step)
        leaves, kind = jax.tree.flatten(here)
        normals = [
            jax.random.normal(one_key, leaf.shape, jnp.float32).astype(leaf.dtype)
            for one_key, leaf in zip(jax.random.split(field_key, len(leaves)), leaves)
        ]

        def value(particles):
            return problem.value(network.with_particles(params, particles), batch, value_key)

        field = jax.jvp(jax.grad(value), (here,), (jax.tree.unflatten(kind, normals),))[1]
        size = self.perturbation * _count(here) ** 0.5  # N of the Hessian, over N^1/2
        return network.with_particles(params, jax.tree.map(lambda one, xi: one + size * xi, here, field))


def _count(particles) -> int:
    return len(jax.tree.leaves(particles)[0])
