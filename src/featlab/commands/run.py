"""What a person sees of a run: a table of where it ended, and its figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from featlab import plots
from featlab.claims import find_claim
from featlab.core.validation import InputError
from featlab.engine.batch import operations
from featlab.engine.compiled import keep_compiled_programs
from featlab.engine.progress import INTERRUPTED, announced
from featlab.engine.run import as_seeds, run
from featlab.experiment import RESERVED, Experiment
from featlab.sweeps.files import save, set_aside, writable
from featlab.text import load_experiment, override


def run_file(file: str, changes: Sequence[str] = (), *, seeds: int | None = None, out: str | None = None) -> int:
    """Train what a TOML file states, or a claim's typical experiment; write results, print a table.

    Returns the exit code.
    """
    keep_compiled_programs()
    experiment, settings = stated(file)
    experiment = override(experiment, changes)
    folder = writable(folder_of(file, out))
    chosen = as_seeds(settings.get("seeds", 1) if seeds is None else seeds)
    n = experiment.data.n
    long = announced(len(chosen) * operations(experiment, n, experiment.span_size(n)))
    if long:
        print(f"This takes {long}.", flush=True)
    history = run(experiment, chosen)
    print_summary(history, title=settings["title"])
    keep(history, folder)
    for path in write_figures(history, folder):
        print(path)
    return INTERRUPTED if history.attrs["interrupted"] else 0


def stated(file: str) -> tuple[Experiment, dict[str, Any]]:
    """What a TOML file states, or a claim's typical experiment, and what else is said: title, seeds."""
    if file.isidentifier() and not Path(file).exists():  # the id of a claim
        return find_claim(file).typical(), {"title": file}
    experiment, settings = load_experiment(file)
    return experiment, {"title": Path(file).stem} | settings


def folder_of(file: str, out: str | None, verb: str = "") -> Path:
    """Where results go: the folder that was asked for, or out/NAME for a run, out/NAME-sweep for a sweep."""
    return Path(out) if out is not None else Path("out") / f"{Path(file).stem}{verb}"


def keep(results: xr.Dataset, folder: Path) -> None:
    """Write results; those of another question that are there keep a name of their own."""
    aside = set_aside(results, folder)
    if aside is not None:
        print(f"Earlier results there, of something else, are now in {aside}.")
    print(save(results, folder))


def write_figures(history: xr.Dataset, folder: Path) -> list[Path]:
    """Every figure the recorded variables allow, as SVG and PNG."""
    drawn = {"coefficients": plots.coefficient_growth, "losses": plots.losses, "margins": plots.margins}
    written = []
    for name, draw in drawn.items():
        try:
            figure = draw(history)
        except InputError:
            continue  # the probe it needs was not asked for
        written += [plots.save(figure, folder / f"{name}.{kind}") for kind in ("svg", "png")]
    return written


def print_summary(history: xr.Dataset, *, title: str) -> None:
    """Where the runs ended: each number with its standard error over seeds."""
    from rich.console import Console
    from rich.table import Table

    runs = history.sizes["seed"]
    counts = ", ".join(f"{np.sum(history.status.values == s)} {s}" for s in np.unique(history.status.values))
    table = Table(title=f"{title}\n{runs} runs: {counts}; {history.attrs['space']}, {history.attrs['device']}")
    table.add_column("at the end")
    table.add_column("mean", justify="right")
    table.add_column("s.e. over seeds", justify="right")
    for label, values in _final_numbers(history):
        spread = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        table.add_row(label, f"{np.mean(values):.4g}", f"{spread:.2g}" if np.isfinite(spread) else "-")
    Console(markup=False).print(table)


def _final_numbers(history: xr.Dataset):
    for name, variable in history.data_vars.items():
        if variable.dtype.kind not in "fi" or name in RESERVED:
            continue
        last = variable.isel({dim: -1 for dim in variable.dims if str(dim).startswith("step")})
        rest = [dim for dim in last.dims if dim != "seed"]
        label = f"{variable.attrs.get('long_name', name)} ({name})"
        yield (f"largest {label}" if rest else label), last.max(rest).values
