"""Every layer descends with its own rate and decay, and a decay of 1/eta leaves the gradient alone."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import featlab as fl
from featlab.core.space import Ambient
from featlab.problem import PlainProblem, draw_run

DATA = fl.data.PatternDictionary(n=30, d=12, patterns=10, relevant=3)
NETWORK = fl.networks.TruncatedReLU(width=6, weights_scale=0.5, biases_scale=0.3)
LAYERS = ("weights", "biases", "head")


@functools.cache
def stepping(network):
    @jax.jit
    def read(numbers):
        algorithm, key = fl.algorithms.LayerwiseDescent(*numbers), jax.random.key(6)
        draw = draw_run(DATA, network, Ambient(12.0), DATA.n, 0, key)
        task = PlainProblem(DATA, network, fl.objectives.as_objective(fl.objectives.logistic, network), draw)
        state = algorithm.init(key, task)
        after, _ = algorithm.step(key, state, task)
        return state.params, after.params, task.gradient(state.params, draw.training)

    return read


def stepped(*numbers, network: fl.networks.AbstractNetwork = NETWORK):
    """The parameters before and after a step with these rates and decays, and the gradient in between."""
    with jax.enable_x64(True):
        return jax.device_get(stepping(network)([jnp.asarray(number) for number in numbers]))


def test_each_layer_has_its_own_numbers():
    rates, decays = (0.5, 0.0, 2.0), (0.3, 7.0, 0.1)
    before, after, gradient = stepped(*rates, *decays)
    for layer, rate, decay in zip(LAYERS, rates, decays):
        old, new, slope = (getattr(one, layer) for one in (before, after, gradient))
        np.testing.assert_allclose(new, old - rate * (slope + decay * old), rtol=1e-12)
        assert np.array_equal(new, old) == (layer == "biases")


def test_a_decay_of_one_over_the_rate_leaves_the_gradient_alone():
    before, after, gradient = stepped(0.01, 0.0, 0.0, 100.0, 0.0, 0.0)
    np.testing.assert_allclose(after.weights, -0.01 * gradient.weights, rtol=1e-9, atol=1e-15)
    assert np.abs(before.weights).max() > 100 * np.abs(after.weights).max() > 0


@pytest.mark.slow
def test_what_is_kept_of_the_start_stays():
    """Also under weight decay, which has no gradient to go by."""
    before, after, _ = stepped(0.1, 0.1, 0.1, 0.5, 0.5, 0.5, network=fl.networks.Linearised(NETWORK))
    for layer in LAYERS:
        np.testing.assert_array_equal(getattr(after.origin, layer), getattr(before.origin, layer))
        assert not np.allclose(getattr(after.moved, layer), getattr(before.moved, layer))


def test_a_network_of_other_names_is_refused():
    def initialise(key, d):
        return {"first": jnp.zeros(d)}

    network = fl.networks.PlainNetwork(initialise, lambda params, inputs: inputs[0] @ params["first"])
    with pytest.raises(fl.InputError, match="called weights, biases or head, and this network has none of them"):
        stepped(0.1, 0.1, 0.1, 0.0, 0.0, 0.0, network=network)
