r"""How long signal and noise take to grow: blow-up times of ReLU^q networks, linear growth of ReLU networks.

While outputs are small the loss has slope 1/2 and a filter's product with the signal follows $\dot u =
c\,u^{q-1}$, $c = \eta q \|\mu\|^2 / 4m$, from $u_0 \sim \sigma_0 \|\mu\|$; that with a noise vector follows the
same law with $c = \eta q \|\xi\|^2 / 2nm$ from $\sigma_0 \|\xi\|$. For $q > 2$ the solution is infinite at $T =
1 / ((q-2) c u_0^{q-2})$, so the time to an output of order one scales as

$$T_\gamma \sim \sigma_0^{-(q-2)} \|\mu\|^{-q}, \qquad T_\rho \sim n\, \sigma_0^{-(q-2)} \|\xi\|^{-q}$$

(Cao, Chen, Belkin and Gu 2022, the first stage of their proof), and for ReLU both coefficients grow as t
(Kou, Chen, Chen and Gu 2023). Runs take a fixed number of steps and are about the beginning of training: no loss
is asked of them, and one in which nothing has grown has no time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from featlab.algorithms import GradientDescent
from featlab.claims import Assumption, Claim, Size, not_judged, scales_as
from featlab.claims.settings.references import CAO_2022
from featlab.core.validation import real, whole
from featlab.data import SignalNoise
from featlab.experiment import Experiment
from featlab.networks import TwoLayerCNN, relu, relu_power
from featlab.probes import above, at_end, first, noise_memorised, signal_learnt, train_loss
from featlab.theory.signal_noise import blow_up_time, early_noise_rate, early_signal_rate

POWERS = (3, 4)
# So large that samples grow apart: one that has blown up overshoots when the step suits slower ones, and at
# d = 1e8 its share in another's product, rho / sqrt d, would already be of the order of that one's start.
D = 1e16
STRONG, WEAK = 2.0, 1e-3  # SNR at which the signal is learnt long before any noise, or long after
EARLY = 0.1  # of the time at which a ReLU coefficient is of order one


class Growth(Claim):
    """The claim of this file."""

    title = (
        "signal and noise need times sigma_0^-(q-2) |mu|^-q and n sigma_0^-(q-2) |xi|^-q; with ReLU they grow as t"
    )
    statement = (
        r"T_\gamma \sim \sigma_0^{-(q-2)}\|\mu\|^{-q}, \quad "
        r"T_\rho \sim n\,\sigma_0^{-(q-2)}\|\xi\|^{-q} \ (q > 2);"
        r"\qquad \gamma, \rho \sim t \ (q = 1)"
    )
    refuted_if = "an exponent differs from the law's by more than the margin without drifting"
    reference = CAO_2022
    sizes = {
        "tiny": Size(seeds=3, n=(8, 16), factors=(1.0, 0.5), steps=200),
        "smoke": Size(seeds=4, n=(16, 32, 64), factors=(1.0, 0.5, 0.25), steps=300),
        "laptop": Size(seeds=24, n=(16, 32, 64, 128), factors=(1.0, 0.5, 0.25, 0.125), steps=1_000),
        "full": Size(seeds=32, n=(16, 32, 64, 128, 256), factors=(1.0, 0.5, 0.25, 0.125, 0.0625), steps=4_000),
    }
    minutes = 1.0
    control_changes = "activation ReLU^3 -> ReLU^2, judged as ReLU^3"

    clauses = {
        "T of the signal ~ sigma_0^-(q-2)": "T of the signal in sigma_0*",
        "T of the signal ~ |mu|^-q": "T of the signal in |mu|*",
        "T of the noise ~ n": "T of the noise in n*",
        "T of the noise ~ |xi|^-q": "T of the noise in |xi|*",
        "T of the noise ~ sigma_0^-(q-2)": not_judged(
            "the start enters through sigma_0 |xi| alone, so the exponent in |xi| has this one in it"
        ),
        "with ReLU, gamma and rho grow as t": ("growth of gamma in t*", "growth of rho in t*"),
        "the constants of the times": not_judged("the laws are stated up to constants and logarithms"),
    }

    width: int = whole(default=16, at_least=1)  # m
    init_scale: float = real(default=0.01, above=0)  # the largest sigma_0
    level: float = real(default=1.0, above=0)  # the coefficient that counts as grown

    def experiment(self, n, snr, power, init_scale, steps, time, *, noise=1.0, watched=signal_learnt):
        """Descent with a constant step on noise of the given length, for two times the given time.

        The time only sets the step, so that all runs are equally fine.
        """
        moment = first(above(watched, self.level), name="grown")
        return Experiment(
            data=SignalNoise(n=n, d=D, snr=snr, noise_scale=noise / math.sqrt(D)),
            network=TwoLayerCNN(
                width=self.width, activation=relu if power == 1 else relu_power(power), init_scale=init_scale
            ),
            algorithm=GradientDescent(time / steps),
            probes=[train_loss.on(moment), signal_learnt.on(at_end), noise_memorised(sample=0).on(at_end)],
            steps=2 * steps,
        )

    def typical(self):
        time = self._signal_time()(STRONG, 3, self.init_scale)
        return self.experiment(64, STRONG, 3, self.init_scale, 500, time)

    def assumptions(self, experiment: Any):
        data, network = experiment.data, experiment.network
        output = self.level ** getattr(network.activation, "power", 1) / network.width
        return [
            Assumption("n^2 / d (noise of different samples is nearly orthogonal)", data.n**2 / data.d, "<< 1"),
            Assumption("output when grown (the loss still has slope 1/2)", output, "<< 1"),
            Assumption("1 / steps (small steps)", 2 / experiment.last_step, "<< 1"),
        ]

    def checks(self, lab):
        scales = [self.init_scale * factor for factor in lab.size.factors]
        lengths = [1 / factor for factor in lab.size.factors]
        n, small = lab.size.n[0], scales[-1]
        for q in POWERS:
            yield self._signal_law(lab, q, scales, judged_as=q)
            signals = [STRONG * length for length in lengths]
            times = self._signal_times(lab, n=n, snr=signals, power=q, init_scale=small)
            yield _law(f"T of the signal in |mu|, q = {q}", times, "snr", -q, r"\|\mu\|")
            times = self._noise_times(lab, n=lab.size.n, noise=1.0, power=q, init_scale=small)
            yield _law(f"T of the noise in n, q = {q}", times, "n", 1, "n")
            times = self._noise_times(lab, n=n, noise=lengths, power=q, init_scale=small)
            yield _law(f"T of the noise in |xi|, q = {q}", times, "noise", -q, r"\|\xi\|")
        early = self._early(lab, STRONG, 4 * self.width / STRONG**2)
        yield _linear("growth of gamma in t, ReLU", early.signal_learnt, r"\gamma")
        early = self._early(lab, WEAK, 2 * n * self.width)
        yield _linear("growth of rho in t, ReLU", early.noise_memorised, r"\rho")

    def control(self, lab):
        """ReLU^2 grows exponentially: its time depends on the start by a logarithm."""
        scales = [self.init_scale * factor for factor in lab.size.factors]
        return self._signal_law(lab, 2, scales, judged_as=3)

    def _signal_law(self, lab, power, scales, judged_as):
        times = self._signal_times(lab, n=lab.size.n[0], snr=STRONG, power=power, init_scale=scales)
        name = f"T of the signal in sigma_0, q = {judged_as}"
        return _law(name, times, "init_scale", 2 - judged_as, r"\sigma_0")

    def _signal_times(self, lab, **cells):
        """When the signal has grown, in steps times learning rate; noise has length one."""
        runs = lab.run(self.experiment, **cells, steps=lab.size.steps, time=self._signal_time())
        return runs.grown * runs.time / lab.size.steps

    def _noise_times(self, lab, **cells):
        """The same for a noise vector, beside a weak signal."""
        cells |= {"snr": WEAK, "watched": noise_memorised(sample=0), "time": self._noise_time()}
        runs = lab.run(self.experiment, **cells, steps=lab.size.steps)
        return runs.grown * runs.time / lab.size.steps

    def _early(self, lab, snr, unit):
        """A ReLU network at several times, all before the outputs leave 0."""
        return lab.run(
            lambda t: self.experiment(lab.size.n[0], snr, 1, self.init_scale / 100, lab.size.steps, t / 2),
            t=2 * EARLY * unit * np.array(lab.size.factors)[::-1],
        )

    def _signal_time(self):
        """The law's time for a start of exactly sigma_0 |mu|; for ReLU^2, which has none, that of ReLU^3."""

        def time(snr, power, init_scale):
            q = max(power, 3)
            rate = early_signal_rate(learning_rate=1.0, signal_norm=snr, width_scale=1 / self.width, power=q)
            return float(blow_up_time(init_scale * snr, rate, q))

        return time

    def _noise_time(self):
        """The same for a start of exactly sigma_0 |xi|."""

        def time(n, noise, power, init_scale):
            scale = 1 / self.width
            rate = early_noise_rate(learning_rate=1.0, noise_norm=noise, n=n, width_scale=scale, power=power)
            return float(blow_up_time(init_scale * noise, rate, power))

        return time


def _law(name, times, along, exponent, symbol):
    # The nearest laws: one power of the activation more or less.
    return scales_as(name, times, along, exponent, rivals=(exponent - 1, exponent + 1), symbols=(symbol, "T"))


def _linear(name, coefficient, symbol):
    return scales_as(name, coefficient, "t", 1.0, rivals=(0.5, 2.0), symbols=("t", symbol))
