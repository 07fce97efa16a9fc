r"""The features that the step makes are those of the updated weights.

On two slides the left side has $W_0$, for which the approximation would not hold; the slide before has $W$. A
real gradient step is taken, on the network less its untrained output, and the distance of the features from the
approximation is compared at two sizes: in units of $\sqrt n$, the talk's scale for what is negligible, it must
fall.
"""

from __future__ import annotations

import numpy as np

from featlab.claims import Size, at_most
from featlab.errata import _one_step, _sources
from featlab.errata._erratum import Erratum, over_seeds

ALPHA = 0.2  # of the step n^alpha, in the range of one spike


class UpdatedFeatures(Erratum):
    """The erratum of this file."""

    title = "the features after the step are those of the updated weights"
    source = (
        "“A Theory of Non-Linear Feature Learning with One Gradient Step in Two-Layer Neural Networks” (E. "
        "Dobriban, Lausanne 2024), slide “Spectrum of updated feature matrix”, first line"
    )
    printed = (
        r"\mathbf{F} = \sigma(\tilde{\mathbf{X}}\mathbf{W}_0^\top) \approx "
        r"\sigma(\tilde{\mathbf{X}}\mathbf{W}_0^\top + "
        r"c_1\eta\tilde{\mathbf{X}}\boldsymbol{\beta}\boldsymbol{a}^\top)"
    )
    corrected = (
        r"\mathbf{F} = \sigma(\tilde{\mathbf{X}}\mathbf{W}^\top) \approx "
        r"\sigma(\tilde{\mathbf{X}}\mathbf{W}_0^\top + "
        r"c_1\eta\tilde{\mathbf{X}}\boldsymbol{\beta}\boldsymbol{a}^\top)"
    )
    derivation = (
        r"$\mathbf{W} \approx \mathbf{W}_0 + \eta c_1 \boldsymbol{a} \boldsymbol{\beta}^\top$ inside "
        r"$\sigma(\tilde{\mathbf{X}} \mathbf{W}^\top)$; $\sigma(\tilde{\mathbf{X}} \mathbf{W}_0^\top)$ is "
        r"$\mathbf{F}_0$, of the same line."
    )
    reference = _sources.ONE_STEP
    one_symbol = True
    sizes = {
        "tiny": Size(seeds=3, n=(40, 80)),
        "smoke": Size(seeds=24, n=(150, 600)),
        "laptop": Size(seeds=32, n=(400, 1600)),
        "full": Size(seeds=64, n=(1000, 4000)),
    }
    minutes = 0.3

    def judge(self, lab, *, printed):
        small, large = over_seeds(lab, _distances, lab.size.n)[:, 0 if printed else 1]
        yield at_most("distance over root n, at the larger size over the smaller", large / small, 1.0)


def _distances(rng, sizes):
    """Of the features with W_0 and of those with W, for each size."""
    return [_distances_at(rng, n) for n in sizes]


def _distances_at(rng, n):
    one, eta = _one_step.drawn(rng, n), n**ALPHA
    fresh = rng.standard_normal(one.x.shape)
    learnt = one.x.T @ one.y / n
    shift = eta * _one_step.COEFFICIENTS[1] * np.outer(fresh @ learnt, one.head)
    approximation = _one_step.activation(fresh @ one.start.T + shift)
    updated = one.start + eta * one.gradient(one.y)
    differences = [_one_step.activation(fresh @ weights.T) - approximation for weights in (one.start, updated)]
    return [_one_step.norm(difference) / np.sqrt(n) for difference in differences]
