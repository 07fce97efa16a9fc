"""Links of two directions: mean 0 and the variance that their docstrings say, by Gauss-Hermite quadrature."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl

VARIANCES = {"product": 1.0, "two_stairs": 2.0, "sine_and_square": 2 + (1 - np.exp(-2)) / 2, "two_squares": 1.0}


@pytest.mark.parametrize("name", VARIANCES)
def test_mean_and_variance(name):
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()
    z = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    both = np.outer(weights, weights).ravel()
    with jax.enable_x64(True):
        labels = np.asarray(jax.vmap(getattr(fl.data, name))(z))
    assert_allclose(both @ labels, 0, atol=1e-10)
    assert_allclose(both @ labels**2, VARIANCES[name], rtol=1e-9)
