"""Ridge regression by either Gram matrix and by a path, against least squares; and what is refused."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl
from featlab.algorithms import Ridge, ridge, ridge_path
from featlab.algorithms.ridge import regression
from featlab.core.space import Span
from featlab.problem import PlainProblem, draw_run

PENALTIES = np.array([1e-3, 0.1, 3.0])


def least_squares(features, labels, penalty):
    """min |y - Fa|^2 + penalty |a|^2 as plain least squares, of the system with sqrt(penalty) I below F."""
    rows = np.concatenate([features, np.sqrt(penalty) * np.eye(features.shape[1])])
    return np.linalg.lstsq(rows, np.concatenate([labels, np.zeros(features.shape[1])]))[0]


@pytest.mark.parametrize("rows, columns", [(12, 5), (5, 12), (8, 8)], ids=["primal", "dual", "square"])
def test_all_roads_lead_to_least_squares(rows, columns):
    rng = np.random.default_rng(rows)
    features, labels = rng.normal(size=(rows, columns)), rng.normal(size=rows)
    expected = np.stack([least_squares(features, labels, penalty) for penalty in PENALTIES], axis=1)
    with jax.enable_x64(True):
        one_by_one = [ridge(jnp.asarray(features), jnp.asarray(labels), penalty) for penalty in PENALTIES]
        path = ridge_path(jnp.asarray(features), jnp.asarray(labels), jnp.asarray(PENALTIES))
    assert_allclose(np.stack(one_by_one, axis=1), expected, atol=1e-8)
    assert_allclose(path, expected, atol=1e-8)


def test_rows_of_zeros_play_no_part():
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(6, 9)), rng.normal(size=6)
    with jax.enable_x64(True):
        padded = jnp.asarray(np.concatenate([features, np.zeros((5, 9))])), jnp.asarray([*labels, *np.zeros(5)])
        for penalty in PENALTIES:  # 6 rows are fewer than 9 columns, 11 are more: the other Gram matrix
            assert_allclose(ridge(*padded, penalty), least_squares(features, labels, penalty), atol=1e-8)
        path = ridge_path(*padded, jnp.asarray(PENALTIES))
    assert_allclose(path[:, 1], least_squares(features, labels, PENALTIES[1]), atol=1e-8)


DATA = fl.data.SingleIndex(n=9, d=60, link=jnp.sin, label_noise=0.3)
TANH = fl.networks.TwoLayer(width=6, activation=jnp.tanh)


def one_step(algorithm, network=TANH, rows=9, precision=64, seed=2):
    """Features, labels and number of the samples that a step sees; the head it finds, and its value."""

    @eqx.filter_jit
    def step(seed):
        space = Span.create(60.0, DATA.vectors(rows * (1 + algorithm.holdouts)) + network.vectors())
        draw = draw_run(DATA, network, space, rows, algorithm.holdouts, jax.random.key(seed))
        task = PlainProblem(DATA, network, fl.objectives.as_objective(fl.objectives.squared, network), draw)
        state, info = algorithm.step(jax.random.key(0), algorithm.init(jax.random.key(0), task), task)
        return *regression(task, task.start, algorithm.holdout), network.head(state.params), info.value

    with jax.enable_x64(precision == 64):
        return tuple(map(np.asarray, step(jnp.uint32(seed))))


@pytest.mark.parametrize("holdout, rows", [(0, 9), (1, 13)])
def test_the_value_is_the_minimum_and_padding_is_not_counted(holdout, rows):
    features, labels, n, head, value = one_step(Ridge(0.05, holdout=holdout), rows=rows)
    assert n == 9 and np.all(features[9:] == 0) and np.all(labels[9:] == 0) and np.all(labels[:9] != 0)
    expected = least_squares(features[:9], labels[:9], 0.05 * 9)
    assert_allclose(head, expected, atol=1e-8)
    least = np.mean((labels[:9] - features[:9] @ expected) ** 2) + 0.05 * expected @ expected
    assert_allclose(value, least, atol=1e-8)


def test_what_rounding_has_spoilt_counts_as_diverged():
    """Features beside which the penalty is beneath the rounding of float32, though a head comes out of it."""

    def flat(z):
        return 300 + z

    network = fl.networks.TwoLayer(width=6, activation=flat)
    features, labels, _, head, value = one_step(Ridge(1e-6), network, precision=32)
    right = least_squares(features.astype(float), labels.astype(float), 9e-6)
    assert np.all(np.isfinite(head)) and np.linalg.norm(head - right) > 0.02 * np.linalg.norm(right)
    assert np.isnan(value)  # which is how a run diverges
    assert np.isfinite(one_step(Ridge(1e-6), network)[-1])
    assert np.isfinite(one_step(Ridge(1e4), network, precision=32)[-1])


def test_a_network_without_features_is_refused():
    with pytest.raises(fl.InputError, match="Ridge needs a network such as .* TwoLayer, got TwoLayerCNN"):
        fl.run(fl.Experiment(data=DATA, network=fl.networks.TwoLayerCNN(width=2), algorithm=Ridge(0.1), steps=1))


@pytest.mark.parametrize("penalty", [0.0, -1.0])
def test_a_penalty_is_positive(penalty):
    with pytest.raises(fl.InputError, match="Ridge.penalty must be a finite number above 0"):
        Ridge(penalty)
