"""A fingerprint of what is claimed: it changes with a claim's code, and not with words or places of modules."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import featlab
from featlab.claims import cells, intervals, judge
from featlab.claims import claim as rules
from featlab.claims.claim import Claim
from featlab.core.source import bare_code

SHARED = ("featlab.claims.settings", "featlab.theory")  # where a claim's own numbers may lie


def source_of(claim: Claim) -> str:
    """Of the claim's code, its settings and theory, the files beside it that it imports, the judge's margins.

    Comments and docstrings are left out, and of imports where from, so that a module may move; not under which
    name, or one verb could pass for another.
    """
    own = sys.modules[type(claim).__module__].__file__
    files = [Path(own)] if own is not None else []
    margins = {
        name: value
        for part in (judge, intervals, cells, rules)
        for name, value in vars(part).items()
        if name.isupper() and isinstance(value, float | int | str | tuple | dict)
    }
    code = [bare_code(file) for file in (*files, *_imported(files))] + [repr(sorted(margins.items()))]
    return hashlib.sha256("\n".join(code).encode()).hexdigest()[:12]


def _imported(files: list[Path]) -> list[Path]:
    """The settings and theory that these files import, and files beside them, and those they import in turn."""
    found, new = set(files), list(files)
    while new:
        file = new.pop()
        there = {path for path in _candidates(file) if path.is_file()} - found
        new += there
        found |= there
    return sorted(found - set(files), key=lambda path: (path.parent.name, path.name))


def _candidates(file: Path) -> Iterator[Path]:
    """Where a file's imports may lie: in the package those that are shared; elsewhere, in the file's folder."""
    package = Path(featlab.__file__).parent
    beside = None if package in file.parents else file.parent
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module.startswith(SHARED):
                yield from (
                    path for path in _files(package, module.split(".")[1:], node.names) if path.stem != "__init__"
                )
            elif beside is not None:
                above = beside if node.level < 2 else beside.parents[node.level - 2]
                yield from _files(above, module.split(".") if module else [], node.names)
        elif isinstance(node, ast.Import) and beside is not None:
            for one in node.names:
                yield from _files(beside, one.name.split("."), [])


def _files(folder: Path, module: list[str], names: list[ast.alias]) -> Iterator[Path]:
    """Of a module, or of names in it that may be modules themselves."""
    for parts in (module, *([*module, one.name] for one in names)):
        if parts:
            path = folder.joinpath(*parts)
            yield from (path.with_suffix(".py"), path / "__init__.py")
