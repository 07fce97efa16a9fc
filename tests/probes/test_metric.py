"""Exact risks of ridge regression under a metric against plain NumPy and Monte Carlo; the metric's own numbers."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl
from featlab.core.space import Ambient
from featlab.data import LinearRegression, power_law
from featlab.networks import TwoLayerLinear
from featlab.networks.linear import LinearLayers
from featlab.objectives import ProfileRidge
from featlab.probes import View, criterion, degrees_of_freedom, metric_alignment, metric_spectrum, ridge_risk
from featlab.problem import PlainProblem, draw_run

N, D, TASKS, NOISE, DOF = 7, 10, 4, 0.6, 0.9
PENALTIES = (0.0, 1e-3, 0.1, 3.0)
DATA = LinearRegression(n=N, d=D, spectrum=power_law(1), target=power_law(0.5), tasks=TASKS, label_noise=NOISE)
LAYER = np.random.default_rng(3).normal(size=(9, D))
PROBES = (ridge_risk, degrees_of_freedom, criterion(dof=DOF), metric_spectrum, metric_alignment)


def view_of(network, first, rows=N, data=DATA):
    with jax.enable_x64(True):
        draw = eqx.filter_jit(draw_run)(data, network, Ambient(float(data.d)), rows, 0, jax.random.key(2))
        params = LinearLayers(jnp.asarray(first), jnp.zeros((len(first), data.tasks)))
        task = PlainProblem(data, network, ProfileRidge(penalty=0.1).bind(network), draw)
        return View(params, jnp.array(0), task, fl.algorithms.GradientDescent(0.1))


def read(view, penalties=PENALTIES):
    @eqx.filter_jit
    def all_of(view):
        options = [{"penalty": penalties} if "penalty" in probe.settings else {} for probe in PROBES]
        readings = [(probe(**some) if some else probe)(view) for probe, some in zip(PROBES, options)]
        return {name: value for reading in readings for name, value in reading.items()}

    with jax.enable_x64(True):
        return {name: np.asarray(value) for name, value in all_of(view).items()}


@pytest.fixture(scope="module")
def full():
    view = view_of(TwoLayerLinear(width=9, tasks=TASKS), LAYER)
    return view, read(view)


def plain(x, layer, spectrum, target, penalty):
    """Bias and variance out of sample and in sample, with every matrix written out."""
    n, d = x.shape
    features = x @ layer.T
    if penalty:
        solved = np.linalg.solve(features.T @ features + n * penalty * np.eye(len(layer)), features.T)
    else:
        solved = np.linalg.pinv(features)
    estimator = layer.T @ solved  # beta-hat = estimator @ y
    left = estimator @ x - np.eye(d)
    inner = np.diag(target)
    return {
        "ridge_bias": np.trace(np.diag(spectrum) @ left @ inner @ left.T),
        "ridge_variance": NOISE**2 * np.trace(np.diag(spectrum) @ estimator @ estimator.T),
        "in_sample_bias": np.trace(x @ left @ inner @ left.T @ x.T) / n,
        "in_sample_variance": NOISE**2 * np.trace(x @ estimator @ estimator.T @ x.T) / n,
    }


def laws():
    j = np.arange(1, D + 1)
    return 1 / j, j**-0.5


def test_risks_are_those_of_the_matrices_written_out(full):
    view, got = full
    x = np.asarray(view.training.inputs[:, 0])
    for i, penalty in enumerate(PENALTIES):
        expected = plain(x, LAYER, *laws(), penalty)
        for name, value in expected.items():
            assert_allclose(got[name][i], value, rtol=1e-8, atol=1e-12, err_msg=f"{name} at {penalty}")
        assert_allclose(got["ridge_risk"][i], expected["ridge_bias"] + expected["ridge_variance"], rtol=1e-8)


def test_the_risk_is_the_mean_over_new_tasks_their_noise_and_fresh_inputs(full):
    view, got = full
    x, rng, draws = np.asarray(view.training.inputs[:, 0]), np.random.default_rng(0), 20_000
    spectrum, target = laws()
    beta = np.sqrt(target) * rng.normal(size=(draws, D))
    labels = beta @ x.T + NOISE * rng.normal(size=(draws, N))
    features, fresh = x @ LAYER.T, np.sqrt(spectrum) * rng.normal(size=(draws, D))
    head = np.linalg.solve(features.T @ features + N * 0.1 * np.eye(9), features.T @ labels.T).T
    squares = np.sum(fresh * (head @ LAYER - beta), axis=1) ** 2
    assert abs(squares.mean() - got["ridge_risk"][2]) < 4 * squares.std() / np.sqrt(draws)


def test_freedom_and_criterion_are_those_of_the_objective(full):
    view, got = full
    for i, penalty in enumerate(PENALTIES[1:], start=1):
        with jax.enable_x64(True):
            objective = ProfileRidge(penalty=penalty, dof=DOF).bind(view.problem.network)
            value, profile = objective(view.params, view.training, None)
        assert_allclose(got["criterion"][i], value, rtol=1e-9)
        assert_allclose(got["degrees_of_freedom"][i], profile.freedom, rtol=1e-9)
    assert_allclose(got["degrees_of_freedom"][0], N)
    assert_allclose(got["criterion"][0], DOF, rtol=1e-9)  # nothing is missed, and everything is used


def test_spectrum_and_alignment_of_the_metric(full):
    spectrum, target = laws()
    metric = LAYER.T @ LAYER
    assert_allclose(full[1]["metric_spectrum"], np.linalg.eigvalsh(LAYER @ np.diag(spectrum) @ LAYER.T)[::-1])
    cosine = np.sum(metric * np.diag(target)) / np.linalg.norm(metric) / np.linalg.norm(target)
    assert_allclose(full[1]["metric_alignment"], cosine)


@pytest.mark.slow
def test_a_diagonal_layer_is_the_same_written_out():
    logarithms = np.linspace(1, -2, D)
    diagonal = read(view_of(TwoLayerLinear(diagonal=True, tasks=TASKS), logarithms))
    written = read(view_of(TwoLayerLinear(tasks=TASKS), np.diag(np.exp(logarithms))))
    for name, value in written.items():
        assert_allclose(diagonal[name], value, rtol=1e-9, err_msg=name)


def test_rows_that_do_not_count_change_nothing(full):
    padded = read(view_of(TwoLayerLinear(width=9, tasks=TASKS), LAYER, rows=N + 3))
    for name, value in full[1].items():
        assert_allclose(padded[name], value, rtol=1e-9, atol=1e-12, err_msg=name)


def test_ridge_on_the_features_is_ridge_on_the_inputs_measured_by_the_inverse_metric():
    rng = np.random.default_rng(1)
    x, y, layer = rng.normal(size=(N, D)), rng.normal(size=(N, 2)), rng.normal(size=(D, D))
    network = TwoLayerLinear(tasks=2)
    with jax.enable_x64(True):
        labels = jnp.asarray(y)
        batch = fl.data.Batch(jnp.asarray(x)[:, None], labels, labels, jnp.ones(N, bool))
        params = LinearLayers(jnp.asarray(layer), jnp.zeros((D, 2)))
        head = np.asarray(ProfileRidge(penalty=0.2).bind(network).head(params, batch))
    inverse = np.linalg.inv(layer.T @ layer)
    direct = np.linalg.solve(x.T @ x + N * 0.2 * inverse, x.T @ y)
    assert_allclose(layer.T @ head, direct, rtol=1e-7)


def test_the_hard_threshold_attains_the_least_criterion_and_the_covariance_is_within_a_factor_of_two():
    """On labels whose second moments are exactly those of infinitely many tasks."""
    rng = np.random.default_rng(4)
    noise, more = NOISE**2, 0.8
    spectrum, target = laws()
    x = rng.normal(size=(N, D)) * np.sqrt(spectrum)
    seen = x @ np.diag(target) @ x.T
    labels = np.linalg.cholesky(seen + noise * np.eye(N)) * np.sqrt(N)  # as N tasks
    values, vectors = np.linalg.eigh(seen / N)
    level = (more - noise) / N
    least = np.sum(np.minimum(values, level))
    kept = vectors[:, values > level]
    assert 0 < kept.shape[1] < N
    threshold = 1e4 * kept.T @ np.linalg.solve(x @ x.T, x)

    def excess(layer, penalty):
        with jax.enable_x64(True):
            batch = fl.data.Batch(
                jnp.asarray(x)[:, None], jnp.asarray(labels), jnp.asarray(labels), jnp.ones(N, bool)
            )
            network = TwoLayerLinear(tasks=N)
            params = LinearLayers(jnp.asarray(layer), jnp.zeros((len(layer), N)))
            return float(ProfileRidge(penalty=penalty, dof=more).bind(network)(params, batch, None)[0]) - noise

    assert_allclose(excess(threshold, 1 / N), least, rtol=1e-6)
    covariance = excess(np.diag(np.sqrt(target)), level)
    assert_allclose(covariance, np.sum(2 * values * level / (values + level)), rtol=1e-9)
    assert least < covariance < 2 * least
    for penalty in (1e-3, 1e-1):
        assert excess(np.eye(D), penalty) > least and excess(rng.normal(size=(D, D)), penalty) > least


def test_what_rounding_has_spoilt_is_nan():
    steep = np.diag(np.geomspace(1, 1e-12, D))
    got = read(view_of(TwoLayerLinear(tasks=TASKS), steep), (1e-3, 1e-17))
    for name in ("ridge_risk", "in_sample_bias", "in_sample_variance", "degrees_of_freedom", "criterion"):
        assert np.isfinite(got[name][0]) and np.isnan(got[name][1]), name


def test_exact_risks_of_other_networks_are_refused():
    view = view_of(TwoLayerLinear(width=9, tasks=TASKS), LAYER)
    other = fl.networks.TwoLayer(width=3)
    task = dataclasses.replace(view.problem, network=other)
    with pytest.raises(fl.InputError, match="ridge_risk needs a TwoLayerLinear network, got TwoLayer"):
        ridge_risk(dataclasses.replace(view, problem=task))
