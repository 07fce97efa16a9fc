"""Token sequences: what their docstring says, on their own draws."""

import dataclasses

import equinox as eqx
import jax
import numpy as np
import pytest

import featlab as fl
from featlab.core.space import Ambient

D, N = 60, 400
PLAIN = fl.data.SignalTokens(n=N, d=D, tokens=4, snr=0.5, noise_scale=2.0, larger_noise=3.0, label_flip=0.3)


def drawn(model):
    """The signals, a training set, and as many test inputs."""

    @eqx.filter_jit
    def draw(model, key):
        truth, space = model.truth(key, Ambient(model.d))
        keys = jax.random.split(key)
        return truth.vectors, model.draw(keys[0], truth, space, N)[0], model.fresh(keys[1], truth, space, N)

    return jax.tree.map(np.asarray, draw(model, jax.random.key(5)))


def test_one_token_is_the_signal_of_the_class_and_the_others_are_noise_off_both_signals():
    signals, batch, test = drawn(PLAIN)
    length = 0.5 * 2.0 * np.sqrt(D)  # SNR sigma sqrt(d)
    np.testing.assert_allclose(signals @ signals.T, length**2 * np.eye(2), atol=1e-4)
    np.testing.assert_array_equal(batch.inputs[:, 0], np.where(batch.clean_labels[:, None] > 0, *signals))
    noise = batch.inputs[:, 1:]
    assert noise.shape == (N, 3, D) and np.abs(noise @ signals.T).max() < 1e-3
    power = np.sum(noise**2, axis=-1).mean(axis=0) / (4 * (D - 2))
    np.testing.assert_allclose(power, [9, 1, 1], rtol=5 * np.sqrt(2 / (D * N)))
    flipped = np.mean(batch.labels != batch.clean_labels)
    assert abs(flipped - 0.3) < 4 * np.sqrt(0.21 / N) and (test.labels == test.clean_labels).all()


def test_balanced_classes_come_in_turn_and_flips_are_as_they_were():
    _, coins, _ = drawn(PLAIN)
    _, turns, test = drawn(dataclasses.replace(PLAIN, balanced=True))
    np.testing.assert_array_equal(turns.clean_labels, np.tile([1, -1], N // 2))
    np.testing.assert_array_equal(turns.labels * turns.clean_labels, coins.labels * coins.clean_labels)
    assert len(np.unique(test.clean_labels[::2])) == 2  # test inputs by a coin each


@pytest.mark.slow
def test_a_shared_signal_is_one_vector_with_the_sign_of_the_class():
    signals, batch, _ = drawn(dataclasses.replace(PLAIN, shared_signal=True))
    assert signals.shape == (1, D)
    np.testing.assert_array_equal(batch.inputs[:, 0], batch.clean_labels[:, None] * signals)


def test_bad_fields_are_refused():
    with pytest.raises(fl.InputError, match="SignalTokens needs exactly one of snr and signal_norm"):
        fl.data.SignalTokens(n=4, d=10)
    with pytest.raises(fl.InputError, match="SignalTokens.tokens must be a whole number of at least 2"):
        fl.data.SignalTokens(n=4, d=10, snr=1.0, tokens=1)
