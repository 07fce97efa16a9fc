"""`run`: from an experiment and seeds to a labelled Dataset."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import featlab
from featlab.algorithms import GradientDescent
from featlab.description import describe
from featlab.experiment import Experiment
from featlab.fields import InputError
from featlab.networks import TwoLayerCNN, relu
from featlab.objectives import logistic
from featlab.probes import AbstractRunning, Probe, Variable, at_end, until
from featlab.probes.running import as_running
from featlab.progress import progress_bar
from featlab.task import Draw, vector_model
from featlab.trajectory import NEVER, advance, begin, draw_block, prepare

_BLOCK = 16  # runs that step together on a CPU: their weights stay in its cache
_SEGMENTS = 20  # at least so many returns to Python, for the progress bar and an interrupt


class Diverged(UserWarning):
    """Some runs left the finite numbers; the Dataset says which and when."""


def run(
    experiment: Experiment,
    seeds: int | Iterable[int] = 1,
    *,
    progress: bool | None = None,
    rows: int | None = None,
    block: int | None = None,
) -> xr.Dataset:
    """Train once for each seed and return what the probes read, as a Dataset.

    `seeds` is a number of seeds, counted from 0, or the seeds themselves. A result depends on the experiment and
    the seed alone: not on `block`, the number of runs that step together, nor on `rows`, the number of rows the
    training set is padded to. Interrupted, it returns what was recorded so far.
    """
    seeds = _seeds(seeds)
    rows = experiment.data.n if rows is None else rows
    if rows < experiment.data.n:
        raise InputError(f"run(rows=) must be at least n = {experiment.data.n}, got {rows}.")
    # A GPU would otherwise multiply float32 matrices in ten-bit precision.
    with jax.enable_x64(experiment.precision == 64), jax.default_matmul_precision("highest"):
        space = _numbers_traced(experiment.empty_space(rows))
        traced = _numbers_traced(experiment)
        times, due = _schedule(experiment)
        blocks = _blocks(seeds, block)
        finished: list[_Recorded] = []
        total = experiment.last_step * len(blocks)
        with progress_bar("training", total, shown=progress) as tell:
            for i, members in enumerate(blocks):
                recorded = _record(experiment, traced, space, members, rows, times, due, i, tell)
                finished.append(recorded)
                if recorded.interrupted:
                    break
        return _labelled(experiment, seeds, times, due, finished, rows)


class _Recorded:
    """What one block of runs left, as NumPy arrays with the run first."""

    def __init__(self, draws: Draw, probes: int):
        self.draws = draws
        self.readings: list[list[dict[str, np.ndarray]]] = [[] for _ in range(probes)]
        self.reached = 0  # how many of the times were recorded
        self.interrupted = False
        self.stopped_at = self.diverged_at = self.steps_taken = np.zeros(0, int)


def _record(experiment, traced, space, seeds, rows, times, due, which, tell) -> _Recorded:
    draws = draw_block(traced, space, jnp.asarray(seeds), rows)
    prepared, carry = prepare(traced, draws), begin(traced, draws)
    recorded = _Recorded(draws, len(experiment.probes))
    length = -(-len(times) // _SEGMENTS)
    try:
        for start in range(0, len(times), length):
            part, part_due = times[start : start + length], due[start : start + length]
            missing = length - len(part)
            padded = np.concatenate([part, np.full(missing, part[-1])])
            padded_due = np.concatenate([part_due, np.zeros((missing, due.shape[1]), bool)])
            carry, readings = advance(traced, draws, prepared, carry, jnp.asarray(padded), jnp.asarray(padded_due))
            readings = jax.device_get(readings)
            for p, reading in enumerate(readings):
                chosen = np.flatnonzero(padded_due[:, p])
                if len(chosen):
                    kept = {name: np.moveaxis(values[chosen], 0, 1) for name, values in reading.items()}
                    recorded.readings[p].append(kept)
            recorded.reached = start + len(part)
            tell(which * experiment.last_step + int(part[-1]))
    except KeyboardInterrupt:
        recorded.interrupted = True
        if not recorded.reached:
            raise
    recorded.stopped_at = np.asarray(carry.stopped_at)
    recorded.diverged_at = np.asarray(carry.diverged_at)
    recorded.steps_taken = np.asarray(carry.steps_taken)
    return recorded


def _schedule(experiment: Experiment) -> tuple[np.ndarray, np.ndarray]:
    """All times at which something happens, and which probe is due when."""
    last = experiment.last_step
    clocks = [_times(experiment, probe) for probe in experiment.probes]
    stops = np.linspace(0, last, _SEGMENTS + 1).round().astype(int)
    times = np.unique(np.concatenate([stops, *clocks])).astype(int)
    due = (
        np.stack([np.isin(times, clock) for clock in clocks], axis=1)
        if clocks
        else np.zeros((len(times), 0), bool)
    )
    return times, due


def _times(experiment: Experiment, probe: Probe | AbstractRunning) -> np.ndarray:
    return _clock(experiment, probe).times(experiment.last_step)


def _clock(experiment: Experiment, probe: Probe | AbstractRunning) -> Any:
    return (as_running(probe) or probe).clock or experiment.record


def _labelled(experiment, seeds, times, due, finished: list[_Recorded], rows) -> xr.Dataset:
    seeds = seeds[: sum(len(recorded.stopped_at) for recorded in finished)]
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
            coords |= _time_coords(experiment, dim, at)
        described = dict((as_running(probe) or probe).variables)
        for name in arrays[0]:
            values = np.concatenate([block[name] for block in arrays])[:done]
            variables[name] = _variable(experiment, name, described.get(name), values, dim, rows)
    stopped, diverged, taken = (
        np.concatenate([getattr(recorded, name) for recorded in finished])[:done]
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
        "experiment": describe(experiment),
        "featlab_version": featlab.__version__,
        "space": type(finished[0].draws.space).__name__,
        "device": jax.default_backend(),
        "interrupted": int(any(recorded.interrupted for recorded in finished)),
        **_theory_numbers(experiment),
    }
    if np.any(diverged != NEVER):
        first = int(diverged[diverged != NEVER].min())
        warnings.warn(
            f"{np.sum(diverged != NEVER)} of {done} runs diverged, the first at step {first}: "
            "a smaller learning rate may help; see the variables status and diverged_at.",
            Diverged,
            stacklevel=3,
        )
    return dataset


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
            coords[str(dim)] = (dim, np.arange(size))
    return dataset.assign_coords(coords)


def _step_dim(experiment, probe) -> str | None:
    """The name of the step dim: `step` on the experiment's clock, a name of its own on another one."""
    clock = _clock(experiment, probe)
    if clock is at_end:
        return None
    if clock == experiment.record:
        return "step"
    numbers = "_".join(str(value) for value in vars(clock).values())
    return f"step_{type(clock).__name__}_{numbers}"


def _time_coords(experiment, dim, at):
    """The steps, and the same in the theory's unit of time where the data model has one."""
    coords: dict[str, Any] = {dim: (dim, at, {"symbol": "t", "long_name": "step", "units": "steps"})}
    unit = time_unit(experiment)
    if unit is not None:
        meaning = {"symbol": r"\eta \|\mu\|^2 t / m", "long_name": "time in the theory's unit", "units": "1"}
        coords["time" + dim.removeprefix("step")] = (dim, at * unit, meaning)
    return coords


def _theory_numbers(experiment: Experiment) -> dict[str, float]:
    """What a curve of early growth needs to know; the last three only where its derivation holds."""
    model = vector_model(experiment.data)
    if model is None:
        return {}
    space, network, algorithm = experiment.empty_space(), experiment.network, experiment.algorithm
    numbers: dict[str, Any] = {
        "n": experiment.data.n,
        "signal_norm": float(model.signals(space)[1][0]),
        "noise_norm": float(model.noise_length(space)),
        "test_flip": getattr(model, "test_flip", None),
    }
    plain_descent = isinstance(algorithm, GradientDescent) and algorithm.momentum is algorithm.weight_decay is None
    if plain_descent and experiment.objective is logistic and model is experiment.data and _is_theorems(network):
        numbers["learning_rate"] = algorithm.learning_rate  # type: ignore
        numbers["width_scale"] = network.output_scale
        numbers["power"] = 1 if network.activation is relu else getattr(network.activation, "power", None)
    return {name: value for name, value in numbers.items() if value is not None}


def _is_theorems(network) -> TypeGuard[TwoLayerCNN]:
    changed = isinstance(network, TwoLayerCNN) and (network.bias or network.train_head or network.average_patches)
    return isinstance(network, TwoLayerCNN) and not changed


def time_unit(experiment: Experiment) -> float | None:
    """One step in the theory's unit of time, learning rate x signal power / width, where that is defined."""
    rate = getattr(experiment.algorithm, "learning_rate", None)
    power = experiment.data.rate(experiment.empty_space())
    if rate is None or power is None or not _is_theorems(experiment.network):
        return None
    return float(rate * experiment.network.output_scale * power)


def _numbers_traced(tree):
    """The same with its real numbers as arrays: other values of them need no new compilation."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, float) if isinstance(leaf, float) else leaf, tree)


def _seeds(seeds) -> np.ndarray:
    if isinstance(seeds, bool) or (isinstance(seeds, int) and seeds < 1):
        raise InputError(f"run(seeds=) must be a whole number of at least 1, or a list of seeds, got {seeds!r}.")
    values = (
        list(range(seeds)) if isinstance(seeds, int) else list(seeds) if isinstance(seeds, Iterable) else [seeds]
    )
    if not values or any(
        isinstance(s, bool) or not isinstance(s, int | np.integer) or not 0 <= s < 2**32 for s in values
    ):
        raise InputError(f"Seeds must be whole numbers from 0 to 2^32 - 1, got {seeds!r}.")
    return np.array(values, np.uint32)


def _blocks(seeds: np.ndarray, block: int | None) -> list[np.ndarray]:
    """The seeds in blocks of one size, the last one filled up with a seed of its own."""
    if block is None:
        block = _BLOCK if jax.default_backend() == "cpu" else len(seeds)
    count = -(-len(seeds) // block)
    size = -(-len(seeds) // count)
    filled = np.concatenate([seeds, np.full(count * size - len(seeds), seeds[-1])])
    return np.split(filled.astype(np.uint32), count)
