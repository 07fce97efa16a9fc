"""The symmetric ReLU network, against its formula in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import featlab as fl
from featlab.networks import Neurons, SymmetricReLU


def test_the_output_is_the_formula_and_odd():
    rng = np.random.default_rng(0)
    weights, thresholds = rng.normal(size=(5, 4)), rng.uniform(0, 2, 5)
    params = Neurons(jnp.asarray(weights), jnp.asarray(thresholds), jnp.ones(()))
    network, x = SymmetricReLU(width=5), rng.normal(size=(1, 4))
    products = weights @ x[0]
    each = np.maximum(products - thresholds, 0) - np.maximum(-products - thresholds, 0)
    np.testing.assert_allclose(network.features(params, jnp.asarray(x)), each, rtol=1e-5)
    np.testing.assert_allclose(network(params, jnp.asarray(x)), each.sum(), rtol=1e-5)
    np.testing.assert_allclose(network(params, -jnp.asarray(x)), -each.sum(), rtol=1e-5)
    many = rng.normal(size=(5, 7))  # the sample last
    last = np.maximum(many - thresholds[:, None], 0) - np.maximum(-many - thresholds[:, None], 0)
    np.testing.assert_allclose(network.respond(params, jnp.asarray(many)[None]), last.sum(0), rtol=1e-5)


def test_only_weights_have_a_gradient_and_only_those_of_neurons_that_are_awake():
    weights = jnp.array([[2.0, 0.0], [0.5, 0.0], [-2.0, 0.0]])
    params = Neurons(weights, jnp.ones(3), jnp.ones(()))
    gradient = jax.grad(SymmetricReLU(width=3))(params, jnp.array([[1.0, 3.0]]))
    np.testing.assert_array_equal(gradient.weights, [[1, 3], [0, 0], [1, 3]])
    assert not gradient.thresholds.any() and gradient.scale == 0


def test_smoothing_is_the_mean_over_noise_inside_the_relu():
    params = Neurons(jnp.array([[1.3]]), jnp.array([0.8]), jnp.ones(()))
    network = SymmetricReLU(width=1, smoothing=0.4)
    for x in (-1.5, 0.2, 0.7):

        def one(u):
            return integrate.quad(lambda r: (u + r) * stats.norm.pdf(r, scale=0.4), -u, 4)[0]

        np.testing.assert_allclose(
            network(params, jnp.array([[x]])), one(1.3 * x - 0.8) - one(-1.3 * x - 0.8), atol=1e-6
        )


@pytest.mark.slow
def test_it_begins_with_the_scale_and_thresholds_asked_for():
    network = SymmetricReLU(width=400, init_scale=0.2, threshold=1.5)
    params, _ = network.init(jax.random.key(0), fl.Ambient(50.0))
    assert stats.kstest(np.ravel(params.weights), stats.norm(scale=0.2).cdf).pvalue > 0.01
    np.testing.assert_allclose(params.thresholds, 0.3, rtol=1e-6)
    np.testing.assert_allclose(params.scale, 0.2, rtol=1e-6)
