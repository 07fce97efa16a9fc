"""Gradient descent whose step follows the outputs: gradient flow's path in few steps."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp

from featlab.algorithms._algorithm import AbstractAlgorithm, Info, State
from featlab.core.sees import Sees
from featlab.core.validation import real


class PacedDescent(AbstractAlgorithm):
    r"""$w \leftarrow w - \eta_t \nabla L(w)$, with $\eta_t$ as large as the outputs allow.

    $$\eta_t = \kappa \min_i \frac{\max(|f_i|, \phi)}{|\langle \nabla f_i, \nabla L \rangle|}, \qquad
      \phi = \tfrac1{10} \min(\max_i |f_i|, 1)$$

    To first order, no training output changes by more than the fraction $\kappa$ of itself, or of $\phi$ where it
    is small: outputs pass through 0, and then a fraction of themselves would stop everything. One factor for all
    weights only changes the clock, so for small $\kappa$ this is gradient flow, as descent with a small constant
    step is; but growth over many orders of magnitude takes a number of steps that grows with their logarithm.
    """

    sees: ClassVar[Sees] = Sees.PRODUCTS
    whole_inputs: ClassVar[bool] = False

    pace: float = real(above=0, below=1, symbol=r"\kappa", means="largest relative change a step")

    @classmethod
    def examples(cls):
        return (cls(0.1),)

    def init(self, key, problem):
        return State(problem.start, jnp.zeros((), int))

    def step(self, key, state, problem):
        batch_key, objective_key = jax.random.split(key)
        batch = problem.batch(batch_key, state.step)
        value, gradient = problem.value_and_grad(state.params, batch, objective_key)
        outputs, change = jax.jvp(lambda params: problem.outputs(params, batch), (state.params,), (gradient,))
        sizes = jnp.where(batch.mask, jnp.abs(outputs), 0)
        allowed = jnp.maximum(sizes, jnp.minimum(jnp.max(sizes), 1.0) / 10)
        moving = batch.mask & (change != 0)
        steps = jnp.where(moving, allowed / jnp.where(moving, jnp.abs(change), 1), jnp.inf)
        slowest = jnp.min(steps)
        rate = jnp.where(jnp.isfinite(slowest), self.pace * slowest, 0)
        params = jax.tree.map(lambda leaf, slope: leaf - rate * slope, state.params, gradient)
        return State(params, state.step + 1), Info(value, rate)
