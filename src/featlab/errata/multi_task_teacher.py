r"""The tasks' labels are linear in the inputs, without the student's first layer.

With $W$ in the truth, the labels would depend on the network that is to be trained, and the Bayes estimator of a
later slide, $(X^\top X + \sigma^2 \Sigma_\beta^{-1})^{-1} X^\top y$, would not be the best one. The error of the
best estimator is uncorrelated with the labels; that correlation is computed exactly for either model.
"""

from __future__ import annotations

import numpy as np

from featlab.claims import identity
from featlab.errata import _gaussian_tasks, _sources
from featlab.errata._erratum import Erratum, over_seeds


class MultiTaskTeacher(Erratum):
    """The erratum of this file."""

    title = "the truth of each task is linear in the inputs, without the network's first layer"
    source = (
        "“Feature learning theory in multi-task and in-context learning” (T. Suzuki, FIMI 2024), slide “2 layer "
        "NN model”, multi-task learning"
    )
    printed = r"y_i^{(j)} = \beta_*^{(j)\top} W x_i + \epsilon_i^{(j)}"
    corrected = r"y_i^{(j)} = \beta_*^{(j)\top} x_i + \epsilon_i^{(j)}"
    derivation = (
        r"The estimator $A y$ of $\beta_*$ is best when $\mathrm{Cov}(\beta_* - A y, y) = 0$; for $A = (X^\top "
        r"X + \sigma^2 \Sigma_\beta^{-1})^{-1} X^\top$ of the slide “Bayes optimal regularization” this needs "
        r"$y = X \beta_* + \epsilon$."
    )
    reference = _sources.MULTI_TASK

    def judge(self, lab, *, printed):
        residuals = over_seeds(lab, _residual, printed)
        yield identity("covariance of the Bayes estimator's error with the labels, relative", residuals, 1e-9)


def _residual(rng, printed):
    tasks = _gaussian_tasks.drawn(rng)
    noise = _gaussian_tasks.NOISE
    # Labels are `seen` times the coefficients, and noise.
    seen = tasks.x @ (_gaussian_tasks.rotation(rng) @ tasks.root).T if printed else tasks.x
    estimator = np.linalg.solve(tasks.x.T @ tasks.x + noise * np.linalg.inv(tasks.covariance), tasks.x.T)
    shared = tasks.covariance @ seen.T
    labels = seen @ shared + noise * np.eye(len(seen))
    return np.max(np.abs(shared - estimator @ labels)) / np.max(np.abs(shared))
