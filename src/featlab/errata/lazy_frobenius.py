r"""In the lazy regime each neuron moves by $O(1/\sqrt N)$, and the matrix of all of them by $O(1)$.

With the slide's output scaling $\frac{1}{\sqrt N}$ every neuron's gradient is of order $1/\sqrt N$, so that its
change is too (Jacot, Gabriel and Hongler 2018; Chizat, Oyallon and Bach 2019). There are $N$ of them: the
Frobenius norm of the change is of order one, as it is in the slide's other regime, and what vanishes is its
ratio to $\|W(0)\|_F \sim \sqrt N$. Networks of several widths are trained for the same time, output at the start
taken away.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from featlab.claims import Size, scales_as
from featlab.errata import _sources
from featlab.errata._erratum import Erratum, over_seeds

SAMPLES, DIMENSION = 16, 10
RATE, STEPS = 1.0, 40


class LazyFrobenius(Erratum):
    """The erratum of this file."""

    title = "lazy training moves the weight matrix by order one, and each of its rows by order one over root N"
    source = (
        "Tutorial at AJCAI 2025 (A. Han, W. Huang), slide “A representation perspective”, lazy training beside "
        "feature learning"
    )
    printed = r"\|W(t) - W(0)\|_F = O\left(\frac{1}{\sqrt{N}}\right)"
    corrected = (
        r"\|W(t) - W(0)\|_F = O(1), \qquad \frac{\|W(t) - W(0)\|_F}{\|W(0)\|_F} = O\left(\frac{1}{\sqrt{N}}\right)"
    )
    derivation = (
        r"$\nabla_{w_i} f = \frac{1}{\sqrt{N}} a_i \sigma'(\langle w_i, x \rangle) x$, so $\|w_i(t) - w_i(0)\| = "
        r"O(1/\sqrt{N})$ while the output moves by $O(1)$, and the squares of $N$ such rows add up to $O(1)$."
    )
    reference = _sources.TUTORIAL
    sizes = {
        "tiny": Size(seeds=3, width=(64, 128, 256)),
        "smoke": Size(seeds=24, width=(256, 1024, 4096)),
        "laptop": Size(seeds=24, width=(256, 1024, 4096, 16_384)),
        "full": Size(seeds=32, width=(1024, 4096, 16_384, 65_536)),
    }

    def judge(self, lab, *, printed):
        found = over_seeds(lab, _moved, lab.size.width)  # (width, change and start, seed)
        moved, start = (xr.DataArray(found[:, k], {"N": list(lab.size.width)}, ("N", "seed")) for k in (0, 1))
        law, rival = (-0.5, 0.0) if printed else (0.0, -0.5)
        symbols = ("N", r"\|W(t) - W(0)\|_F")
        yield scales_as("exponent of the change in the width", moved, "N", law, (rival,), symbols=symbols)
        symbols = ("N", r"\|W(t) - W(0)\|_F / \|W(0)\|_F")
        name = "exponent of the relative change in the width"
        yield scales_as(name, moved / start, "N", -0.5, (0.0, -1.0), symbols=symbols)


def _moved(rng, widths):
    """Frobenius norms of the change and of the start, for each width, on one training set."""
    x = rng.standard_normal((SAMPLES, DIMENSION)) / np.sqrt(DIMENSION)
    y = np.tanh(x @ rng.standard_normal(DIMENSION))
    found = []
    for width in widths:
        head = rng.choice([-1.0, 1.0], width)
        start = rng.standard_normal((width, DIMENSION))
        weights, untrained = start.copy(), np.tanh(x @ start.T) @ head / np.sqrt(width)
        for _ in range(STEPS):
            hidden = np.tanh(x @ weights.T)
            residual = y - (hidden @ head / np.sqrt(width) - untrained)
            weights += RATE * ((residual[:, None] * (1 - hidden**2) * head).T @ x) / (SAMPLES * np.sqrt(width))
        found.append((np.linalg.norm(weights - start), np.linalg.norm(start)))
    return found
