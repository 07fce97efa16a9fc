"""What spikes take off the errors of ridge regression: the experiments, and the measured drop over the formula."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import xarray as xr

from featlab.algorithms import GiantStep
from featlab.claims import Lab
from featlab.claims.settings import one_step as shared
from featlab.experiment import Experiment
from featlab.probes import ridge_errors
from featlab.theory import one_step, random_features

STRONG = 300.0  # a step that makes the theorem's explicit spikes 30 times and more as long as the bulk
SPIKES_OF_A_STEP = 4  # beyond, they are too weak to count at these sizes


class Gains(NamedTuple):
    """One error of ridge regression, at one penalty and in one proportion of sizes."""

    error: str  # "train" or "test"
    penalty: float  # lambda
    dimensions: float  # d / n
    neurons: float  # N / n
    test_inputs: int

    def real(self, n: int, teacher: str, alpha: float, holdout: int = 1, steps: int = 1) -> Experiment:
        r"""A step of size $n^\alpha$; the head is fitted on fresh data, or on those of the step (holdout 0)."""
        probe = ridge_errors(penalty=(self.penalty,), holdout=holdout, count=self.test_inputs)
        return self._stated(n, teacher, GiantStep(alpha=alpha), probe, steps)

    def explicit(self, n: int, teacher: str) -> Experiment:
        """The features of the start with 0, 1 and 2 explicit spikes, all of them strong."""
        probe = ridge_errors(penalty=(self.penalty,), spikes=(0, 1, 2), count=self.test_inputs)
        return self._stated(n, teacher, GiantStep(eta=STRONG), probe, steps=0)

    def formula(self, n: int, teacher: str, spikes: int, alpha: float | None = None) -> float:
        """The theory's drop; with infinitely strong spikes unless the step is given."""
        experiment = self.explicit(n, teacher)
        student = random_features.Activation.of(shared.STUDENT)
        width = shared.network(experiment).width
        step = None if alpha is None else one_step.Step.of(shared.STUDENT, n**alpha, width)
        known = shared.SETTINGS[teacher].teacher
        both = one_step.gains(*shared.proportions(experiment), self.penalty, student, known, spikes, step)
        return both[("train", "test").index(self.error)]

    def explicit_drops(self, lab: Lab, n: int, teachers: Sequence[str], spikes: int) -> xr.DataArray:
        """The drop with explicit spikes over the formula, for each teacher."""
        errors = self._read(lab.run(self.explicit, n=n, teacher=teachers))
        law = xr.apply_ufunc(lambda name: self.formula(n, name, spikes), errors.teacher, vectorize=True)
        return (errors.sel(spikes=0) - errors.sel(spikes=spikes)) / law

    def real_drops(
        self, lab: Lab, n: int, teachers: Sequence[str], exponents: Sequence[float], on_fresh_data: bool = True
    ) -> xr.DataArray:
        """The drop after a real step over the formula for spikes of its strength, for teachers and exponents."""
        if on_fresh_data:
            before = self._read(lab.run(self.explicit, n=n, teacher=teachers)).sel(spikes=0)
        else:
            untrained = lab.run(self.real, n=n, teacher=teachers, alpha=exponents[0], holdout=0, steps=0)
            before = self._read(untrained)
        holdout = int(on_fresh_data)
        after = self._read(lab.run(self.real, n=n, teacher=teachers, alpha=exponents, holdout=holdout))
        law = xr.apply_ufunc(
            lambda name, alpha: self.formula(n, name, SPIKES_OF_A_STEP, alpha),
            after.teacher,
            after.alpha,
            vectorize=True,
        )
        return (before - after).transpose("teacher", "alpha", "seed") / law

    def in_first_steps(self, lab: Lab, n: int, teacher: str, alpha: float) -> xr.DataArray:
        """The drop after a real step in units of what one infinitely strong spike is worth."""
        before = self._read(lab.run(self.explicit, n=n, teacher=teacher)).sel(spikes=0)
        after = self._read(lab.run(self.real, n=n, teacher=teacher, alpha=alpha))
        return (before - after) / self.formula(n, teacher, 1)

    def _read(self, runs: xr.Dataset) -> xr.DataArray:
        return runs[f"ridge_{self.error}_error"].sel(penalty=self.penalty)

    def _stated(self, n: int, teacher: str, algorithm: GiantStep, probe: Any, steps: int) -> Experiment:
        sizes: dict[str, Any] = {"dimensions": self.dimensions, "neurons": self.neurons}
        return shared.stated(n, shared.SETTINGS[teacher], algorithm, [probe], steps=steps, **sizes)
