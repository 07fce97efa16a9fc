r"""With flipped labels, a network first learns the signal and ignores the flipped samples, then fits them too.

Han, Huang, Cao and co-authors (2025). Labels are flipped with probabilities $\tau_+$ and $\tau_-$, and
$n\,\mathrm{SNR}^2$ is a constant. At $T_1 = \Theta(nm/(\eta\sigma^2 d))$ all clean samples are fitted and all
flipped ones are not, so stopping there is safe (the test error is at most $\exp(-\Omega(d/n))$) and a loss of
$\log 2$ tells flipped samples from clean ones. Trained on, all samples are fitted, and the error is at least
$\frac12 \min(\tau_+, \tau_-)$.

That last statement is about tests whose noise patch is one of the training set: beside the noise of a flipped
sample, the class it was flipped from is misread, which is half the flipped fraction of all such tests. On fresh
noise the error stays near 0, since $(n\,\mathrm{SNR}^2)^2 d/n \gg 1$. Both are measured.

The early error is too small to be counted. What is followed is the exponent B of its bound $e^{-B}$, which
Gaussian concentration gives and the probe `concentration` computes from the weights: B must grow as $(d/n)^1$, and
the error must lie below $e^{-B}$ where it can be counted.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from featlab.algorithms import GradientDescent
from featlab.claims import Assumption, Claim, Size, at_least, at_most, equals, not_judged, scales_as
from featlab.core.validation import probability, real, whole
from featlab.data import SignalNoise
from featlab.experiment import Experiment
from featlab.networks import TwoLayerCNN
from featlab.probes import (
    above,
    all_of,
    at_end,
    clean_noisy_split,
    concentration,
    first,
    sample_selection,
    spurious_test_error,
    test_error,
    train_error,
    train_loss,
    until,
)

TESTS = 10_000
MOST = 40_000  # steps: several times as many as fitting takes


class LabelNoise(Claim):
    """The claim of this file."""

    title = "with flipped labels the signal is learnt first and the flips are memorised later"
    statement = (
        r"T_1:\ \tilde y_i f_i > 0 \iff \tilde y_i = y_i, \quad L_D^{0-1} \le e^{-\Omega(d/n)};"
        r"\qquad t^*:\ \tilde y_i f_i > 0\ \forall i, \quad L_{D'}^{0-1} \ge \tfrac12 \min\{\tau_+, \tau_-\}"
    )
    refuted_if = "flipped samples are fitted at T_1, B does not grow as (d/n)^1, or spurious tests do not err"
    reference = """@inproceedings{han2025role,
  title     = {On the Role of Label Noise in the Feature Learning Process},
  author    = {Han, Andi and Huang, Wei and Zhou, Zhanpeng and Niu, Gang and Chen, Wuyang and others},
  booktitle = {International Conference on Machine Learning},
  year      = {2025}
}"""
    sizes = {
        "tiny": Size(seeds=3, ratios=(100, 1000), n=16),
        "smoke": Size(seeds=4, ratios=(100, 1000, 10_000), n=50),
        "laptop": Size(seeds=24, ratios=(100, 1000, 10_000, 100_000), n=100),
        "full": Size(seeds=32, ratios=(400, 4000, 40_000, 400_000), n=400),
    }
    control_changes = "the signal is weaker, n SNR^2 = 1/2, so that noise is learnt before it"
    growing = ("ratio",)

    clauses = {
        "at T_1 all clean samples are fitted, and no flipped one": (
            "clean samples missed or flipped ones fitted at T_1",
            "steps to half of the flipped samples*",
        ),
        "at T_1 the test error is at most exp(-Omega(d/n))": ("exponent of the bound B*", "early error less*"),
        "a loss of log 2 at T_1 tells flipped samples from clean ones": "precision and recall of selection*",
        "trained on, all samples are fitted": "training error at the end",
        "beside noise of the training set, the error is then at least min(tau_+, tau_-) / 2": "spurious error*",
        "on fresh noise the error stays near 0 (derived here)": "error on fresh noise at the end",
        "gamma exceeds rho at T_1": not_judged("only what follows from it, which samples are fitted, is measured"),
        "n SNR^2 = Theta(1) is enough for the first stage": not_judged(
            "n SNR^2 is held at 32; the theorem leaves the constant open"
        ),
    }
    exploratory = "flipped samples count as memorised only once all clean ones are fitted: added after a first run"

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

    def experiment(self, ratio, n, *, strength=None, stop=None):
        """n samples in dimension `ratio` n, with noise of length one; to T_1, or until all is fitted."""
        strength = self.strength if strength is None else strength
        d = float(ratio * n)
        # Before training a sample is fitted by chance, so the flipped ones count once all clean ones are fitted.
        clean = above(clean_noisy_split, 1.0)
        flipped_too = all_of([clean, above(clean_noisy_split, 0.5, "fit_noisy")])
        moments = [
            clean_noisy_split.on(first(clean, "clean_fitted")),
            train_loss.on(first(flipped_too, "half_of_flipped_fitted")),
        ]
        readings = [train_error, test_error(count=TESTS), spurious_test_error, sample_selection, concentration]
        if stop is None:
            readings.append(clean_noisy_split)
        return Experiment(
            data=SignalNoise(
                n=n,
                d=d,
                snr=math.sqrt(strength / n),
                noise_scale=d**-0.5,
                label_flip=self.flip,
                negative_flip=self.negative_flip,
            ),
            network=TwoLayerCNN(width=self.width, init_scale=self.init_scale * math.sqrt(n / d)),
            algorithm=GradientDescent(self.learning_rate * n),
            probes=[one.on(at_end) for one in readings] + (moments if stop is not None else []),
            steps=self.early if stop is None else until(train_loss, stop, at_most=MOST),
        )

    def typical(self):
        return self.experiment(1000, 100, stop=self.loss)

    def assumptions(self, experiment: Any) -> list[Assumption]:
        data, network = experiment.data, experiment.network
        per_step = experiment.algorithm.learning_rate / (data.n * network.width)
        return [
            Assumption("the dimension is at least n^2: d / n^2", data.d / data.n**2, ">= 1"),
            Assumption("n SNR^2 is at least of order one", data.n * data.snr**2, ">= 1"),
            Assumption("flips are rarer than clean labels: 1 / (2 tau)", 1 / (2 * data.label_flip), ">= 1"),
            Assumption(
                "the start is small beside a step: sigma_0 n m / eta", network.init_scale / per_step, "<< 1"
            ),
            Assumption("steps are small: eta sigma^2 d / (n m)", per_step, "<< 1"),
        ]

    # T_1 is the theorem's own time, and what is fitted by then is what is judged: `trained` asks nothing more.

    def checks(self, lab):
        early, late = self._run(lab, lab.size.ratios), self._run(lab, lab.size.ratios, stop=self.loss)
        yield self._stage_one(early)
        passed = late.half_of_flipped_fitted - self.early
        yield at_least("steps to half of the flipped samples less T_1", passed, 0)
        name, bound = "exponent of the bound B in d/n", early.concentration
        yield scales_as(name, bound, "ratio", 1.0, rivals=(0.5, 2.0), symbols=("d/n", "B"))
        beyond = early.clean_test_error - np.exp(-bound)
        yield at_most("early error less exp(-B)", beyond, 0)
        found = np.minimum(early.selection_precision, early.selection_recall)
        yield at_least("precision and recall of selection at loss log 2, at T_1", found, 0.95)
        yield at_most("training error at the end", late.train_error, 0)
        over_half = late.spurious_test_error / (late.flipped_fraction / 2)
        yield equals("spurious error at the end over half the flipped fraction", over_half, 1)
        yield at_most("error on fresh noise at the end", late.clean_test_error, 0.01)

    def control(self, lab):
        """Where noise grows faster than the signal, flipped samples are fitted along with the clean ones."""
        return self._stage_one(self._run(lab, lab.size.ratios[:1], strength=0.5))

    def _run(self, lab, ratios, **how):
        runs = lab.run(self.experiment, ratio=ratios, n=lab.size.n, **how)
        runs.ratio.attrs["symbol"] = "d/n"
        return runs

    def _stage_one(self, early):
        wrong = np.maximum(1 - early.fit_clean, early.fit_noisy)
        return at_most("clean samples missed or flipped ones fitted at T_1", wrong, 0.05)
