r"""Adam divides its averages by $1 - \beta^t$: they start from zero.

Kingma and Ba (2015). Without that, the first step is $(1-\beta_1)/\sqrt{1-\beta_2}$ times as long, 3.2 times for
the usual values. The recursion is compared with optax's Adam, on gradients drawn at random.
"""

from __future__ import annotations

import jax
import numpy as np
import optax

from featlab.claims import identity
from featlab.errata import _sources
from featlab.errata._erratum import Erratum, over_seeds

FIRST, SECOND, EPSILON = 0.9, 0.999, 1e-8  # beta_1, beta_2, those of the paper
STEPS, SIZE = 5, 8


class AdamBiasCorrection(Erratum):
    """The erratum of this file."""

    title = "Adam's averages are divided by one minus a power of their rate"
    source = (
        "Tutorial at AJCAI 2025 (A. Han, W. Huang), slide “Feature learning with Sign GD and Adam”, Adam "
        "(Kingma and Ba 2015)"
    )
    printed = (
        r"\boldsymbol{\theta}_{t+1} = \boldsymbol{\theta}_t - \eta_t \frac{\mathbf{m}_t}{\sqrt{\mathbf{v}_t} + "
        r"\epsilon}"
    )
    corrected = (
        r"\boldsymbol{\theta}_{t+1} = \boldsymbol{\theta}_t - \eta_t "
        r"\frac{\hat{\mathbf{m}}_t}{\sqrt{\hat{\mathbf{v}}_t} + \epsilon}, \qquad \hat{\mathbf{m}}_t = "
        r"\frac{\mathbf{m}_t}{1 - \beta_1^t}, \quad \hat{\mathbf{v}}_t = \frac{\mathbf{v}_t}{1 - \beta_2^t}"
    )
    derivation = (
        r"From $\mathbf{m}_0 = 0$ and gradients of mean $\mathbf{g}$ follows $\mathbb{E}[\mathbf{m}_t] = (1 - "
        r"\beta_1^t) \mathbf{g}$; likewise for $\mathbf{v}_t$."
    )
    reference = _sources.TUTORIAL

    def judge(self, lab, *, printed):
        residuals = over_seeds(lab, _residual, printed)
        yield identity("steps less those of optax.adam, in units of the rate", residuals, 1e-10)


def _residual(rng, printed):
    gradients = rng.standard_normal((STEPS, SIZE))
    m, v, worst = np.zeros(SIZE), np.zeros(SIZE), 0.0
    with jax.enable_x64(True):
        adam = optax.scale_by_adam(FIRST, SECOND, EPSILON)
        state = adam.init(jax.numpy.zeros(SIZE))
        for t, gradient in enumerate(gradients, 1):
            m = FIRST * m + (1 - FIRST) * gradient
            v = SECOND * v + (1 - SECOND) * gradient**2
            corrections = (1.0, 1.0) if printed else (1 - FIRST**t, 1 - SECOND**t)
            step = (m / corrections[0]) / (np.sqrt(v / corrections[1]) + EPSILON)
            theirs, state = adam.update(jax.numpy.asarray(gradient), state)
            worst = max(worst, np.max(np.abs(step - np.asarray(theirs))))
    return worst
