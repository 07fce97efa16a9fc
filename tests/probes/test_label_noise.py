"""Losses of samples, selection by loss, and tests whose noise was trained on, against plain NumPy."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import featlab as fl
from featlab.engine.loop import draw_one

pytestmark = pytest.mark.gpu

P = fl.probes
LEVEL = 0.6


def filters(view):
    return view.params.filters


BASE = fl.Experiment(
    data=fl.data.SignalNoise(
        n=8, d=60, snr=0.6, noise_scale=60**-0.5, label_flip=0.3, orthogonal=False, random_slot=True
    ),
    network=fl.networks.TwoLayerCNN(width=3, init_scale=0.3),
    algorithm=fl.algorithms.GradientDescent(1.0),
    probes=[filters, P.sample_losses, P.sample_selection(level=LEVEL), P.spurious_test_error],
    steps=20,
    record=P.every(4),
    space=fl.Ambient,
    precision=64,
)


def outputs(w, *patches):
    response = sum(np.maximum(w @ patch, 0) for patch in patches)
    return response[0].mean() - response[1].mean()


def test_probes_of_label_noise_equal_plain_numpy():
    """On padded rows, which are no samples."""
    history = fl.run(BASE, [3], rows=11).isel(seed=0)
    with jax.enable_x64(True):
        draw, _ = eqx.filter_jit(draw_one)(BASE, BASE.empty_space(), jnp.uint32(3), 8)
        mu, noise = np.asarray(draw.truth.vectors[0]), np.asarray(draw.training.noise[:, 0])
        clean, labels = np.asarray(draw.training.clean_labels), np.asarray(draw.training.labels)
    flipped = clean != labels
    assert 0 < flipped.sum() < 8
    np.testing.assert_allclose(history.flipped_fraction, flipped.mean())
    errors, precisions = [], []
    for t, w in enumerate(history.filters.values):
        f = np.array([outputs(w, y * mu, xi) for y, xi in zip(clean, noise)])
        losses = np.log1p(np.exp(-labels * f))
        np.testing.assert_allclose(history.sample_loss[t], losses, rtol=1e-12)
        chosen = losses > LEVEL
        precision = np.mean(flipped[chosen]) if chosen.any() else np.nan
        np.testing.assert_allclose(history.selection_precision[t], precision)
        np.testing.assert_allclose(history.selection_recall[t], np.mean(chosen[flipped]))
        wrong = [y * outputs(w, y * mu, xi) <= 0 for y in (1, -1) for xi in noise]
        np.testing.assert_allclose(history.spurious_test_error[t], np.mean(wrong))
        errors.append(np.mean(wrong))
        precisions.append(precision)
    assert np.ptp(errors) > 0 and np.ptp(precisions) > 0


@pytest.mark.parametrize(
    "flip, level, precision, recall",
    [(0.0, 0.0, 0.0, np.nan), (0.0, 99.0, np.nan, np.nan), (1.0, 0.0, 1.0, 1.0), (1.0, 99.0, np.nan, 0.0)],
)
def test_selection_is_nan_where_nothing_is_selected_or_nothing_was_flipped(flip, level, precision, recall):
    made = dataclasses.replace(
        BASE,
        data=fl.data.SignalNoise(n=4, d=60, snr=0.6, label_flip=flip),
        probes=[P.sample_selection(level=level)],
        steps=0,
    )
    history = fl.run(made)
    np.testing.assert_array_equal(history.selection_precision, [[precision]])
    np.testing.assert_array_equal(history.selection_recall, [[recall]])
