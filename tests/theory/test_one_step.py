"""What spikes are worth: the general formula written a second time, its special cases, and finite matrices."""

from math import factorial, pi, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl
from featlab.core.validation import InputError
from featlab.theory import hermite, one_step, random_features
from featlab.theory.one_step import Step, Teacher
from featlab.theory.random_features import Activation

RELU = Activation(1 / 4, 1 / 4 - 1 / (2 * pi))  # less its mean, as the slides see it
WITH_LENGTHS = RELU._replace(second=1 / sqrt(8 * pi))  # c_2 of ReLU
PHI, PSI, PENALTY = 0.5, 1.25, 0.02
LINEAR = Teacher((1.0, *[0.0] * 5), 1.0, 1.0)  # y = H_1 + noise
QUADRATIC = Teacher((1.0, 1 / sqrt(2), *[0.0] * 4), 2.0, 0.0)  # y = H_1 + H_2 / sqrt 2


def teachers(count):
    rng = np.random.default_rng(3)
    for _ in range(count):
        c = rng.normal(size=6) / [sqrt(factorial(k)) for k in range(1, 7)]
        power = sum(factorial(k) * c[k - 1] ** 2 for k in range(1, 7)) + rng.uniform(0, 1)
        yield (
            rng.uniform(0.2, 2),
            rng.uniform(0.2, 2),
            10 ** rng.uniform(-4, 0),
            Teacher(tuple(c), power, rng.uniform()),
        )


def on_the_slides(phi, psi, penalty, activation, teacher, spikes):
    """Delta_l with Omega, r and xi, as it is printed; the outer sums are over p and q."""
    m1, m2, *_ = random_features.traces(phi, psi, penalty, activation)
    c = [0.0, *teacher.coefficients]
    b = phi * (teacher.power + teacher.noise) + c[1] ** 2
    xi = np.zeros((spikes + 1, spikes + 1))
    for p in range(spikes + 1):  # NumPy's own conversion of x^p
        row = np.polynomial.hermite_e.poly2herme([0] * p + [1])
        xi[p, : len(row)] = row
    inverse, r = np.zeros((spikes, spikes)), np.zeros(spikes + 1)
    for i in range(1, spikes + 1):
        for j in range(1, spikes + 1):
            others = sum(factorial(k) * xi[i, k] * xi[j, k] for k in range(min(i, j) + 1) if k != 1)
            inverse[i - 1, j - 1] = b ** ((i + j) / 2) * psi / phi * (m2 * xi[i, 1] * xi[j, 1] + m1 * others)
    for p in range(1, spikes + 1):
        r[p] = psi * m2 / phi * c[1] / sqrt(b) if p == 1 else factorial(p) * psi * m1 / phi * (c[1] / sqrt(b)) ** p
    omega, total = np.linalg.inv(inverse), 0.0
    for p in range(1, spikes + 1):
        for q in range(1, spikes + 1):
            inner = 0.0
            for i in range(1, spikes + 1):
                for j in range(1, spikes + 1):
                    inner += omega[i - 1, j - 1] * b ** ((i + j) / 2) * xi[i, p] * xi[j, q]
            total += c[p] * c[q] * r[p] * r[q] * inner
    return penalty * total


@pytest.mark.parametrize("spikes", [1, 2, 3, 4, 5])
def test_the_drop_of_the_training_error_is_the_general_formula(spikes):
    for phi, psi, penalty, teacher in teachers(20):
        train, _ = one_step.gains(phi, psi, penalty, RELU, teacher, spikes)
        assert_allclose(train, on_the_slides(phi, psi, penalty, RELU, teacher, spikes), rtol=1e-12)
        assert train > 0


def test_one_and_two_spikes_have_their_special_cases():
    for phi, psi, penalty, teacher in teachers(20):
        m = random_features.traces(phi, psi, penalty, RELU)
        first, second = teacher.coefficients[:2]
        b = one_step.squared_length(phi, teacher)
        assert_allclose(b, first**2 + phi * (teacher.power + teacher.noise), rtol=1e-14)
        fourth, both = first**4 / b, 4 * first**4 * second**2 / (3 * b**2)
        train = [psi * penalty / phi * fourth * m.m2, psi * penalty / phi * both * m.m1]
        test = [phi / (psi * m.m1**2) * fourth * -m.dm2, phi / (psi * m.m1**2) * both * -m.dm1]
        for spikes in (1, 2):
            expected = sum(train[:spikes]), sum(test[:spikes])
            assert_allclose(one_step.gains(phi, psi, penalty, RELU, teacher, spikes), expected, rtol=1e-12)


def test_the_slides_own_formula_of_the_test_error_cannot_be():
    """Formula (3) lacks phi / (psi m1^2): it takes more from the test error than there is."""
    m = random_features.traces(PHI, PSI, PENALTY, RELU)
    printed = -m.dm2 / one_step.squared_length(PHI, LINEAR)
    _, ours = one_step.gains(PHI, PSI, PENALTY, RELU, LINEAR, 1)
    _, whole = one_step.errors_after(PHI, PSI, PENALTY, RELU, LINEAR, 0)
    assert printed > 10 * whole > 10 * ours > 0
    assert_allclose([printed, ours], [162, 0.387], rtol=5e-3)  # both as they were found before


def test_another_spike_never_does_harm_to_the_training_error():
    for phi, psi, penalty, teacher in teachers(20):
        drops = [one_step.gains(phi, psi, penalty, RELU, teacher, spikes)[0] for spikes in range(7)]
        assert drops[0] == 0 and np.all(np.diff(drops) > -1e-14)
        whole = one_step.errors_after(phi, psi, penalty, RELU, teacher, 0)[0]
        assert drops[-1] < whole


def test_a_linear_teacher_gains_nothing_from_further_spikes():
    one = one_step.gains(PHI, PSI, PENALTY, RELU, LINEAR, 1)
    for spikes in (2, 3, 4):
        assert_allclose(one_step.gains(PHI, PSI, PENALTY, RELU, LINEAR, spikes), one, rtol=1e-11)
    quadratic = one_step.gains(PHI, PSI, PENALTY, RELU, QUADRATIC, 2)
    assert quadratic[0] > 1.2 * one[0]


def test_no_spikes_are_random_features():
    teacher = Teacher.of(fl.networks.hermite_series((0, 0.8, 0.3, 0.1)), 0.4)
    other = 2 * 0.3**2 + 6 * 0.1**2 + 0.4**2
    expected = random_features.errors(PHI, PSI, PENALTY, RELU, 0.8**2, other)
    assert_allclose(one_step.errors_after(PHI, PSI, PENALTY, RELU, teacher, 0), expected, rtol=1e-12)


@pytest.mark.parametrize("activation", [RELU, WITH_LENGTHS], ids=["as printed", "with lengths"])
@pytest.mark.parametrize("step", [None, Step(3.0, 400, (0.0, 0.5, 0.2, 0.1, 0.05))], ids=["infinite", "finite"])
def test_the_drop_of_the_test_error_is_a_derivative(step, activation):
    """L_te = -dQ/dlambda (tr R)^-2, so that its drop is that of the training error over lambda, differentiated."""
    for phi, psi, penalty, teacher in teachers(5):
        h = 1e-5 * penalty
        for spikes in (1, 3):
            explained = [
                one_step.gains(phi, psi, at, activation, teacher, spikes, step)[0] / at
                for at in (penalty - h, penalty + h)
            ]
            m1 = random_features.traces(phi, psi, penalty, RELU).m1
            expected = -(explained[1] - explained[0]) / (2 * h) * (phi / (psi * m1)) ** 2
            measured = one_step.gains(phi, psi, penalty, activation, teacher, spikes, step)[1]
            assert_allclose(measured, expected, rtol=1e-5)


def test_lengths_matter_from_the_second_spike_on_and_not_to_rows_of_length_one():
    for phi, psi, penalty, teacher in teachers(20):
        one, *more = (one_step.gains(phi, psi, penalty, WITH_LENGTHS, teacher, k) for k in (1, 2, 3))
        printed = [one_step.gains(phi, psi, penalty, RELU, teacher, k) for k in (1, 2, 3)]
        units = [one_step.gains(phi, psi, penalty, WITH_LENGTHS, teacher, k, unit_rows=True) for k in (1, 2, 3)]
        assert_allclose(units, printed, rtol=1e-14)
        assert_allclose(one, printed[0], rtol=1e-14)
        assert np.all(np.array(more)[:, 0] > np.array(printed[1:])[:, 0])


def test_two_spikes_on_gaussian_rows_have_the_formula_of_the_page():
    for phi, psi, penalty, teacher in teachers(20):
        m1, m2, *_ = random_features.traces(phi, psi, penalty, WITH_LENGTHS)
        first, second = teacher.coefficients[:2]
        b = one_step.squared_length(phi, teacher)
        free = 1 - psi / phi * (1 - penalty * psi / phi * m1)
        primed = m1 / (1 + free * 2 * WITH_LENGTHS.second**2 / psi * psi / phi * m1)
        added = 4 * first**4 * second**2 / b**2 * m1**2 / (2 * m1 + primed)
        expected = psi * penalty / phi * (first**4 / b * m2 + added)
        drop, _ = one_step.gains(phi, psi, penalty, WITH_LENGTHS, teacher, 2)
        assert_allclose(drop, expected, rtol=1e-12)


def test_the_lengths_of_inputs_hide_even_spikes():
    """Products of a^k with the constant vector of squared length 2 c_2^2 / psi, along which features feel them."""
    step, length, lengths = Step(2.0, 50, (0.0, 0.6, -0.3, 0.2)), 1.3, 0.16
    a = np.random.default_rng(0).normal(size=(1_000_000, 1)) / sqrt(50)
    theta = [0.6**k * step.coefficients[k] * (2.0 * length) ** k for k in (1, 2, 3)]
    constant = sqrt(lengths / 50)
    measured = [50 * np.mean(theta[k - 1] * a**k * constant) for k in (1, 2, 3)]
    assert_allclose(measured, step.hidden(length, 3, lengths), atol=1e-3)
    assert measured[1] < -0.04


@pytest.mark.parametrize("psi", [0.3, 1.0])
def test_rows_of_differing_length_explain_part_of_a_constant(psi):
    """1'R1 is m_1' psi / phi for Gaussian rows, tr R for rows of length one; R depends on the features alone."""
    n, d, penalty = 900, 300, 0.01
    width, phi = round(d / psi), d / n
    trace = psi / phi * random_features.traces(phi, psi, penalty, RELU).m1
    free = 1 - psi / phi * (1 - penalty * trace)
    limits = trace / (1 + free * 2 * WITH_LENGTHS.second**2 / psi * trace), trace
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        gaussian, x = rng.normal(size=(width, d)) / sqrt(d), rng.normal(size=(n, d))
        for rows in (gaussian, gaussian / np.linalg.norm(gaussian, axis=1, keepdims=True)):
            f = np.maximum(x @ rows.T, 0) - 1 / sqrt(2 * pi)
            found.append(np.ones(n) @ np.linalg.solve(f @ f.T + penalty * n * np.eye(n), np.ones(n)))
    measured = np.mean(np.reshape(found, (-1, 2)), axis=0)
    assert_allclose(measured, limits, rtol=0.06)
    assert limits[0] < 0.85 * limits[1]


def test_a_small_step_does_nothing_and_a_huge_one_has_infinite_spikes():
    teacher = Teacher((0.8, 0.3, 0.2), 1.1, 0.1)
    c = (0.0, 0.5, 0.2, 0.1)
    for spikes in (1, 2, 3):
        limit = one_step.gains(PHI, PSI, PENALTY, RELU, teacher, spikes)
        drops = [
            one_step.gains(PHI, PSI, PENALTY, RELU, teacher, spikes, Step(eta, 400, c))
            for eta in (0.0, 1e-6, 1.0, 10.0, 1e5)
        ]
        assert_allclose(drops[:2], 0, atol=1e-9)
        assert np.all(np.diff([train for train, _ in drops]) > 0)
        assert_allclose(drops[-1], limit, rtol=1e-6)


@pytest.mark.parametrize(
    "n, eta, teacher, spikes, seeds",
    [(600, 2.0, LINEAR, 1, 12), pytest.param(1800, 6.0, QUADRATIC, 2, 8, marks=pytest.mark.slow)],
    ids=["one spike", "two spikes"],
)
@pytest.mark.slow
def test_a_step_of_finite_size_is_worth_what_it_is_to_finite_matrices(n, eta, teacher, spikes, seeds):
    """Explicit spikes beside real features: what they take from train and test error, 5 % scatter in either."""
    d, width, penalty = n // 2, 2 * n // 5, PENALTY
    step = Step.of(fl.networks.centred(fl.networks.relu), eta, width)
    c = step.coefficients

    def errors(rng):
        weights, a = rng.normal(size=(width, d)) / sqrt(d), rng.normal(size=width) / sqrt(width)

        def sample(count):
            x, noise = rng.normal(size=(count, d)), sqrt(teacher.noise) * rng.normal(size=count)
            return x, x[:, 0] + teacher.coefficients[1] * (x[:, 0] ** 2 - 1) + noise

        (x, y), *sets = sample(n), sample(n), sample(2000)
        beta = x.T @ y / n
        plain = [np.maximum(x @ weights.T, 0) - 1 / sqrt(2 * pi) for x, _ in sets]
        added = [
            sum((c[1] * eta) ** k * c[k] * np.outer((x @ beta) ** k, a**k) for k in range(1, spikes + 1))
            for x, _ in sets
        ]
        labels = [y for _, y in sets]
        for f, tested in (plain, [one + two for one, two in zip(plain, added)]):
            head = np.linalg.solve(f.T @ f + penalty * n * np.eye(width), f.T @ labels[0])
            yield np.mean((labels[0] - f @ head) ** 2) + penalty * head @ head
            yield np.mean((labels[1] - tested @ head) ** 2)

    before_and_after = np.mean([list(errors(np.random.default_rng(seed))) for seed in range(seeds)], axis=0)
    measured = before_and_after[:2] - before_and_after[2:]
    expected = one_step.gains(PHI, PSI, penalty, RELU, teacher, spikes, step)
    assert_allclose(measured, expected, rtol=0.15)
    # Infinite spikes would be worth more than can be mistaken for it.
    assert np.all(one_step.gains(PHI, PSI, penalty, RELU, teacher, spikes) > 1.2 * measured)


def test_spikes_have_the_strength_of_explicit_ones():
    n, d, width, eta = 2000, 1000, 1500, 4.0
    teacher = Teacher.of(fl.networks.hermite_series((0, 0.8, 0.3)), 0.5)
    step = Step(eta, width, (0.0, 0.7, 0.4, 0.2))
    squares, lengths = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x, a = rng.normal(size=(n, d)), rng.normal(size=width) / sqrt(width)
        y = 0.8 * x[:, 0] + 0.3 * (x[:, 0] ** 2 - 1) + 0.5 * rng.normal(size=n)
        beta = x.T @ y / n
        lengths.append(beta @ beta)
        seen = rng.normal(size=n) * np.linalg.norm(beta)  # fresh inputs times beta
        sizes = [
            (0.7**k * step.coefficients[k] * eta**k) ** 2 * np.sum(seen ** (2 * k)) * np.sum(a ** (2 * k)) / n
            for k in (1, 2, 3)
        ]
        squares.append(sizes)
    assert_allclose(np.mean(lengths), one_step.squared_length(d / n, teacher), rtol=0.05)
    expected = one_step.spike_strengths(step, d / n, teacher, 3)
    assert_allclose(np.sqrt(np.mean(squares, axis=0)), expected, rtol=0.1)


def test_the_gram_matrix_of_spikes_is_that_of_powers_of_a_gaussian():
    step, length, width = Step(2.0, 50, (0.0, 0.6, -0.3, 0.2)), 1.3, 50
    a = np.random.default_rng(0).normal(size=(1_000_000, 1)) / sqrt(width)
    theta = [0.6**k * step.coefficients[k] * (2.0 * length) ** k for k in (1, 2, 3)]
    powers = np.concatenate([theta[k - 1] * a**k for k in (1, 2, 3)], axis=1)
    measured = width * powers.T @ powers / len(a)
    expected = step.strengths(length, 3)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert_allclose(measured / scale, expected / scale, atol=0.03)


def test_the_number_of_spikes_at_an_exponent():
    assert [one_step.spikes_at(alpha) for alpha in (-1.0, 0.0, 0.1, 0.24, 0.26, 0.32, 0.34, 0.39)] == [
        *(0, 0, 1, 1),
        *(2, 2, 3, 4),
    ]
    for alpha in np.random.default_rng(0).uniform(0, 0.49, 200):
        spikes = one_step.spikes_at(alpha)
        assert (spikes - 1) / (2 * spikes) < alpha < spikes / (2 * spikes + 2)
    stairs = one_step.steps_of_the_staircase(4)
    assert_allclose(stairs, [0, 1 / 4, 1 / 3, 3 / 8])
    for count, at in enumerate(stairs):
        assert one_step.spikes_at(at + 1e-6) == count + 1


@pytest.mark.parametrize("alpha", [0.5, 0.7, np.inf, np.nan])
def test_from_one_half_on_there_is_no_number_of_spikes(alpha):
    with pytest.raises(InputError, match="below 1/2"):
        one_step.spikes_at(alpha)


@pytest.mark.parametrize("alpha", [1 / 4, 1 / 3, 3 / 8, 0.4])
def test_between_two_numbers_of_spikes_there_is_none(alpha):
    with pytest.raises(InputError, match="between two numbers of spikes"):
        one_step.spikes_at(alpha)


def test_a_teacher_is_read_off_its_link():
    teacher = Teacher.of(fl.networks.centred(fl.networks.relu), 0.5)
    assert_allclose(teacher.coefficients, hermite.coefficients(fl.networks.relu, 6)[1:], atol=1e-12)
    assert_allclose([teacher.power, teacher.noise], [1 / 2 - 1 / (2 * pi), 0.25], rtol=1e-10)
    assert_allclose(teacher.nonlinear, RELU.nonlinear, rtol=1e-9)
    with pytest.raises(InputError, match="labels of mean zero, got 0.3989"):
        Teacher.of(fl.networks.relu, 0.5)


def test_the_direction_learnt_agrees_with_the_teachers():
    assert_allclose(one_step.alignment(0.5, LINEAR), 1 / sqrt(2))
    assert_allclose(one_step.alignment(np.array([1e-9, 1e9]), LINEAR), [1, 0], atol=1e-4)


@pytest.mark.parametrize("phi", [0.0, -1.0])
def test_a_dimension_out_of_proportion_is_refused(phi):
    with pytest.raises(InputError, match="n and d grow in proportion"):
        one_step.squared_length(phi, LINEAR)


@pytest.mark.parametrize("spikes, reason", [(-1, "at least 0"), (1.5, "whole number"), (7, "as many Hermite")])
def test_a_number_of_spikes_that_cannot_be_is_refused(spikes, reason):
    with pytest.raises(InputError, match=reason):
        one_step.gains(PHI, PSI, PENALTY, RELU, LINEAR, spikes)


def test_a_step_knows_as_many_spikes_as_coefficients():
    with pytest.raises(InputError, match="3 spikes need as many Hermite coefficients, got 2"):
        one_step.gains(PHI, PSI, PENALTY, RELU, LINEAR, 3, Step(1.0, 100, (0.0, 0.5, 0.2)))
