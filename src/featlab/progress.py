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
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        return None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit))
    return Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
