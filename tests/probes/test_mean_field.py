"""Energies, alignment and label noise of a mean field, against their formulas in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl
from featlab import testing
from featlab.probes.mean_field import line_entropy

PENALTY, N, WIDTH = 0.02, 9, 6
PENALTIES, HALF_WIDTHS, DRAWS = (0.005, 0.2), (0.5, 1.5), 4000
PROBES = [
    fl.probes.mean_field_energy,
    fl.probes.kernel_target_alignment,
    fl.probes.label_noise_excess(penalty=PENALTIES, half_width=HALF_WIDTHS, draws=DRAWS),
]


def experiment(**changes):
    parts = dict(
        data=fl.data.SingleIndex(n=N, d=4, link=jnp.sin, label_noise=0.2),
        network=fl.networks.TwoLayer(width=WIDTH, activation=jnp.tanh),
        algorithm=fl.algorithms.Langevin(0.1, 0.05, confinement=0.3),
        objective=fl.objectives.ProfileRidge(penalty=PENALTY),
        probes=PROBES,
        steps=1,
        precision=64,
    )
    return fl.Experiment(**{**parts, **changes})


@pytest.fixture(scope="module")
def read():
    """The readings after a step, with the features and labels they are of."""

    def features(view):
        return view.problem.features(view.params, view.training.inputs)

    def labels(view):
        return view.training.labels

    def weights(view):
        return view.params.weights

    history = fl.run(experiment(probes=[*PROBES, features, labels, weights]), seeds=1, progress=False)
    return history.isel(seed=0, step=-1)


def least_loss(features, labels, penalty, fitted_to=None):
    """Loss and penalty on the labels of the head that is fitted to them, or to others."""
    phi = features / np.sqrt(WIDTH)
    target = labels if fitted_to is None else fitted_to
    head = np.linalg.solve(phi.T @ phi + N * penalty * np.eye(WIDTH), phi.T @ target)
    return np.mean((labels - phi @ head) ** 2) + penalty * head @ head


def test_label_noise_of_several_tasks_costs_as_much_as_of_one():
    """Each task has noise of its own, and is judged on its own labels."""
    law = fl.data.power_law(0)
    tasks = fl.data.LinearRegression(n=N, d=4, spectrum=law, target=law, tasks=3, label_noise=0.2)
    history = fl.run(experiment(data=tasks, probes=PROBES[2:], steps=0), seeds=1, progress=False)
    read = history.isel(seed=0, step=-1)
    assert_allclose(read.label_noise_excess / read.label_noise_formula, 1, atol=0.06)
    assert_allclose(read.label_noise_trace, read.label_noise_formula.isel(half_width=0) * 3 / 0.25, rtol=1e-9)


def test_energies(read):
    features, labels = read.features.values, read.labels.values
    assert_allclose(read.objective_value, least_loss(features, labels, PENALTY), rtol=1e-9)
    assert_allclose(read.confinement_energy, 0.3 * np.sum(read.weights.values**2) / WIDTH, rtol=1e-9)
    assert np.isnan(read.particle_entropy)  # not on a line


@pytest.mark.slow
def test_the_kernel_s_alignment_with_the_labels(read):
    kernel, labels = read.features.values @ read.features.values.T, read.labels.values
    expected = labels @ kernel @ labels / np.linalg.norm(kernel) / np.sum(labels**2)
    assert_allclose(read.kernel_target_alignment, expected, rtol=1e-9)


def test_label_noise_costs_its_variance_times_the_degrees_of_freedom(read):
    features, labels = read.features.values, read.labels.values
    for i, penalty in enumerate(PENALTIES):
        kernel = features @ features.T / WIDTH
        smoother = kernel @ np.linalg.inv(kernel + N * penalty * np.eye(N))
        least = least_loss(features, labels, penalty)
        exact = sum(least_loss(features, labels, penalty, labels + unit) - least for unit in np.eye(N))
        assert_allclose(read.label_noise_trace[i], exact, rtol=1e-9)
        assert_allclose(exact, np.trace(smoother) / N, rtol=1e-9)
        for j, half in enumerate(HALF_WIDTHS):
            expected = half**2 / 3 * np.trace(smoother) / N
            assert_allclose(read.label_noise_formula[i, j], expected, rtol=1e-9)
            assert_allclose(read.label_noise_excess[i, j], expected, rtol=0.04)
            assert abs(read.label_noise_excess[i, j] / expected - 1) > 1e-6  # it was drawn


@pytest.mark.slow
def test_rows_that_do_not_count_change_nothing():
    few = [*PROBES[:2], PROBES[2](draws=5)]
    testing.check_padding(experiment(probes=few), steps=1)


def test_the_penalty_must_come_from_somewhere():
    with pytest.raises(fl.InputError, match=r"use mean_field_energy\(penalty=0.01\)"):
        fl.run(experiment(objective=fl.objectives.squared, probes=PROBES[:1]), seeds=1, progress=False)


@pytest.mark.parametrize("count", [300, 3000])
def test_the_entropy_of_normal_particles_has_the_error_that_is_promised(count):
    with jax.enable_x64(True):
        draws = np.random.default_rng(0).normal(1.0, 2.0, (400, count))
        estimates = np.asarray(jax.jit(jax.vmap(line_entropy))(draws))
    truth = -np.log(2 * np.sqrt(2 * np.pi * np.e))
    assert 0.7 < estimates.std() * np.sqrt(count) < 0.85
    assert_allclose(estimates.mean() - truth, {300: 0.042, 3000: 0.009}[count], atol=0.003)
