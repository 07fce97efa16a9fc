"""What a person sees of a comparison: a table with a row for each algorithm, and curves or phase diagrams."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from featlab import plots
from featlab.commands.run import INTERRUPTED, keep, keep_compiled_programs, stated
from featlab.commands.sweep import floor_of, level_of, ranges_of, shown_in, with_changes
from featlab.core.validation import InputError, did_you_mean
from featlab.engine.run import as_seeds
from featlab.experiment import Experiment
from featlab.plots._curves import step_dim
from featlab.probes.running import as_running
from featlab.sweeps.compare import as_changes, compare, names_of, paired, planned
from featlab.sweeps.files import writable
from featlab.text import override, rebuild

_WIDE = 100  # letters in a line, from which on a number and its error share one
_CHANGE = re.compile(r"[\w.]+=")
_NAMED = re.compile(r"\s*([^:()]+?)\s*:(.+)", re.DOTALL)
_EXAMPLE = '"GradientDescent(0.1)" "SAM(0.1, radius=0.05)"'
_ERRORS = ("test_error", "clean_test_error", "test_loss")
_SIGNAL = ("gamma", "signal_learnt", "signal_alignment")
_NOISE = ("rho", "noise_memorised", "noise_alignment")


def compare_file(
    file: str,
    words: Sequence[str] = (),
    *,
    grid: Sequence[str] = (),
    seeds: int | None = None,
    out: str | None = None,
    near: str | None = None,
    show: Sequence[str] = (),
    level: float | None = None,
    cluster: str | None = None,
) -> int:
    """Compare algorithms on what a TOML file states, or a claim's typical experiment; write, print and draw.

    Words are algorithms, `SAM(0.1, radius=0.05)` or `name: SAM(...)`, and changes, `data.n=50`. Without any
    algorithm, those are compared that the file lists as `compare`. Returns the exit code.
    """
    keep_compiled_programs()
    experiment, settings = stated(file)
    algorithms = _algorithms([w for w in words if not _CHANGE.match(w)] or settings.get("compare", ()))
    changes = [word for word in words if _CHANGE.match(word)]
    chosen = as_seeds(settings.get("seeds", 1) if seeds is None else seeds, "compare").tolist()
    folder = Path(out) if out is not None else Path("out") / f"{Path(file).stem}-compare"
    if grid:
        ranges, followed = ranges_of(grid), level_of(near)
        experiment = with_changes(experiment, changes, ranges)
        variable = _shown(experiment, algorithms, ranges, chosen, show, followed)
        level = (followed or {}).get(variable) if level is None else level
        options: dict[str, Any] = {"grid": ranges, "out": folder, "near": followed, "cluster": cluster}
    else:
        for name, given in {"near": near, "level": level, "cluster": cluster}.items():
            if given is not None:
                raise InputError(f"--{name} belongs to a sweep; give --grid as well, or leave it out.")
        experiment = override(experiment, changes)
        paired(experiment, as_changes(algorithms))
        _check(experiment, show)
        variable, options = "", {}
    writable(folder)
    same = f"the same {len(chosen)} seed{'s' * (len(chosen) > 1)} for each"
    print(f"{', '.join(algorithms)}: {same}; kept in {folder}.", flush=True)
    try:
        both = compare(experiment, algorithms, seeds=chosen, tell=_tell, **options)
    except KeyboardInterrupt:  # before the first reading
        return INTERRUPTED
    keep(both, folder)
    if grid:
        floor = None if "test_flip" in both.dims else floor_of(experiment, variable)
        lines = _written(
            lambda: plots.comparison_diagrams(both, variable, level=level, floor=floor), folder, "phase_diagrams"
        )
        print_compared_sweeps(both, variable, level=level, title=settings["title"])
    else:
        lines = _written(lambda: plots.comparison(both, list(show) or None), folder, "comparison")
        print_comparison(both, title=settings["title"])
    for line in lines:
        print(line)
    interrupted = bool(both.attrs["interrupted"])
    if interrupted:
        print("Interrupted" + (", and the same command goes on." if grid else "; this is what there is."))
    return INTERRUPTED if interrupted else 0


def print_comparison(both: xr.Dataset, *, title: str) -> None:
    """Where the runs of each algorithm ended: means with standard errors over seeds, and paired differences."""
    names = [str(name) for name in both["algorithm"].values]
    columns = _columns(both)
    error = next((name for name in _ERRORS if name in both), None) if len(names) > 1 else None
    less = [] if error is None else [f"{_words(error)} minus first's"]
    seeds = both.sizes["seed"]
    heading = f"{title}\nat the end, mean ± standard error over {seeds} seed{'s' * (seeds > 1)}"
    console, table = _table(heading, [*columns.values(), *less, "steps", "trained"])
    between = " " if console.width >= _WIDE else "\n"
    first = both.sel(algorithm=names[0])
    for name in names:
        part = both.sel(algorithm=name)
        cells = [_with_error(_ending(part, key), between) for key in columns]
        if error is not None:
            gap = _ending(part, error) - _ending(first, error)  # seed by seed
            cells.append("-" if name == names[0] else _with_error(gap, between, sign="+"))
        begun = part["status"].values != "not run"
        steps = part["steps_taken"].values[begun]
        trained = f"{int(part['trained'].sum())} of {int(begun.sum())}"
        table.add_row(name, *cells, f"{steps.mean():,.0f}" if len(steps) else "-", trained)
    console.print(table)


def print_compared_sweeps(both: xr.Dataset, variable: str, *, level: float | None, title: str) -> None:
    """How many runs each algorithm has done, how many trained, and the range of one variable's means."""
    swept = [f"{both.sizes[dim]} {dim}" for dim in both["done"].dims if dim not in ("algorithm", "seed")]
    heading = f"{title}\n{' x '.join(swept)}, {both.sizes['seed']} seeds in each cell"
    below = [f"cells below {level:g}"] if level is not None else []
    ends = [f"{which} {_words(variable)}" for which in ("lowest", "highest")]
    console, table = _table(heading, ["runs done", "trained", *ends, *below])
    for name in both["algorithm"].values:
        part = both.sel(algorithm=name)
        done = int(part["done"].sum())
        means = part[variable].where(part["done"]).mean("seed").values
        means = means[np.isfinite(means)]
        ends = (f"{means.min():.4g}", f"{means.max():.4g}") if len(means) else ("-", "-")
        share = [f"{np.mean(means < level):.0%}" if len(means) else "-"] if level is not None else []
        trained = f"{int((part['done'] & part['trained']).sum()) / done:.0%}" if done else "-"
        table.add_row(str(name), f"{done:,} of {part['done'].size:,}", trained, *ends, *share)
    console.print(table)


def _table(title: str, headings: Sequence[str]) -> tuple[Console, Table]:
    """A table with a row for each algorithm, and where it goes; there, if narrow, headings have a word a line."""
    console = Console(markup=False)
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("algorithm", overflow="fold")
    for text in headings:
        table.add_column(
            text if console.width >= _WIDE else text.replace(" ", "\n"), justify="right", overflow="fold"
        )
    return console, table


def _algorithms(texts: Any) -> dict[str, Any]:
    """Algorithms by name, as typed: the name before a colon, or made from the class and what differs."""
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"compare must be a list of algorithms in quotes, got {texts!r}.")
    if not texts:
        raise InputError(f"compare needs algorithms, for instance {_EXAMPLE}.")
    parsed = [(match[1], match[2]) if (match := _NAMED.fullmatch(text)) else (None, text) for text in texts]
    found = [(name, rebuild(text)) for name, text in parsed]
    names_of([algorithm for _, algorithm in found])  # refuses what is no algorithm
    made_up = iter(names_of([algorithm for name, algorithm in found if name is None]))
    named: dict[str, Any] = {}
    for given, algorithm in found:
        name = given or next(made_up)
        if name in named:
            other = f'"other: {type(algorithm).__name__}(...)"'
            raise InputError(f"compare has {name} twice; leave one out, or give it another name, such as {other}.")
        named[name] = algorithm
    return named


def _shown(
    experiment: Experiment,
    algorithms: Mapping[str, Any],
    ranges: Mapping[str, str],
    seeds: Sequence[int],
    show: Sequence[str],
    followed: dict[str, float] | None,
) -> str:
    """The variable of the phase diagrams, checked before anything is trained."""
    if len(show) > 1:
        raise InputError(f"With --grid, --show takes one variable, got {', '.join(show)}.")
    first = next(iter(planned(experiment, as_changes(algorithms), ranges, seeds).values()))
    return shown_in(first, show[0] if show else None, followed)


def _check(experiment: Experiment, show: Sequence[str]) -> None:
    known = [name for probe in experiment.probes for name, _ in (as_running(probe) or probe).variables]
    for name in show:
        if name not in known:
            raise InputError(f"No probe of this experiment reads {name!r}; {did_you_mean(name, known)}")


def _tell(name: str) -> None:
    """Beside the progress bar: whose turn it is."""
    if sys.stderr.isatty():
        print(name, file=sys.stderr, flush=True)


def _written(draw: Any, folder: Path, name: str) -> list[str]:
    """The files of the figure, or why it could not be drawn."""
    try:
        figure: Figure = draw()
        return [str(plots.save(figure, folder / f"{name}.{kind}")) for kind in ("svg", "png")]
    except InputError as error:
        return [f"No figure: {error}"]


def _columns(both: xr.Dataset) -> dict[str, str]:
    """The variables of the table and their headings, as far as they were recorded."""
    names = [name for name in ("train_loss", "test_loss", "test_error", "clean_test_error") if name in both]
    if {"test_error", "clean_test_error"} <= set(names) and both["test_error"].equals(both["clean_test_error"]):
        names.remove("clean_test_error")  # without flips the two are one
    found = {name: _words(name) for name in names}
    for kind, choices in {"signal": _SIGNAL, "noise": _NOISE}.items():
        name = next((name for name in choices if name in both), None)
        if name is not None:
            found[name] = _words(name) if kind in name or name == "noise_memorised" else f"{kind} {name}"
    return found


def _words(name: str | None) -> str:
    return str(name).replace("_", " ").replace("train ", "training ")


def _ending(part: xr.Dataset, name: str) -> np.ndarray:
    """A variable of each run where it ended; of many numbers the largest."""
    values = part[name]
    dim = step_dim(values)
    if dim is not None:  # others may have taken more steps
        values = values.dropna(dim, how="all")
        if not values.sizes[dim]:
            return np.full(part.sizes["seed"], np.nan)
        values = values.isel({dim: -1})
    return values.max([dim for dim in values.dims if dim != "seed"]).values.astype(float)


def _with_error(values: np.ndarray, between: str, sign: str = "") -> str:
    values = values[np.isfinite(values)]
    if not len(values):
        return "-"
    spread = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):{sign}.3g}" + (f"{between}±{spread:.1g}" if np.isfinite(spread) else "")
