"""What a person sees of the meter: the networks that a file trains or loads, as a table, a figure and JSON."""

from __future__ import annotations

import contextlib
import json
import runpy
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from featlab import plots
from featlab.core.validation import InputError, did_you_mean
from featlab.engine.compiled import keep_compiled_programs
from featlab.metering import Reading, meter
from featlab.sweeps.files import writable

_NEEDED = ("apply", "params_before", "params_after", "inputs", "labels")
_OPTIONS = ("batched", "features", "weights", "samples")


def meter_file(file: str, *, samples: int | None = None, out: str | None = None, as_json: bool = False) -> int:
    """Meter what FILE.py defines: apply, params_before, params_after, inputs, labels, perhaps clean_labels.

    What else `featlab.meter` takes may be defined too. Returns the exit code.
    """
    keep_compiled_programs()
    path = Path(file)
    if path.suffix != ".py" or not path.is_file():
        needed = ", ".join(_NEEDED)
        raise InputError(f"featlab meter needs a Python file that defines {needed}; got {file!r}.")
    folder = None if out is None else writable(out)
    with _as_script(path):
        defined = _defined(path)
        options: dict[str, Any] = {name: defined[name] for name in _OPTIONS if name in defined}
        if samples is not None:
            options["samples"] = samples
        data = {name: defined.get(name) for name in ("inputs", "labels", "clean_labels")}
        reading = meter(defined["apply"], defined["params_before"], defined["params_after"], data, **options)
    print(json.dumps(reading.record()) if as_json else str(reading))
    for written in () if folder is None else _written(reading, folder, path.stem):
        print(written, file=sys.stderr if as_json else sys.stdout)
    return 0


@contextlib.contextmanager
def _as_script(path: Path) -> Iterator[None]:
    """Modules beside the file are found, as Python does for a script; stdout is for the reading."""
    sys.path.insert(0, str(path.parent))
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        with contextlib.suppress(ValueError):  # the file may have removed it
            sys.path.remove(str(path.parent))


def _defined(path: Path) -> dict[str, Any]:
    try:
        defined = runpy.run_path(str(path))
    except (Exception, SystemExit) as error:
        raise InputError(f"{str(path)!r} cannot be run{_said(error, path)}.") from error
    missing = [name for name in _NEEDED if name not in defined]
    if missing:
        names = [name for name in defined if not name.startswith("_")]
        raise InputError(
            f"{str(path)!r} must define {missing[0]}; {did_you_mean(missing[0], names or ['nothing'])}"
        )
    return defined


def _said(error: BaseException, path: Path) -> str:
    """The file's line, the kind of the error and the first line of its words."""
    lines = [at.lineno for at in traceback.extract_tb(error.__traceback__) if at.filename == str(path)]
    where = f", line {lines[-1]}" if lines else ""
    words = (str(error).strip().splitlines() or [""])[0].rstrip(".")
    return ": ".join((where, type(error).__name__, *([words] if words else [])))


def _written(reading: Reading, folder: Path, title: str) -> list[Path]:
    try:
        record, table = folder / "meter.json", folder / "meter.txt"
        record.write_text(json.dumps(reading.record(), indent=1), encoding="utf-8")
        table.write_text(str(reading), encoding="utf-8")
        figure = plots.meter(reading, title)
        return [record, table, *(plots.save(figure, folder / f"meter.{kind}") for kind in ("svg", "png"))]
    except OSError as error:
        raise InputError(f"--out {str(folder)!r} cannot be written: {error.strerror}.") from None
