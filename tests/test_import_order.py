"""Import order is reading order: a module imports only from lines above its own."""

import ast
from pathlib import Path

import featlab

ORDER = [
    "core",
    "theory",
    "data",
    "networks",
    "objectives",
    "problem",
    "algorithms",
    "probes",
    "experiment",
    "text",
    "engine",
    "sweeps",
    "claims",
    "errata",
    "metering",
    "plots",
    "atlas",
    "web",
    "commands",
    "testing",
]
ROOT = Path(featlab.__file__).parent


def line_of(path):
    relative = path.relative_to(ROOT)
    return relative.parts[0].removesuffix(".py")


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "featlab":
            if node.module == "featlab":
                yield from (alias.name for alias in node.names)
            else:
                yield node.module.split(".")[1]


def test_a_module_imports_only_from_lines_above():
    seen = set()
    for path in ROOT.rglob("*.py"):
        here = line_of(path)
        if here in ("__init__", "__main__"):
            continue
        assert here in ORDER, f"{here} has no place in the order"
        seen.add(here)
        for other in imported(path):
            assert ORDER.index(other) <= ORDER.index(here), f"{path.name} imports {other}, which comes later"
    assert seen == set(ORDER)


def test_no_file_holds_more_than_one_idea():
    for path in ROOT.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 400, f"{path.name} is two files"
