"""Many machines: units of a sweep as tasks of dask.distributed.

A worker computes whole units, in blocks that suit its own device, and writes them into the store itself. A
worker that dies loses the unit it was at, which another one computes. Workers may come and go meanwhile.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import logging
import pickle
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import jax
import numpy as np

from featlab.core.validation import InputError
from featlab.engine.pickled import as_bytes
from featlab.engine.pool import cores
from featlab.engine.worker import News, begin_on_one_core

_PATIENCE = 10.0  # seconds to reach a scheduler
_AHEAD = 3  # units sent out for every thread of a worker
_ATTEMPTS = 3
_COUNTED = 1.0  # seconds for which a count of the workers holds


class NoWorkers(UserWarning):
    """A scheduler answers, and has no workers yet."""


@contextmanager
def on_cluster(cluster: Any) -> Iterator[Cluster]:
    """Workers at an address or of a scheduler file, of a client, or "local" ones, a process for each core."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise InputError(
            "A cluster needs dask.distributed; install featlab[cluster], or leave `cluster` away."
        ) from None
    if isinstance(cluster, Client) and not cluster.asynchronous:
        yield Cluster(cluster)
    elif not isinstance(cluster, str):
        raise InputError(f'sweep(cluster=) must be an address, a dask client or "local", got {cluster!r}.')
    elif cluster == "local":
        with _deaf_to_interrupts():
            options = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.ERROR}
            own = LocalCluster(n_workers=cores(), threads_per_worker=1, **options)
        with own, Client(own) as client:
            yield Cluster(client, getattr(jax.config, "jax_compilation_cache_dir", None))
    else:
        with _reached(cluster) as client:
            yield Cluster(client)


def _reached(address: str) -> Any:
    """A client of the scheduler at an address, or of one that wrote a scheduler file."""
    from distributed import Client

    try:
        found = json.loads(Path(address).read_text())["address"] if Path(address).is_file() else address
        with ThreadPoolExecutor(1) as thread:  # a notebook's own thread has a loop already
            thread.submit(asyncio.run, _knock(found)).result()
        return Client(found, timeout=_PATIENCE)
    except Exception as error:  # whatever dask makes of what answers there
        raise InputError(
            f"No dask scheduler answers at {address!r} ({_first_line(error)}); "
            "start one with `dask scheduler`, or leave `cluster` away."
        ) from None


async def _knock(address: str) -> None:
    """See whether anyone answers, before a client is made that cannot be closed cleanly if nobody does."""
    from distributed.comm.core import connect
    from distributed.security import Security

    comm = await connect(address, timeout=_PATIENCE, **Security().get_connection_args("client"))
    await comm.close()


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes that begin here do not hear Ctrl-C, which is for the one that waits."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which would let interrupts through again where it begins
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Cluster:
    """Workers of dask that compute the units of a sweep; `cache` is where they keep compiled programs."""

    def __init__(self, client: Any, cache: str | None = None):
        self.client, self.cache = client, cache
        self._threads, self._counted_at = 0, -np.inf
        if not self._room():
            warnings.warn("The scheduler has no workers yet: waiting for the first.", NoWorkers, stacklevel=5)

    def results(self, function: Callable, tasks: Iterable[tuple[Any, tuple]]) -> Iterator[tuple[Any, News]]:
        """The news of function(*arguments) for each (name, arguments), with its name, as they are finished."""
        from distributed import as_completed

        coming = iter(tasks)
        waiting: dict[str, tuple[Any, Any]] = {}
        finished = as_completed([])
        try:
            while True:
                for name, arguments in itertools.islice(coming, max(0, max(1, self._room()) - len(waiting))):
                    future = self._sent(function, arguments)
                    waiting[future.key] = future, name
                    finished.add(future)
                if not waiting:
                    return
                future, name = waiting.pop(next(finished).key)
                yield name, News(_outcome(future))
        except (KeyboardInterrupt, GeneratorExit):
            self.client.cancel([future for future, _ in waiting.values()])
            raise

    def _sent(self, function: Callable, arguments: tuple) -> Any:
        # As bytes, so that the scheduler passes on what only a worker can unpack.
        message = as_bytes((function, arguments))
        return self.client.submit(_received, message, self.cache, pure=False, retries=_ATTEMPTS - 1)

    def _room(self) -> int:
        """How many units may be under way, by the workers there are now."""
        if time.monotonic() - self._counted_at > _COUNTED:
            try:
                self._threads = sum(self.client.nthreads().values())
            except OSError:  # the wait for a unit reports it
                pass
            self._counted_at = time.monotonic()
        return _AHEAD * self._threads


def _outcome(future: Any) -> Any:
    """What a worker came to, or one sentence about what kept it from that."""
    from distributed.comm.core import CommClosedError
    from distributed.scheduler import KilledWorker

    try:
        return future.result()
    except KilledWorker:
        raise InputError(
            "A unit of this sweep ended every worker that took it; perhaps it needs more memory than a "
            "worker has. What was finished before is kept."
        ) from None
    except ModuleNotFoundError as error:
        raise InputError(
            f"A worker cannot import {error.name!r}: workers need the packages and files that are here."
        ) from None
    except (CancelledError, CommClosedError):
        raise InputError(
            "The connection to the dask scheduler was lost. What was finished before is kept."
        ) from None


def _received(message: bytes, cache: str | None) -> Any:
    """What a worker does with a message."""
    with _one_at_a_time:
        _begin(cache)
        function, arguments = pickle.loads(message)
        return function(*arguments)


_one_at_a_time = threading.Lock()  # XLA can hang when threads of one process run programs at once


@functools.cache
def _begin(cache: str | None) -> None:
    """Before the first unit: a worker of one thread is to use one core, and the others are for others."""
    from distributed import get_worker

    if cache is not None and getattr(jax.config, "jax_compilation_cache_dir", None) is None:
        jax.config.update("jax_compilation_cache_dir", cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
    if get_worker().state.nthreads == 1:
        begin_on_one_core()


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
