"""Probes of a denoiser, against what they are by definition."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl
from featlab import probes
from featlab.problem import PlainProblem, draw_run

pytestmark = pytest.mark.rounding

T, PADDED = 0.3, 8
EXPERIMENT = fl.Experiment(
    data=fl.data.SignalTokens(n=5, d=30, tokens=2, snr=0.5),
    network=fl.networks.Denoiser(width=3, init_scale=0.2),
    objective=fl.objectives.Denoising(t=T),
    algorithm=fl.algorithms.GradientDescent(0.01),
)


@pytest.fixture(scope="module")
def view():
    with jax.enable_x64(True):
        space = fl.Ambient(30.0)
        draw = eqx.filter_jit(draw_run)(EXPERIMENT.data, EXPERIMENT.network, space, PADDED, 0, jax.random.key(1))
        task = PlainProblem(EXPERIMENT.data, EXPERIMENT.network, EXPERIMENT.bound_objective, draw)
        yield probes.View(task.start, jnp.array(0), task, EXPERIMENT.algorithm)


def balance(vectors, training):
    """Signal and noise of five samples, as they stand in the inputs."""
    signals = {tuple(one) for one in training.inputs[:5, 0].tolist()}
    signal = np.mean([np.abs(vectors @ np.array(one)).mean() for one in signals])
    return signal, np.abs(vectors @ np.asarray(training.inputs[:5, 1]).T).mean()


def test_the_balance_is_that_of_the_products(view):
    read = probes.feature_balance(view)
    signal, noise = balance(np.asarray(view.weights), view.training)
    assert_allclose([read["signal_product"], read["noise_product"]], [signal, noise], rtol=1e-12)
    assert_allclose(read["balance"], signal / noise, rtol=1e-12)


def test_the_first_steps_balance_is_that_of_what_a_step_adds(view):
    state = view.algorithm.init(jax.random.key(0), view.problem)
    after, _ = view.algorithm.step(jax.random.key(0), state, view.problem)
    added = np.asarray(after.params.weights - view.params.weights)
    signal, noise = balance(added, view.training)
    later = dataclasses.replace(view, params=after.params)
    assert_allclose(probes.first_step_balance(later)["first_balance"], signal / noise, rtol=1e-8)


@pytest.mark.slow
def test_the_losses_at_noise_levels_are_those_of_the_objective(view):
    read = probes.denoising_losses(noise_time=(0.1, T))(view)
    own = view.problem.value(view.params, view.training)
    other = dataclasses.replace(EXPERIMENT.bound_objective, t=0.1)(view.params, view.training, None)[0]
    assert_allclose(read["denoising_loss"], [other, own], rtol=1e-12)


@pytest.mark.slow
def test_a_slope_without_units_does_not_change_with_the_unit(view):
    """Of short weights the loss is a cubic, whose slope is 3 at least."""

    def slope(factor):
        params = jax.tree.map(lambda leaf: factor * leaf, view.params)
        return probes.relative_slope(dataclasses.replace(view, params=params))["relative_slope"]

    short, shorter = slope(1e-3), slope(1e-4)
    assert short > 3
    assert_allclose(short, shorter, rtol=1e-6)


def test_data_without_signals_is_refused(view):
    data = fl.data.LinearRegression.examples()[0]
    other = eqx.tree_at(lambda v: v.problem.data, view, data)
    with pytest.raises(fl.InputError, match="feature_balance needs data such as .*, got LinearRegression"):
        probes.feature_balance(other)
