"""What the claims on one gradient step share: sizes in proportion, a student, and three teachers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import xarray as xr

from featlab.algorithms import GiantStep
from featlab.claims import Assumption
from featlab.data import SingleIndex
from featlab.experiment import Experiment
from featlab.networks import TwoLayer, centred, hermite_series, relu
from featlab.objectives import squared
from featlab.probes import at_end
from featlab.theory import hermite, one_step, random_features

MONIRI = """@inproceedings{moniri2024theory,
  title     = {A Theory of Non-Linear Feature Learning with One Gradient Step in Two-Layer Neural Networks},
  author    = {Moniri, Behrad and Lee, Donghwan and Hassani, Hamed and Dobriban, Edgar},
  booktitle = {International Conference on Machine Learning},
  year      = {2024}
}"""

_A, _B = math.exp(1.5) / (8 * math.sqrt(2)), math.exp(1.5) / (16 * math.sqrt(2))


def waves(z):
    r"""$z + 2 \sin(z + \frac\pi4) - B \sin 2z - A \cos 2z$: bounded derivatives, $c_1 c_2 c_3 \neq 0 = c_4 = c_5$.

    Powers of the learnt direction of degree k + 2 add to those of degree k at finite sizes: here they do not.
    """
    return z + 2 * jnp.sin(z + math.pi / 4) - _B * jnp.sin(2 * z) - _A * jnp.cos(2 * z)


STUDENT, WAVES = centred(relu), centred(waves)
DIMENSIONS, NEURONS = 0.5, 0.4  # d/n and N/n


class Setting(NamedTuple):
    """A teacher: its link, and the standard deviation of the labels' noise."""

    link: Callable
    noise: float

    @property
    def teacher(self) -> one_step.Teacher:
        return one_step.Teacher.of(self.link, self.noise)


SETTINGS = {  # the first two are those of the authors
    "y = H1 + noise": Setting(hermite_series((0, 1)), 1.0),
    "y = H1 + H2/sqrt 2": Setting(hermite_series((0, 1, 1 / math.sqrt(2))), 0.0),
    "y = ReLU + noise/2": Setting(centred(relu), 0.5),
}


def stated(
    n: int,
    setting: Setting,
    algorithm: GiantStep,
    probes: Sequence[Any],
    *,
    steps: int = 1,
    activation: Callable = STUDENT,
    subtract_start: bool = True,
    dimensions: float = DIMENSIONS,
    neurons: float = NEURONS,
) -> Experiment:
    """One gradient step on n samples, read at its end, on the centred network unless told otherwise."""
    return Experiment(
        data=SingleIndex(n=n, d=round(dimensions * n), link=setting.link, label_noise=setting.noise),
        network=TwoLayer(width=round(neurons * n), activation=activation, centred=subtract_start),
        algorithm=algorithm,
        objective=squared,
        probes=[probe.on(at_end) for probe in probes],
        steps=steps,
        precision=64,
    )


def with_symbols(runs: xr.Dataset, **symbols: str) -> xr.Dataset:
    """The same, with these symbols for its cells: they are named by them in a verdict."""
    for name, symbol in symbols.items():
        runs[name].attrs["symbol"] = symbol
    return runs


def limits(experiment: Experiment, teacher: str, penalty: float) -> tuple[float, float]:
    """Limits of training and test error of ridge regression on the random features of an experiment."""
    student = random_features.Activation.of(STUDENT)
    return one_step.errors_after(*proportions(experiment), penalty, student, SETTINGS[teacher].teacher, 0)


def proportions(experiment: Experiment) -> tuple[float, float]:
    """d/n and d/N of an experiment."""
    return random_features.proportions(experiment.data.n, experiment.data.d, network(experiment).width)


def in_proportion(experiment: Experiment) -> Assumption:
    """That samples and width may pass for proportional to the dimension."""
    off = random_features.quadratic_share(experiment.data.n, experiment.data.d, network(experiment).width)
    return Assumption("1.75 min(n, N) / d^2: quadratic functions of the inputs are like noise", off, "<< 1")


def centred_activation(experiment: Experiment) -> Assumption:
    """That the activation has mean zero."""
    mean, slope = hermite.coefficients(network(experiment).activation, 1)
    return Assumption("|c_0 / c_1|: the activation has mean zero and a linear part", abs(mean / slope), "<< 1")


def network(experiment: Experiment) -> TwoLayer:
    """The network, as the two-layer one it is."""
    assert isinstance(experiment.network, TwoLayer)
    return experiment.network
