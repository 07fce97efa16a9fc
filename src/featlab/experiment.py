"""One experiment: data, network, objective, algorithm, probes and steps, frozen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx

from featlab.algorithms import AbstractAlgorithm
from featlab.core.sees import Sees
from featlab.core.space import AbstractSpace, Ambient, Span
from featlab.core.validation import MOST, InputError, Kind, Part, function, part, whole_if_exact
from featlab.data import AbstractDataModel, AbstractVectorModel
from featlab.networks import AbstractNetwork, AbstractProductNetwork
from featlab.objectives import AbstractObjective, Supervised, as_objective, logistic
from featlab.probes import AbstractRunning, AbstractSchedule, Probe, as_probe, evenly, until
from featlab.probes._needs import misfit
from featlab.probes.running import as_running

# What a Dataset holds beside what the probes read.
RESERVED = frozenset(
    "seed step time class filter sample label clean_label "
    "stopped_at diverged_at steps_taken trained status".split()
)

_SEEN = {Sees.VECTORS: "whole vectors", Sees.COORDINATES: "coordinates"}

# Numbers that one run may hold in vectors before it is called impossible: 4 GB in float32.
_STORED = 1e9

_STEPS = Kind("whole", 0, symbol="T", means="steps of training", span=(10, 20_000))


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
    if steps > MOST:
        raise InputError(f"Experiment.steps must be at most {MOST:,}, got {steps}.")
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
    steps: int | until = eqx.field(default=1000, converter=_steps, metadata={"kind": _STEPS})
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
        kinds = (AbstractDataModel, AbstractNetwork, AbstractAlgorithm)
        if not all(map(isinstance, (self.data, self.network, self.algorithm), kinds)) or not callable(
            self.objective
        ):
            return  # refused by its field
        self._check_axes()
        self._check_products()
        self._check_needs()

    def _check_products(self):
        """A part that sees inner products alone must say all it needs by them."""
        kinds = {AbstractVectorModel: self.data, AbstractProductNetwork: self.network}
        for kind, one in (kinds | {Supervised: self.bound_objective}).items():
            if one.sees == Sees.PRODUCTS and not isinstance(one, kind):
                raise InputError(
                    f"{_name(one)} declares that it sees inner products alone, which takes {kind.__name__}; "
                    "declare Sees.VECTORS."
                )

    def _check_needs(self):
        """Everything must be among parts of the kinds that it says it needs."""
        needy = [self.bound_objective, *_with_inner(self.algorithm), *self.probes]
        needy += [self.steps.probe] if isinstance(self.steps, until) else []
        for one in needy:
            complaint = self.misfit(one)
            if complaint:
                raise InputError(complaint)

    def misfit(self, one: Probe | AbstractRunning | AbstractObjective | AbstractAlgorithm) -> str | None:
        """What the other parts lack that this one needs, in a sentence, if anything."""
        parts = {"data": self.data, "network": self.network, "algorithm": self.algorithm}
        return misfit(_name(one), one.of, {**parts, "objective": self.bound_objective})

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

    @property
    def sees(self) -> Sees:
        """The finest thing that any part looks at."""
        return max(one.sees for _, one in self._parts())

    @property
    def representation(self) -> Sees:
        """The coarsest representation that serves all parts: inner products, `Span` or `Ambient`."""
        finest = self.sees
        return next(level for level in Sees if level >= finest and self.needs_finer(level) is None)

    @property
    def whole_inputs(self) -> bool:
        """Whether some part looks at inputs that products with their signals and noise could not stand for."""
        beyond = Sees.PRODUCTS < max(self.network.sees, self.bound_objective.sees)
        return beyond or self.data.whole_inputs or self.algorithm.whole_inputs

    def needs_finer(self, wished: Sees) -> str | None:
        """Why a run cannot be represented as coarsely as this, in one sentence; None where it can."""
        if wished == Sees.COORDINATES:
            return None
        d, needed = self.data.d, self.span_size(self.data.n)
        role, finest = max(self._parts(), key=lambda one: one[1].sees)
        if finest.sees > wished:
            return f"the {role} {_name(finest)} sees {_SEEN[finest.sees]}, as far as it declares"
        if self.space is Ambient:
            return "Ambient is asked for"
        if d < needed:
            return f"d = {d:g} is less than the {needed} vectors that are drawn"
        if wished == Sees.PRODUCTS and math.isinf(d):
            model = self.data
            if isinstance(model, AbstractVectorModel) and model.noise_length(Span.create(d, 0)) != 1:
                return f"the noise of {_name(model)} has another length than one at d = inf"
        return None

    def _parts(self) -> list[tuple[str, Any]]:
        """Everything that looks at a run, with its role."""
        probes = [*self.probes, *([self.steps.probe] if isinstance(self.steps, until) else [])]
        return [
            ("data model", self.data),
            ("network", self.network),
            ("objective", self.bound_objective),
            ("algorithm", self.algorithm),
            *[("probe", as_running(probe) or probe) for probe in probes],
        ]

    def span_size(self, rows: int) -> int:
        """How many d-vectors one run draws."""
        inputs = self.data.vectors(rows) - self.data.vectors(0)
        return self.data.vectors(rows) + self.algorithm.holdouts * inputs + self.network.vectors()

    def empty_space(self, rows: int | None = None) -> AbstractSpace:
        """The space a run of this experiment starts from: the one asked for, or the best possible one."""
        d, needed, finer = self.data.d, self.span_size(self.data.n), self.needs_finer(Sees.VECTORS)
        if finer is None:
            size = self.span_size(self.data.n if rows is None else rows)
            if size**2 > _STORED:
                raise InputError(
                    f"A run would store {size:,} vectors of {size:,} coordinates, {4e-9 * size**2:,.0f} GB: "
                    f"give fewer inputs or neurons, below {math.isqrt(int(_STORED)):,} vectors in all."
                )
            return Span.create(d, size)
        if self.space is Span:
            raise InputError(f"Span is not possible: {finer}; use Ambient.")
        but = f", which is not possible: {finer}" if self.space is None else ""
        if math.isinf(d):
            raise InputError(f"Ambient cannot store infinitely long vectors, and d = inf needs Span{but}.")
        if d * needed > _STORED:
            raise InputError(
                f"Ambient would store {needed} vectors of {d:g} numbers; give d below "
                f"{_STORED / needed:.3g}, or use Span{but}."
            )
        return Ambient(d)


def _with_inner(algorithm: Any) -> Iterator[AbstractAlgorithm]:
    """An algorithm, and those that it is made of."""
    if isinstance(algorithm, AbstractAlgorithm):
        yield algorithm
        for value in vars(algorithm).values():
            yield from _with_inner(value)


def _name(one: Any) -> str:
    one = getattr(one, "probe", one)  # a running form goes by the name of its probe
    return one.name if isinstance(one, Probe) else type(one).__name__
