"""The reduced stationary point of a denoiser: of the whole loss, in its limits, and refusing what it cannot be."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl
from featlab.objectives.denoising import mean_loss, scales
from featlab.theory import denoising

N, WIDTH, T = 6, 5, 0.3


def simplex(corners):
    """Unit vectors of equal angles whose sum is 0, one a row."""
    rows = np.eye(corners) - 1 / corners
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def data(signal, noise):
    """Two signals, each in half of the samples, and orthogonal noise, with room for the simplex beside them."""
    axes = np.eye(2 + N + WIDTH)
    signals = np.sqrt(2 * signal) * axes[:2]
    noises = np.sqrt(N * noise) * axes[2 : 2 + N]
    return np.stack([np.tile(signals, (N // 2, 1)), noises], axis=1)


@pytest.mark.rounding
@pytest.mark.parametrize("signal, noise", [(1e-4, 1e-3), (0.5, 0.1), (8.0, 30.0)])
def test_the_gradient_of_the_whole_loss_vanishes_there(signal, noise):
    found = denoising.stationary(signal, noise, T, WIDTH)
    inputs = data(signal, noise)
    along = found.length * np.sqrt(found.alignment)
    # p : q as the balance says, and a weight's component along the mean of a patch type is its product over length
    shares = np.array([found.balance / np.sqrt(signal), 1 / np.sqrt(noise)])
    means = np.array([inputs[:, p].mean(axis=0) for p in (0, 1)])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    weights = along * (shares / np.linalg.norm(shares)) @ means
    rest = found.length * np.sqrt(1 - found.alignment) * simplex(WIDTH)
    weights = weights[None] + np.concatenate([np.zeros((WIDTH, 2 + N)), rest], axis=1)
    with jax.enable_x64(True):
        alpha, beta = scales(T)

        def loss(weights):
            return mean_loss(alpha * inputs @ weights.T, weights @ weights.T, jnp.ones(N, bool), beta)

        value, gradient = map(np.asarray, jax.value_and_grad(loss)(jnp.asarray(weights)))
    assert_allclose(value, found.loss, rtol=1e-10)
    # Without units, as the probe relative_slope has it; 3 or more far from any stationary point.
    assert np.linalg.norm(gradient) * np.linalg.norm(weights) / abs(value) < 1e-4


@pytest.mark.parametrize("width", [1, 2, 10, 100])
def test_small_data_is_the_limit(width):
    limit = denoising.small_data(1e-6, 2e-6, T, width)
    assert_allclose(denoising.stationary(1e-6, 2e-6, T, width), limit, rtol=1e-4)
    assert limit.balance == 0.5


def test_the_first_step_has_half_of_n_snr_squared():
    """The sum of all patches, from which small weights learn, against signals and noise vectors one by one."""
    inputs = data(signal=0.9, noise=0.2)
    patches = inputs.reshape(-1, inputs.shape[-1]).mean(axis=0)
    signal, noise = (np.abs(inputs[:, p] @ patches).mean() for p in (0, 1))
    snr = np.linalg.norm(inputs[0, 0]) / np.linalg.norm(inputs[0, 1])
    assert_allclose(signal / noise, denoising.first_balance(N, snr), rtol=1e-12)


def test_ten_neurons_have_cosines_of_a_third():
    r"""$18 g^3 + 3 g^2 = 1$ at $g = 1/3$: the share along the data is 2/5, the gain 3/5 of the best possible."""
    found = denoising.small_data(1e-6, 2e-6, T, 10)
    assert_allclose(found.alignment, 0.4, rtol=1e-12)
    assert_allclose(found.loss, -0.6 * 3e-6 * np.exp(-2 * T) / (1 - np.exp(-2 * T)), rtol=1e-12)


def test_large_data_is_balanced_whatever_its_signal():
    ratios = [denoising.stationary(x * 1e5, 1e5, T, 10).balance for x in (0.05, 0.5, 5.0)]
    assert_allclose(ratios, 1.0, atol=0.05)
    assert denoising.first_balance(20, 0.5) == 2.5


@pytest.mark.parametrize(
    "numbers, sentence",
    [
        ((0.0, 1.0, T, 3), "needs signal above 0, got 0.0"),
        ((1.0, 1.0, T, 2.5), "whole width of at least 1, got 2.5"),
    ],
)
def test_what_it_cannot_be_is_refused(numbers, sentence):
    with pytest.raises(fl.InputError, match=sentence):
        denoising.stationary(*numbers)
