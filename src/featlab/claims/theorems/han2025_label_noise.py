r"""With flipped labels, a network first learns the signal and ignores the flipped samples, then fits them too.

Han, Huang, Cao and co-authors (2025). Labels are flipped with probabilities $\tau_+$ and $\tau_-$, and
$n\,\mathrm{SNR}^2$ is a constant. At $T_1 = \Theta(nm/(\eta\sigma^2 d))$ signal coefficients exceed those of the
noise, all clean samples are fitted and all flipped ones are not, so stopping there is safe (the test error is at
most $\exp(-\Omega(d/n))$) and a loss of $\log 2$ tells flipped samples from clean ones. Trained on, all samples
are fitted, and the error is at least $\frac12 \min(\tau_+, \tau_-)$.

The theorem leaves the size of that constant open. At the start all slopes of the loss are one half, so by $T_1$ a
noise coefficient gains up to $\frac12$ and the signal's $\frac14 n\,\mathrm{SNR}^2 (1 - \tau_+ - \tau_-)$; later
the slopes of flipped samples grow to one. So stage I begins above $2/(1 - \tau_+ - \tau_-) = 3$; it is judged at
16 to 64. That a constant is enough is judged at several n, and as an exponent 0 in d.

The last statement is about tests whose noise patch is one of the training set: beside the noise of a flipped
sample, the class it was flipped from is misread, which is half the flipped fraction of all such tests. On fresh
noise the error stays near 0, since $(n\,\mathrm{SNR}^2)^2 d/n \gg 1$. Both are measured.

The early error is too small to be counted. What is followed is the exponent B of its bound $e^{-B}$, which
Gaussian concentration gives and the probe `concentration` computes from the weights: B must grow as $(d/n)^1$.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from featlab.algorithms import GradientDescent
from featlab.claims import Assumption, Claim, Size, at_least, at_most, scales_as
from featlab.core.validation import probability, real, whole
from featlab.data import SignalNoise
from featlab.experiment import Experiment
from featlab.networks import TwoLayerCNN
from featlab.probes import (
    at_end,
    clean_noisy_split,
    coefficients,
    concentration,
    sample_selection,
    spurious_test_error,
    test_error,
    train_error,
    train_loss,
    until,
)

TESTS = 10_000
MOST = 40_000  # steps: several times as many as fitting takes
BRACKET = (0.5, 32.0)  # for n SNR^2 where stage I begins


class LabelNoise(Claim):
    """The claim of this file."""

    title = "with flipped labels the signal is learnt first and the flips are memorised later"
    statement = (
        r"T_1:\ \gamma > \rho,\ \tilde y_i f_i > 0 \iff \tilde y_i = y_i,\ L_D^{0-1} \le e^{-\Omega(d/n)};"
        r"\qquad t^*:\ \tilde y_i f_i > 0\ \forall i, \quad L_{D'}^{0-1} \ge \tfrac12 \min\{\tau_+, \tau_-\}"
    )
    refuted_if = "flipped samples are fitted at T_1, B does not grow as (d/n)^1, or spurious tests do not err"
    reference = """@inproceedings{han2025role,
  title     = {On the Role of Label Noise in the Feature Learning Process},
  author    = {Han, Andi and Huang, Wei and Zhou, Zhanpeng and Niu, Gang and Chen, Wuyang and others},
  booktitle = {International Conference on Machine Learning},
  year      = {2025}
}"""
    sizes = {  # ns: of stage I; late: n where all is fitted, large beside chance in the flips
        "tiny": Size(seeds=3, ratios=(100, 1000), n=16, ns=(16, 32), late=16),
        "smoke": Size(seeds=4, ratios=(100, 1000, 10_000), n=50, ns=(50, 100, 200), late=100),
        "laptop": Size(seeds=24, ratios=(100, 1000, 10_000, 100_000), n=100, ns=(100, 200, 400), late=400),
        "full": Size(seeds=32, ratios=(400, 4000, 40_000, 400_000), n=400, ns=(100, 200, 400, 800), late=400),
    }
    minutes = 3.0
    control_changes = "the signal is weaker, n SNR^2 = 1/2, so that noise is learnt before it"
    growing = ("ratio",)

    clauses = {
        "at T_1 gamma exceeds rho": "share of filters and samples with gamma above rho at T_1",
        "at T_1 all clean samples are fitted, and no flipped one": "clean samples missed or flipped *",
        "at T_1 the test error is at most exp(-Omega(d/n))": ("exponent of the bound B*", "error on fresh noise*"),
        "a loss of log 2 at T_1 tells flipped samples from clean ones": "precision and recall of selection*",
        "n SNR^2 = Theta(1) is enough for the first stage": (
            "clean samples * at one n SNR^2 and several n",
            "exponent in d of n SNR^2 where stage I begins",
        ),
        "trained on, all samples are fitted": "training error at the end",
        "beside noise of the training set, the error is then at least min(tau_+, tau_-) / 2": "spurious error*",
        "on fresh noise the error stays near 0 (derived here)": "error on fresh noise*",
    }
    exploratory = "that stage I is judged at n SNR^2 = 16 to 64 was decided after a look at other seeds"

    width: int = whole(default=16, at_least=1)  # m
    strength: float = real(default=32.0, above=0)  # n SNR^2
    learning_rate: float = real(default=0.1, above=0)  # eta, in units of n / (sigma^2 d)
    init_scale: float = real(default=1e-3, above=0)  # sigma_0, in units of sqrt(n) / (sigma d)
    flip: float = probability(default=0.2)  # tau_+
    negative_flip: float = probability(default=0.1)  # tau_-
    loss: float = real(default=0.02, above=0)  # at t*

    @property
    def early(self) -> int:
        r"""$T_1 = nm / (\eta \sigma^2 d)$."""
        return math.ceil(self.width / self.learning_rate)

    @property
    def least_error(self) -> float:
        """Of tests beside noise of the training set, once all samples are fitted."""
        return min(self.flip, self.negative_flip) / 2

    def experiment(self, ratio, n, *, strength=None, stop=None):
        """n samples in dimension `ratio` n, with noise of length one; to T_1, or until all is fitted."""
        strength = self.strength if strength is None else strength
        d, snr = float(ratio * n), math.sqrt(strength / n)
        readings = [train_error, test_error(count=TESTS), spurious_test_error]
        if stop is None:
            readings += [clean_noisy_split, coefficients, sample_selection, concentration]
        data = SignalNoise(
            n=n, d=d, snr=snr, noise_scale=d**-0.5, label_flip=self.flip, negative_flip=self.negative_flip
        )
        return Experiment(
            data=data,
            network=TwoLayerCNN(width=self.width, init_scale=self.init_scale * math.sqrt(n / d)),
            algorithm=GradientDescent(self.learning_rate * n),
            probes=[one.on(at_end) for one in readings],
            steps=self.early if stop is None else until(train_loss, stop, at_most=MOST),
        )

    def split(self, ratio, n, strength):
        """To T_1, and only which samples are fitted is read."""
        one = self.experiment(ratio, n, strength=strength)
        return dataclasses.replace(one, probes=[clean_noisy_split.on(at_end)])

    def typical(self):
        return self.experiment(1000, 100, stop=self.loss)

    def assumptions(self, experiment: Any) -> list[Assumption]:
        data, network = experiment.data, experiment.network
        per_step = experiment.algorithm.learning_rate / (data.n * network.width)
        return [
            Assumption("the dimension is at least n^2: d / n^2", data.d / data.n**2, ">= 1"),
            Assumption("n SNR^2 is at least of order one", data.n * data.snr**2, ">= 1"),
            Assumption("flips are rarer than clean labels: 1 / (2 tau)", 1 / (2 * data.label_flip), ">= 1"),
            Assumption("the start is small: sigma_0 n m / eta", network.init_scale / per_step, "<< 1"),
            Assumption("steps are small: eta sigma^2 d / (n m)", per_step, "<< 1"),
        ]

    # T_1 is the theorem's own time, and what is fitted by then is what is judged: `trained` asks nothing more.

    def checks(self, lab):
        n, ratios = lab.size.n, lab.size.ratios
        early = self._early(lab, ratios, [self.strength / 2, self.strength, 2 * self.strength])
        each = (early.gamma.broadcast_like(early.rho) > early.rho).mean(["class", "filter", "sample"])
        yield at_least("share of filters and samples with gamma above rho at T_1", each, 1)
        yield self._stage_one(early)
        name, bound = "exponent of the bound B in d/n", early.concentration
        yield scales_as(name, bound, "ratio", 1.0, rivals=(0.5, 2.0), symbols=("d/n", "B"))
        found = np.minimum(early.selection_precision, early.selection_recall)
        yield at_least("precision and recall of selection at loss log 2, at T_1", found, 0.95)
        one = lab.run(self.split, ratio=1000, n=lab.size.ns, strength=self.strength / 2)
        yield self._stage_one(one, ", at one n SNR^2 and several n")
        begins = lab.boundary(self.split, "strength", "fit_noisy", 0.5, between=lambda: BRACKET, ratio=ratios, n=n)
        name, begins = "exponent in d of n SNR^2 where stage I begins", begins.strength.sel(level=0.5)
        yield scales_as(name, begins, "ratio", 0.0, rivals=(0.5, 1.0), symbols=("d/n", r"n\,SNR^2"))

        n = lab.size.late
        late = lab.run(self.experiment, ratio=n, n=n, stop=self.loss)
        yield at_most("training error at the end", late.train_error, 0)
        over = late.spurious_test_error / self.least_error
        yield at_least("spurious error at the end over min(tau_+, tau_-) / 2", over, 1)
        for when, runs in {"at T_1": early, "at the end": late}.items():
            yield at_most(f"error on fresh noise, {when}", runs.clean_test_error, 0.01)

    def control(self, lab):
        """Where noise grows faster than the signal, flipped samples are fitted along with the clean ones."""
        return self._stage_one(self._early(lab, lab.size.ratios[:1], 0.5))

    def _early(self, lab, ratios, strength):
        runs = lab.run(self.experiment, ratio=ratios, n=lab.size.n, strength=strength)
        runs.ratio.attrs["symbol"] = "d/n"
        return runs

    def _stage_one(self, early, more=""):
        wrong = np.maximum(1 - early.fit_clean, early.fit_noisy)
        return at_most(f"clean samples missed or flipped ones fitted at T_1{more}", wrong, 0)
