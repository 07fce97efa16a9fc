"""One public name of featlab as Markdown: its signature, its docstring, its fields with what they take."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import io
import re
import textwrap
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from markdown_text import fence, formula, prose, symbols, table

_NONE = dataclasses.MISSING


def described(module: str, name: str) -> str:
    """The entry of `module.name`, in the Python domain of the site."""
    thing = getattr(importlib.import_module(module), name)
    probe = importlib.import_module("featlab.probes").Probe
    if isinstance(thing, probe):
        return _of_probe(name, thing)
    if inspect.isclass(thing):
        return _of_class(name, thing)
    if inspect.isfunction(thing):
        return _entry("py:function", f"{name}({_arguments(thing)})", _words(thing))
    return _entry("py:data", name, _words(type(thing)))  # one object of a class of its own, such as at_end


def with_unnamed(module: str, names: list[str]) -> list[str]:
    """The names, and in place of `...` all public ones of the module that no page in docs/api has."""
    if "..." not in names:
        return names
    pages = "\n".join(page.read_text() for page in sorted((Path(__file__).parents[1] / "api").glob("*.md")))
    blocks = re.findall(rf"```\{{public\}} {re.escape(module)}\n(.*?)```", pages, re.DOTALL)
    named = {name for block in blocks for name in block.split()}
    things = vars(importlib.import_module(module)).items()
    new = [name for name, thing in things if name[0] != "_" and not isinstance(thing, ModuleType)]
    return [name for name in names if name != "..."] + sorted(set(new) - named)


def variables() -> list[tuple[str, str, str, str]]:
    """Every variable that a probe can record: its name, symbol and meaning, and the probes, sorted by name."""
    probes = importlib.import_module("featlab.probes")
    found: dict[str, tuple[str, str, list[str]]] = {}
    for name, thing in vars(probes).items():
        for variable, known in thing.variables if isinstance(thing, probes.Probe) else ():
            found.setdefault(variable, (known.symbol, known.meaning, []))[2].append(f"`{name}`")
    return [
        (f"`{name}`", formula(symbol), meaning, ", ".join(by))
        for name, (symbol, meaning, by) in sorted(found.items())
    ]


def declared_fields() -> list[tuple[str, str, str]]:
    """Every symbol that a field of a part declares: what it means, and the fields, sorted by symbol."""
    from featlab.core.validation import Part
    from featlab.text import known_names

    found: dict[tuple[str, str], list[str]] = {}
    for name, thing in known_names().items():
        for field in dataclasses.fields(thing) if inspect.isclass(thing) and issubclass(thing, Part) else ():
            kind = field.metadata.get("kind")
            if kind is not None and kind.symbol:
                found.setdefault((kind.symbol, kind.means), []).append(f"`{name}.{field.name}`")
    return [
        (formula(symbol), means, ", ".join(by))
        for (symbol, means), by in sorted(
            found.items(), key=lambda item: (item[0][0].strip("\\|").lower(), item[0])
        )
    ]


def _entry(kind: str, head: str, *parts: str, options: tuple[str, ...] = ()) -> str:
    return fence(f"{{{kind}}}", head, "\n\n".join(part for part in parts if part), options=options)


def _of_probe(name: str, probe: Any) -> str:
    options = inspect.signature(probe.function).parameters.values()
    given = ", ".join(f"{one.name}={_value(one.default)}" for one in options if one.kind is one.KEYWORD_ONLY)
    rows = [
        (f"`{variable}`", formula(known.symbol), known.meaning, " ".join(f"`{dim}`" for dim in known.dims.split()))
        for variable, known in probe.variables
    ]
    results = table(("variable", "symbol", "meaning", "dims beside seed and step"), rows)
    return _entry("py:data", f"{name}({given})" if given else name, _words(probe.function), results)


def _of_class(name: str, kind: type) -> str:
    rows = list(field_rows(kind))
    fields = table(("field", "takes", "default", ""), rows) if rows else ""
    head = f"{name}({_constructor(kind)})"
    options = (":single-line-parameter-list:",)  # the table has them one by one
    options += (":abstract:",) if inspect.isabstract(kind) else ()
    return _entry("py:class", head, _words(kind), fields, *_methods(kind), options=options)


def _methods(kind: type) -> Iterator[str]:
    """What the class itself defines and explains; what it takes over is explained where it comes from."""
    fields = {one.name for one in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    for name, member in vars(kind).items():
        if name in fields or name == "examples" or (name.startswith("_") and name != "__call__"):
            continue
        if isinstance(member, property):
            if member.fget is not None and member.fget.__doc__:
                yield _entry("py:property", name, _words(member.fget))
            continue
        made = inspect.unwrap(getattr(member, "__func__", member))
        if inspect.isfunction(made) and made.__doc__:
            options = tuple(f":{one.__name__}:" for one in (classmethod, staticmethod) if isinstance(member, one))
            options += (":abstractmethod:",) if getattr(made, "__isabstractmethod__", False) else ()
            arguments = _arguments(made, method=not isinstance(member, staticmethod))
            yield _entry("py:method", f"{name}({arguments})", _words(made), options=options)


# ---- signatures


def _arguments(function: Callable, *, method: bool = False) -> str:
    """As written in the source, so that a default that has a name is shown by its name."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function)))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    arguments = tree.args
    if method:
        (arguments.posonlyargs or arguments.args).pop(0)
    return ast.unparse(arguments)


def _constructor(kind: type) -> str:
    if dataclasses.is_dataclass(kind):
        known = {one.name: one.default for one in dataclasses.fields(kind) if one.init}
    elif hasattr(kind, "_fields"):  # a named tuple
        known = dict.fromkeys(kind._fields, _NONE) | kind._field_defaults
    else:
        made = vars(kind).get("__init__")
        return "" if made is None else _arguments(made, method=True)
    return ", ".join(name if value is _NONE else f"{name}={_value(value)}" for name, value in known.items())


def _value(value: Any) -> str:
    """A default as one would write it."""
    from featlab.text import describe

    return getattr(value, "__name__", None) or (
        describe(value) if dataclasses.is_dataclass(value) else repr(value)
    )


# ---- fields


class _Written(NamedTuple):
    """A field as its source has it."""

    annotation: str
    comment: str


def field_rows(kind: type) -> Iterator[tuple[str, str, str, str]]:
    """Each field with what it takes, its default, and its words: those of its declaration, then its comment."""
    written = _written(kind)
    if dataclasses.is_dataclass(kind):
        fields = [one for one in dataclasses.fields(kind) if one.init]
        checks = {one.name: one.metadata.get("check") for one in fields}
        words = {one.name: _declared(one.metadata.get("kind")) for one in fields}
        defaults = {one.name: one.default for one in dataclasses.fields(kind) if one.default is not _NONE}
    else:
        checks, words = dict.fromkeys(getattr(kind, "_fields", ())), {}
        defaults = getattr(kind, "_field_defaults", {})
    for name, check in checks.items():
        source = written.get(name, _Written("", ""))
        # The words with which a wrong value is refused say best what is taken.
        takes = (check(object()) if check is not None else None) or f"`{source.annotation}`"
        default = f"`{_value(defaults[name])}`" if name in defaults else ""
        said = filter(None, (words.get(name), symbols(source.comment)))
        yield f"`{name}`", takes, default, "; ".join(said)


def _declared(kind: Any) -> str:
    """Symbol and meaning, as far as the declaration has them."""
    return ", ".join(filter(None, (formula(kind.symbol), kind.means))) if kind is not None else ""


def _written(kind: type) -> dict[str, _Written]:
    """The fields of the class and of those it comes from; the nearest that says something decides."""
    found: dict[str, _Written] = {}
    for one in reversed(kind.__mro__):
        if one.__module__.startswith("featlab"):
            for name, field in _own_fields(one).items():
                before = found.get(name, field)
                found[name] = _Written(field.annotation, field.comment or before.comment)
    return found


def _own_fields(kind: type) -> dict[str, _Written]:
    source = textwrap.dedent(inspect.getsource(kind))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {t.start[0]: t.string.lstrip("# ") for t in tokens if t.type == tokenize.COMMENT}
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    return {
        line.target.id: _Written(ast.unparse(line.annotation), comments.get(line.end_lineno or 0, ""))
        for line in tree.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
    }


def _words(thing: Any) -> str:
    """Its own docstring, as Markdown."""
    return prose(inspect.cleandoc(thing.__doc__ or ""))
