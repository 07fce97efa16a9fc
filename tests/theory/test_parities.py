"""Fourier coefficients of a gate, against sums over the whole cube and against the majority's closed form."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from featlab.core.validation import InputError
from featlab.theory import parities


def cube(d):
    return np.array(list(itertools.product((1, -1), repeat=d)))


@pytest.mark.parametrize("d", [1, 4, 7])
@pytest.mark.parametrize("bias", [0, 0.5, 1, -1, 1.5, 2, -2.5, 9, -9])
def test_a_gate_has_the_coefficients_of_enumeration(d, bias):
    x = cube(d)
    gate = x.sum(axis=1) + bias > 0
    for degree in range(d + 1):
        expected = np.mean(gate * x[:, :degree].prod(axis=1))
        assert_allclose(parities.gate_coefficient(d, degree, bias), expected, atol=1e-15)
    assert parities.gate_coefficient(d, d + 1, bias) == 0


@pytest.mark.parametrize("d, k, bias", [(7, 2, 0), (7, 4, 0), (8, 3, 1.5), (6, 6, 0.5), (5, 1, 0)])
def test_the_population_gradient_is_that_of_enumeration(d, k, bias):
    x = cube(d)
    label, gate = x[:, :k].prod(axis=1), x.sum(axis=1) + bias > 0
    gradient = np.mean((label * gate)[:, None] * x, axis=0)
    relevant, other = parities.population_gradient(d, k, bias)
    assert_allclose(gradient, [relevant] * k + [other] * (d - k), atol=1e-15)
    gap = np.abs(gradient[:k]).min() - (np.abs(gradient[k:]).max() if k < d else 0)
    assert_allclose(parities.fourier_gap(d, k, bias), gap, atol=1e-15)


def test_krawtchouk_sums_a_parity_over_a_slice():
    x = cube(6)
    for p, t in itertools.product(range(7), repeat=2):
        assert parities.krawtchouk(p, t, 6) == x[(x < 0).sum(axis=1) == p][:, :t].prod(axis=1).sum()


def test_the_majority_is_twice_its_gate():
    for d, degree in itertools.product((1, 5, 9, 101), range(1, 7)):
        expected = 2 * parities.gate_coefficient(d, degree)
        assert_allclose(parities.majority_coefficient(d, degree), expected, rtol=1e-12, atol=1e-300)


def test_coefficients_fall_with_the_dimension_and_a_further_degree_two_costs_a_factor_d():
    for degree in (1, 3, 5):
        one, other = (abs(parities.majority_coefficient(d, degree)) for d in (1001, 4001))
        assert_allclose(math.log(one / other) / math.log(4001 / 1001), degree / 2, atol=0.01)
    relevant, irrelevant = parities.population_gradient(1001, 4)
    assert_allclose(irrelevant / relevant, -3 / 1001, rtol=0.01)  # H_4(0) / H_2(0) = -3


@pytest.mark.parametrize(
    "asked, sentence",
    [
        (lambda: parities.majority_coefficient(8, 3), "must be odd"),
        (lambda: parities.gate_coefficient(0, 3), "at least 1, got 0"),
        (lambda: parities.gate_coefficient(5, -1), "A degree must be"),
        (lambda: parities.population_gradient(5, 6), "from 1 to d = 5, got 6"),
    ],
)
def test_what_is_no_parity_is_refused(asked, sentence):
    with pytest.raises(InputError, match=sentence):
        asked()
