"""What spikes take off the errors of ridge regression: the experiments, and the measured drop over the formula."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import xarray as xr

from featlab.algorithms import GiantStep
from featlab.claims import Lab
from featlab.claims.settings import one_step as shared
from featlab.experiment import Experiment
from featlab.networks import hermite_series
from featlab.probes import ridge_errors
from featlab.theory import hermite, one_step, random_features

STRONG = 150.0  # c_1 eta of a step that makes the theorem's explicit spikes 30 times and more as long as the bulk
CUBIC = "y = H1 + H2/2 + H3/5 + noise/10"  # for three spikes, with a student whose c_3 is not 0
CUBIC_STUDENT = shared.WAVES
SETTINGS = shared.SETTINGS | {CUBIC: shared.Setting(hermite_series((0, 1, 1 / 2, 1 / 5)), 0.1)}
SPIKES_OF_A_STEP = 4  # beyond, they are too weak to count at these sizes


class Gains(NamedTuple):
    """One error of ridge regression, at one penalty and in one proportion of sizes."""

    error: str  # "train" or "test"
    penalty: float  # lambda
    dimensions: float  # d / n
    neurons: float  # N / n
    test_inputs: int

    def real(
        self, n: int, teacher: str, alpha: float, holdout: int = 1, steps: int = 1, constant: float = 1.0
    ) -> Experiment:
        r"""A step of size $c n^\alpha$; the head is fitted on fresh data, or on those of the step (holdout 0)."""
        probe = ridge_errors(penalty=(self.penalty,), holdout=holdout, count=self.test_inputs)
        return self._stated(n, teacher, GiantStep(alpha=alpha, constant=constant), probe, steps)

    def explicit(self, n: int, teacher: str) -> Experiment:
        """The features of the start with 0, 1, 2 and, for the cubic teacher, 3 strong explicit spikes."""
        spikes = (0, 1, 2, 3) if teacher == CUBIC else (0, 1, 2)
        probe = ridge_errors(penalty=(self.penalty,), spikes=spikes, count=self.test_inputs)
        c = hermite.coefficients(student(teacher), 1)[1]
        return self._stated(n, teacher, GiantStep(eta=STRONG / c), probe, steps=0)

    def formula(
        self, n: int, teacher: str, spikes: int, alpha: float | None = None, constant: float = 1.0
    ) -> float:
        """The theory's drop; with infinitely strong spikes unless the step is given."""
        experiment = self.explicit(n, teacher)
        activation = random_features.Activation.of(student(teacher))
        width = shared.network(experiment).width
        step = None if alpha is None else one_step.Step.of(student(teacher), constant * n**alpha, width)
        known = SETTINGS[teacher].teacher
        both = one_step.gains(*shared.proportions(experiment), self.penalty, activation, known, spikes, step)
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

    def over_the_limit(
        self, lab: Lab, n: int, teacher: str, alpha: float, spikes: int, constant: float = 1.0
    ) -> xr.DataArray:
        r"""The drop after a real step of size $c n^\alpha$ over what infinitely strong spikes are worth."""
        before = self._read(lab.run(self.explicit, n=n, teacher=teacher)).sel(spikes=0)
        after = self._read(lab.run(self.real, n=n, teacher=teacher, alpha=alpha, constant=constant))
        return (before - after) / self.formula(n, teacher, spikes)

    def _read(self, runs: xr.Dataset) -> xr.DataArray:
        return runs[f"ridge_{self.error}_error"].sel(penalty=self.penalty)

    def _stated(self, n: int, teacher: str, algorithm: GiantStep, probe: Any, steps: int) -> Experiment:
        sizes: dict[str, Any] = {"dimensions": self.dimensions, "neurons": self.neurons}
        given = {"steps": steps, "activation": student(teacher), **sizes}
        return shared.stated(n, SETTINGS[teacher], algorithm, [probe], **given)


def student(teacher: str):
    """The activation that goes with a teacher."""
    return CUBIC_STUDENT if teacher == CUBIC else shared.STUDENT
