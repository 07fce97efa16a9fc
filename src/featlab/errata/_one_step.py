r"""The setting of the errata on one gradient step: that of the talk, with the network $f = a^\top \sigma(Wx)$.

$$x \sim \mathcal{N}(0, I_d), \qquad y = H_1(\beta_\star^\top x) + q\, H_2(\beta_\star^\top x) + \varepsilon,
  \qquad a \sim \mathcal{N}(0, I_N/N), \qquad W_0 \sim \mathcal{N}(0, 1/d)$$

The teacher's direction has length one, and the student's activation is the centred ReLU.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse.linalg
import scipy.special

from featlab.claims import Size
from featlab.theory import hermite, one_step, random_features

PHI, RATIO = 0.5, 0.4  # d/n, N/n
SIZES_OF_GAINS = {
    "tiny": Size(seeds=3, n=60),
    "smoke": Size(seeds=24, n=1200),
    "laptop": Size(seeds=48, n=1600),
    "full": Size(seeds=64, n=2400),
}
STRONG = 300.0  # eta: spikes far longer than the bulk
TESTS = 2  # fresh inputs for each that is trained on
LATTICE = 1.324717957244746 ** np.array([-1, -2])  # a root of g^3 = g + 1


def activation(z):
    """ReLU less its mean."""
    return np.maximum(z, 0) - 1 / np.sqrt(2 * np.pi)


COEFFICIENTS = hermite.coefficients(activation, 2)  # c_0, c_1, c_2
STUDENT = random_features.Activation.of(activation)


class Drawn(NamedTuple):
    """A start, and the training set of the step."""

    start: np.ndarray
    head: np.ndarray
    x: np.ndarray
    y: np.ndarray

    def gradient(self, residual: np.ndarray) -> np.ndarray:
        r"""Minus the gradient in $W$ of $\frac{1}{2n} |y - f|^2$ at the start, for these residuals."""
        active = self.x @ self.start.T > 0
        return (residual[:, None] * active * self.head).T @ self.x / len(self.x)


def drawn(rng: np.random.Generator, n: int) -> Drawn:
    """Of n samples, with dimension and width in proportion; a linear teacher with noise, the talk's setting 1."""
    d, width = round(PHI * n), round(RATIO * n)
    direction = rng.standard_normal(d)
    direction /= np.linalg.norm(direction)
    start, head = rng.standard_normal((width, d)) / np.sqrt(d), rng.standard_normal(width) / np.sqrt(width)
    x = rng.standard_normal((n, d))
    return Drawn(start, head, x, x @ direction + rng.standard_normal(n))


def norm(matrix: np.ndarray) -> float:
    """The largest singular value."""
    begin = np.ones(min(matrix.shape))
    found: Any = scipy.sparse.linalg.svds(matrix, k=1, v0=begin, return_singular_vectors=False)
    return float(found[0])


class Ridge(NamedTuple):
    """Sizes in proportion, labels, and a penalty: ridge regression on features with explicit spikes."""

    phi: float  # d/n
    ratio: float  # N/n
    quadratic: float  # q
    noise: float  # sigma_eps
    penalty: float  # lambda

    @property
    def psi(self) -> float:
        """d/N."""
        return self.phi / self.ratio

    @property
    def teacher(self) -> one_step.Teacher:
        """What the theory sees of the labels."""
        return one_step.Teacher((1.0, self.quadratic), 1 + 2 * self.quadratic**2, self.noise**2)

    @property
    def bracket(self) -> float:
        r"""$b = c_{\star,1}^2 + \phi (c_\star^2 + \sigma_\varepsilon^2)$, the limit of $|\beta|^2$."""
        return float(one_step.squared_length(self.phi, self.teacher))

    def traces(self, penalty: float | None = None) -> Any:
        """m_1, m_2 and their derivatives."""
        return random_features.traces(self.phi, self.psi, self.penalty if penalty is None else penalty, STUDENT)


def errors_on_fresh_inputs(rng: np.random.Generator, n: int, setting: Ridge, unit_rows: bool) -> list[float]:
    r"""Test errors, less the noise, of ridge regression on the untrained features with 0, 1 and 2 strong spikes.

    Features are $\sigma(\tilde X W_0^\top)$, a spike is $c_1^k c_k \eta^k (\tilde X \beta)^{\circ k} (a^{\circ
    k})^\top$, and $\beta$ has its limiting length and angle with $\beta_\star$.
    """
    d, width = round(setting.phi * n), round(setting.ratio * n)
    start, head = rng.standard_normal((width, d)) / np.sqrt(d), rng.standard_normal(width) / np.sqrt(width)
    if unit_rows:
        start /= np.linalg.norm(start, axis=1, keepdims=True)
    x = np.concatenate([_inputs(rng, n, d), _inputs(rng, TESTS * n, d)])
    s, learnt = x[:, 0], x[:, 0] + np.sqrt(setting.bracket - 1) * x[:, 1]
    labels = s + setting.quadratic * (s**2 - 1)
    noisy = labels[:n] + setting.noise * rng.standard_normal(n)
    features, errors = activation(x @ start.T), []
    for k in (0, 1, 2):
        if k:
            spike = (COEFFICIENTS[1] * STRONG * head) ** k * COEFFICIENTS[k]
            features = features + np.outer(learnt**k, spike)
        seen = features[:n]
        found = np.linalg.solve(seen.T @ seen + setting.penalty * n * np.eye(width), seen.T @ noisy)
        errors.append(np.mean((labels[n:] - features[n:] @ found) ** 2))
    return errors


def _inputs(rng, n, d):
    """Gaussian inputs whose first two coordinates, where the teacher and what is learnt lie, are spread evenly.

    They come from a lattice with a random shift: the law, with little scatter.
    """
    x = rng.standard_normal((n, d))
    x[:, :2] = scipy.special.ndtri((rng.uniform(size=2) + np.outer(np.arange(n), LATTICE)) % 1)
    return x
