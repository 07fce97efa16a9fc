"""Thresholds and early growth, against integration, limits and identities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from featlab.core.validation import InputError
from featlab.theory import signal_noise as theory


@pytest.mark.parametrize("power", [1, 1.5, 2, 2.5, 3, 4])
def test_early_growth_solves_its_equation(power):
    start, rate, end = 0.3, 0.7, 1.5
    exact = theory.early_growth(end, start, rate, power)
    errors = []
    for count in (20_000, 40_000):
        x, h = start, end / count
        for _ in range(count):
            x += h * rate * x ** (power - 1)
        errors.append(abs(x - exact) / exact)
    assert errors[0] < 1e-3
    # Euler's method is of first order: half the step, half the error, down to rounding.
    assert errors[1] < max(0.55 * errors[0], 1e-12)


@pytest.mark.parametrize("power", [1, 1.5, 2, 3])
def test_a_negative_rate_is_time_run_backwards(power):
    grown = theory.early_growth(1.0, 0.3, 0.7, power)
    assert_allclose(theory.early_growth(1.0, grown, -0.7, power), 0.3)
    assert 0 <= theory.early_growth(1e6, grown, -0.7, power) < 1e-5


@pytest.mark.parametrize("power", [1, 2, 3])
def test_growth_begins_at_its_start(power):
    assert_allclose(theory.early_growth(0, 0.2, 5.0, power), 0.2)


def test_growth_is_continuous_in_the_power():
    times = np.linspace(0, 1, 5)
    for nearby in (2 - 1e-7, 2 + 1e-7):
        assert_allclose(
            theory.early_growth(times, 0.3, 0.7, nearby), theory.early_growth(times, 0.3, 0.7, 2), 1e-5
        )
    assert_allclose(theory.early_growth(times, 0.3, 0.7, 1 + 1e-9), theory.early_growth(times, 0.3, 0.7, 1), 1e-7)


def test_growth_is_infinite_from_the_blow_up_on():
    end = theory.blow_up_time(0.1, 2.0, 3)
    assert end == pytest.approx(5.0)
    values = theory.early_growth(np.array([0.999 * end, end, 2 * end]), 0.1, 2.0, 3)
    assert np.isfinite(values[0]) and values[0] > 50
    assert np.all(np.isinf(values[1:]))


def test_nothing_grows_from_zero_but_a_line():
    assert theory.early_growth(3.0, 0.0, 2.0, 1) == 6.0
    for power in (1.5, 2, 3):
        assert theory.early_growth(3.0, 0.0, 2.0, power) == 0.0
    assert np.isinf(theory.blow_up_time(0.0, 1.0, 3))


def test_up_to_the_square_nothing_blows_up():
    assert np.isinf(theory.blow_up_time(1.0, 1.0, 1))
    assert np.all(np.isinf(theory.blow_up_time(np.ones(3), 1.0, 2)))


@pytest.mark.parametrize("power", [3, 4, 5])
def test_the_race_between_noise_and_signal(power):
    n, d, signal_norm, noise_scale, init_scale = 50, 1e4, 7.0, 0.3, 1e-3
    shared = {"learning_rate": 0.1, "width_scale": 1 / 16, "power": power}
    noise_norm = noise_scale * np.sqrt(d)
    signal = theory.early_signal_rate(signal_norm=signal_norm, **shared)
    noise = theory.early_noise_rate(noise_norm=noise_norm, n=n, **shared)
    ratio = theory.blow_up_time(init_scale * noise_norm, noise, power) / theory.blow_up_time(
        init_scale * signal_norm, signal, power
    )
    assert_allclose(ratio, n * theory.snr(signal_norm, noise_scale, d) ** power / 2, 1e-12)


def test_rates_are_those_of_the_papers():
    shared = {"learning_rate": 0.2, "width_scale": 1 / 10, "power": 3}
    assert_allclose(theory.early_signal_rate(signal_norm=2.0, **shared), 0.2 * 3 * 4 / (4 * 10))
    assert_allclose(theory.early_noise_rate(noise_norm=5.0, n=20, **shared), 0.2 * 3 * 25 / (2 * 20 * 10))
    flips = theory.early_signal_rate(signal_norm=2.0, aligned=(1 - 2 * 0.1) / 2, **shared)
    assert_allclose(flips, 0.8 * theory.early_signal_rate(signal_norm=2.0, **shared))


def test_boundary_is_where_the_condition_holds():
    n = np.array([10.0, 100.0, 1000.0])
    for power in (2, 3, 4):
        assert_allclose(n * theory.boundary(power)(n) ** power, 2)


def test_relu_boundary_is_a_line_of_equal_strength():
    d = np.array([100.0, 1e4, 1e8])
    norms = theory.relu_boundary(n=20, noise_scale=0.5, constant=3.0)(d)
    assert_allclose(theory.strength(20, norms, 0.5, d), 3.0)
    assert_allclose(norms[1] / norms[0], 100 ** (1 / 4))


def test_strength_is_the_snr_in_disguise():
    n, signal_norm, noise_scale, d = 20, 3.0, 0.7, 400
    assert_allclose(
        theory.strength(n, signal_norm, noise_scale, d), n * d * theory.snr(signal_norm, noise_scale, d) ** 4
    )


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: theory.snr(-1, 1, 10), r"snr\(signal_norm=\)"),
        (lambda: theory.snr(1, 0, 10), r"snr\(noise_scale=\)"),
        (lambda: theory.snr(1, 1, np.inf), r"snr\(d=\)"),
        (lambda: theory.snr("much", 1, 10), "a number or an array"),
        (lambda: theory.boundary(1), "relu_boundary"),
        (lambda: theory.boundary(0.5), "at least 1"),
        (lambda: theory.boundary(3)(-4), r"boundary\(n=\)"),
        (lambda: theory.relu_boundary(20)(0), r"relu_boundary\(d=\)"),
        (lambda: theory.strength(0, 1, 1, 1), r"strength\(n=\)"),
        (lambda: theory.early_growth(-1, 1, 1, 3), r"early_growth\(steps=\)"),
        (lambda: theory.early_growth(1, 1, np.nan, 3), r"early_growth\(rate=\)"),
        (lambda: theory.blow_up_time(1, 1, [3, 4]), "one number"),
        (
            lambda: theory.early_signal_rate(learning_rate=0, signal_norm=1, width_scale=1, power=3),
            r"early_signal_rate\(learning_rate=\)",
        ),
        (
            lambda: theory.early_noise_rate(learning_rate=1, noise_norm=1, n=-3, width_scale=1, power=3),
            r"early_noise_rate\(n=\)",
        ),
    ],
)
def test_nonsense_is_refused_in_one_sentence(call, words):
    with pytest.raises(InputError, match=words) as caught:
        call()
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


@pytest.mark.parametrize("power", [3, 4])
def test_at_a_small_loss_something_is_learnt_as_large_as_is_said(power):
    """Coefficients of eight filters that give exactly the margin: the larger kind is never below C."""
    loss, rng = 0.01, np.random.default_rng(0)
    margin = -np.log(np.expm1(loss))
    assert_allclose(np.log1p(np.exp(-margin)), loss)
    least = np.inf
    for _ in range(300):
        gamma, rho = rng.random((2, 8)) * rng.random((2, 1))
        factor = (margin / np.mean(gamma**power + rho**power)) ** (1 / power)
        least = min(least, factor * max(gamma.max(), rho.max()))
    assert least >= theory.learnt_at_least(loss, power)
    even = (margin / 2) ** (1 / power)  # all alike: the bound is met
    assert_allclose(theory.learnt_at_least(loss, power), even)


def test_the_largest_start_is_about_that_of_as_many_gaussians():
    draws = 0.3 * np.random.default_rng(0).normal(size=(50, 20_000))
    assert_allclose(theory.largest_start(0.3, 20_000), draws.max(axis=1).mean(), rtol=0.15)


def test_a_loss_that_asks_for_no_margin_is_refused():
    with pytest.raises(InputError, match="below log 2"):
        theory.learnt_at_least(0.7, 3)
