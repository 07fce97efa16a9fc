"""Every training sample's margin: which samples are fitted when, and what flipped labels do."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from featlab.core.validation import InputError
from featlab.plots._curves import axis, described, label_axis, required, step_dim
from featlab.plots._style import BLACK, BLUE, DARK_RED, house_style, legend_above, panels

_PLOT = "margins"


def margins(dataset: xr.Dataset, *, seed: int | None = None, time: bool = False) -> Figure:
    r"""The margins $\tilde y_i f(x_i)$ of one run over training; a sample is fitted above the zero line.

    Samples with a flipped label are thick and dashed, clean ones thin. `seed` names the run; left out, it is
    the first one that did not diverge.
    """
    margin = required(dataset, "margin", "margins", _PLOT)
    extra = [str(dim) for dim in margin.dims if dim not in ("seed", "sample", step_dim(margin))]
    if extra:
        raise InputError(f"{_PLOT} draws one experiment, and 'margin' also runs over {extra[0]!r}; select one.")
    run = _one_run(dataset, seed)
    values = run["margin"]
    flipped = _flipped(run)
    with house_style():
        figure, (axes,) = panels()
        x, lines = axis(values, time=time, plot=_PLOT), values.transpose(..., "sample").values
        kinds = [
            (~flipped, "clean label", {"color": BLUE, "linewidth": 1.1, "alpha": 0.4}),
            (flipped, "flipped label", {"color": DARK_RED, "linewidth": 2.6, "linestyle": (0, (4, 1.5))}),
        ]
        for chosen, text, style in kinds:
            for k, i in enumerate(np.flatnonzero(chosen)):
                label = f"{text} ({chosen.sum()})" if k == 0 else None
                axes.plot(x, lines[:, i], label=label, **style)
        axes.axhline(0, color=BLACK, linewidth=1.6)
        label_axis(axes, values, time=time, plot=_PLOT)
        axes.set_ylabel(described(margin))
        legend_above(axes, _title(run))
    return figure


def _one_run(dataset: xr.Dataset, seed: int | None) -> xr.Dataset:
    if "seed" not in dataset.dims:
        return dataset
    if seed is None:
        fine = (
            dataset["status"].values != "diverged" if "status" in dataset else np.ones(dataset.sizes["seed"], bool)
        )
        return dataset.isel(seed=int(np.argmax(fine)))
    if seed not in dataset["seed"].values:
        known = ", ".join(str(s) for s in dataset["seed"].values)
        raise InputError(f"{_PLOT}(seed=) must be one of the dataset's seeds, {known}, got {seed!r}.")
    return dataset.sel(seed=seed)


def _flipped(run: xr.Dataset) -> np.ndarray:
    if "label" not in run or "clean_label" not in run:
        return np.zeros(run.sizes["sample"], bool)
    return run["label"].values != run["clean_label"].values


def _title(run: xr.Dataset) -> str:
    status = str(run["status"].values) if "status" in run else "trained"
    name = f"seed {int(run['seed'])}" if "seed" in run.coords else "one run"
    if status == "diverged":
        return f"{name}, diverged at step {int(run['diverged_at'])}"
    return name if status == "trained" else f"{name}, {status}"
