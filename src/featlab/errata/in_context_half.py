r"""The threshold and the curvature of the in-context landscape belong to a loss with the factor one half.

Kim and Suzuki (2024). At a critical point that misses one direction of the features, $\mathcal{L} = \frac12
\mathbb{E}\|\cdot\|^2$ is $r^\circ/2$, the theorem's threshold; the loss as printed is $r^\circ$. The bound on
the curvature changes with it, and as printed it fails where the activation is nearly saturated. The curvature is
measured along the mixture $\bar\mu_s$ for one feature, $f^\circ = \tanh(c\,x_1)$, and a student that has learnt
$\tanh(c\,x_2)$ instead, both with second layers of length one.
"""

from __future__ import annotations

import numpy as np

from featlab.claims import at_least, equals
from featlab.errata import _sources
from featlab.errata._erratum import Erratum, over_seeds

FEATURES, NEURONS, POINTS = 3, 12, 2000  # k, of a teacher; inputs
SHIFT = 1e-3  # of s, for a second difference


class InContextHalf(Erratum):
    """The erratum of this file."""

    title = "the strict-saddle theorem of in-context learning is about half the mean squared error"
    source = (
        "“Feature learning theory in multi-task and in-context learning” (T. Suzuki, FIMI 2024), slides “Two "
        "time scale dynamics” (the loss) and “Strict saddle”, Theorem 1 (2)"
    )
    printed = (
        r"\mathcal{L}(\mu) = \mathbb{E}_{x_{qr}} \left[ \left\| f^\circ(x_{qr}) - \Sigma_{\mu^\circ,\mu} "
        r"\Sigma_{\mu,\mu}^{-1} h_\mu(x_{qr}) \right\|^2 \right], \qquad \mathcal{L}(\mu) > \frac{r_0}{2} \ "
        r"\text{and} \ \left. \frac{d^2 \mathcal{L}(\bar{\mu}_s)}{ds^2} \right|_{s=0} \leq "
        r"-\frac{4}{k\|\sigma\|_\infty^2} \mathcal{L}(\mu)^2"
    )
    corrected = (
        r"\mathcal{L}(\mu) = \frac{1}{2} \mathbb{E}_{x_{qr}} \left[ \left\| f^\circ(x_{qr}) - "
        r"\Sigma_{\mu^\circ,\mu} \Sigma_{\mu,\mu}^{-1} h_\mu(x_{qr}) \right\|^2 \right], \qquad "
        r"\mathcal{L}(\mu) \geq \frac{r^\circ}{2} \ \text{and} \ \left. \frac{d^2 "
        r"\mathcal{L}(\bar{\mu}_s)}{ds^2} \right|_{s=0} \leq -\frac{4}{k\|\sigma\|_\infty^2} \mathcal{L}(\mu)^2"
    )
    derivation = (
        r"A feature that is missed costs its variance $r^\circ$ in $\mathbb{E}\|\cdot\|^2$; mixed into a "
        r"direction of variance $v \leq \|\sigma\|_\infty^2$ it is explained up to $s^2 r^{\circ 2}/v$, so the "
        r"second derivative of $\mathbb{E}\|\cdot\|^2$ is $-2 r^{\circ 2}/v$, and that of its half $-4 "
        r"\mathcal{L}^2/v$."
    )
    reference = _sources.MULTI_TASK

    def judge(self, lab, *, printed):
        factor = 1.0 if printed else 0.5
        curvatures = over_seeds(lab, _curvature, factor)
        yield at_least("curvature at the critical point over the theorem's bound, k = 1", curvatures, 1)
        levels = over_seeds(lab, _level, factor)
        yield equals("loss with one of three features missing, over r/2", levels, 1.0)


def _loss(features, student, weights, factor):
    """The loss after the best linear map of the student's features; columns are inputs, with weights."""
    cross = (features * weights) @ student.T
    explained = cross @ np.linalg.solve((student * weights) @ student.T, cross.T)
    return factor * np.trace((features * weights) @ features.T - explained)


def _curvature(rng, factor):
    steep = rng.uniform(2, 6)
    nodes, weights = np.polynomial.hermite_e.hermegauss(64)
    x1, x2 = (one.ravel() for one in np.meshgrid(nodes, nodes))
    weights = np.outer(weights, weights).ravel() / np.sum(weights) ** 2
    truth, learnt = np.tanh(steep * x1)[None], np.tanh(steep * x2)[None]
    before, at, after = (_loss(truth, (1 - s) * learnt + s * truth, weights, factor) for s in (-SHIFT, 0.0, SHIFT))
    largest = 1.0  # of |tanh|
    return -(before - 2 * at + after) / SHIFT**2 * largest**2 / (4 * at**2)


def _level(rng, factor):
    x = rng.standard_normal((5, POINTS))
    raw = np.tanh(rng.standard_normal((FEATURES + 1, NEURONS)) @ np.tanh(rng.standard_normal((NEURONS, 5)) @ x))
    # Features of equal variance, uncorrelated on these inputs: three true ones, and one that is not.
    scale = rng.uniform(0.2, 2)
    every = scale * np.linalg.qr(raw.T)[0].T * np.sqrt(POINTS)
    truth, student = every[:FEATURES], every[1:]
    return _loss(truth, student, np.full(POINTS, 1 / POINTS), factor) / (scale**2 / 2)
