"""The results a sweep fills in: one place for every cell and every seed, and the Dataset it becomes."""

from __future__ import annotations

import numpy as np
import xarray as xr

from featlab.engine.batch import Unit
from featlab.engine.program import Program
from featlab.sweeps.plan import Plan


class Results:
    """What is known of a plan's runs so far."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self._origin = plan.attrs()
        self.finished = np.zeros((plan.cells, len(plan.seeds)), bool)
        self._values = {
            name: np.zeros(self.finished.shape, bool)
            if name == "trained"
            else np.full(self.finished.shape, np.nan)
            for name in plan.variables
        }

    @property
    def done(self) -> int:
        return int(np.count_nonzero(self.finished))

    def fill(self, program: Program, unit: Unit, values: dict[str, np.ndarray]) -> None:
        """Write down what some runs came to."""
        places = self.plan.places(program, unit)
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

    def means(self, name: str) -> np.ndarray:
        """A variable's mean over the seeds done, on the grid; NaN where none is."""
        count = self.finished.sum(axis=1)
        total = np.where(self.finished, self._values[name], 0).sum(axis=1)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan).reshape(self.plan.shape)

    def note(self) -> str:
        """A word on how it stands: the mean of the first variable."""
        name = next(iter(self._values))
        values = self._values[name][self.finished]
        return f"(mean {name} {np.mean(values):.3g})" if len(values) else ""

    def dataset(self, *, interrupted: bool = False) -> xr.Dataset:
        """The results as a labelled Dataset."""
        dims = [axis.name for axis in self.plan.axes] + ["seed"]
        shape = (*self.plan.shape, len(self.plan.seeds))
        variables = {
            name: (
                dims,
                values.reshape(shape).copy(),
                {"symbol": described.symbol, "long_name": described.meaning or name, "units": described.units},
            )
            for (name, described), values in zip(self.plan.variables.items(), self._values.values())
        }
        variables["done"] = (dims, self.finished.reshape(shape).copy(), {"long_name": "run carried out"})
        coords = {axis.name: axis.coordinate for axis in self.plan.axes}
        attrs = {**self._origin, "interrupted": int(interrupted), "unfinished": int(not self.finished.all())}
        return xr.Dataset(variables, {**coords, "seed": ("seed", self.plan.seeds)}, attrs)
