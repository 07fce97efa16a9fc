"""What the playground computes: curves while training runs, a phase diagram as it fills, files to keep.

A job is a generator of messages for the browser, so that a worker can turn to another job in between.
"""

from __future__ import annotations

import dataclasses
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from featlab import plots
from featlab.atlas.script import numpy_script
from featlab.claims import Claim, Picture
from featlab.core.sees import Sees
from featlab.core.validation import InputError
from featlab.engine.batch import work
from featlab.engine.program import Program, programs_of
from featlab.engine.run import run
from featlab.engine.stream import live
from featlab.experiment import Experiment
from featlab.probes import Probe, Variable, at_end, until
from featlab.probes.running import as_running
from featlab.sweeps.axes import field_kind
from featlab.sweeps.files import export
from featlab.sweeps.plan import Plan
from featlab.sweeps.results import Results
from featlab.sweeps.sweep import carry_out
from featlab.text import changed, describe
from featlab.web._catalogue import Catalogue, Request, plane
from featlab.web._fields import named, plain_symbol

MOST_WORK = 1e12  # operations for one setting: about a minute on two cores
NEAR = 2.0  # a factor around the boundary
MOST_NUMBERS = 2e8  # drawn at once
_DIAGRAM_SEEDS = 2
_DIAGRAM_STEPS = 2000
_CELLS = 9  # along each side of a diagram that no theorem has chosen
_FILES = ("figure.svg", "figure.png", "data.nc", "script.py", "experiment.toml")

Message = dict[str, Any]


def side(request: Request) -> Message:
    """On which side of the theorem a setting is, in one sentence, and what the theorem assumes."""
    claim, experiment = request.claim, request.experiment
    if claim is None:
        return {"kind": "side", "sentence": "", "number": None, "symbol": "", "assumptions": []}
    try:
        assumptions = claim.assumptions(experiment)
    except (ArithmeticError, AttributeError, TypeError, ValueError):
        sentence = f"The theorem of {claim.id} does not speak of this kind of task."
        return {"kind": "side", "sentence": sentence, "number": None, "symbol": "", "assumptions": []}
    listed = [{**one._asdict(), "value": _finite(one.value), "holds": bool(one.holds)} for one in assumptions]
    picture, number, sentence = claim.picture(), None, ""
    if picture is not None:
        try:
            number = float(picture.number(experiment))
            sentence = _said(picture, number)
        except (ArithmeticError, AttributeError, TypeError):
            sentence = "The theorem's number means nothing for this task."
    outside = [one for one in assumptions if not one.holds]
    if outside:
        far = f"Outside the theorem's assumptions: {outside[0].sentence} should be {outside[0].should}."
        sentence = f"{sentence} {far}".strip()
    elif not sentence:
        sentence = "Inside the theorem's assumptions."
    symbol = plain_symbol(picture.symbol) if picture is not None else ""
    return {
        "kind": "side",
        "sentence": sentence,
        "number": _finite(number),
        "symbol": symbol,
        "assumptions": listed,
    }


def _said(picture: Picture, number: float) -> str:
    """The theorem speaks of a number far from 1; near it neither side can be expected."""
    if 1 / NEAR < number < NEAR:
        nearer = picture.above if number > 1 else picture.below
        return f"Near the boundary, where the theorem promises neither side. Far on this side: {nearer}"
    return picture.above if number > 1 else picture.below


def train(request: Request) -> Iterator[Message]:
    """Curves, a few moments at a time."""
    experiment = request.experiment
    _affordable(programs_of([experiment]), request.seeds)
    labels, sent = _labels(experiment), 0
    last = experiment.last_step
    for part in live(experiment, request.seeds):
        done = not part.live or int(part.steps[-1]) == last
        series = {
            name: {"label": labels.get(name, name), **_band(values)}
            for name, values in part.readings.items()
            if not name.endswith("_se")
        }
        note = "" if part.live or int(part.steps[-1]) == last else "all runs reached their training loss"
        yield {
            "kind": "curves", "from": sent, "steps": part.steps.tolist(), "time_label": "step", "series": series,
            "of": last, "done": done, "note": note,
        }  # fmt: skip
        sent += len(part.steps)


def diagram(request: Request) -> Iterator[Message]:
    """A phase diagram around the setting, cell by cell, with the theorem's boundary."""
    claim, experiment = request.claim, _ends_only(request.experiment)
    axes = plane(claim, experiment)
    if axes is None:
        raise InputError("There is no phase diagram here: it needs a number of samples and a signal.")
    grid, variable, level = _grid(claim, experiment, axes)
    across, up = (tuple(values) for values in grid.values())
    plan = Plan.of(experiment, grid, _DIAGRAM_SEEDS)
    _affordable(plan.programs, len(plan.seeds))
    labels = _labels(experiment)
    head: Message = {
        "kind": "diagram",
        "x": {"field": axes[0], "label": _axis_label(experiment, axes[0]), "values": list(across)},
        "y": {"field": axes[1], "label": _axis_label(experiment, axes[1]), "values": list(up)},
        "variable": variable,
        "label": labels.get(variable, variable),
        "low": 0.0,
        "high": 0.5 if variable.endswith("error") else math.log(2),
        "level": level,
        "curve": _boundary(claim, experiment, axes, across, up),
    }
    yield {**head, "cells": [], "done": False}
    told = np.zeros((len(across), len(up)), bool)
    results = Results(plan)
    for _ in carry_out(results):
        means = results.means(variable)
        new = np.isfinite(means) & ~told
        told |= new
        found = [[int(i), int(j), _finite(float(means[i, j]))] for i, j in zip(*np.nonzero(new))]
        yield {**head, "cells": found, "done": bool(results.finished.all())}


def file(request: Request, name: str) -> Iterator[Message]:
    """One file to keep: {"kind": "file", "content": bytes}."""
    if name not in _FILES:
        raise InputError(f"There is no file {name[:80]!r}; there are {', '.join(_FILES)}.")
    experiment, seeds = request.experiment, request.seeds
    if name == "script.py":
        yield {"kind": "file", "content": numpy_script(experiment, seeds).encode()}
    elif name == "experiment.toml":
        yield {"kind": "file", "content": _toml(experiment, seeds).encode()}
    else:
        _affordable(programs_of([experiment]), seeds)
        history = run(experiment, seeds, progress=False, products=experiment.representation == Sees.PRODUCTS)
        yield {"kind": "file", "content": _written(history, name)}


def jobs(catalogue: Catalogue) -> dict[str, Callable[..., Iterator[Message]]]:
    """What can be asked for, by name."""
    return {
        "train": lambda setting: train(catalogue.read(setting)),
        "diagram": lambda setting: diagram(catalogue.read(setting)),
        "file": lambda setting, name: file(catalogue.read(setting), name),
    }


def _affordable(programs: Sequence[Program], seeds: int) -> None:
    """Refuse, before anything is computed, what would take too long or too much memory."""
    for program in programs:
        runs = len(program.table.places) * seeds
        if work(program) * runs > MOST_WORK:
            raise InputError(
                f"That is about {work(program) * runs:.1e} operations, and this page takes at most "
                f"{MOST_WORK:.0e}: choose fewer steps, samples, neurons or seeds, or use `featlab run`, "
                "which has no such limit."
            )
        if program.size * min(runs, 16) > MOST_NUMBERS:
            raise InputError(
                f"That draws {program.size * min(runs, 16):.1e} numbers, and this page takes at most "
                f"{MOST_NUMBERS:.0e}: choose a smaller n, d or width, or use `featlab run`."
            )


def _ends_only(experiment: Experiment) -> Experiment:
    probes = [one.on(at_end) for one in experiment.probes if isinstance(one, Probe) and as_running(one) is None]
    steps: Any = experiment.steps
    if isinstance(steps, until):
        steps = dataclasses.replace(steps, at_most=min(steps.at_most, _DIAGRAM_STEPS))
    else:
        steps = min(steps, _DIAGRAM_STEPS)
    return dataclasses.replace(experiment, probes=probes, steps=steps)


def _grid(claim: Claim | None, experiment: Experiment, axes: tuple[str, str]) -> tuple[dict[str, Any], str, float]:
    picture = None if claim is None else claim.picture()
    if picture is not None:
        return {axes[0]: picture.across_values, axes[1]: picture.values}, picture.shows, picture.level
    n, signal = experiment.data.n, getattr(experiment.data, axes[1].partition(".")[2])
    across = sorted({int(max(2, round(n * factor))) for factor in np.geomspace(0.25, 4, _CELLS)})
    up = [float(f"{signal * factor:.3g}") for factor in np.geomspace(0.1, 10, _CELLS)]
    names = [name for probe in experiment.probes for name, _ in probe.variables]
    variable = next((name for name in ("clean_test_error", "test_error", "test_loss") if name in names), names[0])
    return {axes[0]: across, axes[1]: up}, variable, 0.25


def _boundary(claim, experiment, axes, across, up) -> Message | None:
    """Where the theorem's number is 1, in the plane of the diagram."""
    picture = None if claim is None else claim.picture()
    if picture is None:
        return None
    fine = np.geomspace(min(up), max(up), 60)
    xs, ys = [], []
    for x in across:
        try:
            numbers = [float(picture.number(changed(experiment, {axes[0]: x, axes[1]: float(y)}))) for y in fine]
        except (InputError, ArithmeticError, AttributeError, TypeError):
            return None
        if numbers[0] < 1 < numbers[-1]:
            xs.append(x)
            ys.append(float(np.exp(np.interp(0.0, np.log(numbers), np.log(fine)))))
    return {"x": xs, "y": ys, "label": "theory's boundary"} if len(xs) > 1 else None


def _labels(experiment: Experiment) -> dict[str, str]:
    described = [(as_running(probe) or probe).variables for probe in experiment.probes]
    return {name: (one or Variable()).meaning or name for variables in described for name, one in variables}


def _axis_label(experiment: Experiment, path: str) -> str:
    symbol, words = named(path, field_kind(experiment, path))
    return f"{symbol}, {words}" if symbol != words else words


def _band(values: np.ndarray) -> dict[str, list[float | None]]:
    """(moment, seed) to the mean over seeds, and the smallest and largest."""
    ends = {"mean": values.mean(axis=1), "low": values.min(axis=1), "high": values.max(axis=1)}
    return {name: [_finite(float(value)) for value in column] for name, column in ends.items()}


def _finite(value: float | None) -> float | None:
    return float(f"{value:.5g}") if value is not None and math.isfinite(value) else None


def _toml(experiment: Experiment, seeds: int) -> str:
    """The experiment as a file for `featlab run`."""
    lines = [f"seeds = {seeds}"]
    for field in dataclasses.fields(experiment):
        value = getattr(experiment, field.name)
        if field.name == "probes":
            lines.append("probes = [" + ", ".join(f'"{describe(probe)}"' for probe in value) + "]")
        elif isinstance(value, int):
            lines.append(f"{field.name} = {value}")
        elif value is not None:
            lines.append(f'{field.name} = "{describe(value)}"')
    return "\n".join(lines) + "\n"


def _written(history: Any, name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path = export(history, path) if name == "data.nc" else plots.save(plots.losses(history), path)
        return path.read_bytes()
