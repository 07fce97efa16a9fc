r"""The fields of an experiment's parts: what each may hold, said once, checked when the part is made.

A field is declared with the kind of value it takes and with its words: the paper's symbol, what it means, and
the span of sensible values. A wrong value is answered with one sentence that names the field, what was expected
and what came; axes, sliders and pages of the documentation take symbol and meaning from here:

    class TwoLayerCNN(Part):
        width: int = whole(at_least=1, symbol="m", means="filters in each class", span=(1, 256))
        init_scale: float = real(default=0.01, at_least=0, symbol=r"\sigma_0", means="scale of the start")
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import math
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.core


class Kind(NamedTuple):
    """What a field holds and what it is called, for those who ask: a slider, an axis, a table, an error."""

    name: str  # whole, real, probability, flag, part or function
    low: float = -math.inf
    high: float = math.inf
    optional: bool = False
    symbol: str = ""  # the paper's, in LaTeX
    means: str = ""  # a few words that go on where a sentence has named the field
    span: tuple[float, float] | None = None  # of sensible values; left out, it depends on the usual one
    told: bool = False  # a program is told it when it runs, so that another value needs no new compilation


MOST = 2**31 - 1  # whole numbers are computed with in 32 bits
SMALLEST = 1.2e-38  # a real number but 0, in 32 bits


class InputError(ValueError):
    """Something the user gave cannot be used; the message is one sentence that says what to change."""


_SEES = "sees = fl.Sees.VECTORS"  # or another level
_FORMER = {"equivariant": _SEES, "combines": _SEES, "separable": _SEES, "in_products": _SEES}
_FORMER |= {"reads_inputs": "whole_inputs = True"}


class Part(eqx.Module):
    """A frozen ingredient of an experiment whose declared fields are checked when it is made."""

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        for name in sorted(_FORMER.keys() & vars(cls).keys()):
            raise InputError(f"{cls.__name__}.{name} says nothing any more: write `{_FORMER[name]}` instead.")

    def __new__(cls, *args, **fields):
        parameters = _parameters(cls)
        if any(parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) for parameter in parameters):
            return super().__new__(cls)  # a constructor that takes anything
        known = [parameter.name for parameter in parameters]
        if len(args) > len(known):
            raise InputError(
                f"{cls.__name__} takes at most {len(known)} values ({', '.join(known)}), got {len(args)}."
            )
        for name in fields:
            if name not in known:
                raise InputError(f"{cls.__name__} has no field {name!r}; {did_you_mean(name, known)}")
        rest = [p for p in parameters[len(args) :] if p.default is p.empty and p.name not in fields]
        if rest:
            names = ", ".join(p.name for p in rest)
            raise InputError(
                f"{cls.__name__} needs {names}, which {'was' if len(rest) == 1 else 'were'} not given."
            )
        return super().__new__(cls)

    def __check_init__(self):
        for field in dataclasses.fields(self):
            check = field.metadata.get("check")
            value = getattr(self, field.name)
            if check is not None and not _is_traced(value):
                complaint = check(value)
                if complaint:
                    means = field.metadata["kind"].means
                    known = means in ("", field.name.replace("_", " "))
                    raise InputError(
                        f"{type(self).__name__}.{field.name} must be {complaint}, got {value!r}"
                        f"{'' if known else f'; it stands for {means}'}."
                    )

    def __reduce__(self):
        return _made_again, (type(self), dict(vars(self)))

    @classmethod
    def examples(cls) -> Iterable[Part]:
        """Small instances that together show every variant; the conformance tests run each of them."""
        return (cls(),)


@functools.cache
def _parameters(cls: type) -> list[inspect.Parameter]:
    return list(inspect.signature(cls.__init__).parameters.values())[1:]


def _made_again(cls: type[Part], values: dict[str, Any]) -> Part:
    """A copy, from here or from another process: its fields were checked when it was made."""
    made = object.__new__(cls)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


def kind_of(part: Any, name: str) -> Kind | None:
    """What a field of a part, or of a class of parts, was declared to hold; nothing where it was not declared."""
    fields = dataclasses.fields(part) if dataclasses.is_dataclass(part) else ()
    return next((field.metadata.get("kind") for field in fields if field.name == name), None)


def whole(
    *,
    default: Any = dataclasses.MISSING,
    at_least: int = 1,
    optional: bool = False,
    symbol: str = "",
    means: str = "",
    span: tuple[float, float] | None = None,
    told: bool = False,
) -> Any:
    """A whole number: 3, not 3.5, not True. One that code uses as it would an array may be `told`."""

    def check(value):
        if value is None and optional:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
            return f"a whole number of at least {at_least}"
        if value > MOST:
            return f"a whole number of at most {MOST:,}"

    kind = Kind("whole", at_least, math.inf, optional, symbol, means, span, told)
    return _field(check, whole_if_exact, default, kind)


def real(
    *,
    default: Any = dataclasses.MISSING,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    infinite: bool = False,
    optional: bool = False,
    keep_whole: bool = False,
    symbol: str = "",
    means: str = "",
    span: tuple[float, float] | None = None,
) -> Any:
    """A number, kept as a float so that another value of it needs no new compilation.

    With `keep_whole` a whole number stays one, and is compiled in: an integer power is a product.
    """
    bounds = [f"above {above:g}"] if above is not None else []
    bounds += [f"of at least {at_least:g}"] if at_least is not None else []
    bounds += [f"below {below:g}"] if below is not None else []
    expected = " ".join(["a number" if infinite else "a finite number", " and ".join(bounds)]).strip()

    def check(value):
        if value is None and optional:
            return None
        good = (
            isinstance(value, (int, float) if keep_whole else float)
            and not isinstance(value, bool)
            and not math.isnan(value)
            and (infinite or math.isfinite(value))
            and (above is None or value > above)
            and (at_least is None or value >= at_least)
            and (below is None or value < below)
        )
        if good and value is not None and 0 < abs(value) < SMALLEST:
            return f"{expected} and not below {SMALLEST:g} in size, which float32 cannot hold"
        return None if good else expected

    ends = [-math.inf if bound is None else bound for bound in (above, at_least)]
    kind = Kind("real", max(ends), math.inf if below is None else below, optional, symbol, means, span)
    return _field(check, whole_if_exact if keep_whole else _as_float, default, kind)


def probability(
    *,
    default: Any = dataclasses.MISSING,
    optional: bool = False,
    symbol: str = "",
    means: str = "",
    span: tuple[float, float] | None = None,
) -> Any:
    """A number from 0 to 1."""

    def check(value):
        if value is None and optional:
            return None
        if not isinstance(value, float) or not 0.0 <= value <= 1.0:
            return "a probability, a number from 0 to 1"

    return _field(check, _as_float, default, Kind("probability", 0.0, 1.0, optional, symbol, means, span))


def flag(*, default: Any = dataclasses.MISSING, means: str = "") -> Any:
    """True or False."""

    def check(value):
        if not isinstance(value, bool):
            return "true or false"

    return _field(check, lambda value: value, default, Kind("flag", means=means))


def part(kind: type | tuple[type, ...], named: str, *, default: Any = dataclasses.MISSING) -> Any:
    """Another part of the given kind."""

    def check(value):
        if not isinstance(value, kind):
            return named

    return _field(check, lambda value: value, default, Kind("part"))


def function(
    named: str,
    *,
    default: Any = dataclasses.MISSING,
    each: bool = False,
    symbol: str = "",
    means: str = "",
) -> Any:
    """A plain function, or an object that can be called; with `each`, one of each number by itself."""

    def check(value):
        if isinstance(value, type):
            return f"{named} (with its brackets: {value.__name__}(...))"
        if not callable(value):
            return named
        made = _shape_made(value) if each and isinstance(value, FunctionType) else None
        if made not in (None, _TRIED):
            return f"{named}, which keeps the shape of what it is given; from {_TRIED} it makes {made}"

    return _field(check, lambda value: value, default, Kind("function", symbol=symbol, means=means))


_TRIED = (3, 2)


@functools.lru_cache(maxsize=1000)
def _shape_made(activation: Callable) -> tuple[int, ...] | None:
    """The shape of what it makes of the one that is tried; None where JAX cannot trace it, which is said later."""
    try:
        return jax.eval_shape(activation, jax.ShapeDtypeStruct(_TRIED, float)).shape
    except Exception:  # code of the user's own may raise anything
        return None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of an error sentence about an unknown name: the nearest known one, or all of them."""
    known = sorted(known)
    alike = [name for name in known if name.lower() == word.lower()]
    near = alike or difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}."


def _field(check: Callable[[Any], str | None], converter: Callable, default: Any, kind: Kind) -> Any:
    if kind.span is not None and not kind.low <= kind.span[0] < kind.span[1] <= kind.high:
        raise InputError(
            f"The span of {kind.means!r} must be two rising numbers from {kind.low:g} to {kind.high:g}, "
            f"got {kind.span}."
        )
    complaint = None if default is dataclasses.MISSING else check(converter(default))
    if complaint:
        raise InputError(f"The default of {kind.means!r} must be {complaint}, got {default!r}.")
    return eqx.field(default=default, converter=converter, metadata={"check": check, "kind": kind})


def _is_traced(value) -> bool:
    return isinstance(value, jax.Array)


def _as_float(value):
    value = _unwrapped(value)
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def whole_if_exact(value):
    """3.0 and NumPy's 3 as 3; anything else as it is."""
    value = _unwrapped(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _unwrapped(value):
    """NumPy's and JAX's scalars become Python's: a value from `np.linspace` is as good as a literal."""
    known = type(value).__module__ == "numpy" or (_is_traced(value) and not isinstance(value, jax.core.Tracer))
    return value.item() if known and getattr(value, "ndim", 1) == 0 else value
