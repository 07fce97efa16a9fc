"""Both spaces keep the promises of their protocol; Span for any d at all."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from featlab.core.space import _CHI_NORMALS, Ambient, Span, _chi, _normals, _uniform_gram
from featlab.core.validation import InputError

pytestmark = pytest.mark.gpu

KEY = jax.random.key(0)


@pytest.mark.parametrize("space", [Ambient(12.0), Span.create(12.0, 5), Span.create(math.inf, 5)])
def test_given_rows_have_the_given_gram_matrix(space):
    gram = jnp.array([[4.0, 1.0], [1.0, 2.0]])
    rows, _ = space.given(gram)
    np.testing.assert_allclose(rows @ rows.T, gram, atol=1e-5)


@pytest.mark.parametrize("degrees", [1, 2, 5, 39, 1000, 1e5])
def test_chi_has_its_law(degrees):
    normals = jax.random.normal(KEY, (100_000, _CHI_NORMALS))
    draws = jax.jit(jax.vmap(_chi, in_axes=(0, None)))(normals, float(degrees))
    assert stats.kstest(np.asarray(draws, float), stats.chi(degrees).cdf).pvalue > 1e-3


@pytest.mark.parametrize("degrees", [0.9e6, 1.1e6, 1e9, 1e12])
def test_chi_keeps_its_mean_and_spread_where_it_turns_normal(degrees):
    normals = jax.random.normal(KEY, (100_000, _CHI_NORMALS))
    draws = np.asarray(jax.jit(jax.vmap(_chi, in_axes=(0, None)))(normals, degrees), float)
    assert abs(draws.mean() / math.sqrt(degrees) - 1) < 1e-5
    assert abs(draws.std() - math.sqrt(0.5)) < 0.02


def test_rows_of_a_stream_do_not_depend_on_how_many_or_how_long_they_are():
    short, long = _normals(KEY, 3, 4), _normals(KEY, 5, 9)
    np.testing.assert_array_equal(short, long[:3, :4])


@pytest.mark.parametrize("d", [40.0, 1e3, 1e12])
def test_gram_matrices_of_gaussian_rows_have_wishart_moments(d):
    def grams(seed):
        signal, space = Span.create(d, 9).given(jnp.eye(1))
        first, space = space.gaussian(jax.random.key(seed), 5, signal)
        second, _ = space.gaussian(jax.random.key(seed + 10**6), 3)
        rows = jnp.concatenate([signal, first, second])
        return rows @ rows.T

    with jax.enable_x64(True):  # squared lengths of 1e12 with a spread of 1e6
        grams = np.asarray(jax.jit(jax.vmap(grams))(jnp.arange(4000)))
    assert np.all(grams[:, 0, 1:6] == 0)  # noise off the signal
    assert stats.kstest(grams[:, 0, 6], "norm").pvalue > 1e-3  # weights see the signal as N(0, 1)
    off = grams[:, 2, 7] / math.sqrt(d)  # noise and weights: variance d - 1, normal for large d
    assert abs(off.std() - math.sqrt((d - 1) / d)) < 0.05 and abs(off.mean()) < 0.06
    lengths = {5: d - 1, 8: d}  # the last rows of each block, with the most frame entries
    for row, degrees in lengths.items():
        z = (grams[:, row, row] - degrees) / math.sqrt(2 * degrees)
        assert abs(z.mean()) < 0.08 and abs(z.std() - 1) < 0.08, (row, z.mean(), z.std())


def test_uniform_rows_have_the_law_of_stored_ones():
    d, count = 300.0, 3

    def span(seed):
        signal, space = Span.create(d, 4).given(jnp.eye(1))
        rows, _ = space.uniform(jax.random.key(seed), count)
        return rows @ rows.T, rows[:, 0]

    def ambient(seed):
        signal, space = Ambient(d).given(jnp.eye(1))
        rows, _ = space.uniform(jax.random.key(seed), count)
        return rows @ rows.T, rows[:, 0]

    (gram, first), (gram_stored, first_stored) = (
        jax.tree.map(np.asarray, jax.jit(jax.vmap(f))(jnp.arange(seeds, seeds + 3000)))
        for f, seeds in ((span, 0), (ambient, 10**6))
    )
    for i in range(count):
        assert stats.ks_2samp(first[:, i], first_stored[:, i]).pvalue > 1e-3
        for j in range(i + 1):
            assert stats.ks_2samp(gram[:, i, j], gram_stored[:, i, j]).pvalue > 1e-3


def test_the_limit_of_the_uniform_gram_matrix_has_its_moments():
    d = 4e6
    grams = np.asarray(
        jax.jit(jax.vmap(lambda s: _uniform_gram(jax.random.key(s), 2, d)))(jnp.arange(4000)), float
    )
    z = np.stack([(grams[:, 0, 0] - d / 3) / math.sqrt(4 * d / 45), grams[:, 0, 1] / math.sqrt(d / 9)])
    assert np.all(abs(z.mean(axis=1)) < 0.07) and np.all(abs(z.std(axis=1) - 1) < 0.05)


@pytest.mark.parametrize("unit_norm", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("d", [30.0, pytest.param(1e6, marks=pytest.mark.slow)])
def test_fresh_products_have_the_gram_matrix_of_the_weights(d, unit_norm):
    space = Span.create(d, 9)
    directions, space = space.given(jnp.eye(2))
    weights, space = space.gaussian(KEY, 4)
    products = space.fresh_products(jax.random.key(1), weights, 200_000, directions, unit_norm=unit_norm)
    kept = weights.at[:, :2].set(0)
    expected = kept @ kept.T / (d if unit_norm else 1)
    scale = jnp.max(expected)
    np.testing.assert_allclose(products.T @ products / 200_000 / scale, expected / scale, atol=0.02)
    vectors = space.fresh(jax.random.key(2), 200_000, directions, unit_norm=unit_norm)
    by_vectors = vectors @ weights.T
    np.testing.assert_allclose(by_vectors.T @ by_vectors / 200_000 / scale, expected / scale, atol=0.02)


def test_fresh_vectors_have_their_whole_length_with_the_residual():
    d = 50.0
    weights, space = Span.create(d, 4).gaussian(KEY, 4)
    rows, residual = space.fresh(jax.random.key(3), 20_000, with_residual=True)
    squared = np.asarray(jnp.sum(rows**2, axis=1) + residual**2, float)
    assert stats.kstest(squared, stats.chi2(d).cdf).pvalue > 1e-3


def test_at_infinite_dimension_products_are_those_of_the_limit():
    space = Span.create(math.inf, 12)
    signal, space = space.given(jnp.eye(1))
    noise, space = space.gaussian(KEY, 6, signal, unit_norm=True)
    np.testing.assert_array_equal(noise @ noise.T, jnp.eye(6))
    weights, space = space.gaussian(jax.random.key(1), 5)
    fresh = space.fresh_products(jax.random.key(2), 0.3 * weights, 100_000, unit_norm=True)
    np.testing.assert_allclose(fresh.T @ fresh / 100_000, 0.09 * jnp.eye(5), atol=0.003)
    learnt = noise[:5]  # what training adds to weights sees fresh noise as exactly 0
    np.testing.assert_array_equal(space.fresh_products(jax.random.key(2), learnt, 10, unit_norm=True), 0)
    with pytest.raises(InputError, match="infinite"):
        space.norms(weights)
    with pytest.raises(InputError, match="infinitely long"):
        space.fresh(KEY, 3)


def test_what_cannot_be_drawn_is_refused():
    _, drawn = Span.create(1e6, 9).gaussian(KEY, 2)
    with pytest.raises(InputError, match="before any Gaussian row"):
        drawn.given(jnp.eye(1))
    with pytest.raises(InputError, match="before any Gaussian row"):
        drawn.uniform(KEY, 1)
    with pytest.raises(InputError, match="room for 9 vectors"):
        drawn.gaussian(KEY, 8)
    with pytest.raises(InputError, match="whole number"):
        Ambient(2.5)
    with pytest.raises(InputError, match="whole number"):
        Ambient(math.inf)
