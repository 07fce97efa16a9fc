r"""Fresh label noise in every step keeps descent from memorising, and the signal is learnt all the same.

Huang and co-authors (2025). Networks with squared ReLU on data of low signal-to-noise ratio, $n\,\mathrm{SNR}^2
< 1$. Plain descent drives the training loss to 0, memorises the noise, and errs on at least 24 % of tests. With
labels flipped anew with probability p in every step, the training loss stays of order one, the noise
coefficients stay bounded, the signal grows exponentially, and the test error becomes small.

Where label noise fits each sample to its odds, the output on it is $\log((1 - p)/p)$, and $\rho^2/m$ at most about
that. Plain descent has no such bound: $\rho^2/m$ grows as $\log t$. Twice the log odds, which leaves as much again
for fluctuations, tells the two apart. These constants are derived here; the paper has orders of magnitude.

How long learning takes is the subject of `huang2025_clock`: of order $\kappa^{-2}$ steps, $\kappa = 2\eta\sigma^2
d/(nm)$ being the relative change of a noise product in a step. Here $T = 800/\kappa^2$, and the step is as small
as the theorem asks, $\eta = O(\log d / (\sigma^2 d))$. Descent with the same step for the same time is compared.
"""

from __future__ import annotations

import math

import numpy as np

from featlab.claims import Size, at_least, at_most, equals, not_judged, ratio_of_means
from featlab.claims.settings.label_noise_descent import DURATION, LabelNoiseSetting

WINDOW = (80.0, 160.0, 240.0, 320.0)  # t kappa^2, while the signal is small
RHO = "largest rho^2 / m of the whole run over twice log((1 - p) / p)"


class LabelNoiseLearns(LabelNoiseSetting):
    """The claim of this file."""

    title = "label-noise descent learns a weak signal that plain descent drowns in memorised noise"
    statement = (
        r"\text{GD: } L_S \le \epsilon,\ L_D^{0-1} \ge 0.24; \qquad "
        r"\text{label noise: } L_S = \Theta(1),\ \rho = O(1),\ \gamma \sim e^{ct},\ L_D^{0-1} \to 0"
    )
    refuted_if = "label noise leaves the error large, or lets noise coefficients grow, or plain descent errs less"
    sizes = {
        "tiny": Size(seeds=3, steps=10.0, d=500.0),  # kappa is tenfold
        "smoke": Size(seeds=4, steps=2.5, d=1e6),
        "laptop": Size(seeds=24, steps=1.0, d=1e6),
        "full": Size(seeds=64, steps=0.5, d=1e6),
    }
    minutes = 3.0  # hundreds of thousands of small steps
    control_changes = "no label is flipped"

    clauses = {
        "plain descent: L_S <= epsilon": "training loss of plain descent",
        "plain descent: the signal stops": "plain descent: gamma at T over that at T / 2",
        "plain descent: the noise dominates and grows": (
            "plain descent: gamma over rho at T",
            "plain descent: what rho^2 / m gains*",
        ),
        "plain descent: the test error is at least 0.24": "test error of plain descent",
        "label noise: L_S stays of order one": "training loss with label noise",
        "label noise: rho stays bounded": "largest rho^2 / m*",
        "label noise: gamma grows exponentially": "gain of log gamma*",
        "label noise: the test error becomes small": "test error with label noise",
        "the number of steps that learning takes": not_judged(
            "T = 800 / kappa^2 is given here; the claim huang2025_clock judges the clock"
        ),
    }

    def trained(self, runs):
        """The loss has fallen below log 2, that of a network whose output is 0; with label noise that is all."""
        return runs.train_loss < math.log(2) if "train_loss" in runs else None

    def checks(self, lab):
        plain, noisy = self._run(lab, [DURATION / 2, DURATION], flip=0.0), self._run(lab, DURATION)
        half, end = (plain.isel(time=place, drop=True) for place in (0, 1))
        yield at_least("test error of plain descent", end.clean_test_error, 0.24)
        yield at_most("training loss of plain descent", end.train_loss, 0.01)
        yield at_most("plain descent: gamma at T over that at T / 2", end.signal_learnt / half.signal_learnt, 1.05)
        rho = "noise_memorised_highest"  # without flips it only rises
        yield at_most("plain descent: gamma over rho at T", end.signal_learnt / end[rho], 0.1)
        # The loss falls as 1 / t, so outputs grow as log t: rho^2 / m, where one filter has all of a sample. Half
        # of that is asked.
        gained = (end[rho] ** 2 - half[rho] ** 2) / self.width / math.log(2)
        yield at_least("plain descent: what rho^2 / m gains from T / 2 to T, over log 2", gained, 0.5)

        yield self._learns(noisy)
        # Fitted to labels that are wrong with probability p, the loss on the clean ones is -log(1 - p); half of it
        # counts as "of order one".
        yield at_least("training loss with label noise", noisy.train_loss, -math.log1p(-self.flip) / 2)
        yield at_most(RHO, noisy[rho] ** 2 / self.width / (2 * math.log(1 / self.flip - 1)), 1)
        # Exponential growth gains as much in each part of the window; a power law 0.58 and 0.42 of the first.
        gain = np.log(self._run(lab, list(WINDOW)).signal_learnt).diff("time")
        first = gain.isel(time=0, drop=True)
        later = {f"part {k + 1}": ratio_of_means(gain.isel(time=k, drop=True), first) for k in (1, 2)}
        yield equals("gain of log gamma, later parts of the window over the first", later, 1.0, margin=0.1)

    def control(self, lab):
        return self._learns(self._run(lab, DURATION, flip=0.0))

    def _run(self, lab, time, flip=None):
        return lab.run(self.experiment, time=time, d=lab.size.d, factor=lab.size.steps, flip=flip)

    def _learns(self, runs):
        return at_most("test error with label noise", runs.clean_test_error, 0.05)
