r"""A denoiser learns signal and noise in the ratio $n\,\mathrm{SNR}^2 / 2$; a classifier learns one of them.

Han, Huang, Cao and Zou (2025). Inputs are $[\mu_y, \xi]$ with orthogonal $\mu_1$ and $\mu_{-1}$. A denoiser with
tied weights and quadratic activation has, at a stationary point of its loss, $|\langle w, \mu \rangle| /
|\langle w, \xi \rangle| = \Theta(n\,\mathrm{SNR}^2)$. All that small weights see of the data is $S = \frac1n
\sum_{i,p} x_i^{(p)}$, which gives the constant: $\langle S, \mu_j \rangle / \langle S, \xi_i \rangle = n_j
\|\mu\|^2 / \|\xi_i\|^2$, on average over the two classes $n\,\mathrm{SNR}^2 / 2$.

That is exact for the first step from a small start. It lasts until the gradient vanishes only while a patch is
small beside the noise added to it, $(\alpha_t / \beta_t)^2 \sigma^2 d / n \ll 1$ and $(\alpha_t / \beta_t)^2
\|\mu\|^2 / 2 \ll 1$: exponent and constant are judged there. Beyond, the ratio tends to 1 whatever
$n\,\mathrm{SNR}^2$ is; `theory.denoising.stationary` says how. Large data, a hundred times as long, has the ratio
$n\,\mathrm{SNR}^2 / 2$ in its first step and that of the reduced theory in the end. The conditions on the size of
data are asked of small data alone.

The ratio is a mean of magnitudes over neurons and classes, over one over neurons and samples. A run counts where
the gradient has vanished: its length is below 1 % of loss over length of the weights, a number that is 3 or more
while the loss still falls like a power of the weights.

The classifier beside it has the same filters, activation and algorithm; its noise has length one and $d = \infty$.
It learns what grows faster, with the threshold $n\,\mathrm{SNR}^2 = 2$. The control puts it in the denoiser's
place: labels are predicted and not noise, and the ratio is judged by $n\,\mathrm{SNR}^2 / 2$.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from featlab.claims import Assumption, Claim, Size, at_least, equals, not_judged, scales_as
from featlab.claims.picture import MOMENTS
from featlab.claims.settings import denoising as settings
from featlab.core.validation import real, whole
from featlab.networks import Denoiser
from featlab.probes import feature_balance, geometric, relative_slope, train_loss
from featlab.theory import denoising

STATIONARY = 0.01  # |gradient| |w| / |L|
THRESHOLD = 2.0  # n SNR^2 at which a classifier's signal and noise grow alike: a class has n/2 samples
FAR = 5.0  # times beyond the threshold, where a classifier has learnt one of the two
TIMES = (0.2, 0.5, 2.0)  # noise levels t of small data at n SNR^2 = 1
RATIO = (r"n\,\mathrm{SNR}^2", r"|\langle w, \mu \rangle| / |\langle w, \xi \rangle|")


class BalancedDenoiser(Claim):
    """The claim of this file."""

    title = "a denoiser learns signal and noise in proportion to n SNR^2, where a classifier jumps"
    statement = (
        r"\nabla L = 0: \quad \frac{|\langle w_r, \mu_j \rangle|}{|\langle w_r, \xi_i \rangle|} = "
        r"\Theta(n\,\mathrm{SNR}^2), \qquad \to \tfrac12 n\,\mathrm{SNR}^2 \ \text{ as } \ "
        r"\tfrac{\alpha_t^2}{\beta_t^2} \bigl(\tfrac{\sigma^2 d}{n} + \|\mu\|^2\bigr) \to 0"
    )
    refuted_if = "the exponent of the ratio in n SNR^2 is not 1, or the ratio not half of n SNR^2"
    reference = """@inproceedings{han2025feature,
  title     = {On the Feature Learning in Diffusion Models},
  author    = {Han, Andi and Huang, Wei and Cao, Yuan and Zou, Difan},
  booktitle = {International Conference on Learning Representations},
  year      = {2025}
}"""
    sizes = {
        "tiny": Size(seeds=3, n=(20,), strengths=(0.5, 1.0, 2.0)),
        "smoke": Size(seeds=12, n=(40,), strengths=(0.1, 1.0, 10.0)),
        "laptop": Size(seeds=24, n=(10, 20, 40, 80), strengths=(0.1, 1.0, 10.0)),
        "full": Size(seeds=64, n=(10, 40, 160, 640), strengths=(0.1, 1.0, 10.0)),
    }
    minutes = 1.5
    control_changes = "the labels are predicted, and not the noise"

    clauses = {
        "a stationary denoiser: the ratio is Theta(n SNR^2)": "exponent of the ratio*",
        "its constant is 1/2, for small data (derived)": "ratio of a stationary denoiser over n SNR^2 / 2",
        "the first step has that ratio, whatever the size of the data (derived)": "ratio of the first step*",
        "large data departs from it as the reduced theory says (derived)": "*over the reduced theory's*",
        "a classifier learns signal or noise, with a switch in n SNR^2": "classifier: *",
        "every neuron, class and sample has the ratio": not_judged("means over them are read"),
        "whatever the noise level t is": "ratio at other noise levels*",
    }
    perturb = {"width": 2, "pace": 0.5, "t": 2}

    width: int = whole(default=10, at_least=1)  # m
    t: float = real(default=0.2, above=0)
    d: float = real(default=1e6, at_least=1)
    noise_length: float = real(default=0.1, above=0)  # |xi|
    large_length: float = real(default=10.0, above=0)  # |xi| where data is not small
    pace: float = real(default=0.05, above=0, below=1)  # eta, in units of the curvature
    start: float = real(default=0.1, above=0)  # |w_r| at the start, in units of that at the end
    classifier_start: float = real(default=1e-3, above=0)  # sigma_0 |xi| of the classifier

    def denoiser(self, n, strength, *, length=None, t=None):
        r"""What is trained: a denoiser of data with this $n\,\mathrm{SNR}^2$."""
        length, t = self.noise_length if length is None else length, self.t if t is None else t
        knobs = {"width": self.width, "d": float(self.d), "pace": self.pace, "start": self.start}
        return settings.denoiser(n, strength, length, t, **knobs)

    def classifier(self, n, strength):
        """The same filters, trained to tell the classes apart."""
        return settings.classifier(n, strength, width=self.width, start=self.classifier_start)

    def typical(self):
        return self.denoiser(20, 1.0)

    def scene(self):
        probes = (train_loss, feature_balance, relative_slope)
        return dataclasses.replace(self.typical(), probes=probes, record=geometric(MOMENTS))

    def trained(self, runs):
        """A denoiser counts where its gradient has vanished; a classifier stops at a loss."""
        return runs.relative_slope <= STATIONARY if "relative_slope" in runs else None

    def assumptions(self, experiment: Any):
        data, network, n = experiment.data, experiment.network, experiment.data.n
        small = "the start's output, in units of the end's: it is small"
        if not isinstance(network, Denoiser):
            largest = math.sqrt(2 * math.log(2 * network.width * n))
            return [Assumption(small, (network.init_scale * largest) ** 2, "<< 1")]
        strength, length, t = n * data.snr**2, data.noise_scale * math.sqrt(data.d), experiment.objective.t
        power, along = length**2 / n, n * max(strength, 1 / strength) / data.d
        end = denoising.stationary(power * strength / 2, power, t, network.width).length
        found = [
            Assumption("n max(n SNR^2, 1 / n SNR^2) / d: the start weighs little along the data", along, "<< 1"),
            Assumption(small, (network.init_scale * math.sqrt(data.d) / end) ** 3, "<< 1"),
        ]
        if math.isclose(length, self.large_length):  # where n SNR^2 / 2 is judged in the first step alone
            return found
        noise = power / math.expm1(2 * t)  # (alpha / beta)^2 = 1 / (e^2t - 1)
        return [
            Assumption("(alpha/beta)^2 sigma^2 d / n, small data: small noise", noise, "<< 1"),
            Assumption("(alpha/beta)^2 |mu|^2 / 2, small data: a small signal", noise * strength / 2, "<< 1"),
            *found,
        ]

    def checks(self, lab):
        ns, strengths = lab.size.n, lab.size.strengths
        # Values of n take turns along n SNR^2, so that the exponent is of n as much as of SNR.
        gap = strengths[1] / strengths[0]
        turns = {strength * gap ** (k / len(ns)): n for strength in strengths for k, n in enumerate(ns)}
        small = _named(lab.run(self.denoiser, strength=list(turns), n=lambda strength: turns[strength]))
        large = self._large(lab)
        name = "exponent of the ratio in n SNR^2, stationary denoiser"
        yield scales_as(name, small.balance, "strength", 1.0, rivals=(0.0, 0.5, 2.0), symbols=RATIO)
        yield _halves(small)
        levels = lab.run(self.denoiser, n=ns[-1], strength=1.0, t=TIMES)
        name = "ratio at other noise levels t over n SNR^2 / 2, small data"
        yield equals(name, 2 * levels.balance, 1.0)
        first = large.first_balance / (large.strength / 2)
        yield equals("ratio of the first step over n SNR^2 / 2, large data", first, 1.0)
        theory = large.strength.copy(data=[self._theory(ns[-1], strength) for strength in strengths])
        name = "ratio of a stationary denoiser over the reduced theory's, large data"
        yield equals(name, large.balance / theory, 1.0)

        below, above = THRESHOLD / FAR, THRESHOLD * FAR
        classified = lab.run(self.classifier, n=ns[0], strength=list(dict.fromkeys((*strengths, below, above))))
        along = _named(classified.sel(strength=list(strengths))).balance
        name = "classifier: slope of its ratio in n SNR^2"  # twice that of a denoiser
        yield scales_as(name, along, "strength", at_least=2.0, symbols=RATIO)
        decades = np.log10(classified.balance)
        learnt = {
            "a factor 5 below the threshold": -decades.sel(strength=below, drop=True),
            "a factor 5 above": decades.sel(strength=above, drop=True),
        }
        yield at_least("classifier: decades between what is learnt and what is not", learnt, 1.0)

    def control(self, lab):
        r"""The ratio of a classifier, as if it were $n\,\mathrm{SNR}^2 / 2$ too; at an n of its own."""
        return _halves(_named(lab.run(self.classifier, n=lab.size.n[-1], strength=lab.size.strengths)))

    def _large(self, lab):
        """Large data, at the largest n, where classes are about as frequent as each other."""
        n, strengths = lab.size.n[-1], lab.size.strengths
        return _named(lab.run(self.denoiser, n=n, strength=strengths, length=self.large_length))

    def _theory(self, n, strength):
        noise = self.large_length**2 / n
        return denoising.stationary(noise * strength / 2, noise, self.t, self.width).balance


def _named(runs):
    runs.strength.attrs["symbol"] = "n SNR^2"
    return runs


def _halves(runs):
    return equals("ratio of a stationary denoiser over n SNR^2 / 2", runs.balance / (runs.strength / 2), 1.0)
