"""MLPs: the forward pass by hand, and what makes each of the four scalings what it is."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl
from featlab.core.space import Ambient
from featlab.networks.mlp import SCALINGS

D, N = 6, 8
X = jnp.asarray(np.random.default_rng(0).choice([-1.0, 1.0], (N, 1, D)))
Y = np.where(np.arange(N) % 2, 1.0, -1.0)

EACH = pytest.mark.parametrize(
    "scaling", ["mean_field", *(pytest.param(s, marks=pytest.mark.slow) for s in SCALINGS if s != "mean_field")]
)


def start(network):
    return eqx.filter_jit(network.init)(jax.random.key(0), Ambient(float(D)))[0]


def outputs(network, params):
    return jax.jit(jax.vmap(network, in_axes=(None, 0)))(params, X)


def loss(network, params):
    return jnp.mean(fl.objectives.hinge(outputs(network, params), jnp.asarray(Y)))


def stepped(network, params, rate=1.0):
    """After one step of descent on the hinge loss."""
    slope = jax.jit(jax.grad(lambda p: loss(network, p)))(params)
    return jax.tree.map(lambda leaf, s: leaf - rate * s, params, slope)


@pytest.mark.slow
@EACH
def test_the_forward_pass_by_hand(scaling):
    network = fl.networks.MLP(width=5, depth=3, activation=jnp.tanh, scaling=scaling, bias_scale=0.7)
    params = start(network)
    first, between, last = network.multipliers()
    assert len(params.between) == 2 and len(params.biases) == 3
    h = np.tanh(first * params.first @ X[0, 0] + first * params.biases[0])
    for weights, bias in zip(params.between, params.biases[1:]):
        h = np.tanh(between * weights @ h + first * bias)
    assert_allclose(network(params, X[0]), last * params.last @ h, rtol=1e-4)
    assert_allclose(network.features(params, X[0]), h, rtol=1e-4)
    # Two patches: their first hidden layers are summed.
    one = fl.networks.MLP(width=5, activation=jnp.tanh, scaling=scaling)
    params = start(one)
    both = one(params, jnp.concatenate([X[0], X[1]]))
    assert_allclose(both, one(params, X[0]) + one(params, X[1]), rtol=1e-4)


@pytest.mark.slow
@EACH
def test_the_start_is_that_of_the_table(scaling):
    network = fl.networks.MLP(width=400, depth=2, scaling=scaling, init_scale=2, output_scale=3, bias_scale=0.5)
    params, (first, between, last) = start(network), network.multipliers()
    begun = {"standard": (-0.5, -0.5), "ntk": (-0.5, -0.5), "mean_field": (-1, -1), "maximal_update": (-0.5, -1)}
    in_between, at_last = begun[scaling]
    assert_allclose(np.std(first * params.first), 2 * D**-0.5, rtol=0.06)
    assert_allclose(np.std(between * params.between[0]), 2 * 400**in_between, rtol=0.02)
    assert_allclose(np.std(last * params.last), 3 * 400**at_last, rtol=0.12)
    assert_allclose(np.std(network.biases(params)[1]), 0.5, rtol=0.12)
    assert network.starts() == pytest.approx((2, 2 * 400**in_between, 3 * 400**at_last))


@EACH
def test_the_rates_are_those_of_descent_on_the_weights_themselves(scaling):
    """A step on what is trained is a step on W with the layer's own rate: autodiff in W is the second road."""
    network = fl.networks.MLP(width=7, depth=2, activation=jnp.tanh, scaling=scaling)
    params, plain = start(network), fl.networks.MLP(width=7, depth=2, activation=jnp.tanh)

    def effective(p):
        first, between, last = network.multipliers()
        return type(p)(first * p.first, tuple(between * w for w in p.between), last * p.last, ())

    weights = effective(params)
    assert_allclose(outputs(plain, weights), outputs(network, params), rtol=1e-4, atol=1e-6)
    slope = jax.jit(jax.grad(lambda p: loss(plain, p)))(weights)
    first, between, last = network.rates()
    after = effective(stepped(network, params, 0.1))
    for now, then, s, rate in (
        (after.first, weights.first, slope.first, first),
        (after.between[0], weights.between[0], slope.between[0], between),
        (after.last, weights.last, slope.last, last),
    ):
        assert_allclose(now - then, -0.1 * rate * s, rtol=1e-3, atol=1e-6)


@pytest.mark.slow
def test_with_one_hidden_layer_mean_field_and_maximal_update_are_one():
    runs = []
    for scaling in ("mean_field", "maximal_update"):
        network = fl.networks.MLP(width=20, scaling=scaling)
        params = start(network)
        for _ in range(3):
            params = stepped(network, params, 0.3)
        runs.append(outputs(network, params))
    assert_allclose(*runs, rtol=1e-5)
    # They are not with two.
    both = [fl.networks.MLP(width=20, depth=2, scaling=scaling) for scaling in ("mean_field", "maximal_update")]
    one, other = (outputs(network, start(network)) for network in both)
    assert np.abs(one - other).max() > 0.01


WIDTHS = (32, 256)
# Powers of the width: the output at the start, and in one step the movement of a feature and of the output.
POWERS = {
    ("standard", 1): (0, -0.5, 1),
    ("ntk", 1): (0, -0.5, 0),
    ("mean_field", 1): (-0.5, 0, 0),
    ("maximal_update", 1): (-0.5, 0, 0),
    ("ntk", 2): (0, -0.5, 0),
    ("maximal_update", 2): (-0.5, 0, 0),
}
SOON = {("ntk", 1)}
MARKED = [pytest.param(*case, marks=() if case in SOON else pytest.mark.slow) for case in POWERS]


@pytest.mark.parametrize("scaling, depth", MARKED)
def test_what_a_scaling_keeps_as_the_width_grows(scaling, depth):
    def sizes(width):
        network = fl.networks.MLP(width=width, depth=depth, scaling=scaling, init_scale=2**0.5)

        @jax.vmap
        def one(seed):
            params = network.init(jax.random.key(seed), Ambient(float(D)))[0]
            after = stepped(network, params)
            features = [jax.vmap(network.features, in_axes=(None, 0))(p, X) for p in (params, after)]
            begun, moved = outputs(network, params), outputs(network, after)
            return [jnp.mean(s**2) for s in (begun, features[1] - features[0], moved - begun)]

        return [float(jnp.mean(s)) ** 0.5 for s in jax.jit(one)(jnp.arange(40))]

    found = np.log([sizes(width) for width in WIDTHS])
    slopes = np.polyfit(np.log(WIDTHS), found, 1)[0]
    assert_allclose(slopes, POWERS[scaling, depth], atol=0.15)


def test_a_scaling_goes_by_its_name():
    with pytest.raises(fl.InputError, match="MLP.scaling must be one of standard, ntk, mean_field, max"):
        fl.networks.MLP(width=3, scaling="mup")


def test_many_inputs_with_the_sample_last_are_those_one_by_one():
    network = fl.networks.MLP(width=4, depth=2, scaling="mean_field", bias_scale=0.5)
    params, inputs = start(network), np.random.default_rng(1).normal(size=(4, 1, D)).astype(np.float32)
    products = np.moveaxis(inputs @ np.asarray(network.weights(params)).T, 0, -1)  # patch, neuron, sample
    assert_allclose(network.respond(params, products), [network(params, one) for one in inputs], rtol=1e-4)
