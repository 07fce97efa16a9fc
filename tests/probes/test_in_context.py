"""Probes of learning in context, against what they must equal on the same inputs."""

import dataclasses

import equinox as eqx
import jax
import jax.flatten_util
import numpy as np
import pytest

import featlab as fl
from featlab.problem import PlainProblem, draw_run

pytestmark = pytest.mark.xdist_group("in context")  # one training for all
SEED, STEPS = 7, 60


@pytest.fixture(scope="module")
def experiment():
    """A network of few particles, long enough for the loss to fall below half a feature."""
    return fl.Experiment(
        data=fl.data.FeatureTasks(n=300, d=5, features=2, width=4, variance=0.6),
        network=fl.networks.MeanFieldFeatures(width=6, outputs=2, init_scale=2.0),
        objective=fl.objectives.InContextRisk(jitter=1e-9),
        algorithm=fl.algorithms.Adam(0.05, bias_correction=True),
        probes=[
            fl.probes.train_loss,
            fl.probes.in_context_loss(count=None),
            fl.probes.feature_residual(count=None),
            fl.probes.strict_saddle(count=None),
            fl.probes.nonlinear_tasks(count=2000),
            fl.probes.smallest_curvature,
        ],
        steps=STEPS,
        record=fl.probes.every(20),
        precision=64,
    )


@pytest.fixture(scope="module")
def history(experiment):
    return fl.run(experiment, seeds=[SEED], progress=False).isel(seed=0)


def test_the_loss_is_that_of_the_objective_and_half_of_what_is_missed(history):
    np.testing.assert_allclose(history.in_context_loss, history.train_loss, rtol=1e-6)
    np.testing.assert_allclose(history.missed.sum("truth") / 2, history.in_context_loss, rtol=1e-6)
    assert (history.missed.diff("truth") <= 0).all()
    assert (history.attention_loss >= history.in_context_loss).all()  # the identity is not the best attention
    assert float(history.in_context_loss[-1]) < 0.5 * float(history.in_context_loss[0])


@pytest.mark.slow
def test_the_slope_is_below_its_bound_wherever_the_loss_is_below_half_a_feature(history):
    variance = history.missed.sum("truth") / (1 - history.feature_alignment) / 2
    below = history.in_context_loss < variance / 2
    assert below.any() and (history.slope < 0).all()
    assert (history.slope <= history.slope_bound).where(below, True).all()
    assert (history.slope_bound < 0).where(below, True).all()


def test_true_features_are_no_worse_at_other_tasks_than_what_was_learnt_of_them(history):
    assert history.task_error.dims == ("step", "task")
    np.testing.assert_allclose(history.task_error[0], history.untrained_error[0], rtol=1e-6)
    assert ((history.teacher_error > 0) & (history.teacher_error < 1)).all()
    excess = history.task_error - history.teacher_error
    assert (excess[-1] < excess[0]).any()


@pytest.mark.slow
def test_the_curvature_is_that_of_differences_of_the_gradient(experiment, history):
    with jax.enable_x64(True):
        data, network = experiment.data, experiment.network
        draw = eqx.filter_jit(draw_run)(data, network, fl.Ambient(5.0), data.n, 0, jax.random.key(SEED))
        task = PlainProblem(data, network, experiment.bound_objective, draw)
        flat, back = jax.flatten_util.ravel_pytree(network.particles(draw.start))
        slope = jax.jit(
            jax.grad(lambda p: 6 * task.value(network.with_particles(draw.start, back(p)), draw.training))
        )
        rows = [np.asarray(slope(flat + 1e-5 * e) - slope(flat - 1e-5 * e)) / 2e-5 for e in np.eye(flat.size)]
        values = np.linalg.eigvalsh(np.stack(rows))
        heads, weights = (one.reshape(6, -1) for one in back(slope(flat)))
        velocity = np.sqrt(np.max(np.sum(np.asarray(heads) ** 2, 1) + np.sum(np.asarray(weights) ** 2, 1)))
    assert float(history.smallest_curvature[0]) == pytest.approx(values[0], rel=1e-4)
    assert float(history.particle_slope[0]) == pytest.approx(velocity, rel=1e-8)


def test_the_rate_of_an_exponential_is_found_between_the_levels():
    times = np.linspace(0, 10, 101)
    sizes = np.minimum(1e-6 * np.exp(1.7 * times) + 1e-8, 1e-2)
    assert fl.probes.escape_rate(times, sizes, 1e-5, 1e-3) == pytest.approx(1.7, rel=1e-3)
    assert np.isnan(fl.probes.escape_rate(times, sizes, 1e2, 1e3))


def test_wrong_questions_are_answered_with_one_sentence(experiment):
    def asked(**changes):
        return fl.run(dataclasses.replace(experiment, steps=0, **changes), seeds=[SEED], progress=False)

    with pytest.raises(fl.InputError, match="knows max, squared norm, got 'min'"):
        asked(probes=[fl.probes.nonlinear_tasks(task=("min",))])
    wide = fl.networks.MeanFieldFeatures(width=500, outputs=2)
    with pytest.raises(fl.InputError, match="a Hessian of 3500 rows, and takes at most 2000"):
        asked(probes=[fl.probes.smallest_curvature], network=wide)
