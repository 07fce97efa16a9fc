"""The exponent of a measured quantity in a size, with the judge's interval, outside claims."""

from __future__ import annotations

import numpy as np
import xarray as xr

from featlab.claims.intervals import mean_interval
from featlab.core.validation import InputError
from featlab.sweeps.boundary import exponents

_BESIDE = ("trained", "runs", "done", "steps_taken", "stopped_at")  # what a Dataset has beside its quantities


def exponent(
    found: xr.Dataset | xr.DataArray, along: str | None = None, variable: str | None = None
) -> xr.Dataset:
    r"""The exponent $a$ of $y \sim x^a$ for each seed, as `fl.boundary` or a sweep measured it.

    `along` is the size x, which may be left out where there is only one; `variable` the quantity y. A seed counts
    that has a positive value at every size. For each value of all other dims it returns `exponent`, its mean over
    seeds, with the 95 % interval `low` and `high`; `local`, the slopes between neighbouring sizes; `drift`, that
    of the upper half less that of the lower, with `drift_low` and `drift_high`; and `seeds`, how many count.
    """
    y = _quantity(found, variable)
    sizes = [str(dim) for dim in y.dims if dim != "seed" and y.sizes[dim] > 1 and dim != "level"]
    along = along or (sizes[0] if len(sizes) == 1 else None)
    if "seed" not in y.dims or along not in y.dims or along == "seed":
        raise InputError(
            f"exponent needs the dim seed and along=, one of {sizes}, and {y.name!r} has {list(y.dims)}."
        )
    for values in (y, y[along]):
        if values.dtype.kind not in "fiu":
            raise InputError(f"exponent needs real numbers, and {values.name!r} holds {values.dtype.name}.")
    rest = [dim for dim in y.dims if dim not in ("seed", along)]
    y = y.transpose(*rest, along, "seed").sortby(along)
    x = np.asarray(y[along].values, float)
    cells = y.values.reshape(-1, len(x), y.sizes["seed"]).astype(float)
    read = [_one(x, cell) for cell in cells]
    shape = [y.sizes[dim] for dim in rest]
    names = ("exponent", "low", "high", "drift", "drift_low", "drift_high", "seeds")
    variables = {name: (rest, np.reshape([one[name] for one in read], shape)) for name in names}
    local = np.reshape([one["local"] for one in read], (*shape, len(x) - 1))
    middle = np.sqrt(x[1:] * x[:-1])
    coords = {dim: y[dim] for dim in rest if dim in y.coords} | {f"{along}_between": middle}
    return xr.Dataset(
        variables | {"local": ([*rest, f"{along}_between"], local)},
        coords,
        {"variable": str(y.name), "along": along},
    )


def _quantity(found: xr.Dataset | xr.DataArray, variable: str | None) -> xr.DataArray:
    if isinstance(found, xr.DataArray):
        return found
    if not isinstance(found, xr.Dataset):
        raise InputError(f"exponent needs a Dataset or a DataArray, got {type(found).__name__}.")
    known = [str(name) for name in found.data_vars if name not in _BESIDE]
    variable = variable or (known[0] if len(known) == 1 else None)
    if variable not in known:
        raise InputError(f"exponent needs variable=, one of {', '.join(known)}; got {variable!r}.")
    y = found[variable]
    return y.where(found["trained"]) if "trained" in found else y


def _one(x: np.ndarray, y: np.ndarray) -> dict:
    """Of one cell, whose rows are sizes and whose columns are seeds."""
    counts = np.all(np.isfinite(y) & (y > 0), axis=0)
    if not counts.any():
        raise InputError("exponent finds no seed that has a positive value at every size.")
    slopes = exponents(x, y[:, counts])
    (low, high), (drift_low, drift_high) = mean_interval(slopes.overall), mean_interval(slopes.drift)
    return {
        "exponent": slopes.overall.mean(),
        "low": low,
        "high": high,
        "local": slopes.local.mean(axis=0),
        "drift": slopes.drift.mean(),
        "drift_low": drift_low,
        "drift_high": drift_high,
        "seeds": len(slopes.overall),
    }
