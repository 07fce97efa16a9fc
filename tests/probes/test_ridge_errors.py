"""Errors of ridge regression on features, on the theory's spiked features and on plain inputs, against NumPy."""

from math import pi, sqrt

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl
from featlab.algorithms import GiantStep, Ridge, State
from featlab.core.space import Ambient
from featlab.probes import View, equivalent_errors, linear_errors, ridge_errors
from featlab.problem import PlainProblem, draw_run
from featlab.theory import random_features

N, D, WIDTH, NOISE, ETA = 14, 20, 6, 0.3, 5.0
PENALTIES = (0.01, 0.1, 2.0)
DATA = fl.data.SingleIndex(n=N, d=D, link=jnp.sin, label_noise=NOISE)
NETWORK = fl.networks.TwoLayer(width=WIDTH, activation=fl.networks.centred(fl.networks.relu), centred=True)


def experiment(probes, step, **parts):
    base = dict(
        data=DATA,
        network=NETWORK,
        algorithm=step,
        objective=fl.objectives.squared,
        probes=probes,
        record=fl.probes.at_end,
        space=fl.Ambient,
        precision=64,
    )
    return fl.Experiment(**{**base, **parts})


def view_of(data, network, algorithm, seed=2):
    """A run after one step."""

    @eqx.filter_jit
    def begin(seed):
        draw = draw_run(data, network, Ambient(float(data.d)), data.n, algorithm.holdouts, jax.random.key(seed))
        task = PlainProblem(data, network, fl.objectives.as_objective(fl.objectives.squared, network), draw)
        state = algorithm.init(jax.random.key(0), task)
        state, info = algorithm.step(jax.random.key(1), state, task)
        return View(state.params, jnp.array(1), task, algorithm, info)

    return begin(jnp.uint32(seed))


def read(probe, view):
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, eqx.filter_jit(probe)(view))


@pytest.fixture(scope="module")
def view():
    with jax.enable_x64(True):
        return view_of(DATA, NETWORK, GiantStep(eta=ETA))


def arrays(batch):
    return np.asarray(batch.inputs[:, 0]), np.asarray(batch.labels)


def relu(x, weights):
    return np.maximum(x @ np.asarray(weights).T, 0) - 1 / sqrt(2 * pi)


def fit(features, labels, penalty):
    """The head, and what it minimises."""
    n, width = features.shape
    head = np.linalg.solve(features.T @ features + penalty * n * np.eye(width), features.T @ labels)
    return head, np.mean((labels - features @ head) ** 2) + penalty * head @ head


def on_fresh_inputs(features, heads, direction):
    """For each head, on a hundred thousand inputs of NumPy's own, with the standard error."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=(100_000, D))
    y = np.sin(x @ direction) + NOISE * rng.normal(size=len(x))
    errors = (y[:, None] - features(x) @ np.stack(heads, axis=1)) ** 2
    return errors.mean(axis=0), errors.std(axis=0) / sqrt(len(x))


def agrees(found, prefix, features, sets, direction):
    """Train errors to rounding, test errors within five standard errors of either road."""
    x, y = (np.concatenate(both) for both in zip(*map(arrays, sets)))
    fits = [fit(features(x), y, penalty) for penalty in PENALTIES]
    assert_allclose(found[f"{prefix}_train_error"], [least for _, least in fits], rtol=1e-9)
    mean, error = on_fresh_inputs(features, [head for head, _ in fits], direction)
    ours = found[f"{prefix}_test_error_se"]
    assert_allclose(ours, error * sqrt(10), rtol=0.15)  # of 10,000 inputs, a tenth of NumPy's
    assert np.all(np.abs(found[f"{prefix}_test_error"] - mean) < 5 * np.hypot(error, ours))
    assert np.all(ours < 0.05 * mean)


@pytest.mark.parametrize("holdout", [0, 1])
def test_errors_are_those_of_the_features_after_the_step(view, holdout):
    found = read(ridge_errors(penalty=PENALTIES, holdout=holdout), view)
    chosen = view.training if holdout == 0 else view.problem.holdout(0)
    direction = np.asarray(view.problem.draw.truth.directions[0])
    agrees(found, "ridge", lambda x: relu(x, view.params.weights), [chosen], direction)
    untrained = [
        fit(relu(arrays(chosen)[0], view.problem.start.weights), arrays(chosen)[1], p)[1] for p in PENALTIES
    ]
    assert np.all(np.abs(found["ridge_train_error"] / untrained - 1) > 1e-3)  # the step made a difference


def test_one_penalty_alone_is_that_of_the_path(view):
    path = read(ridge_errors(penalty=PENALTIES), view)
    alone = read(ridge_errors(penalty=PENALTIES[1:2]), view)
    for name, values in alone.items():
        assert_allclose(values, path[name][1:2], rtol=1e-9)


def test_spiked_features_are_the_theorys(view):
    """F_0 and explicit spikes, with the ReLU's coefficients 1/2, 1/(2 sqrt(2 pi)) and 0."""
    found = read(ridge_errors(penalty=PENALTIES, spikes=(0, 1, 3)), view)
    start, a = view.problem.start.weights, np.asarray(view.problem.start.head) / sqrt(WIDTH)
    (x, y), held = arrays(view.training), view.problem.holdout(0)
    beta, direction = x.T @ y / N, np.asarray(view.problem.draw.truth.directions[0])
    c = {1: 1 / 2, 2: 1 / (2 * sqrt(2 * pi)), 3: 0.0}

    def spiked(order):
        def features(x):
            spikes = [(c[1] * ETA) ** k * c[k] * np.outer((x @ beta) ** k, a**k) for k in range(1, order + 1)]
            return relu(x, start) + sum(spikes)

        return features

    for place, order in enumerate((0, 1, 3)):
        agrees({name: v[:, place] for name, v in found.items()}, "ridge", spiked(order), [held], direction)
    assert np.all(np.abs(np.diff(found["ridge_train_error"], axis=1)) > 1e-4)


def test_plain_inputs_use_every_sample(view):
    found = read(linear_errors(penalty=PENALTIES), view)
    sets = [view.training, view.problem.holdout(0)]
    agrees(found, "linear", lambda x: x, sets, np.asarray(view.problem.draw.truth.directions[0]))


@pytest.mark.slow
def test_equivalent_features_of_a_linear_activation_are_the_features_themselves():
    with jax.enable_x64(True):
        network = fl.networks.TwoLayer(width=WIDTH, activation=fl.networks.identity)
        linear = view_of(DATA, network, GiantStep(eta=0.0))
    features, equivalent = (read(probe(penalty=PENALTIES), linear) for probe in (ridge_errors, equivalent_errors))
    assert_allclose(equivalent["equivalent_train_error"], features["ridge_train_error"], rtol=1e-6)
    assert_allclose(equivalent["equivalent_test_error"], features["ridge_test_error"], rtol=1e-6)


def test_equivalent_features_have_the_spikes_of_a_step():
    """With a linear activation nothing is random in them: F_0 and one spike, as explicit ones have it."""
    with jax.enable_x64(True):
        network = fl.networks.TwoLayer(width=WIDTH, activation=fl.networks.identity)
        linear = view_of(DATA, network, GiantStep(eta=ETA))
        probes = (
            ridge_errors(penalty=(0.1,), spikes=(0, 1), count=8),
            equivalent_errors(penalty=(0.1,), spikes=1, count=8),
        )
        explicit, equivalent = eqx.filter_jit(lambda view: [probe(view) for probe in probes])(linear)
    ours = float(equivalent["equivalent_train_error"][0])
    before, after = np.asarray(explicit["ridge_train_error"][0])
    assert_allclose(ours, after, rtol=1e-6)
    assert abs(after / before - 1) > 1e-4


def test_equivalent_features_have_the_errors_of_random_features():
    """The Gaussian model in place of the ReLU, against the limit it was made for; scatter of 16 draws is 3 %."""
    n, d, width, penalty = 200, 100, 200, 0.01
    data = fl.data.SingleIndex(n=n, d=d, link=fl.networks.identity)
    network = fl.networks.TwoLayer(width=width, activation=fl.networks.centred(fl.networks.relu))
    probe = equivalent_errors(penalty=(penalty,), count=500)

    @eqx.filter_jit
    def errors(seeds):
        return jax.lax.map(lambda seed: probe(view_of(data, network, GiantStep(eta=0.0), seed)), seeds)

    with jax.enable_x64(True):
        found = jax.tree.map(np.asarray, errors(jnp.arange(16, dtype=jnp.uint32)))
    relu_powers = random_features.Activation(1 / 4, 1 / 4 - 1 / (2 * pi))
    expected = random_features.errors(d / n, d / width, penalty, relu_powers, 1.0, 0.0)
    measured = [np.mean(found[f"equivalent_{name}_error"]) for name in ("train", "test")]
    assert_allclose(measured, expected, rtol=0.1)


def test_the_probe_is_what_the_algorithm_makes_of_the_same_features(view):
    found = read(ridge_errors(penalty=PENALTIES), view)
    algorithm = Ridge(PENALTIES[1], holdout=1)
    with jax.enable_x64(True):
        _, info = eqx.filter_jit(algorithm.step)(jax.random.key(0), State(view.params, view.step), view.problem)
    assert_allclose(found["ridge_train_error"][1], info.value, rtol=1e-9)


def test_a_run_has_penalties_and_spikes_as_coordinates():
    probe = ridge_errors(penalty=PENALTIES, spikes=(0,), count=10)
    history = fl.run(experiment([probe], GiantStep(eta=ETA), steps=1), [3])
    assert history.ridge_train_error.dims == ("seed", "penalty", "spikes")
    assert_allclose(history.penalty, PENALTIES)
    np.testing.assert_array_equal(history.spikes, [0])


@pytest.mark.parametrize(
    "parts, reason",
    [
        (
            {"network": fl.networks.TwoLayerCNN(width=2)},
            "need a two-layer network such as TwoLayer, got TwoLayerCNN",
        ),
        (
            {"algorithm": fl.algorithms.GradientDescent(0.1)},
            "need a GiantStep algorithm, got Grad",
        ),
        ({"data": fl.data.SignalNoise(n=6, d=40, snr=0.5)}, "inputs of one patch"),
    ],
    ids=["network", "algorithm", "data"],
)
def test_what_has_no_spikes_is_refused(parts, reason):
    probe = ridge_errors(spikes=(0, 1), holdout=0, count=10)
    with pytest.raises(fl.InputError, match=reason):
        fl.run(experiment([probe], GiantStep(eta=1.0), steps=1, **parts), 1)
