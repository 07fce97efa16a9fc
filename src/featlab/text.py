"""Experiments as text: what a Dataset remembers, a TOML file says and an override changes.

The text of an experiment is the expression that makes it, `Experiment(data=SignalNoise(n=100, ...), ...)`. It is
read back without being executed: numbers, arithmetic, featlab's names, those of JAX and those of the user's own
modules that are already imported are understood, and nothing of Python's or of other packages'.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import math
import operator
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx

from featlab.core.space import Ambient, Span
from featlab.core.validation import InputError, Part, did_you_mean
from featlab.core.words import shortened
from featlab.experiment import Experiment
from featlab.probes import Probe, as_probe

_Part = TypeVar("_Part")
_FOLDERS = ("data", "networks", "objectives", "algorithms", "probes")
_SETTINGS = ("title", "seeds", "compare")  # what a file says beside the experiment
_TRUSTED = ("featlab", "jax", "jaxlib", "optax", "equinox", "__main__")
_NUMBERS = {"inf": math.inf, "nan": math.nan, "true": True, "false": False, "none": None}
_ARITHMETIC = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def describe(value: Any) -> str:
    """The expression that makes this value; `rebuild` reads it back."""
    for name, known in known_names().items():
        if value is known:
            return name
    if isinstance(value, Probe) and _is_findable(value):
        options = ", ".join(f"{name}={describe(option)}" for name, option in value.options)
        text = _qualified(value.function) + (f"({options})" if options else "")
        return text if value.clock is None else f"{text}.on({describe(value.clock)})"
    if isinstance(value, eqx.Module) and not isinstance(value, Probe):
        fields = [field for field in dataclasses.fields(value) if field.init]
        inside = ", ".join(f"{field.name}={describe(getattr(value, field.name))}" for field in fields)
        return f"{_qualified(type(value))}({inside})"
    if isinstance(value, bool | int | str | None):
        return repr(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        return "(" + "".join(f"{describe(item)}, " for item in value) + ")"
    if "<" not in getattr(value, "__qualname__", "<"):  # neither a lambda nor inside a function
        return _qualified(value)
    return f"unwritable({type(value).__name__!r})"


def rebuild(text: str) -> Any:
    """What `describe` described, for instance `rebuild(dataset.attrs["experiment"])`."""
    complaint = f"{shortened(text, 80)!r} is not an expression such as SignalNoise(n=100, d=inf, snr=0.1)."
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a null byte; brackets in brackets
        raise InputError(complaint) from None
    try:
        return _value(tree.body)
    except RecursionError:
        raise InputError(complaint) from None


def load_experiment(path: str | Path) -> tuple[Experiment, dict[str, Any]]:
    """The experiment a TOML file states, and what else it says: title, seeds, algorithms to compare."""
    path = Path(path)
    if not path.is_file():
        raise InputError(
            f"There is no file {str(path)!r}; give the path of a TOML file that states an experiment."
        )
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError, OSError) as error:  # tomllib's own errors, and those of its numbers
        raise InputError(f"{str(path)!r} is not a TOML file: {error}.") from None
    settings = {key: table.pop(key) for key in _SETTINGS if key in table}
    fields = {field.name for field in dataclasses.fields(Experiment)}
    for key in table:
        if key not in fields:
            raise InputError(f"Experiment has no field {key!r}; {did_you_mean(key, fields | set(_SETTINGS))}")
    return Experiment(**{key: _from_toml(item) for key, item in table.items()}), settings


def override(experiment: Experiment, changes: Sequence[str]) -> Experiment:
    """The experiment with changes such as `data.snr=0.2` made, those of one part together."""
    parsed: dict[str, Any] = {}
    for change in changes:
        path, equals, text = change.partition("=")
        if not equals or not path:
            raise InputError(f"A change must have the form data.snr=0.2, got {change!r}.")
        parsed[path] = _literal(text)
    return changed(experiment, parsed)


def changed(part: _Part, changes: Mapping[str, Any]) -> _Part:
    """An experiment, or a part, with dotted fields changed, such as {"data.snr": 0.2}, all of a part together."""
    nested: dict[str, Any] = {}
    for path, value in changes.items():
        *way, last = path.split(".")
        place = nested
        for step in way:
            place = place.setdefault(step, {})
            if not isinstance(place, dict):
                raise InputError(f"{path!r} changes a part that another change replaces.")
        place[last] = value
    return _changed(part, nested)


def known_names() -> dict[str, Any]:
    """Everything an experiment can be made of, by name: found by walking featlab's folders."""
    found: dict[str, Any] = {"Experiment": Experiment, "Span": Span, "Ambient": Ambient}
    for folder in _FOLDERS:
        module = importlib.import_module(f"featlab.{folder}")
        found |= {name: thing for name, thing in vars(module).items() if _is_piece(name, thing)}
    return found


def _is_piece(name: str, thing: Any) -> bool:
    if name.startswith(("_", "Abstract", "as_")) or name == "probe":
        return False
    if isinstance(thing, type):
        return issubclass(thing, Part)
    return isinstance(thing, Part | Probe) or inspect.isfunction(thing)


def _is_findable(probe: Probe) -> bool:
    """Whether a probe's name leads back to it: to a plain function, or to a probe that returns the same."""
    function = probe.function
    home = sys.modules.get(function.__module__)  # none, for a function that was made by exec
    found = known_names().get(function.__name__) or getattr(home, function.__name__, None)
    found = as_probe(found) if inspect.isfunction(found) else found
    return isinstance(found, Probe) and (found.function, found.variables) == (function, probe.variables)


def _qualified(thing: Any) -> str:
    known = known_names().get(thing.__name__)
    known = known.function if isinstance(known, Probe) and known is not thing else known
    return thing.__name__ if known is thing else f"{thing.__module__}.{thing.__qualname__}"


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return _named(name)
        case ast.Attribute():
            return _imported(ast.unparse(node))
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return tuple(_value(item) for item in items)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            try:
                return _ARITHMETIC[type(op)](float(_number(left)), float(_number(right)))
            except (ZeroDivisionError, OverflowError):
                raise InputError(f"{ast.unparse(node)!r} is not a finite number.") from None
        case ast.Call(func=ast.Attribute(value=target, attr="on"), args=[clock], keywords=[]):
            probe = _value(target)
            if isinstance(probe, Probe):
                return probe.on(_value(clock))
        case ast.Call(func=function, args=arguments, keywords=keywords):
            return _called(function, arguments, keywords)
    raise InputError(f"{ast.unparse(node)!r} is not something an experiment is made of.")


def _called(function: ast.expr, arguments: list[ast.expr], keywords: list[ast.keyword]) -> Any:
    if isinstance(function, ast.Name) and function.id == "unwritable":
        what = f"a {_value(arguments[0])}" if arguments else "something"
        raise InputError(f"This experiment holds {what}, which only the code that made it can make again.")
    kind = _value(function)
    names = [keyword.arg for keyword in keywords]
    if None in names or any(isinstance(argument, ast.Starred) for argument in arguments):
        raise InputError(f"{ast.unparse(function)}(...) is given its values one by one, not by * or **.")
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{ast.unparse(function)} is given {name!r} twice; keep one.")
    fields = {str(keyword.arg): _value(keyword.value) for keyword in keywords}
    return _made(kind, ast.unparse(function), [_value(argument) for argument in arguments], fields)


def _made(kind: Any, name: str, positional: list[Any], fields: dict[str, Any]) -> Any:
    """A part with these values, or a probe with these options; nothing else is called by text."""
    if isinstance(kind, Probe):
        return kind(*positional, **fields)
    if not (isinstance(kind, type) and issubclass(kind, Part)):
        raise InputError(f"{name} cannot be called here: only parts of an experiment can.")
    if inspect.isabstract(kind):
        raise InputError(f"{name} is what such parts have in common, and no part itself: name one of them.")
    return kind(*positional, **fields)


def _named(name: str) -> Any:
    if name.lower() in _NUMBERS:
        return _NUMBERS[name.lower()]
    known = known_names()
    if name not in known:
        raise InputError(f"{name!r} is not a name featlab knows; {did_you_mean(name, known)}")
    return known[name]


def _imported(dotted: str) -> Any:
    """A name of the user's own, from a module that is imported already: text never imports anything."""
    module_name, _, rest = dotted.partition(".")
    parts = rest.split(".")
    while module_name not in sys.modules or not hasattr(sys.modules[module_name], parts[0]):
        if len(parts) < 2:
            raise InputError(f"{dotted!r} is not a name featlab knows; import the module that defines it first.")
        module_name, parts = f"{module_name}.{parts[0]}", parts[1:]
    if not _is_trusted(module_name):
        raise InputError(
            f"{dotted!r} cannot stand in the text of an experiment: only names of featlab, of JAX and of modules "
            "of your own can."
        )
    found = sys.modules[module_name]
    for part in parts:
        found = getattr(found, part, None)
    home = getattr(found, "__module__", None) or module_name
    if not _is_trusted(home):  # what a module of one's own has imported from elsewhere
        raise InputError(f"{dotted!r} is {home}.{parts[-1]}, which cannot stand in the text of an experiment.")
    return found


def _is_trusted(module: str) -> bool:
    """Whether text may name what is in a module: parts and functions of arrays, not what acts on the machine."""
    package = module.partition(".")[0]
    if package in _TRUSTED:
        return True
    if package in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(package), "__file__", None) or getattr(
        sys.modules.get(module), "__file__", None
    )
    return file is None or not {"site-packages", "dist-packages"} & set(Path(file).parts)


def _number(node: ast.expr) -> float:
    value = _value(node)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{ast.unparse(node)!r} is not a number.")
    return value


def _literal(text: str) -> Any:
    """A value typed by hand. A word that means nothing stays a word, for the field to refuse by name."""
    try:
        return rebuild(text)
    except InputError:
        if text.strip().replace(".", "").replace("_", "").isalnum():
            return text
        raise


def _from_toml(item: Any) -> Any:
    if isinstance(item, dict):
        kind = item.get("kind")
        if not isinstance(kind, str):
            raise InputError('A table of an experiment needs kind = "...", for instance kind = "SignalNoise".')
        named, fields = _named(kind), {k: _from_toml(v) for k, v in item.items() if k != "kind"}
        if isinstance(named, type) or isinstance(named, Probe) and fields:
            return _made(named, kind, [], fields)
        if fields:
            raise InputError(f"{kind} takes no settings, got {', '.join(fields)}.")
        return named
    if isinstance(item, list):
        return tuple(_from_toml(one) for one in item)
    return rebuild(item) if isinstance(item, str) else item


def _changed(target: Any, changes: dict[str, Any]) -> Any:
    fields = {field.name for field in dataclasses.fields(target)} if dataclasses.is_dataclass(target) else set()
    for name in changes:
        if not fields:
            raise InputError(f"{target!r} has no fields to change, so {name!r} means nothing there.")
        if name not in fields:
            raise InputError(f"{type(target).__name__} has no field {name!r}; {did_you_mean(name, fields)}")
    made = {k: _changed(getattr(target, k), v) if isinstance(v, dict) else v for k, v in changes.items()}
    return dataclasses.replace(target, **made)  # type: ignore


def made_of(part: Any) -> set[str]:
    """The modules that define what is in an experiment, or in parts of one."""
    return {module for module, _ in _homes(part)}


def foreign(part: Any) -> list[str]:
    """The names of everything in an experiment, or in parts of one, that is not featlab's own."""
    return sorted({f"{module}.{name}" for module, name in _homes(part) if not module.startswith("featlab.")})


def _homes(part: Any) -> Iterator[tuple[str, str]]:
    """Module and name of every kind of part and every function in an experiment."""
    for value in _everything(part, set()):
        kind = value if isinstance(value, type) or not isinstance(value, eqx.Module) else type(value)
        if callable(kind):
            yield getattr(kind, "__module__", None) or "", getattr(kind, "__qualname__", type(kind).__name__)


def _everything(value: Any, seen: set[int]) -> Iterator[Any]:
    if id(value) in seen:
        return
    seen.add(id(value))
    yield value
    if isinstance(value, eqx.Module):
        for field in vars(value).values():
            yield from _everything(field, seen)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _everything(item, seen)
