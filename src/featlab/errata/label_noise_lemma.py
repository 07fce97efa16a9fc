r"""Label noise adds its variance over n times the degrees of freedom.

Takakura and Suzuki (2024): fitted to labels with noise, the second layer has a loss on the clean labels that
exceeds the least one by $\frac{\mathrm{Var}(\tilde\epsilon)}{n}$ times the degrees of freedom, and the variance
of $U([-\tilde\sigma, \tilde\sigma])$ is $\tilde\sigma^2/3$. The slide has a factor $\lambda$ instead of
$\frac13$. Noise is drawn many times for random tanh features, and both losses are computed.
"""

from __future__ import annotations

import numpy as np

from featlab.claims import equals
from featlab.errata import _sources
from featlab.errata._erratum import Erratum, over_seeds

N, NEURONS = 40, 60
PENALTIES = (1e-3, 1e-1)  # lambda
NOISE, DRAWS = 0.5, 2000  # half the width of the uniform law


class LabelNoiseLemma(Erratum):
    """The erratum of this file."""

    title = "label noise adds its variance over n times the degrees of freedom"
    source = (
        "“Feature learning theory in multi-task and in-context learning” (T. Suzuki, FIMI 2024), slide “Label "
        "noise as regularization”, Lemma (Takakura and Suzuki 2024)"
    )
    printed = (
        r"\mathbb{E}_{\tilde{\epsilon}}[G(\mu)] = F(\mu) + \frac{\lambda \tilde{\sigma}^2}{n} \text{Tr} \left[ "
        r"\hat{\Sigma}_\mu (\hat{\Sigma}_\mu + n\lambda I)^{-1} \right]"
    )
    corrected = (
        r"\mathbb{E}_{\tilde{\epsilon}}[G(\mu)] = F(\mu) + \frac{\tilde{\sigma}^2}{3n} \text{Tr} \left[ "
        r"\hat{\Sigma}_\mu (\hat{\Sigma}_\mu + n\lambda I)^{-1} \right]"
    )
    derivation = (
        r"With $S = \hat{\Sigma}_\mu (\hat{\Sigma}_\mu + n\lambda I)^{-1}$ and $v = "
        r"\mathrm{Var}(\tilde{\epsilon})$ the fit adds $\frac{v}{n} \text{Tr}[S^2]$ and the penalty "
        r"$\frac{v}{n} \text{Tr}[S(I - S)]$; $v = \tilde{\sigma}^2/3$ for $U([-\tilde{\sigma}, "
        r"\tilde{\sigma}])$."
    )
    reference = _sources.MULTI_TASK

    def judge(self, lab, *, printed):
        added = over_seeds(lab, _added)
        factors = PENALTIES if printed else [1 / 3] * len(PENALTIES)
        cells = {f"lambda = {one:g}": row / factor for one, row, factor in zip(PENALTIES, added, factors)}
        yield equals("what label noise adds to the loss, over the formula", cells, 1.0)


def _added(rng):
    """What noise adds to the loss, in units of its squared half width over n and the degrees of freedom."""
    return [_added_at(rng, penalty) for penalty in PENALTIES]


def _added_at(rng, penalty):
    x, y = rng.standard_normal((N, 3)), rng.standard_normal(N)
    features = np.tanh(x @ rng.standard_normal((3, NEURONS)))
    noise = rng.uniform(-NOISE, NOISE, (DRAWS, N))

    def losses(labels):
        """On the clean labels, of the second layer that is fitted to these; one row each."""
        normal = features.T @ features / NEURONS + N * penalty * np.eye(NEURONS)
        head = np.linalg.solve(normal, features.T @ labels.T).T
        missed = y - head @ features.T / NEURONS
        return np.mean(missed**2, axis=1) + penalty * np.mean(head**2, axis=1)

    kernel = features @ features.T / NEURONS
    freedom = np.trace(np.linalg.solve(kernel + N * penalty * np.eye(N), kernel))
    return np.mean(losses(y + noise) - losses(y[None])) / (NOISE**2 / N * freedom)
