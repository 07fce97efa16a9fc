r"""The first layer of a linear network as a metric: what the claims on K. Suzuki and T. Suzuki (2024) share.

Tasks $\beta \sim N(0, \Sigma_\beta)$ with noise $\sigma^2$ share the inputs $X$. The criterion $R(W)$ has the
weight $\sigma'^2$ on the degrees of freedom; for infinitely many tasks it is a function of $X$ and $W$ alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from featlab.data import power_law, spiked
from featlab.theory import ridge

REFERENCE = """@inproceedings{suzuki2024optimal,
  title     = {Optimal Criterion for Feature Learning of Two-Layer Linear Neural Network in High Dimensional Interpolation Regime},
  author    = {Suzuki, Keita and Suzuki, Taiji},
  booktitle = {International Conference on Learning Representations},
  year      = {2024}
}"""  # noqa: E501
INFINITE = 1e8  # of K on what the hard threshold keeps, in units of n lambda: an error of 1e-8


class Example(NamedTuple):
    """A sequence of problems, one for each n: those of the paper in which ridge regression fails."""

    spectrum: Callable  # of n: the law of lambda_j
    target: Callable  # of n: the law of nu_j
    flat: Callable  # of n: 1 for every j, in the same words as the target, so that one program does for both
    growth: int  # d = n^growth
    rate: float  # of the risk with W'W = Sigma_beta
    rivals: tuple[float, ...]  # no gain; the other example's rate

    def directions(self, n: int) -> tuple[Any, Any, np.ndarray]:
        """Eigenvalues, variances of the coefficients and multiplicities, blocks ending where a law does."""
        j, times = ridge.index_blocks(n**self.growth, width=1e-2, breaks=(n - 1, n))
        return self.spectrum(n)(j), self.target(n)(j), times


EXAMPLES = {
    "harmful": Example(
        spectrum=lambda n: power_law(1.0, floor=1 / n),
        target=lambda n: power_law(2.0),
        flat=lambda n: power_law(0.0),
        growth=3,
        rate=-2 / 3,
        rivals=(0.0, -1 / 2),
    ),
    "misaligned": Example(
        spectrum=lambda n: power_law(1.0),
        target=lambda n: spiked(1.0, at=n, height=n),
        flat=lambda n: spiked(0.0, at=n, height=1.0),
        growth=2,
        rate=-1 / 2,
        rivals=(0.0, -2 / 3),
    ),
}


def noise_edge(noise: float, n: int, tasks: int) -> float:
    r"""$\sigma^2 (1 + \sqrt{n/m})^2$, the upper edge of the spectrum of m tasks that are nothing but noise."""
    return noise * (1 + np.sqrt(n / tasks)) ** 2


def noise_kept(rng: np.random.Generator, noise: float, n: int, tasks: int) -> float:
    """The largest eigenvalue of the second moments of tasks that are nothing but noise, in units of the edge."""
    labels = np.sqrt(noise) * rng.standard_normal((n, tasks))
    moments = labels @ labels.T if n <= tasks else labels.T @ labels  # the same largest eigenvalue
    return float(np.linalg.eigvalsh(moments)[-1] / tasks / noise_edge(noise, n, tasks))


class ManyTasks:
    r"""Inputs and infinitely many tasks with $\Sigma_\beta = \mathrm{diag}(\text{target})$.

    `excess` is $\sigma'^2 / \sigma^2$.
    """

    def __init__(self, x: np.ndarray, target: np.ndarray, *, noise: float, excess: float):
        self.x, self.target, self.noise, self.excess = x, target, noise, excess
        self.n, self.d = x.shape
        self.seen = (x * target) @ x.T  # X Sigma_beta X'
        self.values, self.vectors = np.linalg.eigh(self.seen / self.n)
        self.level = (excess - 1) * noise / self.n
        self.least = float(np.sum(np.minimum(self.values, self.level)))  # of R(W) - sigma^2, over all W

    def criterion(self, layer: np.ndarray, penalties: Any) -> Any:
        """R(W) - sigma^2, for one penalty or many."""
        features = self.x @ layer.T
        values, vectors = np.linalg.eigh(features @ features.T)
        energy = np.sum(vectors * (self.seen @ vectors), axis=0) + self.noise
        levels = self.n * np.asarray(penalties)[..., None]
        kept = np.maximum(values, 0) / (np.maximum(values, 0) + levels)
        return np.mean((1 - kept) * energy + self.excess * self.noise * kept, axis=-1) - self.noise

    def kept(self) -> np.ndarray:
        """The eigenvectors of the tasks' second moments that a hard threshold keeps."""
        return self.vectors[:, self.values > self.level]

    def hard_threshold(self, penalty: float) -> np.ndarray:
        """The first layer of least criterion: K is a multiple of the projection on what is kept."""
        size = np.sqrt(INFINITE * self.n * penalty)
        return size * self.kept().T @ np.linalg.solve(self.x @ self.x.T, self.x)

    def lowest_of_others(self, rng: np.random.Generator) -> float:
        """Of the identity, the tasks' covariance and a random W, each with its best penalty on a grid."""
        layers = [np.eye(self.d), np.diag(np.sqrt(self.target))]
        layers.append(rng.standard_normal((self.d, self.d)) / np.sqrt(self.d))
        grid = self.level * 10.0 ** np.arange(-3, 4)
        return float(min(np.min(self.criterion(layer, grid)) for layer in layers))

    def risk_at_the_threshold(self, spectrum: np.ndarray) -> float:
        """The error on fresh inputs of variances `spectrum` at the first layer of least criterion."""
        kept = self.kept()
        estimator = np.linalg.solve(self.x @ self.x.T, self.x).T @ kept @ kept.T  # beta-hat = estimator @ y
        error = (estimator.T * spectrum) @ estimator
        bias = np.sum(spectrum * self.target)
        bias -= 2 * np.sum((spectrum * self.target)[:, None] * estimator * self.x.T)
        bias += np.sum(error * self.seen)
        return float(bias + self.noise * np.trace(error))


def ridge_difference(
    x: np.ndarray, penalty: float, metric: Callable[[np.ndarray], np.ndarray], rng: np.random.Generator
) -> float:
    """Between ridge on Wx and ridge on x with the penalty measured by the inverse of `metric(W)`; W is random."""
    n, d = x.shape
    left, right = (np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(2))
    layer = left @ np.diag(np.geomspace(1, 0.1, d)) @ right
    labels = rng.standard_normal(n)
    features = x @ layer.T
    head = np.linalg.solve(features.T @ features + n * penalty * np.eye(d), features.T @ labels)
    direct = np.linalg.solve(x.T @ x + n * penalty * np.linalg.inv(metric(layer)), x.T @ labels)
    return float(np.max(np.abs(layer.T @ head - direct)) / np.max(np.abs(direct)))
