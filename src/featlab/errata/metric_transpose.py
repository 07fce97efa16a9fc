r"""The first layer's metric is $W^\top W$, not $W W^\top$.

The slide's own reformulation has the penalty $\|\tilde\beta\|^2_{(W^\top W)^{-1}}$, and later slides have
$W^\top W \simeq \Sigma_\beta$. The two differ unless $W$ is normal. Ridge regression on $Wx$, with $n\lambda =
\sigma^2$, is compared with the Bayes estimator of $\beta_* \sim \mathcal{N}(0, \Sigma_\beta)$ from $y = X
\beta_* + \epsilon$, which is computed by conditioning a Gaussian vector, for a $W$ that satisfies either equation.
"""

from __future__ import annotations

import numpy as np

from featlab.claims import identity
from featlab.errata import _sources
from featlab.errata._erratum import Erratum, over_seeds

N, D, NOISE = 20, 30, 0.25  # n, d, sigma^2


class MetricTranspose(Erratum):
    """The erratum of this file."""

    title = "the optimal first layer has W'W equal to the covariance of the tasks"
    source = (
        "“Feature learning theory in multi-task and in-context learning” (T. Suzuki, FIMI 2024), slide “2 layer "
        "NN model”, feature learning = metric learning"
    )
    printed = r"W W^\top = \Sigma_\beta"
    corrected = r"W^\top W = \Sigma_\beta"
    derivation = (
        r"With $\tilde{\beta} = W^\top \beta$ the penalty $\lambda \|\beta\|^2$ is $\lambda "
        r"\|\tilde{\beta}\|_{(W^\top W)^{-1}}^2$, the negative log-density of $\tilde{\beta} \sim \mathcal{N}(0, "
        r"\Sigma_\beta)$ times $2\sigma^2/n$ for $W^\top W = \Sigma_\beta$ and $n\lambda = \sigma^2$."
    )
    reference = _sources.MULTI_TASK
    one_symbol = True

    def judge(self, lab, *, printed):
        residuals = over_seeds(lab, _residual, printed)
        yield identity("ridge regression less the Bayes estimator, relative", residuals, 1e-9)


def _residual(rng, printed):
    basis, values = _rotation(rng), 1 / np.arange(1, D + 1)
    covariance, root = (basis * values) @ basis.T, (basis * np.sqrt(values)) @ basis.T  # of the tasks, symmetric
    x = rng.standard_normal((N, D))
    labels = x @ root @ rng.standard_normal(D) + np.sqrt(NOISE) * rng.standard_normal(N)
    both = x @ covariance
    bayes = both.T @ np.linalg.solve(both @ x.T + NOISE * np.eye(N), labels)
    turned = _rotation(rng)
    layer = root @ turned if printed else turned @ root
    seen = x @ layer.T
    head = np.linalg.solve(seen.T @ seen + NOISE * np.eye(D), seen.T @ labels)
    return np.max(np.abs(head @ layer - bayes)) / np.max(np.abs(bayes))


def _rotation(rng):
    """A random orthogonal matrix."""
    return np.linalg.qr(rng.standard_normal((D, D)))[0]
