"""Slices through a theorem: small trainings on both sides of its boundary, computed beforehand, for a slider."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import xarray as xr

from featlab.atlas.formulas import mathml
from featlab.claims import Claim
from featlab.claims.judge import student_interval
from featlab.claims.verify import versions
from featlab.core.sees import Sees
from featlab.core.validation import InputError
from featlab.engine.run import run
from featlab.experiment import RESERVED, Experiment
from featlab.probes import Probe
from featlab.text import changed, describe

SEEDS = 4
TESTS = 2000  # fresh inputs at each moment: an error of 1 %, which a picture does not show
_MOMENTS = 60  # of a curve
_DIGITS = 4
_RISKS = ("train_loss", "test_loss", "test_error", "clean_test_error")  # one panel; all else that grows, another
_SCALES = {"gamma", "rho", "signal_learnt", "noise_memorised", "signal_alignment", "noise_alignment"}


def slice_of(claim: Claim, store: Path | None = None, tell: Callable[[int], None] = lambda done: None):
    """The slice of a claim that has a picture, as plain data; from the store where it is up to date."""
    picture = claim.picture()
    if picture is None:
        return None
    scene = _lighter(claim.scene())
    key = {"scene": describe(scene), "values": list(picture.values), "versions": versions(claim), "seeds": SEEDS}
    path = None if store is None else store / f"{claim.id}.json"
    stored = _read(path, key)
    if stored is None:
        stored = {"key": key, "slice": _trained(picture, scene, tell)}
        _write(path, stored)
    tell(len(picture.values))
    return stored["slice"] | {"id": claim.id}


def _lighter(scene: Experiment) -> Experiment:
    """The same with fewer test inputs: drawing them would take most of the time."""
    return dataclasses.replace(scene, probes=[_fewer(one) for one in scene.probes])


def _fewer(one):
    count = one.settings.get("count", 0) if isinstance(one, Probe) else 0
    return one(count=TESTS) if count > TESTS else one


def _trained(picture, scene, tell) -> dict[str, Any]:
    histories, numbers = [], []
    for k, value in enumerate(picture.values):
        tell(k)
        experiment = changed(scene, {picture.slider: value})
        products = experiment.representation == Sees.PRODUCTS
        histories.append(run(experiment, range(SEEDS), products=products, progress=False))
        if histories[-1].attrs["interrupted"]:
            raise KeyboardInterrupt
        numbers.append(float(picture.number(experiment)))
    names = [name for name in _shown(histories[0]) if all(name in one for one in histories)]
    if picture.shows not in names:
        raise InputError(f"The picture shows {picture.shows!r}, which its scene does not record; it has {names}.")
    steps = _moments(histories)
    labels = {name: str(histories[0][name].attrs.get("long_name", name)) for name in names}
    found = [{name: _curve(one[name], steps) for name in names} for one in histories]
    last = np.array([_over_seeds(_reduced(one[picture.shows])[:, -1:])[:, 0] for one in histories])
    return {
        "slider": text_of(picture.slider_symbol),
        "values": [float(value) for value in picture.values],
        "numbers": _rounded(np.array(numbers)),
        "boundary": _crossing(np.array(picture.values, float), np.array(numbers)),
        "shows": labels[picture.shows],
        "level": picture.level,
        "endings": {name: _rounded(last[:, k]) for k, name in enumerate(("mean", "low", "high"))},
        "steps": [int(step) for step in steps],
        "panels": _panels(names, labels),
        "curves": found,
        "symbol": picture.symbol,
        "slider_symbol": picture.slider_symbol,
        "below": picture.below,
        "above": picture.above,
    }


def _shown(history: xr.Dataset) -> list[str]:
    """Variables that have a number, or several of which the largest counts, at each step."""
    return [
        str(name)
        for name, variable in history.data_vars.items()
        if "step" in variable.dims
        and variable.dtype.kind == "f"
        and name not in RESERVED
        and not str(name).endswith("_se")
    ]


def _panels(names: list[str], labels: Mapping[str, str]) -> list[dict[str, Any]]:
    risks = [name for name in _RISKS if name in names]
    if "test_error" in risks and "clean_test_error" in risks:
        risks.remove("test_error")  # the same, where no test label is flipped
    scales = [name for name in names if name in _SCALES]
    panels = [{"label": "loss and error", "names": risks}, {"label": "coefficient", "names": scales}]
    return [one | {"labels": [labels[name] for name in one["names"]]} for one in panels if one["names"]]


def _moments(histories: list[xr.Dataset]) -> np.ndarray:
    """Few enough of the recorded steps, up to the last one that any run took."""
    steps = histories[0]["step"].values
    last = max(int(one["steps_taken"].max()) for one in histories)
    reached = steps[: int(np.searchsorted(steps, last)) + 1]
    chosen = np.unique(np.linspace(0, len(reached) - 1, min(_MOMENTS, len(reached))).round().astype(int))
    return reached[chosen]


def _reduced(variable: xr.DataArray) -> np.ndarray:
    """(seed, step): over filters, samples and classes the largest."""
    rest = [dim for dim in variable.dims if dim not in ("seed", "step")]
    values = abs(variable).max(rest) if rest else variable
    return values.transpose("seed", "step").values.astype(float)


def _curve(variable: xr.DataArray, steps: np.ndarray) -> list[list[float | None]]:
    """Mean, low and high over seeds at these steps."""
    return [_rounded(row) for row in _over_seeds(_reduced(variable.sel(step=steps)))]


def _over_seeds(values: np.ndarray) -> np.ndarray:
    """Of (seed, step): mean, low and high, (3, step); an interval does not leave the range of positive numbers."""
    ends = np.array([student_interval(column) for column in values.T]).T
    if np.nanmin(values) >= 0:
        ends = np.maximum(ends, 0)
    return np.stack([values.mean(axis=0), *ends])


def _rounded(values: np.ndarray) -> list[float | None]:
    return [float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None for value in values]


def _crossing(values: np.ndarray, numbers: np.ndarray) -> float | None:
    """Where on the slider the theorem's number is 1, between the values in log scale."""
    logs = np.log(numbers)
    change = np.flatnonzero(np.sign(logs[1:]) != np.sign(logs[:-1]))
    if not len(change) or np.any(values <= 0):
        return None
    k = int(change[0])
    share = -logs[k] / (logs[k + 1] - logs[k])
    return float(f"{np.exp(np.log(values[k]) + share * np.log(values[k + 1] / values[k])):.{_DIGITS}g}")


def text_of(latex: str) -> str:
    """A short formula as plain text, for the label of an axis."""
    try:
        return "".join(ElementTree.fromstring(mathml(latex)).itertext())
    except InputError:
        return latex


def _read(path: Path | None, key: dict[str, Any]) -> dict[str, Any] | None:
    if path is None or not path.is_file():
        return None
    try:
        stored = json.loads(path.read_text())
        return stored if stored["key"] == key and "curves" in stored["slice"] else None
    except (ValueError, KeyError, TypeError, OSError):
        return None  # half written by another program: computed again


def _write(path: Path | None, stored: dict[str, Any]) -> None:
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    with os.fdopen(handle, "w") as file:
        json.dump(stored, file)
    os.replace(temporary, path)
