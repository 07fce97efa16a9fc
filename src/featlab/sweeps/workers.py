"""Units of a sweep as jobs for other processes, of this machine or of a cluster.

A unit goes with the numbers of its own experiments alone, and its worker writes it into the store. An
executor is anything with `results`: a pool of processes, or workers of dask.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import jax
import numpy as np

from featlab.core.validation import InputError
from featlab.engine.batch import Unit, compute, units
from featlab.engine.pickled import as_bytes
from featlab.engine.pool import Pool, cores
from featlab.engine.program import Program
from featlab.engine.worker import Lost, News
from featlab.sweeps.store import Store
from featlab.text import foreign

_ATTEMPTS = 3  # processes that may die of a unit


class Executor(Protocol):
    """Calls a function with the arguments of each task, elsewhere; says what came of it as they are finished."""

    def results(self, function: Callable, tasks: Iterable[tuple[Any, tuple]]) -> Iterator[tuple[Any, News]]: ...


@functools.cache
def processes() -> Pool:
    """One for each core of this machine; they are begun when they are needed."""
    return Pool(cores(), attempts=_ATTEMPTS)


def travels(program: Program) -> bool:
    """Whether another process can be told of the experiments; code of the user's own may hold what it cannot."""
    if foreign(program.first):
        try:
            as_bytes(program.first)
        except Exception:  # whatever pickling makes of it
            return False
    return True


def computed(parcels: Iterable[Any], store: Store | None, by: Executor) -> Iterator[tuple[Program, Unit, dict]]:
    """Every unit with its values, in the order in which they are finished."""
    folder = None if store is None else str(store.folder.resolve())
    tasks = ((one, (*parcelled(one.program, one.runs), one.keys, folder)) for one in parcels)
    for parcel, news in by.results(carry_out, tasks):
        if isinstance(news.error, Lost):
            raise InputError(
                "A unit of this sweep ended every process that took it; perhaps it needs more memory than there "
                "is. What was finished before is kept."
            )
        yield parcel.program, parcel.runs, news.result()


def carry_out(program: Program, runs: Unit, keys: np.ndarray | None, folder: str | None) -> dict[str, np.ndarray]:
    """What a worker does with a unit: compute it, in blocks that suit its device, and keep it."""
    if jax.default_backend() == "cpu":
        values = compute(program, runs, reduced=True)
    else:  # a GPU takes the unit in blocks of its own size
        values = dict[str, np.ndarray]()
        places = {pair: i for i, pair in enumerate(zip(runs.experiments.tolist(), runs.seeds.tolist()))}
        for part in units(program, runs.experiments, runs.seeds):
            here = [places[pair] for pair in zip(part.experiments.tolist(), part.seeds.tolist())]
            for name, value in compute(program, part, reduced=True).items():
                values.setdefault(name, np.zeros(len(runs.experiments), value.dtype))[here] = value
    if folder is not None and keys is not None:
        Store(Path(folder)).put(keys, values)
    return values


def parcelled(program: Program, runs: Unit) -> tuple[Program, Unit]:
    """A unit without what it does not need: the numbers of its own experiments alone."""
    kept, places = np.unique(runs.experiments, return_inverse=True)
    return program.only(kept), Unit(places.reshape(-1), runs.seeds, runs.slots, runs.real)
