"""Processes that compute for the playground: each turns from one job to the next after every message.

A new job takes the place of an older one of the same key, so that a browser that moves on leaves nothing behind.
A worker that dies, or says nothing for too long, is replaced, and those who waited for it are told.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Hashable, Iterator
from multiprocessing.connection import Connection
from typing import Any

Deliver = Callable[[Hashable, Any, dict[str, Any]], None]  # key, number of the job, message
_PATIENCE = 120.0  # seconds without a message while there is work
_context = multiprocessing.get_context("spawn")  # JAX does not survive a fork


class Worker:
    """One process, and a thread that hands on what it says."""

    def __init__(self, folder: str | None, deliver: Deliver, warm: bool = False):
        self._folder, self._deliver, self._warm = folder, deliver, warm
        self._lock = threading.Lock()
        self._waiting: dict[Hashable, tuple[Any, float]] = {}  # key -> the number of its job, and since when
        self._closed = False
        self._start()
        threading.Thread(target=self._listen, daemon=True).start()

    def begin(self, key: Hashable, number: Any, job: str, *arguments: Any) -> None:
        """Start a job; an older one of the same key ends. Every message of it comes with its number."""
        with self._lock:
            self._waiting[key] = number, time.monotonic()
            self._send(("begin", key, number, job, arguments))

    def stop(self, key: Hashable) -> None:
        """End a job, if there is one."""
        with self._lock:
            if self._waiting.pop(key, None) is not None:
                self._send(("stop", key))

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self._process.kill()
        self._process.join()

    def _start(self) -> None:
        self._pipe, theirs = _context.Pipe()
        self._process = _context.Process(target=_work, args=(theirs, self._folder, self._warm), daemon=True)
        self._process.start()
        theirs.close()
        self._heard = time.monotonic()

    def _send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # a worker that died is replaced by the listener
            self._pipe.send(message)

    def _listen(self) -> None:
        while True:
            try:
                if self._pipe.poll(1.0):
                    key, number, message = self._pipe.recv()
                    self._heard = time.monotonic()
                    if message is None:  # the job is done
                        with self._lock:
                            if self._waiting.get(key, (None,))[0] == number:
                                del self._waiting[key]
                    else:
                        self._deliver(key, number, message)
                    continue
            except (EOFError, OSError):
                if self._closed:
                    return
                self._replace("The process that computed this ended; it was started again.")
                continue
            if self._closed:
                return
            stuck = [
                since
                for _, since in self._waiting.values()
                if time.monotonic() - max(since, self._heard) > _PATIENCE
            ]
            if stuck:
                self._replace(f"This took longer than {_PATIENCE:.0f} s without a result and was stopped.")

    def _replace(self, why: str) -> None:
        with self._lock:
            if self._closed:
                return
            lost, self._waiting = self._waiting, {}
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._start()
        for key, (number, _) in lost.items():
            self._deliver(key, number, {"kind": "problem", "text": why})


def _work(pipe: Connection, folder: str | None, warm: bool) -> None:
    """What the process does: take in what was asked for, then one message of one job, in turn."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who began it ends it
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    from featlab.report._runs import keep_compiled_programs
    from featlab.web._catalogue import Catalogue
    from featlab.web._jobs import jobs

    keep_compiled_programs()
    catalogue = Catalogue(folder)
    known = jobs(catalogue)
    running: dict[Hashable, tuple[Any, Iterator[dict[str, Any]]]] = {}
    if warm:  # the program of the page that is seen first
        running[None] = None, known["train"](catalogue.setting(next(iter(catalogue.pictured()))))
    while True:
        while pipe.poll(None if not running else 0):
            try:
                asked = pipe.recv()
            except EOFError:
                return
            running.pop(asked[1], None)
            if asked[0] == "begin":
                _, key, number, job, arguments = asked
                others = len(running)
                running[key] = number, known[job](*arguments)
                if others:
                    text = f"waiting: {others} other task{'s' * (others > 1)} on this machine"
                    pipe.send((key, number, {"kind": "waiting", "text": text}))
        key = next(iter(running))
        number, job = running.pop(key)
        try:
            message = next(job)
            running[key] = number, job  # to the end of the row
        except StopIteration:
            message = None
        except Exception as error:
            message = {"kind": "problem", "text": _sentence(error)}
        try:
            if key is not None:
                pipe.send((key, number, message))
                if message is not None and message["kind"] == "problem":
                    pipe.send((key, number, None))
        except OSError:
            return


def _sentence(error: Exception) -> str:
    if type(error).__name__ == "InputError":
        return str(error)
    traceback.print_exc()
    return f"This could not be computed ({type(error).__name__})."


def _end_with(parent: int) -> None:
    """A server that is killed leaves no process behind."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
