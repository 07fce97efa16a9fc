"""All checks of a verdict on one axis: one row each, with what theory allows behind it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from featlab.plots._scalings import BAND, as_fraction, plain
from featlab.plots._style import BLACK, BLUE, GREY, RED, YELLOW

REACH = 4.0  # of the axis, to both sides; the nearest rival is 3 or more away
MARKS: dict[str, dict[str, Any]] = {
    "supported": {"marker": "o", "color": BLUE},
    "refuted": {"marker": "X", "color": RED},
    "inconclusive": {"marker": "D", "color": YELLOW},
}
_LABEL = 44  # letters in a line
_HALF = 0.38  # of a row, the band's height


class Row(NamedTuple):
    """A check on the common axis: measured, its interval, and the region that theory allows."""

    at: float
    low: float
    high: float
    allowed: tuple[float, float]
    theory: float
    unitless: bool = False  # a bound of 0


def place(check: Mapping[str, Any]) -> Row:
    """Theory is 0 and the margin 1 where both sides are allowed; the bound is 1 where one side is.

    A bound of 0 has no such unit: there the end of the interval that is further from 0 is 1.
    """
    at, low, high = (_number(check[name]) for name in ("measured", "low", "high"))
    expected, margin = float(check["expected"]), float(check["margin"])
    if two_sided(check):
        unit = margin or 1.0
        return Row((at - expected) / unit, (low - expected) / unit, (high - expected) / unit, (-1.0, 1.0), 0.0)
    bound = _bound(check)
    ends = [abs(end) for end in (low, high) if math.isfinite(end)]
    unit = abs(bound) or max(ends, default=0.0) or 1.0
    edge = bound / unit
    allowed = (-math.inf, edge) if check.get("lower") is None else (edge, math.inf)
    return Row(at / unit, low / unit, high / unit, allowed, edge, bound == 0)


def row_height(checks: Sequence[Mapping[str, Any]]) -> float:
    """Inches for each row, so that the longest name has room."""
    lines = max(_label(check).count("\n") + 1 for check in checks)
    return max(0.62, 0.16 + 0.27 * lines)


def forest(axes: Axes, checks: Sequence[Mapping[str, Any]], control: Mapping[str, Any]) -> None:
    """One row for each check and one, set apart, for the control, which should lie outside."""
    records = [*checks, control]
    rows = [place(check) for check in records]
    heights = [*range(len(checks)), len(checks) + 0.5]
    for height, row, check in zip(heights, rows, records):
        draw_row(axes, height, row, MARKS[check["status"]])
    axes.axhline(len(checks) - 0.25, color=BLACK, linewidth=1.2)
    axes.set_xlim(-1.02 * REACH, 1.02 * REACH)
    axes.set_xticks(np.arange(-REACH, REACH + 1))
    axes.set_ylim(heights[-1] + 0.6, -0.6)
    axes.grid(False)
    axes.spines["left"].set_visible(False)
    units = ["(measured - theory) / margin,  or  measured / bound"]
    if any(row.unitless for row in rows):
        units.append("(bound 0: measured / far end of its interval)")
    axes.set_xlabel("\n".join(units))
    named = {**control, "name": f"control, should lie outside: {control['changes']}"}
    axes.set_yticks(heights, [_label(check) for check in [*checks, named]])
    axes.tick_params(axis="y", length=0, pad=10)
    numbers = axes.secondary_yaxis("right")
    numbers.set_yticks(heights, [_numbers(check) for check in records])
    numbers.tick_params(axis="y", length=0, pad=10)
    numbers.spines["right"].set_visible(False)
    _legend(axes)


def draw_row(axes: Axes, height: float, row: Row, mark: dict[str, Any]) -> None:
    """One row: what theory allows, the interval, and the mark of the verdict."""
    band = [height - _HALF, height + _HALF]
    left, right = (max(-1.02 * REACH, min(1.02 * REACH, end)) for end in row.allowed)
    axes.fill_betweenx(band, left, right, color=BAND, linewidth=0, zorder=0)
    axes.plot([row.theory] * 2, band, color=GREY, linewidth=2, zorder=1)
    if not math.isfinite(row.at):
        return
    low, high = (max(-REACH, min(REACH, end)) for end in (row.low, row.high))
    beyond = abs(row.at) > REACH
    inside = math.copysign(0.88 * REACH, row.at) if beyond else row.at
    axes.plot([min(low, inside), max(high, inside)], [height] * 2, color=BLACK, linewidth=2.4, zorder=2)
    for end, reached, arrow in ((low, -row.low, "<"), (high, row.high, ">")):
        if reached > REACH:
            axes.plot([end], [height], marker=arrow, markersize=11, color=BLACK, zorder=2)
        elif abs(end) < REACH and abs(end - inside) > 0.1:  # or the mark covers it
            axes.plot([end], [height], marker="|", markersize=14, markeredgewidth=2, color=BLACK, zorder=2)
    face = "white" if beyond else mark["color"]
    look = {"markersize": 12, "markeredgecolor": BLACK, "markerfacecolor": face, "zorder": 3}
    axes.plot([inside], [height], gid="measured", **look, **mark)


def _label(check: Mapping[str, Any]) -> str:
    where = f" ({check['worst_cell']})" if check.get("worst_cell") else ""
    text = (check["name"] + where).replace(" = ", "\xa0=\xa0")  # no line ends there
    return plain(textwrap.fill(text, _LABEL))


def _numbers(check: Mapping[str, Any]) -> str:
    if two_sided(check):
        theory = f"theory {as_fraction(float(check['expected']))} ± {float(check['margin']):.2g}"
    else:
        theory = f"theory {'≤' if check.get('lower') is None else '≥'} {_bound(check):.3g}"
    at, low, high = (_number(check[name]) for name in ("measured", "low", "high"))
    measured = f"{at:.3g} [{low:.3g}, {high:.3g}]" if math.isfinite(at) else "not measured"
    return f"{measured}\n{theory}"


def two_sided(check: Mapping[str, Any]) -> bool:
    """Whether theory allows a value and a margin around it; otherwise one side of a bound."""
    ends = [check.get("lower"), check.get("upper")]
    if ends == [None, None]:
        raise ValueError(f"the check {check.get('name')!r} has no region")
    return None not in ends


def _bound(check: Mapping[str, Any]) -> float:
    return float(check["upper"] if check.get("lower") is None else check["lower"])


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _legend(axes: Axes) -> None:
    marks = [
        Line2D([], [], linestyle="none", markersize=12, markeredgecolor=BLACK, label=name, **mark)
        for name, mark in MARKS.items()
    ]
    beyond = Line2D(
        [], [], linestyle="none", marker=">", color=BLACK, markersize=11, label="beyond the axis, mark white"
    )
    axes.legend(
        handles=[*marks, Patch(color=BAND, label="allowed by theory"), beyond],
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=5,
        handlelength=1.4,
    )
