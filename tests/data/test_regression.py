"""Regression tasks: their laws, one or several tasks, padding, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import featlab as fl
from featlab.core.space import Ambient
from featlab.data import LinearRegression, power_law, spiked

SPECTRUM, TARGET = power_law(1.0), spiked(2.0, at=3, height=4.0)


def drawn(n=5, tasks=1, rows=None, count=7, noise=0.5, d=12):
    data = LinearRegression(n=n, d=d, spectrum=SPECTRUM, target=TARGET, tasks=tasks, label_noise=noise)
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(4), 3)
        truth, space = data.truth(keys[0], Ambient(float(d)))
        training, space = data.draw(keys[1], truth, space, rows or n)
        return jax.tree.map(np.asarray, (truth, training, data.fresh(keys[2], truth, space, count)))


def test_laws_of_decay_are_those_of_numpy_in_float64():
    j = np.arange(1, 6)
    law = power_law(1.5, floor=0.2)(j)
    assert law.dtype == np.float64
    assert_array_equal(law, np.maximum(j**-1.5, 0.2))
    assert_array_equal(spiked(1.0, at=3, height=7.0)(j), [1, 1 / 2, 7, 1 / 4, 1 / 5])
    assert_allclose(power_law(1.5, floor=0.2)(jnp.arange(1.0, 6.0)), law, rtol=1e-6)


@pytest.mark.parametrize("tasks", [1, 3])
def test_labels_are_linear_in_the_inputs_with_one_column_for_each_task(tasks):
    truth, training, test = drawn(tasks=tasks)
    j = np.arange(1, 13)
    assert_allclose(truth.spectrum, 1 / j)
    assert_allclose(truth.target, np.where(j == 3, 4.0, j**-2.0))
    for batch in (training, test):
        clean = batch.inputs[:, 0] @ truth.coefficients.T
        assert_allclose(batch.clean_labels, clean[:, 0] if tasks == 1 else clean, rtol=1e-12)
        assert batch.labels.shape == batch.clean_labels.shape
        noise = np.asarray(batch.labels - batch.clean_labels)
        assert np.all(noise != 0) and len(np.unique(noise)) == noise.size


def test_covariances_and_noise_are_as_stated():
    """Over many draws; 4 standard errors of a variance over 1000 values."""
    truth, training, _ = drawn(n=1000, tasks=1000, noise=0.5, d=4)
    within = 4 * np.sqrt(2 / 1000)
    assert_allclose(np.var(training.inputs[:, 0], axis=0) / truth.spectrum, 1, atol=within)
    assert_allclose(np.var(truth.coefficients, axis=0) / truth.target, 1, atol=within)
    assert_allclose(np.var(np.asarray(training.labels - training.clean_labels)[:, 0]), 0.25, rtol=within)


def test_padding_changes_nothing_and_is_zero():
    _, plain, _ = drawn(tasks=2)
    _, padded, _ = drawn(tasks=2, rows=8)
    assert_allclose(padded.labels[:5], plain.labels, rtol=1e-14)
    assert_array_equal(padded.inputs[5:], 0)
    assert_array_equal(padded.mask, [True] * 5 + [False] * 3)


def test_the_mean_over_samples_and_tasks_leaves_padding_out():
    _, padded, _ = drawn(tasks=2, rows=8)
    values = jnp.arange(16.0).reshape(8, 2)
    assert_allclose(padded.mean(values), np.mean(np.arange(10.0)))


def test_a_law_that_is_not_one_number_for_each_j_is_refused():
    data = LinearRegression(n=3, d=6, spectrum=lambda j: 1.0, target=TARGET)
    with pytest.raises(fl.InputError, match=r"LinearRegression.spectrum must return one number for each j"):
        data.truth(jax.random.key(0), Ambient(6.0))
