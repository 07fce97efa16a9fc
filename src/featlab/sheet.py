"""The sheet a sweep fills in: one place for every cell and every seed, and the Dataset it becomes."""

from __future__ import annotations

import jax
import numpy as np
import xarray as xr

import featlab
from featlab.description import describe
from featlab.endings import Runs
from featlab.fields import InputError, did_you_mean
from featlab.grids import Axis
from featlab.groups import Group
from featlab.labelled import theory_numbers
from featlab.probes import Variable
from featlab.probes.running import as_running

MOST_RUNS = 50_000_000

_FATES = {
    "steps_taken": Variable("", "", "steps taken", "steps"),
    "trained": Variable("", "", "reached the level, or took all its steps, and did not diverge"),
}


class Sheet:
    """What is known of a sweep's runs so far."""

    def __init__(self, axes: list[Axis], seeds: np.ndarray, groups: list[Group]):
        self.axes, self.seeds = axes, np.asarray(seeds, int)
        self.shape = tuple(len(axis.values) for axis in axes)
        self.runs = int(np.prod(self.shape)) * len(self.seeds)
        if self.runs > MOST_RUNS:
            raise InputError(
                f"This sweep has {self.runs:,} runs; the most that one sweep holds are {MOST_RUNS:,}: "
                "a coarser grid, fewer seeds, or several sweeps into one folder."
            )
        if len(np.unique(self.seeds)) < len(self.seeds):
            raise InputError(f"A sweep needs different seeds, got {self.seeds.tolist()}.")
        self._variables = _variables(groups)
        self._attrs = _attrs(groups)
        self.finished = np.zeros((int(np.prod(self.shape)), len(self.seeds)), bool)
        self._values = {
            name: np.zeros(self.finished.shape, bool)
            if name == "trained"
            else np.full(self.finished.shape, np.nan)
            for name in self._variables
        }

    @property
    def done(self) -> int:
        return int(np.count_nonzero(self.finished))

    def places(self, group: Group, runs: Runs) -> tuple[np.ndarray, np.ndarray]:
        """The cell and the place of the seed of each run."""
        order = np.argsort(self.seeds)
        return group.table.places[runs.experiments], order[np.searchsorted(self.seeds[order], runs.seeds)]

    def fill(self, group: Group, runs: Runs, values: dict[str, np.ndarray]) -> None:
        """Write down what some runs came to."""
        places = self.places(group, runs)
        self.finished[places] = True
        for name, value in values.items():
            if name in self._values:
                self._values[name][places] = value

    def take(self, here: np.ndarray, values: dict[str, np.ndarray]) -> None:
        """Write down what was there already."""
        self.finished |= here
        for name, value in values.items():
            if name in self._values:
                self._values[name][here] = value.reshape(here.shape)[here]

    def check(self, name: str) -> None:
        """Refuse a variable that is not read."""
        if name not in self._variables:
            raise InputError(f"No probe of this sweep reads {name!r}; {did_you_mean(name, self._variables)}")

    def means(self, name: str) -> np.ndarray:
        """A variable's mean over the seeds done, on the grid; NaN where none is."""
        count = self.finished.sum(axis=1)
        total = np.where(self.finished, self._values[name], 0).sum(axis=1)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan).reshape(self.shape)

    def note(self) -> str:
        """A word on how it stands: the mean of the first variable."""
        name = next(iter(self._variables))
        values = self._values[name][self.finished]
        return f"(mean {name} {np.mean(values):.3g})" if len(values) else ""

    def dataset(self, *, interrupted: bool = False) -> xr.Dataset:
        """The sheet as a labelled Dataset."""
        dims = [axis.name for axis in self.axes] + ["seed"]
        shape = (*self.shape, len(self.seeds))
        variables = {
            name: (
                dims,
                values.reshape(shape).copy(),
                {"symbol": described.symbol, "long_name": described.meaning or name, "units": described.units},
            )
            for (name, described), values in zip(self._variables.items(), self._values.values())
        }
        variables["done"] = (dims, self.finished.reshape(shape).copy(), {"long_name": "run carried out"})
        coords = {axis.name: axis.coordinate for axis in self.axes}
        attrs = {**self._attrs, "interrupted": int(interrupted), "unfinished": int(not self.finished.all())}
        return xr.Dataset(variables, {**coords, "seed": ("seed", self.seeds)}, attrs)


def _variables(groups: list[Group]) -> dict[str, Variable]:
    """What every experiment's probes read, each as one number."""
    of_groups = []
    for group in groups:
        named = [v for probe in group.first.probes for v in (as_running(probe) or probe).variables]
        of_groups.append({name: _as_number(name, variable or Variable()) for name, variable in named})
    if not of_groups[0]:
        raise InputError("sweep needs an experiment with at least one probe: there would be nothing to read.")
    if any(set(other) != set(of_groups[0]) for other in of_groups):
        raise InputError("The experiments of a sweep must have the same probes in every cell.")
    return of_groups[0] | _FATES


def _as_number(name: str, variable: Variable) -> Variable:
    if not variable.dims:
        return variable
    symbol = rf"\max |{variable.symbol}|" if variable.symbol else ""
    over = ", ".join(variable.dims.split())
    return Variable("", symbol, f"largest magnitude of {variable.meaning or name} over {over}", variable.units)


def _attrs(groups: list[Group]) -> dict[str, object]:
    """Where the numbers come from: the first experiment, and those of its numbers that all cells share."""
    numbers = [theory_numbers(group.table.at(i)) for group in groups for i in _extremes(group)]
    shared = {k: v for k, v in numbers[0].items() if all(other.get(k) == v for other in numbers)}
    origin = {"experiment": describe(groups[0].first), "featlab_version": featlab.__version__}
    return {**origin, **shared, "device": jax.default_backend()}


def _extremes(group: Group) -> list[int]:
    """Experiments among which every number of a group that differs at all does so."""
    found = {0}
    for column in group.table.columns.values():
        found |= {int(np.argmin(column)), int(np.argmax(column))}
    return sorted(found)
