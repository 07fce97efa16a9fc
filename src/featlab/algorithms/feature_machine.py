"""Recursive feature machines: kernel ridge regression that learns its metric from its own gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from featlab.algorithms._algorithm import AbstractAlgorithm, Info, State
from featlab.core.linear_algebra import solve_positive
from featlab.core.validation import InputError, function, real
from featlab.networks import Expansion, KernelMachine
from featlab.problem import AbstractProblem
from featlab.theory.agop import agop

Matrix = Float[Array, "column other"]
_WRONG = 1e-3  # relative residual of the linear system from which on rounding has spoilt the solution


def mean_eigenvalue_one(metric: Matrix) -> Matrix:
    r"""$M d / \mathrm{tr}\, M$, whose trace is that of the identity."""
    return metric * (len(metric) / jnp.maximum(jnp.trace(metric), jnp.finfo(metric.dtype).tiny))


def largest_entry_one(metric: Matrix) -> Matrix:
    r"""$M / \max_{jk} M_{jk}$, as the package xrfm has it; it depends on the coordinates."""
    return metric / jnp.maximum(jnp.max(metric), jnp.finfo(metric.dtype).tiny)


def as_it_is(metric: Matrix) -> Matrix:
    """The average gradient outer product itself."""
    return metric


class RecursiveFeatureMachine(AbstractAlgorithm):
    r"""$\alpha = (K_M + \lambda I)^{-1} y$, then $M \leftarrow \frac1n \sum_i \nabla f(x_i) \nabla f(x_i)^\top$.

    It begins with $M = I$, so that the first step is plain kernel ridge regression, and after t steps the metric
    of the kernel has been learnt t - 1 times. It is scaled by `normalise`, against which the bandwidth counts.
    $\lambda$ is added to the kernel matrix as it is, whatever n. The value is the minimum of $\frac1n (\|y -
    K\alpha\|^2 + \lambda \alpha^\top K \alpha)$, which is $\frac\lambda n y^\top \alpha$; a solution that rounding
    has spoilt counts as diverged. Radhakrishnan, Beaglehole, Pandit and Belkin (2022).
    """

    of: ClassVar[tuple[type, ...]] = (KernelMachine,)

    penalty: float = real(default=1e-3, above=0, symbol=r"\lambda", means="ridge penalty")
    normalise: Callable = function(
        "a function of the metric, such as mean_eigenvalue_one or as_it_is",
        default=mean_eigenvalue_one,
        means="how the metric is scaled",
    )

    @classmethod
    def examples(cls):
        return (cls(0.01), cls(0.1, normalise=largest_entry_one), cls(0.1, normalise=as_it_is))

    def init(self, key, problem):
        _, points, labels, _ = _regression(problem)
        metric = problem.start.metric
        return State(Expansion(points, jnp.zeros_like(labels), metric), jnp.zeros((), int), metric)

    def step(self, key, state, problem):
        machine, points, labels, mask = _regression(problem)
        metric, n = state.memory, jnp.sum(mask).astype(points.dtype)
        distances = machine.distances(Expansion(points, jnp.zeros_like(labels), metric), points)
        # Padding is 0 beside lambda on the diagonal, so that it has the coefficient 0.
        kernel = jnp.where(mask[:, None] & mask[None], machine.kernel(distances), 0)
        system = kernel + self.penalty * jnp.eye(len(points), dtype=points.dtype)
        coefficients = solve_positive(system, labels)
        residual = labels - system @ coefficients
        fine = jnp.linalg.norm(residual) <= _WRONG * jnp.linalg.norm(labels)
        value = jnp.where(fine, self.penalty / n * (labels @ coefficients), jnp.nan)
        params = Expansion(points, coefficients, metric)
        gradients = jnp.where(mask[:, None], machine.gradients(params, points, distances), 0)
        return State(params, state.step + 1, self.normalise(agop(gradients, n))), Info(value)


def _regression(problem: AbstractProblem) -> tuple[KernelMachine, Array, Array, Array]:
    """The machine, and inputs, labels and mask of the training set; padding has the label 0."""
    batch = problem.samples(0)
    assert isinstance(problem.network, KernelMachine)
    if batch.labels.ndim != 1:
        raise InputError(
            "RecursiveFeatureMachine needs one label for each input, got labels of the shape "
            f"{batch.labels.shape}."
        )
    return problem.network, jnp.sum(batch.inputs, axis=1), jnp.where(batch.mask, batch.labels, 0), batch.mask
