r"""Coefficients of ReLU^q networks grow by a power of themselves: the increment has it, not the new value.

As printed, a small coefficient would be raised to a power in every step and vanish. What grows is $u = j\langle
w, \mu \rangle$, start included, by $\eta_\gamma u^{q-1}$ a step, and likewise $v = \langle w, \xi_i \rangle$
(Cao, Chen, Belkin and Gu 2022); the rates are those of `featlab.theory.signal_noise`. The recursion is iterated
beside a network that is trained, until the fastest filter has doubled.
"""

from __future__ import annotations

import numpy as np

from featlab.claims import equals
from featlab.errata import _cnn, _sources
from featlab.errata._erratum import Erratum, over_seeds
from featlab.theory import signal_noise

N, WIDTH, POWER = 20, 8, 3
SMALL = 0.02  # relative growth in the first step of the fastest filter
LONGEST = 200


class PolynomialGrowth(Erratum):
    """The erratum of this file."""

    title = "coefficients of ReLU^q networks grow by increments of the power q - 1"
    source = (
        "Tutorial at AJCAI 2025 (A. Han, W. Huang), slide “Benign overfitting with feature learning (A "
        "comparison of feature learning)”, polynomial growth"
    )
    printed = (
        r"\gamma_{j,r}^{(t+1)} \approx (1 - \eta_\gamma)(\gamma_{j,r}^{(t)})^{q-1}, \qquad "
        r"\rho_{j,r,i}^{(t+1)} \approx (1 - \eta_\xi)(\rho_{j,r,i}^{(t)})^{q-1}"
    )
    corrected = (
        r"\gamma_{j,r}^{(t+1)} \approx \gamma_{j,r}^{(t)} + \eta_\gamma \left( j \langle "
        r"\mathbf{w}_{j,r}^{(t)}, \boldsymbol{\mu} \rangle \right)^{q-1}, \qquad \rho_{j,r,i}^{(t+1)} \approx "
        r"\rho_{j,r,i}^{(t)} + \eta_\xi \langle \mathbf{w}_{j,r}^{(t)}, \boldsymbol{\xi}_i \rangle^{q-1}"
    )
    derivation = (
        r"The gradient holds $\sigma'(u) = q u^{q-1}$ at the product $u$, which is the coefficient with its "
        r"start, and descent adds a multiple of it; the slide's linear growth is the case $q = 1$."
    )
    reference = _sources.TUTORIAL

    def judge(self, lab, *, printed):
        signal, noise = over_seeds(lab, _ratios, printed)
        name = "predicted over trained value of the fastest filter when it has doubled"
        yield equals(name, {"signal": signal, "noise": noise}, 1.0)


def _ratios(rng, printed):
    labels = np.tile(_cnn.CLASSES, N // 2)
    start = 0.01 * rng.standard_normal((2, WIDTH, N + 1))
    # Noise of different samples is orthogonal, as in the limit of large d; its growth is seen without a signal.
    signal, noise = np.eye(N + 1)[0], np.eye(N + 1)[1:]
    on_signal = (start @ signal) * _cnn.CLASSES[:, None]
    on_noise = np.where((labels == _cnn.CLASSES[:, None])[:, None], start @ noise.T, 0)  # filters of its class
    common = {"learning_rate": 1.0, "width_scale": 1 / WIDTH, "power": POWER}
    units = (
        signal_noise.early_signal_rate(signal_norm=1.0, **common),
        signal_noise.early_noise_rate(noise_norm=1.0, n=N, **common),
    )
    found = []
    for own, unit, present in zip((on_signal[..., None], on_noise), units, (signal, 0 * signal)):
        j, r, i = np.unravel_index(np.argmax(own), own.shape)
        vector = noise[i] if own is on_noise else _cnn.CLASSES[j] * signal
        run = _cnn.Run(present, noise, labels, labels, start, 1.0, POWER)
        found.append(_grown(run, (j, r), vector, unit, printed))
    return found


def _grown(run, which, vector, unit, printed):
    """The recursion's value over the trained one, at the step where the trained one has doubled."""
    predicted = trained = begun = run.weights[which] @ vector
    eta = SMALL / begun ** (POWER - 2)  # eta_gamma or eta_xi
    for _ in range(LONGEST):
        if trained >= 2 * begun:
            break
        run.step(eta / unit)
        trained = run.weights[which] @ vector
        power = predicted ** (POWER - 1)
        predicted = (1 - eta) * power if printed else predicted + eta * power
    return predicted / trained
