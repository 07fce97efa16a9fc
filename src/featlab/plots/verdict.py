"""A verdict as one figure: the power laws with their drift, and every check beside what theory allows."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.layout_engine import ConstrainedLayoutEngine

from featlab.claims.verdict import Verdict
from featlab.core.validation import InputError
from featlab.plots import _scalings as draw
from featlab.plots._forest import MARKS, forest, place, row_height, two_sided
from featlab.plots._scalings import Scaling
from featlab.plots._style import BLACK, house_style, legend_above

_ROW = 4.7  # inches: the height of a row of panels
_WIDTHS = {"forest": 13.5, "scaling and drift": 13.5, "scalings": 15.0, "decay": 9.0}
_WITH_DRIFT = 4  # scalings that have a drift panel of their own; more share one
_COLUMNS = 3  # of their grid


class Decay(NamedTuple):
    """Errors (pair, strength, seed) at strengths of the signal, for pairs of n and d."""

    x: np.ndarray
    pairs: list[tuple[float, float]]
    errors: np.ndarray
    bound: np.ndarray


def verdict(one: Verdict | Mapping[str, Any]) -> Figure:
    """Draw a verdict or its record, as `Verdict.record()` or a JSON file gives it.

    Each power law has a log-log panel: small points are seeds, large ones geometric means with 95 % intervals;
    theory's slope and its rivals go through their centre. Beside it stand the exponents between neighbouring
    sizes. At the right each check is a row: measured (in its worst cell) with its 95 % interval, in units of what
    theory allows, which is grey. The control should lie outside.
    """
    record = one.record() if isinstance(one, Verdict) else one
    scalings, decays = _read(record)
    panels = draw.groups(scalings)
    shared = len(panels) > _WITH_DRIFT
    rows = -(-len(panels) // _COLUMNS) if shared else len(panels)
    left = [_ROW * rows] * bool(rows) + [_ROW] * len(decays)
    right = [row_height(record["checks"]) * (len(record["checks"]) + 2) + 1.4] + [_ROW] * shared
    kinds = ["scalings" if shared else "scaling and drift" if panels else "decay"] * bool(left) + ["forest"]
    widths = [_WIDTHS[kind] for kind in kinds]
    said = [record["title"]] + [record["reason"]] * (record["status"] != "supported")
    lines = [part for line in said for part in textwrap.wrap(line, int(6.5 * sum(widths)))]
    head = 0.8 + 0.3 * len(lines)
    size = sum(widths), max(sum(left), sum(right)) + head
    with house_style():
        layout = ConstrainedLayoutEngine(h_pad=0.1, w_pad=0.1, rect=(0, 0, 1, 1 - head / size[1]))
        figure = Figure(figsize=size, layout=layout)
        title = f"{record['id']}: {record['status']}, {record['seeds']} seed{'s' * (record['seeds'] != 1)}"
        above = {"ha": "center", "va": "top", "in_layout": False}
        figure.suptitle(draw.plain(title), y=1 - 0.15 / size[1], fontsize=26, fontweight="bold", **above)
        figure.text(0.5, 1 - 0.7 / size[1], draw.plain("\n".join(lines)), fontsize=17, **above)
        *beside, last = figure.add_gridspec(1, len(widths), width_ratios=widths)
        if beside:
            cells = beside[0].subgridspec(len(left), 1, height_ratios=left)
            if panels:
                _draw_scalings(figure, cells[0], panels, rows)
            for k, decay in enumerate(decays, start=bool(panels)):
                _draw_decay(_alone(figure, cells[k]), decay)
        cells = last.subgridspec(len(right), 1, height_ratios=right)
        forest(_alone(figure, cells[0]), record["checks"], record["control"])
        if shared:
            draw.all_drifts(_alone(figure, cells[1]), {_tag(k): group for k, group in enumerate(panels)})
        _settle(figure)
    return figure


def _alone(figure: Figure, cell: SubplotSpec) -> Axes:
    """A panel whose margins are its own, not those of the panels above and below."""
    return figure.add_subplot(cell.subgridspec(1, 1)[0])


def _settle(figure: Figure) -> None:
    """Lay out once and round: the solver's last digits differ from run to run, and the figure should not."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position(np.round(axes.get_position().bounds, 4).tolist())


def _read(record: Any) -> tuple[list[Scaling], list[Decay]]:
    """What is drawn beside the forest, or one sentence that says why this is not a record."""
    if not isinstance(record, Mapping):
        raise InputError(f"plots.verdict(one) must be a Verdict or its record, got {type(record).__name__}.")
    try:
        for name, kind in {"id": str, "status": str, "title": str, "reason": str, "seeds": int}.items():
            if not isinstance(record[name], kind):
                raise TypeError(repr(name))
        for check in [*record["checks"], record["control"]]:
            place(check)
            if not isinstance(check["name"], str) or check["status"] not in MARKS:
                raise TypeError("the name or status of a check")
        if not isinstance(record["control"]["changes"], str):
            raise TypeError("'changes'")
        fitted = [check for check in record["checks"] if check["kind"] == "scales_as" and check["points"]]
        scalings = [draw.read_scaling(check) for check in fitted if two_sided(check)]
        decays = [_read_decay(check) for check in record["checks"] if "errors" in check["points"]]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"This is not the record of a verdict; what is missing or of the wrong kind: {error}."
        ) from None
    return scalings, decays


def _read_decay(check: Mapping[str, Any]) -> Decay:
    x, errors, bound = draw.arrays(check, "x", "errors", "bound")
    pairs = [(float(n), float(d)) for n, d in check["points"]["pairs"]]
    if x.ndim != 1 or errors.ndim != 3 or errors.shape[:2] != (len(pairs), len(x)) or bound.shape != x.shape:
        raise ValueError(f"the points of {check['name']!r}")
    return Decay(x, pairs, errors, bound)


def _draw_scalings(figure: Figure, cell: SubplotSpec, panels: Sequence[Sequence[Scaling]], rows: int) -> None:
    if len(panels) <= _WITH_DRIFT:
        grid = cell.subgridspec(rows, 2, width_ratios=[1.2, 1])
        for k, group in enumerate(panels):
            draw.thresholds(figure.add_subplot(grid[k, 0]), group)
            draw.drift(figure.add_subplot(grid[k, 1]), group)
        return
    grid = cell.subgridspec(rows, _COLUMNS)
    for k, group in enumerate(panels):
        draw.thresholds(figure.add_subplot(grid[divmod(k, _COLUMNS)]), group, f"{_tag(k)} ", columns=1)


def _tag(k: int) -> str:
    return f"({k + 1})"


def _draw_decay(axes: Axes, decay: Decay) -> None:
    """The error against X on a logarithmic axis, where the bound exp(-X/4) is a straight line."""
    axes.set_yscale("log")
    x = decay.x
    # Curves that agree cover each other: their marks shrink, so that all are seen.
    sizes = np.linspace(14, 6, len(decay.pairs))
    for (n, d), runs, size, style in zip(decay.pairs, decay.errors, sizes, draw.SERIES * len(decay.pairs)):
        mean = draw.over_seeds(runs)
        # A mean of positive numbers is positive.
        mean = mean._replace(low=np.fmax(mean.low, np.fmin.reduce(runs, axis=1)))
        label = f"n = {draw.number(n)}, d = {draw.number(d)}"
        draw.draw_mean(axes, x, mean, linewidth=1.2, markersize=size, label=label, **style)
    fine = np.linspace(x[0], x[-1], 50)
    bound = np.exp(np.interp(fine, x, np.log(decay.bound)))  # exact for an exponential
    axes.plot(fine, bound, color=BLACK, linestyle="--", gid="theory", label=r"theory: at most $e^{-X/4}$")
    draw.size_ticks(axes, x)
    draw.level_ticks(axes)
    axes.set_xlabel(r"$X = n\|\mu\|^4 / (\sigma^4 d)$")
    axes.set_ylabel("test error, clean labels")
    legend_above(axes, "mean over seeds, 95 % interval")
