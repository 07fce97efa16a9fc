"""Descent of a network with thresholds, which grow as its weights do."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp

from featlab.algorithms._algorithm import AbstractAlgorithm, Info, State
from featlab.fields import InputError, flag, real
from featlab.networks import Neurons, SymmetricReLU

TOP = 0.1  # of the neurons: those whose lengths the thresholds follow


class GrowingThresholds(AbstractAlgorithm):
    r"""Descent in units of the scale that thresholds have grown to; and these follow the longest weights.

    $$w \leftarrow w - \eta \frac{b_t}{b_0} \nabla L(w), \qquad
      b_t = \max(\kappa\, \mathrm{sd} \langle w_i^{(0)}, x \rangle,\ \alpha\, \overline{\|w^{(t)}\|}), \qquad
      \sigma_3^{(t)} = \sigma_1 b_t / b_0$$

    $\overline{\|w\|}$ is the mean length of the longest tenth of the weight vectors; the standard deviation is
    over neurons and training inputs. $\kappa = \alpha = 0$ leaves the network without thresholds. The slides of
    the theory have thresholds that grow, and no rule for it; this one keeps a pure neuron $w = \|w\| M_j$ silent
    on noise and on all other atoms, and awake on its own, while $\alpha < 1$.

    One factor for all weights only changes the clock: for small $\eta$ this is the path of gradient flow, as it is
    with a constant step. But a step that is small beside weights of the size $\sigma_1$, which decide what a
    neuron becomes, need not stay so when they have grown tenfold. `paced=False` is the constant step.
    """

    equivariant: ClassVar[bool] = True

    learning_rate: float = real(above=0)  # eta
    spread: float = real(default=1.75, at_least=0)  # kappa
    share: float = real(default=0.4, at_least=0, below=1)  # alpha
    paced: bool = flag(default=True)

    @classmethod
    def examples(cls):
        return (cls(0.1), cls(0.1, spread=0.5, share=0.9, paced=False), cls(0.1, spread=0, share=0))

    def init(self, key, task):
        if not isinstance(task.network, SymmetricReLU):
            raise InputError(
                f"GrowingThresholds is about SymmetricReLU, and {type(task.network).__name__} is something else."
            )
        start, training = task.start, task.draw.training
        products = training.inputs @ start.weights.T  # sample, patch, neuron
        square = training.mean(jnp.mean(jnp.sum(products**2, axis=1), axis=-1))
        least = self.spread * jnp.sqrt(square)
        first = self._thresholds(start.weights, least)
        params = Neurons(start.weights, jnp.full_like(start.thresholds, first), start.scale)
        return State(params, jnp.zeros((), int), (least, first, start.scale))

    def step(self, key, state, task):
        batch_key, objective_key = jax.random.split(key)
        batch = task.batch(batch_key, state.step)
        value, gradient = task.value_and_grad(state.params, batch, objective_key)
        before, (least, first, unit) = state.params, state.memory
        rate = self.learning_rate * (_over(before.thresholds[0], first) if self.paced else jnp.ones(()))
        weights = before.weights - rate * gradient.weights
        grown = self._thresholds(weights, least)
        scale = unit * _over(grown, first)
        params = Neurons(weights, jnp.full_like(before.thresholds, grown), scale)
        return State(params, state.step + 1, state.memory), Info(value, rate)

    def _thresholds(self, weights, least):
        return jnp.maximum(least, self.share * longest(weights))


def _over(threshold, first):
    """The ratio; without thresholds nothing has grown, and it is 1."""
    return jnp.where(first > 0, threshold / jnp.where(first > 0, first, 1), 1.0)


def longest(weights):
    """The mean length of the longest tenth of the rows, of one row at least."""
    count = max(1, round(TOP * len(weights)))
    return jnp.mean(jax.lax.top_k(jnp.linalg.norm(weights, axis=-1), count)[0])
