"""What code says, without its words: a fingerprint that changes with what is computed, not with how it is told.

Comments and docstrings are left out, and of imports where from, so that a module may move; not under which name,
or one function could pass for another.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from featlab.core.validation import InputError

PACKAGE = Path(__file__).parent.parent
# Files that check, describe and send what is computed elsewhere: they do not count.
_SAYS = (
    "text.py",
    "core/validation.py",
    "core/words.py",
    "core/source.py",
    "engine/pickled.py",
    "engine/compiled.py",
)
_READ = {file: file.stat().st_mtime_ns for file in PACKAGE.rglob("*.py")}  # about when this process read the code


def bare_code(file: Path) -> str:
    """The code of a file without comments, docstrings and the places of imports."""
    bare = _Bare()
    tree = bare.visit(_tree(file))
    return f"{ast.dump(tree)}\n{sorted(bare.renamed)}"


def fingerprint(modules: Iterable[str]) -> str:
    """Of the code of these modules of featlab's, and of every one that they use in turn."""
    return _fingerprint(frozenset(modules))


def used_by(modules: Iterable[str]) -> list[Path]:
    """The files of these modules, and of all from which they import a name, in turn."""
    found, new = set[Path](), [file for module in modules for file in _defining(module, None)]
    while new:
        file = new.pop()
        if file not in found and str(file.relative_to(PACKAGE)) not in _SAYS:
            found.add(file)
            new += _imports(file)
    return sorted(found)


@cache
def _fingerprint(modules: frozenset[str]) -> str:
    files = used_by(modules)
    for file in files:
        if file.stat().st_mtime_ns != _READ.get(file):
            raise InputError(
                f"{str(file)!r} was changed after this process had read it, so its results cannot be stored under "
                "the code that made them; start Python anew."
            )
    return hashlib.blake2b("\n".join(sorted(map(bare_code, files))).encode(), digest_size=16).hexdigest()


@cache
def _imports(file: Path) -> list[Path]:
    """The files that define what a file imports from featlab."""
    found: list[Path] = []
    for node in _statements(_tree(file)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("featlab"):
            found += [path for one in node.names for path in _defining(str(node.module), one.name)]
        elif isinstance(node, ast.Import):
            found += [
                path for one in node.names if one.name.startswith("featlab.") for path in _defining(one.name, None)
            ]
    return found


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those for a type checker."""
    yield tree
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")):
            yield from _statements(node)


def _defining(module: str, name: str | None) -> list[Path]:
    """The file that defines a name of a module: of a package's, the one its `__init__` has it from."""
    place = PACKAGE.joinpath(*module.split(".")[1:])
    if place.with_suffix(".py").is_file():
        return [place.with_suffix(".py")]
    if name is None:
        return [place / "__init__.py"]
    if (place / f"{name}.py").is_file() or (place / name).is_dir():
        return _defining(f"{module}.{name}", None)
    for node in ast.walk(_tree(place / "__init__.py")):
        if isinstance(node, ast.ImportFrom):
            for one in node.names:
                if name == (one.asname or one.name):
                    return _defining(str(node.module), one.name)
    return [place / "__init__.py"]


def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))


class _Bare(ast.NodeTransformer):
    """Code without docstrings and imports; of these, what is called otherwise than where it comes from."""

    def __init__(self):
        self.renamed = set[tuple[str, str]]()

    def visit_Import(self, node):
        self._note(node)

    def visit_ImportFrom(self, node):
        self._note(node)

    def visit_Expr(self, node):
        return None if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str) else node

    def _note(self, node: ast.Import | ast.ImportFrom) -> None:
        for one in node.names:
            name = one.name.rpartition(".")[2] if one.name.startswith("featlab.") else one.name
            if one.asname not in (None, name):
                self.renamed.add((name, str(one.asname)))
