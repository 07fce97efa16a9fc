"""The losses against hand values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from featlab.core.validation import InputError
from featlab.objectives import hinge, logistic, squared


def test_the_hinge_and_its_slope_by_hand():
    outputs, labels = jnp.array([-2.0, 0.0, 0.5, 1.0, 3.0, -3.0]), jnp.array([1.0, 1.0, 1.0, 1.0, 1.0, -1.0])
    np.testing.assert_allclose(hinge(outputs, labels), [3, 1, 0.5, 0, 0, 0])
    slopes = jax.vmap(jax.grad(hinge))(outputs, labels)
    np.testing.assert_allclose(slopes, [-1, -1, -1, 0, 0, 0])


def test_the_hinge_lies_above_the_error():
    outputs = jnp.linspace(-3, 3, 61)
    for label in (-1.0, 1.0):
        labels = jnp.full_like(outputs, label)
        assert jnp.all(hinge(outputs, labels) >= (outputs * label < 0))


@pytest.mark.parametrize("loss", [hinge, logistic, squared])
def test_a_loss_refuses_unequal_shapes(loss):
    with pytest.raises(InputError, match="one shape"):
        loss(jnp.zeros(3), jnp.zeros((3, 1)))
