"""A plan: everything a sweep will do, decided before anything is computed.

It is made once. The command prints it, `sweep`, `compare` and the playground's diagram carry it out, and the store
knows its runs by their keys.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import numpy as np

import featlab
from featlab.core.validation import InputError, did_you_mean
from featlab.engine.batch import Unit, units, work
from featlab.engine.dataset import theory_numbers
from featlab.engine.program import Program, programs_from
from featlab.engine.run import as_seeds
from featlab.experiment import Experiment
from featlab.probes import Variable
from featlab.probes.running import as_running
from featlab.sweeps.axes import Axis, as_axes, tables
from featlab.sweeps.keys import keys_of_cells
from featlab.text import describe

MOST_RUNS = 50_000_000

_FATES = {
    "steps_taken": Variable("", "", "steps taken", "steps"),
    "trained": Variable("", "", "reached the level, or took all its steps, and did not diverge"),
}


@dataclasses.dataclass(frozen=True, eq=False)
class Plan:
    """The cells of a grid, the seeds of each, and the programs that compute them."""

    axes: tuple[Axis, ...]
    seeds: np.ndarray
    programs: tuple[Program, ...]
    variables: dict[str, Variable]  # what will be read of every run, each as one number

    @staticmethod
    def of(
        what: Experiment | Callable[..., Experiment],
        grid: Mapping[str, Any],
        seeds: int | Iterable[int] = 1,
        *,
        verb: str = "sweep",
    ) -> Plan:
        """The plan of a grid, as `sweep` takes it; raises for the first cell that cannot be."""
        axes = as_axes(grid, what)
        programs = programs_from(tables(what, axes))
        plan = Plan(tuple(axes), as_seeds(seeds, verb).astype(int), tuple(programs), _variables(programs))
        if plan.runs > MOST_RUNS:
            raise InputError(
                f"This sweep has {plan.runs:,} runs; the most that one sweep holds are {MOST_RUNS:,}: "
                "a coarser grid, fewer seeds, or several sweeps into one folder."
            )
        return plan

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis.values) for axis in self.axes)

    @property
    def cells(self) -> int:
        return int(np.prod(self.shape))

    @property
    def runs(self) -> int:
        return self.cells * len(self.seeds)

    @property
    def work(self) -> float:
        """About how many operations it takes, if every run takes all its steps."""
        return sum(work(one) * len(one.table.places) for one in self.programs) * len(self.seeds)

    @functools.cached_property
    def keys(self) -> np.ndarray:
        """What each run is known by in a store; (cell, seed) keys of some bytes."""
        return keys_of_cells(self.programs, self.cells, self.seeds)

    def units(self, wanted: np.ndarray | None = None) -> list[tuple[Program, Unit]]:
        """The runs of the cells that are marked, or of all, in units of one call each."""
        chosen = np.ones(self.cells, bool) if wanted is None else wanted.reshape(-1)
        planned = []
        for program in self.programs:
            inside = np.flatnonzero(chosen[program.table.places])
            if len(inside):
                runs = np.repeat(inside, len(self.seeds)), np.tile(self.seeds, len(inside))
                planned += [(program, unit) for unit in units(program, *runs)]
        return planned

    def places(self, program: Program, unit: Unit) -> tuple[np.ndarray, np.ndarray]:
        """The cell and the place of the seed of each run of a unit."""
        order = np.argsort(self.seeds)
        return program.table.places[unit.experiments], order[np.searchsorted(self.seeds[order], unit.seeds)]

    def check(self, name: str) -> None:
        """Refuse a variable that is not read."""
        if name not in self.variables:
            raise InputError(f"No probe of this sweep reads {name!r}; {did_you_mean(name, self.variables)}")

    def attrs(self) -> dict[str, object]:
        """Where the numbers come from: the first experiment, and those of its numbers that all cells share."""
        numbers = [theory_numbers(one.table.at(i)) for one in self.programs for i in _extremes(one)]
        shared = {k: v for k, v in numbers[0].items() if all(other.get(k) == v for other in numbers)}
        origin = {"experiment": describe(self.programs[0].first), "featlab_version": featlab.__version__}
        return {**origin, **shared, "device": jax.default_backend()}

    def __str__(self):
        shape, seeds = " x ".join(map(str, self.shape)), len(self.seeds)
        return f"{shape} cells x {seeds} seed{'s' * (seeds > 1)} = {self.runs:,} runs"


def _variables(programs: list[Program]) -> dict[str, Variable]:
    """What every experiment's probes read, each as one number."""
    of_programs = []
    for program in programs:
        named = [v for probe in program.first.probes for v in (as_running(probe) or probe).variables]
        of_programs.append({name: _as_number(name, variable or Variable()) for name, variable in named})
    if not of_programs[0]:
        raise InputError("sweep needs an experiment with at least one probe: there would be nothing to read.")
    if any(set(other) != set(of_programs[0]) for other in of_programs):
        raise InputError("The experiments of a sweep must have the same probes in every cell.")
    return of_programs[0] | _FATES


def _as_number(name: str, variable: Variable) -> Variable:
    if not variable.dims:
        return variable
    symbol = rf"\max |{variable.symbol}|" if variable.symbol else ""
    over = ", ".join(variable.dims.split())
    return Variable("", symbol, f"largest magnitude of {variable.meaning or name} over {over}", variable.units)


def _extremes(program: Program) -> list[int]:
    """Experiments among which every number of a program that differs at all does so."""
    found = {0}
    for column in program.table.columns.values():
        found |= {int(np.argmin(column)), int(np.argmax(column))}
    return sorted(found)
