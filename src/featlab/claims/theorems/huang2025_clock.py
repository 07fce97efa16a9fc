r"""The clock of label-noise descent is the square of the step: its gain comes from fluctuations, not from drift.

Huang and co-authors (2025) show that label-noise descent learns the signal while noise stays bounded, with a
growth of the signal as $\exp(c\,\eta\|\mu\|^2 t/m)$: a rate proportional to the step $\eta$. Measured, it is
proportional to $\eta^2$, once the noise has been memorised as far as the flips allow.

Why: write $g_i = -\epsilon_i \ell'(\epsilon_i y_i f_i)$. With squared ReLU a step multiplies a noise product by
$1 + \kappa g_i$, $\kappa = 2\eta\sigma^2 d/(nm)$, and a signal product by $1 + \frac12 \kappa\,
n\,\mathrm{SNR}^2\, \bar g$. The noise is stationary where $\mathbb E \log(1 + \kappa g_i) = 0$, that is $\mathbb
E g_i \approx \frac12 \kappa\, \mathbb E g_i^2$: the drift that is left for the signal is itself proportional to
the step. The rate of $\log\gamma$ is $\frac14 \kappa^2\, n\,\mathrm{SNR}^2\, \mathbb E g^2$ a step, with
$\mathbb E g^2 \approx p(1 - p)$. This is derived here, not quoted; its three exponents are judged. In the limit
of small steps descent follows the mean gradient of the flipped losses, which vanishes where every sample is fitted
to its odds, and the signal stops.

Before the noise is memorised the drift is of order one and the rate proportional to $\eta$: the control looks
there.
"""

from __future__ import annotations

import math

import numpy as np

from featlab.claims import Size, not_judged, scales_as
from featlab.claims.settings.label_noise_descent import LabelNoiseSetting
from featlab.probes import alignments, at_end

LATE = (80.0, 160.0)  # t kappa^2
EARLY = (2.0, 8.0)  # t kappa
FLIPS = (0.075, 0.15, 0.3)  # p; 1 / sqrt(nm), the theorem's least, is 0.07
P_ALONE = math.log(4) / math.log(0.3 * 0.7 / (0.075 * 0.925))  # a rate that is proportional to p, in p (1 - p)
STRENGTHS = (0.1, 0.2, 0.4)  # n SNR^2
RATE = r"d\log\gamma/dt"


class Clock(LabelNoiseSetting):
    """The claim of this file."""

    title = "label-noise descent learns the signal at a rate proportional to the square of the step"
    statement = (
        r"\frac{d \log \gamma}{dt} = \Theta(\kappa^2\, n\,\mathrm{SNR}^2\, p(1 - p)), "
        r"\qquad \kappa = 2\eta\sigma^2 d/(nm)"
    )
    refuted_if = (
        "the exponent of the rate differs from 2 in the step (a clock proportional to the step has 1), from 1 in "
        "n SNR^2, or from 1 in p(1 - p)"
    )
    sizes = {
        "tiny": Size(seeds=3, steps=(10.0, 20.0), d=500.0),
        "smoke": Size(seeds=6, steps=(2.0, 2.25, 2.5), d=1e6),
        "laptop": Size(seeds=24, steps=(0.375, 0.75, 1.5), d=1e6),
        "full": Size(seeds=64, steps=(0.1, 0.2, 0.4, 0.8), d=1e6),
    }
    minutes = 3.0  # hundreds of thousands of small steps
    control_changes = "the rate is measured before the noise is memorised"

    clauses = {
        "the rate of log gamma is proportional to the square of the step": "exponent of the signal's*",
        "it is proportional to n SNR^2": "exponent of the rate in n SNR^2",
        "it is proportional to p (1 - p)": "exponent of the rate in p (1 - p)",
        "the paper's rate is proportional to the step": not_judged(
            "it is the rival, exponent 1, of the check on the square"
        ),
    }

    # A rate between two fixed times asks nothing of the training loss, so `trained` is left as it is.

    def checks(self, lab):
        yield self._in_step(lab, LATE, 2)
        largest = max(lab.size.steps)  # the fewest steps
        rates = self._rates(lab, LATE, 2, factor=largest, strength=STRENGTHS)
        name = "exponent of the rate in n SNR^2"
        yield scales_as(name, rates, "strength", 1.0, rivals=(0.0, 0.5, 2.0), symbols=(r"n\,SNR^2", RATE))
        rates = self._rates(lab, LATE, 2, factor=largest, flip=FLIPS)
        rates = rates.assign_coords(flip=rates.flip * (1 - rates.flip)).rename(flip="variance")
        name = "exponent of the rate in p (1 - p)"
        yield scales_as(name, rates, "variance", 1.0, rivals=(0.0, P_ALONE, 2.0), symbols=("p(1-p)", RATE))

    def control(self, lab):
        return self._in_step(lab, EARLY, 1)

    def _in_step(self, lab, window, power):
        rates = self._rates(lab, window, power, factor=lab.size.steps)
        rates = rates.assign_coords(factor=self.kappa(rates.factor)).rename(factor="kappa")
        name = "exponent of the signal's growth rate in the step"
        return scales_as(name, rates, "kappa", 2.0, rivals=(1.0,), symbols=(r"\kappa", RATE))

    def _rates(self, lab, window, power, **cells):
        r"""Rates of the signal between two times, given as $t \kappa^{power}$, a step."""

        def signal(factor, steps, flip=self.flip, strength=self.strength, **_):
            return self.descent(steps, lab.size.d, factor, flip, [alignments.on(at_end)], strength)

        steps = lambda factor, time: round(time / self.kappa(factor) ** power)  # noqa: E731
        runs = lab.run(signal, time=window, steps=steps, **cells)
        rates = np.log(runs.signal_alignment).diff("time") / runs.steps.diff("time")
        return rates.isel(time=0, drop=True)
