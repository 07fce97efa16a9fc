"""What ridge regression makes of the features of the moment, for a whole path of penalties."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from featlab.algorithms import AbstractAlgorithm, GiantStep, Then, ridge_path
from featlab.data import Batch
from featlab.fields import InputError
from featlab.networks import AbstractTwoLayer
from featlab.probes._probe import Variable, View, probe
from featlab.theory import hermite

_NUMBERS = 4_000_000  # of test features held at a time


@probe(
    equivariant=True,
    ridge_train_error=Variable(
        "penalty", r"\frac1n \|\tilde y - F\hat a\|^2 + \lambda \|\hat a\|^2", "what ridge regression minimises"
    ),
    ridge_test_error=Variable(
        "penalty", r"E (y - F(x) \hat a)^2", "test error of ridge regression on the features"
    ),
    ridge_test_error_se=Variable("penalty", r"\mathrm{se}", "Monte Carlo standard error of that test error"),
)
def ridge_errors(
    view: View,
    *,
    penalty: tuple[float, ...] = (0.01,),
    holdout: int = 1,
    spikes: int | None = None,
    count: int = 10_000,
):
    r"""Errors of ridge regression on an independent set (`holdout=1`) or on the training set (`holdout=0`).

    All penalties share one factorisation. With `spikes` the network's features are replaced by the theory's:
    those of the start and so many explicit spikes, of the strength that the algorithm's `GiantStep` says.
    """
    chosen = view.training if holdout == 0 else view.task.holdout(holdout - 1)
    features = jnp.where(chosen.mask[:, None], _features(view, chosen, spikes), 0)
    labels = jnp.where(chosen.mask, chosen.labels, 0)
    n = jnp.sum(chosen.mask).astype(features.dtype)
    penalties = jnp.asarray(np.array(penalty, float), features.dtype)
    heads = ridge_path(features, labels, penalties * n)
    train = jnp.sum((labels[:, None] - features @ heads) ** 2, axis=0) / n + penalties * jnp.sum(heads**2, axis=0)
    mean, square = _test_moments(view, heads, spikes, count)
    return {
        "ridge_train_error": train,
        "ridge_test_error": mean,
        "ridge_test_error_se": jnp.sqrt(jnp.maximum(square - mean**2, 0) / count),
    }


def _test_moments(view, heads, spikes, count):
    """Mean of the squared test errors and of their squares, a few inputs at a time."""
    draw, parts = view.task.draw, max(1, -(-count * len(heads) // _NUMBERS))
    each = -(-count // parts)

    def part(key):
        batch = view.task.data.fresh(key, draw.truth, draw.space, each)
        errors = (batch.labels[:, None] - _features(view, batch, spikes) @ heads) ** 2
        return jnp.mean(errors, axis=0), jnp.mean(errors**2, axis=0)

    means = jax.lax.map(part, jax.random.split(draw.test_key, parts))
    return jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), means)


def _features(view: View, batch: Batch, spikes: int | None):
    if spikes is None:
        return view.task.features(view.params, batch.inputs)
    return spiked_features(view, batch, spikes)


def spiked_features(view: View, batch: Batch, spikes: int):
    r"""$F_\ell = F_0 + \sum_{k \leq \ell} c_1^k c_k \eta^k (\tilde X \beta)^{\circ k} (a^{\circ k})^\top$."""
    network, start = two_layer(view), view.task.draw.start
    c = hermite.fixed_coefficients(network.activation, spikes)
    head, seen = network.head(start), flat(batch) @ beta(view)
    eta = giant_step(view.algorithm).size(jnp.sum(view.training.mask).astype(float))
    features = view.task.features(start, batch.inputs)
    for k in range(1, spikes + 1):
        features = features + (c[1] * eta) ** k * c[k] * jnp.outer(seen**k, head**k)
    return features


def beta(view: View):
    r"""$\beta = \frac1n X^\top y$, what the training set says about the teacher's direction."""
    batch = view.training
    return flat(batch).T @ jnp.where(batch.mask, batch.labels, 0) / jnp.sum(batch.mask)


def flat(batch: Batch):
    """Inputs of one patch as rows of a matrix."""
    if batch.inputs.ndim != 3 or batch.inputs.shape[1] != 1:
        raise InputError("Spikes are those of inputs of one patch, such as SingleIndex draws.")
    return batch.inputs[:, 0]


def giant_step(algorithm: AbstractAlgorithm) -> GiantStep:
    """The giant step of an algorithm, alone or before something else."""
    while isinstance(algorithm, Then):
        algorithm = algorithm.first
    if not isinstance(algorithm, GiantStep):
        raise InputError(f"Spikes are those of a GiantStep, and {type(algorithm).__name__} is something else.")
    return algorithm


def two_layer(view: View) -> AbstractTwoLayer:
    """The network, as one with features under a head."""
    network: Any = view.task.network
    if not isinstance(network, AbstractTwoLayer):
        raise InputError(
            f"Spikes are those of a two-layer network, and {type(network).__name__} is something else; "
            "use TwoLayer or RandomFeatures."
        )
    return network
