r"""On exclusive-or data, which no linear classifier can read, ReLU networks have the threshold of linear tasks.

Meng, Zou and Cao (2024). The class is the axis on which the signal lies, its sign a coin. ReLU networks are
trained to a small loss; the test error is near p when $n\|\mu\|^4 = \Omega(\sigma^4 d)$ and at least $p + 0.1$
otherwise, as on a linear task, though with a larger constant. Linear classifiers through the origin err exactly
half the time: $x$ and $-x$ are equally likely in each class. With a bias, one of the four clusters is always
lost, so they err a quarter of the time at best.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import scipy.special
import scipy.stats

from featlab.claims._claim import Size
from featlab.claims._judge import bounded_by, identity
from featlab.claims.kou2023_phase import LEVELS, signal_at
from featlab.claims.kou2023_phase import Phase as KouPhase
from featlab.data import XorSignalNoise
from featlab.networks import leaky_relu

BENIGN = 256.0  # X, far above the constant
_NODES = 40  # of the quadrature over the noise


class Xor(KouPhase):
    """The claim of this file: Kou's network, loss and algorithm on exclusive-or data."""

    title = (
        "on XOR data, unreadable for linear classifiers, ReLU networks turn benign at n |mu|^4 = const sigma^4 d"
    )
    statement = (
        r"n\|\mu\|^4 = \Omega(\sigma^4 d) \Rightarrow "
        r"L_D^{0-1} \le p + \exp\bigl(-\Omega(n\|\mu\|^4/\sigma^4 d)\bigr);"
        r"\qquad P(y \langle \theta, x \rangle \le 0) = \tfrac12 \ \forall \theta"
    )
    refuted_if = "the exponents of |mu|* differ from -1/4 in n or 1/4 in d, or some linear classifier does better"
    reference = """@inproceedings{meng2024benign,
  title     = {Benign Overfitting in Two-Layer {ReLU} Convolutional Neural Networks for {XOR} Data},
  author    = {Meng, Xuran and Zou, Difan and Cao, Yuan},
  booktitle = {International Conference on Machine Learning},
  year      = {2024}
}"""
    sizes = {
        "tiny": Size(seeds=3, n=(8, 16), d=(1e4, 1e5), large_d=(1e6,), small_n=(8,)),
        "smoke": Size(seeds=4, n=(32, 45, 64), d=(1e5, 1e6, 1e7), large_d=(1e8,), small_n=(32,)),
        "laptop": Size(seeds=12, n=(128, 256, 512, 1024), d=(1e6, 1e7, 1e8, 1e9), large_d=(1e9,), small_n=(64,)),
        "full": Size(seeds=32, n=(256, 512, 1024, 2048), d=(1e7, 1e8, 1e9, 1e10), large_d=(1e10,), small_n=(128,)),
    }
    number_of_checks = 7
    minutes = 3.0
    control_changes = "activation ReLU -> linear"
    turn: ClassVar[float] = 2.2
    bracket: ClassVar[tuple[float, float]] = (1 / 4, 256.0)

    def experiment(self, n, d, signal_norm, activation=None, flip=None):
        """Kou's experiment with exclusive-or data."""
        linear_task = super().experiment(n, d, signal_norm, activation, flip)
        flip = self.threshold_flip if flip is None else flip
        data = XorSignalNoise(n=n, d=d, signal_norm=signal_norm, label_flip=flip, test_flip=flip)
        return dataclasses.replace(linear_task, data=data)

    def checks(self, lab):
        in_n, in_d = self._boundary_in_n(lab, None), self._boundary_in_d(lab)
        yield from (self._exponent_in_n(in_n, level) for level in LEVELS)
        yield from (self._exponent_in_d(in_d, level) for level in LEVELS)
        yield self._learns(lab, None)
        errors = [classifier_error(*theta, bias=0.0) for theta in _directions(lab.seeds)]
        yield identity("error - 1/2 of linear classifiers through the origin", np.array(errors) - 0.5, 1e-12)
        yield identity("error - 1/4 of the best linear classifier with a bias", best_with_bias() - 0.25, 1e-9)

    def control(self, lab):
        """The same network without its kinks is linear, fits the training set as well, and learns nothing."""
        return self._learns(lab, leaky_relu(1.0))

    def _learns(self, lab, activation):
        (d,) = lab.size.large_d
        n = lab.size.n[0]
        read = lab.endings(self.experiment(n, d, signal_at(BENIGN, n, d), activation))
        trained = float(read["trained"].mean())
        return bounded_by("clean error far above the threshold", read["clean_test_error"], 0.1, trained=trained)


def classifier_error(on_signal: np.ndarray, on_noise: float, *, bias: float) -> float:
    r"""$P(y(\langle\theta, x\rangle + b) \le 0)$ of a linear classifier, from its products with signals and noise.

    `on_signal` are the products of $\theta$'s first patch with the two signals, `on_noise` is the length of its
    second patch. The data model itself puts the inputs together, over all its coins and a quadrature in the noise.
    """
    model = XorSignalNoise(n=1, d=2, signal_norm=1.0)
    nodes, weights = scipy.special.roots_hermitenorm(_NODES)
    weights = weights / weights.sum()
    wrong = 0.0
    for label in (1.0, -1.0):
        for sign in (1.0, -1.0):
            signals = jnp.asarray(on_signal[:, None] * np.ones(_NODES))
            noise = jnp.asarray((on_noise * nodes)[None])
            patches = model.compose(jnp.asarray(label), (False, sign), signals, noise)
            margin = label * (np.sum(np.array(patches, np.float64), axis=0) + bias)
            wrong += 0.25 * float(weights @ (0.5 * (margin == 0) + (margin < 0)))
    return wrong


def best_with_bias() -> float:
    r"""The smallest error of any linear classifier with a bias, noise included.

    With products $\alpha_\pm$ with the signals, bias b and noise of unit length in the projection, the error is
    $\frac14 \sum_{y, s} \Phi(-y (s \alpha_y + b))$; by symmetry $\alpha_\pm \ge 0$.
    """
    grid = np.concatenate([[0.0], np.geomspace(1e-2, 1e3, 80)])
    plus, minus, bias = np.meshgrid(grid, grid, np.concatenate([-grid[::-1], grid]), indexing="ij", sparse=True)
    phi = scipy.stats.norm.cdf
    error = (phi(-(plus + bias)) + phi(plus - bias) + phi(minus + bias) + phi(bias - minus)) / 4
    return float(error.min())


def _directions(seeds):
    """One random classifier for each seed: its products with the two signals, and the length of its noise part."""
    for seed in seeds:
        normals = np.random.default_rng(seed).normal(size=3)
        yield normals[:2], abs(normals[2])
