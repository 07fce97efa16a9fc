r"""With the talk's start the first gradient points along the residuals of the untrained network.

The network $a^\top \sigma(Wx)$ with $a \sim \mathcal{N}(0, I/N)$ has an output $f_0$ of order one before
training, so the residual is $y - f_0$ and not $y$. (Ba, Erdogdu, Suzuki, Wang, Wu and Yang 2022 have another
$1/\sqrt N$ in the output, which makes $f_0$ small; or the step is taken on $f - f_0$.) The relative distance of
the gradient from rank one is computed at two sizes; the theorem lets it fall as $\log^2 n/\sqrt n$.
"""

from __future__ import annotations

import math

import numpy as np

from featlab.claims import Size, at_most
from featlab.errata import _one_step, _sources
from featlab.errata._erratum import Erratum, over_seeds


class UntrainedOutput(Erratum):
    """The erratum of this file."""

    title = "the first gradient points along the residuals, not the labels"
    source = (
        "“A Theory of Non-Linear Feature Learning with One Gradient Step in Two-Layer Neural Networks” (E. "
        "Dobriban, Lausanne 2024), slide “Spectrum of the weights”, with the initialization of “One gradient "
        "step”"
    )
    printed = (
        r"\mathbf{W} \approx \mathbf{W}_0 + \eta c_1 \mathbf{a} \left( \frac{\mathbf{X}^{\top} \mathbf{y}}{n} "
        r"\right)^{\top}"
    )
    corrected = (
        r"\mathbf{W} \approx \mathbf{W}_0 + \eta c_1 \mathbf{a} \left( \frac{\mathbf{X}^{\top} (\mathbf{y} - "
        r"\sigma(\mathbf{X} \mathbf{W}_0^\top) \mathbf{a})}{n} \right)^{\top}"
    )
    derivation = (
        r"The gradient of $\frac{1}{2n} \|\mathbf{y} - \sigma(\mathbf{X} \mathbf{W}^\top) \mathbf{a}\|^2$ holds "
        r"the residual, and each entry of $\sigma(\mathbf{X} \mathbf{W}_0^\top) \mathbf{a}$ has the variance "
        r"$c_1^2 + c_{>1}^2$, which does not vanish."
    )
    reference = _sources.ONE_STEP
    sizes = {
        "tiny": Size(seeds=3, n=(40, 80)),
        "smoke": Size(seeds=48, n=(200, 800)),
        "laptop": Size(seeds=32, n=(400, 1600)),
        "full": Size(seeds=64, n=(1000, 4000)),
    }
    minutes = 0.3

    def judge(self, lab, *, printed):
        small, large = lab.size.n
        bound = math.sqrt(small / large) * (math.log(large) / math.log(small)) ** 2
        before, after = over_seeds(lab, _gaps, lab.size.n)[:, 0 if printed else 1]
        yield at_most("gap to rank one at the larger size over the smaller", after / before, bound)


def _gaps(rng, sizes):
    """With the labels and with the residuals, for each size."""
    return [_gaps_at(rng, n) for n in sizes]


def _gaps_at(rng, n):
    one = _one_step.drawn(rng, n)
    residual = one.y - _one_step.activation(one.x @ one.start.T) @ one.head
    gradient = one.gradient(residual)
    directions = [one.x.T @ target / n for target in (one.y, residual)]
    rests = [gradient - _one_step.COEFFICIENTS[1] * np.outer(one.head, learnt) for learnt in directions]
    return [_one_step.norm(rest) / _one_step.norm(gradient) for rest in rests]
