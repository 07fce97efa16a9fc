r"""A denoiser learns signal and noise in the ratio $n\,\mathrm{SNR}^2 / 2$; a classifier learns one of them.

Han, Huang, Cao and Zou (2025). Inputs are $[\mu_y, \xi]$ with orthogonal $\mu_1$ and $\mu_{-1}$. A denoiser with
tied weights and quadratic activation has, at a stationary point of its loss, $|\langle w, \mu \rangle| /
|\langle w, \xi \rangle| = \Theta(n\,\mathrm{SNR}^2)$. All that small weights see of the data is $S = \frac1n
\sum_{i,p} x_i^{(p)}$, which gives the constant: $\langle S, \mu_j \rangle / \langle S, \xi_i \rangle = n_j
\|\mu\|^2 / \|\xi_i\|^2$, on average over the two classes $n\,\mathrm{SNR}^2 / 2$.

That is exact for the first step from a small start. It lasts until the gradient vanishes only while a patch is
small beside the noise added to it, $(\alpha_t / \beta_t)^2 \sigma^2 d / n \ll 1$ and $(\alpha_t / \beta_t)^2
\|\mu\|^2 / 2 \ll 1$: the theorem's exponent and the constant are judged there. Beyond, every patch holds its own
product down, and the ratio tends to 1 whatever $n\,\mathrm{SNR}^2$ is; `theory.denoising.stationary` says how.
So for noise and signal a hundred times as long three things are asked: the first step has the ratio
$n\,\mathrm{SNR}^2 / 2$ (a check), the stationary point has the ratio of that theory (a check), and not
$n\,\mathrm{SNR}^2 / 2$ (the control).

The ratio is a mean of magnitudes over neurons and classes, over one over neurons and samples. It is read where
the gradient has vanished: shorter than 1 % of loss over length of the weights, a number that is 3 or more while
the loss still falls like a power of the weights. Start and step are given in units of the stationary length.
Cells take turns between values of $n$, so that the exponent is of $n$ as much as of SNR. Values have a margin of
5 %, the exponent 10 %.

The classifier beside it has as many filters a class, the same activation and algorithm; its noise has length one
and $d = \infty$, which for a network of products alone is a choice of units. From a small start it learns what
grows faster, with the threshold $n\,\mathrm{SNR}^2 = 2$: a factor 5 below it the noise, and a factor 5 above it
the signal, must be ten times the other, and the slope over all strengths twice that of the denoiser.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from featlab.algorithms import GradientDescent
from featlab.boundaries import exponents
from featlab.claims._claim import Assumption, Claim, Size
from featlab.claims._judge import agrees, bounded_by, exceeds, scales_as
from featlab.claims._picture import MOMENTS
from featlab.data import SignalTokens
from featlab.experiment import Experiment
from featlab.fields import real, whole
from featlab.networks import Denoiser, TwoLayerCNN
from featlab.objectives import Denoising
from featlab.probes import (
    at_end,
    feature_balance,
    first_step_balance,
    geometric,
    relative_slope,
    train_loss,
    until,
)
from featlab.theory import denoising

STEPS = 600  # the gradient has vanished after less than half of them
STATIONARY = 0.01
THRESHOLD = 2.0  # n SNR^2 at which a classifier's signal and noise grow alike: a class has n/2 samples
FAR = 5.0  # times beyond the threshold
STEEPER = 2.0  # times the denoiser's exponent, 1
TENFOLD = 1.0  # in decades


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
        "laptop": Size(seeds=16, n=(10, 20, 40, 80), strengths=(0.1, 1.0, 10.0)),
        "full": Size(seeds=64, n=(10, 40, 160, 640), strengths=(0.1, 1.0, 10.0)),
    }
    number_of_checks = 7
    minutes = 1.0
    control_changes = "noise and signal are a hundred times as long: not small beside the noise that is added"

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
        noise = length**2 / n
        end = denoising.stationary(noise * strength / 2, noise, t, self.width)
        alpha, beta = math.exp(-t), math.sqrt(-math.expm1(-2 * t))
        data = noise * max(1.0, strength / 2)  # its power along the longest direction
        seen = beta**2 + alpha**2 * end.alignment * data
        return Experiment(
            data=SignalTokens(
                n=n,
                d=float(self.d),
                tokens=2,
                snr=math.sqrt(strength / n),
                noise_scale=length / math.sqrt(self.d),
            ),
            network=Denoiser(width=self.width, init_scale=self.start * end.length / math.sqrt(self.d)),
            objective=Denoising(t=t),
            algorithm=GradientDescent(self.pace / (beta**2 * seen * end.length**4)),
            probes=[one.on(at_end) for one in (feature_balance, first_step_balance, relative_slope)],
            steps=STEPS,
        )

    def classifier(self, n, strength):
        """The same filters, trained to tell the classes apart; a step multiplies products by 1.1 at most."""
        growth = max(1.0, strength / 2) / (n * self.width)  # of the faster product, for slope 1/2 of the loss
        return Experiment(
            data=SignalTokens(n=n, d=math.inf, tokens=2, snr=math.sqrt(strength / n)),
            network=TwoLayerCNN(width=self.width, activation=jnp.square, init_scale=self.classifier_start),
            algorithm=GradientDescent(0.1 / growth),
            probes=[feature_balance.on(at_end)],
            steps=until(train_loss, 0.01, at_most=20_000),
        )

    def typical(self):
        return self.denoiser(20, 1.0)

    def scene(self):
        probes = (train_loss, feature_balance, relative_slope)
        return dataclasses.replace(self.typical(), probes=probes, record=geometric(MOMENTS))

    def perturbed(self):
        return super().perturbed() | {f"t {self.t:g} -> {2 * self.t:g}": dataclasses.replace(self, t=2 * self.t)}

    def assumptions(self, experiment: Any):
        data, n = experiment.data, experiment.data.n
        strength = n * data.snr**2
        noise = signal = along = 0.0
        if isinstance(experiment.network, Denoiser):
            length, t = data.noise_scale * math.sqrt(data.d), experiment.objective.t
            power = length**2 / n
            if not math.isclose(length, self.large_length):
                noise = power / math.expm1(2 * t)  # (alpha / beta)^2 = 1 / (e^2t - 1)
                signal = noise * strength / 2
            along = n * max(strength, 1 / strength) / data.d
            end = denoising.stationary(power * strength / 2, power, t, experiment.network.width).length
            begun = (experiment.network.init_scale * math.sqrt(data.d) / end) ** 3
        else:
            begun = (
                experiment.network.init_scale * math.sqrt(2 * math.log(2 * experiment.network.width * n))
            ) ** 2
        return [
            Assumption("(alpha/beta)^2 sigma^2 d / n where n SNR^2 / 2 is judged: small noise", noise, "<< 1"),
            Assumption("(alpha/beta)^2 |mu|^2 / 2 where n SNR^2 / 2 is judged: a small signal", signal, "<< 1"),
            Assumption("n max(n SNR^2, 1 / n SNR^2) / d: the start weighs little along the data", along, "<< 1"),
            Assumption("the start's output, in units of the end's: it is small", begun, "<< 1"),
        ]

    def checks(self, lab):
        small = self._small(lab)
        large, classified = self._large(lab), self._classified(lab)
        read = self._read(lab, small | large | classified)
        at_small, at_large = ({name: read[name] for name in which} for which in (small, large))

        strengths = np.array([strength for *_, strength in small])
        yield scales_as(
            "exponent of the ratio in n SNR^2, stationary denoiser",
            strengths,
            np.array([one["balance"] for one in at_small.values()]),
            1.0,
            rivals=(0.0, 0.5, 2.0),
            symbols=(r"n\,\mathrm{SNR}^2", r"|\langle w, \mu \rangle| / |\langle w, \xi \rangle|"),
            trained=_trained(at_small),
        )
        yield self._halves(at_small)
        slopes = {name: one["relative_slope"] for name, one in (at_small | at_large).items()}
        yield bounded_by(
            "|gradient| |w| / |L| where it is read",
            np.array(list(slopes.values())),
            STATIONARY,
            cells=_names(slopes),
            trained=_trained(at_small | at_large),
        )

        yield agrees(
            "ratio of the first step over n SNR^2 / 2, large data",
            np.array([one["first_balance"] / (strength / 2) for (*_, strength), one in at_large.items()]),
            1.0,
            cells=_names(large),
            trained=_trained(at_large),
        )
        theory = [self._theory(n, strength) for _, n, strength in large]
        yield agrees(
            "ratio of a stationary denoiser over the reduced theory's, large data",
            np.array([one["balance"] for one in at_large.values()]) / np.array(theory)[:, None],
            1.0,
            cells=_names(large),
            trained=_trained(at_large),
        )
        yield from self._jumps(lab, {strength: read[name] for name in classified for *_, strength in [name]})

    def control(self, lab):
        r"""The ratio at a stationary point of large data, as if it were $n\,\mathrm{SNR}^2 / 2$ there too."""
        return self._halves(self._read(lab, self._large(lab)))

    def _halves(self, ends):
        return agrees(
            "ratio of a stationary denoiser over n SNR^2 / 2",
            np.array([one["balance"] / (strength / 2) for (*_, strength), one in ends.items()]),
            1.0,
            cells=_names(ends),
            trained=_trained(ends),
        )

    def _jumps(self, lab, ends):
        """The classifier beside it: how steep, and how one-sided on either side."""
        along = np.array([ends[strength]["balance"] for strength in lab.size.strengths])
        steepness = exponents(np.array(lab.size.strengths), along).overall
        facts = {"trained": _trained(ends)}
        yield exceeds("classifier: slope of its ratio in n SNR^2", steepness, 0.0, by=STEEPER, **facts)
        below, above = (np.log10(ends[one]["balance"]) for one in (THRESHOLD / FAR, THRESHOLD * FAR))
        yield exceeds(
            "classifier: decades between what is learnt and what is not",
            np.array([-below, above]),
            0.0,
            by=TENFOLD,
            cells=("a factor 5 below the threshold", "a factor 5 above"),
            **facts,
        )

    def _theory(self, n, strength):
        noise = self.large_length**2 / n
        return denoising.stationary(noise * strength / 2, noise, self.t, self.width).balance

    def _small(self, lab):
        """Experiments by n and n SNR^2; along the latter the former take turns."""
        ns, strengths = lab.size.n, lab.size.strengths
        between = strengths[1] / strengths[0]
        cells = [(n, strength * between ** (k / len(ns))) for strength in strengths for k, n in enumerate(ns)]
        return {("small", *cell): self.denoiser(*cell) for cell in cells}

    def _large(self, lab):
        """The same for large data, at the largest n, where classes are about as frequent as each other."""
        cells = [(lab.size.n[-1], strength) for strength in lab.size.strengths]
        return {("large", *cell): self.denoiser(*cell, length=self.large_length) for cell in cells}

    def _classified(self, lab):
        n, strengths = lab.size.n[0], dict.fromkeys((*lab.size.strengths, THRESHOLD / FAR, THRESHOLD * FAR))
        return {("classifier", n, strength): self.classifier(n, strength) for strength in strengths}

    def _read(self, lab, experiments):
        """One experiment of every program first, side by side; then the others, which need no compiling."""
        programs = {(one.data.n, type(one.network)): name for name, one in experiments.items()}
        lab.several({name: experiments[name] for name in programs.values()})
        return lab.several(experiments)


def _trained(ends):
    return float(min(one["trained"].mean() for one in ends.values()))


def _names(cells):
    return tuple(f"{data} data, n = {n}, n SNR^2 = {strength:.3g}" for data, n, strength in cells)
