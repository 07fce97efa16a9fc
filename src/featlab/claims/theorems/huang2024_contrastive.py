r"""Contrastive learning across two modalities learns a signal that it does not learn within one.

Huang, Han, Chen, Cao, Xu and Suzuki (2024). Samples are $x = [y\mu, \xi]$. Within one modality the positive of $x$
is an augmentation, which has the same noise; across two it is $\tilde x = [y\tilde\mu, \tilde\xi]$ of the same
label with $\|\tilde\mu\| = C_\mu \|\mu\|$, $C_\mu \geq 2.66$. Where $n\,\mathrm{SNR}^2 = \Theta(1)$ both losses
become small, but within one modality the noise is memorised, the signal is not learnt and a classifier on the
embedding errs with a constant probability; across two it is the other way round, and it hardly errs.

Early in training the signal grows at the rate $\frac12 \|\mu\|\|\tilde\mu\|$ and noise at $\sigma^2 d / n$, so the
$n\,\mathrm{SNR}^2$ at which they end up equal is $2 / C_\mu$ up to logarithms: with $\Lambda = \log(1/\sigma_0)$
its exponent in $C_\mu$ is about $-\Lambda / (\Lambda + \frac12)$ at a finite start, and $-1$ in the limit.

Read are the signal, $\gamma = \max_r |\langle w_r, \mu \rangle|$, the noise, $\rho$, the mean over samples of
$\max_r \langle w_r, \xi_i \rangle$, and the error of a linear probe on embeddings of fresh inputs. What is not
learnt is far below the theorem's $n^{-1/2}$; what it is follows from the same rates (derived). While the faster
product grows by $1/\sigma_0$, the other does by a power of that: $\gamma \propto \sigma_0^{1/2}$ within one
modality, and $\rho \propto \sigma_0^{1 - 2/C_\mu}$ across two, at $n\,\mathrm{SNR}^2 = 1$.

Noise has length one. The noise of different samples must be nearly orthogonal, and what a memorising encoder has
of the signal, about $\|\mu\| \sqrt{\sigma_0}$, must drown in fresh noise: both need a small start, and $m$ of the
order of $n$ (`docs/contrastive.md`).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from featlab.algorithms import GradientDescent
from featlab.claims import Assumption, Claim, Size, at_least, at_most, not_judged, scales_as
from featlab.claims.claim import MUCH_LESS
from featlab.claims.picture import MOMENTS
from featlab.core.validation import real, whole
from featlab.data import AugmentedPairs, Modalities
from featlab.experiment import Experiment
from featlab.networks import PatchEncoder
from featlab.objectives import InfoNCE
from featlab.probes import at_end, downstream_error, encoder_ratio, geometric, relative_loss, train_loss, until

ENOUGH = 2.66  # C_mu of the theorem
STRONGER = 4.0  # C_mu where one and two modalities are compared
TEMPERATURE = 0.5  # tau
STOP = 0.05  # of the loss of equal similarities
AT_MOST = 3000  # steps
BALANCE = 2.0  # C_mu n SNR^2 where signal and noise grow at the same rate
SEARCH = (0.7, 2.25)  # between these multiples of it: logarithms raise the threshold by less than a half
SMALL_ERROR, LARGE_ERROR = 0.05, 0.1  # o(1) and Theta(1)
LEARNT = 1.0  # Omega(1) of a product
STARTS = (0.1, 1.0, 10.0)  # in units of sigma_0


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
        "two modalities memorise noise or one learns the signal where the theorem says otherwise, what is not "
        "learnt falls with sigma_0 as another power, or the exponent of the threshold of n SNR^2 in C_mu differs "
        "from -1 by more than the margin without drifting"
    )
    reference = """@inproceedings{huang2024contrastive,
  title     = {On the Comparison between Multi-modal and Single-modal Contrastive Learning},
  author    = {Huang, Wei and Han, Andi and Chen, Yongqiang and Cao, Yuan and Xu, Zhiqiang and Suzuki, Taiji},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {37},
  year      = {2024}
}"""
    sizes = {
        "tiny": Size(seeds=3, n=8, strengths=(3.0, 6.0)),
        "smoke": Size(seeds=4, n=32, strengths=(3.0, 6.0, 12.0)),
        "laptop": Size(seeds=24, n=50, strengths=(3.0, 6.0, 12.0)),
        "full": Size(seeds=32, n=100, strengths=(3.0, 6.0, 12.0, 24.0)),
    }
    control_changes = "signals of equal strength in both modalities, C_mu = 1"

    clauses = {
        "both losses become small": not_judged(
            "training stops there; a run that does not get there has no value, and is counted"
        ),
        "across two modalities the signal is learnt, not the noise": "logarithm of signal over noise*",
        "within one noise is memorised, the signal not learnt": "signal over noise in the encoder, one modality",
        "what is learnt is Omega(1): gamma across two, rho within one": "what is learnt, by itself",
        "what is not is O~(n^-1/2): rho across two, gamma within one": "what is not learnt over n^-1/2",
        "gamma ~ sigma_0^(1/2) within one (derived)": "exponent in sigma_0 of gamma*",
        "rho ~ sigma_0^(1 - 2/C_mu) across two (derived)": "exponent in sigma_0 of rho*",
        "n^-1/2 as a rate": not_judged("an upper bound; what is not learnt is a power of sigma_0 instead"),
        "the downstream error is o(1) across two modalities": "error of a linear probe, two modalities",
        "the downstream error is Theta(1) within one": "error of a linear probe, one modality",
        "signal and noise balance at n SNR^2 ~ 1 / C_mu (from their early rates)": "exponent in C_mu of n SNR^2*",
        "C_mu >= 2.66 is enough": ("what is learnt, by itself", "exponent in sigma_0 of rho, C_mu = 2.66"),
    }

    width: int = whole(default=50, at_least=1)  # m
    d: float = real(default=1e5, at_least=2)
    init_scale: float = real(default=1e-6, above=0)  # sigma_0, in units of 1 / |xi|
    pace: float = real(default=0.1, above=0)  # by which fraction noise grows in a step, early
    augmentation: float = real(default=0.1, at_least=0)  # sigma_epsilon / sigma

    def experiment(self, n: int, strength: float | None, signal: float, start: float = 1.0) -> Experiment:
        """Two modalities with C_mu = `strength`, or one if it is None; `signal` is n SNR^2, `start` of sigma_0."""
        one = strength is None
        common: dict[str, Any] = {"n": n, "d": self.d, "snr": math.sqrt(signal / n), "noise_scale": self.d**-0.5}
        if one:
            data = AugmentedPairs(**common, augmentation=self.augmentation, balanced=True)
        else:
            data = Modalities(**common, strength=strength, balanced=True)
        return Experiment(
            data=data,
            network=PatchEncoder(width=self.width, shared=one, init_scale=start * self.init_scale),
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
        stronger = getattr(data, "strength", math.inf) / ENOUGH
        drowned = data.snr * math.sqrt(network.init_scale * data.d * math.sqrt(network.width) / data.n)
        return [
            Assumption("n^2 / d (noise of different samples is nearly orthogonal)", data.n**2 / data.d, "<< 1"),
            Assumption("largest product of the start with noise", largest, "<< 1"),
            Assumption(
                "SNR sqrt(sigma_0 d sqrt m / n) (what is not learnt drowns in fresh noise)", drowned, "<< 1"
            ),
            Assumption("m / log n (some neuron sees each sample)", network.width / math.log(data.n), ">= 1"),
            Assumption("C_mu / 2.66 (the second modality has the stronger signal)", stronger, ">= 1"),
            Assumption(
                "kappa^2 / 2, kappa = eta |xi|^2 / (n m tau) (a step is gradient flow's)", pace**2 / 2, "<< 1"
            ),
        ]

    def checks(self, lab):
        n = lab.size.n
        across, within, least = (
            lab.run(self.experiment, n=n, strength=strength, signal=1.0, start=STARTS)
            for strength in (STRONGER, None, ENOUGH)
        )
        name = "exponent in sigma_0 of gamma, one modality"
        yield scales_as(name, within.signal_response, "start", 1 / 2, rivals=(0, 1))
        name = "exponent in sigma_0 of rho, C_mu = 4"
        yield scales_as(name, across.noise_response, "start", 1 - 2 / STRONGER, rivals=(0, 1))
        name = "exponent in sigma_0 of rho, C_mu = 2.66"
        yield scales_as(name, least.noise_response, "start", 1 - 2 / ENOUGH, rivals=(0, 1 / 2))
        across, within, least = (one.sel(start=1.0, drop=True) for one in (across, within, least))
        learnt = {
            "gamma, C_mu = 4": across.signal_response,
            "gamma, C_mu = 2.66": least.signal_response,
            "rho, one modality": within.noise_response,
        }
        yield at_least("what is learnt, by itself", learnt, LEARNT)
        unlearnt = {"rho, C_mu = 4": across.noise_response, "gamma, one modality": within.signal_response}
        unlearnt = {name: one * math.sqrt(n) for name, one in unlearnt.items()}
        yield at_most("what is not learnt over n^-1/2", unlearnt, 1.0)
        yield self._exponent(lab)
        yield _learns(across)
        yield at_most("signal over noise in the encoder, one modality", within.encoder_ratio, MUCH_LESS)
        yield at_most("error of a linear probe, two modalities", _errors(across), SMALL_ERROR)
        yield at_least("error of a linear probe, one modality", _errors(within), LARGE_ERROR)

    def control(self, lab):
        """Two modalities of equal strength memorise as one does."""
        return _learns(lab.run(self.experiment(lab.size.n, 1.0, 1.0)))

    def _exponent(self, lab):
        found = lab.boundary(
            self.experiment,
            "signal",
            "log_ratio",
            0.0,
            n=lab.size.n,
            strength=lab.size.strengths,
            between=lambda strength: tuple(factor * BALANCE / strength for factor in SEARCH),
            tolerance=0.15,  # the logarithm is nearly linear there: what is read off between is good to 0.3 %
        )
        return scales_as(
            "exponent in C_mu of n SNR^2 where signal and noise are equal",
            found.signal.sel(level=0.0),
            "strength",
            -1,
            rivals=(-1 / 2, -2),
            symbols=(r"C_\mu", r"(n\,\mathrm{SNR}^2)^*"),
        )


def _learns(runs):
    ratio = "logarithm of signal over noise in the encoder, two modalities"
    return at_least(ratio, runs.log_ratio, -math.log(MUCH_LESS))


def _errors(runs):
    return {"training law": runs.downstream_error, "another strength of the signal": runs.shifted_error}
