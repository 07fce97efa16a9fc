"""Truncated ReLUs are the paper's formula, begin at 0, and noise is averaged as it should be."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import featlab as fl
from featlab.core.space import Ambient

WIDTH, D = 40, 8


@pytest.fixture(scope="module")
def case():
    """Two networks of the same weights, one of them with noise, an input, outputs, and their slopes."""
    plain = fl.networks.TruncatedReLU(width=WIDTH, weights_scale=0.5, biases_scale=0.4, head_scale=2.0, power=0.5)
    noisy = eqx.tree_at(lambda n: n.noise_scale, plain, 0.7, is_leaf=lambda leaf: leaf is None)

    @jax.jit
    def read(key):
        start, _ = plain.init(key, Ambient(float(D)))
        inputs = jax.random.normal(jax.random.fold_in(key, 1), (2, D))
        other = jax.tree.map(
            lambda leaf: leaf * jnp.linspace(0.5, 1.5, WIDTH).reshape(-1, *[1] * (leaf.ndim - 1)), start
        )
        return (
            start,
            other,
            inputs,
            [(n(start, inputs), n(other, inputs), jax.grad(n)(other, inputs)) for n in (plain, noisy)],
            plain.features(other, inputs),
        )

    with jax.enable_x64(True):
        return jax.device_get(read(jax.random.key(2)))


def test_it_is_the_formula(case):
    _, params, inputs, ((_, value, slope), _), features = case
    z = inputs @ params.weights.T + params.biases
    sigma, inside = np.clip(z, 0, 1).sum(axis=0), (z > 0) & (z < 1)
    assert (z > 1).any() and (z < 0).any() and inside.any()
    np.testing.assert_allclose(features, sigma, rtol=1e-12)
    np.testing.assert_allclose(value, WIDTH**-0.5 * params.head @ sigma, rtol=1e-12)
    np.testing.assert_allclose(slope.head, WIDTH**-0.5 * sigma, rtol=1e-12)
    np.testing.assert_allclose(slope.biases, WIDTH**-0.5 * params.head * inside.sum(axis=0), rtol=1e-12)
    expected = WIDTH**-0.5 * params.head[:, None] * (inside.T.astype(float) @ inputs)
    np.testing.assert_allclose(slope.weights, expected, rtol=1e-12, atol=1e-15)


def test_noise_is_averaged_by_its_closed_form(case):
    """Against the mean over a fine grid of noise."""
    _, params, inputs, (_, (_, value, _)), _ = case
    noise = np.linspace(-8, 8, 4001)
    shares = np.exp(-(noise**2) / 2) / np.exp(-(noise**2) / 2).sum()
    z = (inputs @ params.weights.T + params.biases)[..., None] + 0.7 * noise
    smooth = np.clip(z, 0, 1) @ shares
    np.testing.assert_allclose(value, WIDTH**-0.5 * params.head @ smooth.sum(axis=0), rtol=1e-5)


def test_neurons_begin_as_pairs_that_cancel(case):
    start, _, _, reads, _ = case
    half = WIDTH // 2
    np.testing.assert_array_equal(start.weights[:half], start.weights[half:])
    np.testing.assert_array_equal(start.biases[:half], start.biases[half:])
    np.testing.assert_array_equal(start.head[:half], -start.head[half:])
    for at_start, later, _ in reads:
        assert abs(at_start) < 1e-14 < abs(later)


def test_layers_have_their_scales():
    network = fl.networks.TruncatedReLU(width=4000, weights_scale=0.5, biases_scale=0.1, head_scale=3.0)
    start = jax.device_get(jax.jit(lambda key: network.init(key, Ambient(6.0))[0])(jax.random.key(0)))
    for leaf, scale in ((start.weights, 0.5), (start.biases, 0.1), (start.head, 3.0)):
        np.testing.assert_allclose(leaf.std(), scale, rtol=5 / 4000**0.5)
    assert abs(np.corrcoef(start.biases[:2000], start.head[:2000])[0, 1]) < 5 / 2000**0.5


def test_odd_widths_are_refused():
    with pytest.raises(fl.InputError, match="width must be even, since neurons come in pairs that cancel, got 5"):
        fl.networks.TruncatedReLU(width=5)
