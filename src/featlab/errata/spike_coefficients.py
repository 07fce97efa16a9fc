r"""Every spike carries a power of the first Hermite coefficient, not of its own.

The step is $c_1 a \beta^\top$, so its k-th power in the activation's expansion is $c_1^k$; the talk's theorem
has it so, and one slide has $c_k^k$. Features after a step of rank one are regressed on the powers of $\eta
(\tilde X\beta)_i a_j$, and the coefficient of the square is read off.
"""

from __future__ import annotations

import numpy as np

from featlab.claims import Size, equals
from featlab.errata import _one_step, _sources
from featlab.errata._erratum import Erratum, over_seeds

POWERS = 6  # fitted together, since those beyond would otherwise be seen in the second
ALPHA = 0.3  # of the step n^alpha, in the range of two spikes


class SpikeCoefficients(Erratum):
    """The erratum of this file."""

    title = "the k-th spike carries the k-th power of the first Hermite coefficient"
    source = (
        "“A Theory of Non-Linear Feature Learning with One Gradient Step in Two-Layer Neural Networks” (E. "
        "Dobriban, Lausanne 2024), last slide “Universality”, point 1"
    )
    printed = (
        r"\mathbf{F} = \mathbf{F}_0 + \sum_{k=1}^{\ell} c_k^k c_k \eta^k (\tilde{\mathbf{X}} "
        r"\boldsymbol{\beta})^{\circ k} (\boldsymbol{a}^{\circ k})^{\top}"
    )
    corrected = (
        r"\mathbf{F} = \mathbf{F}_0 + \sum_{k=1}^{\ell} c_1^k c_k \eta^k (\tilde{\mathbf{X}} "
        r"\boldsymbol{\beta})^{\circ k} (\boldsymbol{a}^{\circ k})^{\top}"
    )
    derivation = (
        r"$\mathbb{E}_z \sigma(z + \delta) = \sum_k c_k \delta^k$ for $z \sim \mathcal{N}(0, 1)$, and the step "
        r"shifts the preactivations by $\delta = c_1 \eta (\tilde{\mathbf{X}} \boldsymbol{\beta})_i a_j$."
    )
    reference = _sources.ONE_STEP
    sizes = {
        "tiny": Size(seeds=3, n=100),
        "smoke": Size(seeds=12, n=1000),
        "laptop": Size(seeds=24, n=2000),
        "full": Size(seeds=64, n=3000),
    }
    minutes = 0.3

    def judge(self, lab, *, printed):
        first, second = _one_step.COEFFICIENTS[1:]
        law = (second**2 if printed else first**2) * second
        found = over_seeds(lab, _second_coefficient, lab.size.n)
        yield equals("coefficient of the second spike over the formula", found / law, 1.0)


def _second_coefficient(rng, n):
    one, eta = _one_step.drawn(rng, n), n**ALPHA
    learnt = one.x.T @ one.y / n
    fresh = rng.standard_normal(one.x.shape)
    shift = eta * np.outer(fresh @ learnt, one.head)
    untrained = fresh @ one.start.T
    gained = _one_step.activation(untrained + _one_step.COEFFICIENTS[1] * shift) - _one_step.activation(untrained)
    powers = np.cumprod(np.broadcast_to(shift, (POWERS, *shift.shape)), axis=0)
    normal = np.array([[np.vdot(p, q) for q in powers] for p in powers])
    return np.linalg.solve(normal, [np.vdot(p, gained) for p in powers])[1]
