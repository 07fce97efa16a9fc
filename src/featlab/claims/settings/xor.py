"""Linear classifiers on exclusive-or data: their errors, in closed form or by quadrature."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import scipy.special
import scipy.stats

from featlab.data import XorSignalNoise

_NODES = 40  # of the quadrature over the noise


def classifier_error(on_signal: np.ndarray, on_noise: float, *, bias: float) -> float:
    r"""$P(y(\langle\theta, x\rangle + b) \le 0)$ of a linear classifier, from its products with signals and noise.

    `on_signal` are the products of $\theta$'s first patch with the two signals, `on_noise` is the length of its
    second patch. The data model itself puts the inputs together, over all its coins and a quadrature in the noise.
    """
    model = XorSignalNoise(n=1, d=2, signal_norm=1.0)
    nodes, weights = scipy.special.roots_hermitenorm(_NODES)
    weights = weights / weights.sum()
    wrong = 0.0
    for label in (1.0, -1.0):
        for sign in (1.0, -1.0):
            signals = jnp.asarray(on_signal[:, None] * np.ones(_NODES))
            noise = jnp.asarray((on_noise * nodes)[None])
            patches = model.compose(jnp.asarray(label), (False, sign), signals, noise)
            margin = label * (np.sum(np.array(patches, np.float64), axis=0) + bias)
            wrong += 0.25 * float(weights @ (0.5 * (margin == 0) + (margin < 0)))
    return wrong


def random_classifier_error(seed: int) -> float:
    """The error of a random linear classifier through the origin."""
    normals = np.random.default_rng(seed).normal(size=3)
    return classifier_error(normals[:2], abs(normals[2]), bias=0.0)


def best_with_bias() -> float:
    r"""The smallest error of any linear classifier with a bias, noise included.

    With products $\alpha_\pm$ with the signals, bias b and noise of unit length in the projection, the error is
    $\frac14 \sum_{y, s} \Phi(-y (s \alpha_y + b))$; by symmetry $\alpha_\pm \ge 0$.
    """
    grid = np.concatenate([[0.0], np.geomspace(1e-2, 1e3, 80)])
    plus, minus, bias = np.meshgrid(grid, grid, np.concatenate([-grid[::-1], grid]), indexing="ij", sparse=True)
    phi = scipy.stats.norm.cdf
    error = (phi(-(plus + bias)) + phi(plus - bias) + phi(minus + bias) + phi(bias - minus)) / 4
    return float(error.min())
