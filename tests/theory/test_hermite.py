"""Hermite coefficients, against closed forms, quadrature at 30 digits and identities."""

from math import erf, exp, factorial, pi, sqrt

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl
from featlab.core.validation import InputError
from featlab.theory import hermite


def at(z, k):
    """H_k(z), by NumPy's own recursion."""
    return np.polynomial.hermite_e.hermeval(z, [0] * k + [1])


def density(z):
    return exp(-(z**2) / 2) / sqrt(2 * pi)


def below(z):
    return (1 + erf(z / sqrt(2))) / 2


def test_the_relu_has_its_closed_form():
    """By parts twice, k! c_k = E[delta(Z) H_{k-2}(Z)]."""
    c = hermite.coefficients(fl.networks.relu, 8)
    later = [density(0) * at(0, k - 2) / factorial(k) for k in range(2, 9)]
    assert_allclose(c, [1 / sqrt(2 * pi), 1 / 2, *later], atol=1e-10)
    assert_allclose(c[2], 1 / (2 * sqrt(2 * pi)), atol=1e-10)
    assert_allclose(c[[3, 5, 7]], 0, atol=1e-12)
    assert_allclose(hermite.second_moment(fl.networks.relu), 1 / 2, rtol=1e-12)
    assert_allclose(hermite.nonlinear_part(fl.networks.relu), 1 / 4 - 1 / (2 * pi), rtol=1e-10)


def test_polynomials_are_exact():
    assert_allclose(hermite.coefficients(lambda z: z**4, 6), [3, 0, 6, 0, 1, 0, 0], atol=1e-11)
    given = (0.3, -1.0, 0.5, 0.0, 2.0)
    assert_allclose(hermite.coefficients(fl.networks.hermite_series(given), 6), [*given, 0, 0], atol=1e-11)
    assert hermite.nonlinear_part(lambda z: 3 * z - 2) < 1e-12


def test_the_error_function_has_its_closed_form():
    """E[erf'(Z) H_k(Z)] from the generating function: E exp(-Z^2 + tZ - t^2/2) = exp(-t^2/3) / sqrt 3."""
    c = hermite.coefficients(fl.networks.erf, 9)
    odd = [2 / sqrt(3 * pi) * (-1 / 3) ** m / (factorial(m) * (2 * m + 1)) for m in range(5)]
    assert_allclose(c[1::2], odd, atol=1e-12)
    assert_allclose(c[0::2], 0, atol=1e-12)
    assert_allclose(hermite.second_moment(fl.networks.erf), 2 / pi * np.arcsin(2 / 3), rtol=1e-12)


def test_tanh_at_thirty_digits():
    with mpmath.workdps(30):

        def exact(k):
            def integrand(z):
                polynomial = z if k == 1 else z**3 - 3 * z if k == 3 else z**5 - 10 * z**3 + 15 * z
                return mpmath.tanh(z) * polynomial * mpmath.npdf(z)

            return 2 * mpmath.quad(integrand, [0, 1, 2, 4, 8, 16]) / factorial(k)

        expected = [float(exact(k)) for k in (1, 3, 5)]
    assert_allclose(hermite.coefficients(jnp.tanh, 5)[[1, 3, 5]], expected, rtol=1e-12)


@pytest.mark.parametrize("place", [0.3, -1.7, 1 / 3])
def test_kinks_and_jumps_may_be_anywhere(place):
    kink = hermite.coefficients(lambda z: np.maximum(z - place, 0), 6)
    later = [density(place) * at(place, k - 2) / factorial(k) for k in range(2, 7)]
    first = [density(place) - place * (1 - below(place)), 1 - below(place)]
    assert_allclose(kink, [*first, *later], atol=1e-12)
    jump = hermite.coefficients(lambda z: np.sign(z - place), 6)
    later = [2 * density(place) * at(place, k - 1) / factorial(k) for k in range(1, 7)]
    assert_allclose(jump, [1 - 2 * below(place), *later], atol=1e-12)


@pytest.mark.parametrize("function", [fl.networks.erf, np.sin, lambda z: np.exp(z / 2)], ids=["erf", "sin", "exp"])
def test_the_squares_of_all_coefficients_are_the_second_moment(function):
    c = hermite.coefficients(function, 61)
    total = sum(factorial(k) * one**2 for k, one in enumerate(c))
    assert_allclose(total, hermite.second_moment(function), rtol=1e-9)
    assert_allclose(hermite.nonlinear_part(function), total - c[0] ** 2 - c[1] ** 2, atol=1e-9)


def test_powers_are_sums_of_polynomials():
    x = np.linspace(-3, 3, 7)
    for order in (1, 5, 9):
        values = hermite.polynomials(x, order)
        assert_allclose(values, np.stack([at(x, k) for k in range(order + 1)], axis=-1), atol=1e-9)
        assert_allclose(values @ hermite.powers(order).T, x[:, None] ** np.arange(order + 1), atol=1e-8)
    assert hermite.polynomials(x, 0).shape == (7, 1)


def test_within_a_compiled_run_the_coefficients_are_the_same():
    def of_slope(slope):  # a number that the program does not know
        return hermite.fixed_coefficients(fl.networks.leaky_relu(slope), 5)

    with jax.enable_x64(True):
        for function in (fl.networks.relu, jnp.tanh, fl.networks.erf):
            fixed = jax.jit(lambda function=function: hermite.fixed_coefficients(function, 6))()
            assert_allclose(fixed, hermite.coefficients(function, 6), atol=1e-12)
        expected = hermite.coefficients(fl.networks.leaky_relu(0.3), 5)
        assert_allclose(jax.jit(of_slope)(0.3), expected, atol=1e-12)


def test_the_precision_of_runs_plays_no_part():
    results = []
    for wide in (False, True):
        with jax.enable_x64(wide):
            results.append(hermite.coefficients(jnp.tanh, 7))
    np.testing.assert_array_equal(*results)
    assert results[0].dtype == float


@pytest.mark.parametrize(
    "function, reason",
    [
        (lambda z: np.sum(z), "applied elementwise"),
        (lambda z: np.stack([z, z]), "applied elementwise"),
        (lambda z: np.where(z > 1, np.inf, z), "not finite at z"),
        (lambda z: np.where(z < -2, np.nan, z), "not finite at z"),
        (lambda z: np.tanh(z.astype(np.float32)), "fewer digits than float64"),
        (lambda z: np.heaviside(np.sin(1e5 * z), 0), "finitely many kinks and jumps"),
    ],
)
def test_what_is_no_function_of_one_number_is_refused(function, reason):
    for asked in (lambda: hermite.coefficients(function, 2), lambda: hermite.second_moment(function)):
        with pytest.raises(InputError, match=reason):
            asked()


@pytest.mark.parametrize("order", [-1, 2.0])
def test_an_order_is_a_whole_number(order):
    with pytest.raises(InputError, match="whole number of at least 0"):
        hermite.coefficients(np.tanh, order)
