r"""Benign overfitting needs a dimension far above the number of samples, not only one below a power of it.

For eigenvalues $i^{-a}$, $a < 1$, interpolation is benign for $n \ll d \ll n^{1/(1-a)}$ (Bartlett, Long, Lugosi
and Tsigler 2020). The slide has the upper end alone. A dimension in proportion to $n$ is below it too, and there
the noise that is fitted costs as much at every $n$. That cost, the variance of the interpolator of least norm,
is computed exactly given the inputs.
"""

from __future__ import annotations

import numpy as np

from featlab.claims import Size, at_most
from featlab.errata import _sources
from featlab.errata._erratum import Erratum, over_seeds

DECAY = 0.5  # a
FALLS = 0.9  # benign: the variance tends to 0, so it is lower by a tenth or more where n is four times as large
DRAWS = 4  # of the inputs, for each seed


class BenignDimension(Erratum):
    """The erratum of this file."""

    title = "benign overfitting needs d far above n"
    source = (
        "“Feature learning theory in multi-task and in-context learning” (T. Suzuki, FIMI 2024), slide "
        "“Eigenvalue decay and generalization”, (2) benign overfitting"
    )
    printed = r"a < 1, \quad d = o(n^{1/(1-a)})"
    corrected = r"a < 1, \quad n \ll d \ll n^{1/(1-a)}"
    derivation = (
        r"With $\lambda = 0$ and $k = 0$ the variance is $\sigma^2 n \sum_j \lambda_j^2 / (\sum_j "
        r"\lambda_j)^2$, up to logs $\sigma^2 n / d$ for $a \leq 1/2$: it vanishes for $d \gg n$ and not for $d "
        r"= O(n)$."
    )
    reference = _sources.MULTI_TASK
    sizes = {
        "tiny": Size(seeds=3, n=(10, 40)),
        "smoke": Size(seeds=24, n=(40, 160)),
        "laptop": Size(seeds=24, n=(50, 200)),
        "full": Size(seeds=64, n=(100, 400)),
    }
    minutes = 0.3

    def judge(self, lab, *, printed):
        falls = over_seeds(lab, _fall, lab.size.n, printed)
        yield at_most("variance at the larger n over that at the smaller", falls, FALLS)


def _fall(rng, sizes, printed):
    small, large = (_variance(rng, n, 2 * n if printed else round(n**1.5)) for n in sizes)
    return large / small


def _variance(rng, n, d):
    spectrum = np.arange(1, d + 1) ** -DECAY
    found = []
    for _ in range(DRAWS):
        x = rng.standard_normal((n, d)) * np.sqrt(spectrum)
        gram = x @ x.T
        # Tr[G^-1 X Sigma X' G^-1], the pseudo-inverse of X being X' G^-1.
        once = np.linalg.solve(gram, (x * spectrum) @ x.T)
        found.append(np.trace(np.linalg.solve(gram, once.T)))
    return np.mean(found)
