r"""Ridge regression on inputs that are not Gaussian: its risk, exactly given the inputs.

$x = g\, \mathrm{diag}(\lambda)^{1/2} z$ with independent coordinates $z_j$, and one factor $g$ for each input.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

COORDINATES: dict[str, Callable[[np.random.Generator, tuple[int, int]], Any]] = {
    "signs": lambda rng, shape: rng.integers(0, 2, shape, np.int8) * 2.0 - 1,
    "uniform": lambda rng, shape: np.sqrt(3) * (2 * rng.random(shape) - 1),
}
SQUARES = (0.1, 1.9)  # g^2 where inputs share a factor: each half the time, one on average


def risks(
    rng: np.random.Generator,
    law: str,
    n: int,
    spectrum: Any,
    target: Any,
    penalties: Any,
    noise: float,
    shared: bool,
) -> list[float]:
    """Bias and variance on fresh inputs, the mean over coefficients of variances `target` and noise."""
    x = COORDINATES[law](rng, (n, len(spectrum))) * np.sqrt(spectrum)
    if shared:
        x *= np.sqrt(rng.choice(SQUARES, (n, 1)))
    return exact_risks(x, spectrum, target, 1.0, penalties, noise)


def exact_risks(x: Any, spectrum: Any, target: Any, metric: Any, penalties: Any, noise: float) -> list[float]:
    r"""Given the inputs, of ridge regression under a metric, $W^\top W = \mathrm{diag}(\text{metric})$."""
    values, vectors = np.linalg.eigh((x * metric) @ x.T)
    turned = vectors.T @ x
    seen = (turned * target) @ turned.T
    felt = (turned * spectrum * metric**2) @ turned.T
    along = np.sum(turned**2 * spectrum * target * metric, axis=1)
    found = []
    for penalty in penalties:
        inverse = 1 / (np.maximum(values, 0) + len(x) * penalty)
        error = inverse[:, None] * felt * inverse
        bias = np.sum(spectrum * target) - 2 * along @ inverse + np.sum(error * seen)
        found.append(float(bias + noise * np.trace(error)))
    return found
