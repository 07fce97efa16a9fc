r"""The contrastive loss compares the positive pair with negatives that differ from one another.

In the printed denominator neither term carries an index: read literally its $M + 1$ terms are equal, and the
loss is $\log(1 + M)$ whatever the embedding. The loss is minus the log-probability that the positive wins a
softmax lottery (van den Oord, Li and Vinyals 2018; Huang, Han and co-authors 2024), and the lottery is held:
independent Gumbel numbers are added to all similarities, and wins are counted.
"""

from __future__ import annotations

import numpy as np

from featlab.claims import equals
from featlab.errata import _sources
from featlab.errata._erratum import Erratum, over_seeds

NEGATIVES, WIDTH, TEMPERATURE = 8, 16, 0.5
ANCHORS, LOTTERIES = 64, 500


class ContrastiveLoss(Erratum):
    """The erratum of this file."""

    title = "the contrastive loss sums over the similarities with each negative"
    source = (
        "Tutorial at AJCAI 2025 (A. Han, W. Huang), slide “Multi-model contrastive learning [2]”, contrastive loss"
    )
    printed = (
        r"\ell = -\log\left(\frac{e^{\text{Sim}(\mathbf{x}_i, "
        r"\hat{\mathbf{x}}_i)/\tau}}{e^{\text{Sim}(\mathbf{x}, \hat{\mathbf{x}}')/\tau} + \sum_{j \neq i}^M "
        r"e^{\text{Sim}(\mathbf{x}, \hat{\mathbf{x}}')/\tau}}\right)"
    )
    corrected = (
        r"\ell = -\log\left(\frac{e^{\text{Sim}(\mathbf{x}_i, \mathbf{x}_i^+)/\tau}}{e^{\text{Sim}(\mathbf{x}_i, "
        r"\mathbf{x}_i^+)/\tau} + \sum_{j=1}^M e^{\text{Sim}(\mathbf{x}_i, \mathbf{x}_j^-)/\tau}}\right)"
    )
    derivation = (
        r"The loss on the slide's left, $\ell(\mathbf{x}, \mathbf{x}^+, \{\mathbf{x}_j^-\})$, is the "
        r"cross-entropy of finding $\mathbf{x}^+$ among $M + 1$ candidates, each with its own similarity."
    )
    reference = _sources.TUTORIAL
    one_symbol = True

    def judge(self, lab, *, printed):
        ratios = over_seeds(lab, _ratio, printed)
        yield equals("share of lotteries that the positive wins, over exp(-loss)", ratios, 1.0)


def _ratio(rng, printed):
    def embedded(*shape):
        return np.maximum(rng.standard_normal((*shape, WIDTH)), 0) / np.sqrt(WIDTH)

    anchors, negatives = embedded(ANCHORS), embedded(ANCHORS, NEGATIVES)
    positives = anchors + 0.1 * embedded(ANCHORS)
    own = np.sum(anchors * positives, axis=-1)[:, None] / TEMPERATURE
    others = np.einsum("iw,ijw->ij", anchors, negatives) / TEMPERATURE
    terms = np.repeat(own, NEGATIVES, axis=1) if printed else others
    loss = -np.log(np.exp(own) / (np.exp(own) + np.exp(terms).sum(axis=1, keepdims=True)))
    tickets = np.concatenate([own, others], axis=1)
    wins = np.argmax(tickets + rng.gumbel(size=(LOTTERIES, *tickets.shape)), axis=-1) == 0
    return np.mean(wins) / np.mean(np.exp(-loss))
