"""Sharpness-aware minimisation."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from featlab.algorithms._algorithm import AbstractAlgorithm, Info, State
from featlab.core.sees import Sees
from featlab.core.validation import real


class Perturbation(eqx.Module):
    """Where a step stood, and the point nearby from which it took its gradient."""

    before: Any
    perturbed: Any


class SAM(AbstractAlgorithm):
    r"""Descend along the gradient at the worst point nearby.

    $$w \leftarrow w - \eta \nabla L_B(w + \hat\epsilon), \qquad
      \hat\epsilon = \tau \frac{\nabla L_B(w)}{\|\nabla L_B(w)\|_F}$$

    Two gradients a step, of the same batch $B$: the whole set on a plain data model. Its info says where it stood
    and where it looked, from which the probe `deactivation` tells which neurons the perturbation switched off.

    Foret, Kleiner, Mobahi and Neyshabur (2021); Chen, Zhang, Kou, Chen, Hsieh and Gu (2023).
    """

    sees: ClassVar[Sees] = Sees.PRODUCTS
    whole_inputs: ClassVar[bool] = False

    learning_rate: float = real(above=0, symbol=r"\eta", means="learning rate")
    radius: float = real(at_least=0, symbol=r"\tau", means="radius of the perturbation")

    @classmethod
    def examples(cls):
        return (cls(0.1, 0.2),)

    def init(self, key, problem):
        return State(problem.start, jnp.zeros((), int))

    def step(self, key, state, problem):
        batch_key, objective_key = jax.random.split(key)
        batch = problem.batch(batch_key, state.step)
        value, uphill = problem.value_and_grad(state.params, batch, objective_key)
        length = problem.norm(uphill)
        perturbed = _moved(state.params, uphill, self.radius / jnp.where(length > 0, length, 1))
        params = _moved(state.params, problem.gradient(perturbed, batch, objective_key), -self.learning_rate)
        return State(params, state.step + 1), Info(value, Perturbation(state.params, perturbed))


def _moved(params, direction, by):
    return jax.tree.map(lambda leaf, along: leaf + by * along, params, direction)
