"""One experiment: data, network, objective, algorithm, probes and steps, frozen."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx

from featlab.algorithms import AbstractAlgorithm
from featlab.data import AbstractDataModel, AbstractVectorModel
from featlab.fields import InputError, Part, function, part, whole_if_exact
from featlab.networks import AbstractNetwork, AbstractProductNetwork
from featlab.objectives import AbstractObjective, Supervised, as_objective, logistic
from featlab.probes import AbstractRunning, AbstractSchedule, Probe, as_probe, evenly, until
from featlab.probes.running import as_running
from featlab.space import AbstractSpace, Ambient, Span

# What a Dataset holds beside what the probes read.
RESERVED = frozenset(
    "seed step time class filter sample label clean_label "
    "stopped_at diverged_at steps_taken trained status".split()
)

# Numbers that one run may hold in whole d-vectors before Ambient is called impossible: 4 GB in float32.
_AMBIENT_LIMIT = 1e9


def _probes(probes) -> tuple:
    probes = probes if isinstance(probes, list | tuple) else (probes,)
    return tuple(p if isinstance(p, AbstractRunning) else as_probe(p) for p in probes)


def _steps(steps):
    if isinstance(steps, until):
        return steps
    steps = whole_if_exact(steps)
    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 0:
        raise InputError(
            f"Experiment.steps must be a whole number of at least 0, or until(probe, level), got {steps!r}."
        )
    return steps


class Experiment(Part):
    """What is trained, how, on what, and what is read off.

    `steps` is a number or `until(probe, level, at_most)`. `record` is the clock of the probes that have none of
    their own. `space` is `Span` or `Ambient`; left out, `Span` is used where everything in the experiment
    commutes with rotations, and `Ambient` otherwise. `precision` is 32 or 64.
    """

    data: AbstractDataModel = part(AbstractDataModel, "a data model, such as SignalNoise(n=100, d=1e6, snr=0.1)")
    network: AbstractNetwork = part(AbstractNetwork, "a network, such as TwoLayerCNN(width=16)")
    algorithm: AbstractAlgorithm = part(AbstractAlgorithm, "an algorithm, such as GradientDescent(0.1)")
    objective: AbstractObjective | Callable = function("a loss, such as logistic", default=logistic)
    probes: tuple[Probe | AbstractRunning, ...] = eqx.field(default=(), converter=_probes)
    steps: int | until = eqx.field(default=1000, converter=_steps)
    record: AbstractSchedule = evenly(100)
    space: type[AbstractSpace] | None = eqx.field(static=True, default=None)
    precision: int = eqx.field(static=True, default=32)

    def __check_init__(self):
        if self.space not in (None, Span, Ambient):
            raise InputError(f"Experiment.space must be Span, Ambient or left out, got {self.space!r}.")
        if self.precision not in (32, 64):
            raise InputError(f"Experiment.precision must be 32 or 64, got {self.precision!r}.")
        if not isinstance(self.record, AbstractSchedule):
            raise InputError(f"Experiment.record must be a clock, such as every(10), got {self.record!r}.")
        names = [name for probe in self.probes for name, _ in (as_running(probe) or probe).variables]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"Experiment.probes would record {name!r} twice; keep one of them.")
            if name in RESERVED:
                raise InputError(
                    f"Experiment.probes may not record {name!r}, a name every Dataset has; rename the probe."
                )

        self._check_axes()

    def _check_axes(self):
        """Probes that share a dim must agree about the values along it."""
        said: dict[str, tuple[str, Any]] = {}
        for one in self.probes:
            if not isinstance(one, Probe):
                continue
            dims = {dim for _, variable in one.variables if variable for dim in variable.dims.split()}
            for dim in dims & set(one.settings):
                value = one.settings[dim]
                other, before = said.setdefault(dim, (one.name, value))
                if None not in (value, before) and value != before:
                    raise InputError(
                        f"Experiment.probes disagree about {dim}: {other} has {before}, {one.name} {value}; "
                        "give both the same, or run two experiments."
                    )

    @property
    def last_step(self) -> int:
        """The number of steps, or the most there can be."""
        return self.steps.at_most if isinstance(self.steps, until) else self.steps

    def clock_of(self, probe: Probe | AbstractRunning) -> Any:
        """When a probe is read: on its own clock, or on the experiment's."""
        return (as_running(probe) or probe).clock or self.record

    @property
    def bound_objective(self) -> AbstractObjective:
        """The objective of this network; a plain loss has become `Supervised`."""
        return as_objective(self.objective, self.network)

    def span_obstacles(self) -> list[str]:
        """Why `Span` cannot be used: what does not declare that it commutes with rotations."""
        parts: list[tuple[str, Any]] = [
            ("data model", self.data),
            ("network", self.network),
            ("objective", self.bound_objective),
            ("algorithm", self.algorithm),
        ]
        parts += [("probe", as_running(probe) or probe) for probe in self.probes]
        if isinstance(self.steps, until):
            parts.append(("probe", self.steps.probe))
        return [
            f"the {role} {_name(one)} does not declare that it commutes with rotations and stays in the span"
            for role, one in parts
            if not one.equivariant
        ]

    def product_obstacles(self) -> list[str]:
        """Why training in inner products cannot be used."""
        obstacles = self.span_obstacles() if self.space is not Ambient else ["Ambient is asked for"]
        d, needed = self.data.d, self.span_size(self.data.n)
        if d < needed:
            obstacles.append(f"d = {d:g} is less than the {needed} vectors that are drawn")
        if not isinstance(self.data, AbstractVectorModel):
            obstacles.append(f"{_name(self.data)} is not linear in signals and noise, seen all at once")
        elif type(self.data).batch is not AbstractDataModel.batch:
            obstacles.append(f"{_name(self.data)} has batches of its own")
        if not (isinstance(self.network, AbstractProductNetwork) and self.network.separable):
            obstacles.append(f"{_name(self.network)} does not say what it has beside its weights")
        if not isinstance(self.bound_objective, Supervised):
            obstacles.append(f"{_name(self.bound_objective)} is not a mean of losses")
        if not self.algorithm.combines:
            obstacles.append(f"{_name(self.algorithm)} does more than combine gradients")
        probes = [*self.probes, *([self.steps.probe] if isinstance(self.steps, until) else [])]
        for one in probes:
            if not (as_running(one) or one).in_products:
                obstacles.append(f"the probe {_name(one)} does not declare that it reads a run in products")
        if not obstacles and isinstance(self.data, AbstractVectorModel) and math.isinf(d):
            if self.data.noise_length(Span.create(d, 0)) != 1:
                obstacles.append(f"the noise of {_name(self.data)} has another length than one at d = inf")
        return obstacles

    def span_size(self, rows: int) -> int:
        """How many d-vectors one run draws."""
        inputs = self.data.vectors(rows) - self.data.vectors(0)
        return self.data.vectors(rows) + self.algorithm.holdouts * inputs + self.network.vectors()

    def empty_space(self, rows: int | None = None) -> AbstractSpace:
        """The space a run of this experiment starts from: the one asked for, or the best possible one."""
        rows = self.data.n if rows is None else rows
        d, needed, obstacles = self.data.d, self.span_size(self.data.n), self.span_obstacles()
        if self.space is Span and obstacles:
            raise InputError(f"Span is not possible: {obstacles[0]}; use Ambient.")
        if self.space is Span or (self.space is None and not obstacles and d >= needed):
            if d < needed:
                raise InputError(
                    f"Span needs d to be at least the {needed} vectors that are drawn, got d = {d:g}; "
                    "use Ambient, a larger d or a smaller n."
                )
            return Span.create(d, self.span_size(rows))
        if math.isinf(d):
            raise InputError(
                f"Ambient cannot store infinitely long vectors, and d = inf needs Span{_but(obstacles)}."
            )
        if d * needed > _AMBIENT_LIMIT:
            raise InputError(
                f"Ambient would store {needed} vectors of {d:g} numbers; give d below "
                f"{_AMBIENT_LIMIT / needed:.3g}, or use Span{_but(obstacles)}."
            )
        return Ambient(d)


def _but(obstacles: list[str]) -> str:
    return f", which is not possible: {obstacles[0]}" if obstacles else ""


def _name(one: Any) -> str:
    one = getattr(one, "probe", one)  # a running form goes by the name of its probe
    return one.name if isinstance(one, Probe) else type(one).__name__
