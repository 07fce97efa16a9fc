r"""Contrastive learning across two modalities learns a signal that it does not learn within one.

Huang, Han, Chen, Cao, Xu and Suzuki (2024). Samples are $x = [y\mu, \xi]$. Within one modality the positive of $x$
is an augmentation, which has the same noise; across two it is $\tilde x = [y\tilde\mu, \tilde\xi]$ of the same
label with $\|\tilde\mu\| = C_\mu \|\mu\|$, $C_\mu \geq 2.66$. Where $n\,\mathrm{SNR}^2 = \Theta(1)$ both losses
become small, but within one modality the noise is memorised, the signal is not learnt and a classifier on the
embedding errs with a constant probability; across two it is the other way round, and it hardly errs.

Early in training the signal grows at the rate $\frac12 \|\mu\|\|\tilde\mu\|$ and noise at $\sigma^2 d / n$, so the
$n\,\mathrm{SNR}^2$ at which they end up equal is $2 / C_\mu$ up to logarithms. In the directions $\hat\mu$ and
$\hat{\tilde\mu}$ the dynamics depend on the product $\|\mu\|\|\tilde\mu\|$ alone; only $\langle w, \mu \rangle =
\|\mu\| \langle w, \hat\mu \rangle$, by which the paper measures, has $\|\mu\|$ in it once more. With
$\Lambda = \log(1/\sigma_0)$, the logarithm of what grows, that moves the exponent of the threshold in $C_\mu$ from
$-1$ to about $-\Lambda / (\Lambda + \frac12)$.

What is judged:

* the exponent of the threshold of $n\,\mathrm{SNR}^2$ in $C_\mu$, where $\max_r |\langle w_r, \mu \rangle|$ equals
  the mean over samples of $\max_r \langle w_r, \xi_i \rangle$: $-1$, with the margin of all exponents, a tenth;
* at $n\,\mathrm{SNR}^2 = 1$, across two modalities with $C_\mu = 4$, that ratio is large, and within one it is
  small: at least ten and at most a tenth, as everywhere here;
* the error of a linear probe on embeddings of fresh inputs, summed over their patches, of the training law and
  where the signal has another strength: $o(1)$ across two, at most 5 %; $\Theta(1)$ within one, at least 10 %.

The control has two modalities of equal strength, $C_\mu = 1$, which memorise as one does.

Noise has length one. For the noise of different samples to be nearly orthogonal $n^2/d$ must be small. What a
memorising encoder has of the signal, about $\|\mu\| \sqrt{\sigma_0}$, must drown in fresh noise for a probe to
err: $\mathrm{SNR}\sqrt{\sigma_0 d \sqrt m / n}$ must be small, too. The first times the square of the second is
$\sigma_0 \sqrt m\, n\,\mathrm{SNR}^2$, so the start must be small enough for both; hence $\sigma_0 = 10^{-6}$.
With many more neurons than samples memorised noise leaves directions of the embedding free, in which a linear
probe finds what there is of the signal; so $m$ is of the order of $n$.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from featlab.algorithms import GradientDescent
from featlab.claims._claim import MUCH_LESS, Assumption, Claim, Size
from featlab.claims._judge import bounded_by, exceeds, scales_as
from featlab.claims._picture import MOMENTS
from featlab.data import AugmentedPairs, Modalities
from featlab.experiment import Experiment
from featlab.fields import real, whole
from featlab.networks import PatchEncoder
from featlab.objectives import InfoNCE
from featlab.probes import at_end, downstream_error, encoder_ratio, geometric, relative_loss, train_loss, until

ENOUGH = 2.66  # C_mu of the theorem
STRONGER = 4.0  # C_mu where one and two modalities are compared
TEMPERATURE = 0.5  # tau
STOP = 0.05  # of the loss of equal similarities
AT_MOST = 3000  # steps; a run that needs more counts as not trained
BALANCE = 2.0  # C_mu n SNR^2 where signal and noise grow at the same rate
SEARCH = (0.7, 2.25)  # between these multiples of it: logarithms raise the threshold by less than a half
SMALL_ERROR, LARGE_ERROR = 0.05, 0.1


class Contrastive(Claim):
    """The claim of this file."""

    title = "contrastive learning across two modalities learns a signal that it does not learn within one"
    statement = (
        r"n\,\mathrm{SNR}^2 = \Theta(1),\ \|\tilde\mu\| = C_\mu \|\mu\|,\ C_\mu \ge 2.66: \quad "
        r"\text{single-modal}\ \max_r \gamma_r = \tilde O(n^{-1/2}),\ \max_{r,i} \rho_{r,i} = \Omega(1),\ "
        r"L_D^{0-1} = \Theta(1); \qquad "
        r"\text{multi-modal}\ \max_r \gamma_r = \Omega(1),\ \max_{r,i} \rho_{r,i} = \tilde O(n^{-1/2}),\ "
        r"L_D^{0-1} = o(1)"
    )
    refuted_if = (
        "two modalities memorise noise or one learns the signal where the theorem says otherwise, or the exponent "
        "of the threshold of n SNR^2 in C_mu differs from -1 by more than the margin without drifting"
    )
    reference = """@inproceedings{huang2024contrastive,
  title     = {On the Comparison between Multi-modal and Single-modal Contrastive Learning},
  author    = {Huang, Wei and Han, Andi and Chen, Yongqiang and Cao, Yuan and Xu, Zhiqiang and Suzuki, Taiji},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {37},
  year      = {2024}
}"""
    sizes = {
        "tiny": Size(seeds=3, n=(8,), strengths=(3.0, 6.0)),
        "smoke": Size(seeds=4, n=(32,), strengths=(3.0, 6.0, 12.0)),
        "laptop": Size(seeds=12, n=(50,), strengths=(3.0, 6.0, 12.0)),
        "full": Size(seeds=32, n=(100,), strengths=(3.0, 6.0, 12.0, 24.0)),
    }
    number_of_checks = 5
    control_changes = "signals of equal strength in both modalities, C_mu = 1"

    width: int = whole(default=50, at_least=1)  # m
    d: float = real(default=1e5, at_least=2)
    init_scale: float = real(default=1e-6, above=0)  # sigma_0, in units of 1 / |xi|
    pace: float = real(default=0.1, above=0)  # by which fraction noise grows in a step, early
    augmentation: float = real(default=0.1, at_least=0)  # sigma_epsilon / sigma

    def experiment(self, n: int, strength: float | None, signal: float) -> Experiment:
        """Two modalities with C_mu = `strength`, or one if it is None; `signal` is n SNR^2."""
        one = strength is None
        common: dict[str, Any] = {"n": n, "d": self.d, "snr": math.sqrt(signal / n), "noise_scale": self.d**-0.5}
        if one:
            data = AugmentedPairs(**common, augmentation=self.augmentation, balanced=True)
        else:
            data = Modalities(**common, strength=strength, balanced=True)
        return Experiment(
            data=data,
            network=PatchEncoder(width=self.width, shared=one, init_scale=self.init_scale),
            objective=InfoNCE(temperature=TEMPERATURE),
            algorithm=GradientDescent(self.pace * n * self.width * TEMPERATURE),
            probes=[encoder_ratio.on(at_end), downstream_error.on(at_end)],
            steps=until(relative_loss, STOP, at_most=AT_MOST),
        )

    def typical(self):
        return self.experiment(50, STRONGER, 1.0)

    def scene(self):
        probes = [train_loss, relative_loss, encoder_ratio, downstream_error]
        return dataclasses.replace(self.experiment(20, STRONGER, 1.0), probes=probes, record=geometric(MOMENTS))

    def assumptions(self, experiment: Any):
        data, network = experiment.data, experiment.network
        largest = network.init_scale * math.sqrt(2 * math.log(2 * network.width * data.n))
        pace = experiment.algorithm.learning_rate / (data.n * network.width * experiment.objective.temperature)
        drowned = data.snr * math.sqrt(network.init_scale * data.d * math.sqrt(network.width) / data.n)
        return [
            Assumption("n^2 / d (noise of different samples is nearly orthogonal)", data.n**2 / data.d, "<< 1"),
            Assumption("largest product of the start with noise", largest, "<< 1"),
            Assumption(
                "SNR sqrt(sigma_0 d sqrt m / n) (what is not learnt drowns in fresh noise)", drowned, "<< 1"
            ),
            Assumption("m / log n (some neuron sees each sample)", network.width / math.log(data.n), ">= 1"),
            Assumption(
                "C_mu / 2.66 (the second modality has the stronger signal)",
                getattr(data, "strength", math.inf) / ENOUGH,
                ">= 1",
            ),
            Assumption(
                "kappa^2 / 2, kappa = eta |xi|^2 / (n m tau) (a step is gradient flow's)", pace**2 / 2, "<< 1"
            ),
        ]

    def checks(self, lab):
        (n,) = lab.size.n
        # First, so that the programs of one and of two modalities compile side by side.
        cases = {"across": STRONGER, "within": None}
        read = lab.several({name: self.experiment(int(n), strength, 1.0) for name, strength in cases.items()})
        across, within = read["across"], read["within"]
        yield self._exponent(lab, int(n))
        yield self._learns(across)
        trained = {"trained": float(within["trained"].mean())}
        yield bounded_by(
            "signal over noise in the encoder, one modality", within["encoder_ratio"], MUCH_LESS, **trained
        )
        laws = {"cells": ("training law", "another strength of the signal")}
        trained_across = {"trained": float(across["trained"].mean())}
        name = "error of a linear probe"
        yield bounded_by(f"{name}, two modalities", _errors(across), SMALL_ERROR, **laws, **trained_across)
        yield exceeds(f"{name}, one modality", _errors(within), 0.0, by=LARGE_ERROR, **laws, **trained)

    def control(self, lab):
        (n,) = lab.size.n
        return self._learns(lab.endings(self.experiment(int(n), 1.0, 1.0)))

    def _exponent(self, lab, n):
        found = lab.boundary(
            lambda strength, signal: self.experiment(n, strength, signal),
            "signal",
            "log_ratio",
            (0.0,),
            over={"strength": lab.size.strengths},
            between=lambda strength: (SEARCH[0] * BALANCE / strength, SEARCH[1] * BALANCE / strength),
            tolerance=0.15,  # the logarithm is nearly linear there: what is read off between is good to 0.3 %
        )
        return scales_as(
            "exponent in C_mu of n SNR^2 where signal and noise are equal",
            found.strength.values,
            found.signal.sel(level=0.0).values,
            -1,
            rivals=(-1 / 2, -2),
            symbols=(r"C_\mu", r"(n\,\mathrm{SNR}^2)^*"),
            trained=float(found.trained.mean("seed").min()),
        )

    def _learns(self, read):
        return exceeds(
            "logarithm of signal over noise in the encoder, two modalities",
            read["log_ratio"],
            0.0,
            by=-math.log(MUCH_LESS),
            trained=float(read["trained"].mean()),
        )


def _errors(read):
    return np.stack([read["downstream_error"], read["shifted_error"]])
