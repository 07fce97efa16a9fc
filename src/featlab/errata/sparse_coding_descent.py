r"""Gradient descent subtracts the gradient.

In equation (5) of the notes the minus sign between the weights and the rate is missing, so that the right side
reads as a product; the overview slide has it. The notes' network is drawn on their sparse coding data, and the
change of the risk in one short step is compared with $-\eta \|\nabla \mathrm{Risk}\|^2$, which descent gives to
first order. The gradient is taken by differences.
"""

from __future__ import annotations

import math

import numpy as np

from featlab.claims import at_most
from featlab.errata import _sources
from featlab.errata._erratum import Erratum, over_seeds

D, SPARSITY, NEURONS, SAMPLES = 16, 4, 6, 200  # d, sqrt d, m, N
NOISE, START, BIAS = 0.1, 0.5, 0.1  # sigma_0, sigma_1, b
RATE, SHIFT = 1e-4, 1e-6
CLOSE = 0.05  # what first order may miss


class SparseCodingDescent(Erratum):
    """The erratum of this file."""

    title = "the update of gradient descent subtracts the gradient"
    source = (
        "“How Feature Learning Theory Works?” (Chen Yanbo, FLT Seminar Series, Session 2), “Algorithm”, "
        "equation (5)"
    )
    printed = (
        r"\mathbf{w}_i^{(t+1)} \leftarrow \mathbf{w}_i^{(t)} \eta \nabla_{\mathbf{w}_i^{(t)}} "
        r"\text{Risk}(\mathbf{w}_i^{(t)})"
    )
    corrected = (
        r"\mathbf{w}_i^{(t+1)} \leftarrow \mathbf{w}_i^{(t)} - \eta \nabla_{\mathbf{w}_i^{(t)}} "
        r"\text{Risk}(\mathbf{w}_i^{(t)})"
    )
    derivation = (
        r"$\text{Risk}(\mathbf{w} - \eta \nabla \text{Risk}) = \text{Risk}(\mathbf{w}) - \eta \|\nabla "
        r"\text{Risk}\|^2 + O(\eta^2)$: this sign lowers the risk, as the overview slide's $w - \eta \nabla "
        r"\text{Loss}$ does."
    )
    reference = _sources.SEMINAR
    one_symbol = True

    def judge(self, lab, *, printed):
        logs = np.log10(np.abs(over_seeds(lab, _ratio, printed) - 1))
        name = "log10 of the relative deviation of the change from that of descent"
        yield at_most(name, logs, math.log10(CLOSE))


def _ratio(rng, printed):
    dictionary = np.linalg.qr(rng.standard_normal((D, D)))[0]
    hidden = np.zeros((SAMPLES, D))
    for row in hidden:
        row[rng.choice(D, SPARSITY, replace=False)] = rng.choice([-1.0, 1.0], SPARSITY)
    x = hidden @ dictionary.T + NOISE * rng.standard_normal((SAMPLES, D))
    y = np.sign(hidden @ rng.uniform(0.5, 1.5, D))
    weights = START * rng.standard_normal((NEURONS, D))

    def risk(w):
        products = x @ w.T
        outputs = np.sum(np.maximum(products - BIAS, 0) - np.maximum(-products - BIAS, 0), axis=1)
        return np.mean(np.log1p(np.exp(-y * outputs)))

    gradient = np.zeros_like(weights)
    for index in np.ndindex(*weights.shape):
        shift = np.zeros_like(weights)
        shift[index] = SHIFT
        gradient[index] = (risk(weights + shift) - risk(weights - shift)) / (2 * SHIFT)
    after = weights * RATE * gradient if printed else weights - RATE * gradient
    return (risk(after) - risk(weights)) / (-RATE * np.sum(gradient**2))
