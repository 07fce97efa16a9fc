"""The closed form of the denoising loss against averages over the noise: exact ones, and Monte Carlo."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import featlab as fl
from featlab.data import Batch
from featlab.networks.denoiser import TiedWeights, decoded
from featlab.objectives import Denoising

pytestmark = pytest.mark.rounding

N, D, WIDTH, T = 4, 3, 2, 0.3
RNG = np.random.default_rng(3)
WEIGHTS = 0.8 * RNG.standard_normal((WIDTH, D))
INPUTS = RNG.standard_normal((N, 2, D))
REAL = np.array([True, True, True, False])  # the last one is padding
ALPHA, BETA = np.exp(-T), np.sqrt(1 - np.exp(-2 * T))


def closed(weights):
    labels = jnp.ones(N)
    batch = Batch(jnp.asarray(INPUTS), labels, labels, jnp.asarray(REAL))
    objective = Denoising(t=T).bind(fl.networks.Denoiser(width=WIDTH))
    return objective(TiedWeights(jnp.asarray(weights)), batch, None)[0]


def averaged(weights, noise, shares):
    """The loss as it is defined, with the mean over the noise as a sum; noise is (draw, column)."""
    seen = ALPHA * INPUTS[REAL][None] + BETA * noise[:, None, None]
    missed = decoded(weights, seen @ weights.T) - noise[:, None, None]
    excess = jnp.sum(missed**2, axis=(2, 3)) - 2 * jnp.sum(noise**2, axis=1)[:, None]  # less the constant
    return jnp.sum(shares[:, None] * excess) / 2 / REAL.sum()


def exact_noise():
    """Nodes and weights with which polynomials of degree 7 have their Gaussian mean; the loss has degree 4."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(4)
    grid = np.array(list(itertools.product(nodes, repeat=D)))
    return grid, np.array([np.prod(one) for one in itertools.product(shares / shares.sum(), repeat=D)])


def test_the_closed_form_and_its_gradient_are_those_of_the_average_over_the_noise():
    with jax.enable_x64(True):
        one, two = jax.value_and_grad(closed)(WEIGHTS), jax.value_and_grad(averaged)(WEIGHTS, *exact_noise())
        np.testing.assert_allclose(one[0], two[0], rtol=1e-12)
        np.testing.assert_allclose(one[1], two[1], rtol=1e-11, atol=1e-12)


@pytest.mark.slow
def test_the_closed_form_and_its_gradient_agree_with_monte_carlo_within_its_error():
    """Parts of the draws give the error; with twenty of them four errors are passed once in a thousand times."""
    with jax.enable_x64(True):
        parts = RNG.standard_normal((20, 4000, D))
        shares = np.full(parts.shape[1], 1 / parts.shape[1])
        draws = jax.vmap(jax.value_and_grad(averaged), in_axes=(None, 0, None))(WEIGHTS, parts, shares)
        for exact, drawn in zip(jax.value_and_grad(closed)(WEIGHTS), draws):
            error = np.std(drawn, axis=0, ddof=1) / np.sqrt(len(drawn))
            assert np.all(np.abs(np.mean(drawn, axis=0) - exact) < 4 * error)
            assert np.all(error < 0.05 * np.max(np.abs(exact)))  # a comparison that could fail


@pytest.mark.slow
def test_the_gradient_is_that_of_finite_differences():
    with jax.enable_x64(True):
        gradient, h = jax.grad(closed)(WEIGHTS), 1e-5
        for place in np.ndindex(*WEIGHTS.shape):
            step = np.zeros_like(WEIGHTS)
            step[place] = h
            slope = (closed(WEIGHTS + step) - closed(WEIGHTS - step)) / (2 * h)
            np.testing.assert_allclose(gradient[place], slope, rtol=1e-8, atol=1e-8)


def test_a_network_without_weight_vectors_is_refused():
    with pytest.raises(fl.InputError, match="Denoising needs a network such as .*, got"):
        fl.testing.example_experiment(objective=Denoising(t=T), network=fl.networks.PlainNetwork.examples()[0])
