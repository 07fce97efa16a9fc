r"""Fresh label noise in every step keeps descent from memorising, and the signal is learnt all the same.

Huang and co-authors (2025). Networks with squared ReLU on data of low signal-to-noise ratio, $n\,\mathrm{SNR}^2
< 1$. Plain descent drives the training loss to 0, memorises the noise, and errs on at least 24 % of tests. With
labels flipped anew with probability p in every step, the training loss stays of order one, the noise
coefficients stay bounded, the signal grows exponentially, and the test error becomes small.

How long that takes is the subject of `huang2025_clock`: of order $\kappa^{-2}$ steps, $\kappa = 2\eta\sigma^2
d/(nm)$ being the relative change of a noise product in a step. Here $T = 800/\kappa^2$, and the step is as small
as the theorem asks, $\eta = O(\log d / (\sigma^2 d))$. Descent with the same step for the same time is compared.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from featlab.algorithms import LabelNoiseDescent
from featlab.claims._claim import Assumption, Claim, Size
from featlab.claims._judge import Check, bounded_by, exceeds, exponent_margin
from featlab.data import SignalNoise
from featlab.experiment import Experiment
from featlab.fields import probability, real, whole
from featlab.networks import TwoLayerCNN, relu_power
from featlab.probes import at_end, noise_memorised, signal_learnt, test_error, throughout, train_loss

DURATION = 800.0  # T kappa^2: three times what growth from the start to order one takes
WINDOW = (80.0, 160.0, 240.0)  # t kappa^2, while the signal is small


class LabelNoiseLearns(Claim):
    """The claim of this file."""

    title = "label-noise descent learns a weak signal that plain descent drowns in memorised noise"
    statement = (
        r"\text{GD: } L_S \le \epsilon,\ L_D^{0-1} \ge 0.24; \qquad "
        r"\text{label noise: } L_S = \Theta(1),\ \rho = O(1),\ \gamma \sim e^{ct},\ L_D^{0-1} \to 0"
    )
    refuted_if = "label noise leaves the error large, or lets noise coefficients grow, or plain descent errs less"
    reference = """@inproceedings{huang2025label,
  title     = {How Does Label Noise Gradient Descent Improve Generalization in the Low {SNR} Regime?},
  author    = {Huang, Wei and Han, Andi and Song, Yujin and Chen, Yilan and Wu, Denny and others},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2025}
}"""
    sizes = {
        "tiny": Size(seeds=3, steps=(10.0,), d=(500.0,)),  # kappa is tenfold
        "smoke": Size(seeds=4, steps=(2.5,), d=(1e6,)),
        "laptop": Size(seeds=12, steps=(1.0,), d=(2000.0,)),
        "full": Size(seeds=64, steps=(0.5,), d=(20_000.0,)),
    }
    number_of_checks = 6
    minutes = 3.0  # hundreds of thousands of small steps
    control_changes = "no label is flipped"

    n: int = whole(default=20, at_least=1)
    width: int = whole(default=10, at_least=1)  # m
    strength: float = real(default=0.4, above=0)  # n SNR^2
    flip: float = probability(default=0.1)  # p
    learning_rate: float = real(default=5.0, above=0)  # eta, in units of 1 / (sigma^2 d)
    init_scale: float = real(default=0.01, above=0)  # sigma_0, noise having length one

    def kappa(self, factor=1.0) -> float:
        r"""$\kappa = 2 \eta\sigma^2 d / (nm)$, for steps so many times as large."""
        return 2 * self.learning_rate * factor / (self.n * self.width)

    def experiment(self, time, d, factor=1.0, flip=None):
        r"""Label-noise descent for $t = \mathrm{time} / \kappa^2$ steps."""
        return Experiment(
            data=SignalNoise(n=self.n, d=d, snr=math.sqrt(self.strength / self.n), noise_scale=d**-0.5),
            network=TwoLayerCNN(width=self.width, activation=relu_power(2), init_scale=self.init_scale),
            algorithm=LabelNoiseDescent(self.learning_rate * factor, self.flip if flip is None else flip),
            probes=[
                train_loss.on(at_end),
                test_error(count=4000).on(at_end),
                signal_learnt.on(at_end),
                noise_memorised.on(throughout),
            ],
            steps=round(time / self.kappa(factor) ** 2),
        )

    def typical(self):
        return self.experiment(DURATION, 2000.0, factor=1.5)

    def assumptions(self, experiment: Any) -> list[Assumption]:
        data, algorithm = experiment.data, experiment.algorithm
        rate = max(algorithm.learning_rate, 1e-30)
        return [
            Assumption("the dimension is at least n^2: d / n^2", data.d / data.n**2, ">= 1"),
            Assumption("the ratio of signal to noise is low: 1 / (n SNR^2)", 1 / (data.n * data.snr**2), ">= 1"),
            Assumption("steps are small: log(d) / (eta sigma^2 d)", math.log(data.d) / rate, ">= 1"),
            Assumption(
                "flips are enough: p sqrt(n m)", self.flip * math.sqrt(data.n * experiment.network.width), ">= 1"
            ),
        ]

    def checks(self, lab):
        (factor,), (d,) = lab.size.steps, lab.size.d
        plain = lab.endings(self.experiment(DURATION, d, factor, flip=0.0))
        noisy = lab.endings(self.experiment(DURATION, d, factor))
        half = lab.endings(self.experiment(DURATION / 2, d, factor))
        trained = float(min(run["trained"].mean() for run in (plain, noisy)))
        yield exceeds("test error of plain descent", plain["clean_test_error"], 0.0, by=0.24, trained=trained)
        yield bounded_by("training loss of plain descent", plain["train_loss"], 0.01, trained=trained)
        yield self._learns(noisy)
        # Fitted to labels that are wrong with probability p, the loss on the clean ones is -log(1 - p).
        floor = -math.log1p(-self.flip) / 2
        yield exceeds("training loss with label noise", noisy["train_loss"], 0.0, by=floor, trained=trained)
        growth = noisy["noise_memorised_highest"] / half["noise_memorised_highest"]
        yield bounded_by("largest rho of the whole run over that of its first half", growth, 1.1, trained=trained)
        yield self._exponential(lab, d, factor)

    def control(self, lab):
        (factor,), (d,) = lab.size.steps, lab.size.d
        return self._learns(lab.endings(self.experiment(DURATION, d, factor, flip=0.0)))

    def _learns(self, read):
        trained = float(read["trained"].mean())
        return bounded_by("test error with label noise", read["clean_test_error"], 0.05, trained=trained)

    def _exponential(self, lab, d, factor) -> Check:
        """Log gamma gains as much in the second half of the window as in the first; a power law gains less."""
        logs = np.array([np.log(lab.endings(self.experiment(t, d, factor))["signal_learnt"]) for t in WINDOW])
        gain = np.diff(logs, axis=0)
        rival = math.log(WINDOW[2] / WINDOW[1]) / math.log(WINDOW[1] / WINDOW[0])
        margin = exponent_margin(1.0, (rival,))
        # The ratio of mean gains, one seed left out at a time: single seeds wander.
        left_out = (gain.sum(1, keepdims=True) - gain) / (gain.shape[1] - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios, whole = left_out[1] / left_out[0], gain[1].mean() / gain[0].mean()
        samples = len(ratios) * whole - (len(ratios) - 1) * ratios
        name = "gain of log gamma, second half of the window over first"
        return Check(name, "agrees", samples[None], 1.0, margin, 1 - margin, 1 + margin, rivals=(rival,))
