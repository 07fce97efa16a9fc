"""`sweep`: from a grid of experiments and seeds to a labelled Dataset, computed once and kept."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr

from featlab.addresses import WIDTH, addresses_of_cells
from featlab.cluster import on_cluster
from featlab.description import foreign
from featlab.endings import Runs, compute, units, work
from featlab.experiment import Experiment
from featlab.fields import InputError
from featlab.grids import as_axes, tables
from featlab.groups import Group, groups_of
from featlab.progress import progress_bar
from featlab.refinement import toward
from featlab.runner import as_seeds
from featlab.sheet import Sheet
from featlab.store import Store
from featlab.workers import Pool, cores

_FOLLOWED = 0.1  # of the runs of a grid, about, that following a boundary takes
_SOON = 1e11  # operations that are not worth starting other processes


def sweep(
    what: Experiment | Callable[..., Experiment],
    grid: Mapping[str, Any],
    seeds: int | Iterable[int] = 1,
    *,
    out: str | Path | None = None,
    near: Mapping[str, float] | None = None,
    cluster: Any = None,
    progress: bool | None = None,
    watch: Callable[[xr.Dataset], None] | None = None,
) -> xr.Dataset:
    """Train once for every cell of a grid and every seed; returns what the probes read at the end.

    The grid maps dotted fields of an experiment, or arguments of a function that returns one, to values: a list,
    or a range such as "20:200:8log". Swept names and the seed are dims; a variable of many numbers is kept as
    the largest magnitude among them; `done` says which runs were carried out, `trained` which of those trained.

    Finished runs are kept in the folder `out`, and those that are there already are not computed again. With
    `near`, for instance {"test_error": 0.25}, only cells near which the mean over seeds crosses that level are
    computed. `cluster` is the address of a dask scheduler, a dask client, or "local". `watch` is shown the
    Dataset as it grows. Interrupted, it returns what there is.
    """
    axes = as_axes(grid, what)
    groups = groups_of(tables(what, axes))
    sheet = Sheet(axes, as_seeds(seeds, "sweep"), groups)
    stages = [np.ones(sheet.shape, bool)] if near is None else _near(near, sheet)
    shelf = None if out is None else _Shelf(sheet, groups, Store(out))
    title = f"sweeping {' x '.join(map(str, sheet.shape))} cells, {len(sheet.seeds)} seeds"
    with (
        _executor(cluster, groups, sheet.runs * (_FOLLOWED if near else 1)) as pool,
        progress_bar(title, sheet.runs, shown=progress, unit="runs") as tell,
    ):
        try:
            for wanted in stages:
                parcels = _missing(sheet, groups, wanted, shelf)
                with closing(_computed(parcels, shelf, pool)) as finished:
                    for group, runs, values in finished:
                        sheet.fill(group, runs, values)
                        tell(sheet.done, sheet.note())
                        if watch is not None:
                            watch(sheet.dataset())
        except KeyboardInterrupt:
            return sheet.dataset(interrupted=True)
    return sheet.dataset()


def _executor(cluster: Any, groups: list[Group], runs: float) -> Any:
    """Who computes: a cluster, a process for each core, or None: this process, where that is soon done.

    Code of the user's own stays here too, since another process may not know it. What decides is the sweep as a
    whole, so that one that was interrupted is finished in the same way.
    """
    if cluster is not None:
        return on_cluster(cluster)
    known = not any(foreign(group.first) for group in groups)
    cells = sum(len(group.table.places) for group in groups)
    long = sum(work(group) * len(group.table.places) for group in groups) * runs / cells > _SOON
    return nullcontext(Pool() if known and long and jax.default_backend() == "cpu" and cores() > 1 else None)


class Parcel(NamedTuple):
    """A unit to be computed, and the addresses of its runs where they are kept."""

    group: Group
    runs: Runs
    addresses: np.ndarray | None


def _missing(sheet: Sheet, groups: list[Group], wanted: np.ndarray, shelf: _Shelf | None) -> Iterator[Parcel]:
    """What is missing of the wanted cells, unit by unit.

    Units are planned as if nothing were there: a sweep that was interrupted goes on with the very units that it
    would have computed, and ends in the very same numbers.
    """
    planned = []
    for group in groups:
        inside = np.flatnonzero(wanted.reshape(-1)[group.table.places])
        if len(inside):
            runs = np.repeat(inside, len(sheet.seeds)), np.tile(sheet.seeds, len(inside))
            planned += [(group, unit) for unit in units(group, *runs)]
    while planned:
        group, unit = planned.pop(0)
        if shelf is not None and shelf.look():  # others write here too: who takes turns at random seldom repeats
            random.Random(os.getpid()).shuffle(planned)
        missing = ~sheet.finished[sheet.places(group, unit)]
        if not missing.any():
            continue
        if not missing.all():
            unit, *rest = units(group, unit.experiments[missing], unit.seeds[missing])
            planned[:0] = [(group, part) for part in rest]
        if shelf is None:
            yield Parcel(group, unit, None)
            continue
        addresses = shelf.addresses[sheet.places(group, unit)]
        shelf.store.expect(addresses)
        yield Parcel(group, unit, addresses)


def _computed(parcels: Iterator[Parcel], shelf: _Shelf | None, pool: Any) -> Generator[tuple[Group, Runs, dict]]:
    if pool is not None:
        yield from pool.computed(parcels, None if shelf is None else shelf.store)
        return
    for parcel in parcels:
        values = compute(parcel.group, parcel.runs, reduced=True)
        if shelf is not None and parcel.addresses is not None:
            shelf.store.put(parcel.addresses, values)
        yield parcel.group, parcel.runs, values


class _Shelf:
    """The sheet of a sweep beside the store that keeps its runs."""

    def __init__(self, sheet: Sheet, groups: list[Group], store: Store):
        self.sheet, self.store = sheet, store
        self.addresses = addresses_of_cells(groups, len(sheet.finished), sheet.seeds)
        store.plan(self.addresses.reshape(-1, WIDTH), sheet.dataset())
        store.look()
        self._recall()

    def look(self) -> bool:
        """Take over what others have finished meanwhile; whether there was anything."""
        if not self.store.look():
            return False
        self._recall()
        return True

    def _recall(self) -> None:
        here, values = self.store.get(self.addresses.reshape(-1, WIDTH))
        self.sheet.take(here.reshape(self.sheet.finished.shape), values)


def _near(near: Mapping[str, float], sheet: Sheet) -> Iterator[np.ndarray]:
    if not isinstance(near, Mapping) or len(near) != 1:
        raise InputError(f'sweep(near=) must be one level, for instance {{"test_error": 0.25}}, got {near!r}.')
    ((name, level),) = near.items()
    sheet.check(name)
    if isinstance(level, bool) or not isinstance(level, int | float) or not np.isfinite(level):
        raise InputError(f"sweep(near=) needs a finite number as level, got {level!r}.")
    return toward(float(level), sheet.shape, lambda: sheet.means(name))
