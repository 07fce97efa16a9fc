"""A new part is one file: what the files of a folder make is public by the folder's name, listed there or not."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection
from typing import Any

from featlab.core.validation import Part


def gather(package: str, names: dict[str, Any], *kinds: type, but: Collection[str] = ()) -> None:
    """Add to a folder's names every part that its files make and its list lacks; the list is for type checkers.

    A part is a class of parts or an object of `kinds`. Names that begin with an underscore or with `Abstract` stay
    inside unless they are listed, and so do those in `but`.
    """
    for found in pkgutil.iter_modules(names["__path__"]):
        if found.name.startswith("_"):
            continue
        module = importlib.import_module(f"{package}.{found.name}")
        for name, thing in vars(module).items():
            inner = name.startswith(("_", "Abstract")) or name in but or name in names
            if not inner and _made_in(module.__name__, thing, kinds):
                names[name] = thing


def _made_in(module: str, thing: Any, kinds: tuple[type, ...]) -> bool:
    if isinstance(thing, type):
        return issubclass(thing, Part) and thing.__module__ == module
    return isinstance(thing, kinds) and getattr(getattr(thing, "function", None), "__module__", None) == module
