r"""Adam without memory is sign descent only if its $\epsilon$ is zero as well.

At $\beta_1 = \beta_2 = 0$ the slide's Adam takes the step $g / (|g| + \epsilon)$, which is the sign of $g$ while
$|g| \gg \epsilon$, and shrinks with $g$ below, as gradients do late in training. Both are computed for gradients
of many sizes.
"""

from __future__ import annotations

import numpy as np

from featlab.claims import identity
from featlab.errata import _sources
from featlab.errata._erratum import Erratum, over_seeds

EPSILON = 1e-8  # that of Kingma and Ba (2015)


class SignDescentEpsilon(Erratum):
    """The erratum of this file."""

    title = "Adam is sign descent when its epsilon vanishes along with both rates"
    source = "Tutorial at AJCAI 2025 (A. Han, W. Huang), slide “Feature learning with Sign GD and Adam”, Sign-GD"
    printed = r"\text{Sign-GD} = \text{Adam at } \beta_1 = \beta_2 = 0"
    corrected = r"\text{Sign-GD} = \text{Adam at } \beta_1 = \beta_2 = \epsilon = 0"
    derivation = (
        r"At $\beta_1 = \beta_2 = 0$ one has $\mathbf{m}_t = \mathbf{g}_t$ and $\mathbf{v}_t = \mathbf{g}_t^2$, "
        r"so the step is $\mathbf{g}_t / (|\mathbf{g}_t| + \epsilon)$."
    )
    reference = _sources.TUTORIAL

    def judge(self, lab, *, printed):
        residuals = over_seeds(lab, _residual, EPSILON if printed else 0.0)
        yield identity("step less the sign of the gradient", residuals, 1e-12)


def _residual(rng, epsilon, first=0.0, second=0.0):
    gradient = rng.choice([-1.0, 1.0], 100) * 10 ** rng.uniform(-10, 0, 100)
    m = first * 0 + (1 - first) * gradient
    v = second * 0 + (1 - second) * gradient * gradient
    return np.max(np.abs(m / (np.sqrt(v) + epsilon) - np.sign(gradient)))
