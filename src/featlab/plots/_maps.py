"""A quantity over two swept dims in a panel: colours, hatches, the measured contour, the theory's lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colorbar import Colorbar
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from scipy.ndimage import distance_transform_edt

from featlab.core.validation import InputError, did_you_mean
from featlab.plots._curves import symbol
from featlab.plots._scalings import number
from featlab.plots._style import BLACK
from featlab.sweeps.contour import Cells, contour, is_log, positions

# Dark to light at an even pace; the lightest tenth is left to cells without a value.
COLOURS = ListedColormap(matplotlib.colormaps["viridis"](np.arange(230)))
BLANK = "#EFEFEF"
DASHES: list[Any] = [(0, (4, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5))]
UNTRAINED = "under 90 % of runs trained"
_STEPS = MaxNLocator(6, steps=[1, 2, 2.5, 5, 10])
_FEW = 12  # columns whose intervals are drawn one by one

Boundary = Callable[..., Any] | float


class Grid(NamedTuple):
    """What is drawn in each cell, rows up and columns across; it may be the nearest neighbour's value."""

    across: str
    up: str
    edges: tuple[np.ndarray, np.ndarray]
    centres: tuple[np.ndarray, np.ndarray]
    means: np.ndarray
    done: np.ndarray
    trained: np.ndarray
    shown: np.ndarray  # computed, or with computed cells all around it


def grid_of(found: Cells, across: xr.DataArray, up: xr.DataArray, plot: str) -> Grid:
    """What is drawn in each cell, from what is known of it."""
    order = {str(coord.name): np.argsort(positions(coord, plot)) for coord in (across, up)}
    means, done, trained = (
        one.isel(order).transpose(up.name, across.name).values
        for one in (found.values.mean("seed"), found.done, found.trained)
    )
    shown = np.full(done.shape, done.any())
    if done.any():
        rows, columns = np.asarray(distance_transform_edt(~done, return_distances=False, return_indices=True))
        means, trained = means[rows, columns], trained[rows, columns]
        for turn in range(4):  # a computed cell in each of the four quadrants
            corner = np.rot90(done, turn)
            seen = np.logical_or.accumulate(np.logical_or.accumulate(corner, axis=0), axis=1)
            shown &= np.rot90(seen, -turn)
    centres = [coord.values[order[str(coord.name)]].astype(float) for coord in (across, up)]
    edges = [cell_edges(at, log=is_log(coord)) for at, coord in zip(centres, (across, up))]
    return Grid(
        str(across.name), str(up.name), (edges[0], edges[1]), (centres[0], centres[1]), means, done, trained, shown
    )


def norm_of(grids: Sequence[Grid], floor: float | None) -> Normalize:
    """From the lowest to the highest mean of the cells that trained, or of all where none did."""
    means, done, trained = (
        np.concatenate([one.ravel() for one in parts])
        for parts in zip(*((grid.means, grid.done, grid.trained) for grid in grids))
    )
    finite = done & np.isfinite(means)
    chosen = finite & trained if (finite & trained).any() else finite
    values = np.concatenate([means[chosen], [] if floor is None else [floor]])
    low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
    if low == high:
        return Normalize(low - 0.5, high + 0.5)
    return Normalize(low - 0.04 * (high - low) * (low == floor), high)  # so that the floor is inside the bar


def draw_map(
    axes: Axes, grid: Grid, diagram: xr.Dataset, found: Cells, *, norm: Normalize, theory: Mapping[str, Boundary],
    level: float | None, plot: str,
) -> bool:  # fmt: skip
    """One panel; whether the level is crossed in it."""
    _frame(axes, grid, diagram[grid.across], diagram[grid.up])
    _draw_cells(axes, grid, norm)
    _draw_boundaries(axes, theory, grid, diagram[grid.across], plot)
    if level is None:
        return True
    enough = found.trained.sum(grid.up).values > 1  # where the grid is coarse, columns are empty
    measured = contour(diagram, str(found.values.name), level, along=grid.up).isel({grid.across: enough})
    _draw_contour(axes, measured, symbol(found.values))
    return bool(np.isfinite(measured["at"].values).any())


def colour_bar(
    figure: Figure, panels: Sequence[Axes], norm: Normalize, variable: xr.DataArray, *, level: float | None,
    floor: float | None,
) -> None:  # fmt: skip
    """The colours of some panels, with the level and the floor."""
    bar = figure.colorbar(ScalarMappable(norm, COLOURS), ax=list(panels), pad=0.02, fraction=0.08)
    bar.set_label(described(variable))
    _mark(bar, level, floor)


def axes_of(diagram: xr.Dataset, found: Cells, x: str | None, y: str | None, plot: str) -> tuple[str, str | None]:
    """The dim across and the dim up, none for a curve."""
    swept = [str(dim) for dim in found.done.dims]
    for name, given in (("x", x), ("y", y)):
        if given is not None and given not in swept:
            raise InputError(
                f"{plot}({name}=) must be a swept dim, got {given!r}; {did_you_mean(str(given), swept)}"
            )
    if x is not None and x == y:
        raise InputError(f"{plot}(x=, y=) must be two dims, got {x!r} for both.")
    if not 1 <= len(swept) <= 2:
        extra = [dim for dim in reversed(swept) if dim not in (x, y)]
        advice = (
            f"they are {', '.join(swept)}; select one value, e.g. diagram.sel({extra[0]}="
            f"{diagram[extra[0]].values[0]})."
            if swept
            else "this diagram has none."
        )
        raise InputError(f"{plot} draws one or two swept dims, and {advice}")
    if len(swept) == 1:
        return swept[0], None
    across = x or next(dim for dim in swept if dim != y)
    return across, next(dim for dim in swept if dim != across)


def by_label(boundary: Any) -> dict[str, Boundary]:
    """Boundaries by their labels in the legend."""
    if boundary is None:
        return {}
    if isinstance(boundary, Mapping):
        return {str(label): one for label, one in boundary.items()}
    name = getattr(boundary, "__name__", "").replace("_", " ")
    return {"theory" if not name or "<" in name else f"theory: {name}": boundary}


def cell_edges(at: np.ndarray, *, log: bool) -> np.ndarray:
    """Half-way between the points, and as far beyond the first and the last."""
    u = np.log(at) if log else at
    inner = (u[1:] + u[:-1]) / 2
    first, last = (u[0] - inner[0], u[-1] - inner[-1]) if len(inner) else (-0.5, 0.5)
    edges = np.concatenate([[u[0] + first], inner, [u[-1] + last]])
    return np.exp(edges) if log else edges


def _cover(axes: Axes, grid: Grid, chosen: np.ndarray, gid: str, label: str | None, **style) -> None:
    """Rectangles over the chosen cells."""
    x, y = grid.edges
    around = ((0, 0), (0, 1), (1, 1), (1, 0))
    corners = [[(x[j + b], y[i + a]) for a, b in around] for i, j in np.argwhere(chosen)]
    axes.add_collection(PolyCollection(corners, linewidth=0.5, gid=gid, label=label, **style), autolim=False)


def _draw_boundaries(
    axes: Axes, theory: Mapping[str, Boundary], grid: Grid, across: xr.DataArray, plot: str
) -> None:
    low, high = grid.edges[0][[0, -1]]
    low = grid.centres[0][0] if low <= 0 < grid.centres[0][0] else low  # what is positive stays so
    x = np.geomspace(low, high, 400) if is_log(across) else np.linspace(low, high, 400)
    for k, (label, one) in enumerate(theory.items()):
        if not callable(one):
            raise InputError(
                f"{plot}(boundary=) must be a function y(x), or a dict of them by label, got {one!r}."
            )
        y = np.array([value_of(one, at, plot=plot) for at in x])
        axes.plot(x, y, color="white", linewidth=4.4, zorder=4, gid="halo")
        dashes = DASHES[k % len(DASHES)]
        axes.plot(x, y, color=BLACK, linestyle=dashes, linewidth=2.6, zorder=4.5, label=label, gid="theory")


def value_of(one: Callable[..., Any], *at: float, plot: str) -> float:
    """The theory's number."""
    value = one(*(float(number) for number in at))
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{plot}(boundary=) must return a number, got {value!r}.") from None


def _draw_contour(axes: Axes, measured: xr.Dataset, name: str) -> None:
    """The measured line and its band; few columns have an interval each."""
    (across,) = measured["at"].dims
    measured = measured.sortby(across)
    x, at, low, high = (measured[one].values.astype(float) for one in (across, "at", "low", "high"))
    sure, crossed = np.isfinite(low), np.isfinite(at)
    ending = ", 95 %" if sure.any() else "" if crossed.any() else ": not crossed"
    label = rf"measured  ${name} = {measured.attrs['level']:g}${ending}"
    beside = np.concatenate([[False], crossed, [False]])
    alone = crossed & ~beside[:-2] & ~beside[2:]  # no line passes through
    if len(x) > _FEW:
        band = {"facecolor": (1, 1, 1, 0.4), "edgecolor": BLACK, "linewidth": 1, "zorder": 2.5}
        axes.fill_between(x, low, high, gid="band", **band)
    single = crossed if len(x) <= _FEW else alone
    style = {"color": "white", "path_effects": halo(BLACK, 5.6)}
    marker = "o" if single.any() else None
    (line,) = axes.plot(x, at, marker=marker, linewidth=3, zorder=3, label=label, gid="contour", **style)
    line.set(markersize=6, markevery=np.flatnonzero(single).tolist())
    some = sure & single
    if some.any():
        ends = np.concatenate([low[some], high[some]])
        axes.vlines(x[some], low[some], high[some], linewidth=2.6, zorder=2.8, gid="interval", **style)
        axes.plot(np.tile(x[some], 2), ends, "_", markersize=13, markeredgewidth=2.6, zorder=2.9, **style)


def described(variable: xr.DataArray) -> str:
    """Meaning and symbol, as far as they are given."""
    meaning = variable.attrs.get("long_name")
    if not variable.attrs.get("symbol"):
        return str(meaning or variable.name).replace("_", " ")
    return f"{meaning}  ${symbol(variable)}$" if meaning else f"${symbol(variable)}$"


def scale_axis(side: Axis, coord: xr.DataArray, low: float, high: float) -> None:
    """One axis: its scale, limits, name, and few ticks with plain numbers, but never none."""
    decades = np.log10(high / low) if is_log(coord) else 0.0
    axes = side.axes
    limits = (axes.set_xlim, axes.set_xscale) if side is axes.xaxis else (axes.set_ylim, axes.set_yscale)
    limits[1]("log" if is_log(coord) else "linear")
    limits[0](low, high)
    side.set_label_text(described(coord))
    side.set_minor_locator(NullLocator())
    if decades < 0.9:
        side.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    else:
        side.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 2.5 else (1,)))
    if is_log(coord) and decades < 2.5:  # beyond, powers of ten
        side.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


def halo(colour: str, width: float) -> list[Any]:
    """An edge around a line, so that it stands out from any colour."""
    return [Stroke(linewidth=width, foreground=colour), Normal()]


def _frame(axes: Axes, grid: Grid, across: xr.DataArray, up: xr.DataArray) -> None:
    """The grid's own limits, whatever the lines do, and ticks with plain numbers."""
    for side, edges, coord in zip((axes.xaxis, axes.yaxis), grid.edges, (across, up)):
        scale_axis(side, coord, float(edges[0]), float(edges[-1]))
    axes.spines[:].set_visible(True)


def _draw_cells(axes: Axes, grid: Grid, norm: Normalize) -> None:
    values = np.ma.masked_where(~grid.shown | ~np.isfinite(grid.means), grid.means)
    axes.pcolormesh(*grid.edges, values, cmap=COLOURS, norm=norm, gid="cells")
    axes.grid(False)
    if not grid.shown.all():
        _cover(axes, grid, ~grid.shown, "blank", "not computed", facecolor=BLANK, edgecolor="#CCCCCC")
    bad = grid.shown & ~grid.trained
    dark = np.ma.filled(norm(values) < 0.6, False)
    for some, ink, label in ((bad & dark, "white", None), (bad & ~dark, BLACK, UNTRAINED)):
        if bad.any():
            _cover(axes, grid, some, "untrained", label, facecolor="none", edgecolor=ink, hatch="///")
    if (grid.shown & ~grid.done).any():
        rows, columns = np.nonzero(grid.done)
        size = float(np.clip(150 / max(grid.done.shape), 2.5, 6))
        axes.plot(
            grid.centres[0][columns],
            grid.centres[1][rows],
            linestyle="none",
            marker="o",
            markersize=size,
            color="white",
            markeredgecolor=BLACK,
            markeredgewidth=0.8,
            gid="computed",
            label="computed cell",
        )


def _mark(bar: Colorbar, level: float | None, floor: float | None) -> None:
    """The level and the floor on the colour bar."""
    low, high = bar.ax.get_ylim()
    ticks = [tick for tick in _STEPS.tick_values(low, high) if low <= tick <= high]
    labels = {tick: number(abs(tick)) if tick >= 0 else f"-{number(-tick)}" for tick in ticks}
    if floor is not None:
        labels = {tick: text for tick, text in labels.items() if abs(tick - floor) > 0.06 * (high - low)}
        labels[floor] = f"floor {floor:g}"
        bar.ax.axhline(floor, color=BLACK, linewidth=2.6, path_effects=halo("white", 5.2), gid="floor")
    if level is not None and low <= level <= high:
        bar.ax.axhline(level, color="white", linewidth=2.6, path_effects=halo(BLACK, 5.2), gid="level")
    bar.set_ticks(list(labels), labels=list(labels.values()))
