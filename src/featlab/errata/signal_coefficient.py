r"""The signal coefficient is the product with the signal from the start on, with the sign of the class.

Filters of the class $j = -1$ learn $-\mu$: their $\gamma \geq 0$ is $-\langle w, \mu \rangle$, less its value at
the start. A network is trained while $\gamma$ follows the update that gradient descent gives it (Cao, Chen,
Belkin and Gu 2022), and is compared with the weights in the end.
"""

from __future__ import annotations

import numpy as np

from featlab.claims import at_most
from featlab.errata import _cnn, _sources
from featlab.errata._erratum import Erratum, over_seeds

STEPS, RATE = 40, 0.5
CLOSE = 0.05  # how "approximately" is read


class SignalCoefficient(Erratum):
    """The erratum of this file."""

    title = "the signal coefficient carries the sign of its class"
    source = (
        "Tutorial at AJCAI 2025 (A. Han, W. Huang), slide “Benign overfitting with feature learning (Key idea)”, "
        "line below the decomposition"
    )
    printed = r"\gamma_{j,r}^{(t)} \approx \langle \mathbf{w}_{j,r}^{(t)}, \boldsymbol{\mu} \rangle"
    corrected = (
        r"\gamma_{j,r}^{(t)} \approx j \cdot \langle \mathbf{w}_{j,r}^{(t)} - \mathbf{w}_{j,r}^{(0)}, "
        r"\boldsymbol{\mu} \rangle"
    )
    derivation = (
        r"The decomposition adds $j \gamma \|\boldsymbol{\mu}\|^{-2} \boldsymbol{\mu}$ to the start; multiply by "
        r"$j \boldsymbol{\mu}$ and use $j^2 = 1$. It is exact where noise is orthogonal to $\boldsymbol{\mu}$."
    )
    reference = _sources.TUTORIAL

    def judge(self, lab, *, printed):
        differences = over_seeds(lab, _difference, printed)
        yield at_most("largest difference, over the largest coefficient", differences, CLOSE)


def _difference(rng, printed):
    run = _cnn.drawn(rng, n=10, d=60, width=4, signal_norm=2.0, noise_scale=60**-0.5, init_scale=0.1)
    gamma = np.zeros(run.weights.shape[:2])
    for _ in range(STEPS):
        active = np.einsum("jrd,nd->jrn", run.weights, run.patches[0]) > 0
        pull = -(active * run.slopes()).sum(-1) / (active.shape[1] * active.shape[2])
        gamma += RATE * np.sum(run.signal**2) * pull
        run.step(RATE)
    if printed:
        products = run.weights @ run.signal
    else:
        products = (run.weights - run.start) @ run.signal * _cnn.CLASSES[:, None]
    return np.max(np.abs(gamma - products)) / np.max(gamma)
