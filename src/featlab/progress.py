"""A progress bar on stderr for anything that takes longer than two seconds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PATIENCE = 2.0  # seconds before a bar appears


@contextmanager
def progress_bar(
    title: str, total: int, *, shown: bool | None = None, unit: str = "steps"
) -> Iterator[Callable[..., None]]:
    """Yields a function that is told how much of the total has been done, and perhaps a word about it.

    `shown` None means: only where stderr is a terminal. Without rich there is no bar.
    """
    bar = _bar(unit) if (sys.stderr.isatty() if shown is None else shown) else None
    if bar is None:
        yield lambda done, note="": None
        return
    task = bar.add_task(title, total=total)
    # A timer, because the first report may be long in coming: programs are compiled before they run.
    timer = threading.Timer(_PATIENCE, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda done, note="": bar.update(task, completed=done, description=f"{title} {note}".strip())
    finally:
        timer.cancel()
        bar.stop()


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

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit))
    return Progress(*columns, Rate(), TimeRemainingColumn(), console=Console(stderr=True), transient=True)


def rate(speed: float | None, unit: str) -> str:
    """A rate for people: 12,345 runs/s, 0.52 runs/s."""
    if not speed:
        return ""
    return f"{speed:,.0f} {unit}/s" if speed >= 100 else f"{speed:.2g} {unit}/s"
