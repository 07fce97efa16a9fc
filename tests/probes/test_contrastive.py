"""Readings of an encoder against plain NumPy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import featlab as fl
from featlab import testing
from featlab.algorithms import GradientDescent
from featlab.networks.embedding import Encoders
from featlab.objectives import InfoNCE
from featlab.probes import View, downstream_error, encoder_products, encoder_ratio, relative_loss
from featlab.probes.contrastive import linear_probe
from featlab.problem import PlainProblem, draw_run

WIDTH, D, N, ROWS = 4, 200, 5, 7


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def task():
    with jax.enable_x64(True):
        data = fl.data.Modalities(n=N, d=D, snr=0.5, strength=3.0)
        network = fl.networks.PatchEncoder(width=WIDTH, init_scale=0.1)
        draw = eqx.filter_jit(draw_run)(data, network, fl.Ambient(float(D)), ROWS, 0, jax.random.key(1))
        return PlainProblem(data, network, InfoNCE().bind(network), draw)


def seen(task, params):
    return View(params, jnp.array(0), task, GradientDescent(0.1))


@pytest.mark.parametrize("encoder", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_signal_over_noise_is_that_of_the_view(task, encoder):
    view = seen(task, task.start)
    weights, inputs = np.asarray(task.start.filters)[encoder], np.asarray(view.training.inputs)
    signal = weights @ np.asarray(task.draw.truth.vectors)[encoder]
    noise = inputs[:N, 2 * encoder + 1] @ weights.T
    read = eqx.filter_jit(lambda v: encoder_ratio(encoder=encoder)(v))(view)
    expected = np.abs(signal).max() / noise.max(axis=1).mean()  # without the rows of padding
    assert float(read["encoder_ratio"]) == pytest.approx(expected, rel=1e-9)
    assert float(read["log_ratio"]) == pytest.approx(np.log(expected), rel=1e-9)
    products = encoder_products(encoder=encoder)(view)
    np.testing.assert_allclose(products["encoder_signal"], signal, rtol=1e-9)
    np.testing.assert_allclose(products["encoder_noise"][:, :N], noise.T, rtol=1e-9)


def test_the_linear_probe_is_least_squares():
    rng = np.random.default_rng(0)
    features, labels = 1e-3 * rng.standard_normal((300, WIDTH)) + 1, rng.choice([-1.0, 1.0], 300)
    rows = np.concatenate([features, np.ones((300, 1))], axis=1)
    expected = rows @ np.linalg.lstsq(rows, labels, rcond=None)[0]
    found = linear_probe(jnp.asarray(features), jnp.asarray(labels))(jnp.asarray(features))
    np.testing.assert_allclose(found, expected, atol=1e-5)  # but for its ridge of a millionth
    assert np.std(expected) > 0.05


def test_encoders_of_signal_serve_and_encoders_of_noise_do_not(task):
    """Filters along plus and minus the signal see the label; along training noise, fresh inputs say nothing."""
    read = eqx.filter_jit(lambda params: downstream_error(count=4000)(seen(task, params)))
    signal = jnp.outer(jnp.array([1.0, -1.0] * (WIDTH // 2)), task.draw.truth.directions[0])
    faint = 1e-4 * signal + task.draw.training.noise[jnp.arange(WIDTH) % N, 0]
    errors = {}
    for name, own in (("signal", signal + 1e-3 * task.start.filters[0]), ("noise", faint)):
        found = read(Encoders(jnp.stack([own, task.start.filters[1]])))
        errors[name] = float(found["downstream_error"]), float(found["shifted_error"])
    assert errors["signal"] == (0, 0)
    assert all(0.45 < error < 0.55 for error in errors["noise"])


@pytest.mark.slow
def test_the_relative_loss_is_one_where_nothing_is_learnt(task):
    nothing = Encoders(jnp.zeros_like(task.start.filters))
    assert float(relative_loss(seen(task, nothing))["relative_loss"]) == pytest.approx(1, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True])
def test_padding_changes_no_reading(shared):
    kind = fl.data.AugmentedPairs if shared else fl.data.Modalities
    experiment = testing.example_experiment(
        data=kind(n=6, d=40, snr=0.5),
        network=fl.networks.PatchEncoder(width=3, shared=shared, init_scale=0.3),
        objective=InfoNCE(),
        probes=(fl.probes.train_loss, relative_loss, encoder_ratio, encoder_products, downstream_error),
    )
    testing.check_padding(experiment)


def test_other_parts_are_refused(task):
    other = eqx.tree_at(lambda t: t.objective, task, fl.objectives.Supervised(task.network))
    with pytest.raises(fl.InputError, match="relative_loss needs an InfoNCE objective, got Supervised"):
        relative_loss(seen(other, task.start))
    plain = PlainProblem(fl.data.SignalNoise(n=5, d=40, snr=1.0), task.network, task.objective, task.draw)
    with pytest.raises(fl.InputError, match="needs data such as AugmentedPairs or Modalities, got SignalNoise"):
        encoder_ratio(seen(plain, task.start))
