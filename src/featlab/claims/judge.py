r"""The rule by which all measurements are compared with a theorem.

A check has an allowed region, fixed before any run: theory and a margin around it, or one side of a bound. Over
seeds it has an interval for the mean of each cell. It is

* *supported* when the 95 % interval of every cell lies inside the region, there are seeds enough for a failure in
  15 % of them to show, and no more failed than that allows;
* *refuted* when the interval of some cell lies wholly outside, at level $1 - 0.05 / k$ with $k$ the number of
  checks that are judged together times the cells of this one, and seeds are enough for another outcome in 15 % of
  them to show, and no more had one than that allows;
* *inconclusive* otherwise, and always when fewer than 90 % of the runs of a cell have a value (the others did not
  train, diverged or never got there) or the measurement drifts with size. An exponent is not supported either
  while its sizes are too few, or its seeds too few, for a drift to show.

That theory lies inside an interval is not asked: a wide interval would be rewarded, and a true theorem with a
little finite-size drift would fail.

Not every check that passes is evidence. An identity is algebra, and a number computed without chance is a
calculation: both must hold, and neither counts. A bound that is ten times the measurement, or on the other side of
0 from it, holds with room to spare and does not test its constant: it does not count either.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from featlab.claims.cells import GROWING, Trend, percent
from featlab.claims.intervals import (
    FEWEST,
    LEVEL,
    MISSED,
    RARE,
    apart_seeds,
    by_chance,
    mean_interval,
    mean_of,
    seeds_needed,
    spread_of,
    student_interval,
    unseen,
)
from featlab.sweeps.contour import TRAINED

TOGETHER = 300  # checks that refutation is corrected for: no fewer than the atlas holds
VALUE_MARGIN = 0.05
ZERO_EXPONENT_MARGIN = 0.05
SPARE = 10.0  # a bound this many times the measurement does not test its constant
DRIFT_RESOLVED = 3.0  # margins: half of such a drift on either side of the middle is one and a half
_ROUNDING = 1e-12  # of an edge, or of 1 where that is 0
TWO_SIDED = ("equals", "scales_as", "switches_at")


@dataclasses.dataclass(frozen=True)
class Check:
    """One comparison with theory: measurements over seeds, and the region that theory allows them."""

    name: str
    kind: str
    samples: np.ndarray  # (cell, seed); NaN where a run has no value
    expected: float
    margin: float
    lower: float  # the allowed region
    upper: float
    cells: tuple[str, ...] = ("",)
    each: bool = False  # whether it is said of each run, and not only of their mean
    chance: bool = True  # whether seeds differ; otherwise each cell is one computed number
    drift: np.ndarray | None = None  # (cell, seed), exponents: upper half of the sizes less lower half
    trends: tuple[Trend, ...] = ()  # of values at several sizes
    rivals: tuple[float, ...] = ()
    seed_labels: tuple[Any, ...] | None = None
    jackknife: bool = False  # whether values by seed are pseudo-values, each made of all seeds
    growing: tuple[str, ...] = GROWING  # dims along which drift is looked for
    doubt: str = ""  # why nothing can be decided, from what is known of where the numbers come from
    at: tuple[tuple[str, float], ...] = ()  # sizes that all its cells have
    points: dict[str, Any] = dataclasses.field(default_factory=dict)  # for the figure

    def interval(self, level: float = LEVEL, cell: int | None = None) -> tuple[float, float]:
        """The interval of the mean over seeds, of one cell; of the worst one if none is named."""
        return mean_interval(self.samples[self.worst if cell is None else cell], level)

    def deciding_level(self, judged: int = 1) -> float:
        """The level at which a cell's interval must lie outside to refute, `judged` checks together."""
        return 1 - (1 - LEVEL) / (judged * len(self.samples))

    @property
    def worst(self) -> int:
        """The cell whose interval is closest to leaving the allowed region, or furthest outside."""
        rooms = [min(low - self.lower, self.upper - high) for low, high in self._intervals(LEVEL)]
        return int(np.argmin([room if math.isfinite(room) else -np.inf for room in rooms]))

    @property
    def measured(self) -> float:
        """The mean over seeds, of the worst cell."""
        return mean_of(self.samples[self.worst])

    @property
    def seeds(self) -> int:
        """How many seeds have a value, in the cell that has fewest."""
        return int(np.isfinite(self.samples).sum(axis=1).min())

    @property
    def dropped(self) -> int:
        """How many seeds have none, in that cell."""
        return self.samples.shape[1] - self.seeds

    @property
    def too_small(self) -> bool:
        """Whether fewer seeds were asked for than can decide anything."""
        return self.chance and self.samples.shape[1] < FEWEST

    @property
    def evidence(self) -> str:
        """What a pass is worth: "evidence", or why it does not count."""
        if not self.chance:
            return "identity" if self.kind == "identity" else "computed"
        return "room to spare" if self._spare() else "evidence"

    def status(self, judged: int = 1) -> str:
        """Supported, refuted or inconclusive, `judged` checks together."""
        return self.decision(judged)[0]

    def decision(self, judged: int = 1) -> tuple[str, str]:
        """The status and the reason for it."""
        undecided = self._cannot_decide()
        if undecided:
            return "inconclusive", undecided
        inside = [self.lower <= low and high <= self.upper for low, high in self._intervals(LEVEL)]
        if all(inside):
            doubt = self.unseen_drift or self._unseen_failures() if self.chance else ""
            return ("inconclusive", doubt) if doubt else ("supported", "")
        strict_level = self.deciding_level(judged)
        strict = self._intervals(strict_level)
        outside = [k for k, (low, high) in enumerate(strict) if high < self.lower or low > self.upper]
        doubts = [self._unseen_successes(cell, strict_level) if self.chance else "" for cell in outside]
        if "" in doubts:
            return "refuted", f"{self._where(outside[doubts.index('')])}outside {self._region()}"
        if outside:
            return "inconclusive", f"{self._where(outside[0])}outside {self._region()}, but {doubts[0]}"
        advice = self._advice(judged)
        return (
            "inconclusive",
            f"{self._where(self.worst)}too wide or too near the edge of {self._region()}; {advice}",
        )

    def _cannot_decide(self) -> str:
        """Why nothing can be decided either way, if so."""
        there = np.isfinite(self.samples)
        if not self.chance:
            unknown = "" if there.all() else "a number that was to be computed is not finite"
            return unknown or self.doubt
        found = there.mean(axis=1)
        if found.min() < TRAINED:
            return few_runs(found.min(), self.cells[int(np.argmin(found))])
        if self.doubt:
            return self.doubt
        if self.seeds < 3:
            return "three seeds or more are needed for an interval"
        return self.drifting

    @property
    def drifting(self) -> str:
        """How the measurement moves with size, where that says more than the measurement itself."""
        for row in () if self.drift is None else self.drift:
            low, high = mean_interval(row)
            mean, towards = mean_of(row), self._one_sided_drift(mean_of(row))
            if abs(mean) > self.margin and not low <= 0 <= high and towards:
                return (
                    f"drifting: upper and lower half of the sizes differ by {mean:+.3g}, "
                    f"the margin being {self.margin:.3g}; larger sizes are needed"
                )
        for trend in self.trends:
            if not trend.size and trend.dim not in self.growing:
                continue
            if np.isfinite(trend.change).sum() < 3:
                return f"its trend along {trend.along} cannot be computed: three seeds with values are needed"
            if trend.to_zero and not -math.inf < self.lower <= 0:
                continue
            now = mean_of(self.samples[trend.cell])
            for ahead in trend.ahead(now):
                if self._allows(now) != self._allows(ahead):
                    return (
                        f"drifting along {trend.along}: {now:.4g} at the largest size and, at the same pace, "
                        f"{ahead:.4g} as far again, theory allowing {self._region()}; larger sizes are needed"
                    )
        return ""

    @property
    def unseen_drift(self) -> str:
        """Why a drift of an exponent could have stayed unseen: the halves' difference is not known well."""
        if self.kind != "scales_as":
            return ""
        if self.drift is None:
            return "an exponent over two sizes shows no drift; three or more are needed"
        ends = [end for row in self.drift for end in mean_interval(row) if self._one_sided_drift(end)]
        reach = max(map(abs, ends), default=0.0)
        if reach <= DRIFT_RESOLVED * self.margin:
            return ""
        return f"a drift of {reach:.3g} could hide between the halves of the sizes; more seeds are needed"

    def refutes(self, expected: float, judged: int = 1) -> bool:
        """Whether the same measurement, judged against another expectation with the same margin, refutes it."""
        region = {"lower": expected - self.margin, "upper": expected + self.margin}
        return dataclasses.replace(self, expected=expected, **region).status(judged) == "refuted"

    def asks_the_same_as(self, other: Check) -> bool:
        """Whether both compare by one verb with one region, as a control and its check do."""
        ends = [[one.lower, one.upper, one.margin] for one in (self, other)]
        return self.kind == other.kind and bool(np.allclose(*ends, rtol=1e-9, atol=0))

    def _unseen_failures(self) -> str:
        """Why some seeds may fail though the mean passes: too few were looked at, or too many did fail.

        A run without a value has failed.
        """
        count = self.samples.shape[1]
        apart = [self._failed(row) for row in self.samples]
        missing = [int(k) for k in (~np.isfinite(self.samples)).sum(axis=1)]
        failed = [a + m for a, m in zip(apart, missing)]
        cell = int(np.argmax(failed))
        if unseen(failed[cell], count) <= MISSED:
            return ""
        at = f" at {self.cells[cell]}" if self.cells[cell] else ""
        if not failed[cell]:
            return f"inside, but {_too_few(count, 'a failure')}"
        lie = "lie outside" if self.each else "lie apart and outside"
        words = f"{apart[cell]} of {count} seeds{at} {lie} {self._region()}" if apart[cell] else ""
        lacking = f"{missing[cell]} of {count} seeds{at} have no value" if missing[cell] else ""
        return f"{' and '.join(filter(None, (words, lacking)))}: {RARE:.0%} of all may fail"

    def _failed(self, row: np.ndarray) -> int:
        """How many seeds lie outside: each of them where each run is judged, or where the middle one does."""
        row = row[np.isfinite(row)]
        if self.each or not self._allows(float(np.median(row))):
            return sum(not self._allows(value) for value in row)
        return apart_seeds(row, lambda x: (x < self.lower) | (x > self.upper))

    def _unseen_successes(self, cell: int, level: float) -> str:
        """Why a mean outside may be that of too few seeds: some that were not seen, or too many, lie elsewhere.

        What is said of each run is refuted when more runs fail, and not by chance, than it allows for.
        """
        row = self.samples[cell][np.isfinite(self.samples[cell])]
        if self.each:
            if unseen(0, len(row)) > MISSED:
                return _too_few(len(row), "another outcome")
            failed = self._failed(row)
            if by_chance(failed, len(row)) <= 1 - level:
                return ""
            return f"{failed} of {len(row)} seeds lie there, and {RARE:.0%} of all may"
        below = mean_of(row) < self.lower
        apart = apart_seeds(row, lambda x: x >= self.lower if below else x <= self.upper)
        if unseen(apart, len(row)) <= MISSED:
            return ""
        if apart:
            return f"{apart} of {len(row)} seeds lie apart and not outside on that side"
        return _too_few(len(row), "another outcome")

    def _spare(self) -> bool:
        """Whether a bound is so far off that the measurement does not test it, in every cell.

        A bound above 0 that is ten times the measurement or more, also if that is below 0; the other way round, a
        measurement that is ten times the bound. A bound at 0 says a sign: ten standard deviations of the seeds. An
        exponent is measured in margins, of which a bound ten away is as far off.
        """
        if math.isinf(self.lower) == math.isinf(self.upper):
            return False
        sign = 1 if math.isinf(self.lower) else -1
        bound = sign * (self.upper if sign > 0 else self.lower)
        rows = [sign * row for row in self.samples]
        highest = np.max([mean_interval(row)[1] for row in rows])  # NaN if one is
        if self.kind == "scales_as" and bound - highest >= SPARE * self.margin:
            return True
        if self.kind == "scales_as" and bound > 0:
            return all(SPARE * np.max(np.abs(mean_interval(row))) <= bound for row in rows)
        if self.kind == "scales_as":
            return False
        if bound == 0:
            return all(mean_of(row) < -SPARE * spread_of(row) for row in rows)
        return bool(highest <= (bound / SPARE if bound > 0 else SPARE * bound))

    def _one_sided_drift(self, drift: float) -> bool:
        """Whether an exponent drifts towards an edge: of one bound there is one, which it may leave behind."""
        return not (math.isinf(self.lower) and drift < 0) and not (math.isinf(self.upper) and drift > 0)

    def _allows(self, value: float) -> bool:
        edges = [abs(edge) for edge in (self.lower, self.upper) if math.isfinite(edge)]
        room = _ROUNDING * (max(edges, default=0.0) or 1.0)
        return self.lower - room <= value <= self.upper + room

    def _intervals(self, level):
        return [mean_interval(row, level) for row in self.samples]

    def _region(self) -> str:
        if math.isinf(self.lower) or math.isinf(self.upper):
            return f"at most {self.upper:.4g}" if math.isinf(self.lower) else f"at least {self.lower:.4g}"
        return f"[{self.lower:.4g}, {self.upper:.4g}]"

    def _where(self, cell: int) -> str:
        low, high = self.interval(cell=cell)
        at = f" at {self.cells[cell]}" if self.cells[cell] else ""
        interval = f" [{low:.4g}, {high:.4g}]" if self.chance else ""
        return f"{mean_of(self.samples[cell]):.4g}{interval}{at} is "

    def _advice(self, judged: int) -> str:
        """How many seeds would decide, means and spreads being what they are.

        With a mean outside the region, as many as bring the interval of one such cell outside, at the deciding
        level; otherwise as many as bring those of 95 % of all cells inside.
        """
        outside = [row for row in self.samples if not self._allows(mean_of(row))]
        level = self.deciding_level(judged) if outside else LEVEL
        needed = [self._needed(row, level) for row in outside or self.samples]
        count = max(min(needed) if outside else max(needed), FEWEST)
        if count == math.inf:
            return "more seeds or larger sizes are needed"
        return f"about {count:.0f} seeds would decide" if count <= 10_000 else "larger sizes are needed"

    def _needed(self, row: np.ndarray, level: float) -> float:
        """How many seeds keep a cell's interval on the side of the edges where its mean is."""
        mean, spread = mean_of(row), spread_of(row)
        edges = [edge for edge in (self.lower, self.upper) if math.isfinite(edge)]
        if not self._allows(mean):  # the edge that it is beyond
            edges = [min(edges, key=lambda edge: abs(edge - mean))]
        found = 0.0
        for edge in edges:
            room = abs(edge - mean)
            if not (room > 0 and math.isfinite(spread)):
                return math.inf
            needed = seeds_needed(room / spread if spread else math.inf, level)
            # A skewed sample's interval reaches further than Student's on one side, and narrows as fast.
            reach, student = (
                abs(interval(row, level)[int(edge > mean)] - mean)
                for interval in (mean_interval, student_interval)
            )
            wider = reach > student * (1 + 1e-9) > 0
            found = max(found, math.ceil(needed * (reach / student) ** 2) if wider else needed)
        return found


def _too_few(count: int, what: str) -> str:
    return (
        f"{count} seeds are too few: {what} in {RARE:.0%} of them would stay unseen "
        f"{unseen(0, count):.0%} of the time; {FEWEST} seeds would do"
    )


def few_runs(share: float, cell: str) -> str:
    """The sentence that says that too few runs have a value."""
    at = f" at {cell}" if cell else ""
    why = "the others did not train, are not finite or never got there"
    return f"only {percent(share)} of the runs{at} have a value: {why}"
