"""A gradient step so large that it changes the features."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from featlab.algorithms._algorithm import AbstractAlgorithm, Info, State
from featlab.core.sees import Sees
from featlab.core.validation import InputError, real


class GiantStep(AbstractAlgorithm):
    r"""$w \leftarrow w - \eta \nabla L(w)$ with a step that grows with the samples it sees,
    $\eta = c\,n^\alpha$, or as given.

    Several steps see the same training set, or fresh inputs each on a `Stream`. One more set of the same law is
    drawn, for whatever is fitted to the features afterwards. Ba et al. (2022), Damian, Lee and Soltanolkotabi
    (2022), Dandi et al. (2023), Moniri et al. (2023).
    """

    sees: ClassVar[Sees] = Sees.VECTORS
    whole_inputs: ClassVar[bool] = False
    holdouts: ClassVar[int] = 1

    alpha: float | None = real(
        default=None, optional=True, symbol=r"\alpha", means="exponent of the step in n", span=(-0.2, 0.5)
    )  # give this or eta
    eta: float | None = real(default=None, at_least=0, optional=True, symbol=r"\eta", means="step")
    constant: float = real(default=1.0, above=0, symbol="c", means="factor of the step, beside alpha")

    def __check_init__(self):
        if (self.alpha is None) == (self.eta is None):
            given = "neither" if self.alpha is None else "both"
            raise InputError(f"GiantStep needs exactly one of alpha and eta, got {given}.")

    @classmethod
    def examples(cls):
        return (cls(alpha=0.3), cls(eta=2.0), cls(alpha=0.25, constant=2.0))

    def size(self, n: Any) -> Any:
        r"""$\eta$ for n samples."""
        return self.constant * n**self.alpha if self.eta is None else self.eta

    def init(self, key, problem):
        return State(problem.start, jnp.zeros((), int))

    def step(self, key, state, problem):
        batch_key, objective_key = jax.random.split(key)
        batch = problem.batch(batch_key, state.step)
        value, gradient = problem.value_and_grad(state.params, batch, objective_key)
        eta = self.size(jnp.sum(batch.mask).astype(float))
        params = jax.tree.map(lambda weight, slope: weight - eta * slope, state.params, gradient)
        return State(params, state.step + 1), Info(value)
