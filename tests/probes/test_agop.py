"""AGOP of networks, on known functions and by finite differences; what it is compared with; what is refused."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl
from featlab.core.space import Ambient
from featlab.networks import Expansion, KernelMachine, TwoLayer
from featlab.networks.two_layer import Layers
from featlab.objectives import as_objective
from featlab.probes import View, agop, agop_subspace, feature_ansatz
from featlab.probes.agop import input_gradients
from featlab.problem import PlainProblem, draw_run

N, D = 9, 5
RANDOM = np.random.default_rng(1)
DATA = fl.data.MultiIndex(n=N, d=D, link=fl.data.product)


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


@functools.cache
def drawn(rows):
    return eqx.filter_jit(draw_run)(DATA, TwoLayer(width=1), Ambient(float(D)), rows, 0, jax.random.key(2))


def view_of(network, params, rows=N):
    task = PlainProblem(DATA, network, as_objective(fl.objectives.squared, network), drawn(rows))
    return View(params, jnp.array(0), task, fl.algorithms.GradientDescent(0.1))


@eqx.filter_jit
def read(probe, view):
    return probe(view)


def layers(weights, head):
    return Layers(jnp.asarray(weights, float), jnp.asarray(head, float))


def test_any_networks_matrix_is_that_of_finite_differences():
    network = TwoLayer(width=3, activation=jnp.tanh)
    params = layers(RANDOM.normal(size=(3, D)), RANDOM.normal(size=3))
    view = view_of(network, params)
    inputs, step = np.asarray(view.training.inputs[:, 0]), 1e-5

    def outputs(x):
        return 3**-0.5 * np.tanh(x @ np.asarray(params.weights).T) @ np.asarray(params.head)

    slopes = np.stack([(outputs(inputs + e) - outputs(inputs - e)) / (2 * step) for e in step * np.eye(D)], axis=1)
    assert_allclose(read(agop, view)["agop"], slopes.T @ slopes / N, atol=1e-8)
    assert_allclose(read(agop, view_of(network, params, rows=N + 4))["agop"], read(agop, view)["agop"], atol=1e-12)


def test_the_plane_of_the_labels_is_recognised():
    """tanh of one of its directions, and of one outside, each by one neuron."""
    network = TwoLayer(width=1, activation=jnp.tanh)
    inside, outside = (view_of(network, layers(np.eye(D)[i : i + 1], [1.0])) for i in (1, 3))
    assert_allclose([read(agop_subspace, inside)[k] for k in ("agop_mass", "agop_rank")], 1, atol=1e-9)
    assert_allclose(read(agop_subspace, outside)["agop_mass"], 0, atol=1e-12)
    assert float(read(agop_subspace, inside)["agop_overlap"]) >= 0.5 - 1e-12  # one of two eigenvectors at least
    both = view_of(TwoLayer(width=2, activation=jnp.tanh), layers(np.eye(D)[:2], [1.0, -1.0]))
    assert_allclose(read(agop_subspace, both)["agop_overlap"], 1, atol=1e-9)


def test_a_linear_function_of_one_neuron_satisfies_both_forms():
    network = TwoLayer(width=1, activation=fl.networks.identity)
    found = read(feature_ansatz, view_of(network, layers(RANDOM.normal(size=(1, D)), [0.7])))
    assert_allclose([found["feature_root_cosine"], found["feature_cosine"]], 1, atol=1e-7)


def test_forms_are_told_apart_where_eigenvalues_differ():
    """Linear neurons along e_1 and e_2, of weights u: W'W = diag(u^2), f = sum of a u x, and AGOP of rank one."""
    network = TwoLayer(width=2, activation=fl.networks.identity)
    found = read(feature_ansatz, view_of(network, layers(np.diag([3.0, 1.0, 0, 0, 0])[:2], [1.0, 1.0])))
    slope = np.array([3.0, 1.0, 0, 0, 0]) / np.sqrt(2)
    metric, matrix = np.diag([9.0, 1.0, 0, 0, 0]), np.outer(slope, slope)
    root = matrix / np.linalg.norm(slope)
    for name, power in (("feature_root_cosine", root), ("feature_cosine", matrix)):
        one, other = (m - np.trace(m) / D * np.eye(D) for m in (metric, power))
        expected = np.sum(one * other) / np.linalg.norm(one) / np.linalg.norm(other)
        assert_allclose(found[name], expected, atol=1e-7)


@pytest.mark.slow
def test_a_kernel_machines_gradients_are_those_of_automatic_differentiation():
    machine = KernelMachine(2.0)
    rows = RANDOM.normal(size=(D, D))
    params = Expansion(*map(jnp.asarray, (RANDOM.normal(size=(6, D)), RANDOM.normal(size=6), rows.T @ rows)))
    inputs = jnp.asarray(RANDOM.normal(size=(4, 2, D)))  # two patches
    automatic = jax.vmap(jax.grad(machine, argnums=1), in_axes=(None, 0))(params, inputs)
    assert_allclose(input_gradients(machine, params, inputs), automatic, atol=1e-12)


def test_labels_without_directions_are_refused():
    view = view_of(TwoLayer(width=2), None)
    other = eqx.tree_at(lambda v: v.problem.draw.truth, view, None)
    with pytest.raises(fl.InputError, match="agop_subspace needs labels that depend on given directions"):
        agop_subspace(other)
