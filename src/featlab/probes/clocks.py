"""When a probe is read: on a schedule, at the end, at the first step where something holds, or at every step."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from featlab.core.sees import Sees
from featlab.core.validation import InputError, Part, function, real, whole
from featlab.probes._probe import AbstractClock, AbstractSchedule, Probe, View, as_probe


class every(AbstractSchedule):
    """Every k-th step, from 0, and the last one."""

    interval: int = whole(at_least=1, means="steps between two readings", span=(1, 100))

    @classmethod
    def examples(cls):
        return (cls(3),)

    def times(self, steps: int) -> np.ndarray:
        return np.union1d(np.arange(0, steps + 1, self.interval), [steps])


class evenly(AbstractSchedule):
    """About `count` evenly spaced steps, including the first and the last."""

    count: int = whole(default=100, at_least=1, means="readings of a run", span=(1, 1000))

    def times(self, steps: int) -> np.ndarray:
        return np.unique(np.linspace(0, steps, self.count + 1).round().astype(int))


class geometric(AbstractSchedule):
    """0 and about `count` steps, each a constant factor after the one before."""

    count: int = whole(default=100, at_least=1, means="readings of a run", span=(1, 1000))

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


class AbstractCondition(Part):
    """Whether something holds of a view, that says what it looks at."""

    @property
    @abc.abstractmethod
    def sees(self) -> Sees:
        """The finest thing it looks at."""

    @abc.abstractmethod
    def __call__(self, view: View) -> Array:
        """Whether it holds."""


class AbstractLevel(AbstractCondition):
    """A condition on a probe's number: its first, or the one called `variable`."""

    probe: Probe = eqx.field(converter=as_probe)
    level: float = real(means="level that is crossed")
    variable: str = eqx.field(static=True, default="")

    @property
    def sees(self) -> Sees:
        return self.probe.sees


class below(AbstractLevel):
    """A condition: a probe's number is at or below a level."""

    def __call__(self, view):
        return self.probe.number(view, self.variable) <= self.level


class above(AbstractLevel):
    """A condition: a probe's number is at or above a level."""

    def __call__(self, view):
        return self.probe.number(view, self.variable) >= self.level


def _conditions(given) -> tuple[Callable, ...]:
    if not isinstance(given, tuple | list) or not given or not all(map(callable, given)):
        raise InputError(f"all_of needs conditions, such as (below(train_loss, 0.1),), got {given!r}.")
    return tuple(given)


class all_of(AbstractCondition):
    """A condition: several conditions hold at once."""

    conditions: tuple[Callable, ...] = eqx.field(converter=_conditions)

    def __call__(self, view):
        return functools.reduce(jnp.logical_and, [condition(view) for condition in self.conditions])

    @property
    def sees(self) -> Sees:
        return max(map(seen_by, self.conditions), default=Sees.PRODUCTS)


def seen_by(condition: Callable) -> Sees:
    """The finest thing a condition looks at; a plain function does not say."""
    return condition.sees if isinstance(condition, AbstractCondition) else Sees.COORDINATES


class _Throughout(AbstractClock):
    """Every single step, of which the lowest and highest values are kept, as a proof's bounds need them."""


throughout = _Throughout()


class until(Part):
    """Train until a probe's (first) number is at or below a level, but for at most `at_most` steps.

    With `after`, the level ends a run no sooner than that: a first stage is carried through.
    """

    probe: Probe = eqx.field(converter=as_probe)
    level: float = real(means="level at which a run ends")
    at_most: int = whole(default=100_000, at_least=1, means="most steps of a run", span=(1, 1_000_000))
    after: int = whole(default=0, at_least=0, means="fewest steps of a run", span=(0, 10_000), told=True)

    def reached(self, view) -> Array:
        """Whether the run ends here."""
        low = self.probe.number(view) <= self.level
        return low & (view.step >= self.after)
