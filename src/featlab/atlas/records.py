"""Records of verdicts on disk: written whole or not at all, and taken again where nothing has changed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from featlab import plots
from featlab.claims import Claim
from featlab.claims.deciding import usual_base_seed
from featlab.claims.judge import TOGETHER
from featlab.claims.verify import read_records, versions
from featlab.core.validation import InputError
from featlab.text import describe


def stored_record(claim: Claim, options, out, perturb) -> dict[str, Any] | None:
    """The record in `out` that this job would give again, if there is one."""
    path = None if out is None else Path(out) / f"{claim.id}.json"
    if path is None or not path.is_file():
        return None
    try:
        (record,) = read_records(path)
        count = options["seeds"] or claim.sizes[options["size"]].seeds
        wanted = {
            "size": options["size"],
            "seeds": count,
            "base_seed": usual_base_seed(claim) if options["base_seed"] is None else options["base_seed"],
            "setting": {name: describe(value) for name, value in claim.knobs.items()},
            "versions": versions(claim),
            "judged": options.get("judged") or TOGETHER,
        }
        same = all(record.get(key) == value for key, value in wanted.items())
        return record if same and bool(record.get("perturbed")) == perturb else None
    except (InputError, ValueError):
        print(f"featlab: {path} cannot be read and is computed again.", file=sys.stderr)
        return None


def write_record(record, out) -> None:
    """A record and its figure, into a folder."""
    if out is None:
        return
    folder, name = Path(out), record["id"]
    part = folder / f".{name}.{os.getpid()}.part"
    try:
        figure = plots.verdict(record)
        for kind in ("svg", "png"):
            plots.save(figure, folder / f"{name}.{kind}")
        # The record last, and whole or not at all: it says that the rest is there.
        part.write_text(json.dumps([record], indent=1))
        os.replace(part, folder / f"{name}.json")
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"The verdict on {name} cannot be written to {str(out)!r}: {error.strerror}.") from None
