r"""Where gradient descent learns the signal, Adam and sign descent memorise the noise.

Zou, Cao, Li and Gu (2023), Theorems 4.1 and 4.2. The signal is one coordinate, the noise sparse, and the noise
patch carries a little of the opposite signal. Sign descent moves the signal's coordinate by $\eta$ a step and a
noise patch by $\eta \sum_k |\xi_i[k]| \approx \eta s \sigma_p \sqrt{2/\pi}$: noise wins where $s\sigma_p \gg 1$,
and the feature noise then turns the network's sign. For gradient descent the rates are $s\sigma_p^2/n$ against
1, and the signal wins. All three end at training error 0 and near a stationary point, each in its norm:
$\|\nabla L\|_2^2 \le 1/(T\eta)$ or $\|\nabla L\|_1 \le 1/(T\eta)$. That is read a quarter of the way, when all
samples have just been fitted; by the end gradients are a thousand times smaller. The control is Adam where noise
touches two coordinates only, so that $s\sigma_p < 1$: it learns the signal.

The theorem holds with high probability when the width is large enough, $m = \mathrm{polylog}(n)$: some filter of
each class must begin along the signal.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from featlab.algorithms import Adam, GradientDescent, SignDescent
from featlab.claims import Assumption, Claim, Size, at_least, at_most, equals, not_judged
from featlab.claims.settings.sign_descent import noise_pace
from featlab.core.validation import real, whole
from featlab.data import SparseSignalNoise
from featlab.experiment import Experiment
from featlab.networks import TwoLayerCNN, relu_power
from featlab.probes import (
    alignments,
    at_end,
    gradient_norm,
    gradient_norm_1,
    growth_rates,
    test_error,
    train_error,
    train_loss,
)

LATER = 20  # a step whose growth is read; samples are fitted after a hundred


class AdamMemorises(Claim):
    """The claim of this file."""

    title = "Adam and sign descent memorise sparse noise where gradient descent learns the signal"
    statement = (
        r"\text{GD: } \|\nabla L\|_2 \to 0,\ L_D^{0-1} \le 1/\mathrm{poly}(n); \qquad"
        r"\text{Adam: } \|\nabla L\|_1 \to 0,\ L_S^{0-1} = 0,\ L_D^{0-1} \ge \tfrac12"
    )
    refuted_if = "Adam or sign descent errs less than half the time, or gradient descent more often than 1/n"
    reference = """@inproceedings{zou2023understanding,
  title     = {Understanding the Generalization of {Adam} in Learning Neural Networks with Proper Regularization},
  author    = {Zou, Difan and Cao, Yuan and Li, Yuanzhi and Gu, Quanquan},
  booktitle = {International Conference on Learning Representations},
  year      = {2023}
}"""
    sizes = {
        "tiny": Size(seeds=3, d=300, sparsities=(10,), ns=(15, 20), scale=0.1),
        "smoke": Size(seeds=4, d=1500, sparsities=(25, 50), ns=(15, 30), scale=1.0),
        "laptop": Size(seeds=24, d=5000, sparsities=(12, 25, 50), ns=(15, 30, 60), scale=1.0),
        "full": Size(seeds=64, d=20_000, sparsities=(12, 25, 50), ns=(15, 30, 60, 120), scale=1.0),
    }
    minutes = 3.0  # whole vectors: neither the data nor the algorithms commute with rotations
    control_changes = "noise touches 2 coordinates, so that s sigma_p = 0.3"

    clauses = {
        "gradient descent: the test error is at most 1/poly(n)": "n times the test error of gradient descent",
        "Adam and sign descent: the test error is at least 1/2": "test error of *",
        "all fit the training set": "training error",
        "the training loss itself becomes small": "training loss over log 2 / n*",
        "all end near a stationary point, each in its norm": "T eta |gradient|*",
        "descent learns the signal, the others the noise": "what is learnt less what is not*",
        "sign descent: noise grows s sigma_p sqrt(2/pi) times as fast as the signal": "sign descent: noise over*",
        "gradient descent: the signal grows faster than noise": "gradient descent: noise over*",
        "sign descent turns the signal round once noise is fitted": not_judged(
            "its consequence, errors above 1/2, is judged"
        ),
    }
    exploratory = (
        "that what is learnt is compared as a difference, the first steps without feature noise, and the time at "
        "which gradients are read were decided after a first run"
    )

    n: int = whole(default=20, at_least=1)
    width: int = whole(default=20, at_least=1)  # m
    sparsity: int = whole(default=50, at_least=1)  # s
    noise_scale: float = real(default=0.15, above=0)  # sigma_p
    feature_noise: float = real(default=0.3, at_least=0)  # alpha
    init_scale: float = real(default=0.02, above=0)  # sigma_0
    weight_decay: float = real(default=1e-6, at_least=0)  # lambda

    def strategies(self, scale=1.0):
        """Algorithm and steps of each; `scale` shortens them for a look at the structure."""
        decay = self.weight_decay
        return {
            "gradient descent": (GradientDescent(1.0, weight_decay=decay), round(2000 * scale)),
            "sign descent": (SignDescent(1e-3, decay), round(400 * scale)),
            "Adam": (Adam(1e-3, weight_decay=decay), round(600 * scale)),
        }

    def experiment(self, strategy, d, *, n=None, sparsity=None):
        """The theorem's experiment with any algorithm, for a number of steps."""
        algorithm, steps = strategy
        n, s = self.n if n is None else n, self.sparsity if sparsity is None else sparsity
        noise, along = self.noise_scale, self.feature_noise
        data = SparseSignalNoise(n=n, d=float(d), sparsity=s, noise_scale=noise, feature_noise=along)
        readings = (train_loss, train_error, test_error(count=2000), alignments, gradient_norm, gradient_norm_1)
        return Experiment(
            data=data,
            network=TwoLayerCNN(
                width=self.width, activation=relu_power(3), average_filters=False, init_scale=self.init_scale
            ),
            algorithm=algorithm,
            probes=[*(one.on(at_end) for one in readings), growth_rates],
            steps=steps,
        )

    def pace(self, s):
        """Noise that a step of sign descent adds, over signal."""
        return noise_pace(s, self.noise_scale)

    def typical(self):
        return self.experiment(self.strategies()["Adam"], d=2000)

    def assumptions(self, experiment: Any) -> list[Assumption]:
        data: Any = experiment.data
        s, scale = data.sparsity, data.noise_scale
        return [
            Assumption("signs favour noise: s sigma_p", s * scale, ">= 1"),
            Assumption("gradients favour the signal: s sigma_p^2 / n", s * scale**2 / data.n, "<< 1"),
            Assumption("supports are nearly disjoint: d / (n s)", data.d / (data.n * s), ">= 1"),
            Assumption("the width is polylog n: m / log(n)^2", self.width / math.log(data.n) ** 2, ">= 1"),
        ]

    def trained(self, runs):
        """The loss has fallen below log 2, that of a network whose output is 0."""
        return runs.train_loss < math.log(2) if "train_loss" in runs else None

    def checks(self, lab):
        strategies, soon = self.strategies(lab.size.scale), self.strategies(lab.size.scale / 4)
        ends = lab.run(self.experiment, strategy=strategies, d=lab.size.d)
        of = {name: ends.sel(strategy=name, drop=True) for name in strategies}
        per, name = lab.size.d / self.n, "gradient descent"  # d / (n s) is the same for all n
        sizes = lab.run(self.experiment, strategy={name: soon[name]}, n=lab.size.ns, d=lambda n: per * n)
        errors = sizes.clean_test_error.sel(strategy=name, drop=True) * sizes.n
        yield at_most("n times the test error of gradient descent", errors, 1)
        yield at_least("test error of sign descent", of["sign descent"].clean_test_error, 0.5)
        yield self._adam_errs(of["Adam"])
        yield at_most("training error", ends.train_error, 0)
        # Below it no sample can be misread.
        yield at_most("training loss over log 2 / n", ends.train_loss * self.n / math.log(2), 1)
        near = lab.run(self.experiment, strategy=soon, d=lab.size.d)
        norms = {name: near.gradient_norm_1.sel(strategy=name, drop=True) for name in soon}
        norms["gradient descent"] = near.gradient_norm.sel(strategy="gradient descent", drop=True) ** 2
        left = {name: norms[name] * how.learning_rate * steps for name, (how, steps) in soon.items()}
        yield at_most("T eta |gradient|_2^2 of descent, T eta |gradient|_1 of the others", left, 1)
        # Descent learns the signal, the others the noise.
        gap = {name: runs.noise_alignment - runs.signal_alignment for name, runs in of.items()}
        gap["gradient descent"] = -gap["gradient descent"]
        yield at_least("what is learnt less what is not, as products", gap, 0)

        judged = {name: strategies[name] for name in ("gradient descent", "sign descent")}
        for k, sparsities in ((1, lab.size.sparsities), (LATER, lab.size.sparsities[:1])):
            step = lab.run(self.growth, strategy=judged, s=sparsities, k=k, d=lab.size.d)
            ratio = step.noise_growth / step.signal_growth
            law, at = self.pace(step.s), f"at step {k}"
            name = f"sign descent: noise over signal, {at}, over s sigma_p sqrt(2/pi)"
            yield equals(name, ratio.sel(strategy="sign descent") / law, 1)
            yield at_most(f"gradient descent: noise over signal, {at}", ratio.sel(strategy="gradient descent"), 1)

    def control(self, lab):
        """Signs favour noise no more: a step adds s sigma_p sqrt(2/pi) = 0.24 times as much noise as signal."""
        adam = self.strategies(lab.size.scale)["Adam"]
        runs = lab.run(self.experiment, strategy={"Adam": adam}, d=lab.size.d, sparsity=2)
        return self._adam_errs(runs.sel(strategy="Adam", drop=True))

    def _adam_errs(self, runs):
        return at_least("test error of Adam", runs.clean_test_error, 0.5)

    def growth(self, strategy, s, k, d):
        """The k-th step, where supports are disjoint.

        Without feature noise, which decides at the start which neurons are active on a noise patch.
        """
        one: Any = self.experiment((strategy[0], k), max(d, 50 * self.n * s), sparsity=s)
        data = dataclasses.replace(one.data, feature_noise=0.0)
        return dataclasses.replace(one, data=data, probes=(growth_rates,))
