"""The transformer is the paper's formula, and its gradient is right where attention is all but decided."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from featlab.networks import QueryKeyValue, TwoLayerTransformer
from featlab.networks.transformer import attended

TOKENS, D = 3, 7


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(3)
    network = TwoLayerTransformer(head=4, value_neurons=5)
    query, key, value = (jax.device_put(rng.normal(size=shape)) for shape in ((4, D), (4, D), (2, 5, D)))
    params = QueryKeyValue(query, key, value)
    return network, params, rng.normal(size=(TOKENS, D))


def plain(params, tokens):
    """F_+1 - F_-1 as it is written, one query and one class at a time."""
    total = 0.0
    for query in tokens:
        scores = tokens @ params.key.T @ (params.query @ query)
        attention = jnp.exp(scores) / jnp.sum(jnp.exp(scores))
        for sign, values in zip((1, -1), params.value):
            total += sign * jnp.sum(values @ tokens.T @ attention) / len(values)
    return total


@pytest.mark.rounding
def test_outputs_and_gradients_are_those_of_the_formula(case):
    network, params, tokens = case
    with jax.enable_x64(True):
        params, tokens = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), (params, tokens))
        ours, theirs = (jax.jit(jax.value_and_grad(f))(params, tokens) for f in (network, plain))
        for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs)):
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(network(params, tokens[::-1]), ours[0], rtol=1e-12)
        # Products with the sample as last axis, as training in products hands them over.
        products = tokens @ network.weights(params).T
        both = jnp.stack([products, 2 * products], axis=-1)
        np.testing.assert_allclose(network.respond(None, both)[0], ours[0], rtol=1e-12)
        np.testing.assert_allclose(network.attention(None, both).sum(axis=1), 1.0, rtol=1e-12)


def test_the_slope_of_a_decided_attention_keeps_its_sign():
    """Where one key has all attention but e^-30, float32 knows the slope to rounding; a plain softmax has 0."""
    scores, values = jnp.array([[0.0, 30.0]], jnp.float32), jnp.array([1.0, 3.0], jnp.float32)
    exact = 2 * np.exp(-30)
    slope = jax.grad(lambda z: attended(z, values)[0])(scores)[0]
    np.testing.assert_allclose(slope, [-exact, exact], rtol=1e-5)
    usual = jax.grad(lambda z: jnp.sum(jax.nn.softmax(z[0]) * values))(scores)[0]
    assert usual[1] == 0
