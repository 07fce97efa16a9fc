"""A strip picture of which neurons are surely or potentially good, from the start of training to its end."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from featlab.core.validation import InputError
from featlab.plots._style import BLUE, house_style, panels

_COLOURS = ("#FFFFFF", "#C8CCD2", BLUE)  # light, middle, dark: also in grey
_LABELS = (None, r"in some $S_{\mathrm{pot},j}$", r"in some $S_{\mathrm{sure},j}$")


def neuron_strips(history: xr.Dataset) -> Figure:
    r"""One row for each neuron that is ever good, one column for each recorded step.

    The dataset is that of a run of one seed that records `neuron_sets`. Rows are in the order in which neurons
    first became surely good; below them are those that were potentially good at some time, and never more.
    """
    with house_style():
        figure, (axes,) = panels(1)
        draw_strips(axes, history)
    return figure


def draw_strips(axes: Axes, history: xr.Dataset) -> None:
    """The strips in a panel."""
    levels, steps = _levels(history)
    rows = levels[:, order(levels)].T
    axes.pcolormesh(_edges(steps), np.arange(len(rows) + 1), rows, cmap=ListedColormap(_COLOURS), vmin=0, vmax=2)
    axes.set(xlabel="step $t$", ylabel="neuron", ylim=(len(rows), 0))
    axes.grid(False)
    handles = [
        Patch(facecolor=c, edgecolor="#777777", label=label) for c, label in zip(_COLOURS, _LABELS) if label
    ]
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, borderaxespad=0.2)


def order(levels: np.ndarray) -> np.ndarray:
    """The neurons that are ever good, earliest first; of those that begin together the one that stays longer."""
    ever = levels.max(axis=0)
    first = np.where(ever == 2, np.argmax(levels == 2, axis=0), len(levels) + np.argmax(levels == 1, axis=0))
    ranked = np.lexsort([-(levels == 2).sum(axis=0), first])
    return ranked[ever[ranked] > 0]


def _levels(history: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """2 for a surely good neuron, 1 for a potentially good one, else 0; (step, neuron), and the steps."""
    missing = [name for name in ("sure", "potential") if name not in history]
    if missing:
        raise InputError(f"neuron_strips needs {missing[0]!r}; record the probe neuron_sets.")
    one = history.squeeze("seed") if history.sizes.get("seed") == 1 else history
    if "seed" in one.dims:
        raise InputError("neuron_strips draws one seed; select one, e.g. history.isel(seed=0).")
    if "step" not in one["sure"].dims or one.sizes["step"] < 2:
        raise InputError("neuron_strips needs two recorded steps or more; give the probe no clock of its own.")
    inside = [
        one[name].astype(bool).any("atom").transpose("step", "neuron").values for name in ("sure", "potential")
    ]
    return np.maximum(2 * inside[0], inside[1]), one["step"].values


def _edges(steps: np.ndarray) -> np.ndarray:
    """Between the steps, and half a gap beyond either end."""
    middle = (steps[1:] + steps[:-1]) / 2
    return np.concatenate([[1.5 * steps[0] - steps[1] / 2], middle, [1.5 * steps[-1] - steps[-2] / 2]])
