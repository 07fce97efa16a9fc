"""Verdicts and slices of many claims, one after the other or by several processes.

Small sizes spend most of their time compiling, which XLA does on one core: so each core may have a process. What
is finished lies in the store, from which the next command takes it.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax

from featlab.atlas.records import stored_record, write_record
from featlab.atlas.slices import slice_of
from featlab.claims import Claim, find_claims
from featlab.claims.verify import verify
from featlab.engine.pool import Pool


class Task(NamedTuple):
    """A verdict to reach, or a slice to train, by plain data: it may travel to another process."""

    kind: str  # "verdict" or "slice"
    id: str
    store: str
    folder: str | None  # of the user's claims
    job: dict[str, Any]  # size, seeds and base_seed of a verdict
    perturb: bool = False


class Outcome(NamedTuple):
    """What came of it: a record or a slice, or the error that ended it."""

    value: Any
    note: str
    error: str | None = None


def gathered(tasks: Sequence[Task], processes: int = 1) -> Iterator[tuple[Task, Outcome]]:
    """Every task with its outcome, as they are finished; a task that breaks does not end the others."""
    if processes <= 1 or len(tasks) <= 1 or jax.default_backend() != "cpu":
        for task in tasks:
            yield task, carry_out(task)
        return
    small = all(task.job.get("size", "smoke") in ("tiny", "smoke") for task in tasks)
    pool = Pool(min(processes, len(tasks)), environment=_quick_compiler() if small else {})
    try:
        for task, news in pool.results(carry_out, ((task, (task,)) for task in tasks)):
            yield task, news.value if news.error is None else Outcome(None, "broke", str(news.error))
    finally:
        pool.close()


def carry_out(task: Task) -> Outcome:
    """Do it here, or take it from the store; whatever goes wrong with a claim becomes its outcome."""
    try:
        claim = _claim(task.id, task.folder)
        return _verdict(claim, task) if task.kind == "verdict" else _slice(claim, task)
    except Exception as error:  # a claim may be anybody's code
        traceback.print_exc()
        return Outcome(None, "broke, see above", f"{type(error).__name__}: {error}")


def _claim(id: str, folder: str | None) -> Claim:
    from featlab.errata import find_errata

    errata = find_errata()
    return errata[id] if id in errata else find_claims(folder)[id]


def _verdict(claim: Claim, task: Task) -> Outcome:
    store = Path(task.store)
    record = stored_record(claim, task.job, store, task.perturb)
    if record is not None:
        return Outcome(record, f"{record['word']}, from the records")
    record = verify(claim, claims=task.folder, perturb=task.perturb, progress=False, **task.job).record()
    write_record(record, store)
    return Outcome(record, f"{record['word']}, {record['seconds']:.0f} s")


def _slice(claim: Claim, task: Task) -> Outcome:
    return Outcome(slice_of(claim, Path(task.store)), "its slice")


def _quick_compiler() -> dict[str, str]:
    """For programs that are run once or twice: on a CPU, compiling them takes longer than running them."""
    if "XLA_FLAGS" in os.environ:
        return {}
    flags = ["--xla_backend_optimization_level=1"]
    if version("jaxlib") < "0.11":  # later versions refuse flags that they do not know
        flags += ["--xla_cpu_use_fusion_emitters=false", "--xla_cpu_parallel_codegen_split_count=1"]
    return {"XLA_FLAGS": " ".join(flags)}
