r"""The first layer's metric is $W^\top W$, not $W W^\top$.

The slide's own reformulation has the penalty $\|\tilde\beta\|^2_{(W^\top W)^{-1}}$, and later slides have
$W^\top W \simeq \Sigma_\beta$. The two differ unless $W$ is normal. Ridge regression on $Wx$ is compared with
the Bayes estimator, which is computed by conditioning a Gaussian vector, for a $W$ that satisfies either
equation.
"""

from __future__ import annotations

import numpy as np

from featlab.claims import identity
from featlab.errata import _gaussian_tasks, _sources
from featlab.errata._erratum import Erratum, over_seeds


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

    def judge(self, lab, *, printed):
        residuals = over_seeds(lab, _residual, printed)
        yield identity("ridge regression less the Bayes estimator, relative", residuals, 1e-9)


def _residual(rng, printed):
    tasks = _gaussian_tasks.drawn(rng)
    turned = _gaussian_tasks.rotation(rng)
    layer = tasks.root @ turned if printed else turned @ tasks.root
    truth, labels = tasks.tasks(rng, 1)
    bayes = tasks.posterior_mean(labels)
    return np.max(np.abs(tasks.ridge(layer, labels) @ layer - bayes)) / np.max(np.abs(bayes))
