"""What a person sees of the meter: the networks that a file trains or loads, as a table, a figure and JSON."""

from __future__ import annotations

import contextlib
import json
import runpy
import sys
from pathlib import Path
from typing import Any

from featlab import plots
from featlab.fields import InputError, did_you_mean
from featlab.metering import meter
from featlab.report._runs import keep_compiled_programs

_NEEDED = ("apply", "params_before", "params_after", "inputs", "labels")
_OPTIONS = ("batched", "features", "weights", "samples")


def meter_file(file: str, *, samples: int | None = None, out: str | None = None, as_json: bool = False) -> int:
    """Meter what FILE.py defines: apply, params_before, params_after, inputs, labels, perhaps clean_labels.

    What else `featlab.meter` takes may be defined too. Returns the exit code.
    """
    keep_compiled_programs()
    defined = _defined(Path(file))
    missing = [name for name in _NEEDED if name not in defined]
    if missing:
        names = [name for name in defined if not name.startswith("_")]
        raise InputError(f"{file!r} must define {missing[0]}; {did_you_mean(missing[0], names or ['nothing'])}")
    options: dict[str, Any] = {name: defined[name] for name in _OPTIONS if name in defined}
    if samples is not None:
        options["samples"] = samples
    data = {name: defined.get(name) for name in ("inputs", "labels", "clean_labels")}
    reading = meter(defined["apply"], defined["params_before"], defined["params_after"], data, **options)
    print(json.dumps(reading.record()) if as_json else str(reading))
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "meter.json").write_text(json.dumps(reading.record(), indent=1))
        (folder / "meter.txt").write_text(str(reading))
        figure = plots.meter(reading, Path(file).stem)
        written = [folder / "meter.json", folder / "meter.txt"]
        written += [plots.save(figure, folder / f"meter.{kind}") for kind in ("svg", "png")]
        for path in written:
            print(path, file=sys.stderr if as_json else sys.stdout)
    return 0


def _defined(path: Path) -> dict[str, Any]:
    if path.suffix != ".py" or not path.is_file():
        needed = ", ".join(_NEEDED)
        raise InputError(f"featlab meter needs a Python file that defines {needed}; {str(path)!r} is none.")
    sys.path.insert(0, str(path.parent))  # as Python does for a script
    try:
        with contextlib.redirect_stdout(sys.stderr):  # stdout is for the reading
            return runpy.run_path(str(path))
    except (Exception, SystemExit) as error:
        raise InputError(f"{str(path)!r} cannot be run: {type(error).__name__}: {error}.") from error
    finally:
        sys.path.remove(str(path.parent))
