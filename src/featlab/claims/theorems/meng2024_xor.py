r"""On exclusive-or data, which no linear classifier can read, ReLU networks have the threshold of linear tasks.

Meng, Zou and Cao (2024). The class is the axis on which the signal lies, its sign a coin. ReLU networks are
trained to a small loss, a share p of the labels being flipped; the test error is near p when $X = n\|\mu\|^4 /
(\sigma^4 d)$ is large and at least $p + 0.1$ when it is small, as on a linear task, though with a larger
constant. Linear classifiers through the origin err exactly half the time: $x$ and $-x$ are equally likely in
each class. With a bias, one of the four clusters is always lost, so they err a quarter of the time at best.

Of "$p + \exp(-\Omega(X))$" two things are judged: the bound with a constant that holds up to X = 256, and that
the error falls faster than a power of X. That it falls exponentially was not seen. At X = 4, 16, 64, 256 the
clean error is .27, .17, .061, .0071 at p = 0.1, and .24, .13, .031, .0012 without flips, there at n = 128 and
512, d = $10^9$ and $10^{12}$, 16 and 64 filters alike (8 seeds each). Its -log grows as a power of X that rises
from 0.23 to 0.41 (0.26 to 0.48 without flips), and its slope in X falls threefold. Where the power is 1, if it
gets there, errors are too rare to be counted.
"""

from __future__ import annotations

import numpy as np

from featlab.claims import Claim, Size, along_the_way, at_least, at_most, identity, not_judged, to
from featlab.claims.settings import kou, xor
from featlab.claims.settings.kou import signal_at
from featlab.core.validation import probability, real, whole
from featlab.data import XorSignalNoise
from featlab.networks import leaky_relu, relu

HARMFUL = 1 / 4  # X, far below the constant
BENIGN = (16.0, 64.0, 256.0)  # X, fourfold each time, above it
# m on the two sides. A cluster has Bin(m, 1/2) filters of its class: of 16 sometimes 3 or fewer, and it errs.
WIDE = 64
TESTS = 100_000  # an error of .007 is then known to 4 %
TURN = 6.0  # X at clean error 1/4, measured, for the picture: the theorem says that there is a constant, not which
BRACKET = (1 / 4, 256.0)  # X between which the thresholds are searched


class Xor(Claim):
    """The claim of this file: Kou's network, loss and algorithm on exclusive-or data."""

    title = (
        "on XOR data, unreadable for linear classifiers, ReLU networks turn benign at n |mu|^4 = const sigma^4 d"
    )
    statement = (
        r"n\|\mu\|^4 = \Omega(\sigma^4 d) \Rightarrow "
        r"L_D^{0-1} \le p + \exp\bigl(-\Omega(n\|\mu\|^4/\sigma^4 d)\bigr);"
        r"\quad n\|\mu\|^4 = O(\sigma^4 d) \Rightarrow L_D^{0-1} \ge p + 0.1;"
        r"\quad P(y \langle \theta, x \rangle \le 0) = \tfrac12 \ \forall \theta"
    )
    refuted_if = "the exponents of |mu|* differ from -1/4 in n or 1/4 in d, or some linear classifier does better"
    reference = """@inproceedings{meng2024benign,
  title     = {Benign Overfitting in Two-Layer {ReLU} Convolutional Neural Networks for {XOR} Data},
  author    = {Meng, Xuran and Zou, Difan and Cao, Yuan},
  booktitle = {International Conference on Machine Learning},
  year      = {2024}
}"""
    sizes = {
        "tiny": Size(seeds=3, n=(8, 16), d=(1e4, 1e5), large_d=1e6, small_n=8),
        "smoke": Size(seeds=4, n=(32, 45, 64), d=(1e5, 1e6, 1e7), large_d=1e8, small_n=32),
        "laptop": Size(seeds=24, n=(128, 256, 512, 1024), d=(1e6, 1e7, 1e8, 1e9), large_d=1e9, small_n=64),
        "full": Size(seeds=32, n=(256, 512, 1024, 2048), d=(1e7, 1e8, 1e9, 1e10), large_d=1e10, small_n=128),
    }
    minutes = 3.0
    control_changes = "activation ReLU -> linear"

    clauses = {
        "the training loss becomes small": not_judged(
            "training stops there; a run that does not get there has no value, and is counted"
        ),
        "the switch is at n |mu|^4 = const sigma^4 d": ("exponent of |mu|* in n*", "exponent of |mu|* in d*"),
        "above, the error is at most p + exp(-X / C_2)": "benign side: error beyond p*",
        "above, the error beyond p falls faster than a power of X": "power of the clean error*",
        "it falls exponentially in X": not_judged(
            "up to X = 256 -log error grows more slowly than X, by a rising power; errors beyond are too rare"
        ),
        "below, the error is at least p + 0.1": "harmful side: observed error",
        "a share p of the labels is flipped": "*side*",
        "linear classifiers through the origin err half the time": (
            "error - 1/2 of linear classifiers through the origin"
        ),
        "with a bias they err at least a quarter of it": "error - 1/4 of the best linear classifier with a bias",
    }
    c_2 = 64.0  # of the benign bound, p + exp(-X / C_2)
    exploratory = "Sizes, bracket, C_2 and the width of both sides were chosen after looking at other seeds."
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

    def experiment(self, n, d, signal_norm, activation=None, tests=None, width=None):
        """Kou's experiment with exclusive-or data."""
        return kou.experiment(
            n,
            d,
            signal_norm,
            width=self.width if width is None else width,
            learning_rate=self.learning_rate,
            init_scale=self.init_scale,
            loss=self.loss,
            flip=self.flip,
            activation=activation or (leaky_relu(self.leak) if self.leak else relu),
            model=XorSignalNoise,
            tests=tests,
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
        yield from self._sides(lab)
        errors = np.array([xor.random_classifier_error(seed) for seed in lab.seeds])
        yield identity("error - 1/2 of linear classifiers through the origin", errors - 0.5, 1e-12)
        yield identity("error - 1/4 of the best linear classifier with a bias", xor.best_with_bias() - 0.25, 1e-9)

    def control(self, lab):
        """The same network without its kinks is linear, fits the training set as well, and learns nothing."""
        return self._bounded(self._run(lab, BENIGN, leaky_relu(1.0)))

    def _sides(self, lab):
        """The theorem's own statements, on observed labels, and how the error falls."""
        yield at_least("harmful side: observed error", self._run(lab, HARMFUL).test_error, self.flip + 0.1)
        benign = self._run(lab, BENIGN)
        yield self._bounded(benign)
        first, middle, last = (-np.log(benign.clean_test_error.sel(strength=x, drop=True)) for x in BENIGN)
        yield at_least(
            "power of the clean error in X, over that at a fourth of X", (last - middle) / (middle - first), 1
        )

    def _run(self, lab, strength, activation=None):
        """At the two smallest n; the strength is X."""
        return lab.run(
            lambda n, d, strength: self.experiment(n, d, signal_at(strength, n, d), activation, TESTS, WIDE),
            n=lab.size.n[:2],
            d=lab.size.large_d,
            strength=strength,
        )

    def _bounded(self, runs):
        beyond = runs.test_error - self.flip
        return at_most(
            "benign side: error beyond p over exp(-X / C_2)", beyond / np.exp(-runs.strength / self.c_2), 1
        )
