"""`sweep`: from a grid of experiments and seeds to a labelled Dataset, computed once and kept."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr

from featlab.core.validation import InputError
from featlab.engine.batch import Unit, compute, units
from featlab.engine.program import Program
from featlab.engine.progress import progress_bar
from featlab.experiment import Experiment
from featlab.sweeps.cluster import on_cluster
from featlab.sweeps.keys import WIDTH
from featlab.sweeps.plan import Plan
from featlab.sweeps.refine import toward
from featlab.sweeps.results import Results
from featlab.sweeps.store import Store
from featlab.sweeps.workers import computed, cores, processes, travels

_FOLLOWED = 0.1  # of the runs of a grid, about, that following a boundary takes
_SOON = 1e11  # operations that are not worth starting other processes


def sweep(
    what: Experiment | Callable[..., Experiment] | Plan,
    grid: Mapping[str, Any] | None = None,
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
    Instead of all three, a `Plan` made of them may be given.

    Finished runs are kept in the folder `out`, and those that are there already are not computed again. With
    `near`, for instance {"test_error": 0.25}, only cells near which the mean over seeds crosses that level are
    computed. `cluster` is the address of a dask scheduler, a dask client, or "local". `watch` is shown the
    Dataset as it grows. Interrupted, it returns what there is.
    """
    if isinstance(what, Plan) and grid is not None:
        raise InputError("sweep takes a plan, or what a plan is made of: an experiment, a grid and seeds.")
    plan = what if isinstance(what, Plan) else Plan.of(what, {} if grid is None else grid, seeds)
    results = Results(plan)
    stages = [np.ones(plan.shape, bool)] if near is None else _near(near, results)
    shelf = None if out is None else Shelf(results, Store(out))
    title = f"sweeping {' x '.join(map(str, plan.shape))} cells, {len(plan.seeds)} seeds"
    with (
        _executor(cluster, plan, _FOLLOWED if near else 1.0) as pool,
        progress_bar(title, plan.runs, shown=progress, unit="runs") as tell,
    ):
        try:
            for wanted in stages:
                with closing(carry_out(results, wanted, shelf, pool)) as finished:
                    for _ in finished:
                        tell(results.done, results.note())
                        if watch is not None:
                            watch(results.dataset())
        except KeyboardInterrupt:
            return results.dataset(interrupted=True)
    return results.dataset()


def carry_out(
    results: Results, wanted: np.ndarray | None = None, shelf: Shelf | None = None, pool: Any = None
) -> Generator[None]:
    """Compute what is missing of the marked cells, or of all; yields whenever a unit has been filled in."""
    parcels = _missing(results, wanted, shelf)
    with closing(_computed(parcels, shelf, pool)) as finished:
        for program, unit, values in finished:
            results.fill(program, unit, values)
            yield


def _executor(cluster: Any, plan: Plan, share: float) -> Any:
    """Who computes: a cluster, a process for each core, or None: this process, where that is soon done.

    So does code of the user's own that cannot be pickled. What decides is the sweep as a whole, so that one that
    was interrupted is finished in the same way; `share` of it is computed, about.
    """
    if cluster is not None:
        return on_cluster(cluster)
    long = plan.work * share > _SOON
    together = long and jax.default_backend() == "cpu" and cores() > 1 and all(map(travels, plan.programs))
    return nullcontext(processes() if together else None)


class Parcel(NamedTuple):
    """A unit to be computed, and the keys of its runs where they are kept."""

    program: Program
    runs: Unit
    keys: np.ndarray | None


def _missing(results: Results, wanted: np.ndarray | None, shelf: Shelf | None) -> Iterator[Parcel]:
    """What is missing of the wanted cells, unit by unit.

    Units are planned as if nothing were there: a sweep that was interrupted goes on with the very units that it
    would have computed, and ends in the very same numbers.
    """
    plan = results.plan
    planned = plan.units(wanted)
    while planned:
        program, unit = planned.pop(0)
        if shelf is not None and shelf.look():  # others write here too: a random order seldom repeats their work
            random.Random(os.getpid()).shuffle(planned)
        missing = ~results.finished[plan.places(program, unit)]
        if not missing.any():
            continue
        if not missing.all():
            unit, *rest = units(program, unit.experiments[missing], unit.seeds[missing])
            planned[:0] = [(program, part) for part in rest]
        if shelf is None:
            yield Parcel(program, unit, None)
            continue
        keys = plan.keys[plan.places(program, unit)]
        shelf.store.expect(keys)
        yield Parcel(program, unit, keys)


def _computed(parcels: Iterator[Parcel], shelf: Shelf | None, pool: Any) -> Generator[tuple[Program, Unit, dict]]:
    if pool is not None:
        yield from computed(parcels, None if shelf is None else shelf.store, pool)
        return
    for parcel in parcels:
        values = compute(parcel.program, parcel.runs, reduced=True)
        if shelf is not None and parcel.keys is not None:
            shelf.store.put(parcel.keys, values)
        yield parcel.program, parcel.runs, values


class OtherCode(UserWarning):
    """What a store has of a sweep is not what this code would compute."""


class Shelf:
    """The results of a sweep beside the store that keeps its runs."""

    def __init__(self, results: Results, store: Store):
        self.results, self.store = results, store
        keys, empty = results.plan.keys.reshape(-1, WIDTH), results.dataset()
        if store.other_code(keys, empty):
            warnings.warn(
                f"{str(store.folder)!r} has this sweep as other code, another JAX or another device computed it; "
                "it is computed anew, and the older one stays.",
                OtherCode,
                stacklevel=3,
            )
        store.plan(keys, empty)
        store.look()
        self._recall()

    def look(self) -> bool:
        """Take over what others have finished meanwhile; whether there was anything."""
        if not self.store.look():
            return False
        self._recall()
        return True

    def _recall(self) -> None:
        here, values = self.store.get(self.results.plan.keys.reshape(-1, WIDTH))
        self.results.take(here.reshape(self.results.finished.shape), values)


def _near(near: Mapping[str, float], results: Results) -> Iterator[np.ndarray]:
    if not isinstance(near, Mapping) or len(near) != 1:
        raise InputError(f'sweep(near=) must be one level, for instance {{"test_error": 0.25}}, got {near!r}.')
    ((name, level),) = near.items()
    results.plan.check(name)
    if isinstance(level, bool) or not isinstance(level, int | float) or not np.isfinite(level):
        raise InputError(f"sweep(near=) needs a finite number as level, got {level!r}.")
    return toward(float(level), results.plan.shape, lambda: results.means(name))
