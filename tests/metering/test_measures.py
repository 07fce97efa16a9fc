"""What is measured, by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from featlab.metering import measures

RANDOM = np.random.default_rng(0)


def test_movement_takes_all_arrays_together():
    before, after = [np.array([3.0, 0.0]), np.array([[4.0]])], [np.array([3.0, 1.0]), np.array([[6.0]])]
    assert_allclose(measures.movement(before, after), np.sqrt(5) / 5)
    assert np.isnan(measures.movement([np.zeros(2)], [np.ones(2)]))
    assert measures.movement([np.zeros(2)], [np.zeros(2)]) == 0


def test_effective_rank_counts_equal_eigenvalues():
    turn = np.linalg.qr(RANDOM.normal(size=(5, 5)))[0]
    assert_allclose(measures.effective_rank(turn @ np.diag([2, 2, 2, 0, 0]) @ turn.T), 3, rtol=1e-9)
    shares = np.array([0.5, 0.25, 0.25])
    assert_allclose(measures.effective_rank(np.diag(8 * shares)), np.exp(-np.sum(shares * np.log(shares))))
    assert_allclose(measures.eigenvalues(np.diag([1.0, 6.0, 1.0])), [0.75, 0.125, 0.125])


def test_the_root_is_one_and_the_cosine_knows_multiples():
    factor = RANDOM.normal(size=(4, 3))
    matrix = factor @ factor.T
    root = measures.root(matrix)
    assert_allclose(root @ root, matrix, atol=1e-7)  # an eigenvalue of 0 costs half the digits
    assert_allclose(measures.cosine(matrix, 3 * matrix), 1)
    assert_allclose(measures.cosine(np.eye(2), np.array([[0.0, 1], [1, 0]])), 0, atol=1e-15)


def test_a_kernel_of_the_labels_is_aligned_with_them():
    signs = np.array([[1.0], [-1], [1]])
    assert_allclose(measures.target_alignment(5 * signs @ signs.T, signs), 1)
    assert_allclose(measures.target_alignment(np.eye(3), signs), 1 / np.sqrt(3))


def test_margins_of_one_output_and_of_several():
    assert measures.margins(np.array([[2.0], [3.0]]), np.array([1.0, -1.0])).tolist() == [2, -3]
    outputs = np.array([[1.0, 4.0, 2.0], [5.0, 0.0, 1.0]])
    assert measures.margins(outputs, np.array([1, 2])).tolist() == [2, -4]
    assert outputs[0, 1] == 4


@pytest.mark.parametrize("linear, missed", [(1.0, 0.0), (0.0, 1.0), (0.75, 0.25)])
def test_departure_is_the_share_that_linearity_misses(linear, missed):
    change = RANDOM.normal(size=(6, 2))
    assert_allclose(measures.departure(change, linear * change), missed, atol=1e-15)


def test_departure_is_infinite_where_only_the_linearisation_changes():
    assert measures.departure(np.zeros((3, 1)), np.zeros((3, 1))) == 0
    assert measures.departure(np.zeros((3, 1)), np.ones((3, 1))) == np.inf
