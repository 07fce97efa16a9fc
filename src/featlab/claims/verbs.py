r"""Six ways to compare measurements with a theorem, all judged by one rule.

They take labelled arrays: every dim but `seed` is one of cells, named by its coordinate, and a dict of arrays is a
row of cells named by its keys. Bare arrays are (seed) or (cell, seed). NaN is a run without a value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from featlab.claims.cells import Rows, arranged, masked, switch
from featlab.claims.judge import VALUE_MARGIN, ZERO_EXPONENT_MARGIN, Check
from featlab.core.validation import InputError
from featlab.sweeps.boundary import exponents


def identity(name: str, residual: Any, tolerance: float = 1e-12) -> Check:
    """Something is 0 up to rounding: algebra, which must hold and proves nothing."""
    rows = arranged(residual, name)
    largest = np.max(np.abs(rows.samples))  # NaN if one is
    return Check(
        name, "identity", np.array([[largest]]), 0.0, tolerance, -math.inf, tolerance,
        chance=False, account=rows.account,
    )  # fmt: skip


def equals(name: str, x: Any, value: float, margin: float = VALUE_MARGIN) -> Check:
    """x is the value, within a relative margin, in every cell."""
    _checked_margin(name, margin)
    if value == 0:
        raise InputError(f"equals({name!r}) needs a value other than 0; use at_most, at_least or identity.")
    room = abs(value) * margin
    return _check(name, "equals", x, value, room, value - room, value + room)


def at_most(name: str, x: Any, bound: float) -> Check:
    """x is at most the bound, in every cell."""
    bound = _number(bound, name, "bound")
    return _check(name, "at_most", x, bound, 0.0, -math.inf, bound)


def at_least(name: str, x: Any, bound: float) -> Check:
    """x is at least the bound, in every cell."""
    bound = _number(bound, name, "bound")
    return _check(name, "at_least", x, bound, 0.0, bound, math.inf)


def scales_as(
    name: str,
    y: xr.DataArray,
    along: str,
    exponent: float | None = None,
    rivals: Sequence[float] = (),
    *,
    at_most: float | None = None,
    at_least: float | None = None,
    symbols: tuple[str, str] | None = None,
) -> Check:
    r"""$y \sim x^a$ with x the coordinate `along`: a is the exponent, or at most or at least a bound.

    The fit is made once for each seed and for each cell of the other dims.
    """
    if not isinstance(y, xr.DataArray) or along not in y.dims:
        raise InputError(f"scales_as({name!r}) needs a labelled array with the dim {along!r}.")
    if [exponent, at_most, at_least].count(None) != 2:
        raise InputError(f"scales_as({name!r}) needs an exponent, or at_most=, or at_least=.")
    stated = next(float(one) for one in (exponent, at_most, at_least) if one is not None)
    margin = exponent_margin(stated, rivals)
    if exponent is None:  # a bound has no margin; that of drift is no narrower than around exponent 0
        margin = max(margin, ZERO_EXPONENT_MARGIN)
    lower = stated - margin if exponent is not None else (-math.inf if at_least is None else stated)
    upper = stated + margin if exponent is not None else (math.inf if at_most is None else stated)
    x = np.asarray(y[along].values, float)
    rows = arranged(y.transpose(along, ...), name, inner=along)
    fitted = [exponents(x, row) for row in rows.samples]
    drift = np.array([one.drift for one in fitted]) if len(x) > 2 else None
    points = {"x": x, "y": rows.samples[0], "local": fitted[0].local, "symbols": symbols or (along, "y")}
    return Check(
        name,
        "scales_as",
        np.array([one.overall for one in fitted]),
        stated,
        margin,
        lower,
        upper,
        drift=drift,
        rivals=tuple(rivals),
        points=points if len(fitted) == 1 else {},
        **_behind(rows),
    )


def switches_at(
    name: str, y: xr.DataArray, along: str, law: float, *, level: float, margin: float = VALUE_MARGIN
) -> Check:
    """y, measured on the grid `along`, crosses the level where the law says, within a relative margin.

    A seed that does not cross within the grid counts as crossing far beyond the end it was heading for. The grid
    must reach beyond the margin on both sides and be as fine as the margin there.
    """
    _checked_margin(name, margin)
    if not isinstance(y, xr.DataArray) or set(y.dims) != {along, "seed"} or not y.size:
        raise InputError(f"switches_at({name!r}) needs a labelled array with dims {along!r} and 'seed'.")
    x, values = np.asarray(y[along].values, float), masked(y).transpose(along, "seed").values.astype(float)
    if np.any(np.diff(x) <= 0) or not (0 < x[0] < law * (1 - margin) and law * (1 + margin) < x[-1]):
        raise InputError(
            f"switches_at({name!r}) needs a rising positive grid that reaches beyond the margin around {law:g}."
        )
    near = (x[1:] > law * (1 - margin)) & (x[:-1] < law * (1 + margin))
    if np.max(x[1:][near] / x[:-1][near]) > 1 + margin * (1 + 1e-9):
        raise InputError(f"switches_at({name!r}) needs points closer than the margin, {margin:g}, around {law:g}.")
    at = np.array([switch(x, column, level) for column in values.T])[None]
    region = (law * (1 - margin), law * (1 + margin))
    points = {"x": x, "y": values, "level": level}
    behind = _behind(arranged(y, name)._replace(cells=("",)))
    return Check(name, "switches_at", at, law, law * margin, *region, points=points, **behind)


def exponent_margin(exponent: float, rivals: Sequence[float] = ()) -> float:
    """10 % of an exponent, or a third of the way to its nearest rival if that is less; 0.05 for exponent 0."""
    if exponent in rivals:
        raise InputError(f"The exponent {exponent:g} cannot be its own rival.")
    margin = abs(exponent) / 10 if exponent else ZERO_EXPONENT_MARGIN
    return min([margin, *(abs(exponent - rival) / 3 for rival in rivals)])


def _check(name, kind, x, expected, margin, lower, upper) -> Check:
    rows = arranged(x, name)
    return Check(name, kind, rows.samples, expected, margin, lower, upper, trends=rows.trends, **_behind(rows))


def _behind(rows: Rows) -> dict[str, Any]:
    """Where the numbers come from: their cells and seeds, and what became of the runs."""
    return {"cells": rows.cells, "chance": rows.chance, "seed_labels": rows.seeds, "account": rows.account}


def _number(value: Any, name: str, what: str) -> float:
    if np.ndim(value) or not math.isfinite(float(value)):
        raise InputError(
            f"{name!r} needs one finite number as its {what}; divide by one that differs between cells."
        )
    return float(value)


def _checked_margin(name, margin) -> None:
    if not 0 < margin < 1:
        raise InputError(f"{name!r}: a relative margin lies between 0 and 1, got {margin!r}.")
