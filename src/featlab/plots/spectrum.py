r"""Singular values of features or weights: the bulk, its edge, and the spikes that a step has driven out of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from featlab.core.validation import InputError, did_you_mean
from featlab.plots._curves import shown, step_dim
from featlab.plots._scalings import over_seeds
from featlab.plots._setting import Setting
from featlab.plots._style import BLACK, BLUE, RED, house_style, legend_above, panels
from featlab.probes.spectrum import OUTSIDE
from featlab.theory import random_features

_PLOT = "spectrum"
_START = "#C8C8C8"
_KINDS = {
    "features": (
        "feature_singular_value",
        "untrained_edge",
        "feature_spectrum",
        r"singular values of features  $s_i(F) / \sqrt{n}$",
    ),
    "weights": (
        "weight_singular_value",
        "weight_edge",
        "weight_spectrum",
        r"singular values of the first layer  $s_i(W)$",
    ),
}


class Bulk(NamedTuple):
    """Singular values of each run and the largest that counts as bulk, at one moment."""

    values: np.ndarray  # (seed, rank)
    edge: np.ndarray  # (seed,)

    @property
    def outliers(self) -> np.ndarray:
        """The k-th largest of each run, (k, seed), NaN where it is within the bulk."""
        beyond = np.where(self.values > OUTSIDE * self.edge[:, None], self.values, np.nan)
        return -np.sort(-beyond, axis=1).T[: int(np.isfinite(beyond).sum(axis=1).max())]

    @property
    def inside(self) -> np.ndarray:
        return self.values[self.values <= OUTSIDE * self.edge[:, None]]


def spectrum(dataset: xr.Dataset, which: str = "features", *, theory: bool = True) -> Figure:
    r"""The singular values of the features $F/\sqrt n$ or of the weights $W$, pooled over seeds.

    Grey as they were at the start, outlined after the last step. Those beyond 1.05 of the start's edge stand for
    themselves: the mean over seeds of the k-th largest with its 95 % interval, a tick below for each run.
    `theory` adds the limiting density of the start and the edge where it ends.
    """
    if which not in _KINDS:
        raise InputError(f"{_PLOT}(which=) must be features or weights; {did_you_mean(str(which), _KINDS)}")
    name, edge, probe, label = _KINDS[which]
    for one in (name, edge):
        if one not in dataset:
            raise InputError(
                f"{_PLOT} needs {one!r}, which this dataset lacks; add probes.{probe} to the experiment."
            )
    runs = shown(dataset)
    start, end = _moments(runs, name, edge)
    with house_style():
        figure, (axes,) = panels()
        bins = np.linspace(*_range(start, end), _number_of_bins(end) + 1)
        if start is not None:
            axes.stairs(_heights(start, bins), bins, fill=True, color=_START, label="at the start", gid="start")
        axes.stairs(_heights(end, bins), bins, color=BLUE, linewidth=2.4, label="after the step", gid="end")
        top = 1.3 * max(_heights(one, bins).max() for one in (start, end) if one is not None)
        title = f"{runs.sizes['seed']} seeds" if runs.sizes["seed"] > 1 else "1 seed"
        if theory:
            setting = Setting.of(dataset, _PLOT)
            (_draw_feature_theory if which == "features" else _draw_weight_theory)(axes, setting)
            title = f"{setting.sizes};  {title}"
        _draw_spikes(axes, end, top)
        axes.set(ylim=(-0.045 * top, top), xlabel=label, ylabel="density")
        legend_above(axes, title)
    return figure


def _moments(runs: xr.Dataset, name: str, edge: str) -> tuple[Bulk | None, Bulk]:
    """The start, where it was read, and the end."""
    dim = step_dim(runs[name])
    if dim is None:
        return None, _bulk(runs, name, edge)
    end = _bulk(runs.isel({dim: -1}), name, edge)
    begun = runs.sizes[dim] > 1 and runs[dim].values[0] == 0
    return _bulk(runs.isel({dim: 0}), name, edge) if begun else None, end


def _bulk(runs: xr.Dataset, name: str, edge: str) -> Bulk:
    values = runs[name].transpose("seed", ...)
    if values.ndim != 2:
        raise InputError(f"{_PLOT} draws one experiment, and {name!r} has the dims {values.dims}; select one.")
    return Bulk(values.values.astype(float), runs[edge].values.astype(float))


def _range(start: Bulk | None, end: Bulk) -> tuple[float, float]:
    inside = np.concatenate([one.inside for one in (start, end) if one is not None])
    return float(inside.min()), float(inside.max())


def _number_of_bins(end: Bulk) -> int:
    return int(np.clip(1.5 * np.sqrt(end.values.size), 12, 50))


def _heights(bulk: Bulk, bins: np.ndarray) -> np.ndarray:
    """A density: of mass one together with what lies outside the bins."""
    return np.histogram(bulk.inside, bins)[0] / (bulk.values.size * np.diff(bins))


def _draw_feature_theory(axes: Axes, setting: Setting) -> None:
    phi, psi = setting.proportions()
    edge = random_features.edge(phi, psi, setting.activation)
    s = np.linspace(0, edge, 400)[1:]
    _draw_bulk(axes, s, random_features.density(s, phi, psi, setting.activation), edge)


def _draw_weight_theory(axes: Axes, setting: Setting) -> None:
    ratio, scale = setting.network.width / setting.data.d, setting.network.init_scale
    low, edge = abs(1 - np.sqrt(ratio)), 1 + np.sqrt(ratio)
    s = np.linspace(low, edge, 400)[1:-1]
    _draw_bulk(axes, scale * s, marchenko_pastur(s, ratio) / scale, scale * edge)


def marchenko_pastur(s: np.ndarray, ratio: float) -> np.ndarray:
    r"""The density of the singular values, other than 0, of an $N \times d$ matrix of $N(0, 1/d)$ numbers.

    $$\frac{\sqrt{(s_+^2 - s^2)(s^2 - s_-^2)}}{\pi\, s \min(1, N/d)}, \qquad s_\pm = |1 \pm \sqrt{N/d}|$$
    """
    low, high = (1 - np.sqrt(ratio)) ** 2, (1 + np.sqrt(ratio)) ** 2
    return np.sqrt(np.maximum((high - s**2) * (s**2 - low), 0)) / (np.pi * s * min(1.0, ratio))


def _draw_bulk(axes: Axes, s: np.ndarray, density: np.ndarray, edge: float) -> None:
    axes.plot(s, density, color=BLACK, linestyle="--", label="theory, bulk", gid="theory")
    style: dict[str, Any] = {"color": BLACK, "linestyle": (0, (1, 1.2)), "linewidth": 2}
    axes.axvline(edge, label=f"theory, edge {edge:.3g}", gid="edge", **style)


def _draw_spikes(axes: Axes, end: Bulk, top: float) -> None:
    """The k-th largest of the runs beyond the bulk; named where most of the runs have one."""
    for k, values in enumerate(end.outliers, start=1):
        found = values[np.isfinite(values)]
        axes.plot(found, np.full(len(found), -0.022 * top), "|", color=RED, markersize=11, gid="seeds")
        if 2 * len(found) <= len(values):
            continue
        mean, height = over_seeds(values[None]), 0.45 * top
        at = float(mean.at[0])
        axes.vlines(at, 0, height, color=RED, linewidth=2.6, gid="spike")
        error = [at - mean.low, mean.high - at]
        style: dict[str, Any] = {"color": RED, "marker": "D", "capsize": 6, "elinewidth": 2.2}
        label = "spikes, beyond the bulk" if k == 1 else None
        axes.errorbar([at], [height], xerr=error, linestyle="none", label=label, **style)
        share = "" if len(found) == len(values) else f"\n{len(found)} of {len(values)}"
        text = f"{_ordinal(k)}\n{at:.3g}{share}"
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}
        axes.annotate(text, (at, height), (0, 14), textcoords="offset points", ha="center", bbox=box, gid="name")


def _ordinal(k: int) -> str:
    return f"{k}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(k if k % 100 not in (11, 12, 13) else 0, 'th') }"
