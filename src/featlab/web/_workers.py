"""What computes for the playground: a process that turns from one job to the next, and is never left cold."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import Any

from featlab.core.validation import InputError
from featlab.engine import worker
from featlab.engine.worker import Lost, News, Silent
from featlab.web._catalogue import Catalogue
from featlab.web._jobs import jobs

Message = dict[str, Any]
Deliver = Callable[[Hashable, Any, Message], None]  # key, number of the job, message
_PATIENCE = 120.0  # seconds without a message while there is work
_WARM = object()  # the key of a job that nobody waits for


class Worker:
    """A process whose messages are delivered, each with the key and the number of its job."""

    def __init__(self, folder: str | None, deliver: Deliver, warm: bool = False):
        self._folder, self._deliver, self._warm = folder, deliver, warm
        self._worker = worker.Worker(deadline=_PATIENCE)
        self._closed = False
        self._warm_up()

    def begin(self, key: Hashable, number: Any, job: str, *arguments: Any) -> None:
        """Start a job; an older one of the same key ends."""
        others = sum(other not in (key, _WARM) for other in self._worker.keys())
        if others:
            text = f"waiting: {others} other task{'s' * (others > 1)} on this machine"
            self._deliver(key, number, {"kind": "waiting", "text": text})
        self._worker.begin(key, partial(self._told, key, number), messages, self._folder, job, *arguments)

    def stop(self, key: Hashable) -> None:
        """End a job, if there is one."""
        self._worker.stop(key)

    def close(self) -> None:
        self._closed = True
        self._worker.close()

    def _warm_up(self) -> None:
        self._worker.begin(_WARM, lambda news: None, warm_up, self._folder, self._warm)

    def _told(self, key: Hashable, number: Any, news: News) -> None:
        text = str(news.error)
        if isinstance(news.error, Lost) and not self._closed:
            if not isinstance(news.error, Silent):
                text = "The process that computed this ended; it was started again."
            if _WARM not in self._worker.keys():
                self._warm_up()
        if news.error is not None:
            self._deliver(key, number, {"kind": "problem", "text": text})
        elif news.value is not None:
            self._deliver(key, number, news.value)


# ---- in the process


def messages(folder: str | None, job: str, *arguments: Any) -> Iterator[Message]:
    """A job of the playground; of what breaks inside, a browser learns the kind alone."""
    try:
        yield from jobs(_catalogue(folder))[job](*arguments)
    except InputError:
        raise
    except Exception as error:
        traceback.print_exc()
        raise InputError(f"This could not be computed ({type(error).__name__}).") from None


def warm_up(folder: str | None, compile: bool) -> Iterator[Message]:
    """Import everything, and compile the program of the page that is seen first."""
    catalogue = _catalogue(folder)
    if compile:
        yield from jobs(catalogue)["train"](catalogue.setting(next(iter(catalogue.pictured()))))


@functools.cache
def _catalogue(folder: str | None) -> Catalogue:
    return Catalogue(folder)
