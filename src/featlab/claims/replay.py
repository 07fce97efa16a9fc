"""What a check rests on, found by asking again: the claim is read anew with other numbers in place of the lab's.

A claim is a function from what the lab read to checks. So whatever it does in between, with xarray, NumPy or code
of its own, these questions have answers:

* *Where runs are missing* (they did not train, diverged, never got there): does a number change with what they
  might have read? Then it is missing too, for that seed.
* *Where one half of the seeds reads something else*: do numbers of the other half change? Then seeds are mixed,
  and no interval over them means anything. Does a number change that has no seeds? Then it is an average over
  them, without its error. Does the bound change? Then it was measured.
* *Does nothing change at all?* Then the check is not about what the lab read.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from featlab.claims.judge import Check
from featlab.core.validation import InputError

CLOSE = 1e-6  # relative: how nearly numbers are the same, which a fit to all seeds at once may round otherwise
# How readings are altered: a little, and far enough that shares and counts change as well.
STRENGTHS = (0.1, 1.0, 12.0)
FILLS = (
    -2,
    -1,
    0,
    1,
    2,
)  # what missing runs might have read: as the others (0), far off, or no such number at all
_FAR = 1e3
_SEED = 20_260_101  # alterations are the same in every verification


class Replay:
    """A lab that gives the readings of another one again, in their order, each as `change` leaves it."""

    def __init__(self, size: Any, seeds: Sequence[int], readings: Sequence[xr.Dataset], change: Callable):
        self.size, self.seeds = size, tuple(seeds)
        self._changed = (change(index, one) for index, one in enumerate(readings))

    def _next(self, *args: Any, **options: Any) -> xr.Dataset:
        try:
            return next(self._changed)
        except StopIteration:
            raise InputError("What the claim asks of the lab depends on what was read before.") from None

    run = measure = boundary = _next


def followed(judge: Callable[[Any], Iterable[Check]], lab: Any, checks: Sequence[Check]) -> list[Check]:
    """The checks of `judge(lab)`, with missing what rests on missing runs, and in doubt what cannot be judged."""
    readings, count = lab.readings, len(lab.seeds)

    def asked(change: Callable[[int, xr.Dataset], xr.Dataset]) -> list[Check]:
        return list(_until_it_fails(judge, Replay(lab.size, lab.seeds, readings, change)))

    missing = any(_gaps(values).any() for one in readings for values in _by_seed(one).values())
    fills = [asked(lambda _, one, fill=fill: filled(one, fill)) for fill in FILLS] if missing else []
    halves = [np.arange(count) % 2 == k for k in (0, 1)] if count > 1 else [np.ones(1, bool)]
    altered = [
        (half, asked(lambda index, one, half=half, strength=strength: alter(one, strength, half, index)))
        for strength in STRENGTHS
        for half in halves
    ]
    result = []
    for place, original in enumerate(checks):
        again = [(half, found[place]) for half, found in altered if place < len(found)]
        check, unsure = _without_missing(original, [found[place : place + 1] for found in fills])
        doubt = unsure or _other_seeds(check, lab.seeds) or (_mixed(check, again) if again else _UNKNOWN)
        result.append(dataclasses.replace(check, growing=lab.growing, doubt=doubt))
    return result


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


def _without_missing(check: Check, fills: list[list[Check]]) -> tuple[Check, str]:
    """With NaN for each seed whose number depends on what missing runs read."""
    if not fills:
        return check, ""
    found = [one for again in fills for one in again]
    if not found:
        return check, "runs are missing, and whether it rests on them cannot be found out"
    if any(one.samples.shape != check.samples.shape for one in found):
        return check, "which numbers are judged depends on runs that are missing"
    rests = np.any([~_same(one.samples, check.samples) for one in found], axis=0)
    if check.jackknife:  # of which each is made of all
        rests = np.isnan(check.samples)
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


def alter(one: xr.Dataset, strength: float, which: np.ndarray, index: int) -> xr.Dataset:
    """Other readings for these seeds, of the same kind: positive, or shares, or true and false."""
    rng = np.random.default_rng([_SEED, index])
    changed = {}
    for name, values in _by_seed(one).items():
        moved = xr.zeros_like(values).copy(data=_moved(values.values, strength, rng))
        chosen = xr.DataArray(which, dims="seed")
        changed[name] = xr.where(chosen, moved, values).transpose(*values.dims)
    return one.assign(changed)


def filled(one: xr.Dataset, towards: float) -> xr.Dataset:
    """With numbers in the place of missing ones: as the others are (0), far below (-1) or above (1), or beyond."""
    return one.assign(
        {
            name: values.fillna(_filler(values.values, towards))
            for name, values in _by_seed(one).items()
            if values.dtype.kind == "f"
        }
    )


def _moved(values: np.ndarray, strength: float, rng: np.random.Generator) -> np.ndarray:
    u = rng.uniform(-1, 1, values.shape)
    if values.dtype.kind == "b":
        return values ^ (np.abs(u) < 0.5)
    if values.dtype.kind in "iu":
        return values + (u > 0)
    low, high, scale = _range(values)
    if low > 0 and high > 1 or low > 0 and strength < 1:
        return values * np.exp(strength * u)
    if low >= 0 and high <= 1:  # shares: towards the inside, or anything
        return values + strength * np.abs(u) * (0.5 - values) if strength < 1 else np.abs(u)
    return values + strength * u * np.where(values == 0, scale, np.abs(values))


def _filler(values: np.ndarray, towards: float) -> float:
    low, high, scale = _range(values)
    if towards == 0:
        there = values[np.isfinite(values)]
        return float(np.median(there)) if there.size else scale
    if low >= 0 and high <= 1 and abs(towards) == 1:
        return 0.5 + 0.5 * towards
    if low > 0 and towards > -2:
        return high * _FAR if towards > 0 else low / _FAR
    return towards * _FAR * scale


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
