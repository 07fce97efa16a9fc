r"""Softmax attention turns from harmful to benign overfitting at n SNR^2 = const.

Jiang, Huang, Zhang, Suzuki and Nie (2024). One head of softmax attention with trained $W_Q$, $W_K$, $W_V$ and a
fixed output vector reads sequences of $L$ tokens, of which the first is the signal $\mu_+$ or $\mu_-$ of the class
and the others are noise. Trained to a small loss, it attends to the signal and has a small test loss where
$n\,\mathrm{SNR}^2$ is large; where it is small, it attends to noise, and its test loss stays of order one.

A class is seen $n/2$ times, so the value of its signal grows by $n\,\mathrm{SNR}^2/2$ where that of a noise token
grows by one: the two are alike at $n\,\mathrm{SNR}^2 = 2$, and attention follows the larger. What is measured:

* the SNR at which the test loss crosses half of $\log 2$, the loss of a network that knows nothing, for each $n$:
  its exponent is $-1/2$, to a tenth (a third of the way to its rivals, thresholds in $n\,\mathrm{SNR}$ and
  $n\,\mathrm{SNR}^3$, would be wider);
* both sides, a factor 4 of $n\,\mathrm{SNR}^2$ above 2 and below: the test loss is below or above 0.2, the cutoff
  of the paper's own diagram; attention on the signal is more than half, or less than the $1/L$ of no preference;
  the value of the signal is above or below the largest one of noise; and the scores in favour are at least 1.

All this speaks of training tokens and of the signal. Queries of *fresh* noise have learnt nothing and attend
uniformly, so the test loss goes to 0 more slowly than the training loss: about 0.12 where that is 0.01. Nor is the
test error a marker: with noise orthogonal to all that was learnt, the sign is right long before the loss is small.

The control starts $W_Q$ and $W_K$ at 0, a point at which they have no gradient: values are learnt under uniform
attention, to the same loss, and no attention is on the signal. It is judged by the attention above, and not by the
exponent: under uniform attention the network is linear, and its test loss crosses the level smoothly at
$n\,\mathrm{SNR}^2 = 1.4$, also with exponent $-1/2$. What attention adds is the jump.

The noise is orthogonal and of length one ($d = \infty$). In units in which a noise token has length 4 this is
$W_Q, W_K \sim N(0, 0.05^2)$. Rates grow with $n$, which keeps the time of training the same where
$n\,\mathrm{SNR}^2$ is.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from featlab.algorithms import GradientDescent
from featlab.claims._claim import Assumption, Claim, Size
from featlab.claims._judge import bounded_by, exceeds, identity, scales_as
from featlab.claims._picture import MOMENTS, Picture
from featlab.data import SignalTokens
from featlab.experiment import Experiment
from featlab.fields import real, whole
from featlab.networks import SoftmaxAttention
from featlab.probes import (
    at_end,
    attention_mass,
    attention_products,
    attention_scores,
    geometric,
    test_loss,
    train_loss,
    until,
)

LEVEL = 0.35  # of the test loss: half of log 2
ALIKE = 2.0  # n SNR^2 where the values of a signal and of a noise token grow alike
FAR = 4.0  # "Omega(1)": this factor of n SNR^2 above and below
CUTOFF = 0.2  # of the test loss, in the paper's diagram
LARGE = 1.0  # how a score of order one is read
JUDGED = ("train_loss", "test_loss", "attention_on_signal", "value_signal", "value_noise")
JUDGED += ("signal_score_least", "noise_score", "trained")
AT_ONCE = 4  # SNRs in one round of the search
ROUNDS = 3  # after the first: where seeds agree to a step of the last but one, SNR* is known to 0.7 %
TESTS = 500  # a test loss of 0.12 is then known to 0.0015, and half of log 2 lies in a jump
AT_MOST = 20_000  # steps; a run that needs more counts as not trained


class Transformer(Claim):
    """The claim of this file."""

    title = "Softmax attention turns from harmful to benign overfitting at n SNR^2 = const"
    statement = (
        r"n\,\mathrm{SNR}^2 = \Omega(1) \Rightarrow L_S \le \varepsilon,\ L_D = o(1);"
        r"\qquad n^{-1}\mathrm{SNR}^{-2} = \Omega(1) \Rightarrow L_S \le \varepsilon,\ L_D = \Theta(1)"
    )
    refuted_if = "the exponent of SNR* in n differs from -1/2 by more than the margin without drifting with n"
    reference = """@inproceedings{jiang2024unveil,
  title     = {Unveil Benign Overfitting for Transformer in Vision: Training Dynamics, Convergence, and Generalization},
  author    = {Jiang, Jiarui and Huang, Wei and Zhang, Miao and Suzuki, Taiji and Nie, Liqiang},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {37},
  year      = {2024}
}"""  # noqa: E501
    sizes = {
        "tiny": Size(seeds=3, n=(4, 8)),
        "smoke": Size(seeds=4, n=(18, 24, 32)),
        "laptop": Size(seeds=12, n=(16, 32, 64, 128)),
        "full": Size(seeds=32, n=(32, 64, 128, 256, 512)),
    }
    number_of_checks = 10
    minutes = 2.0  # four sizes are 800 trainings of about 1,000 steps
    control_changes = "start of W_Q and W_K N(0, sigma_0^2) -> 0, where attention stays uniform"

    tokens: int = whole(default=4, at_least=2)  # L
    head: int = whole(default=16, at_least=1)  # d_h
    init_scale: float = real(default=0.2, above=0)  # sigma_0, in units of 1 / |xi|
    output_norm: float = real(default=math.sqrt(0.025), above=0)  # |w_O|
    learning_rate: float = real(default=4.0, above=0)  # eta / n, in units of 1 / |xi|^2
    loss: float = real(default=0.01, above=0)  # epsilon

    def experiment(self, n, snr, init_scale: float | None = None):
        """What is trained: noise of length one, orthogonal (d = inf)."""
        start = self.init_scale if init_scale is None else init_scale
        probes = [
            train_loss,
            test_loss(count=TESTS),
            attention_mass(count=TESTS),
            attention_products,
            attention_scores,
        ]
        return Experiment(
            data=SignalTokens(n=n, d=math.inf, tokens=self.tokens, snr=snr, balanced=True),
            network=SoftmaxAttention(head=self.head, init_scale=start, output_norm=self.output_norm),
            algorithm=GradientDescent(self.learning_rate * n),
            probes=[probe.on(at_end) for probe in probes],
            steps=until(train_loss, self.loss, at_most=AT_MOST),
        )

    def typical(self):
        return self.experiment(32, 0.4)

    def scene(self):
        probes = [train_loss, test_loss(count=TESTS), attention_mass(count=TESTS)]
        steps = until(train_loss, self.loss, at_most=3000)
        return dataclasses.replace(self.experiment(32, 0.4), probes=probes, steps=steps, record=geometric(MOMENTS))

    def picture(self):
        def number(experiment: Any):
            return experiment.data.n * experiment.data.snr**2 / ALIKE

        return Picture(
            number,
            symbol=r"n\,\mathrm{SNR}^2 / 2",
            below="The value of a noise token grows faster than that of the signal, and attention goes to noise: "
            "the training set is memorised, and the test loss stays large (harmful overfitting).",
            above="The value of the signal grows faster, and attention goes to it: the test loss is small (benign "
            "overfitting).",
            slider="data.snr",
            slider_symbol=r"\mathrm{SNR}",
            values=tuple(float(f"{v:.3g}") for v in np.geomspace(0.1, 1.0, 13)),
            across="data.n",
            across_symbol="n",
            across_values=(8, 11, 16, 23, 32, 45, 64),
            shows="test_loss",
            level=LEVEL,
        )

    def assumptions(self, experiment: Any):
        data, network, rate = experiment.data, experiment.network, experiment.algorithm.learning_rate
        return [
            Assumption(
                "n^2 d_h / d (noise of different samples is nearly orthogonal)",
                data.n**2 * network.head / data.d,
                "<< 1",
            ),
            Assumption(
                "sigma_0^2 |xi|^2 d_h^(1/2) / L (how far from uniform attention begins)",
                network.init_scale**2 * math.sqrt(network.head) / data.tokens,
                "<< 1",
            ),
            Assumption(
                "eta |w_O|^2 |xi|^2 / (2 n L) (the most that one step adds to the value of noise)",
                rate * network.output_norm**2 / (2 * data.n * data.tokens),
                "<< 1",
            ),
        ]

    def checks(self, lab):
        found = [self._search(lab, n) for n in lab.size.n]
        below, above = (_stacked([one[end] for one in found]) for end in ("below", "above"))
        yield scales_as(
            f"exponent of SNR* in n, test loss {LEVEL:g}",
            np.array(lab.size.n),
            np.array([one["snr"] for one in found]),
            -1 / 2,
            rivals=(-1.0, -1 / 3),
            symbols=("n", r"\mathrm{SNR}^*"),
            trained=float(min(one["trained"].mean() for one in found)),
        )
        facts = _facts(lab.size.n, above, below)
        excess = np.maximum(np.maximum(above["train_loss"], below["train_loss"]) - self.loss, 0)
        yield identity("training loss beyond epsilon on both sides", excess, 1e-6, trained=facts["trained"])
        yield bounded_by("test loss above", above["test_loss"], CUTOFF, **facts)
        yield exceeds("test loss below", below["test_loss"], 0.0, by=CUTOFF, **facts)
        yield _attends(above, **facts)
        yield bounded_by("attention on the signal below", below["attention_on_signal"], 1 / self.tokens, **facts)
        yield exceeds("value of the signal over noise above", above["value_signal"], above["value_noise"], **facts)
        yield exceeds("value of noise over the signal below", below["value_noise"], below["value_signal"], **facts)
        yield exceeds("least score of the signal above", above["signal_score_least"], 0.0, by=LARGE, **facts)
        yield exceeds("score of the preferred noise below", below["noise_score"], 0.0, by=LARGE, **facts)

    def control(self, lab):
        """Attention without a gradient, on the benign side."""
        above = _stacked([lab.endings(self.experiment(n, _ends(n)[1], init_scale=0.0)) for n in lab.size.n])
        return _attends(above, **_facts(lab.size.n, above))

    def _search(self, lab, n):
        """SNR* of each seed, whether all runs behind it trained, and every reading at both ends of the search.

        All seeds are trained at the same SNRs, a few a round, between the lowest and the highest SNR* that are
        still possible: one program serves them all.
        """

        def read(points):
            return [lab.endings(self.experiment(n, math.exp(point))) for point in points]

        low, high = np.log(_ends(n))
        points = np.linspace(low, high, AT_ONCE)
        runs = read(points)
        below, above = runs[0], runs[-1]
        for _ in range(ROUNDS):
            at = _last_above(runs)
            new = np.linspace(points[at.min()], points[at.max() + 1], AT_ONCE + 2)[1:-1]
            points, runs = np.concatenate([points, new]), runs + read(new)
            order = np.argsort(points, kind="stable")
            points, runs = points[order], [runs[place] for place in order]
        at, values = _last_above(runs), np.array([run["test_loss"] for run in runs])
        left, right = (np.take_along_axis(values, (at + k)[None], axis=0)[0] for k in (0, 1))
        crossed = (left > LEVEL) & (right <= LEVEL)
        share = (left - LEVEL) / np.where(crossed, left - right, 1.0)
        snr = np.where(crossed, np.exp(points[at] + share * (points[at + 1] - points[at])), np.nan)
        trained = np.all([run["trained"] for run in runs], axis=0)
        return {"snr": snr, "trained": trained, "below": below, "above": above}


def _ends(n):
    """The SNRs a factor FAR of n SNR^2 below and above."""
    return math.sqrt(ALIKE / FAR / n), math.sqrt(ALIKE * FAR / n)


def _last_above(runs):
    """For each seed the last of the runs before its test loss falls below the level; not the very last one."""
    above = np.cumprod([run["test_loss"] > LEVEL for run in runs], axis=0)
    return np.clip(above.sum(axis=0) - 1, 0, len(runs) - 2)


def _stacked(runs):
    """Readings of several sizes, (size, seed)."""
    return {name: np.array([run[name] for run in runs]) for name in JUDGED}


def _facts(sizes, *sides):
    trained = min(side["trained"].mean(axis=1).min() for side in sides)
    return {"cells": tuple(f"n = {n}" for n in sizes), "trained": float(trained)}


def _attends(side, **facts):
    """More than half of all attention is on the signal."""
    return exceeds("attention on the signal above", side["attention_on_signal"], 0.0, by=0.5, **facts)
