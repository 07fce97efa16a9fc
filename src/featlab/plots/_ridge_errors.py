"""Errors of ridge regression over one swept number: what was recorded, and points with intervals over seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from featlab.core.validation import InputError
from featlab.plots._curves import step_dim
from featlab.plots._scalings import Mean, draw_mean, over_seeds
from featlab.probes import Probe
from featlab.sweeps.contour import cells

# The papers' symbols; the training error counts the penalty, as what is minimised does.
ERRORS = {"ridge_train_error": r"training error  $L_{tr}$", "ridge_test_error": r"test error  $L_{te}$"}


def recorded(dataset: xr.Dataset, dim: str, plot: str, how: str) -> xr.Dataset:
    """The errors after the last step over the swept dim, in its order, or one sentence on how to get them."""
    names = [name for name in ERRORS if name in dataset]
    if not names:
        raise InputError(
            f"{plot} needs {' or '.join(ERRORS)}, which this dataset lacks; "
            "add probes.ridge_errors to the experiment."
        )
    for name in names:
        steps = step_dim(dataset[name])
        dataset = dataset if steps is None else dataset.isel({steps: -1})
        dims = [str(one) for one in dataset[name].dims]
        if dim not in dims:
            raise InputError(f"{plot} needs {name!r} over {dim!r}, and it runs over {', '.join(dims)}; {how}.")
        extra = [one for one in dims if one not in (dim, "penalty", "seed")]
        if extra:
            raise InputError(f"{plot} draws one experiment, and {name!r} also runs over {extra[0]!r}; select one.")
    kept = [name for name in ("done", "trained") if name in dataset and dim in dataset[name].dims]
    return dataset[[*names, *kept]].sortby(dim)


def by_penalty(dataset: xr.Dataset, probes: tuple[Any, ...], plot: str) -> dict[float, xr.Dataset]:
    """The errors of each penalty: those of the dim, the one selected, or the one that the probe was given."""
    if "penalty" in dataset.dims:
        return {float(one): dataset.sel(penalty=one) for one in dataset["penalty"].values}
    if "penalty" in dataset.coords:
        return {float(dataset["penalty"]): dataset}
    given = [p.settings["penalty"] for p in probes if isinstance(p, Probe) and p.name == "ridge_errors"]
    if len(given) != 1 or len(given[0]) != 1:
        raise InputError(
            f"{plot} cannot tell the penalties of this sweep apart, which keeps the largest error of all: "
            "give ridge_errors one penalty, or put runs together with xarray.concat."
        )
    return {float(given[0][0]): dataset}


def draw_measured(axes: Axes, x: np.ndarray, dataset: xr.Dataset, name: str, plot: str, **style: Any) -> None:
    """A point at each value with its 95 % interval over seeds, no wider than the runs."""
    runs = cells(dataset, name, plot).values.values  # (value, seed), NaN where a run was not done
    mean = over_seeds(runs)
    low, high = np.fmax(mean.low, np.fmin.reduce(runs, axis=1)), np.fmin(mean.high, np.fmax.reduce(runs, axis=1))
    draw_mean(axes, x, Mean(mean.at, low, high), linestyle="none", **style)


def seeds_of(dataset: xr.Dataset) -> str:
    """How many runs a point is the mean of."""
    count = dataset.sizes.get("seed", 1)
    return f"{count} seeds, mean and 95 % interval" if count > 1 else "1 seed"
