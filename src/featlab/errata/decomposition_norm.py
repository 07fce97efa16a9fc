r"""The signal's direction in the signal-noise decomposition is divided by the square of its length.

With $\|\mu\|^{-2}\mu$, as in Cao, Chen, Belkin and Gu (2022), the coefficient $\gamma$ is the weight's product
with the signal, and noise and signal are measured alike. With $\|\mu\|^{-1}\mu$ it is that product over
$\|\mu\|$. A network is trained, its weights are decomposed by least squares, and the coefficients are compared
with the products.
"""

from __future__ import annotations

import numpy as np

from featlab.claims import identity
from featlab.errata import _cnn, _sources
from featlab.errata._erratum import Erratum, over_seeds

SIGNAL_NORM = 2.0  # any length but 1, where both formulas agree
STEPS, RATE = 20, 0.5


class DecompositionNorm(Erratum):
    """The erratum of this file."""

    title = "the signal's direction in the decomposition carries the power -2 of its length"
    source = (
        "Tutorial at AJCAI 2025 (A. Han, W. Huang), slide “Benign overfitting with feature learning (Key idea)”, "
        "signal-noise decomposition"
    )
    printed = (
        r"\mathbf{w}_{j,r}^{(t)} = \mathbf{w}_{j,r}^{(0)} + j \cdot \gamma_{j,r}^{(t)} \cdot "
        r"\|\boldsymbol{\mu}\|^{-1} \cdot \boldsymbol{\mu} + \sum_{i=1}^n \rho_{j,r,i}^{(t)} \cdot "
        r"\|\boldsymbol{\xi}_i\|^{-2} \cdot \boldsymbol{\xi}_i"
    )
    corrected = (
        r"\mathbf{w}_{j,r}^{(t)} = \mathbf{w}_{j,r}^{(0)} + j \cdot \gamma_{j,r}^{(t)} \cdot "
        r"\|\boldsymbol{\mu}\|^{-2} \cdot \boldsymbol{\mu} + \sum_{i=1}^n \rho_{j,r,i}^{(t)} \cdot "
        r"\|\boldsymbol{\xi}_i\|^{-2} \cdot \boldsymbol{\xi}_i"
    )
    derivation = (
        r"The product with $\boldsymbol{\mu}$ of a term $j \gamma \|\boldsymbol{\mu}\|^{-p} \boldsymbol{\mu}$ is "
        r"$j \gamma \|\boldsymbol{\mu}\|^{2-p}$, and it is $j \gamma$, as the slide goes on to say, for $p = 2$."
    )
    reference = _sources.TUTORIAL
    one_symbol = True

    def judge(self, lab, *, printed):
        residuals = over_seeds(lab, _residual, 1 if printed else 2)
        yield identity("coefficient less the product with the signal, relative", residuals, 1e-10)


def _residual(rng, power):
    run = _cnn.drawn(rng, n=10, d=60, width=4, signal_norm=SIGNAL_NORM, noise_scale=60**-0.5, init_scale=0.01)
    for _ in range(STEPS):
        run.step(RATE)
    learnt = run.weights - run.start
    directions = np.concatenate([run.signal[None] / SIGNAL_NORM**power, _over_square(run.noise)])
    found = np.linalg.lstsq(directions.T, learnt.reshape(-1, learnt.shape[-1]).T, rcond=None)[0][0]
    gamma = found.reshape(2, -1) * _cnn.CLASSES[:, None]
    products = (learnt @ run.signal) * _cnn.CLASSES[:, None]
    return np.max(np.abs(gamma - products)) / np.max(np.abs(gamma))


def _over_square(rows):
    return rows / np.sum(rows**2, axis=1, keepdims=True)
