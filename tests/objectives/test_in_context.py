r"""The risk of learning in context against closed forms, and the particles it is about."""

import dataclasses

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

import featlab as fl
from featlab.data.prompts import neuron_moments
from featlab.objectives.in_context import (
    best_attention,
    inverse,
    moments_of,
    outputs_of,
    prompt_risk,
    risk,
)
from featlab.probes.in_context import saddle_bounds
from featlab.problem import PlainProblem, draw_run

D, K, WIDTH, N = 6, 3, 12, 400


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def task():
    with jax.enable_x64(True):
        data = fl.data.FeatureTasks(n=N, d=D, features=K, width=8, variance=0.7)
        network = fl.networks.MeanFieldFeatures(width=WIDTH, outputs=K)
        objective = fl.objectives.InContextRisk(jitter=0.0).bind(network)
        draw = eqx.filter_jit(draw_run)(data, network, fl.Ambient(float(D)), N, 0, jax.random.key(3))
        return PlainProblem(data, network, objective, draw)


def features(task):
    batch = task.draw.training
    return batch.labels, outputs_of(task.network, task.start, batch), batch.mask


def best_of(task):
    """The best attention for the network of the start, on the training inputs."""
    return jax.jit(lambda params: task.objective(params, task.draw.training, None)[1])(task.start)


def normals(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape))


def test_the_static_loss_is_the_trace_formula(task):
    true, learnt, mask = features(task)
    outer, cross, inner = true.T @ true / N, true.T @ learnt / N, learnt.T @ learnt / N
    formula = (np.trace(outer) - np.trace(cross @ np.linalg.solve(inner, cross.T))) / 2
    assert float(task.value(task.start, task.draw.training)) == pytest.approx(float(formula), rel=1e-9)


def test_the_loss_of_given_covariances():
    """Uncorrelated features, the j-th of which explains a share of the j-th truth: half of what is left."""
    shares, variance, count = np.array([1.0, 0.6, 0.0]), 0.5, 7
    axes = np.linalg.qr(np.random.default_rng(1).standard_normal((count, 6)))[0].T * np.sqrt(count)
    true = jnp.asarray(np.sqrt(variance) * axes[:3].T)
    mixed = np.sqrt(shares)[:, None] * axes[:3] + np.sqrt(1 - shares)[:, None] * axes[3:]
    learnt = jnp.asarray((normals(3, 3, seed=2) @ mixed).T)
    mask = jnp.ones(count, bool)
    moments = moments_of(true, learnt, mask)
    found = risk(true, learnt, mask, moments.cross @ best_attention(moments, 0.0))
    assert float(found) == pytest.approx(variance / 2 * (1 - shares).sum(), rel=1e-9)


def test_the_best_attention_is_the_inverse_covariance_of_the_features(task):
    """Attention at its own minimum is the static loss, and anything else is above."""
    attention = dataclasses.replace(task.objective, model="attention")
    best = best_of(task)
    _, learnt, _ = features(task)
    np.testing.assert_allclose(best @ (learnt.T @ learnt / N), np.eye(K), atol=1e-8)

    @jax.jit
    def value(gamma):
        params = dataclasses.replace(task.start, attention=gamma)
        return attention(params, task.draw.training, None)[0]

    assert float(value(best)) == pytest.approx(float(task.value(task.start, task.draw.training)), rel=1e-10)
    assert float(jnp.max(jnp.abs(jax.grad(value)(best)))) < 1e-10
    assert all(float(value(best * (1 + 0.1 * normals(K, K, seed=s)))) > float(value(best)) for s in range(5))


@pytest.mark.parametrize("model", ["static", "attention"])
def test_gradients_are_those_of_finite_differences(task, model):
    objective = dataclasses.replace(task.objective, model=model)
    flat, back = jax.flatten_util.ravel_pytree(task.start)
    direction = normals(flat.size, seed=4)

    @jax.jit
    def value(t):
        return objective(back(flat + t * direction), task.draw.training, None)[0]

    difference = (value(1e-5) - value(-1e-5)) / 2e-5
    assert float(jax.jit(jax.grad(value))(0.0)) == pytest.approx(float(difference), rel=1e-6)
    moved = jax.jit(jax.grad(lambda p: objective(p, task.draw.training, None)[0]))(task.start).attention
    assert bool(jnp.any(moved != 0)) == (model == "attention")


def test_a_small_inverse_is_an_inverse():
    matrix = normals(5, 5)
    matrix = matrix @ matrix.T + 1e-6 * jnp.eye(5)
    np.testing.assert_allclose(inverse(matrix) @ matrix, np.eye(5), atol=1e-6)


@pytest.mark.rounding
def test_the_teacher_is_white_over_the_law_of_the_inputs(task):
    """By the quadrature it was whitened with, to rounding; and on fresh inputs, to their scatter."""
    truth, data = task.draw.truth, task.data
    moments = neuron_moments(data.activation, truth.weights) / data.width**2
    np.testing.assert_allclose(truth.heads.T @ moments @ truth.heads, 0.7 * np.eye(K), atol=1e-9)
    labels = data.fresh(jax.random.key(9), truth, task.draw.space, 200_000).labels
    np.testing.assert_allclose(labels.T @ labels / len(labels), 0.7 * np.eye(K), atol=0.02)


def test_the_quadrature_of_neurons_is_that_of_the_arcsine_law():
    """E erf(u) erf(v) = (2/pi) arcsin(2 c / sqrt((1 + 2 a)(1 + 2 b))) for Gaussian u, v."""
    weights = 0.5 * normals(4, D, seed=5)
    gram = np.asarray(weights @ weights.T)
    scale = np.sqrt(1 + 2 * np.diag(gram))
    law = 2 / np.pi * np.arcsin(2 * gram / np.outer(scale, scale))
    np.testing.assert_allclose(neuron_moments(fl.networks.erf, weights), law, atol=1e-6)


def test_one_missing_direction_costs_half_its_variance():
    r"""With j of three features missing, the loss is $j r^\circ/2$, and it is a critical point."""
    count, variance = 50, 0.3
    axes = np.linalg.qr(np.random.default_rng(6).standard_normal((count, 6)))[0] * np.sqrt(variance * count)
    true, mask = jnp.asarray(axes[:, :3]), jnp.ones(count, bool)
    for missing in (0, 1, 2, 3):
        learnt = jnp.asarray(axes[:, missing : missing + 3]) @ normals(3, 3, seed=7)
        moments = moments_of(true, learnt, mask)
        loss = risk(true, learnt, mask, moments.cross @ best_attention(moments, 0.0))
        assert float(loss) == pytest.approx(missing * variance / 2, abs=1e-10)
        slope, *_ = saddle_bounds(moments, 1.0, 1.0)
        assert abs(float(slope)) < 1e-8


# ---- Finite prompts


@pytest.mark.slow
def test_the_risk_of_finite_prompts_tends_to_the_expected_one_as_one_over_the_length(task):
    r"""$\mathbb{E} \hat{\mathcal{L}} - \mathcal{L} = \frac{1}{2n} [\mathbb{E} |f|^2 h^\top M h - \mathrm{tr}\,
    \Sigma M \Sigma^\top]$, with $M = \Gamma \Sigma_{\mu\mu} \Gamma$."""
    draw, gamma = task.draw, best_of(task)

    @jax.jit
    def both(key, length_key):
        batch = task.data.fresh(key, draw.truth, draw.space, 30_000)
        learnt = outputs_of(task.network, task.start, batch)
        moments = moments_of(batch.labels, learnt, batch.mask)
        middle = gamma @ moments.learnt @ gamma
        constant = jnp.mean(jnp.sum(batch.labels**2, 1) * jnp.einsum("ij,jk,ik->i", learnt, middle, learnt))
        constant = (constant - jnp.trace(moments.cross @ middle @ moments.cross.T)) / 2
        expected = risk(batch.labels, learnt, batch.mask, moments.cross @ gamma)
        found = [prompt_risk(batch.labels, learnt, batch.mask, gamma, n, length_key) for n in (2, 8, 32)]
        return expected, constant, jnp.stack(found)

    keys = jax.random.split(jax.random.key(8), 16)
    expected, constant, found = jax.vmap(both)(keys, keys)
    excess = np.asarray(found - expected[:, None]).mean(0)
    error = np.asarray(found - expected[:, None]).std(0) / np.sqrt(len(keys))
    law = float(constant.mean()) / np.array([2, 8, 32])
    assert np.all(np.abs(excess - law) < 4 * error)
    assert np.all(4 * error[:2] < law[:2] / 4)  # the comparison can tell


@pytest.mark.slow
def test_the_risk_scatters_as_one_over_the_root_of_the_tasks(task):
    true, learnt, mask = features(task)
    gamma = best_of(task)

    def spread(tasks):
        keys = jax.random.split(jax.random.key(tasks), 400)
        rows = slice(0, tasks * 5)
        one = jax.jit(jax.vmap(lambda key: prompt_risk(true[rows], learnt[rows], mask[rows], gamma, 4, key)))
        values = one(keys)
        return float(jnp.std(values))

    assert spread(5) / spread(80) == pytest.approx(4, rel=0.45)


@pytest.mark.rounding
def test_prompts_of_the_data_are_tasks_of_the_features(task):
    prompts = eqx.filter_jit(task.data.prompts)
    batch, directions = prompts(jax.random.key(1), task.draw.truth, task.draw.space, 3, 4)
    assert batch.inputs.shape == (15, 1, D) and directions.shape == (3, K)
    values = task.data.activation(batch.inputs[:, 0] @ task.draw.truth.weights.T) @ task.draw.truth.heads / 8
    np.testing.assert_allclose(batch.labels, jnp.sum(values * directions[batch.task], 1), rtol=1e-10)
    more, _ = prompts(jax.random.key(1), task.draw.truth, task.draw.space, 5, 4)
    np.testing.assert_allclose(more.labels[:15], batch.labels, rtol=1e-12)


# ---- The landscape


def test_slope_and_curvature_along_the_mixture_are_those_of_differences():
    r"""At a point that is no saddle the best turn is the polar factor; at a saddle the curvature is as said."""
    count = 60
    axes = np.linalg.qr(np.random.default_rng(11).standard_normal((count, 6)))[0] * np.sqrt(count)
    true, mask = jnp.asarray(axes[:, :3]), jnp.ones(count, bool)

    def loss(learnt):
        moments = moments_of(true, learnt, mask)
        return risk(true, learnt, mask, moments.cross @ best_attention(moments, 0.0))

    learnt = jnp.asarray(axes[:, :3]) @ normals(3, 3, seed=12) + 0.7 * jnp.asarray(axes[:, 3:])
    moments = moments_of(true, learnt, mask)
    readout = moments.cross @ best_attention(moments, 0.0)
    missed = moments.true - readout @ moments.cross.T
    left, _, right = np.linalg.svd(np.asarray(missed @ readout))
    turn = jnp.asarray((left @ right).T)

    def along(s, turn=turn, learnt=learnt):
        return loss((1 - s) * learnt + s * true @ turn.T)

    slope, *_ = saddle_bounds(moments, 1.0, 1.0)
    assert float(slope) == pytest.approx(float((along(1e-5) - along(-1e-5)) / 2e-5), rel=1e-6)
    others = [jnp.asarray(np.linalg.qr(np.random.default_rng(s).standard_normal((3, 3)))[0]) for s in range(20)]
    assert all(float((along(1e-5, t) - along(-1e-5, t)) / 2e-5) >= float(slope) - 1e-9 for t in others)

    mixing = normals(3, 3, seed=13)
    saddle = jnp.asarray(axes[:, 1:4]) @ mixing
    moments = moments_of(true, saddle, mask)
    _, _, curvature, bound = saddle_bounds(moments, 1.0, 1.0)
    free = np.linalg.svd(np.asarray(moments.cross @ best_attention(moments, 0.0)))[2][-1]
    turn = jnp.asarray(np.outer(free, [1, 0, 0]) + np.linalg.svd(free[None])[2][1:].T @ np.eye(3)[1:])
    before, at, after = (along(s, turn, saddle) for s in (-1e-3, 0.0, 1e-3))
    assert float(curvature) == pytest.approx(float((before - 2 * at + after) / 1e-6), rel=1e-3)
    assert float(bound) == pytest.approx(-4 * 0.25 / 3)


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: fl.objectives.InContextRisk(model="statik"), "must be 'attention' or 'static', got 'statik'."),
        (lambda: fl.objectives.InContextRisk(length=0), "length must be a whole number of at least 1"),
        (lambda: fl.data.FeatureTasks(n=5, d=4, features=3, width=2), "width must be at least the number of"),
    ],
)
def test_bad_input_is_answered_with_one_sentence(make, sentence):
    with pytest.raises(fl.InputError, match=sentence):
        make()


def test_a_prompt_longer_than_the_batch_is_refused(task):
    with pytest.raises(fl.InputError, match="a prompt with its query needs 501 inputs; the batch has 400"):
        dataclasses.replace(task.objective, length=500)(task.start, task.draw.training, None)


# ---- Birth and death


@pytest.mark.slow
def test_birth_and_death_keep_the_number_of_particles_and_their_law(task):
    """Nothing else moving, particles are draws of the start's law for ever, a share of them new in each step."""
    still = fl.algorithms.BirthDeath(fl.algorithms.GradientDescent(1e-30), rate=0.25)
    network = fl.networks.MeanFieldFeatures(width=4000, outputs=K)
    start = eqx.filter_jit(network.init)(jax.random.key(1), task.draw.space)[0]
    wide = PlainProblem(task.data, network, dataclasses.replace(task.objective, network=network), task.draw)
    wide = wide.starting_from(start)
    state = still.init(jax.random.key(0), wide)
    step = jax.jit(lambda key, state: still.step(key, state, wide)[0])
    after = step(jax.random.key(2), state)
    kept = np.asarray(jnp.all(after.params.weights == start.weights, axis=1))
    assert kept.mean() == pytest.approx(0.75, abs=0.03)
    assert np.array_equal(kept, np.asarray(jnp.all(after.params.heads == start.heads, axis=1)))
    for i in range(20):
        after = step(jax.random.key(10 + i), after)
    heads, weights = network.particles(after.params)
    assert heads.shape == (4000, K) and weights.shape == (4000, D)
    assert not bool(jnp.any(jnp.all(weights == start.weights, axis=1) & (jnp.arange(4000) < 100)))
    np.testing.assert_allclose(np.cov(np.asarray(heads).T), np.eye(K), atol=0.1)
    np.testing.assert_allclose(np.cov(np.asarray(weights).T), np.eye(D) / D, atol=0.1 / D**0.5)


@pytest.mark.slow
def test_the_random_field_is_the_hessian_of_a_draw(task):
    """Without births, and nothing else moving, particles move by eps N^1/2 (Hessian of the loss) z."""
    pushing = fl.algorithms.BirthDeath(fl.algorithms.GradientDescent(1e-30), rate=0.0, perturbation=1e-3, every=2)
    state = pushing.init(jax.random.key(0), task)
    flat, back = jax.flatten_util.ravel_pytree(task.start)

    @jax.jit
    def moved_by(keys, step):
        at = dataclasses.replace(state, step=step)
        return jax.vmap(
            lambda key: jax.flatten_util.ravel_pytree(pushing.step(key, at, task)[0].params)[0] - flat
        )(keys)

    keys = jax.random.split(jax.random.key(5), 400)
    np.testing.assert_allclose(moved_by(keys, jnp.asarray(0)), 0, atol=1e-20)  # not yet
    moved = np.asarray(moved_by(keys, jnp.asarray(1)))
    slope = jax.jit(jax.vmap(jax.grad(lambda p: task.value(back(p), task.draw.training))))
    hessian = (
        slope(flat[None] + 1e-5 * jnp.eye(flat.size)) - slope(flat[None] - 1e-5 * jnp.eye(flat.size))
    ) / 2e-5
    covariance = 1e-6 * WIDTH * np.asarray(hessian @ hessian)
    assert np.trace(moved.T @ moved / 400) == pytest.approx(np.trace(covariance), rel=0.3)
    top = np.linalg.eigh(covariance)[1][:, -1]
    assert np.var(moved @ top) == pytest.approx(top @ covariance @ top, rel=0.4)


def test_birth_and_death_need_particles(task):
    without = PlainProblem(task.data, fl.networks.TwoLayerCNN(width=2), task.objective, task.draw)
    with pytest.raises(fl.InputError, match="TwoLayerCNN does not say what its particles are"):
        fl.algorithms.BirthDeath(fl.algorithms.Adam(0.1)).init(jax.random.key(0), without)
