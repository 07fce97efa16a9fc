r"""The clock of label-noise descent is the square of the step: its gain comes from fluctuations, not from drift.

Huang and co-authors (2025) show that label-noise descent learns the signal while noise stays bounded, with a
growth of the signal as $\exp(c\,\eta\|\mu\|^2 t/m)$: a rate proportional to the step $\eta$. Measured, it is
proportional to $\eta^2$, once the noise has been memorised as far as the flips allow.

Why: write $g_i = -\epsilon_i \ell'(\epsilon_i y_i f_i)$. With squared ReLU a step multiplies a noise product by
$1 + \kappa g_i$, $\kappa = 2\eta\sigma^2 d/(nm)$, and a signal product by $1 + \frac12 \kappa\,
n\,\mathrm{SNR}^2\, \bar g$. The noise is stationary where $\mathbb E \log(1 + \kappa g_i) = 0$, that is $\mathbb
E g_i \approx \frac12 \kappa\, \mathbb E g_i^2$: the drift that is left for the signal is itself proportional to
the step. The rate of $\log\gamma$ is $\frac14 \kappa^2\, n\,\mathrm{SNR}^2\, \mathbb E g^2$ a step, with
$\mathbb E g^2 \approx p(1 - p)$. In the limit of small steps descent follows the mean gradient of the flipped
losses, which vanishes where every sample is fitted to its odds, and the signal stops.

Before the noise is memorised the drift is of order one and the rate proportional to $\eta$: the control looks
there.
"""

from __future__ import annotations

import numpy as np

from featlab.claims import Size, not_judged, scales_as
from featlab.claims.settings.label_noise_descent import LabelNoiseSetting
from featlab.probes import alignments, at_end

LATE = (80.0, 160.0)  # t kappa^2
EARLY = (2.0, 8.0)  # t kappa


class Clock(LabelNoiseSetting):
    """The claim of this file."""

    title = "label-noise descent learns the signal at a rate proportional to the square of the step"
    statement = (
        r"\frac{d \log \gamma}{dt} = \Theta(\kappa^2\, n\,\mathrm{SNR}^2\, p), "
        r"\qquad \kappa = 2\eta\sigma^2 d/(nm)"
    )
    refuted_if = (
        "the exponent of the rate in the step differs from 2; a clock proportional to the step has exponent 1"
    )
    sizes = {
        "tiny": Size(seeds=3, steps=(10.0, 20.0), d=500.0),
        "smoke": Size(seeds=6, steps=(2.0, 2.25, 2.5), d=1e6),
        "laptop": Size(seeds=24, steps=(0.375, 0.75, 1.5), d=2000.0),
        "full": Size(seeds=64, steps=(0.1, 0.2, 0.4, 0.8), d=20_000.0),
    }
    minutes = 3.0  # hundreds of thousands of small steps
    control_changes = "the rate is measured before the noise is memorised"

    clauses = {
        "the rate of log gamma is proportional to the square of the step": "exponent of the signal's growth rate*",
        "it is proportional to n SNR^2 and to p": not_judged("both are held fixed; only the step is varied"),
        "the paper's rate is proportional to the step": not_judged(
            "it is the rival, exponent 1, of the check on the square"
        ),
    }

    # A rate between two fixed times asks nothing of the training loss, so `trained` is left as it is.

    def checks(self, lab):
        yield self._law(lab, LATE, 2)

    def control(self, lab):
        return self._law(lab, EARLY, 1)

    def _law(self, lab, window, power):
        r"""Rates of the signal between two times, given as $t \kappa^{power}$, for each step and seed."""

        def signal(factor, steps, **_):
            return self.descent(steps, lab.size.d, factor, self.flip, probes=[alignments.on(at_end)])

        runs = lab.run(
            signal,
            factor=lab.size.steps,
            time=window,
            steps=lambda factor, time: round(time / self.kappa(factor) ** power),
        )
        rates = np.log(runs.signal_alignment).diff("time") / runs.steps.diff("time")
        rates = rates.isel(time=0, drop=True)
        return scales_as(
            "exponent of the signal's growth rate in the step",
            rates.assign_coords(factor=self.kappa(rates.factor)).rename(factor="kappa"),
            "kappa",
            2.0,
            rivals=(1.0,),
            symbols=(r"\kappa", r"d\log\gamma/dt"),
        )
