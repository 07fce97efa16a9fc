r"""Linear regression tasks with Gaussian coefficients, the setting of the errata on two-layer linear networks.

$$\beta_* \sim \mathcal{N}(0, \Sigma_\beta), \qquad y = X \beta_* + \epsilon, \qquad
  \epsilon \sim \mathcal{N}(0, \sigma^2 I)$$
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

N, D, NOISE = 20, 30, 0.25  # n, d, sigma^2


class Tasks(NamedTuple):
    """The inputs that all tasks share, the covariance of their coefficients, and its symmetric root."""

    x: np.ndarray
    covariance: np.ndarray
    root: np.ndarray

    def tasks(self, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (task, d) and labels (task, sample)."""
        truth = rng.standard_normal((count, D)) @ self.root
        return truth, truth @ self.x.T + np.sqrt(NOISE) * rng.standard_normal((count, N))

    def posterior_mean(self, labels: np.ndarray) -> np.ndarray:
        """Of the coefficients given the labels, by conditioning their joint Gaussian law."""
        both = self.x @ self.covariance
        return np.linalg.solve(both @ self.x.T + NOISE * np.eye(N), labels.T).T @ both

    def bayes_risk(self) -> float:
        """The least possible error on fresh inputs, whose covariance is the identity."""
        both = self.x @ self.covariance
        explained = both.T @ np.linalg.solve(both @ self.x.T + NOISE * np.eye(N), both)
        return float(np.trace(self.covariance - explained))

    def ridge(self, layer: np.ndarray, labels: np.ndarray) -> np.ndarray:
        r"""The second layer $\hat\beta(W)$ of each task, with $n\lambda = \sigma^2$."""
        seen = self.x @ layer.T
        return np.linalg.solve(seen.T @ seen + NOISE * np.eye(D), seen.T @ labels.T).T


def drawn(rng: np.random.Generator) -> Tasks:
    """Gaussian inputs, and a covariance with eigenvalues 1/j in a random basis."""
    basis, values = rotation(rng), 1 / np.arange(1, D + 1)
    return Tasks(rng.standard_normal((N, D)), (basis * values) @ basis.T, (basis * np.sqrt(values)) @ basis.T)


def rotation(rng: np.random.Generator) -> np.ndarray:
    """A random orthogonal matrix."""
    return np.linalg.qr(rng.standard_normal((D, D)))[0]
