"""Singular values, spikes and directions against NumPy, and known cases: no step, a linear network, one neuron."""

from math import factorial, pi, sqrt

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl
from featlab.algorithms import GiantStep
from featlab.core.space import Ambient
from featlab.probes import View
from featlab.problem import PlainProblem, draw_run

P = fl.probes
N, D, ETA, SCALE = 14, 25, 30.0, 1.5
SINGLE = fl.data.SingleIndex(n=N, d=D, link=jnp.sin, label_noise=0.3)
MULTI = fl.data.MultiIndex(n=40, d=D, link=jnp.sum, rank=2)
RELU = fl.networks.centred(fl.networks.relu)
C = {0: 0.0, 1: 1 / 2, 2: 1 / (2 * sqrt(2 * pi)), 3: 0.0}  # the centred ReLU's


def two_layer(width, activation=RELU, **options):
    return fl.networks.TwoLayer(width=width, activation=activation, centred=True, **options)


def view_of(data, network, eta=ETA, steps=1, change=None):
    """A run after `steps` steps, its parameters changed by hand if need be."""
    algorithm = GiantStep(eta=eta)

    @eqx.filter_jit
    def begin():
        draw = draw_run(data, network, Ambient(float(D)), data.n, 1, jax.random.key(2))
        task = PlainProblem(data, network, fl.objectives.as_objective(fl.objectives.squared, network), draw)
        state = algorithm.init(jax.random.key(0), task)
        for _ in range(steps):
            state, _ = algorithm.step(jax.random.key(1), state, task)
        return View(state.params, jnp.array(steps), task, algorithm)

    with jax.enable_x64(True):
        view = begin()
        return view if change is None else eqx.tree_at(lambda v: v.params, view, change(view))


def read(probe, view):
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, eqx.filter_jit(probe)(view))


@pytest.fixture(scope="module", params=[6, 20], ids=["narrow", "wide"])
def view(request):
    """With fewer neurons than samples, and with more."""
    return view_of(SINGLE, two_layer(request.param, init_scale=SCALE))


@pytest.fixture(scope="module")
def before():
    return view_of(SINGLE, two_layer(6, init_scale=SCALE), steps=0)


class Plain:
    """What NumPy needs of a view."""

    def __init__(self, view):
        held = view.problem.holdout(0)
        self.start, self.now = np.asarray(view.problem.start.weights), np.asarray(view.params.weights)
        self.a = np.asarray(view.problem.start.head) / sqrt(len(self.start))
        self.x, self.fresh = np.asarray(view.training.inputs[:, 0]), np.asarray(held.inputs[:, 0])
        self.beta = self.x.T @ np.asarray(view.training.labels) / len(self.x)
        self.directions = np.asarray(view.problem.draw.truth.directions)

    def features(self, x, weights):
        return np.maximum(x @ weights.T, 0) - 1 / sqrt(2 * pi)


def test_singular_values_of_weights(view):
    found, plain = read(P.weight_spectrum, view), Plain(view)
    values = np.linalg.svd(plain.now, compute_uv=False)
    assert_allclose(found["weight_singular_value"], values, rtol=1e-9)
    edge = SCALE * (1 + sqrt(len(plain.now) / D))
    assert_allclose(found["weight_edge"], edge, rtol=1e-12)
    assert found["weight_outliers"] == np.sum(values > 1.05 * edge) > 0


@pytest.mark.parametrize("holdout", [0, 1])
def test_singular_values_of_features(view, holdout):
    found, plain = read(P.feature_spectrum(holdout=holdout), view), Plain(view)
    x = plain.x if holdout == 0 else plain.fresh
    now, start = (
        np.linalg.svd(plain.features(x, w), compute_uv=False) / sqrt(N) for w in (plain.now, plain.start)
    )
    assert_allclose(found["feature_singular_value"], now, atol=1e-7)
    assert_allclose(found["untrained_edge"], start[0], rtol=1e-9)
    assert found["feature_outliers"] == np.sum(now > 1.05 * start[0]) > 0


def test_nothing_stands_out_before_the_step(before):
    weights, features = read(P.weight_spectrum, before), read(P.feature_spectrum, before)
    assert weights["weight_outliers"] == features["feature_outliers"] == 0
    assert_allclose(features["feature_singular_value"][0], features["untrained_edge"], rtol=1e-12)
    np.testing.assert_array_equal(read(P.spike_overlaps, before)["spike_overlap"], 0)


def test_the_theorys_edge_is_where_features_of_the_start_end():
    network = two_layer(200)
    data = fl.data.SingleIndex(n=300, d=150, link=jnp.sin)

    @eqx.filter_jit
    def edge():
        draw = draw_run(data, network, Ambient(150.0), 300, 1, jax.random.key(0))
        task = PlainProblem(data, network, fl.objectives.as_objective(fl.objectives.squared, network), draw)
        return P.feature_spectrum(View(draw.start, jnp.array(0), task, GiantStep(eta=1.0)))["untrained_edge"]

    with jax.enable_x64(True):
        measured = float(edge())
    powers = fl.theory.random_features.Activation.of(RELU)
    assert_allclose(measured, fl.theory.random_features.edge(0.5, 0.75, powers), rtol=0.05)


def test_overlaps_with_spikes(view):
    """Each power by what it adds to lower ones, found here by least squares."""
    overlap, cosine = (read(probe(spike=(1, 2, 3)), view) for probe in (P.spike_overlaps, P.singular_overlaps))
    plain = Plain(view)
    now, start = (plain.features(plain.fresh, w) for w in (plain.now, plain.start))
    singular = np.linalg.svd(now, full_matrices=False)[0][:, :6]
    seen, width, length = plain.fresh @ plain.beta, len(plain.a), np.linalg.norm(plain.beta)
    for k in (1, 2, 3):
        lower = seen[:, None] ** np.arange(k)
        left = seen**k - lower @ np.linalg.lstsq(lower, seen**k)[0]
        left, right = left / np.linalg.norm(left), plain.a**k
        size = sqrt(N) * length**k * np.sum(right**2) * width ** ((k - 1) / 2)
        expected = left @ (now - start) @ right / size
        assert_allclose(overlap["spike_overlap"][k - 1], expected, rtol=1e-8)
        assert_allclose(cosine["singular_overlap"][k - 1], np.max(np.abs(left @ singular)), atol=1e-7)
    assert np.abs(overlap["spike_overlap"][0]) > 0.1


def test_explicit_spikes_overlap_as_the_theory_says():
    """One neuron's quadratic activation: F - F_0 has two powers of X beta, and each overlap its coefficient."""
    activation = fl.networks.hermite_series((0.0, 1.0, 0.4))
    network = two_layer(1, activation)

    def known(view):  # w + eta beta, from w = 0: the features change by exactly two powers
        beta = view.training.inputs[:, 0].T @ view.training.labels / N
        return eqx.tree_at(lambda p: p.weights, view.params, ETA * beta[None])

    view = view_of(SINGLE, network, steps=0, change=known)
    view = eqx.tree_at(lambda v: v.problem.draw.start.weights, view, jnp.zeros((1, D)))
    plain = Plain(view)
    overlap = read(P.spike_overlaps(spike=(2, 3)), view)["spike_overlap"]
    seen = plain.fresh @ plain.beta / np.linalg.norm(plain.beta)
    lower = seen[:, None] ** np.arange(2)
    left = np.linalg.norm(seen**2 - lower @ np.linalg.lstsq(lower, seen**2)[0]) / sqrt(N)  # sqrt 2 in the limit
    assert_allclose(overlap, [0.4 * ETA**2 * left / plain.a[0] ** 2, 0], rtol=1e-8, atol=1e-8)


def test_distances_from_spiked_features(view):
    found, plain = read(P.spiked_gaps(order=(0, 1, 2, 3)), view)["spiked_gap"], Plain(view)
    spiked, expected = plain.features(plain.fresh, plain.start), []
    for k in range(4):
        if k > 0:
            spiked = spiked + (C[1] * ETA) ** k * C[k] * np.outer((plain.fresh @ plain.beta) ** k, plain.a**k)
        expected.append(np.linalg.norm(plain.features(plain.fresh, plain.now) - spiked, 2) / sqrt(N))
    assert_allclose(found, expected, rtol=1e-9)
    assert found[0] > 0.1 and abs(found[1] - found[2]) > 0.1


def test_without_a_step_there_is_no_distance():
    still = view_of(SINGLE, two_layer(6), eta=0.0)
    assert_allclose(read(P.spiked_gaps(order=(0, 1, 2)), still)["spiked_gap"], 0, atol=1e-12)


def test_the_step_is_nearly_of_rank_one_and_points_somewhere(view):
    found, plain = read(P.step_direction, view), Plain(view)
    moved = plain.now - plain.start
    gap = np.linalg.norm(moved - ETA * C[1] * np.outer(plain.a, plain.beta), 2) / np.linalg.norm(moved, 2)
    assert_allclose(found["rank_one_gap"], gap, rtol=1e-9)
    top = np.linalg.svd(moved)[2][0]
    assert_allclose(found["step_alignment"], [abs(plain.directions[0] @ top)], rtol=1e-9)
    assert np.all((found["step_alignment"] > 0) & (found["step_alignment"] < 1))


def test_before_the_step_there_is_no_direction(before):
    found = read(P.step_direction, before)
    assert np.isnan(found["rank_one_gap"]) and np.all(np.isnan(found["step_alignment"]))


def test_a_linear_network_takes_a_step_of_rank_one():
    """W - W_0 = eta a beta' exactly, so that it points where beta does."""
    linear = view_of(SINGLE, two_layer(6, fl.networks.identity))
    found, plain = read(P.step_direction, linear), Plain(linear)
    assert found["rank_one_gap"] < 1e-9
    cosine = plain.directions[0] @ plain.beta / np.linalg.norm(plain.beta)
    assert_allclose(found["step_alignment"], [abs(cosine)], rtol=1e-9)


def test_several_directions_are_sought_in_as_many_singular_vectors():
    view = view_of(MULTI, two_layer(6))
    found, plain = read(P.step_direction, view)["step_alignment"], Plain(view)
    first = np.linalg.svd(plain.now - plain.start)[2][:2]
    assert_allclose(found, np.linalg.norm(plain.directions @ first.T, axis=1), rtol=1e-8)
    assert found.shape == (2,) and np.all((found > 0) & (found < 1))


def test_the_content_of_one_neuron_is_its_hermite_series():
    """f(x) = H(<v_1, x>), along v_1 and, where nothing but the mean is left, along v_2; for 100,000 inputs."""
    c = (0.5, 1.0, -0.3, 0.2)
    network = fl.networks.TwoLayer(width=1, activation=fl.networks.hermite_series(c), power=0.0)

    def known(view):
        values = view.problem.draw.truth.directions[:1], jnp.ones(1)
        return eqx.tree_at(lambda p: (p.weights, p.head), view.params, values)

    view = view_of(MULTI, network, steps=0, change=known)
    found = read(P.hermite_content(degrees=4, count=100_000), view)["hermite_content"]
    along = [sqrt(factorial(k)) * one for k, one in enumerate((*c, 0.0))]
    assert_allclose(found, [along, [c[0], 0, 0, 0, 0]], atol=0.05)


def test_a_model_without_a_teacher_has_no_directions():
    data = fl.data.SignalNoise(n=6, d=D, snr=0.5)
    view = view_of(data, two_layer(3), steps=0)
    for probe, reason in (
        (P.hermite_content, "hermite_content needs data such as MultiIndex or SingleIndex, got SignalNoise"),
        (P.singular_overlaps, "one patch"),
    ):
        with pytest.raises(fl.InputError, match=reason):
            read(probe, view)
