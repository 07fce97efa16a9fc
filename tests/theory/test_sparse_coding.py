"""Closed forms of sparse coding, against draws made with NumPy alone."""

import numpy as np
import pytest

import featlab as fl
from featlab.claims.theorems.allenzhu2020_sparse_coding import SparseFeatures
from featlab.theory.sparse_coding import (
    first_threshold,
    linear_error,
    potential_probability,
    sure_count,
    sure_probability,
)

D, C1, C2 = 20, 1.2, 0.3


def members(products, votes, c1, c2):
    """The sets, pair by pair, as they are defined."""
    unit = np.log(products.shape[1])
    sure = np.zeros(products.shape, bool)
    for j in range(products.shape[1]):
        others = np.delete(products, j, axis=1) ** 2 < (c1 - c2) * unit
        large = products[:, j] ** 2 >= (c1 + c2) * unit
        sure[:, j] = large & others.all(axis=1) & (products[:, j] * votes[j] > 0)
    return sure, products**2 >= (c1 - c2) * unit


def test_counts_of_the_start_are_binomial_with_the_closed_form():
    rng, width, repeats = np.random.default_rng(0), 500, 400
    votes = rng.choice([-1, 1], D)
    sure, potential = members(rng.normal(size=(width * repeats, D)), votes, C1, C2)
    assert sure.sum(axis=1).max() == 1  # so that the count is a sum of independent coins, one for each neuron
    counts = sure.sum(axis=1).reshape(repeats, width).sum(axis=1)
    mean, spread = sure_count(width, D, C1, C2)
    assert abs(counts.mean() - mean) < 4 * spread / np.sqrt(repeats)
    assert abs(counts.std() / spread - 1) < 4 / np.sqrt(2 * repeats)
    chance = potential_probability(D, C1, C2)
    assert abs(potential.mean() - chance) < 4 * np.sqrt(chance / potential.size)
    # A sign that did not count, or another atom that did not, would be seen.
    assert abs(counts.mean() - 2 * mean) > 20 * spread / np.sqrt(repeats)
    assert sure_probability(D, C1, C2) < 0.5 * sure_probability(2, C1, C2)


@pytest.mark.slow
@pytest.mark.parametrize("d, c1, c2", [(50, 2.5, 0.4), (36, 2.5, 0.2), (100, 2.5, 0.2)])
def test_counts_of_networks_that_were_drawn_are_within_three_deviations_of_the_closed_form(d, c1, c2):
    (count,) = SparseFeatures(c1=c1, c2=c2).counts([7_300_000], d, 100_000)["sure"]
    mean, spread = sure_count(100_000, d, c1, c2)
    assert abs(count - mean) < 3 * spread
    assert abs(sure_count(100_000, d, c1 + 0.3, c2)[0] - mean) > 6 * spread  # another level would be seen


def test_a_first_threshold_lies_between_the_levels_of_the_sets():
    b = first_threshold(36, 2.5)
    assert b == pytest.approx(np.sqrt(2.5 * np.log(36)))
    assert (2.5 - 0.2) * np.log(36) < b**2 < (2.5 + 0.2) * np.log(36)
    with pytest.raises(fl.InputError, match="d >= 1 and c1 > 0"):
        first_threshold(36, 0.0)


def test_the_best_linear_model_errs_as_often_as_the_closed_form_says():
    rng, n, d, s, sigma = np.random.default_rng(1), 100_000, 36, 3, 0.22
    votes = rng.choice([-1, 1], d)
    code = np.zeros((n, d))
    places = np.argsort(rng.random((n, d)), axis=1)[:, :s]
    np.put_along_axis(code, places, rng.choice([-1, 1], (n, s)), axis=1)
    outputs = (code + sigma * rng.normal(size=(n, d))) @ votes
    error = np.mean(outputs * np.sign(code @ votes) <= 0)
    assert abs(error - linear_error(d, s, sigma)) < 4 * np.sqrt(0.17 * 0.83 / n)
    assert linear_error(d, s, 0.0) == 0 and linear_error(d, s, 1e6) == pytest.approx(0.5, abs=1e-3)


def test_what_makes_no_sense_is_refused_in_a_sentence():
    with pytest.raises(fl.InputError, match="0 < c2 < c1"):
        sure_probability(36, 1.0, 1.5)
    with pytest.raises(fl.InputError, match="odd sparsity"):
        linear_error(36, 2, 0.1)
