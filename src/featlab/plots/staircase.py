r"""The staircase: each spike of a gradient step lowers the errors of ridge regression by a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from featlab.algorithms import GiantStep
from featlab.core.validation import InputError
from featlab.plots._looks import look, shared_legend
from featlab.plots._ridge_errors import ERRORS, by_penalty, draw_measured, recorded, seeds_of
from featlab.plots._setting import Setting
from featlab.plots._style import BLACK, GREY, house_style, panels
from featlab.theory import hermite
from featlab.theory.one_step import Step, errors_after, steps_of_the_staircase

_PLOT = "staircase"
_HOW = 'sweep {"algorithm.alpha": [...]}'
_END = 0.5  # of the theory in alpha; steps crowd before it,
_MOST = 4  # so that this many spikes are told apart
_BEGINS = [-np.inf, *steps_of_the_staircase(_MOST + 1)]  # of 0, 1, 2, ... spikes
_DODGE = 0.012  # of the axis, between points of one alpha
_LIMIT: dict[str, Any] = {"linewidth": 3.4, "alpha": 0.85}
_FINITE: dict[str, Any] = {"linewidth": 1.8}


def staircase(runs: xr.Dataset | Mapping[str, xr.Dataset], *, theory: bool = True) -> Figure:
    r"""Training and test error after one step $\eta = n^\alpha$ against $\alpha = \log\eta / \log n$.

    The dataset is that of a sweep over `algorithm.alpha` with `ridge_errors` at one penalty; several of them, by
    label, share the panels. Points are means over seeds with their 95 % intervals. Of the theory there is the
    staircase of the limit $n \to \infty$, and the curve for spikes as strong as this $n$ makes them;
    `theory=False` leaves both out.
    """
    labelled = {"measured": runs} if isinstance(runs, xr.Dataset) else dict(runs)
    if not labelled:
        raise InputError(f"{_PLOT} needs at least one dataset.")
    series = {label: _of_one_penalty(recorded(one, "alpha", _PLOT, _HOW)) for label, one in labelled.items()}
    names = [name for name in ERRORS if all(name in one for one in series.values())]
    alphas = np.concatenate([one["alpha"].values.astype(float) for one in series.values()])
    margin = 0.04 * (np.ptp(alphas) or 1)
    low, high = alphas.min() - margin, alphas.max() + margin
    with house_style():
        figure, all_axes = panels(len(names))
        for k, (label, one) in enumerate(series.items()):
            shift = _DODGE * (high - low) * (k - (len(series) - 1) / 2)
            style = {key: value for key, value in look(k).items() if key != "linestyle"}
            for axes, name in zip(all_axes, names):
                draw_measured(axes, one["alpha"].values + shift, one, name, _PLOT, label=label, **style)
        common = _draw_theories(dict(zip(names, all_axes)), labelled, series, (low, high)) if theory else ""
        for axes, name in zip(all_axes, names):
            axes.set(xlim=(low, high), xlabel=r"step size  $\alpha = \log\eta\,/\log n$", ylabel=ERRORS[name])
            _mark_spikes(axes)
        shared_legend(figure, all_axes, common + seeds_of(next(iter(series.values()))))
    return figure


def _of_one_penalty(runs: xr.Dataset) -> xr.Dataset:
    if "penalty" not in runs.dims:
        return runs
    if runs.sizes["penalty"] > 1:
        one = float(runs["penalty"].values[0])
        raise InputError(f"{_PLOT} draws one penalty; select one, e.g. dataset.sel(penalty={one:g}).")
    return runs.isel(penalty=0)


def levels(setting: Setting, penalty: float) -> list[tuple[float, float, tuple[float, float]]]:
    r"""Where each level of the limit begins and ends in $\alpha$, and its training and test error.

    The first spike whose $c_k$ is 0 does not appear, so the level before it goes on; what comes after it, this
    theory does not say.
    """
    c = hermite.coefficients(setting.network.activation, _MOST)
    missing = next((k for k in range(1, _MOST + 1) if abs(c[k]) < 1e-9), None)
    count = _MOST + 1 if missing is None else missing
    ends = [*_BEGINS[1:count], _BEGINS[count + (missing is not None)]]
    given = (*setting.proportions(), penalty, setting.activation, setting.teacher)
    unit_rows = setting.network.unit_rows
    return [(_BEGINS[k], ends[k], errors_after(*given, k, unit_rows=unit_rows)) for k in range(count)]


def finite(setting: Setting, penalty: float, alphas: np.ndarray) -> np.ndarray:
    r"""Training and test error for each $\alpha$ of a step with spikes as strong as the $n$ at hand makes them."""
    algorithm, width = setting.experiment.algorithm, setting.network.width
    if not isinstance(algorithm, GiantStep):
        raise InputError(f"{_PLOT} needs a GiantStep, got {type(algorithm).__name__}.")
    if setting.network.power != 0.5:
        raise InputError(
            f"The theory of one step needs power = 1/2, a ~ N(0, I/N), got {setting.network.power:g}."
        )
    step = Step.of(setting.network.activation, 1.0, width)
    given = (*setting.proportions(), penalty, setting.activation, setting.teacher, _MOST)
    sizes = algorithm.constant * float(setting.data.n) ** alphas
    steps = [step._replace(eta=float(eta)) for eta in sizes]
    return np.array([errors_after(*given, one, unit_rows=setting.network.unit_rows) for one in steps])


def _draw_theories(
    panels: Mapping[str, Axes],
    datasets: Mapping[str, xr.Dataset],
    series: Mapping[str, xr.Dataset],
    limits: tuple[float, float],
) -> str:
    """The theory of each series in its colour; returns what the series have in common."""
    common = set()
    for k, (label, dataset) in enumerate(datasets.items()):
        setting = Setting.of(dataset, _PLOT)
        (penalty,) = by_penalty(series[label], setting.experiment.probes, _PLOT)
        common.add(rf"{setting.sizes},  $\lambda = {penalty:g}$;  ")
        _draw_theory(panels, setting, penalty, limits, look(k))
    for axes in panels.values():
        axes.plot([], [], color=BLACK, label=r"theory, $n \to \infty$", **_LIMIT)
        axes.plot([], [], color=BLACK, label=r"theory, this $n$", **_FINITE)
    return common.pop() if len(common) == 1 else ""


def _draw_theory(
    panels: Mapping[str, Axes],
    setting: Setting,
    penalty: float,
    limits: tuple[float, float],
    style: Mapping[str, Any],
) -> None:
    low, high = limits
    stairs = [(max(a, low), min(b, high), at) for a, b, at in levels(setting, penalty) if b > low and a < high]
    x = np.linspace(low, high, 50)
    x = x[x < _END]
    curve = finite(setting, penalty, x)
    line = {"color": style["color"], "linestyle": style["linestyle"]}
    for name, axes in panels.items():
        which = list(ERRORS).index(name)
        if stairs:
            edges, heights = [stairs[0][0], *(end for _, end, _ in stairs)], [at[which] for *_, at in stairs]
            axes.stairs(heights, edges, baseline=None, gid="levels", zorder=1.8, **_LIMIT, **line)
        if len(x):
            axes.plot(x, curve[:, which], gid="finite", zorder=1.9, **_FINITE, **line)


def _mark_spikes(axes: Axes) -> None:
    r"""The exponents at which a spike appears, and how many there are between them, $\ell$."""
    low, high = axes.get_xlim()
    begins, names = _BEGINS[: _MOST + 1], [r"$\ell = 0$", r"$\ell = 1$", "$2$", "$3$", r"$\geq 4$"]
    for begin, end, name in zip(begins, [*begins[1:], _END], names):
        if low < begin < high:
            axes.axvline(begin, color=GREY, linestyle=":", linewidth=1.6, gid="step", zorder=1)
        left, right = max(begin, low), min(end, high)
        if right - left > 0.06 * (high - low):  # room for it
            place = {"transform": axes.get_xaxis_transform(), "ha": "center", "va": "bottom"}
            axes.text((left + right) / 2, 1.0, name, gid="spikes", **place)
