"""The risk of ridge regression against closed forms, fifty digits and simulated regressions."""

import itertools

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from featlab.core.validation import InputError
from featlab.theory import ridge

NOISE = 0.25


def power_law(a, d):
    return np.arange(1.0, d + 1) ** -a


# ---- kappa


def residual(kappa, spectrum, n, penalty):
    """The equation of kappa, relative, at the working precision of mpmath."""
    kappa, total = mpmath.mpf(kappa), n * mpmath.mpf(penalty) / mpmath.mpf(kappa)
    return float((total + sum(mpmath.mpf(one) / (mpmath.mpf(one) + kappa) for one in spectrum)) / n - 1)


@pytest.mark.parametrize("penalty", [0.0, 1e-14, 1e-3, 1e6])
@pytest.mark.parametrize("condition", [1.0, 1e4, 1e12])
def test_kappa_is_the_root_of_its_equation(condition, penalty):
    rng = np.random.default_rng(0)
    spectrum = 3.0 * condition ** -rng.uniform(0, 1, 60)
    for n in (0.5, 20, 59.5):
        with mpmath.workdps(50):
            assert abs(residual(ridge.kappa(spectrum, n, penalty), spectrum, n, penalty)) < 1e-13


def test_kappa_finds_eigenvalues_far_below_the_others():
    """A hundred large ones, and ten that are smaller by 1e-12: kappa is of their size."""
    spectrum = np.r_[np.ones(100), np.full(10, 1e-12)]
    assert_allclose(ridge.kappa(spectrum, 105, 0.0), 1e-12, rtol=1e-9)  # 10 / (1 + kappa / 1e-12) = 5
    assert_allclose(ridge.kappa(spectrum, 105, 0.0, np.ones(110)), 1e-12, rtol=1e-9)


@pytest.mark.parametrize("a, n", [(0.5, 100), (1.0, 30), (2.0, 400)])
def test_kappa_rises_with_the_penalty_and_scales_with_the_spectrum(a, n):
    spectrum = power_law(a, 2000)
    kappas = [ridge.kappa(spectrum, n, penalty) for penalty in (0.0, 1e-6, 1e-3, 1.0)]
    assert np.all(np.diff(kappas) > 0)
    assert_allclose(ridge.kappa(1e-9 * spectrum, n, 1e-12), 1e-9 * kappas[2], rtol=1e-12)


# ---- The equivalent in closed form


def marchenko_pastur(shift, ratio):
    """(1/d) tr (X'X/n + shift)^-1 for d/n = ratio."""
    b = 1 - ratio + shift
    return (mpmath.sqrt(b**2 + 4 * ratio * shift) - b) / (2 * ratio * shift)


@pytest.mark.parametrize("penalty", [1e-3, 0.1, 2.0])
@pytest.mark.parametrize("ratio", [0.5, 1.0, 3.0])
def test_an_isotropic_spectrum_has_the_form_of_marchenko_and_pastur(ratio, penalty):
    """Bias lambda^2 m' and variance sigma^2 d/n (m - lambda m'), with m at -lambda (Hastie et al. 2022)."""
    d, n = 300, 300 / ratio
    found = ridge.risk(np.ones(d), np.full(d, 1 / d), n, penalty, NOISE)
    with mpmath.workdps(40):
        m = marchenko_pastur(mpmath.mpf(penalty), mpmath.mpf(ratio))
        slope = -mpmath.diff(lambda shift: marchenko_pastur(shift, mpmath.mpf(ratio)), mpmath.mpf(penalty))
    assert_allclose(found.bias, float(penalty**2 * slope), rtol=1e-10)
    assert_allclose(found.variance, float(NOISE * ratio * (m - penalty * slope)), rtol=1e-10)
    assert found.total == found.bias + found.variance


def test_without_a_penalty_an_isotropic_spectrum_has_two_sides():
    over = ridge.risk(np.ones(300), np.full(300, 1 / 300), 100, 0.0, NOISE)
    assert_allclose(over, [1 - 100 / 300, NOISE / (300 / 100 - 1), 300 / 100 - 1], rtol=1e-12)
    under = ridge.risk(np.ones(60), np.full(60, 1.0), 100, 0.0, NOISE)
    assert_allclose(under, [0, NOISE * 60 / (100 - 60), 0], rtol=1e-12)
    near = ridge.risk(power_law(2, 60), np.ones(60), 100, 1e-14, NOISE)  # any spectrum
    assert_allclose(near[:2], under[:2], atol=1e-9)


@pytest.mark.parametrize("d, n", [(300, 100), (60, 100)])
def test_directions_without_inputs_change_nothing(d, n):
    spectrum, energy = power_law(1, d), np.ones(d)
    for penalty in (0.0, 0.1):
        with_zeros = ridge.risk(np.r_[spectrum, np.zeros(50)], np.ones(d + 50), n, penalty, NOISE)
        assert_allclose(with_zeros, ridge.risk(spectrum, energy, n, penalty, NOISE), rtol=1e-12)


def test_a_large_penalty_predicts_zero():
    spectrum, energy = power_law(1, 500), power_law(2, 500)
    found = ridge.risk(spectrum, energy, 50, 1e9, NOISE)
    assert_allclose([found.bias, found.kappa], [float(spectrum @ energy), 1e9], rtol=1e-6)
    assert found.variance < 1e-15


@pytest.mark.parametrize("penalty", [0.0, 0.01])
def test_multiplicity_stands_for_repeated_entries(penalty):
    spectrum, energy, times = np.array([1.0, 0.3, 0.01]), np.array([1.0, 2.0, 0.5]), np.array([2, 5, 80])
    long = np.repeat(spectrum, times), np.repeat(energy, times)
    short = ridge.risk(spectrum, energy, 20, penalty, NOISE, times)
    assert_allclose(short, ridge.risk(*long, 20, penalty, NOISE), rtol=1e-12)
    bounds = (
        ridge.tsigler_bartlett(*long, 20, penalty, NOISE),
        ridge.tsigler_bartlett(spectrum, energy, 20, penalty, NOISE, multiplicity=times),
    )
    assert_allclose(*bounds, rtol=1e-12)
    assert ridge.regime(spectrum, 20, times) == pytest.approx(ridge.regime(long[0], 20))
    assert_allclose(
        ridge.best_penalty(spectrum, energy, 20, NOISE, times), ridge.best_penalty(*long, 20, NOISE), rtol=1e-4
    )
    assert_allclose(ridge.optimal_bound(spectrum, 20, 1.0, times), ridge.optimal_bound(long[0], 20))


@pytest.mark.parametrize("a", [1.5, 2.0, 3.0])
def test_a_power_law_passes_the_noise_on_by_its_exponent_less_one(a):
    """E_0 -> a for lambda_j = j^-a, a > 1, without a penalty (Simon et al. 2023)."""
    j, times = ridge.index_blocks(1e12)
    assert_allclose(ridge.risk(j**-a, j**-2.0, 3000, 0.0, 1.0, times).variance, a - 1, rtol=0.01)


def test_blocks_of_indices_add_up():
    j, times = ridge.index_blocks(1e6, exact=100)
    every = np.arange(1, 1e6 + 1)
    assert times.sum() == 1e6 and len(j) < 10_000 and np.all(np.diff(j) > 0)
    for power in (-0.5, -1, -2, -3):
        assert_allclose(times @ j**power, np.sum(every**power), rtol=1e-6)
    assert_allclose(times[100:] @ j[100:] ** -3, np.sum(every[100:] ** -3), rtol=1e-6)
    j, times = ridge.index_blocks(50)
    assert np.array_equal(j, np.arange(1, 51)) and np.all(times == 1)


def test_ten_million_directions_are_those_of_a_few_blocks():
    spectrum = power_law(0.7, 10_000_000)
    found = ridge.risk(spectrum, spectrum, 1000, 0.0, NOISE)
    j, times = ridge.index_blocks(1e7)
    assert_allclose(found, ridge.risk(j**-0.7, j**-0.7, 1000, 0.0, NOISE, times), rtol=1e-6)


# ---- The equivalent and simulated regressions


def simulated(rng, spectrum, energy, n, penalty):
    """Bias, and variance for noise one, given inputs: both are traces."""
    x = rng.standard_normal((n, len(spectrum))) * np.sqrt(spectrum)
    solve = np.linalg.inv(x @ x.T + n * penalty * np.eye(n)) @ x
    variance = np.sum(spectrum * solve**2)
    missed = np.eye(len(spectrum)) - x.T @ solve
    return np.sum(spectrum[:, None] * missed**2 * energy), variance


@pytest.mark.parametrize("a, n, d, penalty", [(2.0, 60, 200, 0.0), (2.0, 60, 200, 0.01), (0.5, 60, 400, 0.0)])
def test_the_equivalent_is_that_of_simulated_regressions(a, n, d, penalty):
    """Within 4 %: its error is of order 1/n, and 30 draws of the inputs have a scatter of their own."""
    rng = np.random.default_rng(1)
    spectrum, energy = power_law(a, d), power_law(2, d)
    draws = np.mean([simulated(rng, spectrum, energy, n, penalty) for _ in range(30)], axis=0)
    found = ridge.risk(spectrum, energy, n, penalty, 1.0)
    assert_allclose(draws[0] + NOISE * draws[1], found.bias + NOISE * found.variance, rtol=0.04)
    assert_allclose(draws[1], found.variance, rtol=0.04)


def test_a_metric_changes_spectrum_and_energy():
    spectrum, energy, metric = power_law(1, 40), power_law(2, 40), power_law(1.5, 40)
    found = ridge.metric_risk(spectrum, energy, metric, 12, 0.02, NOISE)
    assert_allclose(found, ridge.risk(spectrum * metric, energy / metric, 12, 0.02, NOISE), rtol=1e-12)
    assert_allclose(
        ridge.metric_risk(spectrum, energy, np.ones(40), 12, 0.02, NOISE),
        ridge.risk(spectrum, energy, 12, 0.02, NOISE),
    )


def test_a_direction_without_a_metric_is_not_learnt():
    spectrum, energy = power_law(1, 40), power_law(2, 40)
    metric = np.r_[np.ones(8), np.zeros(32)]
    found = ridge.metric_risk(spectrum, energy, metric, 12, 0.0, NOISE)
    # Eight directions and twelve samples; what is not seen acts as noise.
    left = (spectrum * energy)[8:].sum()
    assert_allclose([found.bias, found.variance], [12 / 4 * left, NOISE * 8 / 4], rtol=1e-12)
    tiny = ridge.metric_risk(spectrum, energy, np.maximum(metric, 1e-200), 12, 1e-12, NOISE)
    assert_allclose(tiny[:2], found[:2], rtol=1e-8)


# ---- The best penalty


@pytest.mark.parametrize("a, n", [(0.5, 50), (2.0, 50), (2.0, 400)])
def test_the_best_penalty_is_the_bayes_estimators(a, n):
    """For an energy that is everywhere the same, ridge with n lambda = sigma^2 / beta^2 is Bayes-optimal."""
    spectrum, energy = power_law(a, 300), np.full(300, 0.7)
    best = ridge.best_penalty(spectrum, energy, n, NOISE)
    assert_allclose(n * best, NOISE / 0.7, rtol=1e-3)
    least = ridge.risk(spectrum, energy, n, best, NOISE).total
    for factor in (0.3, 0.9, 1.1, 3.0):
        assert ridge.risk(spectrum, energy, n, factor * best, NOISE).total > least


def test_without_noise_no_penalty_is_best_and_with_much_a_large_one():
    ones = np.ones(300)
    assert ridge.best_penalty(ones, ones, 100, 0.0) < 1e-6
    assert ridge.best_penalty(power_law(0.5, 300), power_law(2, 300), 100, 0.0) == 0.0
    assert_allclose(ridge.best_penalty(ones, ones, 100, 1e6), 1e6 / 100, rtol=1e-3)


# ---- Tsigler and Bartlett


@pytest.mark.parametrize("b", [0.5, 1.0, 4.0])
@pytest.mark.parametrize(
    "a, d, penalty", [(2, 500, 0.0), (2, 500, 1e-3), (0.5, 500, 0.0), (0.1, 4000, 0.0), (1, 20, 0.0)]
)
def test_the_bound_is_its_formula_for_the_least_k(a, d, penalty, b):
    n, rng = 30, np.random.default_rng(2)
    spectrum, energy = power_law(a, d), power_law(1, d)
    k = next(k for k in range(d + 1) if k == d or n * penalty + spectrum[k:].sum() >= b * n * spectrum[k])
    held = n * penalty + spectrum[k:].sum()
    bias = np.sum(energy[:k] * held**2 / (n**2 * spectrum[:k])) + np.sum(energy[k:] * spectrum[k:])
    variance = k / n + (n * np.sum(spectrum[k:] ** 2) / held**2 if k < d else 0)
    mixed = rng.permutation(d)
    found = ridge.tsigler_bartlett(spectrum[mixed], energy[mixed], n, penalty, NOISE, b)
    assert found.k_star == k
    assert_allclose(found[:2], [bias, NOISE * variance], rtol=1e-12)
    assert found.total == found.bias + found.variance


@pytest.mark.parametrize(
    "a, d, n, name", [(2.0, 2000, 200, "kernel"), (1.5, 4000, 100, "kernel"), (0.5, 8000, 400, "benign")]
)
def test_three_regimes(a, d, n, name):
    found = ridge.regime(power_law(a, d), n)
    assert found.name == name
    at_zero = ridge.risk(power_law(a, d), np.ones(d), n, 0.0, 1.0)
    assert_allclose(found.passed_on, at_zero.variance)
    assert_allclose(found.lost, (at_zero.kappa / (1 + at_zero.kappa)) ** 2)


def test_too_many_directions_are_harmful():
    j, times = ridge.index_blocks(50**3)
    found = ridge.regime(j**-0.5, 50, times)
    assert found.name == "harmful" and found.lost > 0.8 and found.passed_on < 0.01
    assert ridge.tsigler_bartlett(j**-0.5, j**-2.0, 50, 0.0, NOISE, multiplicity=times).k_star == 0


# ---- Bounds for metric learning


def test_the_optimal_bound_takes_the_smaller_of_two_costs():
    assert_allclose(ridge.optimal_bound([1.0, 0.1, 0.02, 0.01], 10, 0.5), 0.05 + 0.05 + 0.02 + 0.01)


def test_the_least_criterion_is_the_least_over_projections():
    mu, n, noise, more = np.array([0.9, 0.3, 0.1, 0.05, 0.0]), 5, 0.5, 1.25
    costs = [
        np.sum(np.where(kept, (more - noise) / n, mu)) for kept in itertools.product([False, True], repeat=len(mu))
    ]
    assert_allclose(ridge.least_criterion(mu, n, noise, more), min(costs), rtol=1e-12)


# ---- Bad input

GOOD = {"spectrum": [1.0, 0.5, 0.1], "energy": [1.0, 1.0, 1.0], "n": 2, "penalty": 0.1, "noise": NOISE}


@pytest.mark.parametrize(
    "changes, reason",
    [
        ({"spectrum": [1.0, -0.5, 0.1]}, r"spectrum=\) must hold finite numbers of at least 0"),
        ({"spectrum": [1.0, np.nan, 0.1]}, r"spectrum=\) must hold finite numbers"),
        ({"spectrum": [1.0, np.inf, 0.1]}, r"spectrum=\) must hold finite numbers"),
        ({"spectrum": [0.0, 0.0, 0.0]}, "an eigenvalue above 0"),
        ({"spectrum": []}, "a list of numbers"),
        ({"spectrum": np.ones((3, 3))}, r"shape \(3, 3\)"),
        ({"spectrum": ["a", "b", "c"]}, "array of numbers"),
        ({"energy": [1.0, 1.0]}, "one number for each of 3, got 2"),
        ({"energy": [1.0, np.nan, 1.0]}, r"energy=\) must hold finite"),
        ({"n": 0}, r"n=\) must be a finite number above 0"),
        ({"n": -3}, r"n=\) must be a finite number above 0"),
        ({"n": np.nan}, r"n=\) must be a finite number above 0"),
        ({"penalty": -0.1}, r"penalty=\) must be a finite number of at least 0"),
        ({"noise": -1.0}, r"noise=\) must be a finite number of at least 0"),
        ({"noise": "loud"}, r"noise=\) must be a number"),
        ({"n": 3, "penalty": 0.0}, "the risk is infinite; give a penalty"),
        ({"multiplicity": [1, 0, 2]}, "above 0"),
        ({"multiplicity": [1, 2]}, "one number for each of 3"),
    ],
)
def test_nonsense_is_refused(changes, reason):
    with pytest.raises(InputError, match=reason):
        ridge.risk(**(GOOD | changes))


@pytest.mark.parametrize(
    "call, reason",
    [
        (lambda: ridge.kappa([1.0, 1.0], 2, 0.0), "as many directions as samples"),
        (lambda: ridge.regime([1.0, 1.0], 2), "more directions than n = 2, got 2"),
        (lambda: ridge.best_penalty([1.0, 0.0], [0.0, 1.0], 1, 1.0), "needs energy in a direction"),
        (lambda: ridge.metric_risk([1.0, 1.0], [1.0, 1.0], [0.0, 0.0], 1, 0.1, 1.0), "an eigenvalue above 0"),
        (lambda: ridge.tsigler_bartlett([1.0], [1.0], 1, 0.1, 1.0, b=0.0), r"b=\) must be"),
        (lambda: ridge.least_criterion([1.0], 1, 0.5, 0.5), "needs sigma'\\^2 above sigma\\^2 = 0.5"),
        (lambda: ridge.index_blocks(10.5), "a whole d"),
        (lambda: ridge.index_blocks(1e17), "a whole d"),
    ],
)
def test_what_has_no_meaning_is_refused(call, reason):
    with pytest.raises(InputError, match=reason):
        call()
