"""From a Dataset to what is drawn: curves over steps, their mean over seeds and a band around it."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import scipy.stats
import xarray as xr
from matplotlib.axes import Axes

from featlab.core.validation import InputError


class Curve(NamedTuple):
    """The mean over seeds at each step, with a band around it."""

    x: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def required(dataset: xr.Dataset, name: str, probe: str, plot: str) -> xr.DataArray:
    """A variable, or one sentence that says which probe records it."""
    if name not in dataset:
        raise InputError(f"{plot} needs {name!r}, which this dataset lacks; add probes.{probe} to the experiment.")
    if step_dim(dataset[name]) is None:
        raise InputError(f"{plot} needs {name!r} over steps, and it was read only once; give its probe a clock.")
    return dataset[name]


def step_dim(variable: xr.DataArray) -> str | None:
    """The dim of the variable's steps: `step`, or a name of its own where its probe has its own clock."""
    return next((str(dim) for dim in variable.dims if dim == "step" or str(dim).startswith("step_")), None)


def shown(dataset: xr.Dataset) -> xr.Dataset:
    """The runs that enter a mean: those that did not diverge, or all of them where none is left."""
    dataset = dataset if "seed" in dataset.dims else dataset.expand_dims("seed")
    if "diverged_at" not in dataset or dataset["diverged_at"].ndim > 1:
        return dataset
    fine = dataset["diverged_at"].values < 0
    return dataset.isel(seed=np.flatnonzero(fine)) if fine.any() else dataset


def note(dataset: xr.Dataset) -> str:
    """How many seeds are shown and as what, and what became of the others."""
    dataset = dataset if "seed" in dataset.dims else dataset.expand_dims("seed")
    count = dataset.sizes["seed"]
    status = dataset["status"].values if "status" in dataset else np.full(count, "trained")
    diverged, unfinished = int(np.sum(status == "diverged")), int(np.sum(status == "unfinished"))
    seeds = f"{count} seed{'s' * (count > 1)}"
    if count == diverged:
        return f"all of {seeds} diverged"
    kept = count - diverged
    shape = ", mean and 95 % band" if kept > 2 else ", mean and range" if kept > 1 else ""
    failed = [f"{diverged} diverged"] * (diverged > 0) + [f"{unfinished} unfinished"] * (unfinished > 0)
    first = f"{kept} of {seeds}" if diverged else seeds
    return f"{first}{shape}" + ("\n" + ", ".join(failed) if failed else "")


def curve(values: xr.DataArray, *, time: bool, plot: str) -> Curve:
    """The mean over seeds, with its 95 % Student interval, or all runs where there are fewer than three.

    The interval is cut where it leaves the range of the runs: a mean of positive numbers is positive.
    """
    dim = step_dim(values)
    extra = [str(other) for other in values.dims if other not in ("seed", dim)]
    if extra:
        raise InputError(
            f"{plot} draws one experiment, and {values.name!r} also runs over {extra[0]!r}; select one."
        )
    runs = values.transpose("seed", dim).values.astype(float)
    x, mean = axis(values, time=time, plot=plot), runs.mean(axis=0)
    low, high = runs.min(axis=0), runs.max(axis=0)
    if len(runs) < 3:
        return Curve(x, mean, low, high)
    half = scipy.stats.t.ppf(0.975, len(runs) - 1) * runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    return Curve(x, mean, np.maximum(mean - half, low), np.minimum(mean + half, high))


def axis(values: xr.DataArray, *, time: bool, plot: str) -> np.ndarray:
    """The steps, or the same in the theory's unit of time."""
    return values[_axis_name(values, time, plot)].values.astype(float)


def label_axis(axes: Axes, values: xr.DataArray, *, time: bool, plot: str) -> None:
    """Name the horizontal axis, and make it logarithmic where the clock is."""
    axes.set_xlabel(described(values[_axis_name(values, time, plot)]))
    x = axis(values, time=time, plot=plot)
    if is_geometric(x):
        axes.set_xscale("log")
    axes.set_xlim(x[x > 0][0] if is_geometric(x) else x[0], x[-1] * 1.02)


def _axis_name(values: xr.DataArray, time: bool, plot: str) -> str:
    dim = step_dim(values)
    assert dim is not None
    name = "time" + dim.removeprefix("step") if time else dim
    if name not in values.coords:
        raise InputError(f"{plot}(time=True) needs the coordinate {name!r}, which this dataset lacks; use steps.")
    return name


def is_geometric(x: np.ndarray) -> bool:
    """Whether the steps grow by a factor, so that a logarithmic axis spreads them evenly."""
    gaps = np.diff(x)
    return len(gaps) > 2 and gaps[:-1].max() > 2 * gaps[0]  # rounding alone gives 2


def spans_decades(*curves: np.ndarray) -> bool:
    """Whether the positive values differ by so much that only a logarithmic axis shows them all."""
    positive = np.concatenate([values[np.isfinite(values) & (values > 0)] for values in curves])
    return len(positive) > 0 and positive.max() > 30 * positive.min()


def symbol(variable: xr.DataArray) -> str:
    """The paper's symbol, or the variable's name."""
    given = variable.attrs.get("symbol") or rf"\mathrm{{{str(variable.name).replace('_', ' ')}}}"
    given = re.sub(r"\\frac(\w)(\w)", r"\\frac{\1}{\2}", given)  # matplotlib needs the brackets,
    given = re.sub(r"\\sqrt\s+(\w)", r"\\sqrt{\1}", given)
    return re.sub(r"\\(le|ge|ne)\b", r"\\\1q", given)  # and knows these by their long names only


def described(variable: xr.DataArray) -> str:
    """Meaning and symbol, for an axis or a legend."""
    meaning = variable.attrs.get("long_name", variable.name)
    return f"{meaning}  ${symbol(variable)}$"


def draw(axes: Axes, drawn: Curve, *, color: str, label: str, **style) -> None:
    """A curve with its band; about a dozen markers tell curves apart where colours cannot."""
    step = max(1, len(drawn.x) // 12)
    axes.fill_between(drawn.x, drawn.low, drawn.high, color=color, alpha=0.25, linewidth=0)
    axes.plot(drawn.x, drawn.mean, color=color, label=label, markevery=step, **style)
