"""Each variant of the network against its formula, written out for one input."""

import itertools

import jax
import numpy as np
import pytest

import featlab as fl
from featlab.core.space import Ambient

X = np.array([[0.3, -1.2, 0.5], [1.1, 0.4, -0.2]])


def relu(z):
    return np.maximum(z, 0)


@pytest.mark.parametrize(
    "mean_filters, mean_patches, bias, head", list(itertools.product([True, False], repeat=4))
)
def test_variants_follow_the_formula(mean_filters, mean_patches, bias, head):
    network = fl.networks.TwoLayerCNN(
        width=4,
        init_scale=1.0,
        average_filters=mean_filters,
        average_patches=mean_patches,
        bias=bias,
        train_head=head,
        uniform_start=bias,
    )
    params, _ = network.init(jax.random.key(0), Ambient(3.0))
    expected = 0.0
    for j, sign in enumerate((1, -1)):
        for r in range(4):
            for patch in X:
                shift = float(params.bias[j, r]) if bias else 0.0
                expected += sign * relu(float(np.asarray(params.filters[j, r]) @ patch) + shift)
    expected *= (1 / 4 if mean_filters else 1) * (1 / 2 if mean_patches else 1)
    np.testing.assert_allclose(network(params, X.astype(np.float32)), expected, rtol=1e-5)
    assert (params.head is None) != head


def test_the_uniform_start_is_pytorchs():
    network = fl.networks.TwoLayerCNN(width=50, uniform_start=True, bias=True)
    params, _ = network.init(jax.random.key(0), Ambient(100.0))
    for values in (params.filters, params.bias):
        assert abs(np.asarray(values)).max() <= 0.1 and abs(np.asarray(values)).max() > 0.09
        assert abs(np.asarray(values).std() - 0.1 / 3**0.5) < 0.005


@pytest.mark.parametrize("power", [1, 2, 3, 2.5])
def test_powers_of_the_relu(power):
    z = np.array([-1.0, 0.0, 0.5, 2.0])
    activation = fl.networks.relu_power(power)
    np.testing.assert_allclose(activation(z), relu(z) ** power, rtol=1e-6)
    slope = jax.vmap(jax.grad(activation))(z)
    np.testing.assert_allclose(slope, np.where(z > 0, power * relu(z) ** (power - 1), 0), rtol=1e-6)


def test_leaky_relu():
    np.testing.assert_allclose(fl.networks.leaky_relu(0.2)(np.array([-1.0, 2.0])), [-0.2, 2.0], rtol=1e-6)


def test_a_trained_head_moves():
    experiment = fl.Experiment(
        data=fl.data.SignalNoise(n=10, d=200, snr=0.5, noise_scale=200**-0.5),
        network=fl.networks.TwoLayerCNN(width=4, init_scale=0.1, train_head=True),
        algorithm=fl.algorithms.GradientDescent(1.0),
        probes=[lambda view: view.params.head],
        steps=50,
    )
    history = fl.run(experiment, seeds=1)
    (name,) = [name for name in history.data_vars if "lambda" in name]
    assert abs(history[name][0, -1] - history[name][0, 0]).max() > 1e-3
