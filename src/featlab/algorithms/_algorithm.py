"""What an algorithm is: `init(key, task) -> state` and `step(key, state, task) -> state, info`."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from featlab.fields import Part
from featlab.task import Task


class State(eqx.Module):
    """What the next step needs. `step` is set by whoever drives the run."""

    params: Any
    step: Array
    memory: Any = None


class Info(eqx.Module):
    """What a probe may want of the step just taken, and the next step does not need."""

    value: Float[Array, ""] = eqx.field(converter=jnp.asarray)  # of the objective, before the step
    extra: Any = None


class AbstractAlgorithm(Part):
    """How parameters change. Anything that steps is an algorithm; one step may be all there is.

    It is `equivariant` when it commutes with rotations of the input space and draws no d-vectors of its own;
    only then may a run use `Span`. It `combines` when all it ever adds to the parameters are combinations of
    gradients of the whole training set; only then may a run train in products. It `reads_inputs` when it does
    more with inputs than hand them to the task. `holdouts` is how many independent sets it uses beside the
    training set.
    """

    equivariant: ClassVar[bool] = False
    combines: ClassVar[bool] = False
    reads_inputs: ClassVar[bool] = True
    holdouts: ClassVar[int] = 0

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray, task: Task) -> State:
        """The state before the first step."""

    @abc.abstractmethod
    def step(self, key: PRNGKeyArray, state: State, task: Task) -> tuple[State, Info]:
        """The state after one more step."""
