"""Verdicts and slices of many claims, one after the other or by several processes.

Small sizes spend most of their time compiling, which XLA does on one core: so each core may have a process. What
is finished lies in the store, from which the next command takes it.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax

from featlab.claims import Claim, find_claims
from featlab.report._claims import stored_record, write_record
from featlab.report._runs import keep_compiled_programs
from featlab.report._slices import slice_of
from featlab.verification import verify
from featlab.workers import begin_on_one_core


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
    waiting, finished = queue.SimpleQueue(), queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)
    small = all(task.job.get("size", "smoke") in ("tiny", "smoke") for task in tasks)
    begin = partial(_begin, _quick_compiler() if small else {})
    workers = [begin() for _ in range(min(processes, len(tasks)))]
    for place in range(len(workers)):
        threading.Thread(target=_serve, args=(workers, place, begin, waiting, finished), daemon=True).start()
    try:
        for _ in tasks:
            yield finished.get()
    finally:  # nobody waits for what they are at, if this is an interrupt
        while not waiting.empty():
            waiting.get()
        for worker in workers:
            _end(worker)


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
    record = stored_record(claim, task.job, store, task.perturb, task.folder)
    if record is not None:
        return Outcome(record, f"{record['status']}, from the records")
    record = verify(claim, claims=task.folder, perturb=task.perturb, progress=False, **task.job).record()
    write_record(record, store)
    return Outcome(record, f"{record['status']}, {record['seconds']:.0f} s")


def _slice(claim: Claim, task: Task) -> Outcome:
    return Outcome(slice_of(claim, Path(task.store)), "its slice")


def _quick_compiler() -> dict[str, str]:
    """For programs that are run once or twice: on a CPU, compiling them takes longer than running them."""
    if "XLA_FLAGS" in os.environ:
        return {}
    flags = ["--xla_backend_optimization_level=1"]
    if version("jaxlib") < "0.11":  # later versions do not know it, and refuse what they do not know
        flags.append("--xla_cpu_use_fusion_emitters=false")
    return {"XLA_FLAGS": " ".join(flags)}


def _begin(compiler: dict[str, str]) -> subprocess.Popen:
    environment = os.environ | compiler
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # the same featlab, wherever it lies
    command = [sys.executable, "-c", "from featlab.report._gather import answer; answer()"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True)


def _end(worker: subprocess.Popen) -> None:
    worker.kill()
    worker.wait()
    for pipe in (worker.stdin, worker.stdout):
        assert pipe is not None
        try:
            pipe.close()
        except OSError:  # what was not sent is lost with the process
            pass


def _serve(
    workers: list[subprocess.Popen],
    place: int,
    begin: Callable[[], subprocess.Popen],
    waiting: queue.SimpleQueue,
    finished: queue.SimpleQueue,
):
    """Give a process one task after the other; another one takes its place if it dies."""
    while True:
        try:
            task = waiting.get_nowait()
        except queue.Empty:
            return
        outcome = _asked(workers[place], task)
        if outcome is None:
            outcome = Outcome(None, "broke", "its process ended; perhaps it needs more memory than there is")
            _end(workers[place])
            if not waiting.empty():
                workers[place] = begin()
        finished.put((task, outcome))


def _asked(worker: subprocess.Popen, task: Task) -> Outcome | None:
    """The outcome, or none if the process has died."""
    assert worker.stdin is not None and worker.stdout is not None
    try:
        print(json.dumps(task), file=worker.stdin, flush=True)
        return Outcome(*json.loads(worker.stdout.readline()))
    except (OSError, ValueError):
        return None


def answer() -> None:
    """The life of such a process: tasks come in on stdin, outcomes go out on stdout."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the process that waits
    begin_on_one_core()
    keep_compiled_programs()
    outcomes = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed goes elsewhere
    for line in sys.stdin:
        print(json.dumps(carry_out(Task(*json.loads(line)))), file=outcomes, flush=True)
