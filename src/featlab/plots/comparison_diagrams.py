"""Several algorithms on one grid: their phase diagrams side by side, with one colour scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from featlab.core.validation import InputError
from featlab.plots._looks import look, shared_legend
from featlab.plots._maps import Boundary, axes_of, by_label, colour_bar, draw_map, grid_of, norm_of
from featlab.plots._style import house_style
from featlab.plots.comparison import by_algorithm
from featlab.plots.phase_diagram import draw_curve, draw_levels, draw_thresholds, runs_of
from featlab.sweeps.contour import Cells, cells, checked_number, contour

_PLOT = "comparison_diagrams"
_COLUMNS = 3


def comparison_diagrams(
    dataset: xr.Dataset,
    variable: str,
    *,
    boundary: Boundary | Mapping[str, Boundary | Mapping[str, Boundary]] | None = None,
    level: float | None = None,
    x: str | None = None,
    y: str | None = None,
    floor: float | None = None,
) -> Figure:
    """What `compare` returned with a grid: a map for each algorithm, or a curve for each if one dim was swept.

    All is as in `phase_diagram`. The colours have one scale, from the lowest to the highest trained cell of all
    algorithms. `boundary` holds for all of them; by the names of algorithms, each has its own.
    """
    parts = by_algorithm(dataset, _PLOT)
    found = {name: cells(part, variable, _PLOT) for name, part in parts.items()}
    one = next(iter(found.values()))
    across, up = axes_of(dataset, one, x, y, _PLOT)
    if "done" in dataset and not dataset["done"].any():
        raise InputError(f"{_PLOT} has nothing to draw: no run of this comparison is done yet.")
    level = None if level is None else checked_number(level, f"{_PLOT}(level=)")
    floor = None if floor is None else checked_number(floor, f"{_PLOT}(floor=)")
    theory = _of_each(boundary, list(parts))
    with house_style():
        if up is None:
            return _curves(parts, found, across, theory, level, floor)
        columns = min(len(parts), _COLUMNS if len(parts) != 4 else 2)
        rows = -(-len(parts) // columns)
        figure = Figure(figsize=(5.4 * columns + 1.8, 5.0 * rows), layout="constrained")
        panels = list(figure.subplots(rows, columns, squeeze=False).ravel())
        grids = {name: grid_of(found[name], part[across], part[up], _PLOT) for name, part in parts.items()}
        norm = norm_of(list(grids.values()), floor)
        for k, (axes, (name, part)) in enumerate(zip(panels, parts.items())):
            lines = {"theory": theory[name], "level": level, "plot": _PLOT}
            crossed = draw_map(axes, grids[name], part, found[name], norm=norm, **lines)
            for line in [] if crossed else [line for line in axes.lines if line.get_gid() == "contour"]:
                line.set_label("_not crossed")  # the title says so
            axes.set_title(name if crossed else f"{name}: {level:g} not crossed")
            if k % columns:
                axes.set_ylabel("")
            if k + columns < len(parts):
                axes.set_xlabel("")
        for axes in panels[len(parts) :]:
            axes.set_visible(False)
        used = panels[: len(parts)]
        colour_bar(figure, panels, norm, one.values, level=level, floor=floor)
        shared_legend(figure, used, _heading(found))
    return figure


def _curves(
    parts: Mapping[str, xr.Dataset],
    found: Mapping[str, Cells],
    across: str,
    theory: Mapping[str, Mapping[str, Boundary]],
    level: float | None,
    floor: float | None,
) -> Figure:
    """One panel, a curve for each algorithm; where it crosses the level stands in the legend."""
    figure = Figure(figsize=(10.0, 5.6), layout="constrained")
    axes = figure.subplots()
    lines: dict[str, Boundary] = {}
    for k, (name, part) in enumerate(parts.items()):
        at = None if level is None else float(contour(part, str(found[name].values.name), level)["at"])
        crossing = "" if at is None else ", not crossed" if at != at else f", crossed at {at:.3g}"
        draw_curve(axes, found[name], part[across], plot=_PLOT, label=name + crossing, **look(k))
        lines |= {label: one for label, one in theory[name].items()}
    draw_levels(axes, level=level, floor=floor)
    draw_thresholds(axes, lines, plot=_PLOT)
    shared_legend(
        figure,
        [axes],
        _heading(found) + ", 95 % bands" * any(one.values.sizes["seed"] > 1 for one in found.values()),
    )
    return figure


def _of_each(boundary: Boundary | Mapping[str, Any] | None, names: list[str]) -> dict[str, dict[str, Boundary]]:
    """The theory's lines in the panel of each algorithm."""
    if isinstance(boundary, Mapping) and boundary and set(boundary) <= set(names):
        named = {name: boundary.get(name, {}) for name in names}
        return {
            name: by_label(one) if isinstance(one, Mapping) else {f"theory, {name}": one}
            for name, one in named.items()
        }
    return {name: by_label(boundary) for name in names}


def _heading(found: Mapping[str, Cells]) -> str:
    """How many runs there are in each cell, said once if it is the same for all algorithms."""
    texts = {name: runs_of(one) for name, one in found.items()}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values())).replace("mean over ", "mean over the same ")
    return "\n".join(f"{name}: {text}" for name, text in texts.items())
