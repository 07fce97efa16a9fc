r"""Six ways to compare measurements with a theorem, all judged by one rule.

They take labelled arrays: every dim but `seed` is one of cells, named by its coordinate, and a dict of arrays is a
row of cells named by its keys. Bare arrays are (seed) or (cell, seed). NaN is a run without a value.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from featlab.claims.cells import Rows, arranged, switch
from featlab.claims.judge import VALUE_MARGIN, ZERO_EXPONENT_MARGIN, Check
from featlab.core.validation import InputError
from featlab.sweeps.boundary import exponents

MOST_ROUNDING = 0.01  # of numbers, or of times to whole steps


def identity(name: str, residual: Any, tolerance: float = 1e-12) -> Check:
    """Something is 0 up to rounding: algebra, which must hold and proves nothing."""
    tolerance = _number(tolerance, name, "tolerance")
    if not 0 <= tolerance <= MOST_ROUNDING:
        raise InputError(
            f"identity({name!r}): rounding is at most {MOST_ROUNDING:g}, got {tolerance:g}; use at_most."
        )
    rows = arranged(residual, name)
    largest = np.max(np.abs(rows.samples))  # NaN if one is
    return Check(
        name, "identity", np.array([[largest]]), 0.0, tolerance, -math.inf, tolerance,
        chance=False,
    )  # fmt: skip


def equals(name: str, x: Any, value: float, margin: float = VALUE_MARGIN) -> Check:
    """x is the value, within a relative margin, in every cell."""
    _checked_margin(name, margin)
    value = _number(value, name, "value")
    if value == 0:
        raise InputError(f"equals({name!r}) needs a value other than 0; use at_most, at_least or identity.")
    room = abs(value) * margin
    return _check(name, "equals", x, value, room, value - room, value + room)


def at_most(name: str, x: Any, bound: float, *, on_average: bool = False) -> Check:
    """x is at most the bound, in every cell: in nearly every run, or `on_average` over seeds only."""
    bound = _number(bound, name, "bound")
    check = _check(name, "at_most", x, bound, 0.0, -math.inf, bound)
    return dataclasses.replace(check, each=not on_average)


def at_least(name: str, x: Any, bound: float, *, on_average: bool = False) -> Check:
    """x is at least the bound, in every cell: in nearly every run, or `on_average` over seeds only."""
    bound = _number(bound, name, "bound")
    check = _check(name, "at_least", x, bound, 0.0, bound, math.inf)
    return dataclasses.replace(check, each=not on_average)


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
    stated = next(_number(one, name, "exponent") for one in (exponent, at_most, at_least) if one is not None)
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
    name: str,
    y: xr.DataArray,
    along: str,
    law: float,
    *,
    level: float,
    rising: bool,
    margin: float = VALUE_MARGIN,
) -> Check:
    """y, measured on the grid `along`, rises or falls through the level where the law says, in every cell.

    A seed that does not cross within the grid counts as crossing far before or beyond it. The grid must reach
    beyond the relative margin on both sides and be as fine as the margin there.
    """
    _checked_margin(name, margin)
    if not isinstance(y, xr.DataArray) or not {along, "seed"} <= set(y.dims) or not y.size:
        raise InputError(f"switches_at({name!r}) needs a labelled array with dims {along!r} and 'seed'.")
    x = np.asarray(y[along].values, float)
    if np.any(np.diff(x) <= 0) or not (0 < x[0] < law * (1 - margin) and law * (1 + margin) < x[-1]):
        raise InputError(
            f"switches_at({name!r}) needs a rising positive grid that reaches beyond the margin around {law:g}."
        )
    near = (x[1:] > law * (1 - margin)) & (x[:-1] < law * (1 + margin))
    if np.max(x[1:][near] / x[:-1][near]) > 1 + margin * (1 + 1e-9):
        raise InputError(f"switches_at({name!r}) needs points closer than the margin, {margin:g}, around {law:g}.")
    at = xr.apply_ufunc(
        lambda column: switch(x, column, level, rising), y.astype(float), input_core_dims=[[along]], vectorize=True
    )
    region = (law * (1 - margin), law * (1 + margin))
    points = {"x": x, "y": y.transpose(along, "seed").values.astype(float), "level": level} if y.ndim == 2 else {}
    rows = arranged(at, name)
    return Check(
        name, "switches_at", rows.samples, law, law * margin, *region,
        trends=rows.trends, points=points, **_behind(rows),
    )  # fmt: skip


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
    """Where the numbers come from: their cells and seeds."""
    return {
        "cells": rows.cells,
        "chance": rows.chance,
        "seed_labels": rows.seeds,
        "jackknife": rows.jackknife,
        "at": rows.at,
    }


def _number(value: Any, name: str, what: str) -> float:
    if not isinstance(value, int | float | np.generic | np.ndarray | xr.DataArray) or (
        np.ndim(value) or not math.isfinite(float(value))
    ):
        raise InputError(
            f"{name!r} needs one finite number as its {what}; divide by one that differs between cells."
        )
    return float(value)


def _checked_margin(name, margin) -> None:
    if not 0 < margin < 1:
        raise InputError(f"{name!r}: a relative margin lies between 0 and 1, got {margin!r}.")
