"""Several algorithms on one experiment, as curves: a panel for each quantity, a line for each algorithm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from featlab.core.validation import InputError, did_you_mean
from featlab.plots._curves import Curve, curve, described, draw, is_geometric, note, shown, spans_decades, step_dim
from featlab.plots._looks import look, shared_legend
from featlab.plots._style import BLACK, GREY, house_style
from featlab.plots.coefficients import largest

_PLOT = "comparison"
_COLUMNS = 3
# What is shown if nothing is asked for, as far as it was recorded: one of each row.
_USUAL = (
    ("train_loss",),
    ("test_error", "clean_test_error", "test_loss"),
    ("gamma", "signal_learnt", "signal_alignment"),
    ("rho", "noise_memorised", "noise_alignment"),
)


def comparison(dataset: xr.Dataset, variables: str | Sequence[str] | None = None) -> Figure:
    """What `compare` returned without a grid: each variable over steps, in a panel of its own.

    Lines are means over the seeds that did not diverge, bands 95 % intervals of the mean (all runs, where there
    are fewer than three). A variable of many numbers is drawn as the largest among them, $\\rho$ among those of
    the filter's own class, others by magnitude. Left out, `variables` are the training loss, a test error, and
    how much was learnt of signal and noise.
    """
    parts = by_algorithm(dataset, _PLOT)
    names = _chosen(dataset, variables)
    with house_style():
        columns = min(len(names), _COLUMNS if len(names) != 4 else 2)
        rows = -(-len(names) // columns)
        figure = Figure(figsize=(7.5 if columns == 1 else 6.2 * columns, 4.6 * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, name in zip(grid, names):
            _panel(axes, parts, name, dataset.attrs.get("test_flip"))
        for axes in grid[len(names) :]:
            axes.set_visible(False)
        shared_legend(figure, list(grid[: len(names)]), _heading(parts))
    return figure


def by_algorithm(dataset: xr.Dataset, plot: str) -> dict[str, xr.Dataset]:
    """The part of each algorithm."""
    if not isinstance(dataset, xr.Dataset) or "algorithm" not in dataset.dims:
        raise InputError(f"{plot} draws what compare returned, a Dataset with the dim 'algorithm'.")
    return {str(name): dataset.sel(algorithm=name, drop=True) for name in dataset["algorithm"].values}


def _chosen(dataset: xr.Dataset, variables: str | Sequence[str] | None) -> list[str]:
    known = [str(name) for name, one in dataset.data_vars.items() if step_dim(one) is not None]
    if variables is None:
        found = [next((name for name in row if name in known), None) for row in _USUAL]
        names = [name for name in found if name is not None] or known[:1]
    else:
        names = [variables] if isinstance(variables, str) else list(variables)
    for name in names:
        if name not in known and name in dataset:
            raise InputError(
                f"{_PLOT} needs {name!r} over steps, and it was read only once; use comparison_diagrams."
            )
        if name not in known:
            raise InputError(f"{_PLOT} finds no variable {name!r} over steps; {did_you_mean(str(name), known)}")
    if not names:
        raise InputError(f"{_PLOT} needs a variable over steps, which this dataset lacks; give a probe a clock.")
    return names


def _panel(axes: Axes, parts: dict[str, xr.Dataset], name: str, floor: float | None) -> None:
    drawn: list[Curve] = []
    label = name
    for k, (algorithm, part) in enumerate(parts.items()):
        values = _one_number(shown(part), name)
        dim = step_dim(values)
        assert dim is not None
        # Others took other steps, and runs that are missing were interrupted.
        values = values.dropna(dim, how="all").dropna("seed", how="all")
        label = described(values)
        if values.size:
            drawn.append(curve(values, time=False, plot=_PLOT))
            draw(axes, drawn[-1], label=_with_failures(algorithm, part), **look(k))
    axes.set_xlabel("step  $t$")
    axes.set_ylabel(label)
    if not drawn:
        return
    steps = np.concatenate([one.x for one in drawn])
    geometric = all(is_geometric(one.x) for one in drawn)
    if geometric:
        axes.set_xscale("log")
    axes.set_xlim(steps[steps > 0].min() if geometric else steps.min(), 1.02 * max(steps.max(), 1e-9))
    if name.endswith("error"):
        axes.axhline(0, color=GREY, linewidth=1)
        axes.set_ylim(-0.02, 1.1 * max([0.1, *(np.nanmax(one.high) for one in drawn)]))
        if floor and name == "test_error":
            text = f"floor from flipped labels, {floor:g}"
            axes.axhline(floor, color=BLACK, linestyle=":", linewidth=2, gid="floor", label=text)
    elif spans_decades(*(one.mean for one in drawn)) and all(np.all(one.mean >= 0) for one in drawn):
        axes.set_yscale("log")
        axes.set_ylim(min(one.mean[one.mean > 0].min(initial=np.inf) for one in drawn) / 2)


def _one_number(runs: xr.Dataset, name: str) -> xr.DataArray:
    """A variable of many numbers as the largest among them, described as such."""
    values = runs[name]
    inner = [dim for dim in values.dims if dim not in ("seed", step_dim(values))]
    if not inner:
        return values
    symbol, meaning = values.attrs.get("symbol", ""), values.attrs.get("long_name", name)
    if name in ("gamma", "rho") and {"gamma", "rho"} <= set(runs.data_vars):
        values = dict(zip(("gamma", "rho"), largest(runs)))[name]
        symbol = rf"\max\,{symbol}"
    else:
        values, symbol = abs(values).max(inner), rf"\max\,|{symbol}|" if symbol else ""
    return values.rename(name).assign_attrs(symbol=symbol, long_name=f"largest {meaning}")


def _heading(parts: dict[str, xr.Dataset]) -> str:
    """How many seeds there are and as what they are shown; the legend says what became of some."""
    count = max(part.sizes.get("seed", 1) for part in parts.values())
    shape = ", mean and 95 % band" if count > 2 else ", mean and range" if count > 1 else ""
    return f"the same {count} seed{'s' * (count > 1)} for each{shape}"


def _with_failures(name: str, part: xr.Dataset) -> str:
    """The name of an algorithm, and how many of its runs diverged or did not finish."""
    first, _, failed = note(part).partition("\n")
    failed = "all diverged" if first.endswith("diverged") else failed
    return f"{name} ({failed})" if failed else name
