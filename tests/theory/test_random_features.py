"""The two limiting traces against their equations, limits and matrices; and the errors that follow from them."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import solve_triangular

import featlab as fl
from featlab.core.validation import InputError
from featlab.theory import random_features as theory
from featlab.theory.random_features import Activation

RELU = Activation(1 / 4, 1 / 4 - 1 / (2 * np.pi))  # less its mean


def equations(m1, m2, phi, psi, penalty, activation):
    """The two defining equations, each as the terms that must add up to zero."""
    c, rest, *_ = activation
    last = c * m1 * m2 * (penalty * psi / phi * m1 - 1)
    first = phi * (m1 - m2) * (rest * m1 + c * m2)
    second = phi / psi * c * m1 * m2, phi**2 / psi * (m2 - m1)
    return (first, last), (*second, last)


def settings(count, seed=0):
    """Random proportions, penalties from 1e-6 to 1e2 and activations; some exactly at the peak N = n."""
    rng = np.random.default_rng(seed)
    phi, psi = rng.uniform(0.1, 3, count), rng.uniform(0.1, 3, count)
    psi[::5] = phi[::5]
    penalty = 10 ** rng.uniform(-6, 2, count)
    return phi, psi, penalty, [Activation(*powers) for powers in rng.uniform(0.02, 1, (count, 2))]


def each(count, seed=0):
    return zip(*settings(count, seed))


def test_the_traces_solve_their_equations_on_the_right_branch():
    for phi, psi, penalty, activation in each(200):
        m = theory.traces(phi, psi, penalty, activation)
        for terms in equations(m.m1, m.m2, phi, psi, penalty, activation):
            assert abs(sum(terms)) < 1e-13 * sum(map(abs, terms))
        assert 0 < m.m2 <= m.m1 * (1 + 1e-15)
        assert penalty * psi / phi * m.m1 <= 1
        assert m.dm1 < 0 and m.dm2 < 0


def solved(start, phi, psi, penalty, activation):
    """The same two numbers at the working precision of mpmath, by Newton's method."""

    def system(m1, m2):
        return [sum(terms) for terms in equations(m1, m2, phi, psi, penalty, [mpmath.mpf(c) for c in activation])]

    found = mpmath.findroot(system, tuple(map(mpmath.mpf, start)), tol=1e-60)
    return np.array([found[0], found[1]])


@pytest.mark.parametrize("penalty", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("phi, psi", [(0.5, 0.5), (0.5, 1.3), (1.3, 0.5)], ids=["peak", "narrow", "wide"])
def test_values_and_derivatives_are_those_of_fifty_digits(phi, psi, penalty):
    m = theory.traces(phi, psi, penalty, RELU)
    with mpmath.workdps(50):
        phi, psi, penalty = map(mpmath.mpf, (phi, psi, penalty))
        step = penalty * mpmath.mpf("1e-10")
        before, here, after = (solved(m[:2], phi, psi, penalty + k * step, RELU) for k in (-1, 0, 1))
        slopes = (after - before) / (2 * step)
    assert_allclose(m[:2], here.astype(float), rtol=1e-12)
    assert_allclose(m[2:], slopes.astype(float), rtol=1e-9)


def test_a_large_penalty_is_all_there_is():
    phi, psi = 0.7, 1.9
    m = theory.traces(phi, psi, 1e9, RELU)
    assert_allclose([1e9 * m.m1, 1e9 * m.m2], phi / psi, rtol=1e-8)
    assert_allclose([1e18 * m.dm1, 1e18 * m.dm2], -phi / psi, rtol=1e-8)


@pytest.mark.parametrize("phi, psi", [(0.5, 1.3), (1.3, 0.5)], ids=["narrow", "wide"])
def test_a_small_penalty_meets_the_rank(phi, psi):
    """lambda tr R tends to the share of eigenvalues that are zero: 1 - N/n, or none."""
    m = theory.traces(phi, psi, 1e-9, RELU)
    assert_allclose(1e-9 * psi / phi * m.m1, max(0, 1 - phi / psi), atol=1e-7)


def marchenko_pastur(rows_over_columns, shift):
    """(1/p) tr (Z Z'/q + shift)^-1 for Z of p x q independent entries, p/q = g, from its quadratic."""
    g = rows_over_columns
    b = shift + 1 - g
    return 2 / (b + np.sqrt(b**2 + 4 * g * shift))


def test_features_without_a_linear_part_follow_marchenko_and_pastur():
    phi, psi, penalty, power = 0.6, 0.9, 0.05, 0.4
    m1 = theory.traces(phi, psi, penalty, Activation(1e-14, power)).m1
    spread = power * phi / psi  # F F'/n = c^2 (N/n) Z Z'/N
    assert_allclose(psi / phi * m1, marchenko_pastur(psi / phi, penalty / spread) / spread, rtol=1e-10)


def test_infinitely_many_features_are_a_kernel():
    """F F'/N -> c_1^2 X X'/d + c_{>1}^2 I."""
    phi, psi = 0.6, 1e-9
    for ridge in (0.01, 1.0):
        m = theory.traces(phi, psi, ridge * phi / psi, RELU)
        shift = (RELU.nonlinear + ridge) / RELU.linear
        trace = marchenko_pastur(1 / phi, shift) / RELU.linear
        assert_allclose(m.m1, trace, rtol=1e-6)
        # tr(X' (X X'/d + s)^-1 X)/d = n (1 - s tr/n) by X X'/d = (X X'/d + s) - s, over n by the scaling of R.
        assert_allclose(m.m2, (1 - shift * trace * RELU.linear) / RELU.linear, rtol=1e-6)


def test_arrays_broadcast_and_agree_with_numbers():
    phi, psi, penalty = np.array([[0.5], [2.0]]), 0.8, np.array([1e-4, 1e-2, 1.0])
    together = theory.traces(phi, psi, penalty, RELU)
    assert all(values.shape == (2, 3) for values in together)
    for i, j in np.ndindex(2, 3):
        assert_allclose([one[i, j] for one in together], theory.traces(phi[i, 0], psi, penalty[j], RELU), 1e-12)
    train, test = theory.errors(phi, psi, penalty, RELU, 1.0, 0.5)
    assert train.shape == test.shape == (2, 3)
    assert np.all(np.diff(train, axis=1) > 0)  # more penalty, more training error
    assert np.all(np.diff(np.stack([together.m1, together.m2]), axis=-1) < 0)


def test_double_descent_is_that_of_the_quoted_experiment():
    """Values that were compared with simulations at n = 1200, d = 400; powers 1 and 0.5 + 0.3^2, ReLU."""
    n, d, widths = 1200, 400, np.array([200, 600, 1200, 2400, 6000])
    _, test = theory.errors(d / n, d / widths, 1e-3, RELU, 1.0, 0.59)
    assert_allclose(test, [1.515, 1.759, 4.647, 1.519, 0.991], atol=6e-4)
    _, peak = theory.errors(d / n, d / 1200, 1e-5, RELU, 1.0, 0.59)
    assert_allclose(peak, 41.9, atol=0.06)


def test_the_null_predictor_has_the_power_of_the_labels():
    train, test = theory.errors(0.5, 0.7, 1e8, RELU, 1.3, 0.4)
    assert_allclose([train, test], 1.7, rtol=1e-6)


def grid(activation, phi, psi):
    """Nodes and weights for integrals over the singular values, dense at both ends."""
    x, w = np.polynomial.legendre.leggauss(600)
    angle, reach = (x + 1) * np.pi / 2, 1.02 * theory.edge(phi, psi, activation)
    return reach * (1 - np.cos(angle)) / 2, w * np.pi / 2 * reach * np.sin(angle) / 2


@pytest.mark.parametrize(
    "phi, psi",
    [
        pytest.param(0.5, 0.5, id="square", marks=pytest.mark.slow),
        pytest.param(0.4, 1.3, id="narrow"),
        pytest.param(1.5, 0.5, id="wide", marks=pytest.mark.slow),
    ],
)
def test_the_density_has_mass_one_the_right_power_and_ends_at_the_edge(phi, psi):
    s, weights = grid(RELU, phi, psi)
    values = theory.density(s, phi, psi, RELU)
    assert_allclose(np.sum(weights * values), 1, atol=2e-3)
    # E |F|^2 / n is N c^2, of which each of min(n, N) singular values has its share.
    power = max(1, phi / psi) * (RELU.linear + RELU.nonlinear)
    assert_allclose(np.sum(weights * values * s**2), power, rtol=1e-3)
    edge = theory.edge(phi, psi, RELU)
    inside, outside = theory.density([0.999 * edge, 1.001 * edge], phi, psi, RELU)
    assert inside > 1e-2 and outside < 1e-6


@pytest.mark.parametrize("width", [360, pytest.param(840, marks=pytest.mark.slow)])
def test_edge_and_density_are_those_of_a_matrix(width):
    n, d = 600, 300
    rng = np.random.default_rng(1)
    products = rng.normal(size=(n, d)) @ rng.normal(size=(width, d)).T / np.sqrt(d)
    values = np.linalg.svd(np.maximum(products, 0) - 1 / np.sqrt(2 * np.pi), compute_uv=False) / np.sqrt(n)
    phi, psi = theory.proportions(n, d, width)
    assert_allclose(values[0], theory.edge(phi, psi, RELU), rtol=0.03)
    s, weights = grid(RELU, phi, psi)
    # Of both distribution functions the largest distance; a single matrix has little scatter in it.
    below = np.cumsum(weights * theory.density(s, phi, psi, RELU))
    assert np.max(np.abs(below - np.searchsorted(np.sort(values), s) / len(values))) < 0.015


@pytest.mark.parametrize(
    "function, reason",
    [
        (fl.networks.relu, r"mean zero, E sigma\(Z\) = 0, got 0.3989"),
        (fl.networks.centred(np.square), "c_1 = .* other than 0"),
        (fl.networks.identity, "linear activation have rank d"),
    ],
    ids=["uncentred", "even", "linear"],
)
def test_an_activation_outside_the_theory_is_refused(function, reason):
    with pytest.raises(InputError, match=reason):
        Activation.of(function)


def test_a_centred_activation_is_within_it():
    of_relu = RELU._replace(second=1 / np.sqrt(8 * np.pi))
    assert_allclose(Activation.of(fl.networks.centred(fl.networks.relu)), of_relu, rtol=1e-9)


@pytest.mark.parametrize(
    "changes, reason",
    [
        ({"penalty": 0.0}, "at lambda = 0 the inverse"),
        ({"penalty": -1.0}, "at lambda = 0 the inverse"),
        ({"penalty": np.array([0.1, np.nan])}, "penalty=.* positive and finite"),
        ({"phi": 0.0}, "d/n has a positive limit"),
        ({"phi": np.inf}, "d/n has a positive limit"),
        ({"psi": -0.5}, "d/N has a positive limit"),
        ({"activation": Activation(0.0, 1.0)}, "c_1 = .* other than 0"),
        ({"activation": Activation(1.0, 0.0)}, "linear activation"),
    ],
)
def test_numbers_outside_the_theory_are_refused(changes, reason):
    given = {"phi": 0.5, "psi": 0.7, "penalty": 0.1, "activation": RELU} | changes
    with pytest.raises(InputError, match=reason):
        theory.traces(**given)
    with pytest.raises(InputError, match=reason):
        theory.errors(**given, linear=1.0, other=1.0)


def test_powers_are_not_negative():
    with pytest.raises(InputError, match="powers and cannot be negative"):
        theory.errors(0.5, 0.7, 0.1, RELU, 1.0, -0.1)


def test_sizes_must_pass_for_proportional():
    assert theory.proportions(1000, 500, 250) == (0.5, 2.0)
    assert theory.proportions(1e6, 900, 900) == (900 / 1e6, 1.0)  # too few neurons to learn quadratic functions
    with pytest.warns(theory.OutOfProportion, match="may be off by 18% at n = 1000, d = 100"):
        theory.proportions(1000, 100, 10_000)
    with pytest.raises(InputError, match="in proportion, got n = 4000, d = 100 and width = 10000"):
        theory.proportions(4000, 100, 10_000)
    for sizes in ((0, 10, 10), (10, np.inf, 10), (10, 10, -1)):
        with pytest.raises(InputError, match="finite number of at least 1"):
            theory.proportions(*sizes)


@pytest.mark.parametrize("n, width", [(160, 320), (250, 100)])
def test_test_errors_are_off_by_as_much_as_is_said(n, width):
    """A quadratic teacher, which is partly learnt as n grows to d^2: at d = 40, of both sides of N = n."""
    d, penalty, off = 40, 0.02, theory.quadratic_share(n, 40, width)
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rows, x = rng.normal(size=(width, d)) / np.sqrt(d), rng.normal(size=(n + 1000, d))
        y = x[:, 0] + 0.7 * (x[:, 0] ** 2 - 1) + 0.2 * rng.normal(size=len(x))
        f = np.maximum(x @ rows.T, 0) - 1 / np.sqrt(2 * np.pi)
        head = np.linalg.solve(f[:n].T @ f[:n] + penalty * n * np.eye(width), f[:n].T @ y[:n])
        found.append(np.mean((y[n:] - f[n:] @ head) ** 2))
    _, limit = theory.errors(d / n, d / width, penalty, RELU, 1.0, 2 * 0.7**2 + 0.2**2)
    assert 0.1 < off < 0.2
    assert 1 - np.mean(found) / limit == pytest.approx(off, abs=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_the_traces_are_those_of_large_matrices(seed):
    """tr R and tr(X' R X)/d of one matrix at n = 4000, to a hundredth."""
    rng = np.random.default_rng(seed)
    n = 4000
    d, penalty = int(n * rng.uniform(0.2, 2)), 10 ** rng.uniform(-3, 0)
    width = int(d / rng.uniform(max(0.3, d / 6000), 3))
    inputs = rng.normal(size=(n, d))
    features = np.maximum(inputs @ rng.normal(size=(width, d)).T / np.sqrt(d), 0) - 1 / np.sqrt(2 * np.pi)
    phi, psi = theory.proportions(n, d, width)
    m = theory.traces(phi, psi, penalty, RELU)
    narrow, shift = width < n, penalty * n
    small = features.T @ features if narrow else features @ features.T
    root = np.linalg.cholesky(small + shift * np.eye(len(small)))

    def form(matrix):
        """tr(M' (small + shift I)^-1 M)."""
        return np.sum(solve_triangular(root, matrix, lower=True) ** 2)

    trace, square = form(np.eye(len(small))), form(features.T @ inputs if narrow else inputs)
    if narrow:  # R = (I - F (F'F + shift I)^-1 F') / shift
        trace, square = trace + (n - width) / shift, (np.sum(inputs**2) - square) / shift
    assert_allclose(phi / psi * trace, m.m1, rtol=0.01)
    assert_allclose(phi / psi * square / d, m.m2, rtol=0.01)
