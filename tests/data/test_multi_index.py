"""Gaussian inputs and their labels: the law of both, in either space, and what is refused."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl
from featlab.core.space import Ambient, Span
from featlab.problem import draw_run

pytestmark = pytest.mark.rounding
NETWORK = fl.networks.TwoLayer(width=1)
SINGLE = fl.data.SingleIndex(n=40, d=30, link=jnp.tanh, label_noise=0.5)
LINEAR = fl.data.SingleIndex(n=15, d=60, link=fl.networks.identity, label_noise=0.7)
MULTI = fl.data.MultiIndex(n=40, d=30, link=jnp.prod, rank=3)


@eqx.filter_jit
def drawn_for(model, space, rows, seeds):
    """Draws for many seeds, with a test set each."""

    def one(seed):
        draw = draw_run(model, NETWORK, space, rows, 1, jax.random.key(seed))
        return draw, model.fresh(draw.test_key, draw.truth, draw.space, 5)

    return jax.vmap(one)(seeds)


def drawn(model, space=Ambient, rows=None, seeds=1):
    rows = rows or model.n
    room = model.vectors(2 * rows) + NETWORK.vectors()
    with jax.enable_x64(True):
        made = Ambient(model.d) if space is Ambient else Span.create(model.d, room)
        return drawn_for(model, made, rows, jnp.arange(seeds, dtype=jnp.uint32))


def inputs(batch):
    return np.asarray(batch.inputs[..., 0, :])


def test_inputs_are_standard_gaussian():
    draw, test = drawn(SINGLE, seeds=200)
    for x in (inputs(draw.training), inputs(draw.holdouts[0]), inputs(test)):
        x = x.reshape(-1, 30)
        few = 5 / np.sqrt(len(x))  # standard errors of a mean of numbers with variance one
        assert_allclose(x.mean(axis=0), 0, atol=few)
        assert_allclose(x.T @ x / len(x), np.eye(30), atol=few * np.sqrt(2))
        assert_allclose(np.mean(x**4), 3, atol=5 * np.sqrt(96 / x.size))


def test_labels_are_the_link_and_noise_of_the_given_size():
    draw, test = drawn(SINGLE, seeds=200)
    directions = np.asarray(draw.truth.directions)
    for batch in (draw.training, draw.holdouts[0], test):
        seen = np.einsum("skc,sic->si", directions, inputs(batch))
        assert_allclose(batch.clean_labels, np.tanh(seen), atol=1e-12)
        noise = np.asarray(batch.labels - batch.clean_labels).ravel()
        few = 5 / np.sqrt(len(noise))
        assert_allclose([noise.mean(), noise.std()], [0, 0.5], atol=0.5 * few)
        assert abs(np.corrcoef(noise, np.tanh(seen).ravel())[0, 1]) < few
        assert_allclose(np.mean(noise**4), 3 / 16, rtol=4 * few)


@pytest.mark.slow
def test_labels_of_several_directions_are_the_link_of_all_of_them():
    draw, test = drawn(MULTI, seeds=3)
    directions = np.asarray(draw.truth.directions)
    assert_allclose(directions @ directions.transpose(0, 2, 1), np.broadcast_to(np.eye(3), (3, 3, 3)), atol=1e-12)
    for batch in (draw.training, test):
        for s, i in np.ndindex(batch.labels.shape):
            expected = np.prod([v @ inputs(batch)[s, i] for v in directions[s]])
            assert_allclose(batch.labels[s, i], expected, atol=1e-12)


@pytest.mark.parametrize("space", [Ambient, Span])
def test_what_the_labels_say_about_the_teacher_has_its_exact_mean_in_either_space(space):
    """beta = X'y/n for y = x_1 + noise: E beta = v, n E |beta|^2 = d + 2 + s^2 d + n - 1."""
    n, d, s, seeds = 15, 60, 0.7, 1500
    draw, _ = drawn(LINEAR, space, seeds=seeds)
    x, y = inputs(draw.training), np.asarray(draw.training.labels)
    beta = np.einsum("sic,si->sc", x, y) / n
    along = np.einsum("sc,sc->s", beta, np.asarray(draw.truth.directions)[:, 0])
    square = np.sum(beta**2, axis=1)
    for values, mean in ((along, 1), (square, (d + 2 + s**2 * d + n - 1) / n)):
        assert abs(values.mean() - mean) < 5 * values.std() / np.sqrt(seeds)
    assert square.std() / np.sqrt(seeds) < 0.02 * square.mean()


@pytest.mark.parametrize("space", [Ambient, Span])
def test_test_inputs_know_nothing_of_the_training_set(space):
    """Products of unit training vectors with test inputs are N(0, 1), within the span as in the whole space."""
    draw, test = drawn(LINEAR, space, seeds=1500)
    for batch in (draw.training, draw.holdouts[0]):
        x = inputs(batch)
        units = x / np.linalg.norm(x, axis=-1, keepdims=True)
        products = np.einsum("sic,sjc->sij", units, inputs(test)).ravel()
        assert_allclose([products.mean(), products.std()], [0, 1], atol=5 / np.sqrt(len(products)))
        labels = np.stack([np.asarray(batch.labels)[:, :5].ravel(), np.asarray(test.labels).ravel()])
        assert abs(np.corrcoef(labels)[0, 1]) < 5 / np.sqrt(labels.shape[1])


def test_a_seed_gives_the_same_draw_again_and_another_seed_another():
    one, two = (drawn(SINGLE, seeds=200)[0] for _ in range(2))
    for a, b in ((one.training, two.training), (one.start, two.start)):
        for leaf, again in zip(jax.tree.leaves(a), jax.tree.leaves(b)):
            np.testing.assert_array_equal(leaf, again)
    first, second = np.asarray(one.training.labels[:2])
    assert not np.any(first == second)


@pytest.mark.slow  # whole vectors and readings in the span are looked at by conformance
def test_padding_changes_nothing_for_the_others():
    """In the span, where rows that do not count take no dimension."""
    model = dataclasses.replace(MULTI, d=120.0)
    (plain, test), (padded, padded_test) = drawn(model, Span), drawn(model, Span, rows=45)
    for one, other in ((plain.training, padded.training), (plain.holdouts[0], padded.holdouts[0])):
        assert_allclose(other.labels[:, :40], one.labels, atol=1e-12)
        x, y = inputs(one)[0], inputs(other)[0]
        assert_allclose(y[:40] @ y[:40].T, x @ x.T, atol=1e-9)
        assert np.all(y[40:] == 0) and not np.any(other.mask[0, 40:]) and np.all(other.mask[0, :40])
    assert_allclose(padded_test.labels, test.labels, atol=1e-12)


@pytest.mark.parametrize(
    "make, reason",
    [
        (lambda: fl.data.SingleIndex(n=5, d=10, link=3), "link must be a function of one number"),
        (lambda: fl.data.SingleIndex(n=5, d=10, link=fl.networks.leaky_relu), "with its brackets"),
        (lambda: fl.data.SingleIndex(n=5, d=10, link=jnp.tanh, label_noise=-1), "label_noise must be"),
        (lambda: fl.data.SingleIndex(n=0, d=10, link=jnp.tanh), "n must be a whole number"),
        (lambda: fl.data.MultiIndex(n=5, d=2, link=jnp.sum, rank=3), "rank must be at most d = 2, got 3"),
        (
            lambda: drawn(fl.data.SingleIndex(n=5, d=10, link=jnp.sum)),
            r"function of one number, got the shape \(\)",
        ),
        (lambda: drawn(fl.data.MultiIndex(n=5, d=10, link=jnp.tanh)), r"one number for one input, got .* \(2,\)"),
    ],
)
def test_what_cannot_be_a_label_is_refused(make, reason):
    with pytest.raises(fl.InputError, match=reason):
        make()
