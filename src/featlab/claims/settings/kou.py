r"""What the claims on ReLU networks share: experiment, conditions, thresholds and their exponents.

Kou, Chen, Chen and Gu (2023), Conditions 4.1 and Theorem 4.2. Everything turns on
$X = n\|\mu\|^4 / (\sigma^4 d)$; here $\sigma = 1$.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import xarray as xr

from featlab.algorithms import GradientDescent
from featlab.claims import Assumption, Check, Lab, Picture, scales_as
from featlab.data import SignalNoise, XorSignalNoise
from featlab.experiment import Experiment
from featlab.networks import TwoLayerCNN, relu
from featlab.probes import at_end, test_error, train_loss, until

KOU = """@inproceedings{kou2023benign,
  title     = {Benign Overfitting in Two-layer {ReLU} Convolutional Neural Networks},
  author    = {Kou, Yiwen and Chen, Zixiang and Chen, Yuanzhou and Gu, Quanquan},
  booktitle = {International Conference on Machine Learning},
  year      = {2023}
}"""

LEVELS = (0.25, 0.1)  # of the clean error, at which thresholds are measured
RIVALS = (1 / 3, 1 / 2)  # exponents of other laws: n SNR^3 and n SNR^2 = const
TOLERANCE = 0.04  # of a bracket; the error is smooth in the signal, and interpolated inside
AT_MOST = 20_000  # steps; a run that needs more counts as not trained


def signal_at(strength: float, n: int, d: float) -> float:
    r"""The signal's length at which $X = n \|\mu\|^4 / d$ has this value, with sigma = 1."""
    return (strength * d / n) ** 0.25


def experiment(
    n: int,
    d: float,
    signal_norm: float,
    *,
    width: int,
    learning_rate: float,
    init_scale: float,
    loss: float,
    flip: float = 0.0,
    activation: Callable = relu,
    model: type[SignalNoise] | type[XorSignalNoise] = SignalNoise,
    tests: int | None = None,
    balanced: bool = False,
) -> Experiment:
    """What is trained: learning rate in units of n / (sigma^2 d), start in units of sqrt(n) / (sigma d)."""
    tested = test_error if tests is None else test_error(count=tests)
    classes = {"balanced": True} if balanced else {}
    return Experiment(
        data=model(n=n, d=d, signal_norm=signal_norm, label_flip=flip, test_flip=flip, **classes),
        network=TwoLayerCNN(width=width, activation=activation, init_scale=init_scale * math.sqrt(n) / d),
        algorithm=GradientDescent(learning_rate * n / d),
        probes=[train_loss.on(at_end), tested.on(at_end)],
        steps=until(train_loss, loss, at_most=AT_MOST),
    )


def assumptions(experiment: Any) -> list[Assumption]:
    """Conditions 4.1."""
    data, network, rate = experiment.data, experiment.network, experiment.algorithm.learning_rate
    n, d, mu, sigma = data.n, data.d, data.signal_norm, data.noise_scale
    start = network.init_scale * sigma * d / math.sqrt(n)
    unit = sigma**2 * d / n
    return [
        Assumption("n^2 / d (noise of different samples is nearly orthogonal)", n**2 / d, "<< 1"),
        Assumption("n SNR^2 (the signal does not overwhelm the noise)", mu**2 / unit, "<< 1"),
        Assumption("sigma_0 sigma d / n^(1/2) (the start is forgotten)", start, "<< 1"),
        Assumption("eta sigma^2 d / (n m^2) (small steps)", rate * unit / network.width**2, "<< 1"),
        Assumption("m / log n (some filter of each class sees each sample)", network.width / math.log(n), ">= 1"),
    ]


def thresholds(
    lab: Lab, make: Callable[..., Experiment], bracket: tuple[float, float], **cells: Any
) -> xr.Dataset:
    """The signal's length at which the clean error of `make(n, d, signal_norm)` crosses each level.

    It is searched between the two values of X in `bracket`.
    """
    low, high = bracket
    return lab.boundary(
        make,
        "signal_norm",
        "clean_test_error",
        LEVELS,
        between=lambda n, d: (signal_at(low, n, d), signal_at(high, n, d)),
        tolerance=TOLERANCE,
        **cells,
    )


def exponents(found: xr.Dataset, along: str) -> Iterator[Check]:
    """The threshold scales as n^(-1/4) and as d^(1/4), at every level that was searched."""
    sign = {"n": -1, "d": 1}[along]
    for level in found.level.values:
        yield scales_as(
            f"exponent of |mu|* in {along}, clean error {level:g}",
            found.signal_norm.sel(level=level),
            along,
            sign / 4,
            rivals=tuple(sign * rival for rival in RIVALS),
            symbols=(along, r"\|\mu\|^*"),
        )


def picture(turn: float) -> Picture:
    """Both sides of X = `turn`."""

    def number(experiment: Any):
        data = experiment.data
        return data.n * data.signal_norm**4 / (data.noise_scale**4 * data.d * turn)

    return Picture(
        number,
        symbol=rf"n\|\mu\|^4 / ({turn:g}\,\sigma^4 d)",
        below="The signal is too weak for this few samples in this many dimensions: the network fits its training "
        "set and errs on fresh inputs (harmful overfitting).",
        above="The signal is strong enough: the network fits its training set, wrong labels included, and "
        "classifies fresh inputs almost as well as can be (benign overfitting).",
        slider="data.signal_norm",
        slider_symbol=r"\|\mu\|",
        values=tuple(float(f"{signal_at(turn * x, 64, 1e6):.3g}") for x in np.geomspace(1 / 64, 64, 13)),
        across="data.n",
        across_symbol="n",
        across_values=(16, 23, 32, 45, 64, 91, 128, 181, 256),
        shows="clean_test_error",
        level=LEVELS[0],
    )
