"""Recursive feature machines against plain NumPy, with loops; padding, rounding, and what is refused."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl
from featlab.algorithms import RecursiveFeatureMachine, as_it_is, largest_entry_one, mean_eigenvalue_one
from featlab.core.space import Ambient
from featlab.networks import KernelMachine
from featlab.objectives import as_objective
from featlab.problem import PlainProblem, draw_run

N, D, PENALTY, BANDWIDTH = 12, 4, 0.05, 2.0
DATA = fl.data.MultiIndex(n=N, d=D, link=fl.data.two_stairs, label_noise=0.3)


def walked(algorithm, steps=3, rows=N, precision=64, network=None):
    """Inputs, labels, and the state and value after each step."""
    network = KernelMachine(BANDWIDTH) if network is None else network
    with jax.enable_x64(precision == 64):
        draw = eqx.filter_jit(draw_run)(DATA, network, Ambient(float(D)), rows, 0, jax.random.key(3))
        task = PlainProblem(DATA, network, as_objective(fl.objectives.squared, network), draw)
        state, seen = algorithm.init(jax.random.key(0), task), []
        step = eqx.filter_jit(algorithm.step)
        for _ in range(steps):
            state, info = step(jax.random.key(0), state, task)
            seen.append((state, float(info.value)))
        return np.asarray(draw.training.inputs[:, 0]), np.asarray(draw.training.labels), seen


def by_hand(inputs, labels, metric):
    """Kernel ridge regression with this metric: coefficients, value, and the average gradient outer product."""
    n, d = inputs.shape
    kernel, pulls = np.empty((n, n)), np.zeros((n, n, d))
    for i in range(n):
        for j in range(n):
            away = inputs[i] - inputs[j]
            distance = np.sqrt(max(away @ metric @ away, 0))
            kernel[i, j] = np.exp(-distance / BANDWIDTH)
            if i != j:
                pulls[i, j] = -kernel[i, j] / (BANDWIDTH * distance) * metric @ away
    coefficients = np.linalg.solve(kernel + PENALTY * np.eye(n), labels)
    residual = labels - kernel @ coefficients
    value = (residual @ residual + PENALTY * coefficients @ kernel @ coefficients) / n
    gradients = np.einsum("ijk,j->ik", pulls, coefficients)
    return coefficients, value, gradients.T @ gradients / n


@pytest.mark.parametrize(
    "normalise, scale",
    [
        (mean_eigenvalue_one, lambda m: m * D / np.trace(m)),
        pytest.param(largest_entry_one, lambda m: m / m.max(), marks=pytest.mark.slow),
        pytest.param(as_it_is, lambda m: m, marks=pytest.mark.slow),
    ],
)
def test_every_step_is_a_solution_and_a_metric(normalise, scale):
    inputs, labels, seen = walked(RecursiveFeatureMachine(PENALTY, normalise=normalise))
    metric = np.eye(D)  # so that the first step is plain kernel ridge regression
    for state, value in seen:
        coefficients, least, agop = by_hand(inputs, labels, metric)
        assert_allclose(state.params.metric, metric, atol=1e-10)
        assert_allclose(state.params.coefficients, coefficients, atol=1e-9)
        assert_allclose(value, least, atol=1e-10)
        metric = scale(agop)


@pytest.mark.slow
def test_padding_plays_no_part():
    algorithm = RecursiveFeatureMachine(PENALTY)
    _, _, plain = walked(algorithm)
    _, _, padded = walked(algorithm, rows=N + 5)
    state, other = plain[-1][0], padded[-1][0]
    assert np.all(np.asarray(other.params.coefficients[N:]) == 0)
    assert_allclose(other.params.coefficients[:N], state.params.coefficients, atol=1e-9)
    assert_allclose(other.params.metric, state.params.metric, atol=1e-10)
    assert_allclose(padded[-1][1], plain[-1][1], atol=1e-12)


@pytest.mark.slow
def test_what_rounding_has_spoilt_counts_as_diverged():
    """All points within a thousandth of a bandwidth: a kernel matrix of ones, up to the rounding of float32."""
    wide = KernelMachine(1e6)
    assert not np.isfinite(walked(RecursiveFeatureMachine(1e-9), 1, precision=32, network=wide)[2][0][1])


def test_other_networks_and_several_labels_are_refused():
    with pytest.raises(fl.InputError, match="RecursiveFeatureMachine needs a KernelMachine network, got TwoLayer"):
        network = fl.networks.TwoLayer(width=2)
        fl.testing.example_experiment(algorithm=RecursiveFeatureMachine(PENALTY), network=network)
    with pytest.raises(fl.InputError, match="penalty must be a finite number above 0"):
        RecursiveFeatureMachine(0.0)


def test_scales():
    metric = jnp.array([[2.0, -3.0], [-3.0, 6.0]])
    assert_allclose(mean_eigenvalue_one(metric), np.asarray(metric) / 4)
    assert_allclose(largest_entry_one(metric), np.asarray(metric) / 6)
    assert np.all(np.isfinite(mean_eigenvalue_one(jnp.zeros((2, 2)))))


@pytest.mark.slow
def test_it_finds_the_plane_that_the_labels_depend_on():
    experiment = fl.Experiment(
        data=fl.data.MultiIndex(n=400, d=20, link=fl.data.product),
        network=KernelMachine(10.0),
        algorithm=RecursiveFeatureMachine(1e-3),
        objective=fl.objectives.squared,
        probes=[fl.probes.agop_subspace, fl.probes.test_loss(count=1000)],
        steps=6,
        record=fl.probes.every(1),
        precision=64,
    )
    history = fl.run(experiment, seeds=3, progress=False)
    assert np.all(history.agop_overlap[:, -1] > 0.95)
    assert np.all(history.test_loss[:, -1] < 0.3 * history.test_loss[:, 1])
