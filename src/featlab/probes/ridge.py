"""What ridge regression makes of the features of the moment, for a whole path of penalties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from featlab.algorithms import AbstractAlgorithm, GiantStep, Then, ridge, ridge_path
from featlab.core.sees import Sees
from featlab.core.validation import InputError
from featlab.data import Batch
from featlab.networks import AbstractTwoLayer
from featlab.probes._probe import Variable, View, probe
from featlab.theory import hermite

_FEW = 8  # penalties that are faster solved one by one than by eigenvalues
_NUMBERS = 4_000_000  # of test features held at a time


_TRAIN = Variable(
    "penalty spikes", r"\frac1n \|\tilde y - F\hat a\|^2 + \lambda \|\hat a\|^2", "what ridge regression minimises"
)
_TEST = Variable("penalty spikes", r"E (y - F(x) \hat a)^2", "test error of ridge regression on the features")
_ERROR = Variable("penalty spikes", r"\mathrm{se}", "Monte Carlo standard error of that test error")
TEST_INPUTS = 10_000


@probe(sees=Sees.VECTORS, ridge_train_error=_TRAIN, ridge_test_error=_TEST, ridge_test_error_se=_ERROR)
def ridge_errors(
    view: View,
    *,
    penalty: tuple[float, ...] = (0.01,),
    holdout: int = 1,
    spikes: tuple[int, ...] | None = None,
    count: int = TEST_INPUTS,
):
    r"""Errors of ridge regression on an independent set (`holdout=1`) or on the training set (`holdout=0`).

    All penalties share one factorisation. With `spikes`, the network's features are replaced by the theory's:
    those of the start and 0, 1, 2, ... explicit spikes, of the strength that the algorithm's `GiantStep` says.
    """
    if spikes is None:
        features = [lambda batch, key: view.problem.features(view.params, batch.inputs)]
    else:
        features = [lambda batch, key, order=order: spiked_features(view, batch, order) for order in spikes]
    fits = [_fit(view, one, penalty, [view.problem.samples(holdout)], count) for one in features]
    together = fits[0] if spikes is None else jax.tree.map(lambda *leaves: jnp.stack(leaves, axis=-1), *fits)
    return {f"ridge_{name}": value for name, value in together.items()}


@probe(
    of=(AbstractTwoLayer,),
    sees=Sees.VECTORS,
    equivalent_train_error=_TRAIN,
    equivalent_test_error=_TEST,
    equivalent_test_error_se=_ERROR,
)
def equivalent_errors(
    view: View, *, penalty: tuple[float, ...] = (0.01,), spikes: int = 0, count: int = TEST_INPUTS
):
    r"""The same for the Gaussian features that random features are equivalent to: $c_1 W_0 x + c_{>1} z$.

    $z \sim N(0, I)$ is drawn anew for every input, and $c_{>1}^2 = \mathbb{E}\,\sigma^2 - c_1^2$. With `spikes`
    they have that number of explicit ones, of the strength that the algorithm's `GiantStep` says.
    """
    network, start = two_layer(view), view.problem.draw.start
    c = hermite.fixed_coefficients(network.activation, 1)
    square = hermite.fixed_coefficients(lambda z: network.activation(z) ** 2, 0)[0]
    rest = jnp.sqrt(jnp.maximum(square - c[1] ** 2, 0))
    weights = network.first_layer(start)

    def features(batch, key):
        noise = jax.random.normal(key, (len(batch.mask), len(weights)), jnp.float32)
        gaussian = c[1] * flat(batch) @ weights.T + rest * noise
        return gaussian + explicit_spikes(view, batch, spikes) if spikes else gaussian

    fit = _fit(view, features, penalty, [view.problem.samples(1)], count)
    return {f"equivalent_{name}": value for name, value in fit.items()}


@probe(sees=Sees.VECTORS, linear_train_error=_TRAIN, linear_test_error=_TEST, linear_test_error_se=_ERROR)
def linear_errors(view: View, *, penalty: tuple[float, ...] = (0.01,), count: int = TEST_INPUTS):
    """The same for the inputs themselves in place of features, on the training set and all independent sets."""
    fit = _fit(view, lambda batch, key: flat(batch), penalty, [view.training, *view.problem.draw.holdouts], count)
    return {f"linear_{name}": value for name, value in fit.items()}


def _fit(view: View, features: Callable[..., Array], penalty: tuple[float, ...], sets: list[Batch], count: int):
    """Train and test error, for every penalty, of the head that ridge regression finds on these sets.

    `features(batch, key)` are those of a set of inputs; a key for each set, where they are random themselves.
    """
    keys = jax.random.split(jax.random.fold_in(view.problem.draw.test_key, 1), len(sets))
    mask = jnp.concatenate([one.mask for one in sets])
    design = jnp.where(mask[:, None], jnp.concatenate([features(one, key) for one, key in zip(sets, keys)]), 0)
    labels = jnp.where(mask, jnp.concatenate([one.labels for one in sets]), 0)
    n, penalties = jnp.sum(mask).astype(design.dtype), jnp.asarray(np.array(penalty, float), design.dtype)
    if len(penalty) <= _FEW:
        heads = jnp.stack([ridge(design, labels, one * n) for one in penalties], axis=1)
    else:
        heads = ridge_path(design, labels, penalties * n)
    train = jnp.sum((labels[:, None] - design @ heads) ** 2, axis=0) / n + penalties * jnp.sum(heads**2, axis=0)
    mean, square = _test_moments(view, features, heads, count)
    error = jnp.sqrt(jnp.maximum(square - mean**2, 0) / count)
    return {"train_error": train, "test_error": mean, "test_error_se": error}


def _test_moments(view, features, heads, count):
    """Mean of the squared test errors and of their squares, a few inputs at a time."""
    draw, parts = view.problem.draw, max(1, -(-count * len(heads) // _NUMBERS))
    each = -(-count // parts)

    def part(key):
        batch = view.problem.data.fresh(key, draw.truth, draw.space, each)
        errors = (batch.labels[:, None] - features(batch, jax.random.fold_in(key, 1)) @ heads) ** 2
        return jnp.mean(errors, axis=0), jnp.mean(errors**2, axis=0)

    means = jax.lax.map(part, jax.random.split(draw.test_key, parts))
    return jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), means)


def spiked_features(view: View, batch: Batch, spikes: int):
    r"""$F_\ell = F_0 + \sum_{k \leq \ell} c_1^k c_k \eta^k (\tilde X \beta)^{\circ k} (a^{\circ k})^\top$."""
    features = view.problem.features(view.problem.draw.start, batch.inputs)
    return features + explicit_spikes(view, batch, spikes)


def explicit_spikes(view: View, batch: Batch, spikes: int):
    r"""$\sum_{k \leq \ell} c_1^k c_k \eta^k (\tilde X \beta)^{\circ k} (a^{\circ k})^\top$."""
    network, start = two_layer(view), view.problem.draw.start
    c = hermite.fixed_coefficients(network.activation, spikes)
    head, seen = network.head(start), flat(batch) @ beta(view)
    eta = giant_step(view.algorithm).size(jnp.sum(view.training.mask).astype(float))
    return sum((c[1] * eta) ** k * c[k] * jnp.outer(seen**k, head**k) for k in range(1, spikes + 1))


def beta(view: View):
    r"""$\beta = \frac1n X^\top y$, what the training set says about the teacher's direction."""
    batch = view.training
    return flat(batch).T @ jnp.where(batch.mask, batch.labels, 0) / jnp.sum(batch.mask)


def flat(batch: Batch):
    """Inputs of one patch as rows of a matrix."""
    if batch.inputs.ndim != 3 or batch.inputs.shape[1] != 1:
        raise InputError("Spikes need inputs of one patch, such as SingleIndex draws.")
    return batch.inputs[:, 0]


def giant_step(algorithm: AbstractAlgorithm) -> GiantStep:
    """The giant step of an algorithm, alone or before something else."""
    while isinstance(algorithm, Then):
        algorithm = algorithm.first
    if not isinstance(algorithm, GiantStep):
        raise InputError(f"Spikes need a GiantStep algorithm, got {type(algorithm).__name__}.")
    return algorithm


def two_layer(view: View) -> AbstractTwoLayer:
    """The network, as one with features under a head."""
    network: Any = view.problem.network
    if not isinstance(network, AbstractTwoLayer):  # where spikes are asked for, by an option
        raise InputError(f"Spikes need a two-layer network such as TwoLayer, got {type(network).__name__}.")
    return network
