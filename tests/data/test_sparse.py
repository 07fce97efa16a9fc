"""Sparse noise: what its docstring says, on its own draws, and test inputs by either road. Flips by class."""

import dataclasses
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import featlab as fl
from featlab.core.space import Ambient
from featlab.problem import PlainProblem, draw_run

P = fl.probes
MODEL = fl.data.SparseSignalNoise(
    n=8, d=30, sparsity=4, noise_scale=0.5, feature_noise=0.3, signal_norm=2.0, label_flip=0.3
)


def drawn(model, count, rows=None):
    """A training set of `n` inputs."""
    model, d = dataclasses.replace(model, n=count), int(model.d)

    @eqx.filter_jit
    def draw(key):
        truth, space = model.truth(key, Ambient(float(d)))
        return model.draw(key, truth, space, rows or count)[0]

    return jax.tree.map(np.asarray, draw(jax.random.key(5)))


def test_noise_has_so_many_coordinates_and_never_the_first():
    noise = drawn(MODEL, 2000).noise[:, 0]
    assert (np.sum(noise != 0, axis=1) == 4).all() and (noise[:, 0] == 0).all()
    everywhere = drawn(dataclasses.replace(MODEL, sparsity=29), 50).noise[:, 0]
    assert (everywhere[:, 1:] != 0).all() and (everywhere[:, 0] == 0).all()


def test_patches_are_the_signal_and_noise_with_a_little_of_the_opposite_signal():
    batch, v = drawn(MODEL, 200), 2.0 * np.eye(30)[0]
    np.testing.assert_array_equal(batch.inputs[:, 0], batch.clean_labels[:, None] * v)
    np.testing.assert_allclose(batch.inputs[:, 1], batch.noise[:, 0] - 0.3 * batch.clean_labels[:, None] * v)
    assert abs(np.mean(batch.labels != batch.clean_labels) - 0.3) < 4 * np.sqrt(0.21 / 200)


def supports(model, count):
    return np.nonzero(drawn(model, count).noise[:, 0])[1].reshape(count, model.sparsity)


def unlikely(found, sets):
    """The p-value of finding every set as often as any other."""
    return stats.chisquare([np.sum((found == one).all(axis=1)) for one in sets]).pvalue


def test_every_set_of_coordinates_is_equally_likely():
    """The 20 sets of three among six, 4000 times; and the test sees sets that are one tenth more likely."""
    model = dataclasses.replace(MODEL, d=7.0, sparsity=3)
    sets = np.array(list(itertools.combinations(range(1, 7), 3)))
    found = supports(model, 4000)
    assert unlikely(found, sets) > 0.01
    biased = np.where(sets[:, :1] == 1, 1.1, 0.9)[:, 0]
    other = sets[np.random.default_rng(0).choice(len(sets), 4000, p=biased / biased.sum())]
    assert unlikely(other, sets) < 1e-3


def test_noise_is_normal_with_the_scale_asked_for():
    noise = drawn(MODEL, 2000).noise[:, 0]
    values = noise[noise != 0]
    assert stats.kstest(values, stats.norm(scale=0.5).cdf).pvalue > 0.01
    assert stats.kstest(values, stats.norm(scale=0.55).cdf).pvalue < 1e-4


def test_padding_changes_nothing_and_is_zero():
    plain, padded = drawn(MODEL, 8), drawn(MODEL, 8, rows=12)
    for field in ("inputs", "labels", "clean_labels", "noise"):
        np.testing.assert_array_equal(getattr(padded, field)[:8], getattr(plain, field))
    assert not padded.noise[8:].any() and not padded.mask[8:].any()


def test_precision_does_not_change_the_draw():
    single = drawn(MODEL, 50)
    with jax.enable_x64(True):
        double = drawn(MODEL, 50)
    assert double.noise.dtype == np.float64
    np.testing.assert_allclose(single.noise, double.noise, rtol=1e-6)
    np.testing.assert_array_equal(single.labels, double.labels)


def test_test_inputs_are_the_same_by_products_and_as_whole_vectors():
    """From one key, exactly; and the plain road, which has keys of its own, in law."""
    network = fl.networks.TwoLayerCNN(width=3, init_scale=0.5)
    model = dataclasses.replace(MODEL, test_flip=0.2)
    experiment = fl.Experiment(data=model, network=network, algorithm=fl.algorithms.SignDescent(0.1))
    with jax.enable_x64(True):

        @eqx.filter_jit
        def by_three_roads(count):
            draw = draw_run(model, network, Ambient(30.0), model.n, 0, jax.random.key(0))
            task = PlainProblem(model, network, experiment.bound_objective, draw)
            whole = model.fresh(draw.test_key, draw.truth, draw.space, count)
            plain = task._plain_test_outputs(task.start, count)
            return task.test_outputs(task.start, count), (task.outputs(task.start, whole), whole), plain

        (products, batch), (outputs, whole), (plain, plain_batch) = by_three_roads(3000)
    np.testing.assert_allclose(products, outputs, atol=1e-12)
    np.testing.assert_array_equal(batch.labels, whole.labels)
    np.testing.assert_array_equal(batch.clean_labels, whole.clean_labels)
    margins = [np.asarray(y * f) for f, y in ((products, batch.labels), (plain, plain_batch.labels))]
    assert stats.ks_2samp(*margins).pvalue > 0.01 and np.std(margins[0]) > 0.01


def test_more_noise_than_there_are_coordinates_is_refused():
    with pytest.raises(fl.InputError, match=r"^SparseSignalNoise.sparsity must be at most d - 1 = 9, got 10\.$"):
        fl.data.SparseSignalNoise(n=3, d=10, sparsity=10)


@pytest.mark.slow
def test_its_real_numbers_are_swept_as_each_run_ends_alone():
    base = fl.Experiment(
        data=MODEL,
        network=fl.networks.TwoLayerCNN(width=2, init_scale=0.3),
        algorithm=fl.algorithms.SignDescent(0.05),
        probes=[P.train_loss, P.test_error(count=100)],
        steps=5,
        precision=64,  # a sign is not to hang on rounding
    )
    grid = {"data.noise_scale": [0.2, 0.5], "data.feature_noise": [0.0, 0.4]}
    found = fl.sweep(base, grid, seeds=[2])
    assert found.done.all() and len(np.unique(found.train_loss)) == 4
    data = dataclasses.replace(MODEL, noise_scale=0.2, feature_noise=0.4)
    alone = fl.run(dataclasses.replace(base, data=data), [2])
    for name in ("train_loss", "test_error"):
        cell = found[name].sel(noise_scale=0.2, feature_noise=0.4, seed=2)
        np.testing.assert_allclose(cell, alone[name][0, -1], atol=1e-9, err_msg=name)


FLIPPED = fl.data.SignalNoise(n=2000, d=3, signal_norm=1.0, label_flip=0.3, test_flip=0.1)


def tossed(model):
    key = jax.random.key(4)
    batch = jax.vmap(lambda i: jnp.stack(model.toss(jax.random.fold_in(key, i), True)[:2]))
    test = jax.vmap(lambda i: jnp.stack(model.toss(jax.random.fold_in(key, i), False)[:2]))
    labels = [np.asarray(jax.jit(one)(jnp.arange(2000))) for one in (batch, test)]
    return labels[0].T, labels[1].T


def test_each_class_is_flipped_as_often_as_it_is_told():
    (labels, clean), (test_labels, test_clean) = tossed(dataclasses.replace(FLIPPED, negative_flip=0.05))
    for sign, rate in ((1, 0.3), (-1, 0.05)):
        flipped = np.mean(labels[clean == sign] != sign)
        assert abs(flipped - rate) < 4 * np.sqrt(rate * (1 - rate) / 900)
        assert abs(np.mean(test_labels[test_clean == sign] != sign) - 0.1) < 4 * np.sqrt(0.09 / 900)


def test_one_rate_for_both_classes_is_the_draw_it_always_was():
    """A coin for the class, one for the flip, one for the slot, in this order, from the key of the sample."""
    (labels, clean), _ = tossed(FLIPPED)
    keys = [jax.random.fold_in(jax.random.key(4), i) for i in range(20)]
    coins = np.array([jax.random.uniform(key, (3,), np.float32) for key in keys])
    expected = np.where(coins[:, 0] < 0.5, 1, -1)
    np.testing.assert_array_equal(clean[:20], expected)
    np.testing.assert_array_equal(labels[:20], np.where(coins[:, 1] < 0.3, -expected, expected))
    assert 0 < np.sum(labels[:20] != clean[:20]) < 20
    np.testing.assert_array_equal(tossed(dataclasses.replace(FLIPPED, negative_flip=0.3))[0][0], labels)
