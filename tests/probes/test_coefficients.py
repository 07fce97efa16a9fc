"""Extremes of the coefficients, split by class, against NumPy's on the same numbers."""

import sys
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np

from featlab.probes import coefficient_bounds, signal_learnt_by_each_class

MODULE = sys.modules["featlab.probes.coefficients"]


def test_extremes_are_split_by_class_and_leave_padding_out(monkeypatch):
    draw = np.random.default_rng(0)
    gamma, rho = draw.normal(size=(2, 3)), draw.normal(size=(2, 3, 6))
    labels, mask = np.array([1.0, 1, -1, 1, -1, -1]), np.arange(6) < 5
    rho[:, :, 5] = 100.0
    reading = {"gamma": jnp.asarray(gamma), "rho": jnp.asarray(rho)}
    monkeypatch.setattr(MODULE, "coefficients", lambda view: reading)
    training = SimpleNamespace(labels=jnp.asarray(labels), mask=jnp.asarray(mask))
    view = SimpleNamespace(class_signs=jnp.array([1.0, -1.0]), training=training)

    plus, minus = labels[:5] > 0, labels[:5] < 0
    own = np.concatenate([rho[0, :, :5][:, plus].ravel(), rho[1, :, :5][:, minus].ravel()])
    other = np.concatenate([rho[0, :, :5][:, minus].ravel(), rho[1, :, :5][:, plus].ravel()])
    expected = {"gamma_least": gamma.min(), "gamma_most": gamma.max()}
    for name, values in (("own", own), ("other", other)):
        expected |= {f"rho_{name}_least": values.min(), f"rho_{name}_most": values.max()}
    found = coefficient_bounds.function(view)
    assert set(found) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-6, err_msg=name)
    weaker = signal_learnt_by_each_class.function(view)
    np.testing.assert_allclose(weaker, min(gamma[0].max(), gamma[1].max()), rtol=1e-6)
