"""Particles: the flow is descent with a step of eta N, noise has its temperature, and many follow the density."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl
from featlab.algorithms import GradientDescent, Langevin, WassersteinFlow
from featlab.core.space import Ambient
from featlab.networks import RandomFeatures, TwoLayer
from featlab.objectives import ProfileRidge, squared
from featlab.problem import PlainProblem, draw_run
from featlab.theory.mean_field import MeanField

DATA = fl.data.SingleIndex(n=7, d=3, link=jnp.sin, label_noise=0.3)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def task_of(network, objective=squared):
    draw = draw_run(DATA, network, Ambient(DATA.d), DATA.n, 0, jax.random.key(1))
    return PlainProblem(DATA, network, fl.objectives.as_objective(objective, network), draw)


def after_a_step(algorithm, task, key=2):
    state = algorithm.init(jax.random.key(0), task)
    return algorithm.step(jax.random.key(key), state, task)[0].params


def test_the_flow_is_descent_with_a_step_of_eta_times_the_number_of_particles():
    network = TwoLayer(width=5, activation=jnp.tanh, power=1.0)
    task = task_of(network)
    flow, descent, cold = (
        after_a_step(algorithm, task)
        for algorithm in (WassersteinFlow(0.1), GradientDescent(0.1 * 5), Langevin(0.1, 0.0))
    )
    assert_allclose(flow.weights, descent.weights, rtol=1e-12)
    assert_allclose(flow.weights, cold.weights, rtol=1e-12)
    assert_allclose(flow.head, task.start.head)
    assert np.abs(flow.weights - task.start.weights).max() > 1e-3


def test_noise_has_its_temperature_and_confinement_pulls_to_the_middle():
    """Random features do not move by themselves."""
    network = RandomFeatures(width=4000, activation=jnp.tanh)
    task = task_of(network)
    eta, temperature, confinement = 0.05, 0.3, 0.7
    moved = after_a_step(Langevin(eta, temperature, confinement), task).weights
    kicks = moved - (1 - 2 * eta * confinement) * task.start.weights
    assert_allclose(np.std(kicks, axis=0), np.sqrt(2 * eta * temperature), rtol=0.05)
    assert np.abs(np.mean(kicks, axis=0)).max() < 4 * np.sqrt(2 * eta * temperature / 4000)
    other = after_a_step(Langevin(eta, temperature, confinement), task, key=3).weights
    assert np.abs(other - moved).max() > 0.1


def test_a_network_must_say_what_its_particles_are():
    task = task_of(fl.networks.TwoLayerCNN(width=2))
    with pytest.raises(fl.InputError, match="TwoLayerCNN does not say what they are; use TwoLayer"):
        WassersteinFlow(0.1).init(jax.random.key(0), task)


@pytest.mark.slow
def test_particles_follow_the_density():
    """A density and 4,000 particles of the same training set, at two times: energies and laws are the same."""
    width, temperature, confinement, penalty = 4000, 0.15, 0.1, 0.01

    def particles(view):
        return view.params.weights[:, 0]

    def regression(view):
        return jnp.stack([view.training.inputs[:, 0, 0], view.training.labels])

    experiment = fl.Experiment(
        data=fl.data.SingleIndex(n=20, d=1, link=jnp.sin, label_noise=0.1),
        network=TwoLayer(width=width, activation=jnp.tanh, init_scale=0.5),
        algorithm=Langevin(0.02, temperature, confinement),
        objective=ProfileRidge(penalty=penalty),
        probes=[fl.probes.mean_field_energy, particles, regression],
        steps=200,
        record=fl.probes.every(50),
        precision=64,
    )
    history = fl.run(experiment, seeds=1, progress=False).isel(seed=0)
    x, y = history.regression.isel(step=0).values
    field = MeanField(x, y, penalty, confinement, temperature, np.linspace(-6, 6, 401))
    start = field.normal(0.0, 0.5)
    masses = [start, *field.evolve(start, [1.0, 2.0, 3.0, 4.0], 0.02)]
    entropy_error = 2.0 * temperature / np.sqrt(width)
    for i, mass in enumerate(masses):
        now = history.isel(step=i)
        energy = float(now.objective_value + now.confinement_energy)
        assert_allclose(energy, field.energy(mass), rtol=0.05)
        free = energy + temperature * float(now.particle_entropy)
        assert_allclose(free, field.free_energy(mass), atol=0.05 * field.energy(mass) + entropy_error)
        below = np.searchsorted(np.sort(now.particles.values), field.grid + field.cell / 2) / width
        assert np.abs(below - np.cumsum(mass)).max() < 2.0 / np.sqrt(width)  # Kolmogorov and Smirnov
    moved = np.abs(np.cumsum(masses[-1]) - np.cumsum(start)).max()
    assert moved > 8 / np.sqrt(width)  # the test could tell


def test_particles_can_be_put_elsewhere():
    network = TwoLayer(width=4, activation=jnp.tanh, centred=True)
    start = task_of(network).start
    there = network.with_particles(start, 2 * network.particles(start))
    assert_allclose(there.weights, 2 * start.weights)
    assert eqx.tree_equal(there.origin, start.origin) and eqx.tree_equal(there.head, start.head)
