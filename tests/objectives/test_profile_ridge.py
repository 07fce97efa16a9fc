"""The profiled ridge loss against plain NumPy: value, gradient, both roads, label noise, padding, rounding."""

import contextlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl
from featlab.engine.dataset import Diverged
from featlab.networks.linear import LinearLayers
from featlab.objectives import ProfileRidge, degrees_of_freedom

PENALTY, DOF = 0.05, 0.7
LINEAR = fl.networks.TwoLayerLinear(tasks=3)


def batch_of(inputs, labels, padding=0):
    inputs = np.concatenate([inputs, np.ones((padding, inputs.shape[1]))])
    labels = np.concatenate([labels, np.ones((padding, *labels.shape[1:]))])  # padding must not be read
    mask = jnp.arange(len(inputs)) < len(inputs) - padding
    labels = jnp.asarray(labels)
    return fl.data.Batch(jnp.asarray(inputs)[:, None], labels, labels, mask)


def problem(n, width, d=9, tasks=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, tasks)), rng.normal(size=(width, d))


def plain(features, labels, penalty, dof):
    """By least squares, task by task, and by the trace of the hat matrix."""
    n, width = features.shape
    design = np.concatenate([features, np.sqrt(n * penalty) * np.eye(width)])
    fits = []
    for one in labels.T:
        head, *_ = np.linalg.lstsq(design, np.concatenate([one, np.zeros(width)]))
        fits.append(np.mean((one - features @ head) ** 2) + penalty * head @ head)
    hat = features @ np.linalg.solve(features.T @ features + n * penalty * np.eye(width), features.T)
    return np.mean(fits) + dof / n * np.trace(hat), np.trace(hat)


def value(objective, layer, inputs, labels, padding=0, key=None, network=LINEAR):
    with jax.enable_x64(True):
        params = LinearLayers(jnp.asarray(layer), jnp.zeros((len(layer), labels.shape[1])))
        got, profile = objective.bind(network)(params, batch_of(inputs, labels, padding), key)
        return float(got), float(profile.freedom)


@pytest.mark.parametrize("n, width", [(6, 8), (12, 4), (7, 7)], ids=["dual", "primal", "square"])
@pytest.mark.parametrize("tasks", [3, 20])
def test_the_value_is_that_of_least_squares_by_either_road(n, width, tasks):
    inputs, labels, layer = problem(n, width, tasks=tasks)
    expected, freedom = plain(inputs @ layer.T, labels, PENALTY, DOF)
    for padding in (0, 4):  # padding turns the dual road into the primal one
        got = value(ProfileRidge(penalty=PENALTY, dof=DOF), layer, inputs, labels, padding)
        assert_allclose(got, (expected, freedom), rtol=1e-12)
    with jax.enable_x64(True):
        seen = jnp.asarray(inputs @ layer.T)
        assert_allclose(degrees_of_freedom(seen @ seen.T, n * PENALTY), freedom, rtol=1e-12)


@pytest.mark.parametrize("n, width", [(6, 8), (12, 4)], ids=["dual", "primal"])
@pytest.mark.parametrize("noise", [None, 0.8])
def test_the_gradient_is_that_of_finite_differences(n, width, noise):
    inputs, labels, layer = problem(n, width)
    objective = ProfileRidge(penalty=PENALTY, dof=DOF, label_noise=noise).bind(LINEAR)
    with jax.enable_x64(True):
        batch, key = batch_of(inputs, labels, padding=2), jax.random.key(3)
        head = jnp.zeros((width, 3))

        @eqx.filter_jit
        def at(layer):
            return jax.value_and_grad(lambda w: objective(LinearLayers(w, head), batch, key)[0])(layer)

        gradient = np.asarray(at(jnp.asarray(layer))[1])
        step, rng = 1e-5, np.random.default_rng(5)
        for _ in range(3):
            way = rng.normal(size=layer.shape)
            slope = (at(jnp.asarray(layer + step * way))[0] - at(jnp.asarray(layer - step * way))[0]) / (2 * step)
            assert_allclose(np.sum(gradient * way), slope, rtol=1e-7)


def test_label_noise_adds_its_variance_times_the_degrees_of_freedom():
    inputs, labels, layer = problem(6, 8)
    noise = 0.8
    clean, freedom = plain(inputs @ layer.T, labels, PENALTY, 0.0)
    mean = clean + noise**2 / 3 / 6 * freedom
    objective = ProfileRidge(penalty=PENALTY, label_noise=noise)
    assert_allclose(value(objective, layer, inputs, labels)[0], mean, rtol=1e-12)  # without a key
    with jax.enable_x64(True):
        params, batch = LinearLayers(jnp.asarray(layer), jnp.zeros((8, 3))), batch_of(inputs, labels)
        bound, keys = objective.bind(LINEAR), jax.random.split(jax.random.key(1), 2000)
        drawn = np.asarray(eqx.filter_jit(jax.vmap(lambda key: bound(params, batch, key)[0]))(keys))
    assert abs(drawn.mean() - mean) < 4 * drawn.std() / np.sqrt(2000) and drawn.std() > 0.01 * mean


def test_with_label_noise_the_head_is_fitted_to_noisy_labels_and_judged_by_clean_ones():
    inputs, labels, layer = problem(6, 8)
    features = inputs @ layer.T
    key, objective = jax.random.key(2), ProfileRidge(penalty=PENALTY, label_noise=0.8)
    got = value(objective, layer, inputs, labels, key=key)[0]
    assert_allclose(value(objective, layer, inputs, labels, padding=3, key=key)[0], got, rtol=1e-12)
    with jax.enable_x64(True):
        noise = 0.8 * np.asarray(
            [jax.random.uniform(jax.random.fold_in(key, i), (3,), jnp.float32, -1.0, 1.0) for i in range(6)], float
        )
    head = np.linalg.solve(features.T @ features + 6 * PENALTY * np.eye(8), features.T @ (labels + noise))
    missed = np.mean((labels - features @ head) ** 2, axis=0) + PENALTY * np.sum(head**2, axis=0)
    assert_allclose(got, np.mean(missed), rtol=1e-10)


def test_heads_are_those_of_ridge_regression():
    for n, width in [(6, 8), (12, 4)]:
        inputs, labels, layer = problem(n, width)
        features = inputs @ layer.T
        expected = np.linalg.solve(features.T @ features + n * PENALTY * np.eye(width), features.T @ labels)
        with jax.enable_x64(True):
            params = LinearLayers(jnp.asarray(layer), jnp.zeros((width, 3)))
            head = ProfileRidge(penalty=PENALTY).bind(LINEAR).head(params, batch_of(inputs, labels))
        assert_allclose(head, expected, rtol=1e-9)


def test_a_two_layer_network_has_the_mean_of_its_neurons_kernels():
    network = fl.networks.TwoLayer(width=5, activation=jnp.tanh)
    rng = np.random.default_rng(1)
    inputs, labels = rng.normal(size=(6, 4)), rng.normal(size=(6, 1))
    with jax.enable_x64(True):
        params, _ = network.init(jax.random.key(0), fl.Ambient(4.0))
        got, _ = ProfileRidge(penalty=PENALTY).bind(network)(params, batch_of(inputs, labels), None)
        neurons = np.tanh(inputs @ np.asarray(params.weights).T)
    kernel = sum(np.outer(one, one) for one in neurons.T) / 5
    expected = PENALTY * labels[:, 0] @ np.linalg.solve(kernel + 6 * PENALTY * np.eye(6), labels[:, 0])
    assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("condition", [1e6, 1e12, 1e18])
@pytest.mark.parametrize("n, width", [(6, 8), (12, 4)], ids=["dual", "primal"])
def test_a_condition_of_1e12_gives_the_number_and_a_worse_one_nan(condition, n, width):
    """The features' singular values run from 1 to the root of the condition, and the level is 1."""
    rng = np.random.default_rng(2)
    rank = min(n, width)
    values = np.geomspace(1, np.sqrt(condition), rank)
    left, right = (np.linalg.qr(rng.normal(size=(size, size)))[0][:, :rank] for size in (n, width))
    labels = rng.normal(size=(n, 3))
    layer = (right * values) @ left.T  # W, for inputs that are the identity
    got, freedom = value(ProfileRidge(penalty=1 / n, dof=DOF), layer, np.eye(n), labels)
    kept = values**2 / (values**2 + 1)
    inside = np.sum((left.T @ labels) ** 2 / (values**2 + 1)[:, None])
    outside = np.sum(labels**2) - np.sum((left.T @ labels) ** 2)
    expected = (inside + outside) / n / 3 + DOF / n * np.sum(kept)
    if condition > 1e15:
        assert np.isnan(got)
    else:
        assert_allclose((got, freedom), (expected, np.sum(kept)), rtol=1e-3 if condition > 1e9 else 1e-8)


@pytest.mark.slow
def test_what_float32_cannot_solve_diverges_and_float64_trains():
    def trained(precision):
        experiment = fl.Experiment(
            data=fl.data.LinearRegression(
                n=6, d=12, spectrum=fl.data.power_law(1), target=fl.data.power_law(1), tasks=2, label_noise=0.5
            ),
            network=fl.networks.TwoLayerLinear(diagonal=True, tasks=2, decay=4.0),  # a condition of 1e8
            objective=ProfileRidge(penalty=1e-8, dof=0.5),
            algorithm=fl.algorithms.GradientDescent(1e-3),
            probes=[fl.probes.train_loss],
            steps=2,
            precision=precision,
        )
        with pytest.warns(Diverged) if precision == 32 else contextlib.nullcontext():
            return str(fl.run(experiment, seeds=1, progress=False).status[0].item())

    assert (trained(32), trained(64)) == ("diverged", "trained")
