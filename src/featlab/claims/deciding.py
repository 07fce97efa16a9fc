"""The log of deciding runs: which claim was put to the test, in which words, on which seeds, and what came of it.

Lines of JSON in `deciding.jsonl` beside the claim files: one when a deciding run begins, with its seeds, and one
with what came of it. A run decides when the seeds were never looked at before: a claim whose source has changed
since it was decided is decided again on fresh seeds, and until then runs of it use other ones. Seeds of a run that
was begun and not finished are not fresh either.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from featlab.claims.claim import Claim
from featlab.claims.fingerprint import source_of
from featlab.core.validation import InputError

try:
    import fcntl
except ImportError:  # elsewhere than on Unix two deciding runs at once are not kept apart
    fcntl = None

BASE_SEED = 1_600_000_000  # kept for verdicts: no search, example or test uses seeds from here on
EXPLORING = 1_500_000_000  # where runs of a claim begin that has changed since it was decided
STRIDE = 10_000  # between the base seeds of deciding runs, or as many as one has seeds if that is more
LAST_SEED = 2**31 - 1
NAME = "deciding.jsonl"


def deciding_runs(claim: Claim) -> list[dict[str, Any]]:
    """Those of this claim that came to an end, the oldest first."""
    return [run for run in _lines(_log(claim)) if run["id"] == claim.id and "status" in run]


def unfinished_runs(claim: Claim) -> list[dict[str, Any]]:
    """Those that were begun, and of which nothing more is known: what they showed may have been seen."""
    ended = {run["base_seed"] for run in deciding_runs(claim)}
    begun = [run for run in _lines(_log(claim)) if run["id"] == claim.id and "status" not in run]
    return [run for run in begun if run["base_seed"] not in ended]


def usual_base_seed(claim: Claim) -> int:
    """The seeds the claim was decided on; others while it has changed since, or was never decided."""
    runs = deciding_runs(claim)
    return runs[-1]["base_seed"] if runs and runs[-1]["source"] == source_of(claim) else EXPLORING


def fresh_base_seed(claim: Claim) -> int:
    """Seeds that no deciding run of the claim has used, finished or not."""
    runs = [*deciding_runs(claim), *unfinished_runs(claim)]
    return max([BASE_SEED, *(run["base_seed"] + max(STRIDE, run["seeds"]) for run in runs)])


def open_decision(claim: Claim, size: str, seeds: int) -> int:
    """Take fresh seeds and say so in the log, before anything is seen of them; of two at once each has its own."""
    with _opened(claim) as file:
        base_seed = fresh_base_seed(claim)
        if base_seed > LAST_SEED - seeds:
            raise InputError(
                f"No fresh seeds are left for {claim.id}: the log {str(_log(claim))!r} has used them."
            )
        _append(file, _line(claim, base_seed, size, seeds))
    return base_seed


def log_decision(claim: Claim, record: Mapping[str, Any]) -> None:
    """Add what came of a deciding run to the log."""
    outcome = {
        "status": record["status"],
        "checks": {check["name"]: check["status"] for check in record["checks"]},
    }
    with _opened(claim) as file:
        _append(file, _line(claim, record["base_seed"], record["size"], record["seeds"]) | outcome)


def registration(claim: Claim, base_seed: int, size: str = "", seeds: int = 0, status: str = "") -> str:
    """In a sentence: whether the source is what was decided, and whether this run is on those seeds.

    The same question with another answer says that something else has changed, as a file that the claim reads.
    """
    if claim.knobs != type(claim)().knobs:
        return "another setting than the registered one"
    runs = deciding_runs(claim)
    begun = [
        f"begun {run['date']} on seeds from {run['base_seed']} and not finished" for run in unfinished_runs(claim)
    ]
    if not runs:
        return "; ".join(["never decided: nothing was registered before this run", *begun])
    last = runs[-1]
    decided = f"decided {last['date']} on seeds from {last['base_seed']}: {last['status']}"
    before = [f"{run['status']} from {run['base_seed']}" for run in runs[:-1] if run["source"] == last["source"]]
    if before:  # what was decided more often than once is not decided by the last time
        decided += f" (before, with the same source: {', '.join(before)})"
    if last["source"] != source_of(claim):
        changed = f"source changed since it was {decided}; --decide decides it anew, on fresh seeds"
        return "; ".join([changed, *begun])
    where = "these seeds" if base_seed == last["base_seed"] else "other seeds"
    if (base_seed, size, seeds) == (last["base_seed"], last["size"], last["seeds"]) and status != last["status"]:
        where += f" AND SAYS {status.upper()}: something that the source does not show has changed"
    return "; ".join([f"source as registered, {decided}; this run is on {where}", *begun])


def _line(claim: Claim, base_seed: int, size: str, seeds: int) -> dict[str, Any]:
    return {
        "date": datetime.date.today().isoformat(),
        "id": claim.id,
        "source": source_of(claim),
        "base_seed": base_seed,
        "size": size,
        "seeds": seeds,
    }


def _lines(path: Path) -> list[dict[str, Any]]:
    """All lines of a log; one that is damaged is named."""
    if not path.is_file():
        return []
    runs = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip():
            continue
        try:
            run = json.loads(line)
        except ValueError as error:
            raise InputError(f"{str(path)!r} is damaged in line {number}: {error}.") from None
        wrong = _wrong(run)
        if wrong:
            raise InputError(f"{str(path)!r} is damaged in line {number}: {wrong}.")
        runs.append(run)
    return runs


def _wrong(run: Any) -> str:
    """What a line lacks to be one of the log, if anything."""
    if not isinstance(run, dict):
        return "it is no object with the facts of a run"
    for name, kind in (("date", str), ("id", str), ("source", str), ("base_seed", int), ("seeds", int)):
        if not isinstance(run.get(name), kind) or isinstance(run[name], bool):
            return f"{name!r} is missing or of the wrong kind"
    if not 1 <= run["seeds"] <= LAST_SEED or not 0 <= run["base_seed"] <= LAST_SEED - run["seeds"]:
        return f"seeds lie between 0 and {LAST_SEED}"
    return "" if isinstance(run.get("status", ""), str) else "'status' is of the wrong kind"


@contextlib.contextmanager
def _opened(claim: Claim) -> Iterator[TextIO]:
    """The log, for one process at a time where the system can do so."""
    path = _log(claim)
    try:
        with path.open("a") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)  # given back as the file is closed
            yield file
    except OSError as error:
        raise InputError(f"The decision cannot be logged in {str(path)!r}: {error.strerror}.") from None


def _append(file: TextIO, line: Mapping[str, Any]) -> None:
    file.write(json.dumps(line) + "\n")
    file.flush()


def _log(claim: Claim) -> Path:
    own = sys.modules[type(claim).__module__].__file__
    return Path(own or ".").parent / NAME
