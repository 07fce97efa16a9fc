r"""ReLU networks turn from harmful to benign overfitting at n |mu|^4 = const sigma^4 d.

Kou, Chen, Chen and Gu (2023), Theorem 4.2 (Conditions 4.1). With a constant fraction p of labels flipped, ReLU
networks are trained to a small loss, flips included. If $n\|\mu\|^4 \ge C_1 \sigma^4 d$ the test error is at most
$p + \exp(-n\|\mu\|^4 / (C_2 \sigma^4 d))$, if $n\|\mu\|^4 \le C_3 \sigma^4 d$ it is at least $p + 0.1$. So the
signal at which the clean error crosses a level scales as $n^{-1/4}$ and $d^{1/4}$; and since the two regimes are
constants apart, the ratio of the thresholds of two levels does not grow with n.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

import numpy as np

from featlab.algorithms import GradientDescent
from featlab.claims._claim import Assumption, Claim, Size
from featlab.claims._judge import bounded_by, exceeds, scales_as
from featlab.claims._picture import Picture, along_the_way
from featlab.data import SignalNoise
from featlab.experiment import Experiment
from featlab.fields import probability, real, whole
from featlab.networks import TwoLayerCNN, leaky_relu, relu, relu_power
from featlab.probes import at_end, test_error, train_loss, until

LEVELS = (0.25, 0.1)
RIVALS = (1 / 3, 1 / 2)
BENIGN, HARMFUL = 16.0, 1 / 64  # X = n |mu|^4 / (sigma^4 d), far from the constants on either side
TOLERANCE = 0.04  # of a bracket; the error is smooth in the signal, and interpolated inside
AT_MOST = 20_000  # steps; a run that needs more counts as not trained


class Phase(Claim):
    """The claim of this file."""

    title = "ReLU networks turn from harmful to benign overfitting at n |mu|^4 = const sigma^4 d"
    statement = (
        r"n\|\mu\|^4 \ge C_1\sigma^4 d \Rightarrow L_D^{0-1} \le p + \exp\bigl(-n\|\mu\|^4/(C_2\sigma^4 d)\bigr);"
        r"\qquad n\|\mu\|^4 \le C_3\sigma^4 d \Rightarrow L_D^{0-1} \ge p + 0.1"
    )
    refuted_if = "the exponent of |mu|* in n differs from -1/4, or in d from 1/4, by more than the margin"
    reference = """@inproceedings{kou2023benign,
  title     = {Benign Overfitting in Two-layer {ReLU} Convolutional Neural Networks},
  author    = {Kou, Yiwen and Chen, Zixiang and Chen, Yuanzhou and Gu, Quanquan},
  booktitle = {International Conference on Machine Learning},
  year      = {2023}
}"""
    sizes = {
        "tiny": Size(seeds=3, n=(8, 16), d=(1e4, 1e5), large_d=(1e6,), small_n=(8,)),
        "smoke": Size(seeds=4, n=(32, 45, 64), d=(1e5, 1e6, 1e7), large_d=(1e8,), small_n=(32,)),
        "laptop": Size(seeds=12, n=(128, 256, 512, 1024), d=(1e6, 1e7, 1e8, 1e9), large_d=(1e9,), small_n=(64,)),
        "full": Size(seeds=32, n=(256, 512, 1024, 2048), d=(1e6, 1e7, 1e8, 1e9), large_d=(1e10,), small_n=(128,)),
    }
    number_of_checks = 7
    minutes = 3.0  # a step at n = 1024 multiplies with a Gram matrix of a million numbers
    control_changes = "activation ReLU -> ReLU^2"
    turn: ClassVar[float] = 0.2  # X at error 1/4, measured: the theorem says that there is a constant, not which
    bracket: ClassVar[tuple[float, float]] = (1 / 64, 64.0)  # X between which the thresholds are searched

    width: int = whole(default=16, at_least=1)  # m; below 16, samples without an active filter are common
    learning_rate: float = real(default=8.0, above=0)  # eta, in units of n / (sigma^2 d)
    init_scale: float = real(default=1e-3, above=0)  # sigma_0, in units of sqrt(n) / (sigma d)
    loss: float = real(default=0.01, above=0)  # epsilon
    flip: float = probability(default=0.1)  # p, for the theorem's two sides
    threshold_flip: float = probability(default=0.0)  # p, for the thresholds: chance in the flips would blur them
    leak: float = real(default=0.0, at_least=0)  # slope of the activation below 0

    def experiment(self, n, d, signal_norm, activation=None, flip=None):
        """What is trained: sigma = 1, and learning rate and start in the theorem's units."""
        flip = self.threshold_flip if flip is None else flip
        activation = activation or (leaky_relu(self.leak) if self.leak else relu)
        init_scale = self.init_scale * math.sqrt(n) / d
        return Experiment(
            data=SignalNoise(n=n, d=d, signal_norm=signal_norm, label_flip=flip, test_flip=flip),
            network=TwoLayerCNN(width=self.width, activation=activation, init_scale=init_scale),
            algorithm=GradientDescent(self.learning_rate * n / d),
            probes=[train_loss.on(at_end), test_error.on(at_end)],
            steps=until(train_loss, self.loss, at_most=AT_MOST),
        )

    def typical(self):
        return self.experiment(128, 1e9, signal_at(1.0, 128, 1e9))

    def scene(self):
        return along_the_way(self.experiment(64, 1e6, round(signal_at(self.turn, 64, 1e6), 1)))

    def picture(self):
        def number(experiment: Any):
            data = experiment.data
            return data.n * data.signal_norm**4 / (data.noise_scale**4 * data.d * self.turn)

        return Picture(
            number,
            symbol=rf"n\|\mu\|^4 / ({self.turn:g}\,\sigma^4 d)",
            below="The signal is too weak for so few samples in so many dimensions: the network fits its training "
            "set and errs on fresh inputs (harmful overfitting).",
            above="The signal is strong enough: the network fits its training set, wrong labels included, and "
            "classifies fresh inputs almost as well as can be (benign overfitting).",
            slider="data.signal_norm",
            slider_symbol=r"\|\mu\|",
            values=tuple(float(f"{signal_at(self.turn * x, 64, 1e6):.3g}") for x in np.geomspace(1 / 64, 64, 13)),
            across="data.n",
            across_symbol="n",
            across_values=(16, 23, 32, 45, 64, 91, 128, 181, 256),
            shows="clean_test_error",
            level=LEVELS[0],
        )

    def assumptions(self, experiment: Any):
        data, network, rate = experiment.data, experiment.network, experiment.algorithm.learning_rate
        n, d, mu, sigma = data.n, data.d, data.signal_norm, data.noise_scale
        start = network.init_scale * sigma * d / math.sqrt(n)
        unit = sigma**2 * d / n
        return [
            Assumption("n^2 / d (noise of different samples is nearly orthogonal)", n**2 / d, "<< 1"),
            Assumption("n SNR^2 (the signal does not overwhelm the noise)", mu**2 / unit, "<< 1"),
            Assumption("sigma_0 sigma d / n^(1/2) (the start is forgotten)", start, "<< 1"),
            Assumption("eta sigma^2 d / (n m^2) (small steps)", rate * unit / network.width**2, "<< 1"),
            Assumption(
                "m / log n (some filter of each class sees each sample)", network.width / math.log(n), ">= 1"
            ),
        ]

    def checks(self, lab):
        in_n = self._boundary_in_n(lab, None)
        yield from (self._exponent_in_n(in_n, level) for level in LEVELS)
        in_d = self._boundary_in_d(lab)
        yield from (self._exponent_in_d(in_d, level) for level in LEVELS)
        easy, hard = (in_n.signal_norm.sel(level=level).values for level in LEVELS)
        yield scales_as(
            "exponent in n of the ratio of two thresholds",
            in_n.n.values,
            hard / easy,
            0.0,
            symbols=("n", r"\|\mu\|^*_{0.1} / \|\mu\|^*_{0.25}"),
            trained=_trained(in_n),
        )
        yield from self._sides(lab)

    def control(self, lab):
        """ReLU^2, which is also trained to the same loss, switches at n SNR^2 = const."""
        return self._exponent_in_n(self._boundary_in_n(lab, relu_power(2)), LEVELS[0])

    def perturbed(self):
        leaky = dataclasses.replace(self, leak=0.1)
        flipped = dataclasses.replace(self, threshold_flip=0.1)
        return {**super().perturbed(), "activation ReLU -> leaky ReLU": leaky, "thresholds with flips": flipped}

    def _boundary_in_n(self, lab, activation):
        (d,) = lab.size.large_d

        def between(n):
            if activation is None:
                return tuple(signal_at(strength, n, d) for strength in self.bracket)
            return math.sqrt(d / 4 / n), math.sqrt(16 * d / n)  # n SNR^2 from 1/4 to 16

        return lab.boundary(
            lambda n, signal_norm: self.experiment(n, d, signal_norm, activation),
            "signal_norm",
            "clean_test_error",
            LEVELS if activation is None else LEVELS[:1],
            over={"n": lab.size.n},
            between=between,
            tolerance=TOLERANCE,
        )

    def _boundary_in_d(self, lab):
        (n,) = lab.size.small_n
        return lab.boundary(
            lambda d, signal_norm: self.experiment(n, d, signal_norm),
            "signal_norm",
            "clean_test_error",
            LEVELS,
            over={"d": lab.size.d},
            between=lambda d: tuple(signal_at(strength, n, d) for strength in self.bracket),
            tolerance=TOLERANCE,
        )

    def _exponent_in_n(self, found, level):
        return scales_as(
            f"exponent of |mu|* in n, clean error {level:g}",
            found.n.values,
            found.signal_norm.sel(level=level).values,
            -1 / 4,
            rivals=tuple(-rival for rival in RIVALS),
            symbols=("n", r"\|\mu\|^*"),
            trained=_trained(found),
        )

    def _exponent_in_d(self, found, level):
        return scales_as(
            f"exponent of |mu|* in d, clean error {level:g}",
            found.d.values,
            found.signal_norm.sel(level=level).values,
            1 / 4,
            rivals=RIVALS,
            symbols=("d", r"\|\mu\|^*"),
            trained=_trained(found),
        )

    def _sides(self, lab):
        """The theorem's own statements, on observed labels, at the smaller sizes in n."""
        (d,) = lab.size.large_d
        sizes = lab.size.n[:-1]
        runs = {
            x: [lab.endings(self.experiment(n, d, signal_at(x, n, d), flip=self.flip)) for n in sizes]
            for x in (BENIGN, HARMFUL)
        }
        cells = tuple(f"n = {n}" for n in sizes)

        def facts(x):
            return {"cells": cells, "trained": float(min(run["trained"].mean() for run in runs[x]))}

        harmful = np.array([run["test_error"] for run in runs[HARMFUL]])
        benign = np.array([run["test_error"] for run in runs[BENIGN]])
        yield exceeds("harmful side: observed error", harmful, 0.0, by=self.flip + 0.1, **facts(HARMFUL))
        bound = self.flip + math.exp(-BENIGN / 4)
        yield bounded_by("benign side: observed error", benign, bound, **facts(BENIGN))


def signal_at(strength: float, n: int, d: float) -> float:
    r"""The signal's length at which $X = n \|\mu\|^4 / d$ has this value, with sigma = 1."""
    return (strength * d / n) ** 0.25


def _trained(found) -> float:
    return float(found.trained.mean("seed").min())
