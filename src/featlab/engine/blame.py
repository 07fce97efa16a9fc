"""Code that is not featlab's and fails: the part, the line and the last word of JAX, in one sentence.

JAX's own tracebacks of such failures have eighty lines; with FEATLAB_TRACEBACK=1 they are shown.
"""

from __future__ import annotations

import os
import site
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import equinox as eqx
import jax

from featlab.core.validation import InputError, Part
from featlab.core.words import shortened
from featlab.experiment import Experiment
from featlab.probes import Probe
from featlab.text import foreign

_OTHERS = (*site.getsitepackages(), *sysconfig.get_paths().values(), "<frozen", str(Path(jax.__file__).parent))
_PACKAGE = str(Path(__file__).parent.parent)
_LONGEST = 110  # characters of what JAX said
_HINTS = {
    "TracerBoolConversionError": "write jnp.where for `if`",
    "TracerArrayConversionError": "use jax.numpy for numpy",
    "TracerIntegerConversionError": "this number is not known before the program runs",
    "ConcretizationTypeError": "this number is not known before the program runs",
    "NonConcreteBooleanIndexError": "write jnp.where for an index of truth values",
    "UnexpectedTracerError": "a function must not keep what it is given from one call to the next",
}


@contextmanager
def answered(experiment: Any) -> Iterator[None]:
    """Where an experiment is traced and computed: what fails in it is an InputError that says where."""
    try:
        yield
    except (InputError, Warning):  # warnings are errors for those who have asked for it
        raise
    except Exception as error:
        if os.environ.get("FEATLAB_TRACEBACK"):
            raise
        raise InputError(_sentence(error, experiment)) from None


def _sentence(error: Exception, experiment: Any) -> str:
    said = _said(error)
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
        return f"This takes more memory than there is ({said}): give fewer inputs, neurons or seeds at once."
    frames = list(traceback.walk_tb(error.__traceback__))
    theirs = [(frame, line) for frame, line in frames if _is_users(frame.f_code.co_filename)]
    more = "; FEATLAB_TRACEBACK=1 shows all"
    if theirs:
        frame, line = theirs[-1]
        who = _owner([frame for frame, _ in theirs], experiment)
        return f"{who} fails at line {line} of {_short(frame.f_code.co_filename)}: {said}{more}."
    who, own = _innermost([frame for frame, _ in frames]), foreign(experiment)
    with_own = f" with {', '.join(own[:3])}" if own else ""
    return f"{who} cannot be computed{with_own}: {said}{more}."


def _said(error: Exception) -> str:
    """The first sentence of an error, and what to do about it where that is known."""
    first = str(error).strip().splitlines()[:1]
    text = " ".join("".join(first).split())
    text = shortened(text, _LONGEST)
    kinds = {kind.__name__ for kind in type(error).mro()}
    hint = next((f" ({hint})" for kind, hint in _HINTS.items() if kind in kinds), "")
    return f"{type(error).__name__}: {text.rstrip('.')}{hint}" if text else type(error).__name__


def _is_users(file: str) -> bool:
    return not file.startswith((_PACKAGE, *_OTHERS))


def _short(file: str) -> str:
    return repr(file if len(file) < 60 else f".../{Path(file).name}")


def _owner(frames: list[FrameType], experiment: Any) -> str:
    """The part, or the function in a part, that these frames of the user's belong to."""
    functions = {function.__code__: name for name, function in _functions(experiment, "")}
    for frame in frames:
        if frame.f_code in functions:
            return functions[frame.f_code]
        if isinstance(frame.f_locals.get("self"), Part):
            return type(frame.f_locals["self"]).__name__
    return frames[-1].f_code.co_name


def _functions(part: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Every plain function in an experiment, with words for where it stands."""
    if isinstance(part, Probe):
        yield f"the probe {part.name}", part.function
    elif isinstance(part, eqx.Module):
        for field, value in vars(part).items():
            yield from _functions(value, f"{type(part).__name__}.{field}")
    elif isinstance(part, tuple | list):
        for one in part:
            yield from _functions(one, place)
    elif hasattr(part, "__code__"):
        yield f"{place} ({part.__name__})", part


def _innermost(frames: list[FrameType]) -> str:
    """The part of featlab's that was at work."""
    for frame in reversed(frames):
        one = frame.f_locals.get("self")
        if isinstance(one, Probe):
            return f"the probe {one.name}"
        if isinstance(one, Part) and not isinstance(one, Experiment):
            return type(one).__name__
    return "This experiment"
