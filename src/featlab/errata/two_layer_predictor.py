r"""The predictor of a two-layer linear network applies both layers.

In the slide's predictive error the second layer's coefficients meet the inputs directly. The network predicts
$x^\top W^\top \hat\beta$, as the slide on Bayes optimal regularisation has it. For $W^\top W = \Sigma_\beta$ and
$n\lambda = \sigma^2$ the network is the Bayes estimator, whose error is known; the error of either predictor is
measured on simulated tasks.
"""

from __future__ import annotations

import numpy as np

from featlab.claims import equals
from featlab.errata import _gaussian_tasks, _sources
from featlab.errata._erratum import Erratum, over_seeds

TASKS = 2000


class TwoLayerPredictor(Erratum):
    """The erratum of this file."""

    title = "the predictor of a two-layer linear network includes its first layer"
    source = (
        "“Feature learning theory in multi-task and in-context learning” (T. Suzuki, FIMI 2024), slide “Main "
        "result”, predictive error"
    )
    printed = (
        r"\bar{R}(W) = \frac{1}{m} \sum_{j=1}^m \mathbb{E}_x [(x^\top \beta_*^{(j)} - x^\top \hat{\beta}^{(j)})^2]"
    )
    corrected = (
        r"\bar{R}(W) = \frac{1}{m} \sum_{j=1}^m \mathbb{E}_x [(x^\top \beta_*^{(j)} - x^\top W^\top "
        r"\hat{\beta}^{(j)})^2]"
    )
    derivation = (
        r"The student is $f(x) = \beta^\top W x$, so that $\hat{\beta}^{(j)}$, the minimiser of $\frac{1}{n} "
        r"\|Y^{(j)} - X W^\top \beta\|^2 + \lambda \|\beta\|^2$, predicts $x^\top W^\top \hat{\beta}^{(j)}$."
    )
    reference = _sources.MULTI_TASK

    def judge(self, lab, *, printed):
        ratios = over_seeds(lab, _ratio, printed)
        yield equals("predictive error over the Bayes risk", ratios, 1.0)


def _ratio(rng, printed):
    tasks = _gaussian_tasks.drawn(rng)
    layer = _gaussian_tasks.rotation(rng) @ tasks.root
    truth, labels = tasks.tasks(rng, TASKS)
    second = tasks.ridge(layer, labels)
    found = second if printed else second @ layer
    return np.mean(np.sum((found - truth) ** 2, axis=1)) / tasks.bayes_risk()
