"""Hidden progress: readings by hand, the closed form of the Fourier gap, and the times of a run."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl
from featlab.core.space import Ambient
from featlab.objectives import as_objective
from featlab.probes import View, fourier_gap, held_out_error, hidden_progress
from featlab.probes.progress import ProgressTimes, _sets
from featlab.problem import PlainProblem, draw_run
from featlab.theory import parities

D, K, WIDTH = 13, 2, 6
NETWORK = fl.networks.MLP(width=WIDTH, bias_scale=0.1)


def view_of(d=D, k=K, network=NETWORK, data=None, step=0):
    data = data or fl.data.Stream(data=fl.data.SparseParity(n=50, d=d, k=k), size=4)
    draw = eqx.filter_jit(draw_run)(data, network, Ambient(float(d)), 50, 0, jax.random.key(3))
    task = PlainProblem(data, network, as_objective(fl.objectives.hinge, network), draw)
    return View(draw.start, jnp.array(step), task, fl.algorithms.GradientDescent(0.1))


def read(probe, view):
    return eqx.filter_jit(probe)(view)


def with_first(view, first):
    return eqx.tree_at(lambda v: v.params.first, view, jnp.asarray(first, view.params.first.dtype))


def test_sets_have_as_many_coordinates_and_none_that_is_relevant():
    sets = _sets(D, 3, 200)
    assert sets.shape == (201, D) and np.all(sets.sum(axis=1) == 3)
    assert np.all(sets[0, :3] == 1) and np.all(sets[1:, :3] == 0)
    # Each of the others is as likely as any: 200 * 3 / 10 times, give or take five deviations.
    assert np.abs(sets[1:, 3:].sum(axis=0) - 60).max() < 5 * (200 * 0.3 * 0.7) ** 0.5


def test_progress_by_hand():
    view = view_of()
    assert read(hidden_progress, view)["progress"] == 0  # nothing has moved
    moved = np.random.default_rng(0).normal(size=(WIDTH, D))
    moved[:, :K] *= 3
    after = with_first(view, view.params.first + moved)
    sizes = [np.sort(np.sqrt((moved**2 * row).sum(axis=1)))[-2:].mean() for row in _sets(D, K, 40)]
    expected = (sizes[0] - np.mean(sizes[1:])) / np.std(sizes[1:])
    found = read(hidden_progress(best=2, subsets=40), after)
    assert expected > 3
    assert_allclose(found["progress"], expected, rtol=1e-4)
    weights = np.asarray(after.params.first)
    ratio = np.mean(weights[:, :K] ** 2) ** 0.5 / np.mean(weights[:, K:] ** 2) ** 0.5
    assert_allclose(found["relevance"], ratio, rtol=1e-5)


def test_the_fourier_gap_of_a_start_of_ones_is_the_closed_form():
    """All weights 1, no bias, k even: the gradient of the majority's gate."""
    d, k, count = 9, 2, 40_000
    network = fl.networks.MLP(width=2)
    view = with_first(view_of(d, k, network), np.ones((2, d)))
    found = read(fourier_gap(count=count), view)
    relevant, _ = parities.population_gradient(d, k)
    noise = 0.5 * count**-0.5
    assert_allclose(found["relevant_gradient"], abs(relevant), atol=4 * noise)
    # The largest of d - k coordinates is above its mean by two deviations or so.
    assert abs(found["fourier_gap"] - parities.fourier_gap(d, k)) < 6 * noise


@pytest.mark.slow
def test_the_held_out_error_is_looked_at_now_and_then():
    looked, between = view_of(step=20), view_of(step=21)
    assert held_out_error(between)["held_out_error"] == 1
    assert_allclose(held_out_error(looked)["held_out_error"], fl.probes.train_error(looked)["train_error"])


def test_times_of_a_path_that_is_given():
    """Weights move on S by hand: seen, forgotten, seen again, then the accuracy leaves."""
    times = ProgressTimes(interval=1, subsets=50, best=2)
    view = view_of()
    along, across = np.zeros((WIDTH, D)), np.zeros((WIDTH, D))
    along[:, :K], across[:, K:] = 1, np.random.default_rng(1).normal(size=(WIDTH, D - K))

    def at(step, moved, last=None):
        one = with_first(view, view.params.first + moved)
        one = eqx.tree_at(lambda v: v.step, one, jnp.array(step))
        return one if last is None else eqx.tree_at(lambda v: v.params.last, one, last)

    noise = 0.01 * across
    path = [noise, 0.1 * along + noise, noise, noise + 0.1 * along, noise + 0.2 * along]
    memory, update = times.begin(view), eqx.filter_jit(times.update)
    assert max(read(hidden_progress(best=2, subsets=50), at(0, noise))["progress"], 0) < 3
    # No output at all: every input counts as wrong, and the accuracy stays below .55.
    silent = jnp.zeros(WIDTH)
    for step, moved in enumerate(path):
        memory = update(memory, jax.random.key(0), at(step, moved, silent))
    end = eqx.filter_jit(times.read)
    found = end(memory, at(5, noise + 0.3 * along, silent))
    assert [int(found[name]) for name in ("progress_time", "escape_time", "learnt_time")] == [3, -1, -1]
    gain = (
        read(hidden_progress, at(5, noise + 0.3 * along))["relevance"] / read(hidden_progress, view)["relevance"]
    )
    assert_allclose(found["relevance_gain"], gain, rtol=1e-5)

    # x_1 x_2 = |x_1 + x_2| - 1: with biases that is a network of ReLUs, and the parity is learnt at once.
    exact = jnp.zeros((WIDTH, D)).at[0, :2].set(1.0).at[1, :2].set(-1.0)
    solved = eqx.tree_at(
        lambda v: (v.params.first, v.params.biases[0], v.params.last, v.step),
        view,
        (exact, jnp.zeros(WIDTH).at[2].set(1.0), jnp.array([1.0, 1.0, -1.0, 0, 0, 0]), jnp.array(6)),
    )
    found = end(memory, solved)
    assert [int(found[name]) for name in ("escape_time", "learnt_time")] == [6, 6]


@pytest.mark.parametrize(
    "made, sentence",
    [
        (
            lambda: view_of(data=fl.data.SingleIndex(n=50, d=D, link=jnp.tanh)),
            "hidden_progress needs SparseParity data, got SingleIndex",
        ),
        (lambda: view_of(d=5, k=3), "compares 3 relevant coordinates with as many others"),
    ],
)
def test_what_has_no_hidden_progress_is_refused(made, sentence):
    with pytest.raises(fl.InputError, match=sentence):
        hidden_progress(made())


@pytest.mark.slow
def test_progress_leads_the_accuracy_of_a_run():
    stream = fl.data.Stream(data=fl.data.SparseParity(n=1000, d=16, k=3), size=128)
    experiment = fl.Experiment(
        data=stream,
        network=fl.networks.MLP(width=64, bias_scale=0.3),
        objective=fl.objectives.hinge,
        algorithm=fl.algorithms.GradientDescent(0.1),
        probes=[ProgressTimes(), fl.probes.train_error],
        steps=fl.probes.until(held_out_error, 0.05, at_most=5000),
    )
    history = fl.run(experiment, seeds=3, progress=False)
    assert history.trained.all()
    assert np.all(history.progress_time < history.escape_time) and np.all(history.progress_time >= 0)
    assert np.all(history.escape_time < history.learnt_time)
    assert np.all(history.learnt_time == history.steps_taken)
