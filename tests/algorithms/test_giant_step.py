"""Giant steps, and the ridge regression after them, against plain NumPy on the run's own draw."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl
from featlab.algorithms import GiantStep, Ridge, Then
from featlab.engine.loop import draw_one
from featlab.problem import PlainProblem, draw_run

N, WIDTH, ETA, PENALTY = 9, 5, 4.0, 0.03
DATA = fl.data.SingleIndex(n=N, d=20, link=jnp.sin, label_noise=0.3)

pytestmark = pytest.mark.rounding


def weights(view):
    return view.params.weights


def fitted(view):
    return view.problem.network.head(view.params)


def experiment(algorithm, steps=1, data=DATA, space=fl.Ambient):
    return fl.Experiment(
        data=data,
        network=fl.networks.TwoLayer(width=WIDTH, activation=jnp.tanh, centred=True),
        algorithm=algorithm,
        objective=fl.objectives.squared,
        probes=[weights, fitted, fl.probes.train_loss],
        steps=steps,
        record=fl.probes.every(1),
        space=space,
        precision=64,
    )


def drawn(made, seed):
    with jax.enable_x64(True):
        draw, _ = eqx.filter_jit(draw_one)(made, made.empty_space(), jnp.uint32(seed), made.data.n)
        sets = [(np.asarray(b.inputs[:, 0]), np.asarray(b.labels)) for b in (draw.training, *draw.holdouts)]
        return np.asarray(draw.start.weights), np.asarray(draw.start.head) / np.sqrt(WIDTH), sets


def stepped(w, start, a, x, y, eta):
    """One step down the mean of (f - f_0 - y)^2 / 2, a neuron and a sample at a time; a includes N^-1/2."""
    f = [
        sum(a[r] * (np.tanh(w[r] @ x[i]) - np.tanh(start[r] @ x[i])) for r in range(len(w))) for i in range(len(x))
    ]
    after = w.copy()
    for r in range(len(w)):
        for i in range(len(x)):
            after[r] -= eta / len(x) * (f[i] - y[i]) * a[r] * (1 - np.tanh(w[r] @ x[i]) ** 2) * x[i]
    return after


@pytest.mark.slow
def test_two_giant_steps_and_ridge_regression_from_scratch():
    """On one training set, then the head on an independent one, whose samples no step has seen."""
    made = experiment(Then(GiantStep(eta=ETA), 2, Ridge(PENALTY, holdout=1)), steps=3)
    history = fl.run(made, [4]).isel(seed=0)
    w, a, ((x, y), (fresh_x, fresh_y)) = drawn(made, 4)
    one = stepped(w, w, a, x, y, ETA)
    two = stepped(one, w, a, x, y, ETA)
    assert_allclose(history.weights, [w, one, two, two], atol=1e-10)
    assert np.abs(two - one).max() > 0.1 < np.abs(one - w).max()
    features = np.tanh(fresh_x @ two.T)
    expected = np.linalg.solve(features.T @ features + PENALTY * N * np.eye(WIDTH), features.T @ fresh_y)
    assert_allclose(history.fitted, [a, a, a, expected], atol=1e-10)
    # Nothing is left to subtract: the output is that of the new head alone.
    assert_allclose(history.train_loss[-1], np.mean((np.tanh(x @ two.T) @ expected - y) ** 2) / 2, atol=1e-10)


def test_an_exponent_is_a_step_for_so_many_samples():
    """Of samples that count: padding makes no step larger."""
    network = fl.networks.TwoLayer(width=WIDTH, activation=jnp.tanh, centred=True)

    @eqx.filter_jit
    def steps():
        draw = draw_run(DATA, network, fl.Ambient(20.0), N + 4, 0, jax.random.key(1))
        task = PlainProblem(DATA, network, fl.objectives.as_objective(fl.objectives.squared, network), draw)
        algorithms = GiantStep(alpha=0.4, constant=1.5), GiantStep(eta=1.5 * N**0.4)
        both = [one.step(jax.random.key(0), one.init(jax.random.key(0), task), task)[0] for one in algorithms]
        return draw.start.weights, draw.start.head, draw.training, *[state.params.weights for state in both]

    with jax.enable_x64(True):
        w, a, batch, by_exponent, by_size = jax.tree.map(np.asarray, steps())
    expected = stepped(w, w, a / np.sqrt(WIDTH), batch.inputs[:N, 0], batch.labels[:N], 1.5 * N**0.4)
    assert_allclose(by_size, expected, atol=1e-10)
    assert_allclose(by_exponent, expected, atol=1e-10)


def test_the_size_of_a_step():
    assert_allclose(GiantStep(alpha=0.25).size(16.0), 2.0)
    assert_allclose(GiantStep(alpha=0.5, constant=3.0).size(16.0), 12.0)
    assert GiantStep(eta=0.7).size(16.0) == 0.7


def test_steps_on_a_stream_see_fresh_inputs_and_grow_with_their_number():
    data = fl.data.Stream(DATA, 6)
    made = experiment(GiantStep(alpha=0.5), data=data)

    @eqx.filter_jit
    def step(key):
        draw = draw_run(data, made.network, fl.Ambient(20.0), N, 0, jax.random.key(1))
        task = PlainProblem(data, made.network, made.bound_objective, draw)
        state = made.algorithm.init(key, task)
        batch = task.batch(jax.random.split(key)[0], state.step)
        return draw.start, batch, made.algorithm.step(key, state, task)[0].params.weights

    results = []
    for seed in (1, 2):
        with jax.enable_x64(True):
            start, batch, after = jax.tree.map(np.asarray, step(jax.random.key(seed)))
        w, a = start.weights, start.head / np.sqrt(WIDTH)
        assert len(batch.labels) == 6
        assert_allclose(after, stepped(w, w, a, batch.inputs[:, 0], batch.labels, 6**0.5), atol=1e-10)
        results.append(after)
    assert np.abs(results[0] - results[1]).max() > 0.01


@pytest.mark.parametrize("given, said", [({}, "neither"), ({"alpha": 0.3, "eta": 1.0}, "both")])
def test_exactly_one_of_exponent_and_size_is_given(given, said):
    with pytest.raises(fl.InputError, match=f"exactly one of alpha and eta, got {said}"):
        GiantStep(**given)


@pytest.mark.parametrize("given", [{"eta": -1.0}, {"alpha": 0.3, "constant": 0.0}, {"alpha": float("inf")}])
def test_a_step_is_a_finite_positive_number(given):
    with pytest.raises(fl.InputError, match="GiantStep"):
        GiantStep(**given)
