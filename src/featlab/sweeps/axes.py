"""What a sweep goes over: axes, their values, and the experiment of every cell of the grid.

An axis is a dotted field of an experiment, `data.snr`, or an argument of a function that returns one. Its values
are a list, or a range such as `20:200:8log`: from 20 to 200 in 8 steps of equal ratio.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from featlab.core.validation import InputError, Kind, did_you_mean, kind_of
from featlab.engine.program import Table
from featlab.experiment import RESERVED, Experiment
from featlab.probes.running import as_running
from featlab.text import changed, describe, rebuild

MOST_CELLS = 10_000_000

_RANGE = re.compile(r"([^:,]+):([^:,]+):(\d+)(log)?")


@dataclasses.dataclass(frozen=True)
class Axis:
    """One axis of a grid."""

    path: str  # data.snr, or the argument's name
    values: tuple[Any, ...]
    name: str  # of the dim
    kind: Kind | None = None  # of the field, where it was declared: its symbol and its words

    @property
    def numeric(self) -> bool:
        return all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.values)

    @property
    def scale(self) -> str:
        """Whether the values are evenly spaced in their logarithm."""
        values = np.array(self.values, float) if self.numeric else np.zeros(0)
        if len(values) < 3 or np.any(values <= 0) or not np.all(np.isfinite(values)):
            return "linear"
        even, ratios = np.diff(values), np.diff(np.log(values))
        return "log" if np.ptp(ratios) / abs(ratios.mean()) < np.ptp(even) / abs(even.mean()) else "linear"

    @property
    def coordinate(self) -> tuple[str, Any, dict[str, str]]:
        """The axis as a coordinate of a Dataset; what is no number is written as text."""
        plain = self.path.rpartition(".")[2].replace("_", " ")
        symbol, means = (self.kind.symbol, self.kind.means) if self.kind is not None else ("", "")
        attrs = {"symbol": symbol, "long_name": means or plain, "path": self.path, "scale": self.scale}
        return self.name, list(self.values) if self.numeric else [describe(v) for v in self.values], attrs


def as_axes(grid: Mapping[str, Any], what: Experiment | Callable[..., Experiment]) -> list[Axis]:
    """The axes of a grid, their values checked as far as they can be without an experiment."""
    if not isinstance(grid, Mapping) or not grid:
        raise InputError('sweep needs a grid such as {"data.n": [20, 40], "data.snr": "0.1:1:10log"}.')
    for path in grid:
        if not isinstance(path, str) or not path:
            raise InputError(f"The axis of a grid must be named, for instance data.snr, got {path!r}.")
        if any(isinstance(other, str) and other.startswith(f"{path}.") for other in grid):
            raise InputError(f"The axis {path} replaces a part that another axis changes.")
    short = [path.rpartition(".")[2] for path in grid]
    if isinstance(what, Experiment):
        taken = {name for p in what.probes for name, _ in (as_running(p) or p).variables} | RESERVED | {"done"}
    else:
        taken = RESERVED | {"done"}
    axes = []
    for path, name in zip(grid, short):
        values = as_values(grid[path], path)
        if isinstance(what, Experiment) and _is_range(grid[path]) and _counts(what, path):
            values = _whole(values)
        unique = name if short.count(name) == 1 and name not in taken else path
        axes.append(Axis(path, values, unique, field_kind(what, path)))
    cells = math.prod(len(axis.values) for axis in axes)
    if cells > MOST_CELLS:
        raise InputError(f"This grid has {cells:,} cells; the most a sweep holds are {MOST_CELLS:,}.")
    return axes


def field_kind(what: Experiment | Callable[..., Experiment], path: str) -> Kind | None:
    """What the field at this path of an experiment was declared to hold; nothing for a function's argument."""
    *way, name = path.split(".")
    owner: Any = what
    for step in way:
        owner = getattr(owner, step, None)
    return kind_of(owner, name)


def as_values(values: Any, path: str) -> tuple[Any, ...]:
    """The values of an axis: of a list, of a range a:b:20log, or of words separated by commas."""
    if isinstance(values, str):
        values = _parsed(values, path)
    elif not isinstance(values, Iterable):
        raise InputError(f"The values of {path} must be a list or a range such as 0.1:1:10log, got {values!r}.")
    found = tuple(v.item() if hasattr(v, "item") and np.ndim(v) == 0 else v for v in values)
    if not found:
        raise InputError(f"The axis {path} has no values.")
    if any(isinstance(v, float) and math.isnan(v) for v in found):
        raise InputError(f"The axis {path} has a value that is not a number (nan).")
    seen: dict[Any, None] = {}
    for value in found:
        key = _hashable((isinstance(value, bool), value))
        if key in seen:
            raise InputError(f"The axis {path} has the value {value!r} twice.")
        seen[key] = None
    return found


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:  # known by what it is
        return id(value[1])
    return value


def _is_range(values: Any) -> bool:
    return isinstance(values, str) and _RANGE.fullmatch(values.strip()) is not None


def _parsed(text: str, path: str) -> Sequence[Any]:
    form = _RANGE.fullmatch(text.strip())
    if not text.strip():
        return ()
    if form is None:
        if ":" in text:
            raise InputError(f"A range must have the form 0.1:1:10 or 0.1:1:10log, got {path}={text}.")
        found = rebuild(f"({text},)")
        return found
    first, last, count = *(_number(end, path) for end in form.groups()[:2]), int(form[3])
    if count < 1 or (count > 1 and first == last):
        raise InputError(f"A range must have different ends and at least one value, got {path}={text}.")
    if count > MOST_CELLS:
        raise InputError(f"A range has at most {MOST_CELLS:,} values, got {path}={text}.")
    if form[4] is None:
        return _between(first, last, np.linspace(first, last, count))
    if min(first, last) <= 0:
        raise InputError(f"A range in log scale must lie above 0, got {path}={text}.")
    return _between(first, last, np.geomspace(first, last, count))


def _between(first: float, last: float, values: np.ndarray) -> list[float]:
    """The ends exactly, and round numbers where rounding noise is all that stands against them."""
    rounding = 1e-12 * max(abs(first), abs(last))
    inside = (0.0 if abs(v) < rounding else float(f"{v:.12g}") for v in values[1:-1])
    return [first, *inside, *[last] * (len(values) > 1)]


def _number(text: str, path: str) -> float:
    value = rebuild(text)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"The ends of a range must be finite numbers, got {path}={text}.")
    return float(value)


def _whole(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values of a range for a field that counts: whole numbers, each once."""
    return tuple(dict.fromkeys(round(v) if isinstance(v, float) else v for v in values))


def _counts(experiment: Experiment, path: str) -> bool:
    """Whether a field holds whole numbers alone."""
    *way, last = path.split(".")
    owner: Any = experiment
    for step in way:
        owner = getattr(owner, step, None)
    kinds = {f.name: str(f.type) for f in dataclasses.fields(owner)} if dataclasses.is_dataclass(owner) else {}
    return type(getattr(owner, last, None)) is int and "float" not in kinds.get(last, "")


def tables(what: Experiment | Callable[..., Experiment], axes: list[Axis]) -> list[Table]:
    """The experiments of all cells, in the order of the grid; raises for the first that cannot be."""
    return _of_fields(what, axes) if isinstance(what, Experiment) else _of_function(what, axes)


def _of_function(make: Callable[..., Experiment], axes: list[Axis]) -> list[Table]:
    if not callable(make):
        raise InputError(f"sweep needs an Experiment or a function that returns one, got {make!r}.")
    names = [axis.path for axis in axes]
    try:
        parameters = inspect.signature(make).parameters
    except (TypeError, ValueError):
        parameters = {}
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for name in names:
        if parameters and not open_ended and name not in parameters:
            raise InputError(f"The function to sweep has no argument {name!r}; {did_you_mean(name, parameters)}")
    for name, one in parameters.items():
        needed = one.default is one.empty and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
        if needed and name not in names:
            raise InputError(f"The function to sweep needs values of {name!r}, which is no axis of the grid.")
    found = []
    for place, values in enumerate(itertools.product(*[axis.values for axis in axes])):
        experiment = make(**dict(zip(names, values)))
        if not isinstance(experiment, Experiment):
            raise InputError(f"The function to sweep must return an Experiment, got {experiment!r}.")
        found.append(Table.of(experiment, place))
    return found


def _of_fields(experiment: Experiment, axes: list[Axis]) -> list[Table]:
    firsts = {axis.path: axis.values[0] for axis in axes}
    places = {axis.path: _real_place(experiment, firsts, axis) for axis in axes}
    fixed = [axis for axis in axes if places[axis.path] is None]
    real = [axis for axis in axes if places[axis.path] is not None]
    shape = tuple(len(axis.values) for axis in axes)
    cells = np.arange(math.prod(shape)).reshape(shape)
    found = []
    for chosen in itertools.product(*[range(len(axis.values)) for axis in fixed]):
        at = {axis.path: axis.values[i] for axis, i in zip(fixed, chosen)}
        # The corners of the real axes: where one number limits another, it does so there first.
        for corner in itertools.product(*[dict.fromkeys((min(a.values), max(a.values))) for a in real]):
            changed(experiment, at | dict(zip([a.path for a in real], corner)))
        first = changed(experiment, at | {axis.path: axis.values[0] for axis in real})
        index: list[Any] = [slice(None)] * len(axes)
        for axis, i in zip(fixed, chosen):
            index[axes.index(axis)] = i
        inside = cells[tuple(index)].reshape(-1)
        mesh = np.meshgrid(*[np.array(axis.values, float) for axis in real], indexing="ij")
        columns = {p: v.reshape(-1) for axis, v in zip(real, mesh) if (p := places[axis.path]) is not None}
        found.append(Table(first, columns, inside))
    return found


def _real_place(experiment: Experiment, firsts: dict[str, Any], axis: Axis) -> int | None:
    """The place of the one real number that this axis changes, or None where it changes more.

    Every value is tried, so that each is checked by the part it belongs to.
    """
    first = changed(experiment, firsts)
    *way, name = axis.path.split(".")
    part: Any = first
    for step in way:
        part = getattr(part, step)
    flat = [jax.tree.flatten(changed(part, {name: value})) for value in axis.values]
    leaves, parts = flat[0]
    if any(other != parts for _, other in flat) or _checks_itself(first, axis.path):
        return None
    differing = {
        i for other, _ in flat for i, (a, b) in enumerate(zip(leaves, other)) if type(a) is not type(b) or a != b
    }
    if len(differing) != 1:
        return None
    place = differing.pop()
    if not all(isinstance(other[place], float) and math.isfinite(other[place]) for other, _ in flat):
        return None
    whole = [
        jax.tree.leaves(changed(experiment, firsts | {axis.path: value}))
        for value in (min(axis.values), max(axis.values))
    ]
    return next(i for i, (low, high) in enumerate(zip(*whole)) if low != high)


def _checks_itself(experiment: Experiment, path: str) -> bool:
    """Whether a part on the way has checks of the user's own, which must see every combination."""
    part: Any = experiment
    for step in path.split(".")[:-1]:
        part = getattr(part, step)
        for kind in type(part).__mro__:
            checks = {"__check_init__", "__post_init__"} & set(vars(kind))
            if checks and not kind.__module__.startswith("featlab."):
                return True
    return False
