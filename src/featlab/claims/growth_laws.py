r"""How long signal and noise take to grow: blow-up times of ReLU^q networks, linear growth of ReLU networks.

While outputs are small the loss has slope 1/2 and a filter's product with the signal follows $\dot u =
c\,u^{q-1}$, $c = \eta q \|\mu\|^2 / 4m$, from $u_0 \sim \sigma_0 \|\mu\|$; that with a noise vector follows the
same law with $c = \eta q \|\xi\|^2 / 2nm$ from $\sigma_0 \|\xi\|$. For $q > 2$ the solution is infinite at $T =
1 / ((q-2) c u_0^{q-2})$, so the time to an output of order one scales as

$$T_\gamma \sim \sigma_0^{-(q-2)} \|\mu\|^{-q}, \qquad T_\rho \sim n\, \sigma_0^{-(q-2)} \|\xi\|^{-q}$$

(Cao, Chen, Belkin and Gu 2022, the first stage of their proof), and for ReLU both coefficients grow as t
(Kou, Chen, Chen and Gu 2023).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from featlab.algorithms import GradientDescent
from featlab.claims._claim import Assumption, Claim, Size
from featlab.claims._judge import scales_as
from featlab.claims.cao2022_phase import Phase as CaoPhase
from featlab.data import SignalNoise
from featlab.experiment import Experiment
from featlab.fields import real, whole
from featlab.networks import TwoLayerCNN, relu, relu_power
from featlab.probes import above, at_end, first, noise_memorised, signal_learnt, train_loss
from featlab.theory.signal_noise import blow_up_time, early_noise_rate, early_signal_rate

POWERS = (3, 4)
# So large that samples grow apart: one that has blown up overshoots when the step suits slower ones, and at
# d = 1e8 its share in another's product, rho / sqrt d, would already be of the order of that one's start.
D = 1e16
STRONG, WEAK = 2.0, 1e-3  # SNR at which the signal is learnt long before any noise, or long after


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
    reference = CaoPhase.reference
    sizes = {
        "tiny": Size(seeds=3, n=(8, 16), factors=(1.0, 0.5), steps=(200,)),
        "smoke": Size(seeds=4, n=(16, 32, 64), factors=(1.0, 0.5, 0.25), steps=(300,)),
        "laptop": Size(seeds=12, n=(16, 32, 64, 128), factors=(1.0, 0.5, 0.25, 0.125), steps=(1_000,)),
        "full": Size(seeds=32, n=(16, 32, 64, 128, 256), factors=(1.0, 0.5, 0.25, 0.125, 0.0625), steps=(4_000,)),
    }
    number_of_checks = 10
    minutes = 1.0
    control_changes = "activation ReLU^3 -> ReLU^2, judged as ReLU^3"

    width: int = whole(default=16, at_least=1)  # m
    init_scale: float = real(default=0.01, above=0)  # the largest sigma_0
    level: float = real(default=1.0, above=0)  # the coefficient that counts as grown

    def experiment(self, n, snr, power, init_scale, steps, *, noise=1.0, time=None, watched=signal_learnt):
        """Descent with a constant step on noise of the given length, for two times the predicted time.

        The predicted time only sets the step, so that all runs are equally fine; what is measured is time, steps
        times learning rate.
        """
        time = self._predicted(n, snr * noise, noise, power, init_scale, watched) if time is None else time
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
        return self.experiment(64, STRONG, 3, self.init_scale, 500)

    def assumptions(self, experiment: Any):
        data, network = experiment.data, experiment.network
        power = getattr(network.activation, "power", 1)
        return [
            Assumption("n^2 / d (noise of different samples is nearly orthogonal)", data.n**2 / data.d, "<< 1"),
            Assumption(
                "output when grown (the loss still has slope 1/2)", self.level**power / network.width, "<< 1"
            ),
            Assumption("1 / steps (small steps)", 2 / experiment.last_step, "<< 1"),
        ]

    def checks(self, lab):
        scales = [self.init_scale * factor for factor in lab.size.factors]
        lengths = [1 / factor for factor in lab.size.factors]
        n, small = lab.size.n[0], scales[-1]
        watched = noise_memorised(sample=0)
        for q in POWERS:
            times = self._times(lab, [(n, STRONG, q, scale) for scale in scales])
            yield self._law(f"T of the signal in sigma_0, q = {q}", scales, times, 2 - q, r"\sigma_0")
            signals = [STRONG * length for length in lengths]
            times = self._times(lab, [(n, signal, q, small) for signal in signals])
            yield self._law(f"T of the signal in |mu|, q = {q}", signals, times, -q, r"\|\mu\|")
            times = self._times(lab, [(size, WEAK, q, small) for size in lab.size.n], watched=watched)
            yield self._law(f"T of the noise in n, q = {q}", lab.size.n, times, 1, "n")
            cells = [(n, WEAK, q, small, length) for length in lengths]
            times = self._times(lab, cells, watched=watched)
            yield self._law(f"T of the noise in |xi|, q = {q}", lengths, times, -q, r"\|\xi\|")
        yield self._linear(lab, n, STRONG, "signal_learnt", 4 * self.width / STRONG**2)
        yield self._linear(lab, n, WEAK, "noise_memorised", 2 * n * self.width)

    def control(self, lab):
        """ReLU^2 grows exponentially: its time depends on the start by a logarithm."""
        scales = [self.init_scale * factor for factor in lab.size.factors]
        times = self._times(lab, [(lab.size.n[0], STRONG, 2, scale) for scale in scales])
        return self._law("T of the signal in sigma_0, q = 3", scales, times, -1, r"\sigma_0")

    def _times(self, lab, cells, watched=signal_learnt):
        """When the coefficient has grown, (cell, seed), NaN where it never did."""
        (steps,) = lab.size.steps
        found = []
        for n, snr, q, scale, *length in cells:
            noise = length[0] if length else 1.0
            made = self.experiment(n, snr, q, scale, steps, noise=noise, watched=watched)
            assert isinstance(made.algorithm, GradientDescent)
            grown = lab.endings(made)["grown"].astype(float)
            found.append(np.where(grown < 0, np.nan, grown) * made.algorithm.learning_rate)
        return np.array(found)

    def _law(self, name, x, times, exponent, symbol):
        # The nearest laws: one power of the activation more or less.
        return scales_as(name, x, times, exponent, rivals=(exponent - 1, exponent + 1), symbols=(symbol, "T"))

    def _linear(self, lab, n, snr, variable, unit):
        """A ReLU coefficient at several times, all before the outputs leave 0."""
        (steps,) = lab.size.steps
        times = 0.1 * unit * np.array(lab.size.factors)[::-1]
        read = []
        for time in times:
            read.append(lab.endings(self.experiment(n, snr, 1, self.init_scale / 100, steps, time=time))[variable])
        symbol = r"\gamma" if variable == "signal_learnt" else r"\rho"
        name = f"growth of {symbol[1:]} in t, ReLU"
        return scales_as(name, 2 * times, np.array(read), 1.0, rivals=(0.5, 2.0), symbols=("t", symbol))

    def _predicted(self, n, signal, noise, power, init_scale, watched):
        """The law's time for a start of exactly sigma_0 |x|; for ReLU^2, which has none, that of ReLU^3."""
        power = max(power, 3)
        if watched is signal_learnt:
            rate = early_signal_rate(
                learning_rate=1.0, signal_norm=signal, width_scale=1 / self.width, power=power
            )
            return float(blow_up_time(init_scale * signal, rate, power))
        rate = early_noise_rate(learning_rate=1.0, noise_norm=noise, n=n, width_scale=1 / self.width, power=power)
        return float(blow_up_time(init_scale * noise, rate, power))
