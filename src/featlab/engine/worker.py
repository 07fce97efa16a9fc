"""A process that computes beside this one, and the rules it lives by.

- It has one core: XLA runs one program at a time on a CPU, and small ones on one core.
- It is begun when there is a job for it, lives as long as this process and keeps its compiled programs.
- If it dies, or says nothing for longer than a deadline, the caller is told, and the next job begins another.
- It hears no Ctrl-C, which is for the process that waits; it ends when that one does, by whatever means.
- What is printed there comes out on stderr.

A job is a function with its arguments. What it returns or yields is told; what it raises arrives as a sentence.
This is our own since multiprocessing and pebble run the user's script again in every process, loky gives up all
jobs when one process dies, and none of them hands on what a generator yields or lets jobs take turns.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping
from typing import Any, NamedTuple

import cloudpickle
import jax

from featlab.core.validation import InputError
from featlab.engine.pickled import as_bytes

# Interrupts are ignored first: importing takes longer than a second.
_DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
_COMMAND = f"{_DEAF}; from featlab.engine.worker import answer; answer()"


class Lost(Exception):
    """The process of a job ended before the job did."""


class Silent(Lost):
    """It was ended, since it said nothing for too long."""


class News(NamedTuple):
    """What a job returned or yielded, or the error that ended it; only the last of a generator has no value."""

    value: Any = None
    error: Exception | None = None
    last: bool = True

    def result(self) -> Any:
        """The value, or its error raised."""
        if self.error is not None:
            raise self.error
        return self.value


Tell = Callable[[News], None]


class _Job(NamedTuple):
    key: Hashable
    tell: Tell
    since: float


class Worker:
    """One process, whose jobs take turns after every message; a job replaces an older one of the same key."""

    def __init__(self, environment: Mapping[str, str] | None = None, deadline: float | None = None):
        self.deadline, self._extra = deadline, dict(environment or {})
        self._process: subprocess.Popen | None = None
        self._outbox: queue.SimpleQueue[tuple[int, bytes | None] | None] = queue.SimpleQueue()
        self._heard = 0.0
        self._jobs: dict[int, _Job] = {}
        self._numbers = itertools.count()
        self._lock = threading.RLock()
        _workers.add(self)

    @property
    def pid(self) -> int | None:
        """Of the process, if there is one."""
        process = self._process
        return None if process is None else process.pid

    def keys(self) -> list[Hashable]:
        """Of the jobs that are not done."""
        with self._lock:
            return [job.key for job in self._jobs.values()]

    def begin(self, key: Hashable, tell: Tell, function: Callable, *arguments: Any) -> None:
        """Start a job; `tell` is called with its news, in a thread of the worker's own."""
        message = as_bytes((function, arguments))
        with self._lock:
            self.stop(key)
            if self._process is None:
                self._start()
            number = next(self._numbers)
            self._jobs[number] = _Job(key, tell, time.monotonic())
            self._outbox.put((number, message))

    def stop(self, key: Hashable) -> None:
        """End a job, if there is one; nothing more is told of it."""
        with self._lock:
            for number in [number for number, job in self._jobs.items() if job.key == key]:
                del self._jobs[number]
                self._outbox.put((number, None))

    def close(self) -> None:
        """End the process. It comes back for the next job."""
        if self._process is not None:
            self._lose(self._process, Lost("The process was closed."))

    def _start(self) -> None:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        process = subprocess.Popen([sys.executable, "-c", _COMMAND], env=_environment(self._extra), **pipes)
        self._process, self._outbox, self._heard = process, queue.SimpleQueue(), time.monotonic()
        _in_background(_send, process, self._outbox)
        _in_background(self._listen, process)
        if self.deadline is not None:
            _in_background(self._watch, process)

    def _listen(self, process: subprocess.Popen) -> None:
        assert process.stdout is not None
        with process.stdout:
            while True:
                try:
                    number, news = pickle.load(process.stdout)
                except Exception:  # it has died, perhaps in the middle of a word
                    self._lose(process, Lost("Its process ended; perhaps it needs more memory than there is."))
                    return
                with self._lock:
                    self._heard = time.monotonic()
                    job = self._jobs.pop(number, None) if news.last else self._jobs.get(number)
                if job is not None:
                    job.tell(news)

    def _watch(self, process: subprocess.Popen) -> None:
        while process is self._process and self.deadline is not None:
            time.sleep(min(1.0, self.deadline / 4))
            with self._lock:
                before = time.monotonic() - self.deadline
                late = any(max(job.since, self._heard) < before for job in self._jobs.values())
            if late:
                why = f"This took longer than {self.deadline:g} s without a result and was stopped."
                self._lose(process, Silent(why))

    def _lose(self, process: subprocess.Popen, why: Lost) -> None:
        """End a process, unless that has been done, and tell those who waited for it."""
        with self._lock:
            if process is not self._process:
                return
            self._process = None
            process.kill()
            process.wait()
            self._outbox.put(None)
            lost, self._jobs = self._jobs, {}
        for job in lost.values():
            job.tell(News(error=why))


def _send(process: subprocess.Popen, outbox: queue.SimpleQueue) -> None:
    """In a thread of its own, since a process that is just beginning takes nothing yet."""
    assert process.stdin is not None
    with contextlib.suppress(OSError), process.stdin:  # what was not sent is lost with the process
        while (message := outbox.get()) is not None:
            pickle.dump(message, process.stdin, protocol=5)
            process.stdin.flush()


def _in_background(function: Callable, *arguments: Any) -> None:
    threading.Thread(target=function, args=arguments, daemon=True).start()


_workers: weakref.WeakSet[Worker] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for worker in list(_workers):
        worker.close()


def begin_on_one_core() -> None:
    """Let XLA see one core when it decides how many threads to have, and the system use any core after that."""
    if hasattr(os, "sched_setaffinity"):
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(allowed)})
        jax.devices()
        for thread in os.listdir("/proc/self/task") if os.path.isdir("/proc/self/task") else ["0"]:
            os.sched_setaffinity(int(thread), allowed)


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    """This process's own, with one thread for XLA, the same modules and the same store of compiled programs."""
    found = os.environ | extra
    found["XLA_FLAGS"] = f"{found.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()
    found["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    for name in ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"):
        value = getattr(jax.config, name, None)
        if value is not None:
            found[name.upper()] = str(value)
    return found


# ---- in the worker


def answer() -> None:
    """The life of a worker: jobs come in on stdin, news goes out on stdout."""
    messages, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    asked: queue.SimpleQueue[tuple[int, bytes | None]] = queue.SimpleQueue()
    _in_background(_hear, messages, asked)
    begin_on_one_core()
    running: dict[int, Iterator[tuple[bytes, bool]]] = {}
    with contextlib.suppress(BrokenPipeError):  # who began this process has ended
        while True:
            while not running or not asked.empty():
                number, message = asked.get()
                running.pop(number, None)
                if message is not None:
                    running[number] = _carried_out(number, message)
            number = next(iter(running))
            job = running.pop(number)
            news, last = next(job)
            if not last:
                running[number] = job  # to the end of the row
            answers.write(news)
            answers.flush()


def _hear(messages: Any, asked: queue.SimpleQueue) -> None:
    while True:
        try:
            asked.put(pickle.load(messages))
        except Exception:  # who began this process has ended
            os._exit(1)


def _carried_out(number: int, message: bytes) -> Iterator[tuple[bytes, bool]]:
    """The news of a job, each with whether it is the last."""

    def written(news: News) -> tuple[bytes, bool]:
        return cloudpickle.dumps((number, news), protocol=5), news.last

    try:
        function, arguments = pickle.loads(message)
        found = function(*arguments)
        if isinstance(found, Generator):
            for value in found:
                yield written(News(value, last=False))
            found = None
        yield written(News(found))
    except Exception as error:
        yield written(News(error=_in_one_sentence(error)))


def _in_one_sentence(error: Exception) -> Exception:
    if isinstance(error, InputError):
        return InputError(str(error))
    traceback.print_exc()
    said = str(error).strip().splitlines()
    return RuntimeError(": ".join([type(error).__name__, *said[:1]]))
