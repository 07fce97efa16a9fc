"""Kernels, distances and gradients against NumPy, one pair at a time, and against automatic differentiation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl
from featlab.core.space import Ambient, Span
from featlab.networks import Expansion, KernelMachine

RANDOM = np.random.default_rng(2)
ROWS = RANDOM.normal(size=(3, 4))
CENTRES, POINTS = RANDOM.normal(size=(6, 4)), RANDOM.normal(size=(5, 4))
PARAMS = (CENTRES, RANDOM.normal(size=6), ROWS.T @ ROWS)  # a metric of rank 3
MACHINE = KernelMachine(bandwidth=1.7)


def expansion():
    return Expansion(*map(jnp.asarray, PARAMS))


def by_hand(point):
    """The output and its gradient, centre by centre."""
    centres, coefficients, metric = PARAMS
    value, gradient = 0.0, np.zeros(4)
    for centre, coefficient in zip(centres, coefficients):
        away = point - centre
        distance = np.sqrt(away @ metric @ away)
        kernel = np.exp(-distance / 1.7)
        value += coefficient * kernel
        gradient -= coefficient * kernel / (1.7 * distance) * metric @ away
    return value, gradient


def test_outputs_and_gradients():
    @eqx.filter_jit
    def all_of(params, points):
        outputs = jax.vmap(MACHINE, in_axes=(None, 0))(params, points[:, None])
        slopes = jax.vmap(jax.grad(MACHINE, argnums=1), in_axes=(None, 0))(params, points[:, None])
        return outputs, MACHINE.gradients(params, points), slopes[:, 0]

    with jax.enable_x64(True):
        outputs, gradients, automatic = all_of(expansion(), jnp.asarray(POINTS))
    expected = [by_hand(point) for point in POINTS]
    assert_allclose(outputs, [value for value, _ in expected], atol=1e-12)
    assert_allclose(gradients, [slope for _, slope in expected], atol=1e-12)
    assert_allclose(automatic, gradients, atol=1e-12)


@pytest.mark.parametrize("precision", [32, pytest.param(64, marks=pytest.mark.slow)])
def test_a_point_is_at_no_distance_from_itself(precision):
    """Where one matrix product alone would leave the root of a rounding error."""
    with jax.enable_x64(precision == 64):
        params = expansion()
        distances = np.asarray(MACHINE.distances(params, params.centres))
        bare = np.asarray(eqx.tree_at(lambda m: m.floor, MACHINE, 0.0).distances(params, params.centres))
        gradients = np.asarray(MACHINE.gradients(params, params.centres))
    assert np.all(np.diag(distances) == 0)
    assert precision == 64 or np.any(np.diag(bare) > 0)  # in float64 so few products happen to be exact
    off = ~np.eye(6, dtype=bool)
    assert np.all(distances[off] > 0.1)
    assert_allclose(distances[off], bare[off], rtol=1e-12)
    assert np.all(np.isfinite(gradients))
    # Its own centre does not move a point: the others' pull is all there is.
    alone = PARAMS[1] * (np.arange(6) > 0)
    with jax.enable_x64(precision == 64):
        rest = MACHINE.gradients(Expansion(params.centres, jnp.asarray(alone), params.metric), params.centres[:1])
    assert_allclose(gradients[0], rest[0], rtol=1e-5)


def test_it_begins_as_nothing_and_needs_vectors_stored_whole():
    params, _ = MACHINE.init(jax.random.key(0), Ambient(4.0))
    assert MACHINE(params, jnp.ones((2, 4))) == 0
    assert_allclose(params.metric, np.eye(4))
    with pytest.raises(fl.InputError, match="needs Ambient"):
        MACHINE.init(jax.random.key(0), Span.create(100.0, 4))
