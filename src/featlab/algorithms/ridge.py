"""The head by ridge regression on the features, in one step; and for many penalties at once."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from featlab.algorithms._algorithm import AbstractAlgorithm, Info, State
from featlab.core.linear_algebra import eigh, solve_positive
from featlab.core.sees import Sees
from featlab.core.validation import real, whole
from featlab.networks import AbstractTwoLayer
from featlab.problem import AbstractProblem

_WRONG = 1e-3  # relative error of the minimum from which on rounding has spoilt the solution


class Ridge(AbstractAlgorithm):
    r"""$\hat a = \arg\min_a \frac1n \|y - F a\|^2 + \lambda \|a\|^2$, with $F$ the features of a set of inputs.

    The set is the training set, or with `holdout=k` the k-th independent one, as after a step that has seen the
    training set: `Then(GiantStep(alpha=0.3), 1, Ridge(0.01, holdout=1))`. The value is the minimum itself. A small
    penalty beside strong features needs `precision=64`: a solution that rounding has spoilt counts as diverged.
    """

    sees: ClassVar[Sees] = Sees.VECTORS
    of: ClassVar[tuple[type, ...]] = (AbstractTwoLayer,)

    penalty: float = real(above=0, symbol=r"\lambda", means="ridge penalty")
    holdout: int = whole(
        default=0,
        at_least=0,
        symbol="k",
        means="independent set that is fitted, 0 for the training set",
        span=(0, 4),
    )

    @classmethod
    def examples(cls):
        return (cls(0.1), cls(0.01, holdout=1))

    @property
    def holdouts(self):
        return self.holdout

    def init(self, key, problem):
        _two_layer(problem)
        return State(problem.start, jnp.zeros((), int))

    def step(self, key, state, problem):
        features, labels, n = regression(problem, state.params, self.holdout)
        head = ridge(features, labels, self.penalty * n)
        residual = labels - features @ head
        value = jnp.sum(residual**2) / n + self.penalty * jnp.sum(head**2)
        against = features.T @ residual - self.penalty * n * head
        # How far the value is above the minimum at most, since it is strongly convex.
        excess = jnp.sum(against**2) / (self.penalty * n**2)
        params = _two_layer(problem).with_head(state.params, head)
        return State(params, state.step + 1), Info(jnp.where(excess <= _WRONG * value, value, jnp.nan))


def regression(
    problem: AbstractProblem, params: Any, holdout: int
) -> tuple[Float[Array, "sample neuron"], Array, Array]:
    """Features, labels and number of samples of a set: 0 is the training set, k the k-th independent one.

    Padding has features and labels 0, so that it plays no part.
    """
    batch = problem.samples(holdout)
    features = problem.features(params, batch.inputs)
    n = jnp.sum(batch.mask).astype(features.dtype)
    return jnp.where(batch.mask[:, None], features, 0), jnp.where(batch.mask, batch.labels, 0), n


def ridge(features: Float[Array, "sample neuron"], labels: Float[Array, " sample"], penalty: Any) -> Array:
    r"""$(F^\top F + \mu I)^{-1} F^\top y = F^\top (F F^\top + \mu I)^{-1} y$, by the smaller of the two
    matrices."""
    rows, columns = features.shape
    if columns <= rows:
        return _solve(features.T @ features, penalty, features.T @ labels)
    return features.T @ _solve(features @ features.T, penalty, labels)


def ridge_path(
    features: Float[Array, "sample neuron"], labels: Float[Array, " sample"], penalties: Float[Array, " penalty"]
) -> Float[Array, "neuron penalty"]:
    r"""The solutions of `ridge` for all penalties $\mu$ from one factorisation $U \,\mathrm{diag}(s)\, U^\top$."""
    rows, columns = features.shape
    small = features.T @ features if columns <= rows else features @ features.T
    eigenvalues, vectors = eigh(small)
    target = features.T @ labels if columns <= rows else labels
    scaled = (vectors.T @ target)[:, None] / (jnp.maximum(eigenvalues, 0)[:, None] + penalties[None])
    solutions = vectors @ scaled
    return solutions if columns <= rows else features.T @ solutions


def _solve(matrix, penalty, target):
    return solve_positive(matrix + penalty * jnp.eye(len(matrix)), target)


def _two_layer(problem: AbstractProblem) -> AbstractTwoLayer:
    assert isinstance(problem.network, AbstractTwoLayer)
    return problem.network
