r"""The second stage of training with label noise is about the weights at its own time, not at the first stage's.

Han, Huang and co-authors (2025b) show that at $T_1$ clean samples are fitted and flipped ones are not, and that
later, at $t^*$, all are. A network is trained, and the flipped samples that it fits are counted at both times.
"""

from __future__ import annotations

from featlab.claims import at_least
from featlab.errata import _label_noise, _sources
from featlab.errata._erratum import Erratum, over_seeds

MOST = 0.9  # how "most if not all" is read


class LabelNoiseStage(Erratum):
    """The erratum of this file."""

    title = "flipped samples are fitted at the end of the second stage, not of the first"
    source = (
        "Tutorial at AJCAI 2025 (A. Han, W. Huang), slide “Benign overfitting with feature learning (Label "
        "noise)”, Stage II, first line"
    )
    printed = r"\text{most if not all } i: \quad \tilde{y}_i f(\mathbf{W}^{(T_1)}, \mathbf{x}_i) \geq 0"
    corrected = r"\text{most if not all } i: \quad \tilde{y}_i f(\mathbf{W}^{(t^*)}, \mathbf{x}_i) \geq 0"
    derivation = (
        r"The slide's Stage I has $\tilde{y}_i f(\mathbf{W}^{(T_1)}, \mathbf{x}_i) < 0$ for all noisy samples, "
        r"and Stage II is about $t^* \geq T_1$."
    )
    reference = _sources.TUTORIAL
    one_symbol = True

    def judge(self, lab, *, printed):
        early, late = over_seeds(lab, _shares)
        yield at_least("share of flipped samples that are fitted", early if printed else late, MOST)


def _shares(rng):
    """At T_1 and at t*."""
    run = _label_noise.drawn(rng)
    flipped = run.labels != run.clean
    _label_noise.train_early(run)
    early = run.fitted()[flipped].mean()
    _label_noise.train_late(run)
    return early, run.fitted()[flipped].mean()
