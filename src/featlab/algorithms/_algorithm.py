"""What an algorithm is: `init(key, problem) -> state` and `step(key, state, problem) -> state, info`."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from featlab.core.sees import Sees
from featlab.core.validation import Part
from featlab.problem import AbstractProblem


class State(eqx.Module):
    """What the next step needs. `step` is set by the loop."""

    params: Any
    step: Array
    memory: Any = None


class Info(eqx.Module):
    """What a probe may want of the step just taken, and the next step does not need."""

    value: Float[Array, ""] = eqx.field(converter=jnp.asarray)  # of the objective, before the step
    extra: Any = None


class AbstractAlgorithm(Part):
    """How parameters change. Anything that steps is an algorithm; one step may be all there is.

    It `sees` no coordinates when it commutes with rotations of the input space and draws no d-vectors of its own;
    inner products only, when moreover all it ever adds to the parameters are combinations of gradients of the
    whole training set. `whole_inputs`: whether it does more with inputs than hand them to the problem. That is no
    question of how fine it looks: Adam treats every coordinate of the weights by itself and meets no input, mixup
    mixes inputs and knows no coordinate. `holdouts` is how many independent sets it uses beside the training set.
    """

    sees: ClassVar[Sees] = Sees.COORDINATES
    whole_inputs: ClassVar[bool] = True
    holdouts: ClassVar[int] = 0
    of: ClassVar[tuple[type, ...]] = ()  # kinds that the rest of the experiment must be of

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray, problem: AbstractProblem) -> State:
        """The state before the first step."""

    @abc.abstractmethod
    def step(self, key: PRNGKeyArray, state: State, problem: AbstractProblem) -> tuple[State, Info]:
        """The state after one more step."""
