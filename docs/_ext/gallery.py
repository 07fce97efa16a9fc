"""One page for each example, from its own words, with its figures and its source."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import NamedTuple

from markdown_text import fence, prose

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "docs" / "figures"


class Example(NamedTuple):
    """An example: what it says about itself, and how it is run."""

    path: Path
    title: str
    words: str
    commands: list[str]
    figures: list[Path]


def examples() -> list[Example]:
    """Every Python and TOML file of examples/; those with a figure first."""
    found = [_of_script(path) for path in sorted((ROOT / "examples").glob("*.py"))]
    found += [_of_statement(path) for path in sorted((ROOT / "examples").glob("*.toml"))]
    return sorted(found, key=lambda one: not one.figures)


def gallery_pages() -> dict[str, str]:
    """The text of every page by its name, and of `index`, which shows them."""
    found = examples()
    return {"index": _index(found), **{one.path.stem: _page(one) for one in found}}


def _of_script(path: Path) -> Example:
    words = ast.get_docstring(ast.parse(path.read_text())) or path.stem
    title, _, rest = words.partition("\n")
    commands = [line.split("  #")[0].strip() for line in rest.splitlines() if line.startswith("python ")]
    rest = "\n".join(line for line in rest.splitlines() if not line.startswith("python "))
    return Example(path, title, rest.strip(), commands, _figures(path))


def _of_statement(path: Path) -> Example:
    text = path.read_text()
    stated = tomllib.loads(text)
    words = re.match(r"(?:#.*\n)*", text)
    assert words is not None
    said = "\n".join(line.lstrip("# ") for line in words[0].splitlines())
    commands = [f"featlab run examples/{path.name}"]
    commands += [f"featlab compare examples/{path.name}"] if "compare" in stated else []
    return Example(path, stated["title"], said, commands, _figures(path))


def _figures(path: Path) -> list[Path]:
    """The pictures that begin with the example's name, of those that no other example's longer name fits."""
    name = path.stem.removesuffix("_heatmap")
    return [one for one in sorted(FIGURES.glob("*.png")) if one.stem == name or one.stem.startswith(f"{name}_")]


def _index(found: list[Example]) -> str:
    cards = [
        fence(
            "{figure}",
            f"../../figures/{one.figures[0].name}",
            f"[{one.title.rstrip('.')}]({one.path.stem}.md)",
            options=(f":target: {one.path.stem}.html", f":alt: {one.path.stem}"),
        )
        for one in found
        if one.figures
    ]
    others = "\n".join(f"- [{one.title.rstrip('.')}]({one.path.stem}.md)" for one in found if not one.figures)
    listed = fence(
        "{toctree}",
        "",
        "\n".join(f"{one.path.stem} <{one.path.stem}>" for one in found),
        options=(":hidden:", ":maxdepth: 1"),
    )
    parts = [
        "# Gallery",
        "Every file of `examples/`, as it is. A TOML file states an experiment; `run_all.py` runs all of these.",
        fence("{container}", "gallery", "\n\n".join(cards)),
        others,
        listed,
    ]
    return "\n\n".join(part for part in parts if part)


def _page(one: Example) -> str:
    pictures = [f"![{one.title}](../../figures/{figure.name})" for figure in one.figures]
    language = "toml" if one.path.suffix == ".toml" else "python"
    source = fence(
        "{literalinclude}", f"../../../examples/{one.path.name}", "", options=(f":language: {language}",)
    )
    commands = fence("sh", "", "\n".join(one.commands)) if one.commands else ""
    parts = [
        f"# {one.title.rstrip('.')}",
        prose(one.words),
        *pictures,
        commands,
        f"`examples/{one.path.name}`",
        source,
    ]
    return "\n\n".join(part for part in parts if part)
