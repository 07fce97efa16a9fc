"""Two-layer networks against their formula in NumPy: output, gradient, start, head; and the activations."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl
from featlab.core.space import Ambient
from featlab.networks import RandomFeatures, TwoLayer
from featlab.objectives import squared
from featlab.problem import PlainProblem, draw_run

DATA = fl.data.SingleIndex(n=7, d=12, link=jnp.sin, label_noise=0.3)
X = np.random.default_rng(0).normal(size=(2, 12))  # one input of two patches


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def begun(network, d=12.0):
    return network.init(jax.random.key(3), Ambient(d))[0]


def moved(params):
    """The same parameters a little further on, those that never train left where they are."""
    return eqx.tree_at(lambda p: (p.weights, p.head), params, (1.3 * params.weights + 0.1, params.head - 0.2))


def task_of(network):
    draw = draw_run(DATA, network, Ambient(DATA.d), DATA.n, 0, jax.random.key(1))
    return PlainProblem(DATA, network, fl.objectives.as_objective(squared, network), draw)


@pytest.mark.parametrize(
    "network, scale",
    [
        (TwoLayer(width=5, activation=jnp.tanh), 5**-0.5),
        (TwoLayer(width=5, activation=jnp.tanh, power=1.0, init_scale=2.0), 1 / 5),
        (TwoLayer(width=5, activation=jnp.tanh, power=0.0, centred=True), 1.0),
        (RandomFeatures(width=5, activation=jnp.tanh, centred=True), 5**-0.5),
    ],
)
def test_outputs_and_features_follow_the_formula(network, scale):
    params = moved(begun(network))
    weights, head = np.asarray(params.weights), np.asarray(params.head)
    features = np.tanh(X @ weights.T).sum(axis=0)
    expected = scale * head @ features
    if network.centred:
        weights, start_head = map(np.asarray, params.origin)
        expected -= scale * start_head @ np.tanh(X @ weights.T).sum(axis=0)
    assert_allclose(network(params, X), expected, rtol=1e-12)
    assert_allclose(network.features(params, X), features, rtol=1e-12)
    assert_allclose(network.head(params), scale * head, rtol=1e-12)
    assert_allclose(network.first_layer(params), params.weights)


def test_products_give_the_same_outputs_with_the_sample_last_or_not_at_all():
    for network in (
        TwoLayer(width=5, activation=jnp.tanh),
        TwoLayer(width=5, centred=True),
        RandomFeatures(width=5),
    ):
        params = moved(begun(network))
        inputs = np.random.default_rng(1).normal(size=(4, 2, 12))
        products = inputs @ np.asarray(network.weights(params)).T
        plain = [network(params, one) for one in inputs]
        assert_allclose([network.respond(params, one) for one in products], plain, rtol=1e-12)
        assert_allclose(network.respond(params, jnp.moveaxis(products, 0, -1)), plain, rtol=1e-12)


def test_the_start_has_the_stated_law():
    params = begun(TwoLayer(width=400, init_scale=3.0), 200.0)
    weights, head = np.asarray(params.weights), np.asarray(params.head)
    assert weights.shape == (400, 200) and head.shape == (400,)
    assert_allclose(weights.std() * np.sqrt(200), 3, rtol=0.01)
    assert_allclose(weights.mean(), 0, atol=5 * 3 / np.sqrt(200 * 80_000))
    assert_allclose([head.mean(), head.std()], [0, 1], atol=5 / 20)
    # Independent of one another: the mean of what head and weights have in common.
    assert abs(np.mean(head[:, None] * weights)) < 5 * 3 / np.sqrt(200 * 80_000)


@pytest.mark.parametrize("network", [TwoLayer(width=6, centred=True), RandomFeatures(width=6, centred=True)])
def test_a_centred_network_begins_at_zero(network):
    task = task_of(network)
    outputs = eqx.filter_jit(lambda task: task.outputs(task.start, task.draw.training))(task)
    np.testing.assert_array_equal(outputs, 0)
    plain = type(network)(width=6)
    assert np.min(np.abs(task_of(plain).outputs(task_of(plain).start, task.draw.training))) > 1e-3


@pytest.mark.parametrize("centred", [True, False])
def test_the_first_gradient_is_that_of_the_residual(centred):
    """-(1/n) sum_i r_i N^-p a_r sigma'(w_r x_i) x_i, where r is y itself in a centred network, else y - f."""
    network = TwoLayer(width=4, activation=jnp.tanh, power=1.0, centred=centred, train_head=True)
    task = task_of(network)
    gradient = task.gradient(task.start, task.draw.training)
    x, y = np.asarray(task.draw.training.inputs[:, 0]), np.asarray(task.draw.training.labels)
    w, a = np.asarray(task.start.weights), np.asarray(task.start.head)
    seen = np.tanh(x @ w.T)
    residual = y if centred else y - seen @ a / 4
    by_hand = -np.einsum("i,ir,r,ic->rc", residual, 1 - seen**2, a / 4, x) / len(y)
    assert_allclose(gradient.weights, by_hand, atol=1e-14)
    assert_allclose(gradient.head, -residual @ seen / 4 / len(y), atol=1e-14)


@pytest.mark.parametrize(
    "network, trains",
    [
        (TwoLayer(width=4, activation=jnp.tanh, centred=True), {"weights"}),
        (TwoLayer(width=4, activation=jnp.tanh, centred=True, train_head=True), {"weights", "head"}),
        (RandomFeatures(width=4, activation=jnp.tanh, centred=True), {"head"}),
    ],
)
def test_only_what_trains_has_a_gradient(network, trains):
    """On either road, at the start and away from it; what the network began with never has any."""
    task = task_of(network)
    batch, params = task.draw.training, moved(task.start)
    products = batch.inputs @ network.weights(params).T

    def on_products(params):
        return jnp.sum(jax.vmap(network.respond, in_axes=(None, 0))(params, products) ** 2)

    for gradient in (
        task.gradient(task.start, batch),
        task.gradient(params, batch),
        jax.grad(on_products)(params),
    ):
        np.testing.assert_array_equal(gradient.origin[0], 0)
        np.testing.assert_array_equal(gradient.origin[1], 0)
    assert {name for name in ("weights", "head") if np.any(getattr(task.gradient(params, batch), name))} == trains


def test_random_features_descend_a_linear_model():
    network = RandomFeatures(width=4, activation=jnp.tanh)
    task = task_of(network)
    x, y = np.asarray(task.draw.training.inputs[:, 0]), np.asarray(task.draw.training.labels)
    features = np.tanh(x @ np.asarray(task.start.weights).T) / 2  # N^-1/2
    a = np.asarray(task.start.head)
    gradient = task.gradient(task.start, task.draw.training)
    assert_allclose(gradient.head, features.T @ (features @ a - y) / 7, atol=1e-14)
    np.testing.assert_array_equal(gradient.weights, 0)


@pytest.mark.parametrize("network", [TwoLayer(width=5, power=1.0), TwoLayer(width=5, centred=True)])
def test_another_head_on_the_same_features(network):
    params, head = moved(begun(network)), np.arange(1.0, 6.0)
    other = network.with_head(params, jnp.asarray(head))
    assert_allclose(network.head(other), head, rtol=1e-14)
    assert_allclose(network.features(other, X), network.features(params, X))
    # Nothing is subtracted any more, whatever the network began with.
    assert_allclose(network(other, X), head @ np.asarray(network.features(params, X)), rtol=1e-12)
    assert jax.tree.structure(other) == jax.tree.structure(params)
    again = network.with_head(other, network.head(params))
    assert_allclose(again.head, params.head, rtol=1e-14)


def test_activations():
    z = np.linspace(-2, 2, 9)
    assert_allclose(fl.networks.identity(z), z)
    assert_allclose(fl.networks.shifted(jnp.tanh, 0.3)(z), np.tanh(z) + 0.3, rtol=1e-12)
    assert_allclose(fl.networks.hermite_series((1, 2, 0, 4))(z), 1 + 2 * z + 4 * (z**3 - 3 * z), rtol=1e-12)
    assert_allclose(fl.networks.hermite_series((1.5,))(z), np.full(9, 1.5))
    assert_allclose(jax.vmap(jax.grad(fl.networks.erf))(z), 2 / np.sqrt(np.pi) * np.exp(-(z**2)), rtol=1e-12)
    centred = fl.networks.centred(fl.networks.relu)
    assert_allclose(centred(z), np.maximum(z, 0) - 1 / np.sqrt(2 * np.pi), rtol=1e-10)
    assert_allclose(np.mean(centred(np.random.default_rng(0).normal(size=10**6))), 0, atol=5e-3)


@pytest.mark.parametrize(
    "make, reason",
    [
        (lambda: TwoLayer(width=0), "TwoLayer.width must be a whole number"),
        (lambda: TwoLayer(width=3, activation=2.0), "activation must be an activation"),
        (lambda: RandomFeatures(width=3, power=1.0), "no field 'power'"),
        (lambda: TwoLayer(width=3, init_scale=-1.0), "init_scale must be"),
    ],
)
def test_bad_networks_are_refused(make, reason):
    with pytest.raises(fl.InputError, match=reason):
        make()
