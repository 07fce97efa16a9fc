r"""The variance of ridge regression is proportional to the noise of the labels.

The slide's $V$ is that of Tsigler and Bartlett (2020) for noise of variance one; in the slide's own setting,
$\mathbb{E}[\epsilon_i^2] = \sigma^2$, it is multiplied by $\sigma^2$. Labels are drawn with noise of several
variances, ridge regression is made, and its distance from what it finds without noise is measured.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from featlab.claims import scales_as
from featlab.errata import _sources
from featlab.errata._erratum import Erratum, over_seeds

N, D, PENALTY = 40, 200, 1e-3
VARIANCES = (0.25, 1.0, 4.0)  # sigma^2
DRAWS = 400  # of the labels' noise


class RidgeVariance(Erratum):
    """The erratum of this file."""

    title = "the variance of ridge regression carries the noise level of the labels"
    source = (
        "“Feature learning theory in multi-task and in-context learning” (T. Suzuki, FIMI 2024), slide "
        "“Predictive error”, Proposition (Tsigler and Bartlett 2020)"
    )
    printed = r"V = \frac{k}{n} + n \frac{\sum_{j=k+1}^d \lambda_j^2}{(n\lambda + \sum_{j>k} \lambda_j)^2}"
    corrected = (
        r"V = \sigma^2 \left( \frac{k}{n} + n \frac{\sum_{j=k+1}^d \lambda_j^2}{(n\lambda + \sum_{j>k} "
        r"\lambda_j)^2} \right)"
    )
    derivation = (
        r"$\hat{\beta}$ is linear in $Y$, so what the noise adds to it is $A \epsilon$ with a matrix $A$ of the "
        r"inputs, and $\mathbb{E}_\epsilon \|A \epsilon\|_{\Sigma_X}^2 = \sigma^2 \mathrm{Tr}[A^\top \Sigma_X "
        r"A]$."
    )
    reference = _sources.MULTI_TASK

    def judge(self, lab, *, printed):
        parts = xr.DataArray(over_seeds(lab, _noise_parts), {"sigma^2": list(VARIANCES)}, ("sigma^2", "seed"))
        law, rival = (0.0, 1.0) if printed else (1.0, 0.0)
        name = "exponent of the variance of predictions in sigma^2"
        yield scales_as(name, parts, "sigma^2", law, (rival,), symbols=(r"\sigma^2", "V"))


def _noise_parts(rng):
    spectrum = 1 / np.arange(1, D + 1)
    x = rng.standard_normal((N, D)) * np.sqrt(spectrum)
    truth = rng.standard_normal(D)
    parts = []
    for variance in VARIANCES:
        noise = np.sqrt(variance) * rng.standard_normal((DRAWS, N))
        labels = np.concatenate([[x @ truth], x @ truth + noise])
        found = np.linalg.solve(x @ x.T + N * PENALTY * np.eye(N), labels.T).T @ x
        parts.append(np.mean(np.sum(spectrum * (found[1:] - found[0]) ** 2, axis=1)))
    return parts
