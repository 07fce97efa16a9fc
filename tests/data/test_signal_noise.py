"""The signal-noise family: what its docstrings say, on its own draws."""

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import featlab as fl
from featlab.core.space import Ambient, Span

N = 2000


def drawn(model, d=3.0):
    """A large set in a small space, whole vectors."""
    model = dataclasses.replace(model, n=N, d=d)

    @eqx.filter_jit
    def draw(key):
        truth, space = model.truth(key, Ambient(d))
        batch, space = model.draw(jax.random.key(1), truth, space, N)
        return truth, batch, model.fresh(jax.random.key(2), truth, space, N)

    truth, batch, test = draw(jax.random.key(0))
    return truth, *(jax.tree.map(np.asarray, b) for b in (batch, test))


SIGNAL = fl.data.SignalNoise(n=4, d=3, signal_norm=2.0, noise_scale=0.5)


def test_patches_are_signal_and_noise():
    truth, batch, _ = drawn(SIGNAL)
    mu = np.asarray(truth.vectors[0])
    assert abs(np.linalg.norm(mu) - 2.0) < 1e-6
    np.testing.assert_allclose(batch.inputs[:, 0], batch.clean_labels[:, None] * mu[None], atol=1e-6)
    np.testing.assert_allclose(batch.inputs[:, 1], batch.noise[:, 0], atol=1e-6)


@pytest.mark.parametrize("model", [SIGNAL, fl.data.XorSignalNoise(n=4, d=3, signal_norm=2.0, noise_scale=0.5)])
@pytest.mark.parametrize("orthogonal", [True, False])
def test_noise_is_orthogonal_to_the_signals_or_isotropic(model, orthogonal):
    truth, batch, test = drawn(dataclasses.replace(model, orthogonal=orthogonal))
    for noise in (batch.noise[:, 0], test.noise[:, 0]):
        along = noise @ np.asarray(truth.directions).T
        assert np.all(abs(along) < 1e-6) if orthogonal else np.all(abs(along.std(axis=0) - 0.5) < 0.05)
        away = noise[:, 2]
        assert abs(away.std() - 0.5) < 0.05


@pytest.mark.parametrize("kind", [fl.data.SignalNoise, fl.data.XorSignalNoise])
def test_labels_are_balanced_and_flipped_as_often_as_asked(kind):
    model = kind(n=4, d=3, signal_norm=1.0, label_flip=0.3, test_flip=0.1)
    _, batch, test = drawn(model)
    assert abs(batch.clean_labels.mean()) < 0.08
    assert abs(np.mean(batch.labels != batch.clean_labels) - 0.3) < 0.04
    assert abs(np.mean(test.labels != test.clean_labels) - 0.1) < 0.03


def test_balanced_classes_come_in_turn_and_flips_are_as_they_were():
    model = dataclasses.replace(SIGNAL, label_flip=0.3)
    truth, turns, test = drawn(dataclasses.replace(model, balanced=True))
    _, coins, fresh = drawn(model)
    np.testing.assert_array_equal(turns.clean_labels, np.tile([1, -1], N // 2))
    np.testing.assert_array_equal(turns.labels * turns.clean_labels, coins.labels * coins.clean_labels)
    np.testing.assert_array_equal(test.inputs, fresh.inputs)  # tests are by a coin each
    mu = np.asarray(truth.vectors[0])
    np.testing.assert_allclose(turns.inputs[:, 0], turns.clean_labels[:, None] * mu[None], atol=1e-6)
    with pytest.raises(fl.InputError, match="balanced or negative_flip, not both"):
        dataclasses.replace(model, balanced=True, negative_flip=0.1)


def test_the_signal_slot_is_fixed_or_random():
    truth, fixed, _ = drawn(SIGNAL)
    _, random, _ = drawn(dataclasses.replace(SIGNAL, random_slot=True))
    mu = np.asarray(truth.vectors[0])

    def first_is_signal(batch):
        return np.all(np.isclose(abs(batch.inputs[:, 0]), abs(mu)[None], atol=1e-6), axis=1)

    assert first_is_signal(fixed).all() and abs(first_is_signal(random).mean() - 0.5) < 0.05


def test_snr_is_the_ratio_of_signal_to_noise():
    by_ratio = fl.data.SignalNoise(n=4, d=400, snr=0.3, noise_scale=0.5)
    truth, _ = by_ratio.truth(jax.random.key(0), Ambient(400.0))
    np.testing.assert_allclose(truth.norms, 0.3 * 0.5 * math.sqrt(400), rtol=1e-6)
    limit = fl.data.SignalNoise(n=4, d=math.inf, snr=0.3)
    truth, _ = limit.truth(jax.random.key(0), Span.create(math.inf, 9))
    np.testing.assert_allclose(truth.norms, 0.3, rtol=1e-6)


def test_no_linear_classifier_reads_an_xor_signal():
    """Each class is symmetric about 0 in the signal, so the best linear fit errs half the time."""
    model = fl.data.XorSignalNoise(n=4, d=3, signal_norm=2.0, noise_scale=0.1)
    truth, batch, test = drawn(model)
    features, labels = batch.inputs.reshape(N, -1), batch.labels
    weights = np.linalg.lstsq(features, labels, rcond=None)[0]
    error = np.mean(np.sign(test.inputs.reshape(N, -1) @ weights) != test.labels)
    assert abs(error - 0.5) < 0.05
    plus = batch.inputs[batch.clean_labels > 0, 0]
    assert np.all(np.isclose(abs(plus @ np.asarray(truth.directions[0])), 2.0, atol=1e-5))
    assert abs(np.mean(np.sign(plus @ np.asarray(truth.directions[0])))) < 0.08


def test_the_xor_signals_have_the_angle_asked_for():
    model = fl.data.XorSignalNoise(n=4, d=30, signal_norm=2.0, cosine=0.4)
    truth, _ = model.truth(jax.random.key(0), Ambient(30.0))
    np.testing.assert_allclose(truth.vectors @ truth.vectors.T, [[4.0, 1.6], [1.6, 4.0]], rtol=1e-5)


def test_a_cnn_reads_an_xor_signal():
    experiment = fl.Experiment(
        data=fl.data.XorSignalNoise(n=60, d=1e5, snr=0.6, noise_scale=1e5**-0.5),
        network=fl.networks.TwoLayerCNN(width=16, init_scale=0.01),
        algorithm=fl.algorithms.GradientDescent(5.0),
        probes=[fl.probes.test_error.on(fl.probes.at_end), fl.probes.coefficients.on(fl.probes.at_end)],
        steps=300,
    )
    history = fl.run(experiment, seeds=4)
    assert history.gamma.dims == ("seed", "class", "filter", "signal")
    assert (history.test_error < 0.05).all()


def test_minibatches_see_every_sample_once_an_epoch():
    model = fl.data.Minibatches(fl.data.SignalNoise(n=11, d=40, snr=1.0), 4)
    truth, space = model.truth(jax.random.key(0), Ambient(40.0))
    training, _ = model.draw(jax.random.key(1), truth, space, 13)
    numbered = eqx.tree_at(lambda b: b.inputs, training, jnp.arange(13))

    class Draw:  # all that batching needs of one
        batch_key = jax.random.key(3)

    epochs = []
    for epoch in range(2):
        batches = [model.batch(None, jnp.array(3 * epoch + k), numbered, Draw) for k in range(3)]
        seen = np.concatenate([np.asarray(b.inputs)[np.asarray(b.mask)] for b in batches])
        assert sorted(seen) == list(range(11))
        epochs.append(list(seen))
    assert epochs[0] != epochs[1]
