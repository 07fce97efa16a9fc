"""Neurons as particles: mean-field Langevin dynamics, and without noise the Wasserstein gradient flow."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from featlab.algorithms._algorithm import AbstractAlgorithm, Info, State
from featlab.core.sees import Sees
from featlab.core.validation import InputError, real
from featlab.problem import AbstractProblem


class AbstractParticleFlow(AbstractAlgorithm):
    r"""Particles $w_1, ..., w_N$ that follow $-\nabla \frac{\delta F}{\delta\mu}(w_r) = -N \frac{\partial F}
    {\partial w_r}$, $F$ being the objective of their empirical law $\mu$.

    All other parameters stay where they are. Time is the learning rate times the number of steps, whatever the
    number of particles.
    """

    whole_inputs: ClassVar[bool] = False

    def init(self, key, problem):
        particle_network(problem)
        return State(problem.start, jnp.zeros((), int))

    def step(self, key, state, problem):
        network = particle_network(problem)
        batch_key, objective_key, noise_key = jax.random.split(key, 3)
        batch = problem.batch(batch_key, state.step)
        value, gradient = problem.value_and_grad(state.params, batch, objective_key)
        particles, slopes = network.particles(state.params), network.particles(gradient)
        leaves, form = jax.tree.flatten(particles)
        moved = [
            self.moved(jax.random.fold_in(noise_key, i), leaf, len(leaf) * slope)
            for i, (leaf, slope) in enumerate(zip(leaves, jax.tree.leaves(slopes)))
        ]
        params = network.with_particles(state.params, jax.tree.unflatten(form, moved))
        return State(params, state.step + 1), Info(value)

    @abc.abstractmethod
    def moved(self, key: PRNGKeyArray, particles: Array, drift: Array) -> Array:
        """Where the particles go, their `drift` being the gradient of the first variation at each."""


class Langevin(AbstractParticleFlow):
    r"""Mean-field Langevin dynamics, one Euler step at a time.

    $$w_r \leftarrow w_r - \eta \Bigl(\nabla \frac{\delta F}{\delta\mu}(w_r) + 2 r w_r\Bigr)
      + \sqrt{2 \eta \tau}\, \xi_r, \qquad \xi_r \sim N(0, I)$$

    As $N \to \infty$ and $\eta \to 0$ the law of the particles is the gradient flow of $F(\mu) + r\,
    \mathbb{E}\|w\|^2 + \tau \int \mu \log \mu$ (Nitanda, Wu and Suzuki 2022; Chizat 2022; Takakura and Suzuki
    2024). With `ProfileRidge` as objective the second layer is always the best one. The temperature $\tau$ is not
    the penalty $\lambda$ of the second layer.
    """

    learning_rate: float = real(above=0, symbol=r"\eta", means="learning rate")
    temperature: float = real(at_least=0, symbol=r"\tau", means="temperature")
    confinement: float = real(default=0.0, at_least=0, symbol="r", means="confinement", span=(0, 1))

    @classmethod
    def examples(cls):
        return (cls(0.1, 0.05), cls(0.05, 0.1, confinement=0.2))

    def moved(self, key, particles, drift):
        # Drawn in float32, as everything is, so that both precisions follow one path.
        noise = jax.random.normal(key, particles.shape, jnp.float32).astype(particles.dtype)
        pull = drift + 2 * self.confinement * particles
        return particles - self.learning_rate * pull + jnp.sqrt(2 * self.learning_rate * self.temperature) * noise


class WassersteinFlow(AbstractParticleFlow):
    r"""The Wasserstein gradient flow of the objective, one Euler step at a time.

    $$w_r \leftarrow w_r - \eta \nabla \frac{\delta F}{\delta\mu}(w_r)$$

    Gradient descent with the step $\eta N$, on the particles alone: Langevin dynamics at temperature 0.
    """

    sees: ClassVar[Sees] = Sees.VECTORS

    learning_rate: float = real(above=0, symbol=r"\eta", means="learning rate")

    @classmethod
    def examples(cls):
        return (cls(0.1),)

    def moved(self, key, particles, drift):
        return particles - self.learning_rate * drift


def particle_network(problem: AbstractProblem) -> Any:
    """The network, which must say what its particles are."""
    if not (hasattr(problem.network, "particles") and hasattr(problem.network, "with_particles")):
        raise InputError(
            f"Particles are moved, and {type(problem.network).__name__} does not say what they are; use TwoLayer, "
            "or give the network `particles(params)` and `with_particles(params, particles)`."
        )
    return problem.network
