"""From labelled arrays to cells and seeds: what a judge compares, and how it changes with size."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from featlab.claims.intervals import mean_interval, mean_of
from featlab.core.validation import InputError

BEYOND = 10.0  # how far off a crossing counts that lies outside the grid
JACKKNIFE = "jackknife"  # the coordinate that says so
# Cells of these names are sizes, which a theorem sends to infinity.
GROWING = ("n", "d", "width", "N", "samples", "neurons", "dimension", "dimensions", "depth")


class Trend(NamedTuple):
    """How the value of a cell changes along a size: by how much over its range, one number for each seed."""

    dim: str
    along: str
    cell: int  # the one at the largest size
    change: np.ndarray  # (seed,)
    relative: bool  # of the logarithm, where all values are positive
    size: bool  # whether the coordinate itself says that it is one
    halves: np.ndarray  # (2, seed): the pace over the lower and over the upper half of the sizes
    steps: tuple[float, float, float]  # from half to half, from the upper one to the end, over all: in log size
    to_zero: bool = False  # of positive values as they are: about an edge that no factor leads to, 0 or below

    def ahead(self, now: float) -> list[float]:
        """The value as far again, for each pace that is not chance.

        At the pace of all sizes, or at one that goes on slowing down as it plainly has; and where the upper half
        of the sizes turns back, at the pace of that half.
        """
        found, upper = [], self.steps[2] * self.halves[1]
        if _not_chance(self.change):
            slowing = self._slowing()
            if slowing is None:
                found.append(mean_of(self.change))
            elif not self.to_zero:  # which a power of the size never reaches
                found.append(slowing)
        if _not_chance(upper) and not (_not_chance(self.change) and mean_of(self.change) * mean_of(upper) > 0):
            found.append(mean_of(upper))
        return [now * math.exp(min(one, 700.0)) if self.relative else now + one for one in found]

    def _slowing(self) -> float | None:
        """The change as far again if the pace falls by the same factor from half to half; none if it does not."""
        between, left, over = self.steps
        lower, upper = (mean_of(one) for one in self.halves)
        if not (between > 0 and lower * upper > 0 and abs(upper) < abs(lower)):
            return None
        low, high = mean_interval((self.halves[0] - self.halves[1]) * np.sign(lower))
        if not low > 0:
            return None
        decay = math.log(lower / upper) / between
        return upper * math.exp(-decay * left) * -math.expm1(-decay * over) / decay


class Rows(NamedTuple):
    """Values by cell and seed, the cells' names, and their trends along sizes."""

    samples: np.ndarray  # (cell, seed), or (cell, inner, seed)
    cells: tuple[str, ...]
    chance: bool
    trends: tuple[Trend, ...]
    seeds: tuple[Any, ...] | None  # their labels, if there are any
    jackknife: bool = False  # whether its values by seed are pseudo-values, made of all seeds
    at: tuple[tuple[str, float], ...] = ()  # sizes that all its cells have


def arranged(x: Any, name: str, inner: str | None = None) -> Rows:
    """Values by cell and seed, with the cells' names; `inner` is a dim kept between the two."""
    if isinstance(x, Mapping):
        return _together(x, {str(label): arranged(one, name, inner) for label, one in x.items()}, name)
    if not isinstance(x, xr.DataArray):
        values = np.asarray(x, float)
        if values.ndim not in (0, 1, 2) or values.size == 0:
            raise InputError(f"{name!r} needs values with dims (seed) or (cell, seed), got shape {values.shape}.")
        values = np.atleast_2d(values)
        return Rows(values, ("",) * len(values), True, (), None)
    chance, at = "seed" in x.dims, _sizes_of_all(x)
    if not x.size:
        raise InputError(f"{name!r} needs values, got none.")
    seeds = tuple(x["seed"].values.tolist()) if "seed" in x.indexes else None
    jackknife = JACKKNIFE in x.coords
    x = x if chance else x.expand_dims("seed")
    outer = [dim for dim in x.dims if dim not in ("seed", inner)]
    kept = [inner, "seed"] if inner else ["seed"]
    x = x.transpose(*outer, *kept)
    samples = x.values.astype(float).reshape(-1, *x.shape[len(outer) :])
    if not outer:
        return Rows(samples, ("",), chance, (), seeds, jackknife, at)
    labels = [[_label(x[dim], i) for i in range(x.sizes[dim])] for dim in outer]
    cells = [", ".join(filter(None, words)) for words in _product(labels)]
    return Rows(samples, tuple(cells), chance, () if inner else tuple(_trends(x, outer)), seeds, jackknife, at)


def _together(given: Mapping[Any, Any], parts: dict[str, Rows], name: str) -> Rows:
    """The cells of a dict of arrays."""
    seeds = {part.seeds for part in parts.values() if part.seeds is not None}
    if not parts or len({part.samples.shape[-1] for part in parts.values()}) > 1 or len(seeds) > 1:
        raise InputError(f"{name!r} needs cells with the same seeds.")
    cells = [_joined(label, cell) for label, part in parts.items() for cell in part.cells]
    trends, before = list(_trends_of_parts(given, list(parts.values()))), 0
    for part in parts.values():
        trends += [trend._replace(cell=trend.cell + before) for trend in part.trends]
        before += len(part.cells)
    samples = np.concatenate([part.samples for part in parts.values()])
    jackknife = any(part.jackknife for part in parts.values())
    chance = any(part.chance for part in parts.values())
    return Rows(samples, tuple(cells), chance, tuple(trends), seeds.pop() if seeds else None, jackknife)


def _trends(x: xr.DataArray, outer) -> Iterator[Trend]:
    """The trends of each row of cells along each dim of numbers."""
    places = np.arange(math.prod(x.sizes[dim] for dim in outer)).reshape([x.sizes[dim] for dim in outer])
    for axis, dim in enumerate(outer):
        coordinate = _size_along(x, dim)
        sizes = coordinate.values
        if not _may_be_sizes(sizes):
            continue
        values = np.moveaxis(x.values.astype(float), axis, 0).reshape(len(sizes), -1, x.shape[-1])
        symbol, size = str(coordinate.attrs.get("symbol", coordinate.name)), bool(coordinate.attrs.get("size"))
        for k, cells in enumerate(np.moveaxis(places, axis, 0).reshape(len(sizes), -1).T):
            largest = int(cells[np.argmax(sizes)])
            yield from _both(str(coordinate.name), symbol, largest, sizes, values[:, k], size)


def _trends_of_parts(given: Mapping[Any, Any], parts: list[Rows]) -> Iterator[Trend]:
    """The trends along a size that only tells the arrays of a dict apart: by their labels, or a coordinate."""
    if len({len(part.cells) for part in parts}) > 1:
        return
    said = [_numbers_of(label, one) for label, one in given.items()]
    count = len(parts[0].cells)
    for dim in sorted(set.intersection(*map(set, said))):
        sizes = np.array([one[dim] for one in said])
        if not _may_be_sizes(sizes) or len(set(sizes)) < len(sizes):
            continue
        for k in range(count):
            largest, row = int(np.argmax(sizes)) * count + k, np.array([part.samples[k] for part in parts])
            yield from _both(dim, dim, largest, sizes, row, False)


def _numbers_of(label: Any, one: Any) -> dict[str, float]:
    """The numbers by name that an array of a dict stands for."""
    coords = one.coords.items() if isinstance(one, xr.DataArray) else ()
    found = {str(name): float(c) for name, c in coords if c.ndim == 0 and np.issubdtype(c.dtype, np.number)}
    if words := re.fullmatch(r"\s*(\w+)\s*=\s*([0-9.e+]+)\s*", str(label)):
        with contextlib.suppress(ValueError):
            found[words[1]] = float(words[2])
    return found


def _sizes_of_all(x: xr.DataArray) -> tuple[tuple[str, float], ...]:
    """The sizes that an array was read at, where there is one of each."""
    said = [(str(name), c) for name, c in x.coords.items() if c.size == 1 and np.issubdtype(c.dtype, np.number)]
    return tuple((name, c.item()) for name, c in said if name in GROWING or c.attrs.get("size"))


def trend_along(name: str, sizes: Sequence[float], rows: Sequence[np.ndarray], cell: int) -> tuple[Trend, ...]:
    """The trend of a cell that is judged at each size by a check of its own."""
    ordered = np.asarray(sizes, float)
    return tuple(_both(name, name, cell, ordered, np.array(rows), True)) if _may_be_sizes(ordered) else ()


def _may_be_sizes(sizes: np.ndarray) -> bool:
    if len(sizes) < 3 or not np.issubdtype(sizes.dtype, np.number):
        return False
    return bool(np.all(np.isfinite(sizes) & (sizes > 0)))


def _size_along(x: xr.DataArray, dim: Any) -> xr.DataArray:
    """The coordinate that says how large the cells of a dim are: its own, or another along it that is a size."""
    others = [c for c in x.coords.values() if c.dims == (dim,) and c.name != dim and c.attrs.get("size")]
    return x[dim] if x[dim].attrs.get("size") or not others else others[0]


def _both(name: str, symbol: str, cell: int, sizes: np.ndarray, row: np.ndarray, size: bool) -> Iterator[Trend]:
    """The trends of one row of cells: of the logarithm of positive values, and of any values as they are."""
    positive = bool(np.all(row[np.isfinite(row)] > 0))
    if positive:
        yield _trend(name, symbol, cell, sizes, row, size, relative=True)
    yield _trend(name, symbol, cell, sizes, row, size, relative=False)._replace(to_zero=positive)


def _trend(
    name: str, symbol: str, cell: int, sizes: np.ndarray, row: np.ndarray, size: bool, relative: bool
) -> Trend:
    """From the values by size and seed of one row of cells."""
    order = np.argsort(sizes)
    u, row = np.log(np.asarray(sizes, float))[order], row[order]
    there = np.isfinite(row)
    values = np.where(there, np.log(np.where(there, row, 1.0)) if relative else row, np.nan)
    lower, upper = slice(0, len(u) // 2 + 1), slice((len(u) - 1) // 2, None)
    halves = np.array([_pace(u[half], values[half]) for half in (lower, upper)])
    middle = u[upper].mean()
    steps = (float(middle - u[lower].mean()), float(u[-1] - middle), float(np.ptp(u)))
    return Trend(name, symbol, cell, np.ptp(u) * _pace(u, values), relative, size, halves, steps)


def _not_chance(change: np.ndarray) -> bool:
    low, high = mean_interval(change)
    return not low <= 0 <= high


def _pace(u: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The slope by least squares, for each seed; one without a value at some size is fitted on the others."""
    there = np.isfinite(values)
    if there.all():
        centred = (u - u.mean())[:, None]
    else:
        count = np.maximum(there.sum(axis=0), 1)
        centred = np.where(there, u[:, None] - np.where(there, u[:, None], 0.0).sum(axis=0) / count, 0.0)
    spread = (centred**2).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (centred * np.where(there, values, 0.0)).sum(axis=0) / np.where(spread > 0, spread, np.nan)


def _label(coordinate: xr.DataArray, i: int) -> str:
    return named(coordinate.attrs.get("symbol", coordinate.name), coordinate.values[i])


def named(symbol: Any, value: Any) -> str:
    """A cell's name along one dim."""
    if isinstance(value, str):
        return value
    return f"{symbol} = {value:g}" if np.issubdtype(type(value), np.number) else f"{symbol} = {value}"


def percent(share: float) -> str:
    """In whole percent, rounded down: 89.7 % are not 90 %."""
    return f"{math.floor(100 * share + 1e-9)}%"


def _joined(*words: str) -> str:
    return ", ".join(filter(None, words))


def _product(lists):
    return [()] if not lists else [(one, *rest) for one in lists[0] for rest in _product(lists[1:])]


def ratio_of_means(top: xr.DataArray, bottom: xr.DataArray) -> xr.DataArray:
    """The mean of one over the mean of the other, as the jackknife's pseudo-values: one for each seed.

    Their mean estimates the ratio of means where the ratios of single seeds wander too far to be averaged.
    """
    there = top.notnull() & bottom.notnull()
    top, bottom, count = top.where(there), bottom.where(there), there.sum("seed")
    without = (top.sum("seed") - top) / (bottom.sum("seed") - bottom)
    values = count * (top.mean("seed") / bottom.mean("seed")) - (count - 1) * without
    return values.assign_coords({JACKKNIFE: True})


def switch(x: np.ndarray, y: np.ndarray, level: float, rising: bool) -> float:
    """Where y, rising or falling, crosses the level on the grid x; NaN where y has a gap."""
    y, level = (y, level) if rising else (-y, -level)
    above = y > level
    changes = np.flatnonzero(above[1:] & ~above[:-1])
    if not np.all(np.isfinite(y)):
        return math.nan
    if not len(changes):
        # Before the grid or beyond it, nobody knows how far: so far that a few such seeds among others leave
        # no narrow interval, while all of them together still refute.
        return float(x[0] / BEYOND if above[-1] else x[-1] * BEYOND)
    i = changes[0]
    share = (level - y[i]) / (y[i + 1] - y[i])
    return float(np.exp(np.log(x[i]) + share * (np.log(x[i + 1]) - np.log(x[i]))))
