r"""The contrastive loss and its gradient against plain NumPy and the gradient derived by hand.

With $p_{ij}$ the softmax of anchor i over its candidates, the positive being $j = +$, and candidates held fixed,

$$\frac{\partial L}{\partial h_r(x_i^{(p)})} = -\frac{1}{n m \tau} \Big[(1 - p_{i+})\, g_r(x_i^{+(p)}) -
  \sum_{j \in N_i} p_{ij}\, g_r(x_j^{-(p)})\Big], \qquad
  \nabla_{w_r} L = \sum_{i,p} \frac{\partial L}{\partial h_r(x_i^{(p)})} 1[\langle w_r, x_i^{(p)} \rangle > 0]\,
  x_i^{(p)}.$$
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import featlab as fl
from featlab.networks.embedding import Encoders
from featlab.objectives import InfoNCE

N, PADDED, D, WIDTH, TAU = 7, 9, 11, 5, 0.4
LABELS = np.array([1, 1, -1, 1, -1, -1, 1, -1, 1.0])  # the last two are padding
PATCHES = 2


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


def setting(shared, seed=0):
    """Inputs, weights and a batch whose last rows are padding full of numbers."""
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((PADDED, 2 * PATCHES, D))
    weights = rng.standard_normal((1 if shared else 2, WIDTH, D))
    mask = np.arange(PADDED) < N
    batch = fl.data.Batch(*map(jnp.asarray, (inputs, LABELS, LABELS, mask)))
    return inputs[:N], weights, batch


def evaluated(weights, batch, **options):
    """The value and its gradient in the weights."""
    shared = len(weights) == 1
    objective = InfoNCE(temperature=TAU, **options).bind(fl.networks.PatchEncoder(width=WIDTH, shared=shared))

    @jax.jit
    def both(filters):
        return jax.value_and_grad(lambda one: objective(Encoders(one), batch, None)[0])(filters)

    value, gradient = both(jnp.asarray(weights))
    return float(value), np.asarray(gradient)


def softmax_of(anchors, positives, negatives, among):
    """One direction: the mean loss, and p for the positive and for each negative."""
    own = np.einsum("ipr,ipr->i", anchors, positives) / (WIDTH * TAU)
    others = np.einsum("ipr,jpr->ij", anchors, negatives) / (WIDTH * TAU)
    weights = np.where(among, np.exp(others), 0)
    total = np.exp(own) + weights.sum(axis=1)
    return np.mean(np.log(total) - own), np.exp(own) / total, weights / total[:, None]


def by_hand(inputs, weights, negatives="opposite"):
    """The loss and the gradient of the formula above, the directions summed."""
    among = LABELS[:N, None] != LABELS[:N] if negatives == "opposite" else ~np.eye(N, dtype=bool)
    views = np.split(inputs, 2, axis=1)
    encoders = [weights[0], weights[-1]]
    products = [np.einsum("ipc,rc->ipr", view, w) for view, w in zip(views, encoders)]
    one, other = (np.maximum(product, 0) for product in products)
    if len(weights) == 1:
        directions = [(0, one, other, one)]
    else:
        directions = [(0, one, other, other), (1, other, one, one)]
    value, gradient = 0.0, np.zeros_like(weights)
    for view, anchors, positives, candidates in directions:
        loss, own, others = softmax_of(anchors, positives, candidates, among)
        pull = (1 - own)[:, None, None] * positives - np.einsum("ij,jpr->ipr", others, candidates)
        slope = -pull / (N * WIDTH * TAU) * (products[view] > 0)
        value, gradient[view] = value + loss, np.einsum("ipr,ipc->rc", slope, views[view])
    return value, gradient


@pytest.mark.parametrize("shared", [False, True], ids=["two modalities", "one modality"])
@pytest.mark.parametrize("negatives", ["opposite", pytest.param("all", marks=pytest.mark.slow)])
def test_value_and_gradient_are_those_derived_by_hand(shared, negatives):
    inputs, weights, batch = setting(shared)
    value, gradient = evaluated(weights, batch, negatives=negatives)
    expected, slope = by_hand(inputs, weights, negatives)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=1e-11, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True], ids=["two modalities", "one modality"])
def test_without_stopping_it_is_the_derivative_of_the_value_and_with_it_is_not(shared):
    inputs, weights, batch = setting(shared, seed=1)
    value, free = evaluated(weights, batch, stop_gradient=False)
    same, stopped = evaluated(weights, batch)
    assert value == same
    turn, step = np.random.default_rng(2).standard_normal(weights.shape), 1e-5
    up, down = (by_hand(inputs, weights + sign * step * turn)[0] for sign in (1, -1))
    slope = (up - down) / (2 * step)
    assert np.sum(free * turn) == pytest.approx(slope, rel=1e-7)
    assert abs(np.sum(stopped * turn) - slope) > 0.1 * abs(slope)


@pytest.mark.slow
@pytest.mark.parametrize("shared, directions", [(True, 1), (False, 2)])
def test_equal_similarities_cost_the_logarithm_of_the_number_of_candidates(shared, directions):
    _, weights, batch = setting(shared)
    objective = InfoNCE(temperature=TAU).bind(fl.networks.PatchEncoder(width=WIDTH, shared=shared))
    value = float(objective(Encoders(jnp.zeros(weights.shape)), batch, None)[0])
    candidates = np.array([np.sum(LABELS[:N] != label) for label in LABELS[:N]])
    assert value == pytest.approx(directions * np.mean(np.log1p(candidates)), rel=1e-12)
    assert float(objective.indifferent(batch)) == pytest.approx(value, rel=1e-12)
    # Without a negative there is nothing to learn.
    alone = fl.data.Batch(batch.inputs, jnp.ones(PADDED), jnp.ones(PADDED), batch.mask)
    value, slope = evaluated(weights, alone)
    assert value == 0 and not np.any(slope)


def test_what_it_cannot_use_is_refused_in_one_sentence():
    with pytest.raises(fl.InputError, match="'opposite' or 'all', got 'some'"):
        InfoNCE(negatives="some")
    _, _, batch = setting(False)
    network = fl.networks.TwoLayerCNN(width=2)
    params = network.init(jax.random.key(0), fl.Ambient(float(D)))[0]
    with pytest.raises(fl.InputError, match="such as PatchEncoder; TwoLayerCNN gives"):
        InfoNCE().bind(network)(params, batch, None)
