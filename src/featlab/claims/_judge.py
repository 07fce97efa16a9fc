r"""Six ways to compare measurements with a theorem, all by one rule.

A check has an allowed region, fixed before any run: theory and a margin around it, or one side of a bound. Over
seeds it has a Student interval for each cell. It is

* *supported* when the 95 % interval of every cell lies inside the region,
* *refuted* when the interval of some cell lies wholly outside, at level $1 - 0.05 / k$ with $k$ the number of
  checks that are judged together times the cells of this one,
* *inconclusive* otherwise, and always when runs did not train or the measurement drifts with size. An exponent is
  not supported either while its sizes are too few, or its seeds too few, for a drift to show.

That theory lies inside an interval is not asked: a wide interval would be rewarded, and a true theorem with a
little finite-size drift would fail.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.stats

from featlab.boundaries import exponents
from featlab.contours import TRAINED
from featlab.fields import InputError

LEVEL = 0.95
VALUE_MARGIN = 0.05
ZERO_EXPONENT_MARGIN = 0.05
BEYOND = 10.0  # how far off a crossing counts that lies outside the grid
DRIFT_RESOLVED = 3.0  # margins: half of such a drift on either side of the middle is one and a half


@dataclasses.dataclass(frozen=True)
class Check:
    """One comparison with theory: measurements over seeds, and the region that theory allows them."""

    name: str
    kind: str
    samples: np.ndarray  # (cell, seed)
    expected: float
    margin: float
    lower: float  # the allowed region
    upper: float
    trained: float = 1.0  # smallest fraction of trained runs over the cells
    drift: np.ndarray | None = None  # (seed,), upper half of the sizes less lower half
    rivals: tuple[float, ...] = ()
    cells: tuple[str, ...] = ("",)
    points: dict[str, Any] = dataclasses.field(default_factory=dict)  # for the figure

    def interval(self, level: float = LEVEL, cell: int | None = None) -> tuple[float, float]:
        """The Student interval of the mean over seeds, of one cell; of the worst one if none is named."""
        return student_interval(self.samples[self.worst if cell is None else cell], level)

    @property
    def worst(self) -> int:
        """The cell whose interval is closest to leaving the allowed region, or furthest outside."""
        rooms = [min(low - self.lower, self.upper - high) for low, high in self._intervals(LEVEL)]
        return int(np.argmin([room if math.isfinite(room) else -np.inf for room in rooms]))

    @property
    def measured(self) -> float:
        """The mean over seeds, of the worst cell."""
        return _mean(self.samples[self.worst])

    def status(self, judged: int = 1) -> str:
        """Supported, refuted or inconclusive, when so many checks are judged together."""
        return self.decision(judged)[0]

    def decision(self, judged: int = 1) -> tuple[str, str]:
        """The status and the reason for it."""
        if self.trained < TRAINED:
            return "inconclusive", f"only {self.trained:.0%} of the runs of a cell trained"
        found = np.isfinite(self.samples).mean(axis=1).min()
        if found < TRAINED:
            return "inconclusive", f"a value was found for only {found:.0%} of the seeds of a cell"
        if self.kind != "identity" and np.isfinite(self.samples).sum(axis=1).min() < 3:
            return "inconclusive", "three seeds or more are needed for an interval"
        if self.drifts:
            assert self.drift is not None
            return "inconclusive", (
                f"drifting: upper and lower half of the sizes differ by {_mean(self.drift):+.3g}, "
                f"the margin being {self.margin:.3g}; larger sizes are needed"
            )
        inside = [self.lower <= low and high <= self.upper for low, high in self._intervals(LEVEL)]
        if all(inside):
            return ("inconclusive", self.unseen_drift) if self.unseen_drift else ("supported", "")
        strict = 1 - (1 - LEVEL) / (judged * len(self.samples))
        outside = [high < self.lower or low > self.upper for low, high in self._intervals(strict)]
        if any(outside):
            return "refuted", f"{self._where(outside.index(True))}outside {self._region()}"
        return (
            "inconclusive",
            f"{self._where(self.worst)}too wide or too near the edge of {self._region()}; {self._advice()}",
        )

    @property
    def drifts(self) -> bool:
        """Whether the halves of the sizes differ by more than the margin, and not by chance."""
        if self.drift is None or np.isfinite(self.drift).sum() < 3:
            return False
        low, high = student_interval(self.drift, LEVEL)
        return abs(_mean(self.drift)) > self.margin and not low <= 0 <= high

    @property
    def unseen_drift(self) -> str:
        """Why a drift could have stayed unseen: the halves' difference is not known to a few margins."""
        if self.kind != "scales_as":
            return ""
        if self.drift is None:
            return "an exponent over two sizes shows no drift; three or more are needed"
        reach = max(abs(end) for end in student_interval(self.drift, LEVEL))
        if reach <= DRIFT_RESOLVED * self.margin:
            return ""
        return f"a drift of {reach:.3g} could hide between the halves of the sizes; more seeds are needed"

    def refutes(self, expected: float, judged: int = 1) -> bool:
        """Whether the same measurement, judged against another expectation with the same margin, refutes it."""
        region = {"lower": expected - self.margin, "upper": expected + self.margin}
        return dataclasses.replace(self, expected=expected, **region).status(judged) == "refuted"

    def _intervals(self, level):
        return [student_interval(row, level) for row in self.samples]

    def _region(self) -> str:
        if math.isinf(self.lower) or math.isinf(self.upper):
            return f"at most {self.upper:.4g}" if math.isinf(self.lower) else f"at least {self.lower:.4g}"
        return f"[{self.lower:.4g}, {self.upper:.4g}]"

    def _where(self, cell: int) -> str:
        low, high = self.interval(cell=cell)
        at = f" at {self.cells[cell]}" if cell < len(self.cells) and self.cells[cell] else ""
        return f"{_mean(self.samples[cell]):.4g} [{low:.4g}, {high:.4g}]{at} is "

    def _advice(self) -> str:
        """How many seeds would decide, the spread being what it is."""
        row = self.samples[self.worst]
        room = min(abs(self.measured - self.lower), abs(self.measured - self.upper))
        spread = np.nanstd(row, ddof=1)
        if not (room > 0 and math.isfinite(room)):
            return "more seeds or larger sizes are needed"
        needed = math.ceil((2.2 * spread / room) ** 2) + 2
        return f"about {needed} seeds would decide" if needed <= 10_000 else "larger sizes are needed"


def identity(name: str, residual: Any, tolerance: float = 1e-12, **facts) -> Check:
    """Something is 0 up to rounding."""
    residual = np.abs(_cells(residual, name))
    worst = np.array([[np.nan if np.isnan(residual).any() else residual.max()]])
    return Check(name, "identity", worst, 0.0, tolerance, -math.inf, tolerance, **facts)


def agrees(name: str, measured: Any, predicted: float, margin: float = VALUE_MARGIN, **facts) -> Check:
    """A value is the predicted one, within a relative margin."""
    _checked_margin(name, margin)
    if predicted == 0:
        raise InputError(f"agrees({name!r}) needs a prediction other than 0; use bounded_by or identity.")
    room = abs(predicted) * margin
    return Check(
        name, "agrees", _cells(measured, name), predicted, room, predicted - room, predicted + room, **facts
    )


def scales_as(
    name: str, x: Any, y: Any, exponent: float, rivals: Sequence[float] = (), *, symbols=("x", "y"), **facts
) -> Check:
    r"""$y \sim x^a$ with this exponent; x is (size,), y is (size, seed), and the fit is made once per seed."""
    fitted = exponents(np.asarray(x, float), np.asarray(y, float))
    margin = exponent_margin(exponent, rivals)
    points = {
        "x": np.asarray(x, float),
        "y": np.asarray(y, float),
        "local": fitted.local,
        "symbols": tuple(symbols),
    }
    samples, drift = fitted.overall[None], fitted.drift if len(points["x"]) > 2 else None
    low, high = exponent - margin, exponent + margin
    return Check(
        name,
        "scales_as",
        samples,
        exponent,
        margin,
        low,
        high,
        drift=drift,
        rivals=tuple(rivals),
        points=points,
        **facts,
    )


def switches_at(
    name: str, x: Any, y: Any, law: float, *, level: float, margin: float = VALUE_MARGIN, **facts
) -> Check:
    """y, measured on the grid x, crosses the level where the law says, within a relative margin.

    x is (point,), y is (point, seed). A seed that does not cross within the grid counts as crossing far beyond the
    end it was heading for. The grid must reach beyond the margin on both sides and be as fine as the margin there.
    """
    _checked_margin(name, margin)
    x, y = np.asarray(x, float), np.asarray(y, float)
    if x.ndim != 1 or y.ndim != 2 or y.size == 0 or len(x) != len(y):
        raise InputError(
            f"switches_at({name!r}) needs a grid with dims (point) and values with dims (point, seed), "
            f"got shapes {x.shape} and {y.shape}."
        )
    if np.any(np.diff(x) <= 0) or not (0 < x[0] < law * (1 - margin) and law * (1 + margin) < x[-1]):
        raise InputError(
            f"switches_at({name!r}) needs a rising positive grid that reaches beyond the margin around {law:g}."
        )
    near = (x[1:] > law * (1 - margin)) & (x[:-1] < law * (1 + margin))
    if np.max(x[1:][near] / x[:-1][near]) > 1 + margin * (1 + 1e-9):
        raise InputError(f"switches_at({name!r}) needs points closer than the margin, {margin:g}, around {law:g}.")
    at = np.array([_switch(x, column, level) for column in y.T])[None]
    region = (law * (1 - margin), law * (1 + margin))
    points = {"x": x, "y": y, "level": level}
    return Check(name, "switches_at", at, law, law * margin, *region, points=points, **facts)


def bounded_by(name: str, y: Any, bound: Any, **facts) -> Check:
    """y is at most the bound, in every cell; y is (seed,) or (cell, seed), the bound one number or one a cell."""
    y, bound = _cells(y, name), np.asarray(bound, float)
    if bound.ndim == 0:
        return Check(name, "bounded_by", y, float(bound), 0.0, -math.inf, float(bound), **facts)
    if bound.shape != (len(y),) or not np.all(bound > 0):
        raise InputError(f"bounded_by({name!r}) needs one bound above 0 for each of its {len(y)} cells.")
    # Cells with their own bounds are compared as ratios.
    return Check(name, "bounded_by", y / bound[:, None], 1.0, 0.0, -math.inf, 1.0, **facts)


def exceeds(name: str, a: Any, b: Any, by: float = 0.0, **facts) -> Check:
    """a is at least b + by, paired by seed, in every cell."""
    a, b = _cells(a, name), np.asarray(b, float)
    if b.ndim and np.atleast_2d(b).shape != a.shape:
        raise InputError(f"exceeds({name!r}) needs one b, or one for each a, got shapes {a.shape} and {b.shape}.")
    gap = a - b
    return Check(name, "exceeds", gap, by, 0.0, by, math.inf, **facts)


def exponent_margin(exponent: float, rivals: Sequence[float] = ()) -> float:
    """10 % of an exponent, or a third of the way to its nearest rival if that is less; 0.05 for exponent 0."""
    if exponent in rivals:
        raise InputError(f"The exponent {exponent:g} cannot be its own rival.")
    margin = abs(exponent) / 10 if exponent else ZERO_EXPONENT_MARGIN
    return min([margin, *(abs(exponent - rival) / 3 for rival in rivals)])


def student_interval(values: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """The interval of the mean of a few independent values, by Student's t; NaN are left out."""
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return math.nan, math.nan
    mean = float(values.mean())
    if len(values) == 1 or np.ptp(values) == 0:
        return mean, mean
    half = scipy.stats.t.ppf((1 + level) / 2, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return mean - float(half), mean + float(half)


def _mean(values: np.ndarray) -> float:
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else math.nan


def _cells(values: Any, name: str) -> np.ndarray:
    values = np.asarray(values, float)
    if values.ndim not in (0, 1, 2) or values.size == 0:
        raise InputError(f"{name!r} needs values with dims (seed) or (cell, seed), got shape {values.shape}.")
    return np.atleast_2d(values)


def _switch(x, y, level) -> float:
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


def _checked_margin(name, margin) -> None:
    if not 0 < margin < 1:
        raise InputError(f"{name!r}: a relative margin lies between 0 and 1, got {margin!r}.")
