"""Descent along the gradient: plain, with momentum, with weight decay, or by any optax transformation."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, PRNGKeyArray

from featlab.algorithms._algorithm import AbstractAlgorithm, Info, State
from featlab.core.sees import Sees
from featlab.core.validation import InputError, flag, real
from featlab.data import Batch
from featlab.problem import AbstractProblem


class AbstractDescent(AbstractAlgorithm):
    r"""$w \leftarrow w + u(\nabla L(w))$, the update $u$ being an optax transformation of the gradient.

    One with a `batch` or `slope` of its own may look at whole inputs; all others say `whole_inputs = False`.
    `linear` says that the update is, in gradients and weights, so that coefficients follow the same recursion.
    """

    linear: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def transformation(self) -> optax.GradientTransformation:
        """What turns gradients into updates."""

    def init(self, key, problem):
        return State(problem.start, jnp.zeros((), int), self.transformation.init(problem.start))

    def batch(self, key: PRNGKeyArray, step: Array, problem: AbstractProblem) -> Batch:
        """What a step sees."""
        return problem.batch(key, step)

    def slope(self, key: PRNGKeyArray, params: Any, batch: Batch, problem: AbstractProblem) -> tuple[Array, Any]:
        """The value that is descended, and its gradient."""
        return problem.value_and_grad(params, batch, key)

    def step(self, key, state, problem):
        batch_key, objective_key = jax.random.split(key)
        batch = self.batch(batch_key, state.step, problem)
        value, gradient = self.slope(objective_key, state.params, batch, problem)
        updates, memory = self.transformation.update(gradient, state.memory, state.params)
        return State(optax.apply_updates(state.params, updates), state.step + 1, memory), Info(value)


class GradientDescent(AbstractDescent):
    r"""$g = \nabla L(w) + \lambda w, \quad v \leftarrow \beta v + g, \quad w \leftarrow w - \eta v$.

    Full-batch on a plain data model, mini-batch on `Minibatches`, online on a `Stream`.
    """

    whole_inputs: ClassVar[bool] = False
    linear: ClassVar[bool] = True

    learning_rate: float = real(above=0, symbol=r"\eta", means="learning rate")
    momentum: float | None = real(
        default=None, at_least=0, below=1, optional=True, symbol=r"\beta", means="momentum"
    )
    weight_decay: float | None = real(
        default=None, at_least=0, optional=True, symbol=r"\lambda", means="weight decay"
    )

    @classmethod
    def examples(cls):
        return (cls(0.1), cls(0.1, momentum=0.9), cls(0.1, weight_decay=0.01), cls(0.05, 0.5, 0.1))

    @property
    def sees(self):
        return Sees.PRODUCTS if self.weight_decay is None else Sees.VECTORS

    @property
    def is_plain(self) -> bool:
        """Neither momentum nor weight decay."""
        return self.momentum is None and self.weight_decay is None

    @property
    def transformation(self):
        parts = [optax.add_decayed_weights(self.weight_decay)] if self.weight_decay is not None else []
        parts += [optax.trace(self.momentum)] if self.momentum is not None else []
        return optax.chain(*parts, optax.scale(-self.learning_rate))


class Descent(AbstractDescent):
    """Any optax transformation: `Descent(optax.adam(1e-3))`.

    Whether it commutes with rotations cannot be seen from outside: say `rotates=True` only if every input
    coordinate is treated alike and linearly, or only norms enter. Adam and sign descent do not rotate.
    """

    whole_inputs: ClassVar[bool] = False

    optimiser: optax.GradientTransformation
    rotates: bool = flag(default=False, means="whether it commutes with rotations")

    @classmethod
    def examples(cls):
        return (cls(optax.sgd(0.1), rotates=True), cls(optax.adam(1e-2)))

    def __check_init__(self):
        if not (hasattr(self.optimiser, "init") and hasattr(self.optimiser, "update")):
            raise InputError(
                "Descent.optimiser must be an optax transformation, such as optax.adam(1e-3), "
                f"got {self.optimiser!r}."
            )

    @property
    def sees(self):
        return Sees.VECTORS if self.rotates else Sees.COORDINATES

    @property
    def transformation(self):
        return self.optimiser
