"""What a check rests on, found by asking again: the claim is read anew with other numbers in place of the lab's.

A claim is a function from what the lab read to checks. So whatever it does in between, with xarray, NumPy or code
of its own, these questions have answers:

* *Where runs are missing* (they did not train, diverged, never got there): does a number change with what they
  might have read? Then it is missing too, for that seed.
* *Where one half of the seeds reads something else*: do numbers of the other half change? Then seeds are mixed,
  and no interval over them means anything. Does a number change that has no seeds? Then it is an average over
  them, without its error. Does the bound change? Then it was measured.
* *Does nothing change at all?* Then the check is not about what the lab read. Does no number ever leave what
  theory allows? Then it cannot fail.

What was asked twice is altered alike: its ratio stays 1.
"""

from __future__ import annotations

import dataclasses
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from featlab.claims.cells import trend_along
from featlab.claims.intervals import FEWEST
from featlab.claims.judge import Check
from featlab.core.validation import InputError

CLOSE = 1e-6  # relative: how nearly numbers are the same, which a fit to all seeds at once may round otherwise
# How readings are altered: a little, and far enough that shares and counts change as well.
STRENGTHS = (0.1, 1.0, 12.0)
# What missing runs might have read: as the others (0), far off, or no such number at all.
FILLS = (-1e7, -2, -1, 0, 1, 2, 1e7)
_FAR = 1e3
_LARGE = 1e3  # such numbers, as of steps, are altered by less: a claim may count up to them
_LESS = 5.0
_SCATTER = 0.3  # no two gaps are filled alike
_SEED = 20_260_101  # alterations are the same in every verification


class Replay:
    """A lab that gives the readings of another one again, in their order, each as `change` leaves it."""

    def __init__(self, lab: Any, change: Callable[[int, xr.Dataset], xr.Dataset]):
        self.size, self.seeds = lab.size, tuple(lab.seeds)
        self.trained_fraction = getattr(lab, "trained_fraction", None)
        self._changed = (change(index, one) for index, one in enumerate(lab.readings))

    def _next(self, *args: Any, **options: Any) -> xr.Dataset:
        try:
            return next(self._changed)
        except StopIteration:
            raise InputError("What the claim asks of the lab depends on what was read before.") from None

    run = measure = boundary = _next


def followed(judge: Callable[[Any], Iterable[Check]], lab: Any, checks: Sequence[Check]) -> list[Check]:
    """The checks of `judge(lab)`, with missing what rests on missing runs, and in doubt what cannot be judged."""
    readings, count = lab.readings, len(lab.seeds)

    def asked(change: Callable[[int, xr.Dataset], xr.Dataset]) -> dict[Any, Check]:
        return _by_name(_until_it_fails(judge, Replay(lab, change)))

    def filled_again(which: np.ndarray | None = None) -> list[dict[Any, Check]]:
        return [asked(lambda index, one, fill=fill: filled(one, fill, index, which)) for fill in FILLS]

    missing = any(_gaps(values).any() for one in readings for values in _by_seed(one).values())
    fills = filled_again() if missing else []
    altered = [
        (half, asked(lambda index, one, half=half, strength=strength: alter(one, strength, half, index)))
        for k, strength in enumerate(STRENGTHS)
        for half in _halves(count, k)
    ]
    freely = [asked(lambda index, one, half=half: alter(one, None, half, index)) for half in _halves(count, 0)]
    result = []
    for name, original in _by_name(checks).items():
        again = [(half, found[name]) for half, found in altered if name in found]
        own_fills = fills
        if original.jackknife and missing and count == original.samples.shape[1]:
            # Each of its numbers is made of all seeds: do those that have one rest on what is missing?
            own_fills = filled_again(np.asarray(np.isfinite(original.samples).all(axis=0)))
        check, unsure = _without_missing(original, [found.get(name) for found in own_fills])
        doubt = unsure or _other_seeds(check, lab.seeds) or (_mixed(check, again) if again else _UNKNOWN)
        free = [found[name] for found in freely if name in found]
        doubt = doubt or (_cannot_fail(check, [*free, *(one for _, one in again)]) if free else "")
        result.append(dataclasses.replace(check, growing=lab.growing, doubt=doubt))
    return _along_sizes(result)


def _along_sizes(checks: list[Check]) -> list[Check]:
    """With the trend over checks that ask the same at several sizes, as that of the largest one."""
    result = list(checks)
    for name in {name for check in checks for name, _ in check.at}:
        groups: dict[Any, dict[float, int]] = {}
        for place, check in enumerate(checks):
            others = tuple(one for one in check.at if one[0] != name)
            if len(others) < len(check.at) and check.chance:
                alike = (check.kind, check.lower, check.upper, check.samples.shape, others)
                groups.setdefault(alike, {}).setdefault(dict(check.at)[name], place)
        for by_size in groups.values():
            place = by_size[max(by_size)]
            for k in range(len(checks[place].samples)):
                rows = [checks[one].samples[k] for one in by_size.values()]
                trends = (*result[place].trends, *trend_along(name, list(by_size), rows, k))
                result[place] = dataclasses.replace(result[place], trends=trends)
    return result


def _by_name(checks: Iterable[Check]) -> dict[Any, Check]:
    """The checks by name, and by how many of that name came before: a control may be named as a check is."""
    found: dict[Any, Check] = {}
    for check in checks:
        found[check.name, sum(name == check.name for name, _ in found)] = check
    return found


def _halves(count: int, k: int) -> list[np.ndarray]:
    """Two halves of the seeds, by two binary digits of their places: seeds 1, 2, 4, 8 or 16 apart are parted."""
    places = np.arange(count)
    digit = (places >> k ^ places >> (k + len(STRENGTHS))) & 1
    return [digit == one for one in (0, 1) if np.any(digit == one)]


_UNKNOWN = "what it rests on cannot be found out: with other numbers the claim stops with an error"


def _other_seeds(check: Check, seeds: tuple[int, ...]) -> str:
    """Whether it has other seeds than the lab: dropped, chosen, repeated or made of cells."""
    count = check.samples.shape[1]
    if not check.chance or count == len(seeds) and check.seed_labels in (None, seeds):
        return ""
    return f"it was given {count} values by seed that are not those of the {len(seeds)} seeds, one for each"


def _until_it_fails(judge: Callable[[Any], Iterable[Check]], lab: Replay) -> Iterator[Check]:
    """Its checks up to one that cannot be made of these numbers."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            yield from judge(lab)
        except Exception:  # whatever a claim's code makes of numbers that nobody measured
            return


def _without_missing(check: Check, fills: list[Check | None]) -> tuple[Check, str]:
    """With NaN for each seed whose number depends on what missing runs read."""
    if not fills:
        return check, ""
    found = [one for one in fills if one is not None]
    if not found:
        return check, "runs are missing, and whether it rests on them cannot be found out"
    if any(one.samples.shape != check.samples.shape for one in found):
        return check, "which numbers are judged depends on runs that are missing"
    rests = np.any([~_same(one.samples, check.samples) for one in found], axis=0)
    if not rests.any():
        return check, ""
    lost = rests.any(axis=0)
    drift = None if check.drift is None else np.where(lost, np.nan, check.drift)
    trends = tuple(one._replace(change=np.where(lost, np.nan, one.change)) for one in check.trends)
    samples = np.where(rests, np.nan, check.samples)
    return dataclasses.replace(check, samples=samples, drift=drift, trends=trends if check.chance else ()), ""


def _mixed(check: Check, again: list[tuple[np.ndarray, Check]]) -> str:
    """Why its seeds are no independent measurements of what the lab read, if so."""
    if not all(_same_region(one, check) for _, one in again):
        return "its bound is measured and has an error of its own: judge the ratio or the difference, seed by seed"
    if any(one.samples.shape != check.samples.shape for _, one in again):
        return "which numbers are judged depends on what was read"
    there = np.isfinite(check.samples)
    changed = [(half, there & ~_same(one.samples, check.samples)) for half, one in again]
    if not check.chance:
        moves = check.kind != "identity" and any(moved.any() for _, moved in changed)
        return "it is one number made of all seeds, and has no interval" if moves else ""
    if not check.jackknife and any(moved[:, ~half].any() for half, moved in changed):
        return "its numbers by seed are made of several seeds each, so that no interval over them holds"
    unmoved = ~np.any([moved.any(axis=1) for _, moved in changed], axis=0) & there.any(axis=1)
    if unmoved.any():
        cell = check.cells[int(np.argmax(unmoved))]
        return f"its numbers{f' at {cell}' if cell else ''} are the same whatever the lab reads"
    return ""


def _cannot_fail(check: Check, again: list[Check]) -> str:
    """Whether no number lies outside what theory allows, whatever the lab reads."""
    too_few = not check.chance or check.samples.shape[1] < FEWEST  # of which each may happen to be allowed
    if too_few or any(np.any((x.samples < check.lower) | (x.samples > check.upper)) for x in again):
        return ""
    return "it cannot fail: whatever the lab reads, its numbers are allowed"


def alter(one: xr.Dataset, strength: float | None, which: np.ndarray, index: int) -> xr.Dataset:
    """Other readings for these seeds, of the same kind: positive, or shares, or true and false; or any at all."""
    changed = {}
    for name, values in _by_seed(one).items():
        u = _chance(values, one, [index, round(1000 * (strength or 0))]).values
        moved = values.copy(data=_moved(values.values, strength, u))
        chosen = xr.DataArray(which, dims="seed")
        changed[name] = xr.where(chosen, moved, values).transpose(*values.dims)
    return one.assign(changed)


def filled(one: xr.Dataset, towards: float, index: int = 0, which: np.ndarray | None = None) -> xr.Dataset:
    """With numbers in the place of missing ones: as the others are (0), far below (-1) or above (1), or beyond.

    `which` are the seeds whose gaps are filled. What lies beyond the samples of a shorter cell is no gap.
    """
    changed = {}
    for name, values in _by_seed(one).items():
        if values.dtype.kind == "f":
            gaps = np.isnan(values) & ~_padding(values, one.attrs.get("cells", ()))
            if which is not None:
                gaps = gaps & xr.DataArray(which, dims="seed")
            rng = np.random.default_rng([_SEED, index, zlib.crc32(str(name).encode())])
            changed[name] = values.where(~gaps, _filler(values.values, towards, rng))
    fine = {"trained": xr.ones_like(one["trained"])} if "trained" in one.coords else {}
    return one.assign(changed).assign_coords(fine)


def _padding(values: xr.DataArray, cells: Sequence[Any]) -> xr.DataArray:
    """Where no seed has a value, and other places of the same cell have."""
    inner = [dim for dim in values.dims if dim != "seed" and dim not in cells]
    there = values.notnull()
    return ~there.any("seed") & there.any(["seed", *inner]) if inner else xr.zeros_like(there)


def _chance(values: xr.DataArray, one: xr.Dataset, key: list[int]) -> xr.DataArray:
    """Numbers from -1 to 1, in the place of these: the same ones for cells that ask the same question."""
    cells = [dim for dim in one.attrs.get("cells", ()) if dim in values.dims]
    asked = one.attrs.get("asked", ())
    count = int(np.prod([values.sizes[dim] for dim in cells]))
    index, strength = key
    asked = asked if len(asked) == count else [(index, k) for k in range(count)]
    ordered = values.transpose(*cells, ...)
    name = zlib.crc32(str(values.name).encode())
    keys = [[_SEED, strength, name, *np.ravel(question)] for question in asked]
    u = np.array([np.random.default_rng(key).uniform(-1, 1, ordered.shape[len(cells) :]) for key in keys])
    return ordered.copy(data=u.reshape(ordered.shape)).transpose(*values.dims)


def _moved(values: np.ndarray, strength: float | None, u: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "b":
        return values ^ (np.abs(u) < 0.5)
    if values.dtype.kind in "iu":  # which may be places: others of the same
        order = np.argsort(u, axis=None)
        return values.ravel()[order].reshape(values.shape) if np.ptp(values) else values + (u > 0)
    low, high, scale = _range(values)
    if strength is None:
        return np.where(np.isnan(values), values, scale * u * np.exp(STRENGTHS[-1] * np.abs(u)))
    strength = min(strength, _LESS) if high > _LARGE else strength
    if low > 0 and high > 1 or low > 0 and strength < 1:
        return values * np.exp(strength * u)
    if low >= 0 and high <= 1:  # shares: towards the inside, or anything
        return values + strength * np.abs(u) * (0.5 - values) if strength < 1 else np.abs(u)
    return values + strength * u * np.where(values == 0, scale, np.abs(values))


def _filler(values: np.ndarray, towards: float, rng: np.random.Generator) -> np.ndarray:
    """Numbers for gaps, of which no two are the same."""
    low, high, scale = _range(values)
    scatter = _SCATTER * rng.uniform(-1, 1, values.shape)
    if low >= 0 and high <= 1 and abs(towards) == 1:
        return 0.5 + towards * (0.5 - np.abs(scatter))
    if towards == 0:
        there = values[np.isfinite(values)]
        middle = float(np.median(there)) if there.size else scale
    elif low > 0 and towards > -2:
        middle = max(high * _FAR, towards) if towards > 0 else low / _FAR
    else:
        middle = towards * (scale * _FAR if abs(towards) <= 2 else 1.0)
    return (middle or 0.1 * scale) * np.exp(scatter)


def _range(values: np.ndarray) -> tuple[float, float, float]:
    """The least, the largest, and the largest without sign, of what is finite."""
    there = values[np.isfinite(values)]
    if not there.size:
        return -1.0, 1.0, 1.0
    return float(there.min()), float(there.max()), float(np.abs(there).max()) or 1.0


def _by_seed(one: xr.Dataset) -> Mapping[Any, xr.DataArray]:
    return {name: values for name, values in one.items() if "seed" in values.dims and values.dtype.kind in "fiub"}


def _gaps(values: xr.DataArray) -> np.ndarray:
    return np.isnan(values.values) if values.dtype.kind == "f" else np.zeros(1, bool)


def _same(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.isclose(one, other, rtol=CLOSE, atol=0, equal_nan=True)


def _same_region(one: Check, other: Check) -> bool:
    ends = np.array([[check.lower, check.upper] for check in (one, other)])
    return bool(_same(ends[0], ends[1]).all())
