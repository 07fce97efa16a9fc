"""Losses: plain elementwise functions of outputs and labels that refuse unequal shapes."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from featlab.core.validation import InputError


def hinge(outputs, labels):
    r"""$\ell(f, y) = \max(0, 1 - yf)$, with the subgradient $0$ at the margin $yf = 1$."""
    _same_shape(outputs, labels)
    return jax.nn.relu(1 - labels * outputs)


def logistic(outputs, labels):
    r"""$\ell(f, y) = \log(1 + e^{-yf})$."""
    _same_shape(outputs, labels)
    return jax.nn.softplus(-labels * outputs)


def squared(outputs, labels):
    r"""$\ell(f, y) = \frac12 (f - y)^2$."""
    _same_shape(outputs, labels)
    return (outputs - labels) ** 2 / 2


def _same_shape(outputs, labels):
    if jnp.shape(outputs) != jnp.shape(labels):
        raise InputError(
            f"A loss needs outputs and labels of one shape, got {jnp.shape(outputs)} and {jnp.shape(labels)}."
        )
