"""What a probe is: something read off a run, with its named dims, and a clock that says when.

Any function of a `View` is a probe. The decorator `probe` gives its results names, dims and the paper's symbol:

    @probe(overlap=Variable("filter", r"\\langle w_r, v \\rangle", "overlap with v"))
    def overlap(view): ...

`overlap.on(every(10))` reads it every ten steps, `overlap(power=2)` sets one of its options.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from featlab.algorithms import AbstractAlgorithm, Info
from featlab.core.sees import Sees
from featlab.core.validation import MOST, InputError, Part, did_you_mean, whole_if_exact
from featlab.data import AbstractVectorModel, Batch
from featlab.networks import AbstractProductNetwork
from featlab.objectives import Supervised
from featlab.probes._needs import misfit, role_of
from featlab.problem import AbstractReadableProblem, vector_model


class View(eqx.Module):
    """A run at one moment, as a probe sees it."""

    params: Any
    step: Array
    problem: AbstractReadableProblem
    algorithm: AbstractAlgorithm
    info: Info | None = None  # of the last step
    prepared: Any = None  # what the probe at hand drew beforehand

    @property
    def training(self) -> Batch:
        return self.problem.draw.training

    @property
    def weights(self) -> Float[Array, "row column"]:
        """The weight vectors that meet the input."""
        self._network()
        return self.problem.weights(self.params)

    @property
    def start_weights(self) -> Float[Array, "row column"]:
        return self._network().weights(self.problem.draw.start)

    @property
    def first_layer(self) -> Float[Array, "neuron column"]:
        """Those of the weight vectors that training may move."""
        return self._network().first_layer(self.params)

    @property
    def vectors(self) -> AbstractVectorModel:
        """The data model, as one whose inputs are built from signals and noise vectors."""
        model = vector_model(self.problem.data)
        if model is None or not getattr(self.problem.network, "classes", ()):
            raise InputError(
                "Coefficients need inputs built from signals and noise vectors and filters with a class, got "
                f"{type(self.problem.data).__name__} with {type(self.problem.network).__name__}."
            )
        return model

    @property
    def noise(self) -> Float[Array, "sample vector column"]:
        """The noise vectors of the training set."""
        assert self.training.noise is not None
        return self.training.noise

    @property
    def class_signs(self) -> Float[Array, " class"]:
        return jnp.array(self._network().classes, float)

    def losses(self, outputs: Array, labels: Array) -> Array:
        """Each output's loss, where the objective is a mean of such."""
        if isinstance(self.problem.objective, Supervised):
            return self.problem.objective.loss(outputs, labels)
        raise InputError(f"{type(self.problem.objective).__name__} is not a mean of losses; use another probe.")

    def respond(self, products: Float[Array, "input patch row"]) -> Array:
        """The network's outputs for inputs given by their products with the weights."""
        return self.problem.respond(self.params, products)

    def _network(self) -> AbstractProductNetwork:
        if isinstance(self.problem.network, AbstractProductNetwork):
            return self.problem.network
        raise InputError(
            f"{type(self.problem.network).__name__} does not say which vectors meet the input; "
            "a probe of weights needs an AbstractProductNetwork."
        )


class Variable(NamedTuple):
    """One quantity a probe returns. Trailing dims are left out where the array has fewer axes."""

    dims: str = ""  # names, separated by spaces; the seed and the step come by themselves
    symbol: str = ""  # the paper's, in LaTeX
    meaning: str = ""
    units: str = "1"


class AbstractClock(Part):
    """When a probe is read."""


class AbstractSchedule(AbstractClock):
    """A clock whose times are known beforehand."""

    @abc.abstractmethod
    def times(self, steps: int) -> np.ndarray:
        """The steps, from 0 to the last, at which a run of that length is read."""


class Probe(eqx.Module):
    """A function of a view, with what is known about its results."""

    function: Callable[..., Any] = eqx.field(static=True)
    variables: tuple[tuple[str, Variable | None], ...] = eqx.field(static=True)
    sees: Sees = eqx.field(static=True, default=Sees.COORDINATES)
    options: tuple[tuple[str, Any], ...] = eqx.field(static=True, default=())
    clock: Any = eqx.field(static=True, default=None)  # None: the experiment's
    prepare: Callable[..., Any] | None = eqx.field(static=True, default=None)
    of: tuple[type, ...] = eqx.field(static=True, default=())  # kinds that the rest of the experiment must be of

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def settings(self) -> dict[str, Any]:
        """Its options with the values they have; an option named like a dim holds the values along it."""
        return {**(self.function.__kwdefaults__ or {}), **dict(self.options)}

    def on(self, clock) -> Probe:
        """The same probe on another clock."""
        if not isinstance(clock, AbstractClock):
            raise InputError(f"{self.name}.on needs a clock, such as every(10) or at_end, got {clock!r}.")
        return dataclasses.replace(self, clock=clock)

    def prepared(self, problem: AbstractReadableProblem) -> Any:
        """What is the same at every reading of one run, drawn once."""
        return self.prepare(problem, **dict(self.options)) if self.prepare is not None else None

    def __call__(self, view: View | None = None, /, **options) -> Any:
        if view is None:
            known = self.function.__kwdefaults__ or {}
            for name in options:
                if name not in known:
                    raise InputError(f"{self.name} has no option {name!r}; {did_you_mean(name, known)}")
            options = {name: self._checked(name, value) for name, value in options.items()}
            merged = tuple(sorted({**dict(self.options), **options}.items()))
            return dataclasses.replace(self, options=merged)
        if not isinstance(view, View):
            raise InputError(f"Options of {self.name} are given by name, for instance count=1000, got {view!r}.")
        problem = view.problem
        parts = {"data": problem.data, "network": problem.network, "objective": problem.objective}
        complaint = misfit(self.name, self.of, {**parts, "algorithm": view.algorithm}) if self.of else None
        if complaint:  # an experiment says so when it is made; this is for a view without one
            raise InputError(complaint)
        reading = self.function(view, **dict(self.options))
        if reading is None:
            raise InputError(f"The probe {self.name} must return an array, or a dictionary of arrays, got None.")
        if isinstance(reading, Mapping):
            return dict(reading)
        return {self.variables[0][0]: reading}

    def _checked(self, name: str, value: Any) -> Any:
        """An option: a whole number where a probe of featlab's has one, else whatever was given."""
        usual = (self.function.__kwdefaults__ or {})[name]
        kind = str(self.function.__annotations__.get(name, ""))
        counts = isinstance(usual, int) and not isinstance(usual, bool) and not (value is None and "None" in kind)
        if not counts or not self.function.__module__.startswith("featlab."):
            return value
        value, least = whole_if_exact(value), int(name == "count")
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MOST:
            raise InputError(
                f"{self.name}({name}=) must be a whole number from {least} to {MOST:,}, got {value!r}."
            )
        return value

    def number(self, view: View, variable: str = "") -> Array:
        """One of its results, the first if none is named, where that is one number."""
        reading, name = self(view), variable or self.variables[0][0]
        if name not in reading:
            raise InputError(f"{self.name} does not return {name!r}; {did_you_mean(name, reading)}")
        value = reading[name]
        if jnp.shape(value) != ():
            raise InputError(
                f"A level needs a probe of one number, and {self.name} has the shape {jnp.shape(value)}."
            )
        return value


def probe(
    *,
    sees: Sees = Sees.COORDINATES,
    prepare: Callable[..., Any] | None = None,
    of: tuple[type, ...] = (),
    **variables: Variable,
) -> Callable[[Callable], Probe]:
    """Make a function of a view a probe that returns these variables.

    `of` are the kinds of data, network, objective and algorithm that it needs; an experiment of others is refused.
    It `sees` no coordinates if rotating all vectors leaves its results as they are, and inner products only if it
    asks for nothing but the problem's own functions. `prepare(problem, **options)` draws once what every reading
    uses, and `view.prepared` holds it (or None, where nobody drew it).
    """
    for name, variable in variables.items():
        if not isinstance(variable, Variable):
            raise InputError(f"probe({name}=) must be a Variable, got {variable!r}; what it looks at is `sees`.")
    for kind in of:
        role_of(kind)  # refuses anything else
    return lambda function: Probe(function, tuple(variables.items()), sees, prepare=prepare, of=of)


def as_probe(candidate: Probe | Callable) -> Probe:
    """A probe; a plain function of a view is one whose dims have no names."""
    if isinstance(candidate, Probe):
        return candidate
    if not callable(candidate) or isinstance(candidate, type | Part):
        given = getattr(candidate, "__name__", candidate)
        raise InputError(f"A probe must be a function of a view, got {given!r}.")
    return Probe(candidate, ((getattr(candidate, "__name__", "probe"), None),))
