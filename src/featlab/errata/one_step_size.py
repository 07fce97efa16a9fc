r"""One gradient step beats every kernel when it is large, and not when it is of order one.

Ba, Erdogdu, Suzuki, Wang, Wu and Yang (2022), with the slide's footnote $\sigma = \sigma^* = \tanh$, the slide's
output scaling and $W_1 = W_0 + \eta \sqrt N G_0$: the risk goes below $\|P_{>1} f^*\|^2$ for $\eta =
\Theta(\sqrt N)$ and enough samples, while a step of size $\Theta(1)$ stays above it as random features do. The
slide leaves the size of the step open. Ridge regression is made on fresh samples, each time with the best of
several penalties.
"""

from __future__ import annotations

import numpy as np

from featlab.claims import at_most
from featlab.errata import _sources
from featlab.errata._erratum import Erratum, over_seeds
from featlab.theory import hermite

D, SAMPLES, NEURONS = 60, 960, 192  # d, n, N
PENALTIES = np.logspace(-6, 0, 7)
TESTS = 3000


class OneStepSize(Erratum):
    """The erratum of this file."""

    title = "one gradient step beats kernels if its size grows as root N"
    source = (
        "Tutorial at AJCAI 2025 (A. Han, W. Huang), slide “A representation perspective”, neural network after "
        "one gradient step"
    )
    printed = (
        r"\mathbf{w}_i \text{ one-step gradient update from } \mathbf{w}_i^0: \quad "
        r"\mathcal{R}(\hat{f}_\lambda) < \|\mathbf{P}_{>1} f^*\|_{L^2}^2"
    )
    corrected = (
        r"\mathbf{w}_i \text{ one-step gradient update from } \mathbf{w}_i^0 \text{ with } \eta = "
        r"\Theta(\sqrt{N}), \ n/d \text{ large}: \quad \mathcal{R}(\hat{f}_\lambda) < \|\mathbf{P}_{>1} "
        r"f^*\|_{L^2}^2"
    )
    derivation = (
        r"The step is $\eta c_1 \sqrt{N} \mathbf{a} \boldsymbol{\beta}^\top$ up to smaller terms, of length "
        r"$\eta$; a neuron has length 1 and a share $\eta/\sqrt{N}$ of the step, so that only $\eta \sim "
        r"\sqrt{N}$ bends its activation."
    )
    reference = _sources.TUTORIAL

    def judge(self, lab, *, printed):
        risks = over_seeds(lab, _risk, 1.0 if printed else np.sqrt(NEURONS)) / hermite.nonlinear_part(np.tanh)
        yield at_most("risk over the nonlinear part of the teacher", risks, 1.0)


def _risk(rng, eta):
    direction = rng.standard_normal(D)
    direction /= np.linalg.norm(direction)
    start, head = rng.standard_normal((NEURONS, D)) / np.sqrt(D), rng.standard_normal(NEURONS) / np.sqrt(NEURONS)
    x = rng.standard_normal((SAMPLES, D))
    hidden = np.tanh(x @ start.T)
    residual = np.tanh(x @ direction) - hidden @ head / np.sqrt(NEURONS)
    gradient = (residual[:, None] * (1 - hidden**2) * head).T @ x / (SAMPLES * np.sqrt(NEURONS))
    weights = start + eta * np.sqrt(NEURONS) * gradient

    fresh, tests = rng.standard_normal((SAMPLES, D)), rng.standard_normal((TESTS, D))
    features = np.tanh(fresh @ weights.T)
    values, vectors = np.linalg.eigh(features.T @ features / SAMPLES)
    target = vectors.T @ (features.T @ np.tanh(fresh @ direction)) / SAMPLES
    seen, truth = np.tanh(tests @ weights.T) @ vectors, np.tanh(tests @ direction)
    return min(np.mean((seen @ (target / (values + penalty)) - truth) ** 2) for penalty in PENALTIES)
