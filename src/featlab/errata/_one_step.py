r"""The setting of the errata on one gradient step: that of the talk, with the network $f = a^\top \sigma(Wx)$.

$$x \sim \mathcal{N}(0, I_d), \qquad y = H_1(\beta_\star^\top x) + q\, H_2(\beta_\star^\top x) + \varepsilon,
  \qquad a \sim \mathcal{N}(0, I_N/N), \qquad W_0 \sim \mathcal{N}(0, 1/d)$$

The teacher's direction has length one, and the student's activation is the centred ReLU.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse.linalg

from featlab.claims import Size
from featlab.theory import hermite, one_step, random_features

PHI, RATIO = 0.5, 0.4  # d/n, N/n
PSI = PHI / RATIO  # d/N
SIZES_OF_GAINS = {
    "tiny": Size(seeds=3, n=60),
    "smoke": Size(seeds=24, n=800),
    "laptop": Size(seeds=48, n=1000),
    "full": Size(seeds=128, n=2000),
}


def activation(z):
    """ReLU less its mean."""
    return np.maximum(z, 0) - 1 / np.sqrt(2 * np.pi)


COEFFICIENTS = hermite.coefficients(activation, 2)  # c_0, c_1, c_2
STUDENT = random_features.Activation.of(activation)


class Drawn(NamedTuple):
    """A teacher, a start, and the training set of the step."""

    direction: np.ndarray
    start: np.ndarray
    head: np.ndarray
    x: np.ndarray
    y: np.ndarray

    def gradient(self, residual: np.ndarray) -> np.ndarray:
        r"""Minus the gradient in $W$ of $\frac{1}{2n} |y - f|^2$ at the start, for these residuals."""
        active = self.x @ self.start.T > 0
        return (residual[:, None] * active * self.head).T @ self.x / len(self.x)


def drawn(rng: np.random.Generator, n: int, quadratic: float = 0.0, noise: float = 1.0) -> Drawn:
    """Of n samples, with dimension and width in proportion."""
    d, width = round(PHI * n), round(RATIO * n)
    direction = rng.standard_normal(d)
    direction /= np.linalg.norm(direction)
    start, head = rng.standard_normal((width, d)) / np.sqrt(d), rng.standard_normal(width) / np.sqrt(width)
    return Drawn(direction, start, head, *_samples(rng, n, direction, quadratic, noise))


def _samples(rng, n, direction, quadratic, noise):
    x = rng.standard_normal((n, len(direction)))
    s = x @ direction
    return x, s + quadratic * (s**2 - 1) + noise * rng.standard_normal(n)


def norm(matrix: np.ndarray) -> float:
    """The largest singular value."""
    begin = np.ones(min(matrix.shape))
    found: Any = scipy.sparse.linalg.svds(matrix, k=1, v0=begin, return_singular_vectors=False)
    return float(found[0])


def teacher(quadratic: float, noise: float) -> one_step.Teacher:
    """What the theory sees of the labels."""
    return one_step.Teacher((1.0, quadratic), 1 + 2 * quadratic**2, noise**2)


def errors_on_fresh_inputs(
    rng: np.random.Generator, n: int, quadratic: float, noise: float, penalty: float
) -> list[float]:
    r"""Test errors of ridge regression with 0, 1 and 2 strong spikes, in the limits that the talk works with.

    $F_0$ is replaced by $c_1 \tilde X W_0^\top + c_{>1} Z$, and $\beta$ has its limiting length and angle with
    $\beta_\star$. The error on fresh inputs is then an exact function of the head, by the moments of $\beta^\top
    x$ and $\beta_\star^\top x$.
    """
    d, width = round(PHI * n), round(RATIO * n)
    start, spike = rng.standard_normal((width, d)) / np.sqrt(d), rng.standard_normal(width) / np.sqrt(width)
    direction, learnt = np.eye(2, d)  # by rotation; the second is any direction beside the teacher's
    learnt = direction + np.sqrt(one_step.squared_length(PHI, teacher(quadratic, noise)) - 1) * learnt
    x, y = _samples(rng, n, direction, quadratic, noise)
    first, rest = COEFFICIENTS[1], np.sqrt(STUDENT.nonlinear)
    features = first * x @ start.T + rest * rng.standard_normal((n, width))
    strong = 300.0  # the step: spikes 30 times and more as long as the bulk
    strengths, errors = np.zeros(2), []
    for spikes in (0, 1, 2):
        if spikes:
            strengths[spikes - 1] = first**spikes * COEFFICIENTS[spikes] * strong**spikes
            features = features + strengths[spikes - 1] * np.outer((x @ learnt) ** spikes, spike**spikes)
        head = np.linalg.solve(features.T @ features + penalty * n * np.eye(width), features.T @ y)
        # The fit is linear(x) + bend (learnt'x)^2 + a Gaussian number; Wick's formula gives its mean square error.
        linear = first * start.T @ head + strengths[0] * (head @ spike) * learnt
        bend = strengths[1] * (head @ spike**2)
        shared, length = (direction @ learnt) ** 2, learnt @ learnt
        bent = 2 * quadratic**2 - 4 * quadratic * bend * shared + 3 * bend**2 * length**2
        errors.append(np.sum((direction - linear) ** 2) + bent + STUDENT.nonlinear * head @ head + noise**2)
    return errors
