r"""Signal learnt against noise memorised, with the theory's early growth beside it."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from featlab.plots._curves import (
    Curve,
    axis,
    curve,
    draw,
    is_geometric,
    label_axis,
    note,
    required,
    shown,
    spans_decades,
    step_dim,
    symbol,
)
from featlab.plots._style import BLACK, BLUE, RED, house_style, legend_above, panels
from featlab.theory.signal_noise import early_growth, early_noise_rate, early_signal_rate

_PLOT = "coefficient_growth"


def coefficient_growth(dataset: xr.Dataset, *, theory: bool = True, time: bool = False) -> Figure:
    r"""The largest signal coefficient and the largest coefficient on noise of the filter's own class.

    Lines are means over the seeds that did not diverge, bands 95 % intervals of the mean (all runs, where
    there are fewer than three). `theory` adds $\dot x = c\,x^{q-1}$ for the products $x$ with signal and
    noise, from each run's own start and labels: it holds while outputs are small, and is left out where the
    dataset does not say what it needs. `time` counts in the theory's unit instead of steps.
    """
    runs = shown(dataset)
    gamma, rho = largest(runs)
    signal = rf"|{symbol(runs['gamma'])}|" if "signal" in runs["gamma"].dims else symbol(runs["gamma"])
    with house_style():
        figure, (axes,) = panels()
        curves = [curve(values, time=time, plot=_PLOT) for values in (gamma, rho)]
        text = rf"signal  $\max_{{j,r}}\,{signal}$", rf"noise  $\max_{{j,r,i}}\,{symbol(runs['rho'])}$"
        draw(axes, curves[0], color=BLUE, marker="o", linestyle="-", label=text[0])
        draw(axes, curves[1], color=RED, marker="s", linestyle="--", label=text[1])
        label_axis(axes, gamma, time=time, plot=_PLOT)
        limits = _limits(axes, curves)
        if theory:
            _draw_theory(axes, runs, gamma, curves[0].x[-1])
        axes.set_ylim(*limits)  # the theory may leave the picture
        axes.set_ylabel(rf"coefficients  ${signal},\ {symbol(runs['rho'])}$")
        legend_above(axes, note(dataset))
    return figure


def _limits(axes: Axes, curves: list[Curve]) -> tuple[float, float]:
    """Limits that show what was measured, on a logarithmic axis where that shows growth best."""
    means = np.concatenate([one.mean for one in curves])
    low, top = axes.get_ylim()[0], max(one.high.max() for one in curves)
    if np.any(means > 0) and (is_geometric(curves[0].x) or spans_decades(means)):
        axes.set_yscale("log")
        return means[means > 0].min() / 2, 2.5 * top
    return low, max(1.1 * top, low + 1e-9)


def _draw_theory(axes: Axes, runs: xr.Dataset, recorded: xr.DataArray, end: float) -> None:
    """What the theory says about both, up to the same last step, which lies at `end` on the axis."""
    steps = _fine(recorded)
    for predict, text, pattern in (
        (_signal_theory, "early theory, signal", (0, (1, 1.2))),
        (_noise_theory, "early theory, noise", (0, (5, 1.5, 1, 1.5))),
    ):
        predicted = predict(runs, steps)
        if predicted is not None:
            x = steps * (end / max(steps[-1], 1))
            axes.plot(x, predicted, color=BLACK, linestyle=pattern, label=text, gid="theory")


def largest(runs: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """The largest gamma and the largest own-class rho of each run; of several signals, in absolute value."""
    gamma, rho = required(runs, "gamma", "coefficients", _PLOT), required(runs, "rho", "coefficients", _PLOT)
    own = rho.where(runs["label"] == runs["class"]) if "label" in runs else rho
    inner = {"class", "filter", "sample", "vector"}
    if "signal" in gamma.dims:
        gamma = abs(gamma)
    return (
        gamma.max([dim for dim in gamma.dims if dim in inner | {"signal"}]).rename("gamma"),
        own.max([dim for dim in own.dims if dim in inner]).rename("rho"),
    )


def _fine(values: xr.DataArray) -> np.ndarray:
    """Steps close enough to draw a curve that turns upwards between two recorded ones."""
    steps = axis(values, time=False, plot=_PLOT)
    if is_geometric(steps):
        return np.geomspace(max(steps[0], 1), steps[-1], 1000)
    return np.linspace(steps[0], steps[-1], 1000)


def _signal_theory(runs: xr.Dataset, steps: np.ndarray) -> np.ndarray | None:
    r"""Gamma is what $x = j\langle w, \mu\rangle$ has gained.

    Where $x > 0$ it grows, the faster the higher it began; where $x < 0$ it shrinks, which is a gain too.
    """
    known = _known(runs, "learning_rate", "signal_norm", "width_scale", "power")
    if known is None or "signal" in runs["gamma"].dims:  # several signals share the samples in another way
        return None
    leading = _starts(runs, "signal_product", known["power"], signed=1)
    lagging = _starts(runs, "signal_product", known["power"], signed=-1)
    if leading is None or lagging is None:
        return None
    power, growth = known["power"], []
    for ahead, behind, aligned in zip(leading, lagging, _aligned(runs)):
        gains = []
        for k in (
            0,
            1,
        ):  # the class of the filters; the samples on the wrong side of them are the other class's
            with_signal, against = (early_signal_rate(**known, aligned=max(aligned[i], 0)) for i in (k, 1 - k))
            gains.append(early_growth(steps, ahead[k], with_signal, power) - ahead[k])
            if power > 1:
                gains.append(behind[k] - early_growth(steps, behind[k], -against, power))
        growth.append(np.max(gains, axis=0))
    return _mean(growth)


def _noise_theory(runs: xr.Dataset, steps: np.ndarray) -> np.ndarray | None:
    r"""Rho is what $\langle w, \xi_i\rangle$ has gained; the product that begins highest stays highest."""
    known = _known(runs, "learning_rate", "noise_norm", "n", "width_scale", "power")
    if known is None or "vector" in runs["rho"].dims:
        return None
    starts = _starts(runs, "noise_product", known["power"])
    if starts is None:
        return None
    rate = early_noise_rate(**known)
    return _mean([early_growth(steps, max(start), rate, known["power"]) - max(start) for start in starts])


def _known(runs: xr.Dataset, *names: str) -> dict[str, float] | None:
    if any(runs.attrs.get(name) is None for name in names):
        return None
    return {name: float(runs.attrs[name]) for name in names}


def _starts(runs: xr.Dataset, name: str, power: float, *, signed: int = 0) -> np.ndarray | None:
    """The highest product at step 0 for each run and class, that of the filter that will lead.

    `signed` multiplies with the class (1) or its opposite (-1). ReLU grows along a line and needs no start.
    """
    if power == 1:
        return np.zeros((runs.sizes["seed"], 2))
    dim = step_dim(runs[name]) if name in runs else None
    if dim is None or runs[dim].values[0] != 0:
        return None
    first = runs[name].isel({dim: 0})
    if signed:
        first = signed * first * runs["class"]
    elif "label" in runs:
        first = first.where(runs["label"] == runs["class"])
    most = first.max([other for other in first.dims if other not in ("seed", "class")])
    return np.maximum(np.nan_to_num(most.transpose("seed", "class").values.astype(float)), 0)


def _aligned(runs: xr.Dataset) -> np.ndarray:
    """For each run and class, its share of the samples, those with a flipped label counted negative."""
    if "label" not in runs or "clean_label" not in runs:
        return np.full((runs.sizes["seed"], 2), 0.5)
    kept = xr.where(runs["label"] == runs["clean_label"], 1.0, -1.0)
    return kept.where(runs["clean_label"] == runs["class"], 0.0).mean("sample").transpose("seed", "class").values


def _mean(growth: list[np.ndarray]) -> np.ndarray:
    """Over seeds, as the measured curve; it leaves the picture where the first run's blows up."""
    mean = np.mean(growth, axis=0)
    ends = np.flatnonzero(~np.isfinite(mean))
    if len(ends):
        mean[ends] = np.nan
        mean[ends[0]] = 1e6 * np.nanmax(mean, initial=1.0)
    return mean
