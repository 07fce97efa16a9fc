"""Gradient descent whose step follows the outputs: gradient flow's path in few steps."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp

from featlab.algorithms._algorithm import AbstractAlgorithm, Info, State
from featlab.fields import real


class PacedDescent(AbstractAlgorithm):
    r"""$w \leftarrow w - \eta_t \nabla L(w)$, with $\eta_t$ as large as the outputs allow.

    $$\eta_t \max_i |\langle \nabla f_i, \nabla L \rangle| = \kappa \max_i |f_i|$$

    To first order, no training output changes by more than $\kappa$ times the largest of them. One factor for all
    weights only changes the clock, so for small $\kappa$ this is gradient flow, as descent with a small constant
    step is; but growth that spans many orders of magnitude takes a number of steps that grows with their
    logarithm.
    """

    equivariant: ClassVar[bool] = True
    combines: ClassVar[bool] = True

    pace: float = real(above=0, below=1)  # kappa

    @classmethod
    def examples(cls):
        return (cls(0.1),)

    def init(self, key, task):
        return State(task.start, jnp.zeros((), int))

    def step(self, key, state, task):
        batch_key, objective_key = jax.random.split(key)
        batch = task.batch(batch_key, state.step)
        value, gradient = task.value_and_grad(state.params, batch, objective_key)
        outputs, change = jax.jvp(lambda params: task.outputs(params, batch), (state.params,), (gradient,))
        fastest = jnp.max(jnp.where(batch.mask, jnp.abs(change), 0))
        largest = jnp.max(jnp.where(batch.mask, jnp.abs(outputs), 0))
        rate = jnp.where(fastest > 0, self.pace * largest / jnp.where(fastest > 0, fastest, 1), 0)
        params = jax.tree.map(lambda leaf, slope: leaf - rate * slope, state.params, gradient)
        return State(params, state.step + 1), Info(value, rate)
