"""Many jobs of one result each, shared out among workers; see `worker` for the rules that those live by."""

from __future__ import annotations

import itertools
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from featlab.engine.worker import Lost, News, Worker


class _Task(NamedTuple):
    name: Any
    arguments: tuple
    deaths: int = 0


class Pool:
    """Workers that share out jobs of one result each, `attempts` times those that end their process."""

    def __init__(self, size: int, *, attempts: int = 1, environment: Mapping[str, str] | None = None):
        self.attempts = attempts
        self.workers = [Worker({"JAX_PLATFORMS": "cpu", **(environment or {})}) for _ in range(size)]

    def results(self, function: Callable, tasks: Iterable[tuple[Any, tuple]]) -> Iterator[tuple[Any, News]]:
        """The news of function(*arguments) for each (name, arguments), with its name, as they are finished.

        Tasks are taken in this thread, a few more than there are workers. Left early, the workers are ended.
        """
        coming, ready = iter(tasks), deque[_Task]()
        idle, lock = list(reversed(self.workers)), threading.RLock()
        finished: queue.SimpleQueue[tuple[_Task, News]] = queue.SimpleQueue()
        under_way = 0

        def share_out() -> None:
            with lock:
                while ready and idle:
                    worker, task = idle.pop(), ready.popleft()
                    try:
                        worker.begin(object(), partial(told, worker, task), function, *task.arguments)
                    except Exception as error:  # it cannot be pickled, or no process begun
                        idle.append(worker)
                        finished.put((task, News(error=error)))

        def told(worker: Worker, task: _Task, news: News) -> None:
            with lock:  # the next task first, so that no core waits for who reads this
                idle.append(worker)
                share_out()
            finished.put((task, news))

        try:
            while True:
                for name, arguments in itertools.islice(coming, max(0, 2 * len(self.workers) - under_way)):
                    ready.append(_Task(name, arguments))
                    under_way += 1
                share_out()
                if not under_way:
                    return
                task, news = finished.get()
                if isinstance(news.error, Lost) and task.deaths + 1 < self.attempts:
                    ready.appendleft(task._replace(deaths=task.deaths + 1))
                else:
                    under_way -= 1
                    yield task.name, news
        except BaseException:  # nobody waits for what they are at
            with lock:
                ready.clear()
            self.close()
            raise

    def close(self) -> None:
        """End the processes; they come back when they are needed."""
        for worker in self.workers:
            worker.close()


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
