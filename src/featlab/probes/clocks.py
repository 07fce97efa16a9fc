"""When a probe is read: on a schedule, at the end, at the first step where something holds, or at every step."""

from __future__ import annotations

import functools
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from featlab.fields import Part, function, real, whole
from featlab.probes._probe import AbstractClock, AbstractSchedule, Probe, as_probe


class every(AbstractSchedule):
    """Every k-th step, from 0, and the last one."""

    interval: int = whole(at_least=1)

    @classmethod
    def examples(cls):
        return (cls(3),)

    def times(self, steps: int) -> np.ndarray:
        return np.union1d(np.arange(0, steps + 1, self.interval), [steps])


class evenly(AbstractSchedule):
    """About so many steps, evenly spaced, with the first and the last."""

    count: int = whole(default=100, at_least=1)

    def times(self, steps: int) -> np.ndarray:
        return np.unique(np.linspace(0, steps, self.count + 1).round().astype(int))


class geometric(AbstractSchedule):
    """About so many steps, each a constant factor after the one before, and 0."""

    count: int = whole(default=100, at_least=1)

    def times(self, steps: int) -> np.ndarray:
        between = np.geomspace(1, max(steps, 1), self.count).round().astype(int)
        return np.unique(np.concatenate([[0, steps], between]).clip(max=steps))


class _AtEnd(AbstractSchedule):
    """The last step only; the result has no step dim."""

    def times(self, steps: int) -> np.ndarray:
        return np.array([steps])


at_end = _AtEnd()


class first(AbstractClock):
    """The first step at which a condition on the view holds; the step itself is recorded under `name`.

    A condition is `below(probe, level)`, `above(probe, level)` or any function of a view that says yes or no.
    Runs in which it never holds get the step -1, and the probe's value at their end.
    """

    condition: Callable = function("a function of a view that says yes or no")
    name: str = eqx.field(static=True, default="first")


class AbstractLevel(Part):
    """A condition on a probe's number: its first, or the one called `variable`."""

    probe: Probe = eqx.field(converter=as_probe)
    level: float = real()
    variable: str = eqx.field(static=True, default="")

    @property
    def equivariant(self) -> bool:
        return self.probe.equivariant

    @property
    def in_products(self) -> bool:
        return self.probe.in_products


class below(AbstractLevel):
    """A condition: a probe's number is at or below a level."""

    def __call__(self, view):
        return self.probe.number(view, self.variable) <= self.level


class above(AbstractLevel):
    """A condition: a probe's number is at or above a level."""

    def __call__(self, view):
        return self.probe.number(view, self.variable) >= self.level


class all_of(Part):
    """A condition: several conditions hold at once."""

    conditions: tuple[Callable, ...] = eqx.field(converter=tuple)

    def __call__(self, view):
        return functools.reduce(jnp.logical_and, [condition(view) for condition in self.conditions])

    @property
    def equivariant(self) -> bool:
        return all(getattr(condition, "equivariant", False) for condition in self.conditions)

    @property
    def in_products(self) -> bool:
        return all(getattr(condition, "in_products", False) for condition in self.conditions)


class _Throughout(AbstractClock):
    """Every single step, of which the lowest and highest values are kept, as a proof's bounds need them."""


throughout = _Throughout()


class until(Part):
    """Train until a probe's (first) number is at or below a level, but for no more than so many steps.

    With `after`, the level ends a run no sooner than that: a first stage is carried through.
    """

    probe: Probe = eqx.field(converter=as_probe)
    level: float = real()
    at_most: int = whole(default=100_000, at_least=1)
    after: int = whole(default=0, at_least=0)

    def reached(self, view) -> Array:
        """Whether the run ends here."""
        low = self.probe.number(view) <= self.level
        return low & (view.step >= self.after) if self.after else low
