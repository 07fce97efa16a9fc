r"""Double descent: the errors of random features as their number passes that of the samples."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from featlab.plots._looks import look, shared_legend
from featlab.plots._ridge_errors import ERRORS, by_penalty, draw_measured, recorded, seeds_of
from featlab.plots._scalings import level_ticks, number
from featlab.plots._setting import Setting
from featlab.plots._style import BLACK, GREY, house_style, panels
from featlab.theory.random_features import errors

_PLOT = "double_descent"
_HOW = 'sweep {"network.width": [...]}, or put runs of several widths together with xarray.concat'


def double_descent(dataset: xr.Dataset, *, theory: bool = True) -> Figure:
    r"""Test and training error of ridge regression on random features against $N/n$, for each penalty.

    The dataset has the dim `width`, and `penalty` where there are several: that of a sweep over
    `network.width` with one penalty, or runs of several widths put together. Points are means over seeds with
    their 95 % intervals, lines the theory's limit, which `theory=False` leaves out.
    """
    setting = Setting.of(dataset, _PLOT)
    runs = recorded(dataset, "width", _PLOT, _HOW)
    widths, n = runs["width"].values.astype(float), setting.data.n
    names = [name for name in reversed(ERRORS) if name in runs]
    with house_style():
        figure, all_axes = panels(len(names))
        for k, (penalty, one) in enumerate(by_penalty(runs, setting.experiment.probes, _PLOT).items()):
            style = look(k)
            line = {"color": style["color"], "linestyle": style.pop("linestyle")}
            label = rf"$\lambda = {number(penalty).strip('$')}$"
            x, predicted = _theory(setting, widths, penalty) if theory else (widths, {})
            for axes, name in zip(all_axes, names):
                draw_measured(axes, widths / n, one, name, _PLOT, label=label, **style)
                if theory:
                    axes.plot(x, predicted[name], gid="theory", zorder=2, **line)
        for axes, name in zip(all_axes, names):
            axes.set_ylabel(ERRORS[name])
            _frame(axes)
        if theory:
            all_axes[0].plot([], [], color=BLACK, label="theory")
        sizes = rf"$n = {n}$,  $d = {setting.data.d:g}$;  "
        shared_legend(figure, all_axes, sizes + seeds_of(runs))
    return figure


def _theory(setting: Setting, widths: np.ndarray, penalty: float) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The limit within the widths measured; finer around $N = n$, where a small penalty makes a sharp peak."""
    phi, _ = setting.proportions(widths.min())
    setting.proportions(widths.max())
    low, high = widths.min() / setting.data.n, widths.max() / setting.data.n
    near = np.geomspace(1e-4, 0.5, 60)
    x = np.concatenate([np.geomspace(low, high, 300), 1 - near, [1.0], 1 + near])
    x = np.unique(x[(x >= low) & (x <= high)])
    teacher = setting.teacher
    other = teacher.nonlinear + teacher.noise
    train, test = errors(phi, phi / x, penalty, setting.activation, teacher.coefficients[0] ** 2, other)
    return x, {"ridge_train_error": train, "ridge_test_error": test}


def _frame(axes: Axes) -> None:
    axes.set(xscale="log", yscale="log", xlabel=r"features per sample  $N/n$")
    axes.axvline(1, color=GREY, linestyle=":", zorder=1, gid="peak", label="$N = n$")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    level_ticks(axes)
