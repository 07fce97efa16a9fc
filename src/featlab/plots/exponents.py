"""Every measured rate beside the theory's value: one row each, grouped by claim."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from featlab.claims.verdict import Verdict
from featlab.core.validation import InputError
from featlab.plots._forest import MARKS, REACH, draw_row, place, two_sided
from featlab.plots._scalings import BAND, as_fraction, plain
from featlab.plots._style import BLACK, GREY, house_style

RATES = ("scales_as", "switches_at")
_ONE_COLUMN = 22  # rows that fit into one
_ROW = 0.56  # inches
_HEADING = 1.1  # rows
_WIDTHS = {"name": 3.9, "axis": 2.7, "gap": 0.35, "strip": 2.5, "numbers": 3.7}  # inches, from left to right
_TOP, _BOTTOM = 1.75, 0.95  # inches: title, legend and headings; ticks and labels
_LETTERS = 32  # in a line of a name


class Group(NamedTuple):
    """The rates of one claim."""

    id: str
    status: str
    checks: list[Mapping[str, Any]]

    @property
    def rows(self) -> float:
        return _HEADING + len(self.checks)


def exponents(records: Sequence[Verdict | Mapping[str, Any]]) -> Figure:
    """Draw the exponents and thresholds of verdicts, or of their records.

    On the first axis each exponent lies at its value, with a tick at the theory's. Beside it the same is magnified
    to margins: the 95 % interval within what theory allows, which is grey. A threshold has its own unit and stands
    on the second axis only. The shape of the mark is the verdict on this row; that of the claim stands above.
    """
    groups = _groups(records)
    columns = _columns(groups)
    rows = sum(len(group.checks) for group in groups)
    width, longest = sum(_WIDTHS.values()) + 0.3, max(sum(one.rows for one in part) for part in columns)
    size = len(columns) * width, _ROW * longest + _TOP + _BOTTOM
    with house_style():
        figure = Figure(figsize=size)
        title = f"{rows} measured rate{'s' * (rows != 1)} of {len(groups)} claim{'s' * (len(groups) != 1)}"
        figure.text(0.5, 1 - 0.1 / size[1], title, fontsize=26, fontweight="bold", ha="center", va="top")
        _legend(figure, size, _reach(groups) == REACH)
        for k, part in enumerate(columns):
            _draw_column(figure, part, k * width, longest, _limits(groups), _reach(groups))
    return figure


def _groups(records: Any) -> list[Group]:
    """What is drawn, or one sentence that says why these are no records."""
    if isinstance(records, Mapping | str) or not isinstance(records, Sequence):
        raise InputError(f"plots.exponents(records) must be a list of verdicts, got {type(records).__name__}.")
    groups = []
    try:
        for one in records:
            record = one.record() if isinstance(one, Verdict) else one
            rates = [check for check in record["checks"] if check["kind"] in RATES and two_sided(check)]
            for check in rates:
                place(check)
                if not isinstance(check["name"], str) or check["status"] not in MARKS:
                    raise TypeError("the name or status of a check")
            if rates:
                groups.append(Group(str(record["id"]), str(record["status"]), rates))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"These are no records of verdicts; what is missing or wrong: {error}.") from None
    if not groups:
        raise InputError("plots.exponents(records) found no exponent or threshold among the checks.")
    return groups


def _columns(groups: list[Group]) -> list[list[Group]]:
    """One column, or two of about equal height; a claim stays together."""
    if sum(len(group.checks) for group in groups) <= _ONE_COLUMN or len(groups) == 1:
        return [groups]
    whole = sum(group.rows for group in groups)
    cut = min(range(1, len(groups)), key=lambda k: abs(whole - 2 * sum(one.rows for one in groups[:k])))
    return [groups[:cut], groups[cut:]]


def _limits(groups: list[Group]) -> tuple[float, float]:
    values = [
        float(check[name])
        for group in groups
        for check in group.checks
        for name in ("measured", "expected")
        if check["kind"] == "scales_as" and check[name] is not None
    ] or [0.0]
    return min(values) - 0.5, max(values) + 0.5


def _reach(groups: list[Group]) -> float:
    """How many margins are shown to both sides: half as many where that is enough."""
    rows = [place(check) for group in groups for check in group.checks]
    enough = all(abs(end) <= REACH / 2 for row in rows for end in (row.low, row.high) if math.isfinite(end))
    return REACH / 2 if enough else REACH


def _draw_column(figure: Figure, groups: list[Group], left: float, rows: float, limits, reach: float) -> None:
    across, up = figure.get_size_inches()
    starts = [left + 0.15 + sum(list(_WIDTHS.values())[:k]) for k in range(len(_WIDTHS))]

    def panel(start: float, width: float) -> Axes:
        axes = figure.add_axes((start / across, _BOTTOM / up, width / across, _ROW * rows / up))
        axes.set_ylim(rows, 0)
        axes.set_yticks([])
        axes.grid(False)
        axes.patch.set_visible(False)  # or it would hide the lines between claims
        axes.spines["left"].set_visible(False)
        return axes

    true, strip = panel(starts[1], _WIDTHS["axis"]), panel(starts[3], _WIDTHS["strip"])
    true.set(xlim=limits, xlabel="exponent")
    true.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    true.grid(True, axis="x")
    strip.set(xlim=(-1.02 * reach, 1.02 * reach), xlabel="in margins")
    strip.set_xticks([-reach, -reach / 2, 0, reach / 2, reach])
    heading = {"fontsize": 15, "color": "#444444", "va": "bottom"}
    true.text(0.5, 1.0, "value", transform=true.transAxes, ha="center", **heading)
    strip.text(0.5, 1.0, "magnified", transform=strip.transAxes, ha="center", **heading)
    ends = starts[4] + 0.15 - starts[3]
    strip.text(ends / _WIDTHS["strip"], 1.0, "measured [95 %], theory", transform=strip.transAxes, **heading)
    at = 0.0
    for group in groups:
        _draw_heading(true, group, at, left + 0.15 - starts[1])
        at += _HEADING
        for check in group.checks:
            _draw_row(true, strip, check, at + 0.5, ends / _WIDTHS["strip"])
            at += 1


def _draw_heading(axes: Axes, group: Group, at: float, start: float) -> None:
    line = at + _HEADING - 0.1
    x = start / _WIDTHS["axis"]  # where names begin
    end = (sum(_WIDTHS.values()) + start) / _WIDTHS["axis"]
    where = axes.get_yaxis_transform()
    axes.plot([x, end], [line, line], transform=where, color=BLACK, linewidth=1.2, clip_on=False, zorder=0)
    text = plain(f"{group.id}:  {group.status}")
    axes.text(x, line - 0.08, text, transform=where, va="bottom", fontsize=17, fontweight="bold")


def _draw_row(true: Axes, strip: Axes, check: Mapping[str, Any], at: float, end: float) -> None:
    row, mark = place(check), MARKS[check["status"]]
    draw_row(strip, at, row, mark)
    expected, margin = float(check["expected"]), float(check["margin"])
    if check["kind"] == "scales_as":
        band = [at - 0.38, at + 0.38]
        true.fill_betweenx(band, expected - margin, expected + margin, color=BAND, linewidth=0, zorder=0.5)
        true.plot([expected] * 2, band, color=BLACK, linewidth=2.4, zorder=1, gid="theory")
        if check["measured"] is not None:
            look = {"markersize": 10, "markeredgecolor": BLACK, "zorder": 3, "gid": "measured"}
            true.plot([float(check["measured"])], [at], **look, **mark)
    else:
        note = {"fontsize": 13, "color": GREY, "ha": "center", "va": "center"}
        true.text(0.5, at, "threshold", transform=true.get_yaxis_transform(), **note)
    name = textwrap.fill(_short(check["name"]).replace(" = ", "\xa0=\xa0"), _LETTERS)
    true.annotate(
        plain(name), (0, at), (-12, 0), true.get_yaxis_transform(), "offset points",
        ha="right", va="center", fontsize=15, linespacing=1.05,
    )  # fmt: skip
    where = strip.get_yaxis_transform()
    strip.text(end, at, numbers(check), transform=where, va="center", fontsize=15, linespacing=1.1)


def _short(name: str) -> str:
    """Without what the title says already."""
    return name.removeprefix("exponent of the ").removeprefix("exponent of ")


def numbers(check: Mapping[str, Any]) -> str:
    """Measured with its interval, and below it what theory allows."""
    theory = f"{as_fraction(float(check['expected']))} ± {float(check['margin']):.2g}"
    if any(check[name] is None for name in ("measured", "low", "high")):
        return f"not measured\ntheory {theory}"
    at, low, high = (f"{float(check[name]):.4f}" for name in ("measured", "low", "high"))
    return f"{at} [{low}, {high}]\ntheory {theory}"


def _legend(figure: Figure, size: tuple[float, float], arrows: bool) -> None:
    marks = [
        Line2D([], [], linestyle="none", markersize=12, markeredgecolor=BLACK, label=name, **mark)
        for name, mark in MARKS.items()
    ]
    theory = Line2D([], [], linestyle="none", marker="|", markersize=18, markeredgewidth=2.4, color=BLACK)
    theory.set_label("theory")
    beyond = Line2D([], [], linestyle="none", marker=">", color=BLACK, markersize=11)
    beyond.set_label("beyond the axis, mark white")
    handles = [*marks, theory, Patch(color=BAND, label="its margin"), *[beyond] * arrows]
    figure.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 1 - 0.62 / size[1]),
        ncols=len(handles),
        handlelength=1.2,
        columnspacing=1.0,
        fontsize=16,
    )
