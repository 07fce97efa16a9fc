r"""Langevin dynamics makes the objective with its entropy fall, at twice the printed rate.

The algorithm has a temperature $\lambda$, and tends to the minimiser of $F + \lambda\,\mathrm{Ent}$, not of $F$:
the gap to the least $F$ stays. The gap of the regularised objective is $\lambda$ times the relative entropy,
which falls as $e^{-2\alpha\lambda t}$ under a log-Sobolev inequality with constant $\alpha$ (Nitanda, Wu and
Suzuki 2022; Chizat 2022). For $F(\mu) = \frac\kappa2 \int w^2 d\mu$ the constant is known, $\alpha =
\kappa/\lambda$, and the rate is attained. The Fokker-Planck equation is solved on a grid, from a uniform start.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from featlab.claims import at_most, equals
from featlab.errata import _sources
from featlab.errata._erratum import Erratum, over_seeds

CURVATURE, TEMPERATURE = 1.0, 0.5  # kappa, lambda
SOBOLEV = CURVATURE / TEMPERATURE  # alpha
TIMES = (0.5, 1.0, 2.0, 4.0)
GRID = np.linspace(-6, 6, 401)


class LangevinRate(Erratum):
    """The erratum of this file."""

    title = "mean-field Langevin dynamics lowers the entropy-regularised objective, at twice the printed rate"
    source = (
        "“Feature learning theory in multi-task and in-context learning” (T. Suzuki, FIMI 2024), slide “Label "
        "noise and WG flow”, Theorem (informal)"
    )
    printed = r"F(\mu_t) - F(\mu^*) \leq \exp(-\alpha\lambda t) (F(\mu_0) - F(\mu^*))"
    corrected = (
        r"F_\lambda(\mu_t) - F_\lambda(\mu^*) \leq \exp(-2\alpha\lambda t) (F_\lambda(\mu_0) - "
        r"F_\lambda(\mu^*)), \qquad F_\lambda = F + \lambda \int \mu \log \mu, \quad \mu^* \text{ its minimiser}"
    )
    derivation = (
        r"$\frac{d}{dt} F_\lambda(\mu_t) = -\lambda^2 \int \|\nabla \log \frac{\mu_t}{p_t}\|^2 d\mu_t \leq -2 "
        r"\alpha \lambda \cdot \lambda \mathrm{KL}(\mu_t | p_t) \leq -2 \alpha \lambda (F_\lambda(\mu_t) - "
        r"F_\lambda(\mu^*))$, $p_t$ being the Gibbs law of $\frac{\delta F}{\delta \mu}(\mu_t)$ and $F$ convex."
    )
    reference = _sources.MULTI_TASK

    def judge(self, lab, *, printed):
        gaps = over_seeds(lab, _gaps, printed)
        rate = (1 if printed else 2) * SOBOLEV * TEMPERATURE
        times = np.array(TIMES)
        over = np.log(gaps[1:] / gaps[0]) + rate * times[:, None]
        cells = {f"t = {time:g}": row for time, row in zip(times, over)}
        yield at_most("log of the gap at time t over the bound", cells, 0)
        late = np.log(gaps[-2] / gaps[-1]) / (times[-1] - times[-2])
        yield equals("late rate of the gap over the theorem's", late / rate, 1.0)


def _gaps(rng, printed):
    """The objective less its least value, at time 0 and at each time."""
    cell = GRID[1] - GRID[0]
    potential = CURVATURE * GRID**2 / 2
    gibbs = np.exp(-potential / TEMPERATURE)
    gibbs /= gibbs.sum()
    # Jumps to neighbours that leave the Gibbs law as it is; symmetric in the right units.
    hop = TEMPERATURE / cell**2
    root = np.sqrt(gibbs)
    to_right = hop * np.exp((potential[:-1] - potential[1:]) / (2 * TEMPERATURE))
    to_left = hop * np.exp((potential[1:] - potential[:-1]) / (2 * TEMPERATURE))
    out = np.append(to_right, 0.0) + np.append(0.0, to_left)
    rates, modes = scipy.linalg.eigh_tridiagonal(-out, np.full(len(GRID) - 1, hop))

    centre, half = rng.uniform(1, 2), rng.uniform(0.2, 1)
    start = (np.abs(GRID - centre) <= half).astype(float)
    start /= start.sum()
    content = modes.T @ (start / root)

    def objective(mass):
        mass = np.maximum(mass, 1e-300)
        entropy = 0.0 if printed else TEMPERATURE * np.sum(mass * np.log(mass / cell))
        return np.sum(potential * mass) + entropy

    least = 0.0 if printed else objective(gibbs)
    masses = [start, *(root * (modes @ (np.exp(rates * time) * content)) for time in TIMES)]
    return [objective(mass) - least for mass in masses]
