"""Small pieces of Markdown: tables, fences, and symbols that comments spell out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_GREEK = "alpha beta gamma delta epsilon eps eta kappa lambda mu nu phi psi rho sigma tau theta xi".split()
_SYMBOL = re.compile(rf"(?<![\w\\$])({'|'.join(_GREEK)})(?:_(eps|[0-9a-z*+-]))?(?![\w*])")


def cell(text: object) -> str:
    """What may stand in a table: no bar, no line break."""
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(str(text).split()))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell(one) for one in line) + " |" for line in lines)


def fence(kind: str, argument: str, body: str, *, options: Sequence[str] = ()) -> str:
    """A directive or a code block, fenced by more ticks than its body has in a row."""
    inside = max((len(ticks) for ticks in re.findall(r"`+", body)), default=0)
    ticks = "`" * max(3, inside + 1)
    head = f"{ticks}{kind} {argument}".rstrip()
    return "\n".join([head, *options, *([""] if options else []), body, ticks])


def prose(text: str) -> str:
    """A docstring as Markdown: a line that happens to begin with % is no comment."""
    return re.sub(r"^(\s*)%", r"\1\\%", text, flags=re.MULTILINE)


def formula(latex: str) -> str:
    """LaTeX that may stand in a table, where a bar would end the cell."""
    return f"${latex}$".replace(r"\|", r"\Vert ").replace("|", r"\vert ") if latex else ""


def symbols(comment: str) -> str:
    """The comment of a field with its symbols, such as sigma_0 and |mu|, as formulas."""
    comment = re.sub(r"\|(\w+)\|", lambda found: rf"$\Vert {_latex(found[1])} \Vert$", comment)
    return _SYMBOL.sub(lambda found: f"${_latex(found[1])}{_index(found[2])}$", comment)


def _latex(word: str) -> str:
    if word == "eps":
        return r"\varepsilon"
    return rf"\{word}" if word in (*_GREEK, "star") else word


def _index(index: str | None) -> str:
    return "" if index is None else f"_{{{_latex({'*': 'star'}.get(index, index))}}}"
