"""An experiment as a short script that needs NumPy alone: to be read, changed, and compared with featlab's result.

The script is a second road to the same numbers: gradients by hand instead of autodiff, coordinates instead of
inner products. Its random numbers are its own, so the two agree in law and not seed by seed.
"""

from __future__ import annotations

import math
import re
from typing import Any

import equinox as eqx

from featlab.algorithms import SAM, Adam, GradientDescent, LabelNoiseDescent, PacedDescent, SignDescent
from featlab.atlas.script_template import TEMPLATE
from featlab.core.sees import Sees
from featlab.core.validation import InputError
from featlab.data import SignalNoise, XorSignalNoise
from featlab.experiment import Experiment
from featlab.networks import TwoLayerCNN, identity, leaky_relu, relu, relu_power
from featlab.objectives import Supervised, logistic, squared
from featlab.probes import Probe, test_error, test_loss, train_loss, until
from featlab.probes.risk import TEST_INPUTS

LARGEST_WHOLE = 20_000  # d up to which vectors are stored whole: beyond, a training takes minutes

# The name of each part that the template knows, which is also the condition of its lines.
_DATA = {SignalNoise: "one", XorSignalNoise: "xor"}
_LOSSES = {logistic: "logistic", squared: "squared"}
_ALGORITHMS = {
    GradientDescent: "descent",
    PacedDescent: "paced",
    LabelNoiseDescent: "label_noise",
    SAM: "sam",
    SignDescent: "sign",
    Adam: "adam",
}


def numpy_script(experiment: Experiment, seeds: int = 4) -> str:
    """The text of a script that repeats the experiment; `seeds` is how many trainings it does unless told."""
    if not isinstance(seeds, int) or isinstance(seeds, bool) or seeds < 1:
        raise InputError(f"numpy_script needs a whole number of seeds, at least 1, got {seeds!r}.")
    obstacle = _obstacle(experiment)
    if obstacle is not None:
        raise InputError(
            f"{obstacle} cannot be written as a NumPy script; state the experiment in a TOML file and repeat it "
            "with `featlab run FILE.toml`."
        )
    experiment.empty_space()  # refuses what cannot be run at all
    holds = _conditions(experiment)
    filled = {"seeds": repr(seeds)} | _numbers(experiment) | _words(experiment, holds)
    pieces = []
    for piece in re.split("^==", TEMPLATE, flags=re.M)[1:]:
        condition, _, text = piece.partition("\n")
        if _kept(condition, holds):
            lines = [line.partition("??") for line in text.strip().splitlines()]
            pieces.append("\n".join(line.rstrip() for line, _, condition in lines if _kept(condition, holds)))
    return re.sub("%([a-z_0-9]+)%", lambda name: filled[name[1]], "\n\n\n".join(pieces)) + "\n"


def _kept(condition: str, holds: dict[str, bool]) -> bool:
    return all(not holds[word[1:]] if word.startswith("-") else holds[word] for word in condition.split())


def _obstacle(experiment: Experiment) -> str | None:
    """What of an experiment is beyond the template, if anything."""
    objective: Any = experiment.bound_objective
    roles = {"data model": _DATA, "network": [TwoLayerCNN], "objective": [Supervised], "algorithm": _ALGORITHMS}
    parts: list[Any] = [experiment.data, experiment.network, objective, experiment.algorithm]
    for (role, known), part in zip(roles.items(), parts):
        if type(part) not in known:
            return f"The {role} {type(part).__name__}"
    data, network, _, algorithm = parts
    if not eqx.tree_equal(objective.network, network):
        return "An objective of another network than the experiment's"
    if _activation(network.activation) is None:
        return f"The activation {_name(network.activation)}"
    if not any(objective.loss is known for known in _LOSSES):
        return f"The loss {_name(objective.loss)}"
    for name in ("bias", "train_head", "uniform_start"):
        if getattr(network, name):
            return f"TwoLayerCNN with {name}"
    if 0.0 in (data.snr, data.signal_norm):
        return "A signal of length 0"
    steps = experiment.steps
    if isinstance(steps, until) and steps.probe.function is not train_loss.function:
        return f"A run until the probe {steps.probe.name} reaches a level"
    if data.d < data.vectors(data.n):
        return f"A run in d = {data.d:g} dimensions, too few for unique coefficients on signal and noise,"
    if _is_whole(experiment):
        if data.d > LARGEST_WHOLE or data.d != int(data.d):
            return f"{type(algorithm).__name__} on whole vectors of d = {data.d:g} numbers"
        if algorithm.sees < Sees.COORDINATES and getattr(algorithm, "weight_decay", None):
            return f"Weight decay in d = {data.d:g} dimensions, fewer than vectors are drawn,"
    return None


def _is_whole(experiment: Experiment) -> bool:
    """Whether vectors are stored whole: training leaves the span of what was drawn, or that is everything."""
    by_coordinate = experiment.algorithm.sees == Sees.COORDINATES
    return by_coordinate or experiment.data.d < experiment.span_size(experiment.data.n)


def _activation(kind: Any) -> str | None:
    """What the template calls an activation, if it knows it."""
    if kind is relu or (type(kind) is relu_power and kind.power == 1):
        return "relu"
    if type(kind) is relu_power:
        return "power" if kind.power > 1 else "root"
    return "leaky" if type(kind) is leaky_relu else "linear" if kind is identity else None


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _conditions(experiment: Experiment) -> dict[str, bool]:
    """The words of the template's conditions, and whether they hold."""
    data: Any = experiment.data
    network: Any = experiment.network
    objective: Any = experiment.bound_objective
    algorithm: Any = experiment.algorithm
    infinite, whole, steps = math.isinf(data.d), _is_whole(experiment), experiment.steps
    negative = getattr(data, "negative_flip", None) is not None
    decay, by_coordinate = bool(getattr(algorithm, "weight_decay", None)), algorithm.sees == Sees.COORDINATES
    parts = [*_DATA.values(), *_LOSSES.values(), *_ALGORITHMS.values(), "relu", "power", "root", "leaky", "linear"]
    here = [_DATA[type(data)], _LOSSES[objective.loss], _ALGORITHMS[type(algorithm)]]
    here += [_activation(network.activation)]
    return {part: part in here for part in parts} | {
        "infinite": infinite,
        "finite": not infinite,
        "whole": whole,
        "span": not whole,
        "by_coordinate": by_coordinate,
        "frame": not whole and not infinite,
        "snr": data.snr is not None and not infinite,
        "norm": data.snr is None,
        "cosine": bool(getattr(data, "cosine", 0)),
        "orthogonal": data.orthogonal and not infinite,
        "flips": bool(data.label_flip or data.test_flip or negative),
        "negative": negative,
        "balanced": getattr(data, "balanced", False),
        "rate": hasattr(algorithm, "learning_rate"),
        "momentum": bool(getattr(algorithm, "momentum", None)),
        "decay": decay,
        "alpha": decay and not by_coordinate and network.init_scale > 0,
        "corrected": getattr(algorithm, "bias_correction", False),
        "until": isinstance(steps, until),
        "after": isinstance(steps, until) and steps.after > 0,
    }


def _numbers(experiment: Experiment) -> dict[str, str]:
    """The fields of the experiment's parts that are numbers, as literals."""
    probes = [probe for probe in experiment.probes if isinstance(probe, Probe)]
    counts = [p.settings["count"] for p in probes if p.function in (test_error.function, test_loss.function)]
    found: dict[str, Any] = {"tests": max(counts, default=TEST_INPUTS)}
    network: Any = experiment.network
    for part in (experiment, experiment.data, network, network.activation, experiment.algorithm, experiment.steps):
        found |= getattr(part, "__dict__", {})
    if _is_whole(experiment):
        found["d"] = int(experiment.data.d)
    return {name: _literal(value) for name, value in found.items() if type(value) in (int, float)}


def _literal(value: float) -> str:
    """A number as Python writes it, or shorter: 1e9 for 1000000000.0."""
    short = re.sub(r"e([+-]?)0*", lambda power: "e" + power[1].strip("+"), f"{value:g}")
    return short if isinstance(value, float) and float(short) == value else repr(value)


def _words(experiment: Experiment, holds: dict[str, bool]) -> dict[str, str]:
    """Words of the template that differ, too short for lines of their own."""
    network: Any = experiment.network
    xor, flips, alpha = holds["xor"], holds["flips"], holds["alpha"]
    chosen = "in turn" if holds["balanced"] else "by a coin"
    return {
        "mu": "u" if xor else "mu",
        "length": "|u_+1| = |u_-1|" if xor else "|mu|",
        "patch": "s u_y" if xor else "y mu",
        "fixed": "u_+1, u_-1 are fixed, y and s = +-1 by coins" if xor else f"mu is fixed, y = +-1 {chosen}",
        "axes": "2" if xor else "1",
        "scale": " / M" * network.average_filters + " / 2" * network.average_patches,
        "over_m": "/m" * network.average_filters,
        "halved": " / 2" * network.average_patches,
        "rng": "rng, " * holds["label_noise"],
        "count": ", steps" * holds["until"],
        "labels": "labels" if flips else "y",
        "test_labels": "labels_test" if flips else "y_test",
        "start": "alpha * start" if alpha else "start",
        "alpha": "alpha w_jr(0)" if alpha else "w_jr(0)",
    }
