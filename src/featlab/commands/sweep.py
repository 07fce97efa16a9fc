"""What a person sees of a sweep: what it is going to do, a table of what came out, and a phase diagram."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from featlab import plots
from featlab.commands.run import INTERRUPTED, folder_of, keep_compiled_programs, stated
from featlab.core.validation import InputError
from featlab.engine.progress import announced
from featlab.experiment import Experiment
from featlab.sweeps.axes import as_axes
from featlab.sweeps.files import writable
from featlab.sweeps.keys import WIDTH
from featlab.sweeps.plan import Plan
from featlab.sweeps.store import Store, last_sweep
from featlab.sweeps.sweep import sweep
from featlab.text import describe, override, rebuild

_FIRST_CHOICES = ("clean_test_error", "test_error", "test_loss")
_SOON_COUNTED = 200_000  # runs of which it is soon known how many are there already


def sweep_file(
    file: str,
    changes: Sequence[str] = (),
    *,
    grid: Sequence[str],
    seeds: int | None = None,
    out: str | None = None,
    near: str | None = None,
    show: str | None = None,
    cluster: str | None = None,
) -> int:
    """Sweep what a TOML file states, or a claim's typical experiment, into a folder; print a table and draw.

    The grid is one `data.n=20:200:8log` for each axis. Returns the exit code.
    """
    keep_compiled_programs()
    ranges, level = ranges_of(grid), level_of(near)
    experiment, settings = stated(file)
    experiment = with_changes(experiment, changes, ranges)
    plan = Plan.of(experiment, ranges, settings.get("seeds", 1) if seeds is None else seeds)
    shown = shown_in(plan, show, level)
    folder = writable(folder_of(file, out, "-sweep"))
    print(_announcement(plan, folder, level), flush=True)
    try:
        diagram = sweep(plan, out=folder, near=level, cluster=cluster)
    except KeyboardInterrupt:  # before the first unit was begun
        return INTERRUPTED
    print_sweep(diagram, title=settings["title"])
    for line in _figures(diagram, shown, level, floor_of(experiment, shown), folder):
        print(line)
    interrupted = bool(diagram.attrs["interrupted"])
    print(
        f'fl.load("{last_sweep(folder)}") reads the results' + ", and the same command goes on" * interrupted + "."
    )
    return INTERRUPTED if interrupted else 0


def print_sweep(diagram: xr.Dataset, *, title: str) -> None:
    """How many runs were carried out, and the range of each variable's means over seeds."""
    from rich.console import Console
    from rich.table import Table

    done, trained = int(diagram.done.sum()), int((diagram.done & diagram.trained).sum())
    swept = " x ".join(f"{diagram.sizes[dim]} {dim}" for dim in diagram.dims if dim != "seed")
    stopped = ", interrupted" * diagram.attrs["interrupted"]
    heading = (
        f"{title}\n{done:,} of {diagram.done.size:,} runs done{stopped}, {trained:,} of them trained; {swept}"
    )
    table = Table(title=heading)
    table.add_column("mean over seeds")
    table.add_column("lowest cell", justify="right")
    table.add_column("highest cell", justify="right")
    for name, variable in diagram.data_vars.items():
        if variable.dtype.kind == "f":
            means = variable.where(diagram.done).mean("seed").values
            means = means[np.isfinite(means)]
            ends = (f"{means.min():.4g}", f"{means.max():.4g}") if len(means) else ("-", "-")
            table.add_row(f"{variable.attrs.get('long_name', name)} ({name})", *ends)
    Console(markup=False).print(table)


def ranges_of(grid: Sequence[str]) -> dict[str, str]:
    """The axes of a grid, as typed."""
    found: dict[str, str] = {}
    for one in grid:
        path, equals, values = one.partition("=")
        if not equals or not path or not values:
            raise InputError(f"--grid must have the form data.n=20:200:8log, got {one!r}.")
        if path in found:
            raise InputError(f"--grid has the axis {path} twice; give all its values at once.")
        found[path] = values
    if not found:
        raise InputError("A sweep needs a grid, for instance --grid data.n=20:200:8log.")
    return found


def level_of(near: str | None) -> dict[str, float] | None:
    """A variable and its level, as typed."""
    if near is None:
        return None
    name, equals, text = near.partition("=")
    try:
        level = rebuild(text) if equals and name and text else None
    except InputError:
        level = None
    if isinstance(level, bool) or not isinstance(level, int | float) or not np.isfinite(level):
        raise InputError(f"--near must be a variable and a level, such as test_error=0.25, got {near!r}.")
    return {name: float(level)}


def with_changes(experiment: Experiment, changes: Sequence[str], ranges: dict[str, str]) -> Experiment:
    """The experiment with changes; where they make sense on the grid alone, with its first values too.

    So that `data.signal_norm=none --grid data.snr=...` works, which leaves no signal anywhere else.
    """
    try:
        return override(experiment, changes)
    except InputError as error:
        try:
            firsts = [f"{axis.path}={describe(axis.values[0])}" for axis in as_axes(ranges, experiment)]
            return override(experiment, [*changes, *firsts])
        except InputError:
            raise error from None


def shown_in(plan: Plan, show: str | None, level: dict[str, float] | None) -> str:
    """The variable of the figure: the one asked for, the one whose level is followed, or a test error."""
    for asked in (show, *(level or ())):
        if asked is not None:
            plan.check(asked)
    chosen = [show or "", *(level or ()), *_FIRST_CHOICES, *plan.variables]
    return next(name for name in chosen if name in plan.variables)


def floor_of(experiment: Experiment, shown: str) -> float | None:
    """The test error that flipped test labels leave to everyone."""
    data: Any = getattr(experiment.data, "data", experiment.data)
    flip = getattr(data, "test_flip", None)
    return flip if shown == "test_error" and isinstance(flip, float) and flip > 0 else None


def _announcement(plan: Plan, folder: Path, level: dict[str, float] | None) -> str:
    line, long = str(plan), announced(plan.work)
    line += f", {long}" if long else ""
    for name, at in (level or {}).items():
        line += f", of which those near {name} = {at:g} are computed"
    there = _already(plan, folder) if plan.runs <= _SOON_COUNTED else 0
    return f"{line}; kept in {folder}" + (f", where {there:,} are already." if there else ".")


def _already(plan: Plan, folder: Path) -> int:
    store = Store(folder)
    return int(store.get(plan.keys.reshape(-1, WIDTH))[0].sum()) if store.look() else 0


def _figures(
    diagram: xr.Dataset, shown: str, level: dict[str, float] | None, floor: float | None, folder: Path
) -> list[str]:
    """The files of the figure, or why it could not be drawn."""
    followed = (level or {}).get(shown)
    floor = None if "test_flip" in diagram.dims else floor
    if not diagram.done.any():
        return ["No figure: nothing was computed."]
    try:
        figure = plots.phase_diagram(diagram, shown, level=followed, floor=floor)
        return [str(plots.save(figure, folder / f"phase_diagram.{kind}")) for kind in ("svg", "png")]
    except InputError as error:
        return [f"No figure: {error}"]
