"""From the diagram of a sweep to a boundary: where the mean over seeds crosses a level, with its interval."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.stats
import xarray as xr

from featlab.core.validation import InputError, did_you_mean

TRAINED = 0.9  # of a cell's runs: with fewer it decides nothing


class Cells(NamedTuple):
    """One variable of a sweep, and what became of each cell's runs."""

    values: xr.DataArray  # (swept..., seed); NaN where a run was not done or has no finite value
    done: xr.DataArray  # (swept...), whether any run was
    trained: xr.DataArray  # (swept...), whether enough of those did


def contour(diagram: xr.Dataset, variable: str, level: float, along: str | None = None) -> xr.Dataset:
    r"""Where a variable's mean over seeds crosses a level along one swept dim, for each value of the others.

    Noise may cross the level several times. Of all splits of a row into $i < k$ and $i \geq k$ the one is
    taken that parts high from low best, in either direction:

    $$\max_k \left| \sum_{i \geq k} (\bar v_i - \ell) - \sum_{i < k} (\bar v_i - \ell) \right|$$

    The two neighbours of the split then lie on both sides of the level, and `at` is on the straight line
    between them, in the coordinate's logarithm where its `scale` is "log". It is NaN where the best split is
    an end. Cells that were not done, or where fewer than 90 % of the runs trained, are left out. `along` is
    the last swept dim if left out.

    `se` is the delete-one jackknife over seeds, in that same scale, and `low` and `high` the 95 % interval by
    Student's t. A seed is deleted from the whole row. Where cells have different seeds, those count that one
    of the two neighbours has, and the degrees of freedom are those of the neighbour with fewer. All three are
    NaN where that is a single seed, or where without some seed the row does not cross. The interval is that
    of the seeds: it knows nothing of a switch sharper than the grid, for which `boundary` searches by seed.
    """
    found = cells(diagram, variable, "contour")
    swept = list(found.done.dims)
    along = str(swept[-1]) if along is None and swept else along
    if along not in swept:
        known = did_you_mean(str(along), map(str, swept)) if swept else "this diagram has none."
        raise InputError(f"contour(along=) must be a swept dim, got {along!r}; {known}")
    level = checked_number(level, "contour(level=)")
    coord = diagram[along]
    u = positions(coord, "contour")
    order = np.argsort(u)
    used = found.values.where(found.trained).transpose(..., along, "seed")
    rows = used.values.reshape(-1, *used.shape[-2:])[:, order]
    read = np.array([_interval(u[order], row, level) for row in rows]).T.reshape(4, *used.shape[:-2])
    scaled = np.exp(read[:3]) if is_log(coord) else read[:3]
    symbol = {"symbol": coord.attrs["symbol"]} if coord.attrs.get("symbol") else {}
    meaning = f"{along} where {variable} crosses {level:g}"
    described = {
        "at": {**symbol, "long_name": meaning},
        "low": {**symbol, "long_name": f"{meaning}, lower end of the 95 % interval"},
        "high": {**symbol, "long_name": f"{meaning}, upper end of the 95 % interval"},
        "se": {"long_name": f"standard error of {'log ' * is_log(coord)}{along} there"},
    }
    return xr.Dataset(
        {
            name: (used.dims[:-2], data, attrs)
            for (name, attrs), data in zip(described.items(), [*scaled, read[3]])
        },
        {dim: used.coords[dim] for dim in used.dims[:-2]},
        {"level": level, "variable": variable, "along": along},
    )


def cells(diagram: xr.Dataset, variable: str, caller: str) -> Cells:
    """A variable of a sweep, by cell; all runs with a value count as done and trained if nothing is said."""
    if not isinstance(diagram, xr.Dataset):
        raise InputError(f"{caller}(diagram) must be the Dataset of a sweep, got {type(diagram).__name__}.")
    if variable not in diagram.data_vars:
        known = [str(name) for name in diagram.data_vars if diagram[name].dtype.kind == "f"]
        raise InputError(f"{caller} finds no variable {variable!r}; {did_you_mean(str(variable), known)}")
    values = diagram[variable]
    if values.dtype.kind not in "fiu":
        raise InputError(f"{caller} needs a variable of numbers, and {variable!r} holds {values.dtype.name}.")
    values = values if "seed" in values.dims else values.expand_dims("seed")
    values = values.transpose(..., "seed").astype(float)
    done = diagram["done"] if "done" in diagram else values.notnull()
    trained = done & diagram["trained"] if "trained" in diagram else done
    done, trained = (flag if "seed" in flag.dims else flag.expand_dims("seed") for flag in (done, trained))
    runs, good = (flag.sum("seed").broadcast_like(values.sum("seed")) for flag in (done, trained))
    swept = values.dims[:-1]
    enough = (runs > 0) & (good >= TRAINED * runs - 1e-9)
    return Cells(
        values.where(done & np.isfinite(values)).transpose(*swept, "seed"),
        (runs > 0).transpose(*swept),
        enough.transpose(*swept),
    )


def is_log(coord: xr.DataArray) -> bool:
    """Whether a swept coordinate is spaced, and read, in its logarithm."""
    return coord.attrs.get("scale") == "log"


def positions(coord: xr.DataArray, caller: str) -> np.ndarray:
    """A swept coordinate in the scale in which one interpolates and draws."""
    values = coord.values
    kind = "finite numbers above 0" if is_log(coord) else "finite numbers"
    numbers = values.dtype.kind in "fiu" and np.all(np.isfinite(values))
    if not numbers or (is_log(coord) and not np.all(values > 0)) or len(np.unique(values)) < len(values):
        raise InputError(f"{caller} needs different {kind} for {coord.name!r}, got {_few(values)}.")
    return np.log(values) if is_log(coord) else values.astype(float)


def checked_number(value: Any, name: str) -> float:
    """A finite number as a float, or one sentence."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not np.isfinite(value):
        raise InputError(f"{name} must be a finite number, got {value!r}.")
    return float(value)


def _interval(u: np.ndarray, runs: np.ndarray, level: float) -> tuple[float, float, float, float]:
    """The crossing, its interval and standard error; runs are (cell, seed), NaN where it is missing."""
    present = np.isfinite(runs)
    filled, count = np.where(present, runs, 0.0), present.sum(axis=1)
    at, beside = _crossing(u, _ratio(filled.sum(axis=1), count), level)
    fewest = count[beside].min(initial=len(runs[0]))
    if np.isnan(at) or fewest < 2:
        return at, np.nan, np.nan, np.nan
    seeds = np.flatnonzero(present[beside].any(axis=0))
    without = [np.delete(filled, seed, axis=1).sum(axis=1) for seed in seeds]
    left = [count - present[:, seed] for seed in seeds]
    deleted = np.array([_crossing(u, _ratio(*pair), level)[0] for pair in zip(without, left)])
    se = float(np.sqrt((len(seeds) - 1) * deleted.var()))
    half = float(scipy.stats.t.ppf(0.975, fewest - 1)) * se
    return at, at - half, at + half, se


def _crossing(u: np.ndarray, means: np.ndarray, level: float) -> tuple[float, list[int]]:
    """Where a row crosses the level, and the two cells beside it; NaN and none where it does not."""
    kept = np.flatnonzero(np.isfinite(means))
    gap = means[kept] - level
    left = np.concatenate([[0.0], np.cumsum(gap)])
    k = int(np.argmax(abs(left[-1] - 2 * left)))
    if k in (0, len(gap)):
        return np.nan, []
    i, j = kept[k - 1], kept[k]
    share = np.clip(gap[k - 1] / (gap[k - 1] - gap[k]), 0, 1)
    return float(u[i] + share * (u[j] - u[i])), [i, j]


def _ratio(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _few(values: np.ndarray) -> str:
    shown = ", ".join(str(value) for value in values[:4])
    return shown + ", ..." * (len(values) > 4)
