"""The lab: where a claim measures. It trains, masks what did not train, and labels what is left."""

from __future__ import annotations

import inspect
import itertools
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from featlab.claims.cells import GROWING
from featlab.core.validation import InputError
from featlab.engine.batch import train_many
from featlab.engine.compiled import make_room_for_programs
from featlab.engine.dataset import read_at_end
from featlab.experiment import Experiment
from featlab.probes import until
from featlab.sweeps.boundary import thresholds


class Size:
    """How large a verification is: a number of seeds, and the claim's own numbers and lists of them."""

    def __init__(self, seeds: int, **values: Any):
        self.seeds = seeds
        self.values = {name: tuple(v) if isinstance(v, list | tuple) else v for name, v in values.items()}

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["values"][name]
        except KeyError:
            raise AttributeError(f"this size has no {name!r}") from None


class Lab:
    """The size, the seeds, and a record of what was run.

    What `run`, `boundary` and `measure` return is labelled: dims are the cells that were asked for, by name, and
    `seed`. A run that did not train, diverged, or is not finite is NaN in it, and counted. The same question asked
    twice is answered from memory. All that was read is kept, so that what rests on it can be found out (`replay`).
    """

    def __init__(
        self,
        size: Size,
        seeds: Sequence[int],
        tell: Callable[[int], None] = lambda trainings: None,
        *,
        trained: Callable[[xr.Dataset], Any] | None = None,
        growing: Sequence[str] = GROWING,
    ):
        self.size, self.seeds, self.growing = size, tuple(seeds), tuple(growing)
        self.readings: list[xr.Dataset] = []  # all that was handed out, in its order
        self.deciding: list[Experiment] = []  # what a judgement rests on
        self.runs = self.trained = self.trainings = 0
        self._tell, self._criterion = tell, trained
        self._memory: dict[Any, Any] = {}
        self._questions: dict[int, int] = {}  # the number of each answer in memory
        self._answers: list[xr.Dataset] = []  # kept, so that no two have one id

    def run(self, make: Experiment | Callable[..., Experiment], **cells: Any) -> xr.Dataset:
        """What the probes read at the end of `make(**cell)`, for every cell and seed.

        A list is a dim, a dict one whose keys are the labels; a function of other cells, by their names, is
        computed from them and becomes a coordinate; anything else is handed on as it is.
        """
        return self._along(Grid.of(cells), lambda cell: self._read(make(**cell) if callable(make) else make))

    def measure(
        self, function: Callable[..., Any], *, setting: Experiment | None = None, **cells: Any
    ) -> xr.Dataset:
        """`function(seeds, **cell)` for every cell: what is computed without training.

        It returns a Dataset with the dim `seed`, or a dict of arrays with the seed first. `setting` is the
        experiment that its numbers are about, for the theorem's assumptions.
        """
        if setting is not None:
            self.deciding.append(setting)
        return self._along(Grid.of(cells), lambda cell: self._computed(function, cell))

    def boundary(
        self,
        make: Callable[..., Experiment],
        parameter: str,
        variable: str,
        levels: float | Sequence[float],
        *,
        between: Callable[..., tuple[float, float]],
        tolerance: float = 0.01,
        together: tuple[int, int] | None = None,
        **cells: Any,
    ) -> xr.Dataset:
        """Where a variable crosses each level as a parameter grows, for every cell and seed.

        The thresholds have the parameter's name and dims level, cells and seed, NaN where a run behind one did not
        train. `between` says for the cells it names where to search. `together` is as for `thresholds`.
        """
        grid = Grid.of(cells)
        options = {"tolerance": tolerance, "together": together}
        levels = (levels,) if isinstance(levels, int | float) else tuple(levels)

        def search(cell):
            ends = between(**{name: cell[name] for name in inspect.signature(between).parameters})
            outermost = tuple(make(**cell, **{parameter: end}) for end in ends)
            key = (outermost, parameter, variable, levels, *options.values())
            return self._remembered(
                key, lambda: self._searched(make, cell, parameter, variable, levels, ends, options)
            )

        return self._along(grid, search)

    @property
    def trained_fraction(self) -> float | None:
        """Of the runs that were made; none, if nothing was trained."""
        return self.trained / self.runs if self.runs else None

    def _read(self, experiment: Experiment) -> xr.Dataset:
        if not isinstance(experiment, Experiment):
            raise InputError(f"lab.run needs an Experiment, or a function that makes one, got {experiment!r}.")

        def trained():
            raw = train_many([experiment] * len(self.seeds), list(self.seeds), tell=self._counting())
            return self._kept(experiment, read_at_end(experiment, raw, list(self.seeds)))

        self.deciding.append(experiment)
        return self._remembered((experiment,), trained)

    def _kept(self, experiment: Experiment, runs: xr.Dataset) -> xr.Dataset:
        """Readings of runs that count as trained, NaN for the others; a step that never came is NaN too."""
        fine = runs["trained"]
        if isinstance(experiment.steps, until):  # at the level before the first step: nothing was trained
            fine = fine & (runs["steps_taken"] > 0)
        said = None if self._criterion is None else self._criterion(runs)
        if said is not None:
            fine = fine & self._said(said)
        self.runs += fine.size
        self.trained += int(fine.sum())
        runs = runs.drop_vars("trained").map(_as_numbers, keep_attrs=True).where(fine)
        return runs.assign_coords(trained=fine)

    def _said(self, said: Any) -> xr.DataArray:
        """What the claim says of training, in true and false: one for each seed, no fewer."""
        values = np.asarray(said)
        known = isinstance(said, xr.DataArray) and "seed" in said.coords
        seeds = said["seed"].values.tolist() if known else self.seeds
        if values.dtype != bool or values.shape != (len(self.seeds),) or tuple(seeds) != self.seeds:
            raise InputError(
                "A claim's trained(runs) must say true or false for each seed, with the dim seed only, got "
                f"{values.dtype} of shape {values.shape}."
            )
        return xr.DataArray(values, dims="seed", coords={"seed": list(self.seeds)})

    def _searched(self, make, cell, parameter, variable, levels, ends, options) -> xr.Dataset:
        found = thresholds(
            lambda value: make(**cell, **{parameter: value}), variable, levels, list(self.seeds), ends,
            tell=self._counting(), **options,
        )  # fmt: skip
        crossed = found.at[np.isfinite(found.at)]
        if len(crossed):
            self.deciding.append(make(**cell, **{parameter: float(np.exp(np.log(crossed).mean()))}))
        self.trained += int(found.trained.sum())
        self.runs += found.trained.size
        at = np.where(found.trained, found.at, np.nan)
        coords = {"level": list(levels), "seed": list(self.seeds), "trained": ("seed", found.trained)}
        return xr.Dataset({parameter: (["level", "seed"], at)}, coords)

    def _computed(self, function, cell) -> xr.Dataset:
        def compute():
            make_room_for_programs()
            found = function(list(self.seeds), **cell)
            if isinstance(found, Mapping) and not isinstance(found, xr.Dataset):
                found = xr.Dataset({name: self._by_seed(name, values) for name, values in found.items()})
                # Cells of different lengths are joined by these.
                found = found.assign_coords({dim: range(found.sizes[dim]) for dim in found.dims if dim != "seed"})
            if not isinstance(found, xr.Dataset) or not found.data_vars:
                raise InputError(f"lab.measure needs a Dataset or a dict of arrays, got {found!r}.")
            if any(values.dtype.kind == "c" for values in found.values()):
                raise InputError("lab.measure needs real numbers, and got complex ones.")
            found = found.map(_finite, keep_attrs=True)
            self.trainings += 1
            self._tell(self.trainings)
            return self._in_order(found) if "seed" in found.dims else found

        return self._remembered((function, _held(function), tuple(cell.items())), compute)

    def _by_seed(self, name: str, values: Any) -> Any:
        values = np.asarray(values)
        values = values if values.dtype.kind == "c" else values.astype(float)
        if values.shape[:1] != (len(self.seeds),):
            raise InputError(
                f"lab.measure needs arrays with a value for each of the {len(self.seeds)} seeds first, and "
                f"{name!r} has shape {values.shape}."
            )
        return (["seed", *(f"{name}_dim_{k}" for k in range(1, values.ndim))], values)

    def _in_order(self, found: xr.Dataset) -> xr.Dataset:
        """With the seeds that were asked for, each at its place."""
        if "seed" not in found.coords and found.sizes["seed"] == len(self.seeds):
            return found.assign_coords(seed=list(self.seeds))
        given = found["seed"].values.tolist()
        if sorted(given) != sorted(self.seeds):
            raise InputError(f"lab.measure asked for the seeds {list(self.seeds)} and was given {given}.")
        return found.sel(seed=list(self.seeds))

    def _along(self, grid: Grid, read: Callable[[dict[str, Any]], xr.Dataset]) -> xr.Dataset:
        """One Dataset of those of all cells."""
        found = [read(cell) for cell in grid]
        asked = tuple(self._questions.setdefault(id(one), len(self._questions)) for one in found)
        by_seed = {(name, "seed" in one[name].dims) for one in found for name in one}
        for name in {name for name, _ in by_seed}:
            if (name, True) in by_seed and (name, False) in by_seed:  # one would be repeated for each seed
                raise InputError(f"{str(name)!r} has a value for each seed in some cells, and one in others.")
        self._answers += found
        for name, labels in reversed(grid.dims.items()):
            found = [
                xr.concat(row, dim=name, join="outer", combine_attrs="override")
                for row in (found[i : i + len(labels)] for i in range(0, len(found), len(labels)))
            ]
        (result,) = found
        result = result.assign_coords({name: list(labels) for name, labels in grid.dims.items()})
        result = result.assign_coords(
            {name: given for name, given in grid.derived().items() if name not in result}
        )
        held = {
            name: one for name, one in grid.fixed.items() if name in self.growing and isinstance(one, int | float)
        }
        result = result.assign_coords({name: one for name, one in held.items() if name not in result})
        for name in (*grid.dims, *grid.functions, *held):
            if name in self.growing and name in result.coords and np.issubdtype(result[name].dtype, np.number):
                result[name].attrs["size"] = 1
        result.attrs |= {"cells": tuple(grid.dims), "asked": asked}
        self.readings.append(result)
        return result.copy(deep=True)  # a claim may write into what it is given

    def _remembered(self, key: Any, compute: Callable[[], Any]) -> Any:
        """What was asked before is not computed again; a key that cannot be compared is asked every time."""
        try:
            known = key in self._memory
        except (TypeError, ValueError):
            return compute()
        if not known:
            self._memory[key] = compute()
        return self._memory[key]

    def _counting(self) -> Callable[[int], None]:
        """Counts trainings, from reports that begin anew with every call of `train_many`."""
        last = 0

        def told(done: int) -> None:
            nonlocal last
            self.trainings += done - last if done > last else done
            last = done
            self._tell(self.trainings)

        return told


class Grid(NamedTuple):
    """Cells as they were asked for."""

    dims: dict[str, dict[Any, Any]]  # by name: label -> value
    fixed: dict[str, Any]
    functions: dict[str, Callable[..., Any]]  # of other cells, by their names

    @staticmethod
    def of(cells: Mapping[str, Any]) -> Grid:
        dims, fixed, functions = {}, {}, {}
        for name, value in cells.items():
            if isinstance(value, Mapping):
                dims[name] = dict(value)
            elif isinstance(value, list | tuple | range | np.ndarray):
                dims[name] = {_plain(one): _plain(one) for one in value}
                if len(dims[name]) < len(value):
                    raise InputError(f"The cells {name} = {value!r} name one value twice.")
            elif isinstance(value, types.FunctionType) and _names(value) and set(_names(value)) <= set(cells):
                functions[name] = value
            else:
                fixed[name] = value
            if name in dims and not dims[name]:
                raise InputError(f"The cells {name} are empty.")
        return Grid(dims, fixed, functions)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for values in itertools.product(*(labels.values() for labels in self.dims.values())):
            cell = {**self.fixed, **dict(zip(self.dims, values))}
            yield cell | {name: f(**{one: cell[one] for one in _names(f)}) for name, f in self.functions.items()}

    def derived(self) -> dict[str, Any]:
        """What functions gave, as coordinates; of the dims they depend on."""
        found = {}
        for name, function in self.functions.items():
            dims = [dim for dim in self.dims if dim in _names(function)]
            known = {one: self.fixed[one] for one in _names(function) if one in self.fixed}
            along = itertools.product(*(self.dims[dim].values() for dim in dims))
            values = [function(**known, **dict(zip(dims, row))) for row in along]
            if all(isinstance(one, int | float | np.number) for one in values):
                found[name] = (dims, np.reshape(values, [len(self.dims[dim]) for dim in dims]))
        return found


def _held(function: Callable[..., Any]) -> tuple[Any, ...]:
    """What a function keeps from where it was made, which may have changed since."""
    return tuple(cell.cell_contents for cell in getattr(function, "__closure__", None) or ())


def _names(function) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _finite(values: xr.DataArray) -> xr.DataArray:
    return values.where(np.isfinite(values)) if values.dtype.kind == "f" else values


def _as_numbers(values: xr.DataArray) -> xr.DataArray:
    """As floats, NaN where a whole number below 0 says that something never happened."""
    if values.dtype.kind in "iu":
        return values.astype(float).where(values >= 0)
    return values.astype(float).where(np.isfinite(values)) if values.dtype.kind in "fb" else values
