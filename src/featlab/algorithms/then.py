"""One algorithm, then another: the only control flow there is."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from featlab.algorithms._algorithm import AbstractAlgorithm, Info, State
from featlab.algorithms.descent import GradientDescent
from featlab.algorithms.sam import SAM
from featlab.core.validation import part, whole


class Then(AbstractAlgorithm):
    """`first` for `steps` steps, then `second`, which begins where the first one ended."""

    first: AbstractAlgorithm = part(AbstractAlgorithm, "an algorithm")
    steps: int = whole(at_least=0, means="steps of the first algorithm", span=(0, 1000), told=True)
    second: AbstractAlgorithm = part(AbstractAlgorithm, "an algorithm")

    @classmethod
    def examples(cls):
        slow, fast = GradientDescent(0.02), GradientDescent(0.2, momentum=0.5)
        return (cls(slow, 3, fast), cls(slow, 1, cls(fast, 2, slow)), cls(SAM(0.1, 0.2), 2, slow))

    @property
    def sees(self):
        return max(self.first.sees, self.second.sees)

    @property
    def whole_inputs(self):
        return self.first.whole_inputs or self.second.whole_inputs

    @property
    def holdouts(self):
        return max(self.first.holdouts, self.second.holdouts)

    def init(self, key, problem):
        memory = (self.first.init(key, problem), self.second.init(key, problem))
        return State(problem.start, jnp.zeros((), int), memory)

    def step(self, key, state, problem):
        init_key, step_key = jax.random.split(key)
        since = state.step - self.steps

        def run_first(memory):
            first, info = self.first.step(step_key, _at(memory[0], state.step), problem)
            return first.params, (first, memory[1]), Info(info.value, (info.extra, nothing_second))

        def run_second(memory):
            begun = jax.lax.cond(
                since == 0,
                lambda: self.second.init(init_key, problem.starting_from(state.params)),
                lambda: memory[1],
            )
            # Its steps are counted anew, so its epochs need another order than the first one's.
            other_key = jax.random.fold_in(problem.draw.batch_key, 1)
            reshuffled = eqx.tree_at(lambda p: p.draw.batch_key, problem, other_key)
            second, info = self.second.step(step_key, _at(begun, since), reshuffled)
            return second.params, (memory[0], second), Info(info.value, (nothing_first, info.extra))

        nothing_first = _nothing(lambda: self.first.step(step_key, state.memory[0], problem)[1].extra)
        nothing_second = _nothing(lambda: self.second.step(step_key, state.memory[1], problem)[1].extra)
        params, memory, info = jax.lax.cond(since < 0, run_first, run_second, state.memory)
        return State(params, state.step + 1, memory), info


def _nothing(make):
    """What the algorithm that is not running has to tell: zeros, in the shape of what it would."""
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), eqx.filter_eval_shape(make))


def _at(state: State, step) -> State:
    return eqx.tree_at(lambda s: s.step, state, step)
