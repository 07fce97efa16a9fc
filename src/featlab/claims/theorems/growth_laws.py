r"""How long signal and noise take to grow: blow-up times of ReLU^q networks, linear growth of ReLU networks.

While outputs are small the loss has slope 1/2 and a filter's product with the signal follows $\dot u =
c\,u^{q-1}$, $c = \eta q \|\mu\|^2 / 4m$, from $u_0 \sim \sigma_0 \|\mu\|$; that with a noise vector follows the
same law with $c = \eta q \|\xi\|^2 / 2nm$ from $\sigma_0 \|\xi\|$. For $q > 2$ the solution is infinite at $T =
1 / ((q-2) c u_0^{q-2})$, so the time to an output of order one scales as

$$T_\gamma \sim \sigma_0^{-(q-2)} \|\mu\|^{-q}, \qquad T_\rho \sim n\, \sigma_0^{-(q-2)} \|\xi\|^{-q}$$

(Cao, Chen, Belkin and Gu 2022, the first stage of their proof). For ReLU the solution is $u_0 + ct$: both
coefficients grow as t, at the rate c whatever the start (Kou, Chen, Chen and Gu 2023). Any smooth growth is
linear for a while, so the rate is judged and not the exponent in t: that of ReLU^q, $c u_0^{q-1}$, is far
smaller. The laws are stated up to constants; those of the times follow from the equation and are judged as well,
with $u_0$ the largest start.

Classes are balanced, so that a filter meets its class n/2 times, as c says. Runs take a fixed number of steps
and are about the beginning of training: no loss is asked of them, and one in which nothing has grown has no
time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from featlab.algorithms import GradientDescent
from featlab.claims import Assumption, Claim, Size, equals, identity, not_judged, scales_as
from featlab.claims.settings import growth
from featlab.claims.settings.references import CAO_2022
from featlab.core.validation import real, whole
from featlab.data import SignalNoise
from featlab.experiment import Experiment
from featlab.networks import TwoLayerCNN, relu, relu_power
from featlab.probes import above, at_end, first, noise_memorised, products, signal_learnt, train_loss

POWERS = (3, 4)
# So large that samples grow apart: one that has blown up overshoots when the step suits slower ones, and at
# d = 1e8 its share in another's product, rho / sqrt d, would already be of the order of that one's start.
D = 1e16
STRONG, WEAK = 2.0, 1e-3  # SNR at which the signal is learnt long before any noise, or long after
EARLY = 0.1  # what the law says of a ReLU coefficient at the last moment: outputs are then no larger
GROWN = (signal_learnt, noise_memorised(sample=0))
FINER = 4  # steps where the constant is judged, which one step of a hundred would move


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
        "laptop": Size(seeds=36, n=(16, 32, 64, 128), factors=(1.0, 0.5, 0.25, 0.125), steps=1_000),
        "full": Size(seeds=36, n=(16, 32, 64, 128, 256), factors=(1.0, 0.5, 0.25, 0.125, 0.0625), steps=4_000),
    }
    minutes = 3.0  # growth to q = 4 takes thousands of steps, four times as many where constants are judged
    control_changes = "activation ReLU^3 -> ReLU^2, judged as ReLU^3"

    clauses = {
        "T of the signal ~ sigma_0^-(q-2)": "T of the signal in sigma_0*",
        "T of the signal ~ |mu|^-q": ("T of the signal in sigma_0*", "|mu|^2 T depends on sigma_0 |mu| alone*"),
        "T of the noise ~ n": "T of the noise in n*",
        "T of the noise ~ |xi|^-q": "T of the noise in |xi|*",
        "T of the noise ~ sigma_0^-(q-2)": not_judged(
            "the start enters through sigma_0 |xi| alone, so the exponent in |xi| has this one in it"
        ),
        "T = 1 / ((q-2) c u_0^(q-2)), with the constants of the equation": "T of the * over the equation's*",
        "with ReLU, gamma and rho grow as t": ("gamma over its law c t*", "rho over its law c t*"),
    }
    exploratory = (
        "The width was doubled, and seeds were added, after one run of 24 had no filter that noise made grow."
    )

    width: int = whole(default=32, at_least=1)  # m; with 16, one sample in 80 has no filter that grows in time
    init_scale: float = real(default=0.01, above=0)  # the largest sigma_0
    level: float = real(default=1.0, above=0)  # the coefficient that counts as grown

    def experiment(
        self, n, snr, power, init_scale, steps, time, *, noise=1.0, watched=signal_learnt, starts=False
    ):
        """Descent with a constant step on noise of the given length, for two times the given time.

        The time only sets the step, so that all runs are equally fine.
        """
        moment = first(above(watched, self.level), name="grown")
        start = first(above(watched, -1.0), name="start")  # the first step, as no coefficient is below -1
        return Experiment(
            data=SignalNoise(n=n, d=D, snr=snr, noise_scale=noise / math.sqrt(D), balanced=True),
            network=TwoLayerCNN(
                width=self.width, activation=relu if power == 1 else relu_power(power), init_scale=init_scale
            ),
            algorithm=GradientDescent(time / steps),
            probes=[train_loss.on(moment), *(probe.on(at_end) for probe in GROWN), *[products.on(start)] * starts],
            steps=2 * steps,
        )

    def typical(self):
        time = growth.signal_time(self.width)(STRONG, 3, self.init_scale)
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
            yield self._one_start(lab, q, times, scales)
            times = self._noise_times(lab, n=lab.size.n, noise=1.0, power=q, init_scale=small)
            yield _law(f"T of the noise in n, q = {q}", times, "n", 1, "n")
            times = self._noise_times(lab, n=n, noise=lengths, power=q, init_scale=small)
            yield _law(f"T of the noise in |xi|, q = {q}", times, "noise", -q, r"\|\xi\|")
            yield from self._constants(lab, n, q, small)
        yield from self._linear(lab)

    def control(self, lab):
        """ReLU^2 grows exponentially: its time depends on the start by a logarithm."""
        scales = [self.init_scale * factor for factor in lab.size.factors]
        return self._signal_law(lab, 2, scales, judged_as=3)

    def _signal_law(self, lab, power, scales, judged_as):
        times = self._signal_times(lab, n=lab.size.n[0], snr=STRONG, power=power, init_scale=scales)
        name = f"T of the signal in sigma_0, q = {judged_as}"
        return _law(name, times, "init_scale", 2 - judged_as, r"\sigma_0")

    def _one_start(self, lab, power, times, scales):
        """Signals of several lengths are starts of several sizes, told otherwise: algebra, and no second law."""
        same = self._signal_times(lab, n=lab.size.n[0], snr=STRONG, power=power, init_scale=scales)
        residual = times.values[::-1] * (times.snr.values[::-1, None] / STRONG) ** 2 / same.values - 1
        return identity(f"|mu|^2 T depends on sigma_0 |mu| alone, q = {power}", residual, 0.01)

    def _constants(self, lab, n, q, small):
        """Times over those of the equation, which knows the largest start of each seed."""
        fine = {"n": n, "power": q, "init_scale": small, "steps": FINER * lab.size.steps, "starts": True}
        runs, rate = self._signal_runs(lab, snr=STRONG, **fine), growth.signal_rate(STRONG, q, self.width)
        found = growth.over_law(_times(runs, fine["steps"]), growth.signal_start(runs), rate, q)
        yield equals(f"T of the signal over the equation's, q = {q}", found, 1.0)
        runs, rate = self._noise_runs(lab, noise=1.0, **fine), growth.noise_rate(n, 1.0, q, self.width)
        found = growth.over_law(_times(runs, fine["steps"]), growth.noise_start(runs), rate, q)
        yield equals(f"T of the noise over the equation's, q = {q}", found, 1.0)

    def _signal_times(self, lab, **cells):
        """When the signal has grown, in steps times learning rate; noise has length one."""
        return _times(self._signal_runs(lab, **cells, steps=lab.size.steps), lab.size.steps)

    def _signal_runs(self, lab, **cells):
        return lab.run(self.experiment, **cells, time=growth.signal_time(self.width))

    def _noise_times(self, lab, **cells):
        """The same for a noise vector, beside a weak signal."""
        return _times(self._noise_runs(lab, **cells, steps=lab.size.steps), lab.size.steps)

    def _noise_runs(self, lab, **cells):
        time, watched = growth.noise_time(self.width), noise_memorised(sample=0)
        return lab.run(self.experiment, **cells, snr=WEAK, watched=watched, time=time)

    def _linear(self, lab):
        """Coefficients of a ReLU network over the line that they follow."""
        n = lab.size.n[0]
        for name, snr, rate, read in (
            ("gamma", STRONG, growth.signal_rate(STRONG, 1, self.width), "signal_learnt"),
            ("rho", WEAK, growth.noise_rate(n, 1.0, 1, self.width), "noise_memorised"),
        ):
            early = self._early(lab, snr, EARLY / rate)
            yield equals(f"{name} over its law c t, ReLU", early[read] / (rate * early.t), 1.0)

    def _early(self, lab, snr, latest):
        """A ReLU network at several times, all before the outputs leave 0."""
        return lab.run(
            lambda t: self.experiment(lab.size.n[0], snr, 1, self.init_scale / 10, lab.size.steps, t / 2),
            t=latest * np.array(lab.size.factors)[::-1],
        )


def _law(name, times, along, exponent, symbol):
    # The nearest laws: one power of the activation more or less.
    return scales_as(name, times, along, exponent, rivals=(exponent - 1, exponent + 1), symbols=(symbol, "T"))


def _times(runs, steps):
    return runs.grown * runs.time / steps
