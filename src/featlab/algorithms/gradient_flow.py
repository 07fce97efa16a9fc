"""Descent with infinitely small steps."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from featlab.algorithms._algorithm import AbstractAlgorithm, Info, State
from featlab.core.sees import Sees
from featlab.core.validation import real, whole


class GradientFlow(AbstractAlgorithm):
    r"""$\dot w = -\nabla L(w)$, one step being `duration` units of time.

    Solved by diffrax (Tsitouras' 5th-order method) in `substeps` equal parts. Equal, because a ReLU network's
    flow may slide along a kink, where an adaptive step shrinks without end; and because every rotated frame then
    takes the same ones.
    """

    sees: ClassVar[Sees] = Sees.VECTORS
    whole_inputs: ClassVar[bool] = False

    duration: float = real(above=0, symbol="t", means="time of one step")
    substeps: int = whole(default=8, at_least=1, means="parts that a step is solved in", span=(1, 64))

    @classmethod
    def examples(cls):
        return (cls(0.1),)

    @property
    def learning_rate(self):
        """Time per step."""
        return self.duration

    def init(self, key, problem):
        return State(problem.start, jnp.zeros((), int))

    def step(self, key, state, problem):
        import diffrax  # noqa: PLC0415  (0.8 s that other algorithms need not pay)

        batch_key, objective_key = jax.random.split(key)
        batch = problem.batch(batch_key, state.step)
        dynamic, static = eqx.partition(state.params, eqx.is_inexact_array)
        start, form = jax.tree.flatten(dynamic)  # a list, for diffrax takes no tree with holes

        def whole(leaves):
            return eqx.combine(jax.tree.unflatten(form, leaves), static)

        def velocity(t, leaves, _):
            gradient = problem.gradient(whole(leaves), batch, objective_key)
            return [-leaf for leaf in jax.tree.leaves(eqx.filter(gradient, eqx.is_inexact_array))]

        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(velocity),
            diffrax.Tsit5(),
            t0=0.0,
            t1=self.duration,
            dt0=self.duration / self.substeps,
            y0=start,
            saveat=diffrax.SaveAt(t1=True),
            max_steps=2 * self.substeps + 2,
        )
        assert solution.ys is not None
        params = whole([leaf[0] for leaf in solution.ys])
        value = problem.value(state.params, batch, objective_key)
        return State(params, state.step + 1), Info(value)
