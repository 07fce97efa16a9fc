"""Probes that look at every step and remember: extremes, first times, recursions."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from featlab.core.sees import Sees
from featlab.core.validation import Part
from featlab.probes._probe import Probe, Variable, View
from featlab.probes.clocks import at_end, first, seen_by, throughout


class AbstractRunning(Part):
    """Something that is carried along a run: begun at the start, updated at every step, read when asked."""

    sees: ClassVar[Sees] = Sees.COORDINATES
    of: ClassVar[tuple[type, ...]] = ()  # kinds that the rest of the experiment must be of

    @property
    @abc.abstractmethod
    def variables(self) -> tuple[tuple[str, Variable | None], ...]:
        """The names of what it returns."""

    @property
    def clock(self) -> Any:
        """When it is read; None is the experiment's clock."""
        return None

    @abc.abstractmethod
    def begin(self, view: View) -> Any:
        """Its memory before the first step."""

    @abc.abstractmethod
    def update(self, memory: Any, key: PRNGKeyArray, before: View) -> Any:
        """Its memory after the step that is about to be taken from this view with this key."""

    @abc.abstractmethod
    def read(self, memory: Any, view: View) -> dict[str, Any]:
        """What it has to say now."""


class Extremes(AbstractRunning):
    """The lowest and highest values of a probe over all steps: `probe.on(throughout)`."""

    probe: Probe

    @property
    def sees(self):
        return self.probe.sees

    @property
    def clock(self):
        return at_end

    @property
    def variables(self):
        names = []
        for name, variable in self.probe.variables:
            v = variable or Variable()
            names.append(
                (f"{name}_lowest", Variable(v.dims, rf"\min_t {v.symbol}", f"lowest {v.meaning}", v.units))
            )
            names.append(
                (f"{name}_highest", Variable(v.dims, rf"\max_t {v.symbol}", f"highest {v.meaning}", v.units))
            )
        return tuple(names)

    def begin(self, view):
        reading = self.probe(view)
        return reading, reading

    def update(self, memory, key, before):
        return self._widened(memory, before)

    def read(self, memory, view):
        lowest, highest = self._widened(memory, view)
        return {f"{k}_lowest": v for k, v in lowest.items()} | {f"{k}_highest": v for k, v in highest.items()}

    def _widened(self, memory, view):
        reading = self.probe(view)
        return jax.tree.map(jnp.minimum, memory[0], reading), jax.tree.map(jnp.maximum, memory[1], reading)


class FirstTime(AbstractRunning):
    """A probe at the first step where a condition holds: `probe.on(first(condition))`."""

    probe: Probe
    moment: first

    @property
    def sees(self):
        return max(self.probe.sees, seen_by(self.moment.condition))

    @property
    def clock(self):
        return at_end

    @property
    def variables(self):
        marked = tuple((f"{name}_at_{self.moment.name}", v) for name, v in self.probe.variables)
        step = Variable("", "t", "step at which it first held, -1 if never", "steps")
        return ((self.moment.name, step), *marked)

    def begin(self, view):
        # The moment itself is kept, and the probe is read once, at the end.
        return jnp.array(-1), (view.params, view.step, view.info)

    def update(self, memory, key, before):
        return self._looked(memory, before)

    def read(self, memory, view):
        found, moment = self._looked(memory, eqx.tree_at(_prepared, view, None, is_leaf=_is_none))
        then = eqx.tree_at(lambda v: (v.params, v.step, v.info), view, moment, is_leaf=_is_none)
        marked = {f"{name}_at_{self.moment.name}": value for name, value in self.probe(then).items()}
        return {self.moment.name: found, **marked}

    def _looked(self, memory, view):
        found, moment = memory
        pending = found < 0
        holds = pending & self.moment.condition(view)
        now = (view.params, view.step, view.info)
        kept = jax.tree.map(lambda old, new: jnp.where(pending, new, old), moment, now)
        return jnp.where(holds, view.step, found), kept


def _prepared(view: View):
    return view.prepared


def _is_none(leaf) -> bool:
    return leaf is None


def read(probe: Probe | AbstractRunning, memory: Any, view: View) -> dict[str, Any]:
    """What a probe has to say, from its memory if it is a running one."""
    running = as_running(probe)
    if running is not None:
        return running.read(memory, view)
    assert isinstance(probe, Probe)
    return probe(view)


def as_running(probe: Probe | AbstractRunning) -> AbstractRunning | None:
    """The running form of a probe whose clock needs every step, else None."""
    if isinstance(probe, AbstractRunning):
        return probe
    if probe.clock is throughout:
        return Extremes(probe)
    if isinstance(probe.clock, first):
        return FirstTime(probe, probe.clock)
    return None
