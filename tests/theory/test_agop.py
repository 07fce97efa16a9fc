"""AGOP and how it is compared, against matrices written out; the ansatz where it is exact, in linear networks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from featlab.theory import agop as theory

RANDOM = np.random.default_rng(4)


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


def positive(d=5, rank=5):
    rows = RANDOM.normal(size=(rank, d))
    return rows.T @ rows


def test_the_mean_of_outer_products():
    gradients = RANDOM.normal(size=(7, 3))
    expected = np.mean([np.outer(g, g) for g in gradients], axis=0)
    assert_allclose(theory.agop(gradients), expected, atol=1e-12)
    padded = np.concatenate([gradients, np.zeros((4, 3))])
    assert_allclose(theory.agop(padded, 7), expected, atol=1e-12)


def test_powers_multiply_and_leave_out_what_rounding_made_negative():
    matrix = positive()
    root = np.asarray(theory.power(jnp.asarray(matrix), 0.5))
    assert_allclose(root @ root, matrix, atol=1e-10)
    for rounding in (-1e-16, 1e-16):  # whose root would be 1e-8
        flat = jnp.diag(jnp.array([4.0, rounding]))
        assert_allclose(theory.power(flat, 0.5), np.diag([2.0, 0.0]), atol=1e-12)


@pytest.mark.parametrize("exponent", [0.3, 0.5, 1.0, 1.7])
def test_the_best_power_is_the_one_that_was_taken(exponent):
    matrix = positive(rank=3)
    taken = theory.power(jnp.asarray(matrix), exponent)
    assert_allclose(theory.best_power(taken, matrix), exponent, atol=0.006)
    assert_allclose(theory.best_power(3 * taken + 5 * np.eye(5), 2 * matrix), exponent, atol=0.006)
    padded, root = (np.pad(one, (0, 4)) for one in (matrix, taken))  # columns that hold nothing
    assert_allclose(theory.best_power(root, padded, 5), exponent, atol=0.006)


def test_the_best_power_has_the_largest_shape_cosine():
    one, other = np.diag([5.0, 3.0, 2.5, 1.0]), np.diag([4.0, 3.0, 1.5, 1.0])
    cosines = [theory.shape_cosine(one, theory.power(jnp.asarray(other), s), 4) for s in theory.POWERS]
    assert 0.1 < theory.best_power(one, other, 4) == theory.POWERS[np.argmax(cosines)] < 1.9


def test_cosines():
    one, other = positive(), positive()
    turn = np.linalg.qr(RANDOM.normal(size=(5, 5)))[0]
    for measure in (theory.cosine, theory.shape_cosine, theory.correlation):
        assert_allclose(measure(one, 3 * one), 1, atol=1e-12)
    for measure in (theory.cosine, theory.shape_cosine):
        assert_allclose(measure(turn @ one @ turn.T, turn @ other @ turn.T), measure(one, other), atol=1e-12)
    assert_allclose(theory.correlation(one, other), np.corrcoef(one.ravel(), other.ravel())[0, 1], atol=1e-12)
    # A multiple of I changes the shape of neither; a projection and what is left of I are opposite in shape.
    assert_allclose(theory.shape_cosine(one + 9 * np.eye(5), other), theory.shape_cosine(one, other), atol=1e-12)
    half = np.diag([1.0, 1.0, 0.0, 0.0, 0.0])
    assert_allclose(theory.shape_cosine(half, np.eye(5) - half), -1, atol=1e-12)
    assert abs(theory.shape_cosine(np.eye(5), one)) < 1e-12  # of I nothing is left, which is no NaN


@pytest.mark.parametrize("rank", [1, 3])
def test_equal_eigenvalues_have_the_effective_rank_of_their_number(rank):
    basis = np.linalg.qr(RANDOM.normal(size=(6, 6)))[0][:rank]
    assert_allclose(theory.effective_rank(7 * basis.T @ basis), rank, atol=1e-9)


def test_the_effective_rank_of_two_eigenvalues_by_hand():
    assert_allclose(theory.effective_rank(jnp.diag(jnp.array([3.0, 1.0]))), 4 / 3**0.75, atol=1e-12)
    assert theory.effective_rank(jnp.zeros((2, 2))) == 1  # of nothing, without a NaN


def test_subspaces_by_hand():
    matrix, plane = jnp.diag(jnp.array([1.0, 5.0, 3.0, 1.0])), jnp.eye(4)[:2]
    assert_allclose(theory.subspace_mass(matrix, plane), 0.6, atol=1e-12)
    assert_allclose(theory.subspace_overlap(matrix, plane), 0.5, atol=1e-12)  # the second of e_2, e_3 is outside


def trained_linear(first, head, target, train_head, steps=4000, rate=0.05):
    """Gradient descent of A W x on the population loss E|Bx - AWx|^2 / 2, with x standard Gaussian."""
    for _ in range(steps):
        residual = target - head @ first
        step = head.T @ residual
        head = head + train_head * rate * residual @ first.T
        first = first + rate * step
    return first, head


def test_both_forms_of_the_ansatz_are_exact_in_linear_networks():
    """Balanced layers have W'W = (B'B)^(1/2), a head of orthonormal rows W'W = B'B: the AGOP of Bx is B'B."""
    target = np.diag([2.0, 1.0, 0.5]) @ np.linalg.qr(RANDOM.normal(size=(4, 4)))[0][:3]
    agop = target.T @ target
    small = 1e-5 * RANDOM.normal(size=(8, 4)), 1e-5 * RANDOM.normal(size=(3, 8))
    balanced, _ = trained_linear(*small, target, 1.0)
    assert_allclose(balanced.T @ balanced, theory.power(jnp.asarray(agop), 0.5), atol=2e-2)  # steps, not a flow
    orthonormal = np.linalg.qr(RANDOM.normal(size=(8, 8)))[0][:3]
    under_head, _ = trained_linear(0 * small[0], orthonormal, target, 0.0)
    assert_allclose(under_head.T @ under_head, agop, atol=1e-10)
    # and neither is the other's
    assert theory.cosine(balanced.T @ balanced, jnp.asarray(agop)) < 0.97
