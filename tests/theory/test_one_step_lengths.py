"""What spikes are worth where rows and inputs differ in length: the formula beside finite matrices.

The learnt direction has exactly its limiting cosine with the teacher's, and what chance does to the labels'
products with it is regressed out (control variates whose means are known): a percent or two of scatter is left.
"""

from math import sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl
from featlab.theory import one_step
from featlab.theory.one_step import Step, Teacher
from featlab.theory.random_features import Activation

COEFFICIENTS, NOISE = (1.0, 0.5, 0.2), 0.1
TEACHER = Teacher((*COEFFICIENTS, 0.0, 0.0, 0.0), 1.0 + 2 * 0.5**2 + 6 * 0.2**2, NOISE**2)
STUDENT = fl.networks.centred(fl.networks.relu)
ACTIVATION = Activation.of(STUDENT)
SETTINGS = [(0.25, 0.1, 0.01), (0.25, 0.2, 0.01), (0.5, 0.5, 0.02), (0.5, 1.0, 0.02), (0.5, 2.0, 0.05)]
INFINITE = 300.0

pytestmark = pytest.mark.slow


def labels(rng, along):
    c1, c2, c3 = COEFFICIENTS
    return c1 * along + c2 * (along**2 - 1) + c3 * (along**3 - 3 * along) + NOISE * rng.normal(size=len(along))


def one(seed, n, phi, psi, penalty, unit_rows, step, orders):
    """The drops of training and test error with spikes up to each order, and the control variates."""
    rng = np.random.default_rng(seed)
    d, width = round(phi * n), round(phi * n / psi)
    rows, head = rng.normal(size=(width, d)) / sqrt(d), rng.normal(size=width) / sqrt(width)
    if unit_rows:
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cosine = float(one_step.alignment(phi, TEACHER))
    x, tested = rng.normal(size=(n, d)), rng.normal(size=(4 * n, d))
    y, expected = labels(rng, x[:, 0]), labels(rng, tested[:, 0])
    other = rng.normal(size=d - 1)
    learnt = np.concatenate([[cosine], sqrt(1 - cosine**2) * other / np.linalg.norm(other)])
    length = float(np.sqrt(one_step.squared_length(phi, TEACHER)))
    seen = x @ learnt, tested @ learnt
    features, at_test = (np.maximum(inputs @ rows.T, 0) - 1 / sqrt(2 * np.pi) for inputs in (x, tested))
    kernel, across = features @ features.T, at_test @ features.T

    def errors(order):
        k = np.arange(1, order + 1)
        if step is None:
            factors = INFINITE / np.sqrt(np.sum(head[:, None] ** (2 * k), axis=0))
        else:
            c = np.array(step.coefficients)
            factors = c[1] ** k * c[k] * (step.eta * length) ** k
        right = head[:, None] ** k * factors
        left, tests = (s[:, None] ** k for s in seen)
        both, gram = left @ (features @ right).T, right.T @ right
        whole = kernel + both + both.T + left @ gram @ left.T
        beside = across + tests @ (features @ right).T + (at_test @ right) @ left.T + tests @ gram @ left.T
        weights = np.linalg.solve(whole + penalty * n * np.eye(n), y)
        return penalty * y @ weights, np.mean((expected - beside @ weights) ** 2)

    s, c = seen[0], COEFFICIENTS
    moments = [s @ y, (s**2 - 1) @ y, (s**3 - 3 * s) @ y, y.sum(), y @ y]
    means = [c[0] * cosine, 2 * c[1] * cosine**2, 6 * c[2] * cosine**3, 0.0, TEACHER.power + TEACHER.noise]
    return np.subtract(errors(0), [errors(order) for order in orders]).ravel(), np.array(moments) / n - means


def measured(seeds, *setting):
    drops, chance = map(np.array, zip(*[one(seed, *setting) for seed in range(seeds)]))
    known = np.column_stack([np.ones(seeds), chance])
    return np.linalg.lstsq(known, drops, rcond=None)[0][0].reshape(-1, 2)


@pytest.mark.parametrize("unit_rows", [False, True], ids=["Gaussian rows", "rows of length one"])
@pytest.mark.parametrize("phi, psi, penalty", SETTINGS)
def test_two_and_three_spikes_gain_what_the_formula_says(phi, psi, penalty, unit_rows):
    found = measured(24, 2000, phi, psi, penalty, unit_rows, None, (2, 3))
    said = [one_step.gains(phi, psi, penalty, ACTIVATION, TEACHER, k, unit_rows=unit_rows) for k in (2, 3)]
    assert_allclose(found, said, rtol=0.05)
    if psi < 0.3 and not unit_rows:  # the formula without lengths is far off
        printed = [one_step.gains(phi, psi, penalty, ACTIVATION, TEACHER, k, unit_rows=True) for k in (2, 3)]
        assert np.all(found / np.array(printed) > 1.1)


def test_a_second_spike_of_finite_strength_is_partly_hidden_by_the_lengths_of_inputs():
    n, phi, psi, penalty = 1500, 0.25, 0.2, 0.01
    step = Step.of(STUDENT, n**0.3, round(phi * n / psi))
    found = measured(40, n, phi, psi, penalty, True, step, (2,))
    said = one_step.gains(phi, psi, penalty, ACTIVATION, TEACHER, 2, step, unit_rows=True)
    without = one_step.gains(phi, psi, penalty, ACTIVATION._replace(second=0.0), TEACHER, 2, step, unit_rows=True)
    assert_allclose(found[0], said, rtol=0.05)
    assert np.all(found[0] < 0.95 * np.array(without))
