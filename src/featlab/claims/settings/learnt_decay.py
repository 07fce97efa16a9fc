r"""A first layer $W = \mathrm{diag}(j^{-p})$ whose decay p and penalty are learnt by the criterion of many tasks.

The tasks' labels are drawn from their law given the inputs, $N(0, X \Sigma_\beta X^\top + \sigma^2 I)$.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.optimize

from featlab.claims.settings.metric import EXAMPLES, noise_edge
from featlab.claims.settings.ridge_inputs import exact_risks

TASKS = 20  # m / n
BEYOND = 1.2  # sigma'^2 in units of the edge from which on noise is not fitted
DECAYS = (0.0, 3.0)  # p is looked for between these
PENALTIES = np.geomspace(
    1e-3, 10, 60
)  # n lambda in units of sigma^2, over that of the kernel's leading eigenvalue


def over_the_best(
    seeds: Sequence[int], example: str, n: int, noise: float, learnt: bool = True
) -> dict[str, list[float]]:
    r"""The risk at the least criterion over that with $W^\top W = \Sigma_\beta$ and $n\lambda = \sigma^2$.

    Where the decay is not `learnt` it is 0, and the penalty alone is.
    """
    law = EXAMPLES[example]
    j = np.arange(1.0, n**law.growth + 1)
    spectrum, target = law.spectrum(n)(j), law.target(n)(j)
    weight = BEYOND * noise_edge(noise, n, TASKS * n)
    found = []
    for rng in map(np.random.default_rng, seeds):
        x = rng.standard_normal((n, len(j))) * np.sqrt(spectrum)
        root = np.linalg.cholesky((x * target) @ x.T + noise * np.eye(n))
        labels = root @ rng.standard_normal((n, TASKS * n))
        moments = labels @ labels.T / (TASKS * n)

        def least(p):
            """The least criterion at a decay, and the penalty where it is attained."""
            values, vectors = np.linalg.eigh((x * j ** (-2.0 * p)) @ x.T)  # noqa: B023
            energy = np.sum(vectors * (moments @ vectors), axis=0)  # noqa: B023
            levels = values[-1] * PENALTIES * noise
            kept = np.maximum(values, 0) / (np.maximum(values, 0) + levels[:, None])
            criterion = (1 - kept) @ energy + weight * kept.sum(axis=1)
            best = int(np.argmin(criterion))
            return criterion[best], levels[best] / n

        bounded = scipy.optimize.minimize_scalar(lambda p: least(p)[0], bounds=DECAYS, options={"xatol": 1e-2})
        p = bounded.x if learnt else 0.0
        [risk] = exact_risks(x, spectrum, target, j ** (-2.0 * p), [least(p)[1]], noise)
        [best] = exact_risks(x, spectrum, target, target, [noise / n], noise)
        found.append(risk / best)
    return {"ratio": found}
