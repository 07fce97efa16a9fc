"""From what blocks of runs recorded to a labelled Dataset: dims, coords, units, symbols, and its origin."""

from __future__ import annotations

import warnings
from typing import Any, TypeGuard

import jax
import numpy as np
import xarray as xr

import featlab
from featlab.algorithms import GradientDescent, RecursiveFeatureMachine, Ridge
from featlab.engine.loop import NEVER, Carry, Stretch
from featlab.experiment import Experiment
from featlab.networks import TwoLayerCNN, relu
from featlab.objectives import logistic
from featlab.probes import Variable, at_end, until
from featlab.probes.running import as_running
from featlab.problem import Draw, vector_model
from featlab.text import describe


class Diverged(UserWarning):
    """Some runs left the finite numbers; the Dataset says which and when."""


class Origin:
    """An experiment and all a Dataset says about it."""

    def __init__(self, experiment: Experiment):
        self.experiment = experiment
        self.unit = time_unit(experiment)
        self.attrs = {"experiment": describe(experiment), "featlab_version": featlab.__version__}
        self.attrs |= theory_numbers(experiment)


class Recorded:
    """What one block of runs has left so far, as NumPy arrays with the run first."""

    def __init__(self, draws: Draw, probes: int):
        self.draws = draws
        self.readings: list[list[dict[str, np.ndarray]]] = [[] for _ in range(probes)]
        self.reached = 0  # how many of the times were recorded
        self.carry: Carry | None = None

    def add(self, stretch: Stretch) -> None:
        """Keep what was due of the readings of some more times."""
        for p, reading in enumerate(jax.device_get(stretch.readings)):
            chosen = np.flatnonzero(stretch.due[:, p])
            if len(chosen):
                kept = {name: np.moveaxis(values[chosen], 0, 1) for name, values in reading.items()}
                self.readings[p].append(kept)
        self.carry, self.reached = stretch.carry, self.reached + len(stretch.times)


def to_dataset(
    origin: Origin, seeds, times, due, finished: list[Recorded], rows: int, interrupted: bool
) -> xr.Dataset:
    """The Dataset of an experiment's blocks, cut to the times that all of them reached."""
    experiment = origin.experiment
    seeds = seeds[: sum(len(recorded.draws.training.labels) for recorded in finished)]
    done = len(seeds)  # the last block may have been filled up
    reached = min(recorded.reached for recorded in finished)
    variables: dict[str, Any] = {}
    coords: dict[str, Any] = {"seed": ("seed", seeds.astype(int))}
    for p, probe in enumerate(experiment.probes):
        at = times[due[:, p]]
        at = at[at <= times[reached - 1]]
        if not len(at):
            continue
        arrays = [
            {
                name: np.concatenate([part[name] for part in recorded.readings[p]], axis=1)[:, : len(at)]
                for name in recorded.readings[p][0]
            }
            for recorded in finished
        ]
        dim = _step_dim(experiment, probe)
        if dim is not None:
            coords |= _time_coords(origin.unit, dim, at)
        described = dict((as_running(probe) or probe).variables)
        for name in arrays[0]:
            values = np.concatenate([block[name] for block in arrays])[:done]
            variables[name] = _variable(experiment, name, described.get(name), values, dim, rows)
    stopped, diverged, taken = (
        np.concatenate([getattr(recorded.carry, name) for recorded in finished])[:done]
        for name in ("stopped_at", "diverged_at", "steps_taken")
    )
    has_level = isinstance(experiment.steps, until)
    trained = (diverged == NEVER) & ((stopped != NEVER) if has_level else (taken == experiment.last_step))
    status = np.where(diverged != NEVER, "diverged", np.where(trained, "trained", "unfinished"))
    bookkeeping = {
        "stopped_at": (stopped, "step at which the level was reached, -1 if never"),
        "diverged_at": (
            diverged,
            "step that left the finite numbers, -1 if none; values after it repeat the last finite state",
        ),
        "steps_taken": (taken, "steps taken"),
        "trained": (trained, "reached the level, or took all its steps, and did not diverge"),
        "status": (status, "trained, unfinished or diverged"),
    }
    for name, (values, meaning) in bookkeeping.items():
        variables[name] = ("seed", values, {"long_name": meaning})
    variables |= _labels(experiment, finished, done)
    dataset = xr.Dataset(variables, coords)
    dataset = _with_axes(experiment, dataset)
    dataset.attrs = {
        **origin.attrs,
        "space": type(finished[0].draws.space).__name__,
        "device": jax.default_backend(),
        "interrupted": int(interrupted),
    }
    if np.any(diverged != NEVER):
        first = int(diverged[diverged != NEVER].min())
        warnings.warn(
            f"{np.sum(diverged != NEVER)} of {done} runs diverged, the first at step {first}: "
            f"{_advice(experiment)} may help; see the variables status and diverged_at.",
            Diverged,
            stacklevel=3,
        )
    return dataset


def _advice(experiment: Experiment) -> str:
    """What may keep the numbers finite: shorter steps, or more digits where there is a solve."""
    solves = isinstance(experiment.algorithm, Ridge | RecursiveFeatureMachine)
    return "precision=64, or a larger penalty," if solves else "a smaller learning rate"


def read_at_end(experiment: Experiment, read: dict[str, np.ndarray], seeds) -> xr.Dataset:
    """The Dataset of what `train_many` returns for one experiment and its seeds."""
    described = {name: one for p in experiment.probes for name, one in (as_running(p) or p).variables}
    variables = {}
    for name, values in read.items():
        rows = experiment.data.n if "sample" not in (described.get(name) or Variable()).dims.split() else -1
        variables[name] = _variable(experiment, name, described.get(name), values[:, None], None, rows)
    return _with_axes(experiment, xr.Dataset(variables, {"seed": list(seeds)}))


def _variable(experiment, name, described: Variable | None, values, dim, rows):
    described = described or Variable()
    lead = ["seed"] + ([dim] if dim is not None else [])
    if dim is None:
        values = values[:, 0]
    own = described.dims.split() if described.dims else []
    axes = values.ndim - len(lead)
    dims = own[:axes] + [f"{name}_dim_{k}" for k in range(len(own), axes)]
    if "sample" in dims and rows != experiment.data.n:
        index: list[Any] = [slice(None)] * values.ndim
        index[len(lead) + dims.index("sample")] = slice(experiment.data.n)
        values = values[tuple(index)]
    attrs = {"symbol": described.symbol, "long_name": described.meaning or name, "units": described.units}
    return (lead + dims, values, attrs)


def _labels(experiment, finished, done):
    """The labels of each run's training set, where they are one number each."""
    named = {"label": "labels", "clean_label": "clean_labels"}
    found = {}
    for name, field in named.items():
        values = np.concatenate([np.asarray(getattr(r.draws.training, field)) for r in finished])[:done]
        if values.ndim == 2:
            meaning = "label the loss sees" if name == "label" else "label before any flip"
            symbol = r"\tilde y_i" if name == "label" else "y_i"
            found[name] = (
                ["seed", "sample"],
                values[:, : experiment.data.n],
                {"long_name": meaning, "symbol": symbol},
            )
    return found


def _with_axes(experiment, dataset):
    coords: dict[str, Any] = {}
    for dim, size in dataset.sizes.items():
        if dim == "class":
            coords["class"] = ("class", list(experiment.network.classes), {"symbol": "j"})
        elif dim not in dataset.coords:
            coords[str(dim)] = (dim, _asked_for(experiment, str(dim), size))
    return dataset.assign_coords(coords)


def _asked_for(experiment, dim, size):
    """The values along an axis: those of the probe's option of that name, or their numbers."""
    for probe in experiment.probes:
        option = dict(getattr(probe, "settings", {})).get(dim)
        if isinstance(option, tuple) and len(option) == size:
            return list(option)
    return np.arange(size)


def _step_dim(experiment, probe) -> str | None:
    """The name of the step dim: `step` on the experiment's clock, a name of its own on another one."""
    clock = experiment.clock_of(probe)
    if clock is at_end:
        return None
    if clock == experiment.record:
        return "step"
    numbers = "_".join(str(value) for value in vars(clock).values())
    return f"step_{type(clock).__name__}_{numbers}"


def _time_coords(unit, dim, at):
    """The steps, and the same in the theory's unit of time where the data model has one."""
    coords: dict[str, Any] = {dim: (dim, at, {"symbol": "t", "long_name": "step", "units": "steps"})}
    if unit is not None:
        meaning = {"symbol": r"\eta \|\mu\|^2 t / m", "long_name": "time in the theory's unit", "units": "1"}
        coords["time" + dim.removeprefix("step")] = (dim, at * unit, meaning)
    return coords


def theory_numbers(experiment: Experiment) -> dict[str, float]:
    """What a curve of early growth needs to know; the last three only where its derivation holds."""
    model = vector_model(experiment.data)
    if model is None:
        return {}
    network, algorithm = experiment.network, experiment.algorithm
    with jax.enable_x64(True):
        space = experiment.empty_space()
        signal_norm, noise_norm = float(model.signals(space)[1][0]), float(model.noise_length(space))
    numbers: dict[str, Any] = {
        "n": experiment.data.n,
        "signal_norm": signal_norm,
        "noise_norm": noise_norm,
        "test_flip": getattr(model, "test_flip", None),
    }
    holds = experiment.objective is logistic and model is experiment.data
    if holds and _is_theorems(network) and isinstance(algorithm, GradientDescent) and algorithm.is_plain:
        numbers["learning_rate"] = algorithm.learning_rate
        numbers["width_scale"] = network.output_scale
        numbers["power"] = 1 if network.activation is relu else getattr(network.activation, "power", None)
    return {name: value for name, value in numbers.items() if value is not None}


def _is_theorems(network) -> TypeGuard[TwoLayerCNN]:
    changed = isinstance(network, TwoLayerCNN) and (network.bias or network.train_head or network.average_patches)
    return isinstance(network, TwoLayerCNN) and not changed


def time_unit(experiment: Experiment) -> float | None:
    """One step in the theory's unit of time, learning rate x signal power / width, where that is defined."""
    rate = getattr(experiment.algorithm, "learning_rate", None)
    with jax.enable_x64(True):
        power = experiment.data.rate(experiment.empty_space())
        if not isinstance(rate, float) or power is None or not _is_theorems(experiment.network):
            return None
        return float(rate * experiment.network.output_scale * power)
