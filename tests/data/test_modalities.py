"""Pairs of views: what they are made of, their law, and that two modalities may share one space."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import featlab as fl
from featlab.networks.embedding import Encoders
from featlab.objectives import InfoNCE
from featlab.problem import draw_run

MANY, D = 3000, 40
LEVEL = 1e-4


def drawn(data, network=None, space=None):
    network = fl.networks.PatchEncoder(width=4, init_scale=0.3) if network is None else network
    space = fl.Ambient(float(data.d)) if space is None else space
    with jax.enable_x64(True):
        return eqx.filter_jit(draw_run)(data, network, space, data.n, 0, jax.random.key(2))


@pytest.fixture(scope="module")
def modalities():
    return drawn(fl.data.Modalities(n=MANY, d=D, snr=0.5, noise_scale=0.3, strength=3.0))


def test_modalities_share_the_label_and_nothing_else(modalities):
    batch, signals = modalities.training, np.asarray(modalities.truth.vectors)
    length = 0.5 * 0.3 * np.sqrt(D)
    np.testing.assert_allclose(signals @ signals.T, length**2 * np.diag([1, 9]), atol=1e-12)
    inputs, labels = np.asarray(batch.inputs), np.asarray(batch.labels)
    np.testing.assert_allclose(inputs[:, 0], labels[:, None] * signals[0], atol=1e-12)
    np.testing.assert_allclose(inputs[:, 2], labels[:, None] * signals[1], atol=1e-12)
    for view in (1, 3):
        np.testing.assert_allclose(inputs[:, view] @ signals.T, 0, atol=1e-6)
    assert abs(labels.mean()) < 4 / np.sqrt(MANY)
    cosines = np.sum(inputs[:, 1] * inputs[:, 3], axis=1) / 0.3**2 / np.sqrt(D - 2)
    assert stats.kstest(cosines, "norm").pvalue > LEVEL  # a sum of 38 products of normals, nearly normal


@pytest.mark.parametrize("view", [1, 3])
def test_a_modality_has_the_law_of_a_space_of_its_own_with_one_dimension_less(modalities, view):
    """Off its own signal in d - 1 dimensions noise has d - 2; as many here; d - 1 or d - 3 would show."""
    powers = np.sum(np.asarray(modalities.training.inputs)[:, view] ** 2, axis=1) / 0.3**2
    p_values = {free: stats.kstest(powers, stats.chi2(free).cdf).pvalue for free in (D - 1, D - 2, D - 3)}
    assert p_values[D - 2] > LEVEL > max(p_values[D - 1], p_values[D - 3])


@pytest.mark.slow
@pytest.mark.rounding
def test_training_in_one_space_is_training_in_two():
    """Each modality in coordinates of its own, of another length and turned at random: the same losses."""
    data = fl.data.Modalities(n=6, d=D, snr=0.5, strength=2.0, balanced=True)
    network = fl.networks.PatchEncoder(width=4, init_scale=0.3)
    objective = InfoNCE(temperature=0.5).bind(network)
    draw = drawn(data, network)
    with jax.enable_x64(True):
        inputs, filters = draw.training.inputs, draw.start.filters
        rng = np.random.default_rng(5)
        apart, own = [], []
        for view in (0, 1):
            vectors = np.concatenate([inputs[:, 2 * view : 2 * view + 2].reshape(-1, D), filters[view]])
            size = 25 + view  # 12 patches of 7 dimensions and 4 weights: 11 in all
            turn = np.linalg.qr(rng.standard_normal((size, size)))[0]
            values = np.linalg.svd(vectors, full_matrices=False)
            rank = int(np.sum(values[1] > 1e-9))
            coordinates = (vectors @ values[2][:rank].T) @ turn[:rank]
            padded = np.pad(coordinates, ((0, 0), (0, 26 - size)))
            apart.append(padded[:12].reshape(6, 2, 26))
            own.append(padded[12:])
        separate = eqx.tree_at(lambda b: b.inputs, draw.training, jnp.asarray(np.concatenate(apart, axis=1)))

        def losses(batch, start):
            def step(weights, _):
                value, slope = jax.value_and_grad(lambda w: objective(Encoders(w), batch, None)[0])(weights)
                return weights - 0.5 * slope, value

            return jax.jit(lambda w: jax.lax.scan(step, w, None, 60)[1])(jnp.asarray(start))

        runs = ((draw.training, filters), (separate, np.stack(own)))
        together, separately = (np.asarray(losses(*run)) for run in runs)
    assert together[-1] < 0.5 * together[0]
    np.testing.assert_allclose(separately, together, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.rounding
def test_only_the_product_of_the_two_signals_counts():
    """A signal three times as strong in one modality and a third in the other: the same path, to rounding."""
    network = fl.networks.PatchEncoder(width=4, init_scale=0.1)
    paths = []
    for snr, strength in ((0.3, 9.0), (0.9, 1.0), (0.9, 1.1)):
        experiment = fl.Experiment(
            data=fl.data.Modalities(n=8, d=D, snr=snr, strength=strength, noise_scale=D**-0.5, balanced=True),
            network=network,
            objective=InfoNCE(),
            algorithm=fl.algorithms.GradientDescent(2.0),
            probes=[fl.probes.train_loss, fl.probes.encoder_products],
            steps=60,
            precision=64,
        )
        history = fl.run(experiment, seeds=2, progress=False)
        paths.append((history.train_loss, history.encoder_signal / snr, history.encoder_noise))
    assert (paths[0][0][:, -1] < 0.8 * paths[0][0][:, 0]).all()
    for one, same, other in zip(*paths):
        np.testing.assert_allclose(one, same, rtol=1e-9, atol=1e-12)
        assert float(abs(one - other).max()) > 1e-3


@pytest.mark.slow
def test_augmented_pairs_have_one_signal_and_nearly_one_noise():
    draw = drawn(fl.data.AugmentedPairs(n=MANY, d=D, signal_norm=2.0, noise_scale=0.3, augmentation=0.2))
    inputs, labels = np.asarray(draw.training.inputs), np.asarray(draw.training.labels)
    np.testing.assert_allclose(inputs[:, 0], inputs[:, 2])
    np.testing.assert_allclose(labels * np.linalg.norm(inputs[:, 0], axis=1), 2 * labels, rtol=1e-9)
    added = np.sum((inputs[:, 3] - inputs[:, 1]) ** 2, axis=1) / (0.2 * 0.3) ** 2
    assert stats.kstest(added, stats.chi2(D - 1).cdf).pvalue > LEVEL
    assert abs(np.mean(np.sum((inputs[:, 3] - inputs[:, 1]) * inputs[:, 1], axis=1))) < 0.01


@pytest.mark.slow
def test_balanced_classes_take_turns_and_at_infinite_dimension_noise_has_length_one():
    data = fl.data.Modalities(n=7, d=float("inf"), snr=0.5, balanced=True)
    network = fl.networks.PatchEncoder(width=2)
    draw = drawn(data, network, fl.Span.create(data.d, data.vectors(7) + network.vectors()))
    np.testing.assert_array_equal(draw.training.labels, [1, -1, 1, -1, 1, -1, 1])
    noise = np.asarray(draw.training.inputs)[:, 1::2].reshape(14, -1)
    np.testing.assert_allclose(noise @ noise.T, np.eye(14), atol=1e-12)


SEEDS = 400


def short_run(data, shared):
    end = fl.probes.at_end
    return fl.Experiment(
        data=data,
        network=fl.networks.PatchEncoder(width=4, shared=shared, init_scale=0.05),
        objective=InfoNCE(temperature=0.5),
        algorithm=fl.algorithms.GradientDescent(4.0),
        probes=[
            p.on(end)
            for p in (fl.probes.train_loss, fl.probes.encoder_products, fl.probes.downstream_error(count=200))
        ],
        steps=25,
    )


def statistics(history):
    return {
        "train loss": history.train_loss,
        "largest signal": abs(history.encoder_signal).max("filter"),
        "largest noise": history.encoder_noise.max(["filter", "sample"]),
        "spread of noise": (history.encoder_noise**2).mean(["filter", "sample"]),
        "downstream error": history.downstream_error,
    }


@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True], ids=["two modalities", "one modality"])
def test_span_equals_ambient_in_law(shared):
    """Kolmogorov-Smirnov and Welch tests; another noise, one part in twenty stronger, is told apart."""
    kind = fl.data.AugmentedPairs if shared else fl.data.Modalities
    data = kind(n=10, d=D, snr=0.25, noise_scale=D**-0.5)
    ambient, span, other = (
        fl.run(dataclasses.replace(experiment, space=space), seeds=range(first, first + SEEDS), progress=False)
        for experiment, space, first in (
            (short_run(data, shared), fl.Ambient, 0),
            (short_run(data, shared), fl.Span, 10_000),
            (short_run(dataclasses.replace(data, noise_scale=1.05 * D**-0.5), shared), fl.Span, 20_000),
        )
    )

    def smallest(one, two):
        pairs = [(a.values, b.values) for a, b in zip(statistics(one).values(), statistics(two).values())]
        tests = [
            (stats.ks_2samp(a, b, method="asymp").pvalue, stats.ttest_ind(a, b, equal_var=False).pvalue)
            for a, b in pairs
        ]
        return np.min(tests)

    assert smallest(ambient, span) > LEVEL > smallest(ambient, other)
