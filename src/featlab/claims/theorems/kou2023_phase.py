r"""ReLU networks turn from harmful to benign overfitting at n |mu|^4 = const sigma^4 d.

Kou, Chen, Chen and Gu (2023), Theorem 4.2 (Conditions 4.1). With a constant fraction p of labels flipped, ReLU
networks are trained to a small loss, flips included. If $n\|\mu\|^4 \ge C_1 \sigma^4 d$ the test error is at most
$p + \exp(-n\|\mu\|^4 / (C_2 \sigma^4 d))$, if $n\|\mu\|^4 \le C_3 \sigma^4 d$ it is at least $p + 0.1$. So the
signal at which the clean error crosses a level scales as $n^{-1/4}$ and $d^{1/4}$; and since the two regimes are
constants apart, the ratio of the thresholds of two levels does not grow with n.
"""

from __future__ import annotations

import functools
import math

from featlab.claims import Claim, Size, along_the_way, at_least, at_most, not_judged, scales_as, to
from featlab.claims.settings import kou
from featlab.claims.settings.kou import KOU, LEVELS, signal_at
from featlab.core.validation import probability, real, whole
from featlab.networks import leaky_relu, relu, relu_power

BENIGN, HARMFUL = 16.0, 1 / 64  # X = n |mu|^4 / (sigma^4 d), far from the constants on either side
TURN = 0.33  # X at error 1/4, measured, for the picture: the theorem says that there is a constant, not which
BRACKET = (1 / 64, 64.0)  # X between which the thresholds are searched


class Phase(Claim):
    """The claim of this file."""

    title = "ReLU networks turn from harmful to benign overfitting at n |mu|^4 = const sigma^4 d"
    statement = (
        r"n\|\mu\|^4 \ge C_1\sigma^4 d \Rightarrow L_D^{0-1} \le p + \exp\bigl(-n\|\mu\|^4/(C_2\sigma^4 d)\bigr);"
        r"\qquad n\|\mu\|^4 \le C_3\sigma^4 d \Rightarrow L_D^{0-1} \ge p + 0.1"
    )
    refuted_if = "the exponent of |mu|* in n differs from -1/4, or in d from 1/4, by more than the margin"
    reference = KOU
    sizes = {
        "tiny": Size(seeds=3, n=(8, 16), d=(1e4, 1e5), large_d=1e6, small_n=8),
        "smoke": Size(seeds=4, n=(32, 45, 64), d=(1e5, 1e6, 1e7), large_d=1e8, small_n=32),
        "laptop": Size(seeds=24, n=(128, 256, 512, 1024), d=(1e6, 1e7, 1e8, 1e9), large_d=1e9, small_n=64),
        "full": Size(seeds=32, n=(256, 512, 1024, 2048), d=(1e6, 1e7, 1e8, 1e9), large_d=1e10, small_n=128),
    }
    minutes = 3.0  # a step at n = 1024 multiplies with a Gram matrix of a million numbers
    control_changes = "activation ReLU -> ReLU^2"

    clauses = {
        "the training loss becomes small, flips included": not_judged(
            "training stops there; a run that does not get there has no value, and is counted"
        ),
        "benign side: error at most p + exp(-X / C_2)": "benign side: observed error",
        "harmful side: error at least p + 0.1": "harmful side: observed error",
        "the switch is at n |mu|^4 = const sigma^4 d": ("exponent of |mu|* in n*", "exponent of |mu|* in d*"),
        "C_1 and C_3 are constants: the two sides stay as near to each other": (
            "exponent in n of the ratio of two thresholds"
        ),
        "the switch is there for a constant share p of flipped labels": "exponent of |mu|* in *",
        "the values of C_1, C_2 and C_3": not_judged("the theorem leaves them open"),
    }
    c_2 = 4.0  # of the benign bound, p + exp(-X / C_2)
    perturb = {
        "width": 2,
        "learning_rate": 0.5,
        "init_scale": 0.5,
        "leak": to(0.1),
        "flip": to(0.0),
    }

    width: int = whole(default=16, at_least=1)  # m; below 16, samples without an active filter are common
    learning_rate: float = real(default=8.0, above=0)  # eta, in units of n / (sigma^2 d)
    init_scale: float = real(default=1e-3, above=0)  # sigma_0, in units of sqrt(n) / (sigma d)
    loss: float = real(default=0.01, above=0)  # epsilon
    flip: float = probability(default=0.1)  # p
    leak: float = real(default=0.0, at_least=0)  # slope of the activation below 0

    def experiment(self, n, d, signal_norm, activation=None):
        """What is trained."""
        return kou.experiment(
            n,
            d,
            signal_norm,
            width=self.width,
            learning_rate=self.learning_rate,
            init_scale=self.init_scale,
            loss=self.loss,
            flip=self.flip,
            activation=activation or (leaky_relu(self.leak) if self.leak else relu),
        )

    def typical(self):
        return self.experiment(128, 1e9, signal_at(1.0, 128, 1e9))

    def scene(self):
        return along_the_way(self.experiment(64, 1e6, round(signal_at(TURN, 64, 1e6), 1)))

    def picture(self):
        return kou.picture(TURN)

    def assumptions(self, experiment):
        return kou.assumptions(experiment)

    def checks(self, lab):
        in_n = kou.thresholds(lab, self.experiment, BRACKET, n=lab.size.n, d=lab.size.large_d)
        in_d = kou.thresholds(lab, self.experiment, BRACKET, n=lab.size.small_n, d=lab.size.d)
        yield from kou.exponents(in_n, "n")
        yield from kou.exponents(in_d, "d")
        easy, hard = (in_n.signal_norm.sel(level=level, drop=True) for level in LEVELS)
        yield scales_as(
            "exponent in n of the ratio of two thresholds",
            hard / easy,
            "n",
            0.0,
            symbols=("n", r"\|\mu\|^*_{0.1} / \|\mu\|^*_{0.25}"),
        )
        yield from self._sides(lab)

    def control(self, lab):
        """ReLU^2, which is also trained to the same loss, switches at n SNR^2 = const."""
        found = lab.boundary(
            functools.partial(self.experiment, activation=relu_power(2)),
            "signal_norm",
            "clean_test_error",
            LEVELS[0],
            n=lab.size.n,
            d=lab.size.large_d,
            between=lambda n, d: (math.sqrt(d / 4 / n), math.sqrt(16 * d / n)),  # n SNR^2 from 1/4 to 16
            tolerance=kou.TOLERANCE,
        )
        (check,) = kou.exponents(found, "n")
        return check

    def _sides(self, lab):
        """The theorem's own statements, on observed labels, at the smaller sizes in n."""
        harmful, benign = self._observed_error(lab, HARMFUL), self._observed_error(lab, BENIGN)
        yield at_least("harmful side: observed error", harmful, self.flip + 0.1)
        yield at_most("benign side: observed error", benign, self.flip + math.exp(-BENIGN / self.c_2))

    def _observed_error(self, lab, strength):
        runs = lab.run(
            self.experiment,
            n=lab.size.n[:-1],
            d=lab.size.large_d,
            signal_norm=lambda n, d: signal_at(strength, n, d),
        )
        return runs.test_error
