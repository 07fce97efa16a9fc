r"""The first gradient of a two-layer network is a matrix of rank one, along one learnt direction.

Ba, Erdogdu, Suzuki, Wang, Wu and Yang (2022), and Moniri, Lee, Hassani and Dobriban (2023): the
negative gradient $G$ of the loss in the first layer is $c_1 a \beta^\top$ up to $O(\log^2 n/\sqrt n)$ in
operator norm, with $\beta = X^\top y/n$, whose cosine with the teacher's direction tends to
$c_{\star 1}/\sqrt b$. So from one size to another the relative gap falls at least as that bound does. It needs
an untrained output of $o(1)$: the output of the literal start is of order one, the residual is $y - f_0$, and
the gap to $X^\top y/n$ stays; that is the control.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from featlab.algorithms import GiantStep
from featlab.claims import _one_step as shared
from featlab.claims._claim import Claim, Size
from featlab.claims._judge import agrees, bounded_by
from featlab.fields import real
from featlab.probes import step_direction
from featlab.theory import one_step


class RankOne(Claim):
    """The claim of this file."""

    title = "the first gradient has rank one, along the direction X'y"
    statement = (
        r"\frac{\|G - c_1 a \beta^\top\|_{op}}{\|G\|_{op}} = O\left(\frac{\log^2 n}{\sqrt n}\right), \qquad "
        r"\cos(\beta, \beta_\star) \to \frac{c_{\star 1}}{\sqrt b}"
    )
    refuted_if = "the gap to rank one falls less than log^2 n / sqrt n does, or the step points elsewhere"
    reference = shared.MONIRI
    sizes = {
        "tiny": Size(seeds=3, n=(40, 80)),
        "smoke": Size(seeds=6, n=(300, 900)),
        "laptop": Size(seeds=16, n=(500, 4000)),
        "full": Size(seeds=64, n=(1000, 16_000)),
    }
    number_of_checks = 2
    minutes = 3.0  # singular values of steps on up to 4000 inputs
    control_changes = "the step is taken on the network with its untrained output, not the centred one"

    dimensions: float = real(default=shared.DIMENSIONS, above=0)  # d / n
    neurons: float = real(default=shared.NEURONS, above=0)  # N / n

    def typical(self):
        return self._experiment(1000, "y = H1 + noise")

    def assumptions(self, experiment):
        return [shared.in_proportion(experiment), shared.centred_activation(experiment)]

    def checks(self, lab):
        reads = {name: self._reads(lab, name) for name in shared.SETTINGS}
        yield self._falls(lab, reads)
        cosines = []
        for name, (_, large) in reads.items():
            phi, _ = shared.proportions(self._experiment(lab.size.n[1], name))
            law = one_step.alignment(phi, shared.SETTINGS[name].teacher)
            cosines.append(large["step_alignment"][:, 0] / law)
        yield agrees(
            "cosine of the step with the teacher, over its limit", np.array(cosines), 1.0, cells=tuple(reads)
        )

    def control(self, lab):
        name = next(iter(shared.SETTINGS))
        return self._falls(lab, {name: self._reads(lab, name, subtract_start=False)})

    def _falls(self, lab, reads):
        r"""The gap at the larger size over that at the smaller, against $\log^2 n / \sqrt n$."""
        small, large = lab.size.n
        bound = math.sqrt(small / large) * (math.log(large) / math.log(small)) ** 2
        ratios = np.array([two["rank_one_gap"] / one["rank_one_gap"] for one, two in reads.values()])
        return bounded_by("fall of the relative gap to rank one", ratios, bound, cells=tuple(reads))

    def _reads(self, lab, name, **changed):
        return [lab.endings(self._experiment(n, name, **changed)) for n in lab.size.n]

    def _experiment(self, n, name, **changed):
        sizes: dict[str, Any] = {"dimensions": self.dimensions, "neurons": self.neurons}
        return shared.stated(n, shared.SETTINGS[name], GiantStep(eta=1.0), [step_direction], **sizes, **changed)
