r"""Label-noise descent on data of low signal-to-noise ratio: the setting of Huang and co-authors (2025).

Its unit of time comes from $\kappa = 2\eta\sigma^2 d/(nm)$, the relative change of a noise product in one step.
"""

from __future__ import annotations

import math
from typing import Any

from featlab.algorithms import LabelNoiseDescent
from featlab.claims import Assumption, Claim
from featlab.core.validation import probability, real, whole
from featlab.data import SignalNoise
from featlab.experiment import Experiment
from featlab.networks import TwoLayerCNN, relu_power
from featlab.probes import at_end, noise_memorised, signal_learnt, test_error, throughout, train_loss

DURATION = 800.0  # T kappa^2: three times what growth from the start to order one takes


class LabelNoiseSetting(Claim):
    """Knobs, experiments and conditions that the claims on label-noise descent share."""

    reference = """@inproceedings{huang2025label,
  title     = {How Does Label Noise Gradient Descent Improve Generalization in the Low {SNR} Regime?},
  author    = {Huang, Wei and Han, Andi and Song, Yujin and Chen, Yilan and Wu, Denny and others},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2025}
}"""

    n: int = whole(default=20, at_least=1)
    width: int = whole(default=16, at_least=1)  # m; at 10, one set in 50 has a sample that none of its class sees
    strength: float = real(default=0.4, above=0)  # n SNR^2
    flip: float = probability(default=0.1)  # p
    learning_rate: float = real(default=8.0, above=0)  # eta, in units of 1 / (sigma^2 d)
    init_scale: float = real(default=0.01, above=0)  # sigma_0, noise having length one

    def kappa(self, factor=1.0) -> float:
        r"""$\kappa = 2 \eta\sigma^2 d / (nm)$, for a step that is `factor` times as large."""
        return 2 * self.learning_rate * factor / (self.n * self.width)

    def descent(self, steps, d, factor, flip, probes, strength=None) -> Experiment:
        """Label-noise descent for a number of steps, each `factor` times as large as the setting's."""
        strength = self.strength if strength is None else strength
        return Experiment(
            data=SignalNoise(n=self.n, d=d, snr=math.sqrt(strength / self.n), noise_scale=d**-0.5),
            network=TwoLayerCNN(width=self.width, activation=relu_power(2), init_scale=self.init_scale),
            algorithm=LabelNoiseDescent(self.learning_rate * factor, flip),
            probes=probes,
            steps=steps,
        )

    def experiment(self, time, d, factor=1.0, flip=None) -> Experiment:
        r"""Label-noise descent for $t = \mathrm{time} / \kappa^2$ steps."""
        readings = (train_loss, test_error(count=4000), signal_learnt)
        return self.descent(
            round(time / self.kappa(factor) ** 2),
            d,
            factor,
            self.flip if flip is None else flip,
            probes=[*(one.on(at_end) for one in readings), noise_memorised.on(throughout)],
        )

    def typical(self) -> Experiment:
        return self.experiment(DURATION, 1e6, factor=1.5)

    def assumptions(self, experiment: Any) -> list[Assumption]:
        data, algorithm = experiment.data, experiment.algorithm
        rate = max(algorithm.learning_rate, 1e-30)
        found = [
            Assumption("the dimension is at least n^2: d / n^2", data.d / data.n**2, ">= 1"),
            Assumption("the ratio of signal to noise is low: 1 / (n SNR^2)", 1 / (data.n * data.snr**2), ">= 1"),
            Assumption(
                "each sample has an active filter of its class: n 2^-m",
                data.n * 2.0**-experiment.network.width,
                "<< 1",
            ),
            Assumption("steps are small: log(d) / (eta sigma^2 d)", math.log(data.d) / rate, ">= 1"),
        ]
        if algorithm.flip > 0:  # plain descent flips nothing
            enough = algorithm.flip * math.sqrt(data.n * experiment.network.width)
            found.append(Assumption("flips are enough: p sqrt(n m)", enough, ">= 1"))
        return found
