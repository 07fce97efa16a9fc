"""What spikes are worth where rows and inputs differ in length: the formula beside finite matrices.

The learnt direction is fixed, and many teachers are drawn around it, each with its limiting cosine: the features
need one factorisation for all. Along that direction inputs are the quantiles of a Gaussian, in random order.
What is left of chance is a percent or so.
"""

from math import sqrt
from statistics import NormalDist

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
INFINITE, COUNT = 300.0, 60  # the length of a strong spike; teachers

pytestmark = pytest.mark.slow


def labels(rng, inputs, teachers):
    """Of every input, for every teacher."""
    (c1, c2, c3), z = COEFFICIENTS, inputs @ teachers.T
    return c1 * z + c2 * (z**2 - 1) + c3 * (z**3 - 3 * z) + NOISE * rng.normal(size=z.shape)


def drawn(rng, n, d):
    """Inputs whose products with the learnt direction, the first, are quantiles in random order."""
    x = rng.normal(size=(n, d))
    x[:, 0] = rng.permutation([NormalDist().inv_cdf((i + 0.5) / n) for i in range(n)])
    return x


def one(seed, n, phi, psi, penalty, unit_rows, step, orders):
    """The drops of training and test error with spikes up to each order, on average over teachers."""
    rng = np.random.default_rng(seed)
    d, width = round(phi * n), round(phi * n / psi)
    rows, head = rng.normal(size=(width, d)) / sqrt(d), rng.normal(size=width) / sqrt(width)
    if unit_rows:
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cosine, other = float(one_step.alignment(phi, TEACHER)), rng.normal(size=(COUNT, d - 1))
    others = sqrt(1 - cosine**2) * other / np.linalg.norm(other, axis=1, keepdims=True)
    teachers = np.column_stack([np.full(COUNT, cosine), others])
    x, tested = drawn(rng, n, d), drawn(rng, 2 * n, d)
    y, expected = (labels(rng, inputs, teachers) for inputs in (x, tested))
    length = float(np.sqrt(one_step.squared_length(phi, TEACHER)))
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
        left, tests = (inputs[:, :1] ** k for inputs in (x, tested))
        both, gram = left @ (features @ right).T, right.T @ right
        whole = kernel + both + both.T + left @ gram @ left.T
        beside = across + tests @ (features @ right).T + (at_test @ right) @ left.T + tests @ gram @ left.T
        weights = np.linalg.solve(whole + penalty * n * np.eye(n), y)
        return penalty * np.sum(y * weights) / COUNT, np.mean((expected - beside @ weights) ** 2)

    return np.subtract(errors(0), [errors(order) for order in orders])


def measured(seeds, *setting):
    return np.mean([one(seed, *setting) for seed in range(seeds)], axis=0)


@pytest.mark.parametrize("unit_rows", [False, True], ids=["Gaussian rows", "rows of length one"])
@pytest.mark.parametrize("phi, psi, penalty", SETTINGS)
def test_two_and_three_spikes_gain_what_the_formula_says(phi, psi, penalty, unit_rows):
    found = measured(12, 1600, phi, psi, penalty, unit_rows, None, (2, 3))
    said = [one_step.gains(phi, psi, penalty, ACTIVATION, TEACHER, k, unit_rows=unit_rows) for k in (2, 3)]
    assert_allclose(found, said, rtol=0.05)
    if psi < 0.3 and not unit_rows:  # the formula without lengths is far off
        printed = [one_step.gains(phi, psi, penalty, ACTIVATION, TEACHER, k, unit_rows=True) for k in (2, 3)]
        assert np.all(found / np.array(printed) > 1.1)


def test_a_second_spike_of_finite_strength_is_partly_hidden_by_the_lengths_of_inputs():
    n, phi, psi, penalty = 1600, 0.25, 0.2, 0.01
    step = Step.of(STUDENT, n**0.3, round(phi * n / psi))
    found = measured(12, n, phi, psi, penalty, True, step, (2,))
    said = one_step.gains(phi, psi, penalty, ACTIVATION, TEACHER, 2, step, unit_rows=True)
    without = one_step.gains(phi, psi, penalty, ACTIVATION._replace(second=0.0), TEACHER, 2, step, unit_rows=True)
    assert_allclose(found[0], said, rtol=0.05)
    assert np.all(found[0] < 0.95 * np.array(without))
