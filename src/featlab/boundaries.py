"""Where a quantity crosses a level: one threshold for each seed, and how it scales with a size."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

from featlab.endings import endings
from featlab.experiment import Experiment
from featlab.fields import InputError


class Crossings(NamedTuple):
    """What `crossings` found, for each level and lane."""

    at: np.ndarray  # (level, lane); NaN where the level is not crossed between the ends
    width: np.ndarray  # (level, lane), of the last bracket, in log scale
    evaluations: int


def crossings(
    f: Callable[[np.ndarray], np.ndarray],
    levels: Sequence[float],
    low: np.ndarray,
    high: np.ndarray,
    *,
    tolerance: float = 0.01,
) -> Crossings:
    """Where f crosses each level between low and high, by bisection in log scale, many lanes at once.

    f maps one value for each lane to one number for each lane; it should be monotone in each, up or down. Every
    evaluation narrows the brackets of all levels. When they are narrower than `tolerance` (a relative width), the
    crossing is read off the straight line between their ends.
    """
    low, high = np.asarray(low, float), np.asarray(high, float)
    if low.shape != high.shape or low.ndim != 1 or not np.all((low > 0) & (low < high) & (high < np.inf)):
        raise InputError("crossings needs low < high, both finite and above 0, one of each for every lane.")
    low, high = np.log(low), np.log(high)
    if not tolerance > 0:
        raise InputError(f"crossings(tolerance=) must be above 0, got {tolerance!r}.")
    wanted = np.asarray(levels, float)[:, None]
    shape = (len(wanted), len(low))
    left, right = np.broadcast_to(low, shape).copy(), np.broadcast_to(high, shape).copy()
    at_left, at_right = (np.broadcast_to(np.asarray(f(np.exp(x)), float), shape).copy() for x in (low, high))
    crossed = (at_left - wanted) * (at_right - wanted) <= 0
    evaluations = 2
    lanes = np.arange(len(low))
    while (widths := np.where(crossed, right - left, 0)).max(initial=0) > tolerance:
        x = ((left + right) / 2)[np.argmax(widths, axis=0), lanes]
        value = np.asarray(f(np.exp(x)), float)
        evaluations += 1
        inside = (left < x) & (x < right)
        beyond = (value - wanted) * (at_right - wanted) > 0  # on the right end's side of the level
        to_left, to_right = inside & ~beyond, inside & beyond
        left, at_left = np.where(to_left, x, left), np.where(to_left, value, at_left)
        right, at_right = np.where(to_right, x, right), np.where(to_right, value, at_right)
    gap = at_right - at_left
    share = np.clip(np.where(gap == 0, 0.5, (wanted - at_left) / np.where(gap == 0, 1, gap)), 0, 1)
    at = np.where(crossed, np.exp(left + share * (right - left)), np.nan)
    return Crossings(at, right - left, evaluations)


def boundary(
    make: Callable[..., Experiment],
    parameter: str,
    variable: str,
    levels: float | Sequence[float],
    *,
    over: Mapping[str, Sequence[float]],
    seeds: Sequence[int],
    between: Callable[..., tuple[float, float]],
    tolerance: float = 0.01,
    tell: Callable[[int], None] | None = None,
) -> xr.Dataset:
    """The value of a parameter at which a variable crosses a level, for each size and each seed.

    `make(**sizes, parameter=value)` states the experiment, whose probes record `variable`, and
    `between(**sizes)` the two values to search between. Each seed keeps its randomness at every value, so its
    threshold is sharp even where the average over seeds is not. Returns the thresholds under the parameter's name,
    with dims level, sizes and seed; `trained`, whether all runs behind a threshold trained; and `runs`.
    """
    levels = [levels] if isinstance(levels, int | float) else list(levels)
    names, grids = list(over), [list(values) for values in over.values()]
    if not names or not all(grids) or not levels or not len(seeds):
        raise InputError("boundary needs at least one level, one seed and one value of each size in `over`.")
    cells, trained, runs = [], [], 0
    for values in itertools.product(*grids):
        sizes = dict(zip(names, values))
        fine = np.ones(len(seeds), bool)

        def evaluate(points, sizes=sizes, fine=fine):
            read = endings([make(**sizes, **{parameter: float(p)}) for p in points], list(seeds), tell=tell)
            if variable not in read:
                raise InputError(f"boundary needs {variable!r}, which no probe records; there is {sorted(read)}.")
            fine &= read["trained"]
            return read[variable]

        ends = [np.full(len(seeds), end) for end in between(**sizes)]
        found = crossings(evaluate, levels, ends[0], ends[1], tolerance=tolerance)
        runs += found.evaluations * len(seeds)
        cells.append(found.at)
        trained.append(fine)
    lengths = [len(grid) for grid in grids]
    at = np.moveaxis(np.reshape(cells, (*lengths, len(levels), len(seeds))), -2, 0)
    return xr.Dataset(
        {
            parameter: (["level", *names, "seed"], at),
            "trained": ([*names, "seed"], np.reshape(trained, (*lengths, len(seeds)))),
        },
        {"level": levels, "seed": list(seeds), **dict(zip(names, grids))},
        {"runs": runs, "variable": variable},
    )


class Exponents(NamedTuple):
    """Slopes in log-log scale, one for each seed."""

    overall: np.ndarray  # (seed,)
    local: np.ndarray  # (seed, gap), between neighbouring sizes
    drift: np.ndarray  # (seed,), upper half of the sizes less the lower half


def exponents(x: np.ndarray, y: np.ndarray) -> Exponents:
    r"""The exponent of $y \sim x^a$ for each seed, by least squares in log scale; y is (size, seed)."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    fits = y.ndim == 2 and y.size > 0 and len(y) == len(x)
    if not fits or len(x) < 2 or len(np.unique(x)) < len(x) or np.any(x <= 0):
        raise InputError("exponents needs at least two different positive sizes, and one row of values for each.")
    order = np.argsort(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        u, v = np.log(x[order]), np.log(y[order])
    v = np.where(np.isfinite(v), v, np.nan)
    half = (len(x) + 1) // 2
    drift = _slopes(u[-half:], v[-half:]) - _slopes(u[:half], v[:half]) if len(x) > 2 else np.zeros(y.shape[1])
    return Exponents(_slopes(u, v), (np.diff(v, axis=0) / np.diff(u)[:, None]).T, drift)


def _slopes(u, v):
    centred = u - u.mean()
    return centred @ v / (centred @ centred)
