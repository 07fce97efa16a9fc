"""Where a quantity crosses a level: one threshold for each seed, and how it scales with a size."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from featlab.core.validation import InputError
from featlab.engine.batch import train_many
from featlab.engine.run import as_seeds
from featlab.experiment import Experiment


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


class Thresholds(NamedTuple):
    """What `thresholds` found."""

    at: np.ndarray  # (level, seed)
    trained: np.ndarray  # (seed,), whether all runs behind them trained
    runs: int


def thresholds(
    make: Callable[[float], Experiment],
    variable: str,
    levels: Sequence[float],
    seeds: Sequence[int],
    ends: tuple[float, float],
    *,
    tolerance: float = 0.01,
    together: tuple[int, int] | None = None,
    tell: Callable[[int], None] | None = None,
) -> Thresholds:
    """The value at which a variable of `make(value)` crosses each level, for each seed, between two ends.

    Each seed is searched by bisection of its own. With `together`, (values, rounds), all seeds are read at the
    same values: that many in a round, that many rounds after the first, between the lowest and the highest
    crossing that are still possible. Where every value needs a new program, that is cheaper.
    """
    fine = np.ones(len(seeds), bool)

    def evaluate(points):
        read = train_many([make(float(p)) for p in points], list(seeds), tell=tell)
        if variable not in read:
            raise InputError(f"boundary needs {variable!r}, which no probe records; there is {sorted(read)}.")
        nonlocal fine
        fine = fine & read["trained"] & np.isfinite(read[variable])
        return read[variable]

    low, high = (np.full(len(seeds), end) for end in ends)
    if together is None:
        found = crossings(evaluate, levels, low, high, tolerance=tolerance)
    else:
        found = shared_crossings(lambda p: evaluate(np.full(len(seeds), p)), levels, *ends, *together)
    return Thresholds(found.at, fine, found.evaluations * len(seeds))


def shared_crossings(
    f: Callable[[float], np.ndarray], levels: Sequence[float], low: float, high: float, at_once: int, rounds: int
) -> Crossings:
    """Where f crosses each level, in log scale, all lanes at the same points: `at_once` new ones a round.

    A lane crosses where its values first fall to the level, or rise to it if they begin below. Between two points
    the crossing is read off the straight line.
    """
    if not 0 < low < high < np.inf:
        raise InputError("shared_crossings needs low < high, both finite and above 0.")
    points = np.linspace(np.log(low), np.log(high), at_once)
    values = np.array([f(float(np.exp(point))) for point in points])  # (point, lane)
    wanted = np.asarray(levels, float)[:, None]

    def last_before():
        """The last point before each lane crosses each level; not the very last one."""
        before = np.cumprod((values[:, None] > wanted) == (values[:1, None] > wanted), axis=0).sum(axis=0)
        return np.clip(before - 1, 0, len(points) - 2)

    for _ in range(rounds):
        at = last_before()
        new = np.linspace(points[at.min()], points[at.max() + 1], at_once + 2)[1:-1]
        points = np.concatenate([points, new])
        values = np.concatenate([values, [f(float(np.exp(point))) for point in new]])
        order = np.argsort(points, kind="stable")
        points, values = points[order], values[order]
    at = last_before()
    lanes = np.arange(values.shape[1])
    left, right = values[at, lanes], values[at + 1, lanes]
    crossed = (left > wanted) != (right > wanted)
    share = np.where(crossed, (wanted - left) / np.where(crossed, right - left, 1.0), 0)
    found = np.where(crossed, np.exp(points[at] + share * (points[at + 1] - points[at])), np.nan)
    return Crossings(found, points[at + 1] - points[at], len(points))


def boundary(
    make: Callable[..., Experiment],
    parameter: str,
    variable: str,
    levels: float | Sequence[float],
    *,
    over: Mapping[str, Sequence[float]],
    seeds: int | Sequence[int],
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
    if not names or not all(grids) or not levels:
        raise InputError("boundary needs at least one level and one value of each size in `over`.")
    chosen = as_seeds(seeds, "boundary").tolist()
    found = []
    for values in itertools.product(*grids):
        sizes = dict(zip(names, values))

        def at(value, sizes=sizes):
            return make(**sizes, **{parameter: value})

        found.append(thresholds(at, variable, levels, chosen, between(**sizes), tolerance=tolerance, tell=tell))
    lengths = [len(grid) for grid in grids]
    crossed = np.moveaxis(np.reshape([one.at for one in found], (*lengths, len(levels), len(chosen))), -2, 0)
    trained = np.reshape([one.trained for one in found], (*lengths, len(chosen)))
    return xr.Dataset(
        {parameter: (["level", *names, "seed"], crossed), "trained": ([*names, "seed"], trained)},
        {"level": levels, "seed": chosen, **dict(zip(names, grids))},
        {"runs": sum(one.runs for one in found), "variable": variable},
    )


def falls_to(x: ArrayLike, y: ArrayLike, level: float, least: float) -> np.ndarray:
    """Where y, read at each x for each lane, first falls to a level, on the straight line in the logarithm of y.

    y is (x, lane). Values below `least` are too small to be known and count as that. NaN where a lane begins at or
    below the level, does not fall to it, or has no value somewhere.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    if y.ndim != 2 or len(y) != len(x) or not (least > 0 and level > 0):
        raise InputError("falls_to needs one row of values for each x, and a level and a least value above 0.")
    below = y <= level
    last = np.argmax(below, axis=0)  # the first one below
    fine = (last > 0) & np.isfinite(y).all(axis=0)
    last, lanes = np.maximum(last, 1), np.arange(y.shape[1])
    above, under = (np.log(np.maximum(y[at, lanes], least)) for at in (last - 1, last))
    share = (above - np.log(level)) / np.where(fine, above - under, 1.0)
    return np.where(fine, x[last - 1] + share * (x[last] - x[last - 1]), np.nan)


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
