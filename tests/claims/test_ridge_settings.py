"""What the claims on ridge regression and on learning in context measure with, against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from featlab.claims.settings import saturated_features as saturated
from featlab.claims.settings.learnt_decay import over_the_best
from featlab.claims.settings.metric import noise_edge
from featlab.claims.settings.ridge_inputs import COORDINATES, SQUARES, exact_risks, risks
from featlab.objectives.in_context import Moments
from featlab.probes.in_context import saddle_bounds

SEEDS = (3, 4, 5)


def test_the_bounds_of_the_saddle_are_their_formulas():
    r"""Two features, white; one is missed, of the other half the variance: bounds written out."""
    r, v = 0.04, 0.09
    moments = Moments(r * jnp.eye(2), jnp.diag(jnp.array([0.0, np.sqrt(r * v / 2)])), v * jnp.eye(2))
    with jax.enable_x64(True):
        slope, slope_bound, curvature, curvature_bound = saddle_bounds(moments, 0.5, 2.0, largest=3.0)
    loss = (r + r / 2) / 2
    assert_allclose(slope, -(r / 2) * np.sqrt(r / v / 2), rtol=1e-5)
    assert_allclose(slope_bound, -4 * loss * (r / 2 - loss) / (0.5 * 2.0 * 9), rtol=1e-5)
    assert_allclose(curvature_bound, -4 * loss**2 / (2 * 0.25 * 9), rtol=1e-5)
    assert_allclose(curvature, -(r**2 + (r / 2) ** 2) / v, rtol=1e-5)


def test_saturated_features_are_as_near_to_the_bounds_as_their_variances():
    nearly_one = [saturated._variances(np.random.default_rng(s).uniform(*saturated.STEEP, 2)) for s in SEEDS]
    useless = np.array(nearly_one)[:, 1]
    for k in (1, 4):
        ratio = saturated.curvatures(SEEDS, k)["ratio"]
        assert_allclose(ratio, (1 - saturated.LEARNT) ** 2 * useless, rtol=1e-6)
    falls = saturated.falls(SEEDS, 1, 4)["ratio"]
    assert np.all((falls > 0.7) & (falls <= 1))  # 1 less the squared correlation of 32 random second layers
    assert_allclose(saturated.falls(SEEDS, 1, 4, length=2.0)["ratio"], 4 * falls, rtol=1e-9)
    least = saturated.eigenvalues(SEEDS, 16)["ratio"]
    assert np.all((least > 0.75) & (least < (1 - 1 / 16) ** 2))  # the variance of what the student has


@pytest.mark.parametrize("metric", [1.0, np.array([2.0, 1.0, 0.5, 0.1, 0.0])], ids=["none", "diagonal"])
def test_exact_risks_are_those_of_the_estimator_written_out(metric):
    rng = np.random.default_rng(7)
    spectrum, target, noise, penalty = np.arange(1.0, 6) ** -1, np.arange(1.0, 6) ** -0.5, 0.3, 0.05
    x = rng.standard_normal((4, 5)) * np.sqrt(spectrum)
    weights = np.diag(metric * np.ones(5))
    estimator = weights @ x.T @ np.linalg.inv(x @ weights @ x.T + 4 * penalty * np.eye(4))
    left = np.eye(5) - estimator @ x
    bias = np.trace(np.diag(spectrum) @ left @ np.diag(target) @ left.T)
    variance = noise * np.trace(np.diag(spectrum) @ estimator @ estimator.T)
    assert_allclose(exact_risks(x, spectrum, target, metric, [penalty], noise), bias + variance, rtol=1e-10)


@pytest.mark.parametrize("law", COORDINATES)
def test_coordinates_have_variance_one_and_a_shared_factor_keeps_it(law):
    z = COORDINATES[law](np.random.default_rng(1), (200, 500))
    assert_allclose([z.mean(), z.var()], [0, 1], atol=0.01)
    # So strong a penalty predicts 0, and what is missed is the energy.
    for shared in (False, True):
        [risk] = risks(np.random.default_rng(1), law, 10, np.ones(3), np.ones(3), [1e9], 0.1, shared)
        assert_allclose(risk, 3, rtol=1e-6)
    assert np.mean(SQUARES) == 1


def test_the_edge_of_noise_and_a_learnt_decay():
    assert_allclose(noise_edge(0.5, 100, 400), 0.5 * 1.5**2)
    learnt = over_the_best(SEEDS, "harmful", 12, 0.25)["ratio"]
    given = over_the_best(SEEDS, "harmful", 12, 0.25, learnt=False)["ratio"]
    assert np.all(np.array(learnt) >= 1) and np.mean(learnt) < 1.4 and np.min(given) > 4
