r"""Gradient descent on the two-layer CNN of the signal-noise slides, written out in NumPy.

$$f = F_1 - F_{-1}, \qquad F_j = \frac1m \sum_r \sum_p \max(0, \langle w_{j,r}, x^{(p)} \rangle)^q, \qquad
  x = [y\mu, \xi], \qquad L_S = \frac1n \sum_i \log(1 + e^{-\tilde y_i f_i})$$
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

CLASSES = np.array([1.0, -1.0])  # j


@dataclasses.dataclass
class Run:
    """A training set, weights at the start and now, all in the same coordinates."""

    signal: np.ndarray  # (D,)
    noise: np.ndarray  # (sample, D)
    clean: np.ndarray  # (sample,), y
    labels: np.ndarray  # (sample,), those that the loss sees
    start: np.ndarray  # (class, filter, D)
    noise_scale: float  # sigma, of fresh noise in each coordinate
    power: float = 1  # q
    weights: np.ndarray = dataclasses.field(init=False)

    def __post_init__(self):
        self.weights = self.start.copy()

    @property
    def patches(self) -> np.ndarray:
        """(patch, sample, D)."""
        return np.stack([self.clean[:, None] * self.signal, self.noise])

    def outputs(self, patches: np.ndarray) -> np.ndarray:
        """f, for inputs with dims (patch, sample, D)."""
        _, width, size = self.weights.shape
        products = self.weights.reshape(-1, size) @ patches.reshape(-1, size).T
        values = np.maximum(products, 0) ** self.power
        by_patch = np.repeat(CLASSES, width) @ values / width
        return by_patch.reshape(len(patches), -1).sum(axis=0)

    def slopes(self) -> np.ndarray:
        r"""$\ell_i'$."""
        return -1 / (1 + np.exp(self.labels * self.outputs(self.patches)))

    def step(self, rate: float, times: int = 1) -> None:
        """So many steps of gradient descent on all samples."""
        classes, width, size = self.weights.shape
        flat = self.patches.reshape(-1, size)  # (patch and sample, D)
        head = np.repeat(CLASSES, width)[:, None] / width
        labels, weights = np.tile(self.labels, 2), self.weights.reshape(-1, size)
        for _ in range(times):
            products = np.maximum(weights @ flat.T, 0)
            if self.power == 1:
                values, slopes = products, (products > 0).astype(float)
            else:
                slopes = products ** (self.power - 1)
                values, slopes = slopes * products, self.power * slopes
            by_patch = head[:, 0] @ values
            outputs = by_patch[: len(self.labels)] + by_patch[len(self.labels) :]
            push = labels / (1 + np.exp(labels * np.tile(outputs, 2))) / len(self.labels)
            weights = weights + rate * ((head * slopes * push) @ flat)
        self.weights = weights.reshape(classes, width, size)

    def fitted(self) -> np.ndarray:
        """Whether each sample has the sign of its label."""
        return self.labels * self.outputs(self.patches) > 0

    def error(self, rng: np.random.Generator, noise: np.ndarray) -> float:
        """The share of inputs with this noise beside a signal of random sign that are misread."""
        y = rng.choice([-1.0, 1.0], len(noise))
        return float(np.mean(y * self.outputs(np.stack([y[:, None] * self.signal, noise])) <= 0))

    def spurious_error(self) -> float:
        """The share of inputs that are misread among all with a training noise beside a signal of either sign."""
        signal = np.tile(self.signal, (len(self.noise), 1))
        margins = [y * self.outputs(np.stack([y * signal, self.noise])) for y in CLASSES]
        return float(np.mean(np.array(margins) <= 0))

    def fresh_noise(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Noise that was not trained on, orthogonal to the signal."""
        return _orthogonal(self.noise_scale * rng.standard_normal((count, len(self.signal))), self.signal)


def drawn(
    rng: np.random.Generator,
    *,
    n: int,
    d: int,
    width: int,
    signal_norm: float,
    noise_scale: float,
    init_scale: float,
    power: float = 1,
    flipped: int = 0,
) -> Run:
    """A training set with noise orthogonal to the signal, balanced classes, and `flipped` wrong labels in each.

    Descent never leaves the span of what was drawn, so where d is larger all is turned into coordinates of that
    span.
    """
    signal = signal_norm * np.eye(1, d)[0]
    noise = _orthogonal(noise_scale * rng.standard_normal((n, d)), signal)
    start = init_scale * rng.standard_normal((2 * width, d))
    if d > 1 + n + 2 * width:
        rows = np.concatenate([signal[None], noise, start])
        rows = np.linalg.cholesky(rows @ rows.T)
        signal, noise, start = rows[0], rows[1 : n + 1], rows[n + 1 :]
    clean = np.tile(CLASSES, math.ceil(n / 2))[:n]
    labels = clean.copy()
    for j in CLASSES:
        labels[rng.choice(np.flatnonzero(clean == j), flipped, replace=False)] *= -1
    return Run(signal, noise, clean, labels, start.reshape(2, width, -1), noise_scale, power)


def _orthogonal(rows: np.ndarray, to: np.ndarray) -> np.ndarray:
    return rows - np.outer(rows @ to, to) / (to @ to)
