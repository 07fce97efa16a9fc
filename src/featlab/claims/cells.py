"""From labelled arrays to cells and seeds: what a judge compares, and how it changes with size."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from featlab.claims.intervals import mean_of
from featlab.core.validation import InputError

BEYOND = 10.0  # how far off a crossing counts that lies outside the grid
GROWING = ("n", "d", "width")  # cells of these names are sizes, which a theorem sends to infinity


class Account(NamedTuple):
    """What came of the runs behind an array, as the lab says it in coordinates that arithmetic carries along.

    A reading of the lab has `trained` for each run, `all_trained` for each seed, and the least share of runs that
    trained, over its cells, with the name of that cell. Arrays whose coordinates differ lose them when they meet:
    what was made of two readings has no account unless both are whole.
    """

    least: float  # share of the runs, of the cell with fewest
    at: str  # the name of that cell

    @staticmethod
    def of(x: xr.DataArray) -> Account | None:
        """What the array says; nothing, if it was lost on the way."""
        if "least_trained" not in x.coords:
            return None
        at = x.coords.get("least_trained_at")
        return Account(float(x["least_trained"].min()), str(at.values) if at is not None and at.ndim == 0 else "")


class Trend(NamedTuple):
    """How the value of a cell changes along a size: by how much over its range, one number for each seed."""

    dim: str
    along: str
    cell: int  # the one at the largest size
    change: np.ndarray  # (seed,)
    relative: bool  # of the logarithm, where all values are positive
    size: bool  # whether the coordinate itself says that it is one

    def ahead(self, now: float) -> float:
        """The value as far again, at the same pace."""
        change = mean_of(self.change)
        return now * math.exp(min(change, 700.0)) if self.relative else now + change


class Rows(NamedTuple):
    """Values by cell and seed, the cells' names, and their trends along sizes."""

    samples: np.ndarray  # (cell, seed), or (cell, inner, seed)
    cells: tuple[str, ...]
    chance: bool
    trends: tuple[Trend, ...]
    seeds: tuple[Any, ...] | None  # their labels, if there are any
    account: Account | None


def arranged(x: Any, name: str, inner: str | None = None) -> Rows:
    """Values by cell and seed, with the cells' names; `inner` is a dim kept between the two."""
    if isinstance(x, Mapping):
        return _together(x, {str(label): arranged(one, name, inner) for label, one in x.items()}, name)
    if not isinstance(x, xr.DataArray):
        values = np.asarray(x, float)
        if values.ndim not in (0, 1, 2) or values.size == 0:
            raise InputError(f"{name!r} needs values with dims (seed) or (cell, seed), got shape {values.shape}.")
        values = np.atleast_2d(values)
        return Rows(values, ("",) * len(values), True, (), None, None)
    x, chance = masked(x), "seed" in x.dims
    if not x.size:
        raise InputError(f"{name!r} needs values, got none.")
    seeds = tuple(x["seed"].values.tolist()) if "seed" in x.indexes else None
    account = Account.of(x)
    x = x if chance else x.expand_dims("seed")
    outer = [dim for dim in x.dims if dim not in ("seed", inner)]
    kept = [inner, "seed"] if inner else ["seed"]
    x = x.transpose(*outer, *kept)
    samples = x.values.astype(float).reshape(-1, *x.shape[len(outer) :])
    if not outer:
        return Rows(samples, ("",), chance, (), seeds, account)
    labels = [[_label(x[dim], i) for i in range(x.sizes[dim])] for dim in outer]
    cells = [", ".join(filter(None, words)) for words in _product(labels)]
    return Rows(samples, tuple(cells), chance, () if inner else tuple(_trends(x, outer)), seeds, account)


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
    accounts = [part.account for part in parts.values()]
    account = None if None in accounts else min(one for one in accounts if one is not None)
    chance = any(part.chance for part in parts.values())
    return Rows(samples, tuple(cells), chance, tuple(trends), seeds.pop() if seeds else None, account)


def masked(x: xr.DataArray) -> xr.DataArray:
    """Without the runs that did not train, whatever was made of their numbers.

    Where it is not known which run of a seed a number is about, none of the seed's may be missing.
    """
    known = next((name for name in ("trained", "all_trained") if name in x.coords), None)
    return x if known is None else x.where(x[known])


def _trends(x: xr.DataArray, outer) -> Iterator[Trend]:
    """The trends of each row of cells along each dim of numbers."""
    places = np.arange(math.prod(x.sizes[dim] for dim in outer)).reshape([x.sizes[dim] for dim in outer])
    for axis, dim in enumerate(outer):
        sizes = x[dim].values
        if not _may_be_sizes(sizes):
            continue
        values = np.moveaxis(x.values.astype(float), axis, 0).reshape(len(sizes), -1, x.shape[-1])
        attrs = x[dim].attrs
        for k, cells in enumerate(np.moveaxis(places, axis, 0).reshape(len(sizes), -1).T):
            change, relative = _changes(sizes, values[:, k])
            largest, symbol = int(cells[np.argmax(sizes)]), str(attrs.get("symbol", dim))
            yield Trend(str(dim), symbol, largest, change, relative, bool(attrs.get("size")))


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
            change, relative = _changes(sizes, np.array([part.samples[k] for part in parts]))
            yield Trend(dim, dim, int(np.argmax(sizes)) * count + k, change, relative, False)


def _numbers_of(label: Any, one: Any) -> dict[str, float]:
    """The numbers by name that an array of a dict stands for."""
    coords = one.coords.items() if isinstance(one, xr.DataArray) else ()
    found = {str(name): float(c) for name, c in coords if c.ndim == 0 and np.issubdtype(c.dtype, np.number)}
    if words := re.fullmatch(r"\s*(\w+)\s*=\s*([0-9.e+]+)\s*", str(label)):
        with contextlib.suppress(ValueError):
            found[words[1]] = float(words[2])
    return found


def _may_be_sizes(sizes: np.ndarray) -> bool:
    if len(sizes) < 3 or not np.issubdtype(sizes.dtype, np.number):
        return False
    return bool(np.all(np.isfinite(sizes) & (sizes > 0)))


def _changes(sizes: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, bool]:
    """The change over the range of the sizes, by least squares in their logarithm, for each seed.

    A seed without a value at some size is fitted on the others.
    """
    u = np.log(np.asarray(sizes, float))
    there = np.isfinite(row)
    relative = bool(np.all(row[there] > 0))
    values = np.where(there, np.log(np.where(there, row, 1.0)) if relative else row, 0.0)
    if there.all():
        centred = (u - u.mean())[:, None]
    else:
        count = np.maximum(there.sum(axis=0), 1)
        centred = np.where(there, u[:, None] - np.where(there, u[:, None], 0.0).sum(axis=0) / count, 0.0)
    spread = (centred**2).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.ptp(u) * (centred * values).sum(axis=0) / np.where(spread > 0, spread, np.nan), relative


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


def switch(x: np.ndarray, y: np.ndarray, level: float) -> float:
    """Where y crosses the level on the grid x; NaN where y has a gap."""
    above = y > level
    changes = np.flatnonzero(above[1:] != above[:-1])
    if not np.all(np.isfinite(y)):
        return math.nan
    if not len(changes):
        # Beyond the end it was heading for, nobody knows how far: so far that a few such seeds among others leave
        # no narrow interval, while all of them together still refute.
        towards = abs(y[-1] - level) <= abs(y[0] - level)
        return float(x[-1] * BEYOND if towards else x[0] / BEYOND)
    i = changes[0]
    share = (level - y[i]) / (y[i + 1] - y[i])
    return float(np.exp(np.log(x[i]) + share * (np.log(x[i + 1]) - np.log(x[i]))))
