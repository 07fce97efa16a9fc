"""Strategies of training against their updates in plain NumPy, gradients written out by hand, in float64."""

import functools
import itertools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import featlab as fl
from featlab.data import Batch
from featlab.engine.loop import draw_one
from featlab.problem import PlainProblem

pytestmark = [pytest.mark.gpu, pytest.mark.rounding]

A, P = fl.algorithms, fl.probes
STEPS, SEED, WIDTH, BATCH, SWITCH = 50, 3, 3, 3, 20
SIGNAL = fl.data.SignalNoise(
    n=8, d=60, snr=0.6, noise_scale=60**-0.5, label_flip=0.3, orthogonal=False, random_slot=True
)
SPARSE = fl.data.SparseSignalNoise(n=8, d=60, sparsity=4, noise_scale=0.5, feature_noise=0.3, label_flip=0.3)


def experiment(algorithm, data=SIGNAL, **changes):
    base: dict[str, Any] = dict(
        data=data,
        network=fl.networks.TwoLayerCNN(width=WIDTH, init_scale=0.1),
        algorithm=algorithm,
        probes=[P.products, P.train_loss],
        steps=STEPS,
        record=P.every(1),
        precision=64,
    )
    return fl.Experiment(**{**base, **changes})


class Problem(NamedTuple):
    """One run's own draw, as NumPy arrays; the keys are JAX's."""

    inputs: np.ndarray  # sample, patch, coordinate
    labels: np.ndarray
    mu: np.ndarray
    noise: np.ndarray
    start: np.ndarray  # class, filter, coordinate
    batch_key: Any
    step_keys: list[Any]

    def gradient(self, w, chosen=None, labels=None):
        chosen = np.arange(len(self.labels)) if chosen is None else chosen
        labels = self.labels if labels is None else labels
        return gradient(w, self.inputs[chosen], labels[chosen])


@functools.cache  # a draw does not depend on the algorithm
def draw_of(data, space):
    made = experiment(A.GradientDescent(1.0), data, space=space)
    with jax.enable_x64(True):
        return eqx.filter_jit(draw_one)(made, made.empty_space(), jnp.uint32(SEED), data.n)[0]


def drawn(made) -> Problem:
    draw = draw_of(made.data, made.space)
    with jax.enable_x64(True):
        batch, truth = draw.training, draw.truth
        arrays = batch.inputs, batch.labels, truth.norms[0] * truth.directions[0], batch.noise[:, 0]
        keys = [jax.random.fold_in(draw.algorithm_key, t) for t in range(STEPS)]
        return Problem(*map(np.asarray, arrays), np.asarray(draw.start.filters), draw.batch_key, keys)


def task_of(made) -> PlainProblem:
    return PlainProblem(made.data, made.network, made.bound_objective, draw_of(made.data, made.space))


def outputs(w, x):
    f = np.zeros(len(x))
    for i, patches in enumerate(x):
        for j, sign in enumerate((1, -1)):
            for filter_ in w[j]:
                f[i] += sign / len(w[j]) * sum(max(filter_ @ patch, 0.0) for patch in patches)
    return f


def gradient(w, x, y):
    """Of the mean logistic loss of the network with ReLUs."""
    total, f = np.zeros_like(w), outputs(w, x)
    for i, patches in enumerate(x):
        dloss = -y[i] / (1 + np.exp(y[i] * f[i]))
        for j, sign in enumerate((1, -1)):
            for r, filter_ in enumerate(w[j]):
                for patch in patches:
                    total[j, r] += dloss * sign / len(w[j]) * (filter_ @ patch > 0) * patch / len(x)
    return total


def descent(problem, rate, momentum=0.0, decay=0.0):
    velocity = 0.0

    def update(t, w):
        nonlocal velocity
        velocity = momentum * velocity + problem.gradient(w) + decay * w
        return w - rate * velocity

    return update


def sign_descent(problem, rate, decay=0.0):
    def update(t, w):
        slope = problem.gradient(w) + decay * w
        # A sign is only comparable where the number is no rounding error: 0 is exact here (a coordinate that no
        # input has), and everything else is far from it.
        assert abs(slope[slope != 0]).min() > 1e-10 * abs(slope).max()
        return w - rate * np.sign(slope)

    return update


def adam(problem, rate, beta1, beta2, epsilon, corrected=False, decay=0.0):
    m = v = 0.0

    def update(t, w):
        nonlocal m, v
        slope = problem.gradient(w) + decay * w
        m, v = beta1 * m + (1 - beta1) * slope, beta2 * v + (1 - beta2) * slope**2
        left = (1 - beta1 ** (t + 1), 1 - beta2 ** (t + 1)) if corrected else (1, 1)
        return w - rate * (m / left[0]) / (np.sqrt(v / left[1]) + epsilon)

    return update


def epochs(key, n):
    """Every batch of every epoch, in the order the key gives."""
    for epoch in itertools.count():
        lottery = jax.random.uniform(jax.random.fold_in(key, epoch), (n,), np.float32)
        order = np.argsort(np.asarray(lottery))
        yield from (order[place : place + BATCH] for place in range(0, n, BATCH))


def sam(problem, rate, radius, batches=None):
    def update(t, w):
        chosen = None if batches is None else next(batches)
        uphill = problem.gradient(w, chosen)
        return w - rate * problem.gradient(w + radius * uphill / np.sqrt(np.sum(uphill**2)), chosen)

    return update


def in_turn(first, second):
    return lambda t, w: first(t, w) if t < SWITCH else second(t - SWITCH, w)


def label_noise(problem, rate, flip):
    def update(t, w):
        coins = jax.random.uniform(jax.random.fold_in(batch_key(problem, t), 1), problem.labels.shape, np.float32)
        labels = problem.labels * np.where(np.asarray(coins) < flip, -1, 1)
        return w - rate * problem.gradient(w, labels=labels)

    return update


def batch_key(problem, t):
    return jax.random.split(problem.step_keys[t])[0]


def mixup(problem, rate, concentration):
    def update(t, w):
        order_key, share_key, _ = jax.random.split(jax.random.split(problem.step_keys[t])[1], 3)
        partner = np.argsort(np.asarray(jax.random.uniform(order_key, problem.labels.shape, np.float32)))
        drawn_in_single = jax.random.loggamma(share_key, np.float32(concentration), (2,), np.float32)
        gammas = np.exp(np.asarray(drawn_in_single, np.float64))
        share = np.round(gammas[0] / gammas.sum() * 2**16) / 2**16
        mixed = share * problem.inputs + (1 - share) * problem.inputs[partner]
        here, there = (gradient(w, mixed, y) for y in (problem.labels, problem.labels[partner]))
        return w - rate * (share * here + (1 - share) * there)

    return update


def newton_schulz(matrix):
    x = matrix / (np.linalg.norm(matrix) + 1e-8)
    for a, b, c in [(3.4445, -4.775, 2.0315)] * 5 + [(1.875, -1.25, 0.375)] * 3:
        x = a * x + b * (x @ x.T) @ x + c * (x @ x.T) @ (x @ x.T) @ x
    return x


def matrix_normalised(problem, rate, momentum=0.0):
    mean = 0.0

    def update(t, w):
        nonlocal mean
        mean = momentum * mean + (1 - momentum) * problem.gradient(w)
        # The scale of the mean matters through the 1e-8 of the iteration alone.
        scaled = mean.reshape(2 * WIDTH, -1) / (1 - momentum ** (t + 1))
        return w - rate * newton_schulz(scaled).reshape(w.shape)

    return update


BATCHED = fl.data.Minibatches(SIGNAL, BATCH)
# An algorithm, its data, and the update it must make.
UPDATES = {
    "SAM": (A.SAM(0.5, 0.3), SIGNAL, lambda p: sam(p, 0.5, 0.3)),
    "SAM, then descent": (
        A.Then(A.SAM(0.5, 0.3), SWITCH, A.GradientDescent(0.4, 0.5)),
        SIGNAL,
        lambda p: in_turn(sam(p, 0.5, 0.3), descent(p, 0.4, 0.5)),
    ),
    "SAM on mini-batches, then in another order": (
        A.Then(A.SAM(0.5, 0.3), SWITCH, A.SAM(0.2, 0.1)),
        BATCHED,
        lambda p: in_turn(
            sam(p, 0.5, 0.3, epochs(p.batch_key, len(p.labels))),
            sam(p, 0.2, 0.1, epochs(jax.random.fold_in(p.batch_key, 1), len(p.labels))),
        ),
    ),
    "label noise": (A.LabelNoiseDescent(0.7, 0.3), SIGNAL, lambda p: label_noise(p, 0.7, 0.3)),
    "mixup": (A.Mixup(0.7, 0.4), SIGNAL, lambda p: mixup(p, 0.7, 0.4)),
    "matrix-normalised": (
        A.MatrixNormalisedDescent(0.02, 0.8),
        SIGNAL,
        lambda p: matrix_normalised(p, 0.02, 0.8),
    ),
    "sign descent": (A.SignDescent(0.01), SIGNAL, lambda p: sign_descent(p, 0.01)),
    "sign descent, decaying, sparse": (
        A.SignDescent(0.01, weight_decay=0.1),
        SPARSE,
        lambda p: sign_descent(p, 0.01, 0.1),
    ),
    "Adam": (
        A.Adam(0.01, 0.8, 0.95, 1e-4, weight_decay=0.2),
        SIGNAL,
        lambda p: adam(p, 0.01, 0.8, 0.95, 1e-4, decay=0.2),
    ),
    "Adam, corrected": (
        A.Adam(0.01, 0.9, 0.99, 1e-8, bias_correction=True, weight_decay=0.2),
        SPARSE,
        lambda p: adam(p, 0.01, 0.9, 0.99, 1e-8, True, 0.2),
    ),
}
AMBIENT = ["SAM", "SAM, then descent", "label noise", *list(UPDATES)[-4:]]
SPAN = ["SAM on mini-batches, then in another order", "mixup", "matrix-normalised"]
PRODUCTS = ["SAM, then descent", "label noise"]


SOON = ("SAM", "label noise", "Adam")


@pytest.mark.parametrize("case", [pytest.param(c, marks=[] if c in SOON else pytest.mark.slow) for c in AMBIENT])
def test_a_strategy_equals_its_update_in_plain_numpy(case):
    agrees_with_numpy(case, fl.Ambient)


@pytest.mark.parametrize("case", [SPAN[0], *(pytest.param(one, marks=pytest.mark.slow) for one in SPAN[1:])])
def test_a_strategy_equals_its_update_in_a_span_on_padded_rows(case):
    agrees_with_numpy(case, fl.Span, rows=11)


@pytest.mark.parametrize(
    "case", [PRODUCTS[0], *(pytest.param(one, marks=pytest.mark.slow) for one in PRODUCTS[1:])]
)
def test_a_strategy_equals_its_update_in_products_on_padded_rows(case):
    agrees_with_numpy(case, fl.Span, rows=11, products=True)


def agrees_with_numpy(case, space, **how):
    """NumPy has whole vectors of the run's own draw, and no padding."""
    algorithm, data, reference = UPDATES[case]
    made = experiment(algorithm, data, space=space)
    history, problem = fl.run(made, [SEED], **how), drawn(made)
    update, w, seen = reference(problem), problem.start, []
    for t in range(STEPS + 1):
        losses = np.log1p(np.exp(-problem.labels * outputs(w, problem.inputs)))
        seen.append((w @ problem.mu, w @ problem.noise.T, losses.mean()))
        w = update(t, w) if t < STEPS else w
    for name, values in zip(("signal_product", "noise_product", "train_loss"), zip(*seen)):
        np.testing.assert_allclose(history[name][0], np.stack(values), rtol=0, atol=1e-10, err_msg=name)
    assert np.ptp([loss for *_, loss in seen]) > 0.02  # something happened


def test_label_noise_flips_as_often_as_asked_and_anew_every_step():
    made = experiment(A.LabelNoiseDescent(0.7, 0.3))
    task = task_of(made)
    draw = task.draw
    with jax.enable_x64(True):

        @jax.jit
        @jax.vmap
        def labels(t):
            key, _ = jax.random.split(jax.random.fold_in(draw.algorithm_key, t))
            return made.algorithm.batch(key, t, task).labels

        steps = 4000
        flipped = np.asarray(labels(jnp.arange(steps)) != draw.training.labels[None])
    rates = flipped.mean(axis=0)
    assert abs(rates - 0.3).max() < 4 * np.sqrt(0.3 * 0.7 / steps)
    away = (flipped - 0.3) / np.sqrt(0.3 * 0.7)
    among_samples = away.T @ away / steps - np.eye(SIGNAL.n)
    in_time = away[1:].T @ away[:-1] / steps
    assert max(abs(among_samples).max(), abs(in_time).max()) < 4.5 / np.sqrt(steps)


class Spy:
    """A task that tells what it was asked."""

    def __init__(self):
        self.batches = []

    def value(self, params, batch, key):
        self.batches.append(batch)
        return params * jnp.sum(batch.inputs)


def mixtures(n, draws):
    """Shares and partners of mixup, read off inputs that are the identity and labels that are numbers."""

    @jax.jit
    @jax.vmap
    def mixed(i):
        spy = Spy()
        batch = Batch(jnp.eye(n), jnp.arange(n), jnp.arange(n), jnp.ones(n, bool))
        A.Mixup(0.7, 0.4).slope(jax.random.fold_in(jax.random.key(0), i), jnp.ones(()), batch, spy)
        one, other = spy.batches
        return one.inputs, other.labels

    return map(np.asarray, mixed(jnp.arange(draws)))


def test_mixtures_follow_the_beta_law_and_any_partner_is_as_likely():
    n, draws = 5, 3000
    inputs, partners = mixtures(n, draws)
    elsewhere = partners[:, 0] != 0
    shares = inputs[elsewhere, 0, 0]
    assert stats.kstest(shares, stats.beta(0.4, 0.4).cdf).pvalue > 0.01
    assert stats.chisquare(np.bincount(partners[:, 0])).pvalue > 0.01
    assert (np.sort(partners, axis=1) == np.arange(n)).all()  # an order: everyone is a partner once
    rest = inputs[np.arange(draws), 0, partners[:, 0]][elsewhere]
    np.testing.assert_allclose(shares + rest, 1, atol=1e-6)


def test_mixtures_are_the_same_in_every_precision():
    with jax.enable_x64(True):
        double, their_partners = mixtures(5, 20)
    single, partners = mixtures(5, 20)
    np.testing.assert_allclose(single, double, atol=1e-6)
    assert (partners == their_partners).all()


def test_adam_without_memory_is_sign_descent():
    slope = jax.random.normal(jax.random.key(0), (2, 3, 40))
    ways = A.SignDescent(0.01), A.Adam(0.01, 0.0, 0.0, 1e-30)
    one, other = (way.transformation.update(slope, way.transformation.init(slope))[0] for way in ways)
    np.testing.assert_allclose(one, other, rtol=1e-6)
    np.testing.assert_allclose(abs(one), 0.01, rtol=1e-6)


def first_update(made):
    """What the first step adds to the weights, a filter a row."""
    with jax.enable_x64(True):
        task = task_of(made)
        state = made.algorithm.init(jax.random.key(0), task)
        after, _ = eqx.filter_jit(made.algorithm.step)(jax.random.key(1), state, task)
        return np.asarray(after.params.filters - state.params.filters).reshape(2 * WIDTH, -1)


@pytest.mark.parametrize("space", [fl.Span, fl.Ambient])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_matrix_normalised_step_is_the_polar_factor(space, momentum):
    made = experiment(A.MatrixNormalisedDescent(0.02, momentum), space=space)
    update, problem = first_update(made) / 0.02, drawn(made)
    u, s, v = np.linalg.svd(problem.gradient(problem.start).reshape(2 * WIDTH, -1), full_matrices=False)
    # The eight polynomials bring every number from 0.002 to 1 within 5e-10 of 1.
    assert s[-1] > 0.002 * np.linalg.norm(s) and s[0] > 5 * s[-1]
    np.testing.assert_allclose(np.linalg.svd(update, compute_uv=False), 1, atol=1e-9)
    np.testing.assert_allclose(update, -u @ v, atol=1e-9)


def test_directions_that_a_gradient_lacks_stay_absent():
    data = fl.data.SignalNoise(n=1, d=60, snr=0.6, noise_scale=60**-0.5, orthogonal=False)
    made = experiment(A.MatrixNormalisedDescent(0.02), data, space=fl.Span)
    values, problem = np.linalg.svd(first_update(made) / 0.02, compute_uv=False), drawn(made)
    rank = np.linalg.matrix_rank(problem.gradient(problem.start).reshape(2 * WIDTH, -1))
    assert rank == 2  # the signal and the noise of one sample, for six filters
    np.testing.assert_allclose(values[:rank], 1, atol=1e-9)
    assert values[rank:].max() < 1e-10


# Every probe of strategies and of label noise that can be read in products.
READ = [
    P.products,
    P.train_loss,
    P.sample_losses,
    P.sample_selection,
    P.spurious_test_error,
    P.deactivation,
    P.alignments,
    P.growth_rates,
    P.gradient_norm,
]
COMBINING = {
    "SAM, then descent": (60.0, A.Then(A.SAM(0.5, 0.3), 8, A.GradientDescent(0.4, 0.5)), READ),
    "no dimension, SAM": (
        np.inf,
        A.SAM(0.5, 0.3),
        [P.train_loss, P.gradient_norm, P.deactivation],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", COMBINING)
def test_products_give_the_numbers_of_coordinates(case):
    """With a bias and a head too, which a gradient's length includes; and on padded rows."""
    d, algorithm, probes = COMBINING[case]
    scale = {} if np.isinf(d) else {"noise_scale": d**-0.5}
    made = experiment(
        algorithm,
        fl.data.SignalNoise(n=6, d=d, snr=0.6, label_flip=0.3, orthogonal=False, random_slot=True, **scale),
        network=fl.networks.TwoLayerCNN(width=WIDTH, init_scale=0.3, bias=True, train_head=True),
        probes=probes,
        steps=12,
    )
    plain, products = fl.run(made, [0, SEED]), fl.run(made, [0, SEED], products=True, rows=8)
    assert plain.attrs["space"] == "Span" and set(plain.data_vars) == set(products.data_vars)
    for name, values in plain.data_vars.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(products[name], values, rtol=1e-9, atol=1e-9, err_msg=name)
    assert (np.ptp(plain.train_loss.values, axis=1) > 0.02).all()


@pytest.mark.slow
def test_the_recursion_of_the_coefficients_follows_label_noise():
    probes = [P.coefficients, P.coefficients_by_recursion]
    made = experiment(A.LabelNoiseDescent(0.7, 0.3), BATCHED, probes=probes, steps=20)
    history = fl.run(made, 2)
    assert history.residual.max() < 1e-13
    for name in ("gamma", "rho"):
        np.testing.assert_allclose(history[f"{name}_recursion"], history[name], atol=1e-12, err_msg=name)
    assert abs(history.gamma).max() > 0.05 and abs(history.rho).max() > 0.05


def test_a_task_begins_where_it_is_told_and_remembers_where_it_came_from():
    task = task_of(experiment(A.SAM(0.5, 0.3), space=fl.Ambient))
    one, two = (eqx.tree_at(lambda p: p.filters, task.start, jnp.zeros(shape)) for shape in (1, 2))
    moved = task.starting_from(one)
    assert moved.start.filters is one.filters and moved.starting_from(two).start.filters is two.filters
    assert moved.draw.start.filters is task.start.filters
