r"""A large gradient step adds spikes to the features, one power of the learnt direction after the other.

Moniri, Lee, Hassani and Dobriban (2023), on the spectrum of the features. With $\eta \asymp n^\alpha$ and
$\frac{\ell-1}{2\ell} < \alpha < \frac{\ell}{2\ell+2}$ the features of fresh inputs are, up to $o(\sqrt n)$ in
operator norm, those before the step and $\ell$ spikes:
$F_\ell = F_0 + \sum_{k \leq \ell} c_1^k c_k \eta^k (\tilde X\beta)^{\circ k} (a^{\circ k})^\top$. So
$\|F - F_\ell\|/\sqrt n$ falls with n, $\|F - F_{\ell-1}\|/\sqrt n$ does not, and spike $k$ is of order
$n^{k(\alpha - 1/2) + 1/2}$: the first of order $n^\alpha$, and each further one weaker by $n^{\alpha - 1/2}$.

The activation has $c_1 c_2 c_3 \neq 0$ and bounded derivatives (ReLU has $c_3 = 0$). With the literal start in
place of the centred network the first residual is $y - f_0$, the learnt direction is not $\beta$, and nothing
falls: the control.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from featlab.algorithms import GiantStep
from featlab.boundaries import exponents
from featlab.claims import _one_step as shared
from featlab.claims._claim import Assumption, Claim, Size
from featlab.claims._judge import bounded_by, exceeds, scales_as
from featlab.fields import real
from featlab.networks import centred, hermite_series
from featlab.probes import spike_overlaps, spiked_gaps
from featlab.theory import hermite

TEACHER = shared.Setting(hermite_series((0, 1)), 0.0)
REGIMES = {1: 0.2, 2: 0.3}  # spikes, and an exponent of the step that makes so many


def bent(z):
    r"""$z + \sin(z + 0.8)$: all derivatives are bounded, all Hermite coefficients differ from 0."""
    return z + jnp.sin(z + 0.8)


STUDENT = centred(bent)


class Spikes(Claim):
    """The claim of this file."""

    title = "a large gradient step adds spikes to the features, each a power of one learnt direction"
    statement = (
        r"\|F - F_\ell\|_{op} = o(\sqrt n), \qquad F_\ell = F_0 + \sum_{k=1}^{\ell} c_1^k c_k \eta^k "
        r"(\tilde X \beta)^{\circ k} (a^{\circ k})^\top"
    )
    refuted_if = (
        "the features' distance from F_l grows with n, or the exponents of the spikes differ from the theory's"
    )
    reference = shared.MONIRI
    sizes = {
        "tiny": Size(seeds=3, n=(60, 90, 120)),
        "smoke": Size(seeds=6, n=(300, 600, 1200)),
        "laptop": Size(seeds=32, n=(1000, 2000, 4000)),
        "full": Size(seeds=64, n=(2000, 4000, 8000, 16_000)),
    }
    number_of_checks = 7
    minutes = 3.0  # eigenvalues of features of up to 4000 inputs
    control_changes = "the step is taken on the network with its untrained output, not the centred one"

    constant: float = real(default=0.4, above=0)  # c, of the step c n^alpha by which distances are measured
    dimensions: float = real(default=0.2, above=0)  # d / n, there
    neurons: float = real(default=0.2, above=0)  # N / n, there

    def typical(self):
        return self._experiment(2000, 2)

    def assumptions(self, experiment):
        c = hermite.coefficients(shared.network(experiment).activation, 3)
        return [
            shared.in_proportion(experiment),
            shared.centred_activation(experiment),
            Assumption("100 |c_1 c_2 c_3|: three spikes exist", 100 * abs(c[1] * c[2] * c[3]), ">= 1"),
        ]

    def checks(self, lab):
        runs = {spikes: self._runs(lab, spikes) for spikes in REGIMES}
        for spikes, reads in runs.items():
            yield self._falls(lab, spikes, reads)
            slopes = self._slopes(lab, [read["spiked_gap"][:, 0] for read in reads])
            yield exceeds(f"exponent of |F - F_{spikes - 1}| / sqrt n, alpha = {REGIMES[spikes]:g}", slopes, 0.0)
        reads = [lab.endings(self._experiment(n, 1, [spike_overlaps], (0.25, 0.5, 0.4))) for n in lab.size.n]
        overlaps = np.array([read["spike_overlap"] for read in reads])  # (size, seed, spike)
        alpha, n = REGIMES[1], lab.size.n
        yield scales_as(
            "exponent of spike 1", n, overlaps[..., 0], alpha, (alpha - 0.5, 0.0), symbols=("n", "s_1")
        )
        for k in (1, 2):
            weaker = overlaps[..., k] / overlaps[..., k - 1]
            symbols = ("n", f"s_{k + 1} / s_{k}")
            yield scales_as(
                f"exponent of spike {k + 1} over spike {k}",
                n,
                np.abs(weaker),
                alpha - 0.5,
                (0.0,),
                symbols=symbols,
            )

    def control(self, lab):
        return self._falls(lab, 1, self._runs(lab, 1, subtract_start=False))

    def _falls(self, lab, spikes, reads):
        slopes = self._slopes(lab, [read["spiked_gap"][:, 1] for read in reads])
        return bounded_by(f"exponent of |F - F_{spikes}| / sqrt n, alpha = {REGIMES[spikes]:g}", slopes, 0.0)

    def _slopes(self, lab, values):
        return exponents(np.asarray(lab.size.n, float), np.array(values)).overall

    def _runs(self, lab, spikes, **changed):
        return [lab.endings(self._experiment(n, spikes, **changed)) for n in lab.size.n]

    def _experiment(self, n, spikes, probes=None, sizes=None, **changed):
        r"""A step that makes so many spikes.

        Distances are clear where the step is large and dimensions are few, so that the gradient is near rank
        one; the exponents of single spikes where the step is small (higher powers add to lower ones in
        proportion to $\eta^2 / N$) and dimensions are many.
        """
        constant, dimensions, neurons = sizes or (self.constant, self.dimensions, self.neurons)
        probes = [spiked_gaps(order=(spikes - 1, spikes))] if probes is None else probes
        step = GiantStep(alpha=REGIMES[spikes], constant=constant)
        ratios: dict[str, Any] = {"dimensions": dimensions, "neurons": neurons}
        return shared.stated(n, TEACHER, step, probes, activation=STUDENT, **ratios, **changed)
