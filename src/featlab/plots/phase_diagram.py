"""Phase diagrams: a quantity over the grid of a sweep, its measured contour, and the theory's boundary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from featlab.core.validation import InputError
from featlab.plots._maps import (
    DASHES,
    UNTRAINED,
    Boundary,
    axes_of,
    by_label,
    cell_edges,
    colour_bar,
    described,
    draw_map,
    grid_of,
    norm_of,
    scale_axis,
    value_of,
)
from featlab.plots._scalings import over_seeds
from featlab.plots._style import BLACK, BLUE, GREY, RED, house_style, legend_above, panels
from featlab.sweeps.contour import Cells, cells, checked_number, contour, is_log, positions

_PLOT = "phase_diagram"


def phase_diagram(
    diagram: xr.Dataset,
    variable: str,
    *,
    boundary: Boundary | Mapping[str, Boundary] | None = None,
    level: float | None = None,
    x: str | None = None,
    y: str | None = None,
    floor: float | None = None,
) -> Figure:
    """The mean over seeds in each cell of a sweep: a heat map, or a curve where one dim was swept.

    `boundary` is the theory's y as a function of x, or several of them by label; for a curve, its x as a
    number or a function without arguments. `level` adds the measured contour with its 95 % interval, and
    `floor` marks a value that the variable cannot fall below. `x` and `y` name the dims, in the sweep's order
    if left out. Cells where fewer than 90 % of the runs trained are hatched. A cell that was not computed
    shows its nearest neighbour's value if computed cells lie all around it, which then have a dot, and is
    blank elsewhere.
    """
    found = cells(diagram, variable, _PLOT)
    across, up = axes_of(diagram, found, x, y, _PLOT)
    if up is None and "done" in diagram and not diagram.done.any():  # a grid stays blank, a curve cannot
        raise InputError(f"{_PLOT} has nothing to draw: no run of this sweep is done yet.")
    level = None if level is None else checked_number(level, f"{_PLOT}(level=)")
    floor = None if floor is None else checked_number(floor, f"{_PLOT}(floor=)")
    theory = by_label(boundary)
    with house_style():
        figure, (axes,) = panels()
        if up is None:
            draw_curve(axes, found, diagram[across], plot=_PLOT)
            draw_levels(axes, level=level, floor=floor)
            draw_thresholds(axes, theory, plot=_PLOT)
            if level is not None:
                _draw_crossing(axes, contour(diagram, variable, level))
        else:
            figure.set_size_inches(8.6, 6.0)
            grid = grid_of(found, diagram[across], diagram[up], _PLOT)
            norm = norm_of([grid], floor)
            draw_map(axes, grid, diagram, found, norm=norm, theory=theory, level=level, plot=_PLOT)
            colour_bar(figure, [axes], norm, found.values, level=level, floor=floor)
        _legend(figure, axes, runs_of(found))
    return figure


# -- the curve


def draw_curve(
    axes: Axes, found: Cells, coord: xr.DataArray, *, plot: str, label: str | None = None, **style: Any
) -> None:
    """The mean over seeds and its interval at each value that was computed."""
    style = {"color": BLUE, "marker": "o"} | style
    order = np.argsort(positions(coord, plot))
    order = order[found.done.values[order]]
    x, runs, trained = coord.values[order], found.values.values[order], found.trained.values[order]
    mean = over_seeds(runs)
    band = (np.isfinite(runs).sum(axis=1) > 1).tolist()
    axes.fill_between(x, mean.low, mean.high, where=band, color=style["color"], alpha=0.25, linewidth=0)
    label = "mean" + ", 95 % band" * any(band) if label is None else label
    axes.plot(x, mean.at, gid="mean", label=label, **style)
    if not trained.all():
        hollow = style | {"linestyle": "none", "markerfacecolor": "white", "markeredgewidth": 2, "zorder": 3}
        axes.plot(x[~trained], mean.at[~trained], gid="untrained", label=UNTRAINED, **hollow)
    edges = cell_edges(coord.values[np.argsort(coord.values)].astype(float), log=is_log(coord))
    scale_axis(axes.xaxis, coord, float(edges[0]), float(edges[-1]))
    axes.set_ylabel(described(found.values))


def draw_levels(axes: Axes, *, level: float | None, floor: float | None) -> None:
    """The level that is of interest, and the value that nothing falls below."""
    if level is not None:
        axes.axhline(level, color=GREY, linewidth=2, gid="level", label=f"level {level:g}")
    if floor is not None:
        axes.axhline(floor, color=BLACK, linewidth=2, linestyle=":", gid="floor", label=f"floor {floor:g}")


def draw_thresholds(axes: Axes, theory: Mapping[str, Boundary], *, plot: str) -> None:
    """The theory's boundaries on an axis of one swept dim."""
    for k, (label, one) in enumerate(theory.items()):
        at = value_of(one, plot=plot) if callable(one) else checked_number(one, f"{plot}(boundary=)")
        axes.axvline(at, color=BLACK, linestyle=DASHES[k % len(DASHES)], gid="theory", label=label)


def _draw_crossing(axes: Axes, measured: xr.Dataset) -> None:
    at, low, high = (float(measured[name]) for name in ("at", "low", "high"))
    if np.isnan(at):
        return
    error = None if np.isnan(low) else [[at - low], [high - at]]
    label = f"measured  {at:.3g}" + ", 95 %" * (error is not None)
    style = {"color": RED, "marker": "D", "linestyle": "none", "capsize": 6, "elinewidth": 3, "zorder": 4}
    axes.errorbar(at, measured.attrs["level"], xerr=error, label=label, gid="contour", **style)


# -- both


def runs_of(found: Cells) -> str:
    """How many seeds there are in a cell, and how many cells."""
    done = found.done.values
    if not done.any():
        return "nothing computed yet"
    counts = np.isfinite(found.values.values).sum(axis=-1)[done]
    low, high = int(counts.min()), int(counts.max())
    seeds = f"{high} seed{'s' * (high != 1)}" if low == high else f"{low} to {high} seeds"
    rest = "" if done.all() else f", {done.sum()} of {done.size} cells computed"
    return f"mean over {seeds}{rest}" if high > 1 or low != high else f"{seeds}{rest}"


def _legend(figure: Figure, axes: Axes, title: str) -> None:
    """The legend above the panel, in two columns if they fit, and the figure higher by its rows."""
    if not axes.get_legend_handles_labels()[0]:
        axes.set_title(title, loc="left", fontsize=matplotlib.rcParams["font.size"])
        return
    legend_above(axes, title)
    legend = axes.get_legend()
    assert legend is not None
    legend.set_in_layout(False)
    figure.draw_without_rendering()
    columns = 2 if legend.get_window_extent().x1 <= axes.get_window_extent().x1 else 1
    legend_above(axes, title, columns)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.3 * -(-len(legend.get_texts()) // columns))
