"""A progress bar on stderr for anything that takes longer than two seconds."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PATIENCE = 2.0  # seconds before a bar appears
_RATE = 2e10  # operations a second that a CPU of some cores does at best
PATIENCE = 30.0  # minutes without progress after which a command gives up
STUCK = 4  # its exit code then
INTERRUPTED = 130  # the shell's own code for Ctrl-C
_heard = {"at": 0.0, "of": "the start"}  # when progress was last reported, and of what


@contextmanager
def progress_bar(
    title: str, total: float | None, *, shown: bool | None = None, unit: str = "steps"
) -> Iterator[Callable[..., None]]:
    """Yields a function that is told how much of the total has been done, and perhaps a word about it.

    `shown` None means: only where stderr is a terminal. Without rich there is no bar.
    """
    heard(title)
    bar = _bar(unit) if (sys.stderr.isatty() if shown is None else shown) else None
    if bar is None:
        yield lambda done, note="": heard(f"{title}, {done} {unit} done {note}".strip())
        return
    task = bar.add_task(title, total=total)
    # A timer, because the first report may be long in coming: programs are compiled before they run.
    timer = threading.Timer(_PATIENCE, bar.start)
    timer.daemon = True
    timer.start()

    def tell(done, note=""):
        heard(f"{title}, {done} {unit} done {note}".strip())
        bar.update(task, completed=done, description=f"{title} {note}".strip())

    try:
        yield tell
    finally:
        timer.cancel()
        bar.stop()


def heard(of: str) -> None:
    """Something has gone on: the watchdog waits anew."""
    _heard.update(at=time.monotonic(), of=of)


def last_heard() -> str:
    """Of what progress was last reported."""
    return _heard["of"]


@contextmanager
def watchdog(minutes: float, kept: str, end: Callable[[int], None] = os._exit) -> Iterator[None]:
    """End the process, with a sentence, when nothing is heard for so long; `kept` says what is not lost.

    A program that hangs inside a library cannot be interrupted: the process ends at once. 0 minutes watch nothing.
    """
    heard("the start")
    stop = threading.Event()

    def watch():
        while not stop.wait(min(1.0, 6 * minutes)):
            if time.monotonic() - _heard["at"] > 60 * minutes:
                sys.stdout.flush()
                print(
                    f"featlab: no progress for {minutes:g} minutes after {_heard['of']}; given up. "
                    f"{kept[:1].upper()}{kept[1:]}; --patience MINUTES waits longer.",
                    file=sys.stderr,
                    flush=True,
                )
                end(STUCK)
                return

    if minutes:
        threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        stop.set()


def _bar(unit: str):
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            ProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.text import Text
    except ImportError:
        return None

    class Rate(ProgressColumn):
        """How many a second, once it is known."""

        def render(self, task):
            return Text(rate(task.speed, unit))

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TextColumn(unit))
    return Progress(*columns, Rate(), TimeRemainingColumn(), console=Console(stderr=True), transient=True)


def rate(speed: float | None, unit: str) -> str:
    """A rate for people: 12,345 runs/s, 0.52 runs/s."""
    if not speed:
        return ""
    return f"{speed:,.0f} {unit}/s" if speed >= 100 else f"{speed:.2g} {unit}/s"


def announced(operations: float) -> str:
    """Words on how long this many operations take, where that is long; with small steps it is longer."""
    minutes = operations / _RATE / 60
    if minutes < 2:
        return ""
    long = f"{minutes:,.0f} minutes" if minutes < 120 else f"{minutes / 60:,.0f} hours"
    return f"about {operations:.0e} operations, {long} or more if every run takes all its steps"
