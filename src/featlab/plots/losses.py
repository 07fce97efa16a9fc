"""Training and test loss, the errors on either side of them, and the largest coefficients."""

from __future__ import annotations

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from featlab.core.validation import InputError
from featlab.plots._curves import curve, described, draw, label_axis, note, shown, spans_decades, step_dim
from featlab.plots._style import BLACK, BLUE, GREY, RED, YELLOW, house_style, legend_above, panels

_PLOT = "losses"
_LOSSES = {
    "train_loss": {"color": BLUE, "linestyle": "-", "marker": "o"},
    "test_loss": {"color": RED, "linestyle": "--", "marker": "s"},
}
_ERRORS = {
    "train_error": {"color": BLUE, "linestyle": "-", "marker": "o"},
    "test_error": {"color": RED, "linestyle": "--", "marker": "s"},
    "clean_test_error": {"color": YELLOW, "linestyle": "-.", "marker": "^"},
}
_COEFFICIENTS = {
    "signal_learnt": {"color": BLUE, "linestyle": "-", "marker": "o"},
    "noise_memorised": {"color": RED, "linestyle": "--", "marker": "s"},
}
_ALL = _LOSSES | _ERRORS | _COEFFICIENTS


def losses(dataset: xr.Dataset, *, time: bool = False) -> Figure:
    """Losses, errors, and the largest coefficients of signal and noise, a panel each, as far as recorded.

    Lines are means over the seeds that did not diverge, bands 95 % intervals of the mean (all runs, where
    there are fewer than three). The largest Monte Carlo error of the test error stands in the legend; where
    test labels are flipped, a line marks the error that no classifier can go below.
    """
    runs = shown(dataset)
    groups = [[name for name in group if _over_steps(runs, name)] for group in (_LOSSES, _ERRORS, _COEFFICIENTS)]
    # Without flips the two test errors are one.
    if {"test_error", "clean_test_error"} <= set(groups[1]) and runs["test_error"].equals(
        runs["clean_test_error"]
    ):
        groups[1].remove("clean_test_error")
    groups = [group for group in groups if group]
    if not groups:
        raise InputError(
            "losses needs a loss or an error over steps, which this dataset lacks; "
            "add probes.train_loss, probes.test_loss or probes.test_error to the experiment."
        )
    with house_style():
        figure, all_axes = panels(len(groups))
        for axes, group in zip(all_axes, groups):
            _panel(axes, runs, group, time)
            legend_above(axes, note(dataset) if axes is all_axes[0] else None, columns=1)
    return figure


def _panel(axes: Axes, runs: xr.Dataset, names: list[str], time: bool) -> None:
    drawn = {name: curve(runs[name], time=time, plot=_PLOT) for name in names}
    for name, one in drawn.items():
        draw(axes, one, label=described(runs[name]) + _monte_carlo(runs, name), **_ALL[name])
    label_axis(axes, runs[names[0]], time=time, plot=_PLOT)
    if names[0] in _LOSSES:
        axes.set_ylabel("loss")
        if spans_decades(*(one.mean for one in drawn.values())):
            axes.set_yscale("log")
            axes.set_ylim(min(one.mean[one.mean > 0].min() for one in drawn.values()) / 2)
        return
    if names[0] in _COEFFICIENTS:
        axes.set_ylabel("largest coefficient")
        return
    axes.set_ylabel("error")
    floor = runs.attrs.get("test_flip")
    if floor and "test_error" in names:
        text = f"floor from flipped labels, {floor:g}"
        axes.axhline(floor, color=BLACK, linestyle=":", linewidth=2, label=text)
    axes.axhline(0, color=GREY, linewidth=1)
    axes.set_ylim(-0.02, 1.1 * max([0.1, *(one.high.max() for one in drawn.values())]))


def _over_steps(runs: xr.Dataset, name: str) -> bool:
    return name in runs and step_dim(runs[name]) is not None


def _monte_carlo(runs: xr.Dataset, name: str) -> str:
    error = runs.get(f"{name}_se")
    return (
        "" if error is None or name not in _ERRORS else f",\nMonte Carlo s.e. of a run ≤ {float(error.max()):.1g}"
    )
