r"""Benign or harmful overfitting of ReLU^q networks switches at n SNR^q = const.

Cao, Chen, Belkin and Gu (2022), Theorems 4.3 and 4.4. Trained to a small loss $\varepsilon$, the network's test
loss is at most $6\varepsilon$ when $n\,\mathrm{SNR}^q$ is large and at least 0.1 when it is small: the signal is
learnt before the noise is memorised, or after. So the SNR at which the test loss crosses a level scales as
$n^{-1/q}$. The theorem speaks of the loss; the error only needs $\langle w, \mu\rangle \sim \sigma_0$ and still
drifts at these sizes.

Which of the two is learnt is read off coefficients, each by itself, with bounds derived here. The loss says what
has to be learnt, $C$ (`theory.signal_noise.learnt_at_least`): a class of a third of the samples or more has a
loss of at most $3\varepsilon$. The other must not leave its start: no noise coefficient exceeds the largest of
the $2mn$ starting products with noise, $\sigma_0\sqrt{2\log 2mn}$. Below, a signal that has a 16th of the time
it would need adds less than $\sigma_0\|\mu\|$ to its products, the largest of which started at about twice that.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr

from featlab.algorithms import PacedDescent
from featlab.claims import (
    Assumption,
    Claim,
    Picture,
    Size,
    along_the_way,
    at_least,
    at_most,
    identity,
    not_judged,
    scales_as,
    to,
)
from featlab.core.validation import real, whole
from featlab.data import SignalNoise
from featlab.experiment import Experiment
from featlab.networks import TwoLayerCNN, relu_power
from featlab.probes import (
    at_end,
    coefficient_bounds,
    signal_learnt_by_each_class,
    test_loss,
    train_loss,
    until,
)
from featlab.theory.signal_noise import largest_start, learnt_at_least

POWERS = (3, 4)
LEVELS = (0.1, 0.35)
BLOW_UP = 2.0  # n SNR^q where signal and noise blow up at the same time: rates 1/4 and 1/(2n)
FAR = 16  # "n SNR^q = Omega(1)": this factor above and below the blow-up heuristic
# Above, times the ratio of the largest starts with noise and with the signal to the power q - 3. It is about 2,
# sqrt(log 2mn / log 2m) up to chance, and blow-up times hold it to the power q - 2.
HEAD_START = 2
# Of the pace where sides are read. Beside a class that has been learnt, one with outputs near 0 may change by the
# floor of the paced step at once, and noise with it: at full pace one start in 24 memorised what a flow does not.
SLOWER = 4
EPSILONS = (10, 1, 1 / 10)  # times the knob `loss`
AT_MOST = 20_000  # steps; a run that needs more counts as not trained


class Phase(Claim):
    """The claim of this file."""

    title = "ReLU^q networks turn from harmful to benign overfitting at n SNR^q = const"
    statement = (
        r"n\,\mathrm{SNR}^q = \tilde\Omega(1) \Rightarrow L_S \le \varepsilon,\ L_D \le 6\varepsilon + e^{-n^2};"
        r"\qquad n^{-1}\mathrm{SNR}^{-q} = \tilde\Omega(1) \Rightarrow L_S \le \varepsilon,\ L_D \ge 0.1"
    )
    refuted_if = "the exponent of SNR* in n differs from -1/q by more than the margin without drifting with n"
    reference = """@inproceedings{cao2022benign,
  title     = {Benign Overfitting in Two-layer Convolutional Neural Networks},
  author    = {Cao, Yuan and Chen, Zixiang and Belkin, Mikhail and Gu, Quanquan},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {35},
  year      = {2022}
}"""
    sizes = {
        "tiny": Size(seeds=3, n=(8, 16)),
        "smoke": Size(seeds=4, n=(64, 90, 128)),
        "laptop": Size(seeds=24, n=(256, 512, 1024, 2048)),
        "full": Size(seeds=32, n=(512, 1024, 2048, 4096, 8192)),
    }
    minutes = 6.0  # two powers, two levels and four sizes are 1,300 trainings, slow ones at q = 4
    control_changes = "activation ReLU^3 -> ReLU^2, outside q > 2, judged as ReLU^3"

    clauses = {
        "L_S <= epsilon on both sides": "training loss beyond epsilon*",
        "L_D <= 6 epsilon above": "test loss above*",
        "L_D >= 0.1 below": "test loss below*",
        "above, max gamma >= C in each class, and |rho| stays small": ("gamma of each class*", "max |rho| above*"),
        "below, max |rho| >= C, and gamma stays small": ("max |rho| below*", "max gamma below*"),
        "the switch is at n SNR^q = const": "exponent of SNR* in n*",
        "polylogarithmic factors of the conditions": not_judged("the theorem leaves their constants open"),
        "L_D = 6 epsilon + exp(-n^2): the second term": not_judged("below what any test set resolves"),
    }
    exploratory = (
        "Both sides are read at a quarter of the pace, and the upper one twice as far off at q = 4, "
        "after a look at the noise there."
    )
    perturb = {"width": 2, "pace": 0.5, "init_scale": 0.5, "power_shift": to(0.5)}

    width: int = whole(default=32, at_least=1)  # m
    init_scale: float = real(default=0.1, above=0)  # sigma_0, in units of 1 / |xi|
    pace: float = real(default=0.2, above=0, below=1)  # kappa
    loss: float = real(default=0.01, above=0)  # epsilon
    power_shift: float = real(default=0.0, keep_whole=True)  # added to each power, to ask about others

    def experiment(self, n, snr, power, loss=None, slower=1):
        """What is trained: noise of length one, orthogonal (d = inf)."""
        probes = (train_loss, test_loss, coefficient_bounds, signal_learnt_by_each_class)
        return Experiment(
            data=SignalNoise(n=n, d=math.inf, snr=snr),
            network=TwoLayerCNN(width=self.width, activation=relu_power(power), init_scale=self.init_scale),
            algorithm=PacedDescent(self.pace / slower),
            probes=[probe.on(at_end) for probe in probes],
            steps=until(train_loss, loss or self.loss, at_most=AT_MOST),
        )

    def typical(self):
        return self.experiment(256, 0.2, 3)

    def scene(self):
        return along_the_way(self.experiment(64, 0.4, 3))

    def picture(self):
        def number(experiment: Any):
            return experiment.data.n * experiment.data.snr**experiment.network.activation.power / BLOW_UP

        return Picture(
            number,
            symbol=r"n\,\mathrm{SNR}^q / 2",
            below="Noise grows faster than the signal: the training set is fitted by memorising it, and the test "
            "loss stays large (harmful overfitting).",
            above="The signal grows faster than noise: it is learnt before anything is memorised, and the test "
            "loss is small (benign overfitting).",
            slider="data.snr",
            slider_symbol=r"\mathrm{SNR}",
            values=tuple(float(f"{v:.3g}") for v in np.geomspace(0.1, 1.0, 13)),
            across="data.n",
            across_symbol="n",
            across_values=(16, 23, 32, 45, 64, 91, 128, 181, 256),
            shows="test_loss",
            level=LEVELS[1],
        )

    def assumptions(self, experiment: Any):
        data, network = experiment.data, experiment.network
        largest = network.init_scale * math.sqrt(2 * math.log(2 * network.width * data.n))
        power = network.activation.power
        return [
            Assumption("n^2 / d (noise of different samples is nearly orthogonal)", data.n**2 / data.d, "<< 1"),
            Assumption(
                "largest start's |f_0| (training begins where the loss has slope 1/2)",
                largest**power / network.width,
                "<< 1",
            ),
            Assumption(
                "m / log n (some filter of each class sees each sample)", network.width / math.log(data.n), ">= 1"
            ),
            Assumption(
                "kappa / q (how much a product may change in one step)", experiment.algorithm.pace / power, "<< 1"
            ),
        ]

    def checks(self, lab):
        powers = [power + self.power_shift for power in POWERS]
        for power in powers:
            for level in LEVELS:
                yield self._exponent(lab, power, level, judged_as=power)
        for power in powers:
            yield from self._sides(lab, power)

    def control(self, lab):
        """Products of ReLU^2 networks grow exponentially: their thresholds are about those of n SNR^2."""
        return self._exponent(lab, 2, LEVELS[1], judged_as=POWERS[0] + self.power_shift)

    def _exponent(self, lab, power, level, judged_as):
        found = lab.boundary(
            self.experiment,
            "snr",
            "test_loss",
            LEVELS,
            n=lab.size.n,
            power=power,
            between=lambda n: ((0.25 / n) ** (1 / power), (32 / n) ** (1 / power)),
            tolerance=0.02,
        )
        return scales_as(
            f"exponent of SNR* in n, q = {judged_as:g}, test loss {level:g}",
            found.snr.sel(level=level),
            "n",
            -1 / judged_as,
            rivals=(-1 / (judged_as - 1), -1 / (judged_as + 1)),
            symbols=("n", r"\mathrm{SNR}^*"),
        )

    def strength(self, factor, q):
        """The SNR at which n SNR^q is this factor of its value where signal and noise blow up together."""
        return lambda n: (BLOW_UP * factor / n) ** (1 / q)

    def _sides(self, lab, q):
        """The theorem's own statements, far above and far below the threshold, at every n and epsilon."""
        losses = [self.loss * factor for factor in EPSILONS]
        cells = {"n": lab.size.n, "power": q, "loss": losses, "slower": SLOWER}
        above = lab.run(self.experiment, **cells, snr=self.strength(FAR * HEAD_START ** (q - 3), q))
        below = lab.run(self.experiment, **cells, snr=self.strength(1 / FAR, q))
        excess = {
            "above": np.maximum(above.train_loss - above.loss, 0),
            "below": np.maximum(below.train_loss - below.loss, 0),
        }
        yield identity(f"training loss beyond epsilon on both sides, q = {q:g}", excess, 1e-6)
        yield at_most(f"test loss above over epsilon, q = {q:g}", above.test_loss / above.loss, 6)
        yield at_least(f"test loss below, q = {q:g}", below.test_loss, 0.1)
        asked = xr.DataArray(learnt_at_least(3 * np.array(losses), q), coords={"loss": losses})  # C
        starts = 2 * self.width * np.array(lab.size.n)
        noise = xr.DataArray(largest_start(self.init_scale, starts), coords={"n": list(lab.size.n)})
        yield at_least(f"gamma of each class over C above, q = {q:g}", above.signal_learnt_least / asked, 1)
        yield at_most(f"max |rho| above over its largest start, q = {q:g}", _largest_noise(above) / noise, 1)
        yield at_least(f"max |rho| below over C, q = {q:g}", _largest_noise(below) / asked, 1)
        signal = self.init_scale * below.snr  # sigma_0 |mu|
        yield at_most(f"max gamma below over sigma_0 |mu|, q = {q:g}", below.gamma_most / signal, 1)


def _largest_noise(runs):
    return np.maximum(runs.rho_own_most, -runs.rho_other_least)
