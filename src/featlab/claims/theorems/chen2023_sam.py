r"""Sharpness-aware minimisation, then descent, is benign at a signal that does not grow with the dimension.

Chen, Zhang, Kou, Chen, Hsieh and Gu (2023). Stochastic gradient descent on the ReLU network is benign if and
only if $\|\mu\|/\sigma \gtrsim (d/n)^{1/4}$. After a phase of SAM with $\tau = \Theta(m \sqrt B / (P \sigma
\sqrt d))$ it is benign as soon as $\|\mu\|/\sigma = \tilde\Omega(1)$, for every d. The reason: SAM's
perturbation switches off every neuron that is active on noise of its own class, so the noise stops growing and
the signal does not.

The theorem's condition is sufficient, so what is tested of SAM is that its threshold does not grow: an exponent of
at most 0.05. It does fall at these sizes. What descent memorises after SAM reaches a test with strength
$\sqrt{n/d}\,\rho$, which still counts beside $\sigma_0$ at $d = 10^4$; the exponent 0 itself would take
$d \gtrsim 10^6$ and $T_1 = 2d$ steps.

The two theorems ask for different starts. SAM's is of order one beside the length of the noise, up to logarithms,
$\sigma_0 = \tilde\Theta(1/(\sigma\sqrt d))$: here 0.1. Descent's must be small beside what it memorises, as a test
sees it, $\sqrt{n/d}\,\rho$ with $\rho \approx 2\log(1/\epsilon)$: here 0.01 beside 0.17 at the largest d, where
0.1 made the exponent drift. Steps are $10\,\sigma_0 n$ in both, so that one moves half as much as the start.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from featlab.algorithms import SAM, GradientDescent, Then
from featlab.claims import Assumption, Claim, Size, at_least, at_most, scales_as
from featlab.core.validation import real, whole
from featlab.data import Minibatches, SignalNoise
from featlab.experiment import Experiment
from featlab.networks import TwoLayerCNN
from featlab.probes import at_end, deactivation, test_error, train_loss, until

LEVEL = 0.1  # of the test error, the constant of the theorem's lower bound
MOMENTS = (1, 10, 100)  # steps of SAM after which its perturbation is looked at
BRACKET = (0.1, 30.0)  # for |mu| / sigma
SYMBOLS = ("d", r"\|\mu\|^*/\sigma")


class SharpnessAware(Claim):
    """The claim of this file."""

    title = "after a phase of SAM the signal that is needed does not grow with d; for descent it grows as d^(1/4)"
    statement = (
        r"\text{SGD: benign} \iff \|\mu\|/\sigma \gtrsim (d/n)^{1/4}; \qquad"
        r"\text{SAM then SGD: benign if } \|\mu\|/\sigma = \tilde\Omega(1)"
    )
    refuted_if = "the threshold after SAM grows with d, or descent's does not grow as d^(1/4)"
    reference = """@inproceedings{chen2023sharpness,
  title     = {Why Does Sharpness-Aware Minimization Generalize Better Than {SGD}?},
  author    = {Chen, Zixiang and Zhang, Junkai and Kou, Yiwen and Chen, Xiangning and Hsieh, Cho-Jui and others},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2023}
}"""
    sizes = {
        "tiny": Size(seeds=3, d=(200, 400), n=(10, 20)),
        "smoke": Size(seeds=3, d=(100, 200, 400), n=(10, 20, 40)),
        "laptop": Size(seeds=24, d=(1000, 3000, 10_000, 30_000), n=(20, 40, 80, 160)),
        "full": Size(seeds=32, d=(1000, 3000, 10_000, 30_000, 100_000), n=(20, 40, 80, 160)),
    }
    minutes = 9.0  # T_1 = 2d steps of SAM for every point of a bisection
    control_changes = "the radius of SAM is 0"

    clauses = {
        "descent is benign if and only if |mu|/sigma exceeds a multiple of (d/n)^(1/4)": (
            "exponent of |mu|*/sigma in d, descent",
            "exponent of |mu|*/sigma in n, descent",
        ),
        "after SAM, |mu|/sigma of order one is enough, whatever d": (
            "exponent of |mu|*/sigma in d, SAM then descent",
            "error without SAM less error with it*",
        ),
        "SAM's perturbation switches off the neurons that are active on noise of their own class": (
            "neurons active on their noise that SAM switches off"
        ),
        "with mini-batches, as in the theorem's SGD": (
            "error after SAM with mini-batches*",
            "error without SAM less error with it, mini-batches*",
        ),
    }

    exploratory = "the sizes n and the start of descent were chosen after smaller n had scattered too much"

    n: int = whole(default=10, at_least=1)
    width: int = whole(default=10, at_least=1)  # m
    learning_rate: float = real(default=10.0, above=0)  # eta, in units of sigma_0 n, noise having length one
    init_scale: float = real(default=0.1, above=0)  # sigma_0 of SAM and of the descent it is compared with
    small_start: float = real(default=0.01, above=0)  # sigma_0 where descent is judged alone
    batch: int = whole(default=5, at_least=1)  # B
    radius: float = real(default=3.0, at_least=0)  # tau, in units of sigma_0 sqrt(nm)
    duration: float = real(default=2.0, above=0)  # T_1 / d
    loss: float = real(default=0.01, above=0)

    def experiment(self, d, signal, radius=None, n=None, start=None, batch=None):
        """`signal` is |mu| / sigma. Without a radius, descent alone; noise has length one."""
        n, start = self.n if n is None else n, self.init_scale if start is None else start
        sam_steps, rate = round(self.duration * d), self.learning_rate * start * n
        descent = GradientDescent(rate)
        scale = start * math.sqrt((batch or n) * self.width)
        sam = None if radius is None else SAM(rate, radius * scale)
        data = SignalNoise(n=n, d=float(d), snr=signal / math.sqrt(d), noise_scale=d**-0.5)
        return Experiment(
            data=data if batch is None else Minibatches(data=data, size=batch),
            network=TwoLayerCNN(width=self.width, init_scale=start),
            algorithm=descent if sam is None else Then(sam, sam_steps, descent),
            probes=[train_loss.on(at_end), test_error(count=10_000).on(at_end)],
            steps=until(train_loss, self.loss, at_most=sam_steps + 20_000, after=0 if sam is None else sam_steps),
        )

    def typical(self):
        return self.experiment(1000.0, 2.0, self.radius)

    def assumptions(self, experiment: Any) -> list[Assumption]:
        data: Any = experiment.data.data if isinstance(experiment.data, Minibatches) else experiment.data
        network = experiment.network
        first: Any = experiment.algorithm.first if isinstance(experiment.algorithm, Then) else experiment.algorithm
        per_step = first.learning_rate / (2 * data.n * network.width)
        return [
            Assumption("noise vectors are nearly orthogonal: n / d", data.n / data.d, "<< 1"),
            Assumption(
                "a step moves less than the start: 2 sigma_0 n m / eta", network.init_scale / per_step, ">= 1"
            ),
            Assumption("the start is small: sigma_0^2", network.init_scale**2, "<< 1"),
        ]

    def checks(self, lab):
        sizes, largest = lab.size.d, max(lab.size.d)
        thresholds = self._threshold(lab, d=sizes, start=self.small_start)
        name = "exponent of |mu|*/sigma in d, descent"
        yield scales_as(name, thresholds, "d", 0.25, rivals=(0.0, 0.5), symbols=SYMBOLS)
        thresholds = self._threshold(lab, d=largest, n=lab.size.n, start=self.small_start)
        name = "exponent of |mu|*/sigma in n, descent"
        yield scales_as(name, thresholds, "n", -0.25, rivals=(0.0, -0.5), symbols=("n", SYMBOLS[1]))
        yield self._does_not_grow(self._threshold(lab, d=sizes, radius=self.radius))
        yield self._switched_off(lab)
        sam, descent = (lab.run(self.experiment(largest, 2.0, radius)) for radius in (self.radius, None))
        gap = descent.clean_test_error - sam.clean_test_error
        yield at_least("error without SAM less error with it, at |mu| = 2 sigma", gap, LEVEL)
        few = sorted(sizes)[len(sizes) // 2]  # a step of a mini-batch costs more
        sam, descent = (
            lab.run(self.experiment(few, 2.0, radius, batch=self.batch)) for radius in (self.radius, None)
        )
        yield at_most("error after SAM with mini-batches, at |mu| = 2 sigma", sam.clean_test_error, LEVEL)
        gap = descent.clean_test_error - sam.clean_test_error
        yield at_least("error without SAM less error with it, mini-batches, at |mu| = 2 sigma", gap, LEVEL)

    def control(self, lab):
        """SAM that looks nowhere is descent, and takes as many steps; its threshold grows."""
        return self._does_not_grow(self._threshold(lab, d=lab.size.d[:2], radius=0.0))

    def _does_not_grow(self, thresholds):
        name = "exponent of |mu|*/sigma in d, SAM then descent"
        return scales_as(name, thresholds, "d", at_most=0.05, symbols=SYMBOLS)

    def _threshold(self, lab, **cells):
        """|mu| / sigma at which the error crosses the level, by cell and seed."""
        found = lab.boundary(
            self.experiment, "signal", "clean_test_error", LEVEL, between=lambda: BRACKET, tolerance=0.05, **cells
        )
        return found.signal.sel(level=LEVEL)

    def _switched_off(self, lab):
        one = self.experiment(max(lab.size.d), 2.0, self.radius)
        assert isinstance(one.algorithm, Then)
        sam = dataclasses.replace(one, algorithm=one.algorithm.first, probes=(deactivation.on(at_end),))
        after = {f"after {steps} steps": steps for steps in MOMENTS}
        runs = lab.run(lambda after: dataclasses.replace(sam, steps=after), after=after)
        return at_least("neurons active on their noise that SAM switches off", runs.deactivated, 0.95)
