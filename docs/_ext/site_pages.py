"""A Sphinx extension: pages made from the code at every build, and directives that describe public names."""

from __future__ import annotations

import fnmatch
import re
import tempfile
from pathlib import Path

from docutils import nodes
from gallery import gallery_pages
from markdown_text import fence, table
from public_names import declared_fields, described, variables, with_unnamed
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from theorems import theorem_pages

GENERATED = Path(__file__).parents[1] / "generated"


def write_pages(folder: Path) -> None:
    """All made pages and the skeleton of a claim; a page that stays as it was is not touched."""
    from featlab.claims.skeleton import write_skeleton

    texts = {f"theorems/{name}.md": text for name, text in theorem_pages().items()}
    texts |= {f"gallery/{name}.md": text for name, text in gallery_pages().items()}
    with tempfile.TemporaryDirectory() as new:
        texts["my_theorem.py"] = write_skeleton("my_theorem", new).read_text()
    for path in folder.rglob("*"):
        if path.is_file() and str(path.relative_to(folder)) not in texts:
            path.unlink()
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


class Public(SphinxDirective):
    """The public names in its body, one a line, of the module it is given; `...` is all that no page names."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        (module,) = self.arguments
        names = with_unnamed(module, [line.strip() for line in self.content if line.strip()])
        entries = [described(module, name) for name in names]
        return self.parse_text_to_nodes("\n\n".join([fence("{py:currentmodule}", module, ""), *entries]))


class Variables(SphinxDirective):
    """Every variable that a probe can record."""

    def run(self) -> list[nodes.Node]:
        head = ("name", "symbol", "meaning", "probe")
        return self.parse_text_to_nodes(table(head, variables()))


class Fields(SphinxDirective):
    """Every symbol that a field of a part declares."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(table(("symbol", "meaning", "field"), declared_fields()))


class Commands(SphinxDirective):
    """Every command of the command line with what `--help` says."""

    def run(self) -> list[nodes.Node]:
        import click

        from featlab.commands.cli import main

        found = []

        def walk(command: click.Command, context: click.Context) -> None:
            if isinstance(command, click.Group):
                for name in command.list_commands(context):
                    one = command.get_command(context, name)
                    assert one is not None
                    walk(one, click.Context(one, info_name=name, parent=context, terminal_width=88))
            else:
                found.append(fence("{rubric}", context.command_path, ""))
                found.append(fence("text", "", command.get_help(context)))

        walk(main, click.Context(main, info_name="featlab", terminal_width=88))
        return self.parse_text_to_nodes("\n\n".join(found))


def keep_what_is_there(app: Sphinx, page: str, source: list[str]) -> None:
    """A line of a toctree that begins with ? names a page, or a pattern of pages, that need not exist."""

    def kept(line: re.Match) -> str:
        return f"{line[1]}\n" if fnmatch.filter(app.env.found_docs, line[1]) else ""

    source[0] = re.sub(r"^\?(\S+)\n", kept, source[0], flags=re.MULTILINE)


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the pages before Sphinx looks for them, and know the directives."""
    app.connect("builder-inited", lambda app: write_pages(GENERATED))
    app.connect("source-read", keep_what_is_there)
    app.add_directive("public", Public)
    app.add_directive("commands", Commands)
    app.add_directive("fields", Fields)
    app.add_directive("variables", Variables)
    return {"parallel_read_safe": True}
