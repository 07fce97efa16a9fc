"""Many machines: units of a sweep as tasks of dask.distributed.

A worker computes whole units, in blocks that suit its own device, and writes them into the store itself. A
worker that dies loses the unit it was at, which another one computes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from featlab.endings import Runs
from featlab.fields import InputError
from featlab.groups import Group
from featlab.store import Store
from featlab.workers import carry_out, cores, parcelled

_PATIENCE = 10.0  # seconds to reach a scheduler
_AHEAD = 3  # units sent out for every worker
_ATTEMPTS = 5


@contextmanager
def on_cluster(cluster: Any) -> Iterator[Cluster]:
    """Workers at an address, of a client, or "local" ones, a process for each core."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise InputError(
            "A cluster needs dask.distributed; install featlab[cluster], or leave `cluster` away."
        ) from None
    if isinstance(cluster, Client):
        yield Cluster(cluster)
        return
    if not isinstance(cluster, str):
        raise InputError(f'sweep(cluster=) must be an address, a dask client or "local", got {cluster!r}.')
    if cluster == "local":
        with LocalCluster(n_workers=cores(), threads_per_worker=1, dashboard_address=":0") as own:
            with Client(own) as client:
                yield Cluster(client)
        return
    try:
        client = Client(cluster, timeout=_PATIENCE)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"No dask scheduler answers at {cluster!r} ({error or type(error).__name__}); "
            "start one with `dask scheduler`, or leave `cluster` away."
        ) from None
    with client:
        yield Cluster(client)


class Cluster:
    """Workers of dask that compute the units of a sweep."""

    def __init__(self, client: Any):
        self.client = client

    def computed(self, parcels: Iterator[Any], store: Store | None) -> Iterator[tuple[Group, Runs, dict]]:
        """Every unit with its values, in the order in which they are finished."""
        from distributed import as_completed
        from distributed.scheduler import KilledWorker

        folder = None if store is None else str(store.folder.resolve())
        waiting: dict[str, Any] = {}
        finished = as_completed([])

        def send() -> bool:
            parcel = next(parcels, None)
            if parcel is None:
                return False
            message = (*parcelled(parcel.group, parcel.runs), parcel.addresses, folder)
            future = self.client.submit(carry_out, *message, pure=False, retries=_ATTEMPTS)
            waiting[future.key] = parcel
            finished.add(future)
            return True

        for _ in range(max(1, _AHEAD * len(self.client.scheduler_info(n_workers=-1)["workers"]))):
            if not send():
                break
        while waiting:
            future = next(finished)
            parcel = waiting.pop(future.key)
            try:
                values = future.result()
            except KilledWorker:
                raise InputError(
                    "A unit of this sweep ended every worker that took it; perhaps it needs more memory than a "
                    "worker has. What was finished before is kept."
                ) from None
            send()
            yield parcel.group, parcel.runs, values
