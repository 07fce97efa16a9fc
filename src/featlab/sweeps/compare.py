"""`compare`: one experiment, several algorithms, the same seeds for each."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from featlab.algorithms import AbstractAlgorithm
from featlab.core.sees import Sees
from featlab.core.space import Ambient
from featlab.core.validation import InputError
from featlab.engine.run import as_seeds, run
from featlab.experiment import Experiment
from featlab.sweeps.plan import Plan
from featlab.sweeps.sweep import sweep
from featlab.text import changed, describe

_EXAMPLE = '{"GD": GradientDescent(0.1), "SAM": SAM(0.1, radius=0.05)}'
# What stands where one algorithm has a run and an interrupted one has none; numbers that were read are NaN there.
_ABSENT = {"stopped_at": -1, "diverged_at": -1, "steps_taken": 0, "status": "not run"}


def compare(
    experiment: Experiment | Callable[..., Experiment],
    algorithms: Mapping[str, Any] | Sequence[AbstractAlgorithm],
    *,
    seeds: int | Iterable[int] = 1,
    grid: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    near: Mapping[str, float] | None = None,
    cluster: Any = None,
    progress: bool | None = None,
    tell: Callable[[str], None] | None = None,
) -> xr.Dataset:
    """Train one experiment with each of several algorithms; returns one Dataset with a leading dim `algorithm`.

    `algorithms` maps names to algorithms, or to changes of the experiment: {"algorithm": SAM(0.1, 0.05),
    "steps": 200}. In a list they are named by their class and by what differs. Without `grid` each is a `run`,
    and where their steps differ, readings that one of them lacks are NaN. With `grid` each is a `sweep`; `near`
    and `cluster` are handed on, and with `out` each keeps its runs in a folder of its own below that one, from
    which the same call goes on.

    Comparisons are paired: a seed draws the same signal, training set, test inputs and start for every algorithm,
    so differences over seeds have less noise than the values themselves. For that all must share a space: where
    one of them, such as Adam, does not commute with rotations, all run in `Ambient`. The experiment of each is
    the coordinate `experiment`. `tell` is told the name of each as its turn comes. Interrupted, it returns what
    there is.
    """
    changes = as_changes(algorithms)
    seeds = as_seeds(seeds, "compare").tolist()
    if grid is None:
        for name, given in {"out": out, "near": near, "cluster": cluster}.items():
            if given is not None:
                raise InputError(f"compare({name}=) belongs to sweeps; give a grid as well, or leave it out.")
    tasks = paired(experiment, changes) if grid is None else planned(experiment, changes, grid, seeds)
    folders = {} if out is None else dict(zip(changes, _folders(Path(out), list(changes))))
    found: dict[str, xr.Dataset] = {}
    interrupted = False
    for name, one in tasks.items():
        if tell is not None:
            tell(name)
        try:
            if isinstance(one, Plan):
                found[name] = sweep(one, out=folders.get(name), near=near, cluster=cluster, progress=progress)
            else:
                found[name] = run(one, seeds, progress=progress)
        except KeyboardInterrupt:  # before the first reading
            interrupted = True
        if interrupted or found[name].attrs["interrupted"]:
            break
    if not found:
        raise KeyboardInterrupt
    return _beside(found, interrupted)


def as_changes(algorithms: Any) -> dict[str, dict[str, Any]]:
    """What each algorithm changes of the experiment, by name."""
    if isinstance(algorithms, Mapping):
        named = list(algorithms.items())
    elif isinstance(algorithms, Sequence) and not isinstance(algorithms, str):
        named = list(zip(names_of(algorithms), algorithms))
    else:
        raise InputError(f"compare(algorithms=) must be a mapping such as {_EXAMPLE}, or a list.")
    if not named:
        raise InputError(f"compare needs at least one algorithm, for instance {_EXAMPLE}.")
    found: dict[str, dict[str, Any]] = {}
    for name, value in named:
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"The name of an algorithm must be a word, got {name!r}.")
        if name in found:
            raise InputError(f"compare has {name} twice; give each a name of its own, or leave one out.")
        found[name] = dict(value) if isinstance(value, Mapping) else {"algorithm": value}
    return found


def names_of(algorithms: Sequence[Any]) -> list[str]:
    """Names by class; those of one class are told apart by the fields in which they differ."""
    for one in algorithms:
        if not isinstance(one, AbstractAlgorithm):
            raise InputError(
                f"compare(algorithms=) must be algorithms, such as SAM(0.1, radius=0.05), got {describe(one)}."
            )
    names = []
    for one in algorithms:
        alike = [other for other in algorithms if type(other) is type(one)]
        fields = [field.name for field in dataclasses.fields(one) if field.init]
        texts = {name: [describe(getattr(other, name)) for other in alike] for name in fields}
        inside = [f"{name}={describe(getattr(one, name))}" for name in fields if len(set(texts[name])) > 1]
        names.append(type(one).__name__ + (f"({', '.join(inside)})" if inside else ""))
    return names


def paired(experiment: Any, changes: Mapping[str, Mapping[str, Any]]) -> dict[str, Experiment]:
    """The experiment of each algorithm, all in one space, checked before anything is trained."""
    if not isinstance(experiment, Experiment):
        raise InputError(f"compare needs an Experiment, or a grid and a function, got {experiment!r}.")
    found = _in_one_space(experiment, changes)
    for name in _hindered_first(found):
        found[name].empty_space()
    return found


def planned(
    experiment: Experiment | Callable[..., Experiment],
    changes: Mapping[str, Mapping[str, Any]],
    grid: Mapping[str, Any],
    seeds: int | Iterable[int],
) -> dict[str, Plan]:
    """The plan of each algorithm's sweep, all in one space."""
    if isinstance(experiment, Experiment):
        found: dict[str, Any] = _in_one_space(experiment, changes)
    elif callable(experiment):
        found = {name: _made(experiment, changes, name) for name in changes}
    else:
        raise InputError(f"compare needs an Experiment or a function that returns one, got {experiment!r}.")
    plans = {name: Plan.of(found[name], grid, seeds, verb="compare") for name in _hindered_first(found)}
    if any(axis.name == "algorithm" for plan in plans.values() for axis in plan.axes):
        raise InputError("compare(grid=) cannot sweep the algorithm itself; name each one in algorithms.")
    return {name: plans[name] for name in changes}


def _made(
    make: Callable[..., Experiment], changes: Mapping[str, Mapping[str, Any]], name: str
) -> Callable[..., Any]:
    @functools.wraps(make)
    def one(*args, **at):
        experiment = make(*args, **at)
        return _in_one_space(experiment, changes)[name] if isinstance(experiment, Experiment) else experiment

    return one


def _in_one_space(experiment: Experiment, changes: Mapping[str, Mapping[str, Any]]) -> dict[str, Experiment]:
    """Seeds draw the same vectors for all if all draw from one space: whole vectors, where one needs those."""
    found = {name: changed(experiment, change) for name, change in changes.items()}
    hindered = [one.sees == Sees.COORDINATES for one in found.values()]
    if all(hindered) or not any(hindered):
        return found
    return {
        name: one if one.space is not None or needs_it else dataclasses.replace(one, space=Ambient)
        for (name, one), needs_it in zip(found.items(), hindered)
    }


def _hindered_first(experiments: Mapping[str, Any]) -> list[str]:
    """The names of those that cannot use Span first: where that is the trouble, they say why."""

    def free(name):
        one = experiments[name]
        return not (isinstance(one, Experiment) and one.sees == Sees.COORDINATES)

    return sorted(experiments, key=free)


def _folders(out: Path, names: Sequence[str]) -> list[Path]:
    """A folder for each name, in letters that any file system has."""
    words = [re.sub(r"[^\w.=-]+", "_", name).strip("_.") or "algorithm" for name in names]
    return [
        out / (word if words.index(word) == k else f"{word}-{words[:k].count(word) + 1}")
        for k, word in enumerate(words)
    ]


def _beside(found: Mapping[str, xr.Dataset], interrupted: bool) -> xr.Dataset:
    """One Dataset of all; what they say alike about their origin is kept once."""
    parts = list(found.values())
    texts = [part.attrs["experiment"] for part in parts]
    shared = {k: v for k, v in parts[0].attrs.items() if all(part.attrs.get(k) == v for part in parts)}
    stopped = interrupted or any(part.attrs["interrupted"] for part in parts)
    flags = {name: False for part in parts for name, one in part.data_vars.items() if one.dtype == bool}
    together = xr.concat(
        [_without_own_time(part, parts) for part in parts],
        dim=xr.DataArray(list(found), dims="algorithm", name="algorithm", attrs={"long_name": "algorithm"}),
        data_vars="all",
        coords="minimal",
        compat="override",
        join="outer",
        combine_attrs="override",
        fill_value={**{name: np.nan for part in parts for name in part.data_vars}, **flags, **_ABSENT},
    )
    together = together.assign_coords(experiment=("algorithm", texts, {"long_name": "experiment"}))
    together.attrs = {k: v for k, v in shared.items() if k != "experiment"} | {"interrupted": int(stopped)}
    if "done" in together:
        together.attrs["unfinished"] = int(not together["done"].all())
    return together


def _without_own_time(part: xr.Dataset, parts: Sequence[xr.Dataset]) -> xr.Dataset:
    """Without the theory's unit of time, unless it is that of all: it depends on the learning rate."""
    times = [name for name in part.coords if name == "time" or str(name).startswith("time_")]
    return part.drop_vars(
        [
            name
            for name in times
            if not all(name in other.coords and other[name].equals(part[name]) for other in parts)
        ]
    )
