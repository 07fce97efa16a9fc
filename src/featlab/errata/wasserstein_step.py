r"""The Wasserstein gradient flow moves mass where there is some: the density stands inside the divergence.

As printed the step would move mass through places without particles. On a later slide of the same talk the flow
has its $\mu_t$. For the slide's $F$, with one task and inputs in one dimension, particles are moved by a short
step $w \leftarrow w - \eta \nabla \frac{\delta F}{\delta\mu}(w)$, and the fall of $F$ is compared with what
either equation implies.
"""

from __future__ import annotations

import numpy as np
import scipy.special

from featlab.claims import equals
from featlab.errata import _sources
from featlab.errata._erratum import Erratum, over_seeds

N, PENALTY = 10, 0.05  # n, lambda
PARTICLES, STEP = 4000, 1e-4
GRID = np.linspace(-40, 40, 16_001)  # of w: beyond, tanh is flat and nothing moves


class WassersteinStep(Erratum):
    """The erratum of this file."""

    title = "the Wasserstein gradient flow carries the density inside the divergence"
    source = (
        "“Feature learning theory in multi-task and in-context learning” (T. Suzuki, FIMI 2024), slide “Label "
        "noise and WG flow”, optimization of F with respect to the measure"
    )
    printed = (
        r"\mu_{t+1} \leftarrow \mu_t + \eta \nabla \cdot \left( \nabla \frac{\delta F(\mu_t)}{\delta \mu} \right)"
    )
    corrected = (
        r"\mu_{t+1} \leftarrow \mu_t + \eta \nabla \cdot \left( \mu_t \nabla \frac{\delta F(\mu_t)}{\delta \mu} "
        r"\right)"
    )
    derivation = (
        r"Particles with velocity $v = -\nabla \frac{\delta F}{\delta \mu}$ obey $\partial_t \mu = -\nabla "
        r"\cdot (\mu v)$, and $\dot{F} = -\int \|\nabla \frac{\delta F}{\delta \mu}\|^2 d\mu$; without $\mu$ "
        r"the integral is over $dw$."
    )
    reference = _sources.MULTI_TASK
    one_symbol = True

    def judge(self, lab, *, printed):
        ratios = over_seeds(lab, _ratio, printed)
        yield equals("fall of F in a short step, over the formula", ratios, 1.0)


def _ratio(rng, printed):
    x, y = rng.standard_normal(N), rng.standard_normal(N)
    # One particle from each of many slices of N(0, 1): the law, with little scatter.
    particles = scipy.special.ndtri((np.arange(PARTICLES) + rng.uniform(size=PARTICLES)) / PARTICLES)

    density = np.exp(-(GRID**2) / 2) / np.sqrt(2 * np.pi)
    cell = GRID[1] - GRID[0]
    features = np.tanh(np.outer(GRID, x))
    dual = np.linalg.solve((features.T * density) @ features * cell + N * PENALTY * np.eye(N), y)
    slope = _slope(GRID, x, dual)
    implied = np.sum(slope**2 * (1.0 if printed else density)) * cell

    def value(w):
        seen = np.tanh(np.outer(w, x))
        return PENALTY * y @ np.linalg.solve(seen.T @ seen / len(w) + N * PENALTY * np.eye(N), y)

    return (value(particles) - value(particles - STEP * _slope(particles, x, dual))) / (STEP * implied)


def _slope(w, x, dual):
    r"""$\nabla \frac{\delta F}{\delta\mu}$, from $\frac{\delta F}{\delta\mu}(w) = -\lambda (\sum_i \alpha_i
    \sigma(w x_i))^2$ with $\alpha = (\hat\Sigma_\mu + n\lambda I)^{-1} y$."""
    seen = np.tanh(np.outer(w, x))
    return -2 * PENALTY * (seen @ dual) * ((1 - seen**2) @ (x * dual))
