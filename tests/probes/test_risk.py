"""Test losses and errors against what is known about them without simulation."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

import featlab as fl

pytestmark = pytest.mark.gpu

P = fl.probes


def experiment(**data):
    return fl.Experiment(
        data=fl.data.SignalNoise(**{**dict(n=30, d=1e4, snr=0.5, noise_scale=0.01), **data}),
        network=fl.networks.TwoLayerCNN(width=8, init_scale=0.01),
        algorithm=fl.algorithms.GradientDescent(5.0),
        probes=[P.test_error(count=20_000), P.test_loss(count=20_000), P.train_loss],
        steps=200,
        record=P.every(200),
    )


@pytest.mark.slow
def test_flipped_test_labels_are_a_floor():
    history = fl.run(experiment(test_flip=0.2), seeds=4).isel(step=-1)
    assert (history.clean_test_error < 1e-3).all()
    np.testing.assert_allclose(history.test_error, 0.2, atol=0.015)


@pytest.mark.slow
def test_the_monte_carlo_error_is_the_binomial_one():
    history = fl.run(experiment(snr=0.2, d=300, noise_scale=300**-0.5), seeds=4)
    p = history.test_error
    np.testing.assert_allclose(history.test_error_se, np.sqrt(p * (1 - p) / 20_000), rtol=1e-3)
    many = fl.run(
        dataclasses.replace(experiment(snr=0.2, d=300, noise_scale=300**-0.5), probes=[P.test_error]), seeds=4
    )
    difference = (many.test_error - p) / np.hypot(many.test_error_se, history.test_error_se)
    assert abs(difference).max() < 4 and abs(difference).max() > 0


@pytest.mark.slow
def test_without_a_signal_the_test_error_is_one_half():
    # Leaky, because an output of exactly 0, all filters being off, counts as an error.
    leaky = fl.networks.TwoLayerCNN(width=8, activation=fl.networks.leaky_relu(0.1), init_scale=0.01)
    long = dataclasses.replace(experiment(snr=0.0), network=leaky, steps=2000, record=P.every(2000))
    history = fl.run(long, seeds=4).isel(step=-1)
    assert (history.train_loss < 0.1).all()
    np.testing.assert_allclose(history.test_error, 0.5, atol=0.015)


def test_a_linear_network_has_the_error_of_the_normal_law():
    """With leaky slope 1 the output is <v, x1 + x2>, and the error is Phi(-<v, mu> / (sigma |v off mu|))."""
    linear = fl.networks.TwoLayerCNN(width=4, activation=fl.networks.leaky_relu(1.0), init_scale=0.05)
    d, sigma = 500, 500**-0.5

    def exact(view):
        signs = view.class_signs.repeat(4)
        v = signs @ view.weights
        (mu,) = view.problem.draw.truth.vectors
        off = v - (v @ mu) * mu / (mu @ mu)
        return np.array([1.0]) * (v @ mu) / (sigma * (off @ off) ** 0.5)

    base = dataclasses.replace(
        experiment(snr=0.15, d=d, noise_scale=sigma), network=linear, probes=[exact, P.test_error(count=200_000)]
    )
    history = fl.run(base, seeds=4)
    expected = stats.norm.cdf(-history.exact.values[..., 0])
    errors = (history.clean_test_error - expected) / np.sqrt(expected * (1 - expected) / 200_000)
    assert abs(errors).max() < 4.5


@pytest.mark.slow
def test_the_test_loss_at_a_zero_start_is_log_two():
    zero = dataclasses.replace(experiment(), network=fl.networks.TwoLayerCNN(width=3, init_scale=0.0), steps=0)
    history = fl.run(zero, seeds=2)
    np.testing.assert_allclose(history.test_loss, math.log(2), rtol=1e-6)
    np.testing.assert_allclose(history.test_loss_se, 0, atol=1e-6)
    np.testing.assert_allclose(history.test_error, 1.0)  # an output of 0 is no answer
