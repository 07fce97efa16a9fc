"""Sparse parities: the law of inputs and labels."""

import jax
import numpy as np
import pytest

import featlab as fl
from featlab.core.space import Ambient


def drawn(count, d=37, k=3):
    model, space = fl.data.SparseParity(n=5, d=d, k=k), Ambient(float(d))
    truth, space = model.truth(jax.random.key(0), space)
    return model.fresh(jax.random.key(1), truth, space, count)


def test_labels_are_the_product_of_the_relevant_coordinates():
    batch = drawn(500)
    x = np.asarray(batch.inputs[:, 0])
    assert x.shape == (500, 37) and set(np.unique(x)) == {-1, 1}
    np.testing.assert_array_equal(batch.labels, x[:, 0] * x[:, 1] * x[:, 2])
    np.testing.assert_array_equal(batch.labels, batch.clean_labels)


def test_coordinates_are_fair_and_pairwise_independent():
    count = 40_000
    x = np.asarray(drawn(count).inputs[:, 0])
    gram = x.T @ x / count - np.eye(37)
    assert np.abs(np.mean(x, axis=0)).max() < 4.5 / count**0.5
    assert np.abs(gram).max() < 5 / count**0.5
    # Rows differ, also in their last word of coin flips.
    assert len(np.unique(x[:100], axis=0)) == 100 and np.abs(np.mean(x[1:] * x[:-1])) < 5 / (37 * count) ** 0.5


@pytest.mark.parametrize("fields", [{"d": 4, "k": 5}, {"d": 40, "k": 0}])
def test_there_are_no_more_relevant_coordinates_than_coordinates(fields):
    with pytest.raises(fl.InputError, match="SparseParity.k must be"):
        fl.data.SparseParity(n=4, **fields)
