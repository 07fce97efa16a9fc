"""Two-layer linear networks: outputs, starts, bounds, training both layers, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import featlab as fl
from featlab.core.space import Ambient, Span
from featlab.networks import TwoLayerLinear

D = 5


def begun(network):
    with jax.enable_x64(True):
        return network.init(jax.random.key(0), Ambient(float(D)))[0]


@pytest.mark.parametrize(
    "network, first",
    [
        (TwoLayerLinear(), np.eye(D)),
        (TwoLayerLinear(init_scale=2.0, decay=0.5), 2 * np.diag(np.arange(1, D + 1) ** -0.5)),
        (TwoLayerLinear(diagonal=True, init_scale=3.0, decay=1.0), 3 * np.diag(1 / np.arange(1, D + 1))),
        (TwoLayerLinear(diagonal=True, init_scale=3.0, bound=2.0), 3 * np.eye(D)),
    ],
    ids=["identity", "decay", "diagonal", "bounded"],
)
def test_it_begins_where_it_says(network, first):
    with jax.enable_x64(True):
        assert_allclose(network.layer(begun(network)), first, rtol=1e-12)


def test_rows_of_another_number_are_gaussian():
    assert begun(TwoLayerLinear(width=4)).first.shape == (4, D)
    with jax.enable_x64(True):
        rows = TwoLayerLinear(width=500, init_scale=3.0).init(jax.random.key(0), Ambient(200.0))[0].first
    assert_allclose(np.var(np.asarray(rows)), 9 / 200, rtol=4 * np.sqrt(2 / 1e5))


@pytest.mark.parametrize("network", [TwoLayerLinear(tasks=2), TwoLayerLinear(diagonal=True, decay=1.0, tasks=2)])
def test_the_output_is_a_head_on_the_features(network):
    x = np.random.default_rng(0).normal(size=(2, D))  # two patches
    params = begun(network)
    with jax.enable_x64(True):
        layer = np.asarray(network.layer(params))
        assert_allclose(network.features(params, jnp.asarray(x)), layer @ x.sum(axis=0), rtol=1e-12)
        assert_allclose(network(params, jnp.asarray(x)), params.head.T @ layer @ x.sum(axis=0), rtol=1e-12)
        assert_allclose(network.applied_back(params, jnp.asarray(x)), x @ layer, rtol=1e-12)
        ones = network.with_head(params, jnp.ones((D, 2)))
        assert_allclose(network(ones, jnp.asarray(x)), [np.sum(layer @ x.sum(axis=0))] * 2, rtol=1e-12)


def test_a_bound_is_never_left():
    network = TwoLayerLinear(diagonal=True, bound=2.0)
    params = begun(network)
    with jax.enable_x64(True):
        far = jax.tree.map(lambda leaf: leaf + jnp.linspace(-100, 100, D) if leaf.ndim == 1 else leaf, params)
        assert_allclose(np.log(network.scales(far))[[0, -1]], [-2, 2], rtol=1e-12)


def test_both_layers_train_on_several_tasks():
    experiment = fl.Experiment(
        data=fl.data.LinearRegression(
            n=8, d=6, spectrum=fl.data.power_law(1), target=fl.data.power_law(1), tasks=3, label_noise=0.1
        ),
        network=TwoLayerLinear(tasks=3),
        objective=fl.objectives.squared,
        algorithm=fl.algorithms.GradientDescent(0.1),
        probes=[fl.probes.train_loss, fl.probes.test_loss(count=200)],
        steps=200,
    )
    read = fl.run(experiment, seeds=2, progress=False)
    assert np.all(read.train_loss[:, -1] < 0.1 * read.train_loss[:, 0])
    assert np.all(read.test_loss[:, -1] < read.test_loss[:, 0])


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"width": -1}, "TwoLayerLinear.width must be a whole number of at least 0, got -1"),
        ({"width": 3, "diagonal": True}, "width must be left out where W is diagonal"),
        ({"width": 3, "decay": 1.0}, "decay is that of a d x d start"),
        ({"bound": 1.0}, "bound is that of a diagonal W"),
        ({"bound": 1.0, "diagonal": True, "decay": 1.0}, "may leave the bound"),
        ({"bound": 1.0, "diagonal": True, "init_scale": 3.0}, r"between e\^-b and e\^b, with bound b = 1, got 3"),
    ],
)
def test_what_makes_no_sense_is_refused(fields, message):
    with pytest.raises(fl.InputError, match=message):
        TwoLayerLinear(**fields)


def test_it_needs_whole_vectors():
    with pytest.raises(fl.InputError, match="needs Ambient"):
        TwoLayerLinear().init(jax.random.key(0), Span.create(10.0, 3))
    assert_array_equal(TwoLayerLinear(width=3).vectors(), 3)
