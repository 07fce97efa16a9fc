"""All cores of one machine: units of a sweep, computed by processes of featlab's own.

XLA runs one program at a time on a CPU, and small ones on one core: so every core gets a process. They live as
long as the one that started them and keep their compiled programs. One that dies loses the unit it was at, which
another one computes.
"""

from __future__ import annotations

import atexit
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from featlab.endings import Runs, compute, units
from featlab.fields import InputError
from featlab.groups import Group
from featlab.store import Store

_ATTEMPTS = 3  # workers that may die of a unit


def carry_out(group: Group, runs: Runs, addresses: np.ndarray | None, folder: str | None) -> dict[str, np.ndarray]:
    """What a worker does with a unit: compute it, in blocks that suit its device, and keep it."""
    if jax.default_backend() == "cpu":
        values = compute(group, runs, reduced=True)
    else:  # a GPU takes the unit in blocks of its own size
        values = dict[str, np.ndarray]()
        places = {pair: i for i, pair in enumerate(zip(runs.experiments.tolist(), runs.seeds.tolist()))}
        for part in units(group, runs.experiments, runs.seeds):
            here = [places[pair] for pair in zip(part.experiments.tolist(), part.seeds.tolist())]
            for name, value in compute(group, part, reduced=True).items():
                values.setdefault(name, np.zeros(len(runs.experiments), value.dtype))[here] = value
    if folder is not None and addresses is not None:
        Store(Path(folder)).put(addresses, values)
    return values


def parcelled(group: Group, runs: Runs) -> tuple[Group, Runs]:
    """A unit without what it does not need: the numbers of its own experiments alone."""
    kept, places = np.unique(runs.experiments, return_inverse=True)
    return group.only(kept), Runs(places.reshape(-1), runs.seeds, runs.slots, runs.real)


class Pool:
    """A process for every core."""

    def computed(self, parcels: Iterator[Any], store: Store | None) -> Iterator[tuple[Group, Runs, dict]]:
        """Every unit with its values, in the order in which they are finished."""
        folder = None if store is None else str(store.folder.resolve())
        lock, finished, stop = threading.Lock(), queue.SimpleQueue(), threading.Event()
        again: list[tuple[Any, int]] = []

        def take():
            with lock:
                if stop.is_set():
                    return None
                if again:
                    return again.pop()
                parcel = next(parcels, None)
                return None if parcel is None else (parcel, 0)

        def serve(place: int):
            try:
                while (taken := take()) is not None:
                    parcel, deaths = taken
                    message = (*parcelled(parcel.group, parcel.runs), parcel.addresses, folder)
                    worker = _worker(place)
                    try:
                        finished.put((parcel, worker.ask(message)))
                    except EOFError:
                        _dismiss(place, worker)
                        if deaths + 1 == _ATTEMPTS:
                            raise InputError(
                                "A unit of this sweep ended every process that took it; perhaps it needs more "
                                "memory than there is. What was finished before is kept."
                            ) from None
                        with lock:
                            again.append((parcel, deaths + 1))
                finished.put((None, None))
            except BaseException as error:  # told in the thread that waits
                finished.put((None, error))

        threads = [threading.Thread(target=serve, args=(i,), daemon=True) for i in range(cores())]
        for thread in threads:
            thread.start()
        try:
            running = len(threads)
            while running:
                parcel, outcome = finished.get()
                if parcel is None:
                    running -= 1
                if isinstance(outcome, BaseException):
                    raise outcome
                if parcel is not None:
                    yield parcel.group, parcel.runs, outcome
        except BaseException:  # nobody waits for what the others are at
            stop.set()
            while any(thread.is_alive() for thread in threads):  # one may just be starting a worker
                dismiss()
                for thread in threads:
                    thread.join(0.1)
            raise


class _Worker:
    """A process that answers one message after the other."""

    def __init__(self):
        environment = dict(os.environ)
        # One thread each: the cores are taken by the other workers.
        environment["XLA_FLAGS"] = f"{environment.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()
        environment["JAX_PLATFORMS"] = "cpu"
        cache = getattr(jax.config, "jax_compilation_cache_dir", None)
        if cache is not None:
            environment["JAX_COMPILATION_CACHE_DIR"] = str(cache)
            environment["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.2"
        self._one_at_a_time = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from featlab.workers import answer; answer()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )

    def ask(self, message: Any) -> Any:
        """The answer, or the error it raised there; EOFError if the process has died."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        try:
            with self._one_at_a_time:  # two sweeps of one program share the workers
                pickle.dump(message, process.stdin, protocol=5)
                process.stdin.flush()
                answer = pickle.load(process.stdout)
        except (OSError, ValueError, pickle.UnpicklingError):
            raise EOFError from None
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except OSError:  # what was not sent is lost with the process
                pass


_workers: dict[int, _Worker] = {}


_changing = threading.Lock()


def _worker(place: int) -> _Worker:
    with _changing:
        if place not in _workers:
            _workers[place] = _Worker()
        return _workers[place]


def _dismiss(place: int, worker: _Worker) -> None:
    """End a worker, unless that has been done."""
    with _changing:
        if _workers.get(place) is worker:
            _workers.pop(place).close()


@atexit.register
def dismiss() -> None:
    """End all workers; they come back when they are needed."""
    for place, worker in list(_workers.items()):
        _dismiss(place, worker)


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def begin_on_one_core() -> None:
    """Let XLA see one core when it decides how many threads to have, and the system use any core after that."""
    if hasattr(os, "sched_setaffinity"):
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(allowed)})
        jax.devices()
        for thread in os.listdir("/proc/self/task") if os.path.isdir("/proc/self/task") else ["0"]:
            os.sched_setaffinity(int(thread), allowed)


def answer() -> None:
    """The life of a worker: messages come in on stdin, answers go out on stdout."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the process that waits
    begin_on_one_core()
    messages, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed goes elsewhere
    while True:
        try:
            message = pickle.load(messages)
        except EOFError:
            return
        try:
            outcome: Any = carry_out(*message)
        except Exception as error:
            outcome = error if isinstance(error, InputError) else RuntimeError(f"{type(error).__name__}: {error}")
        pickle.dump(outcome, answers, protocol=5)
        answers.flush()
