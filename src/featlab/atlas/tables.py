"""The atlas as plain tables: Markdown for a repository, LaTeX with booktabs for a paper."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from featlab.atlas.cards import WORDS, main_check, status_of
from featlab.claims import Claim
from featlab.claims.citation import paper_of
from featlab.plots._forest import two_sided
from featlab.plots._scalings import as_fraction

_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}",
}  # fmt: skip


def markdown(claims: Mapping[str, Claim], records: Mapping[str, Any], broken: Mapping[str, str]) -> str:
    """A table with a row for each claim."""
    heads = ("claim", "theorem", "paper", "check", "measured, 95 % interval", "theory allows", "verdict")
    rows = [heads, ["---"] * len(heads)]
    for id, claim in claims.items():
        status = status_of(records.get(id), broken.get(id))
        measured = numbers(main_check(records[id])) if id in records else ("", "", "")
        cells = [claim.title, paper_of(claim.reference), *measured, WORDS.get(status, status)]
        # What Markdown would read as a sign of its own is escaped.
        rows.append([f"`{id}`", *(re.sub(r"([|\\<>`*_])", r"\\\1", " ".join(cell.split())) for cell in cells)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def latex(claims: Mapping[str, Claim], records: Mapping[str, Any], broken: Mapping[str, str]) -> str:
    r"""A `booktabs` table with a row for each claim, to be `\input`."""
    rows = []
    for id, claim in claims.items():
        status = status_of(records.get(id), broken.get(id))
        check = main_check(records[id]) if id in records else None
        name, measured, allowed = numbers(check) if check is not None else ("", "", "")
        cells = [
            _escaped(paper_of(claim.reference)),
            _escaped(name),
            _mathematics(measured),
            _mathematics(allowed),
        ]
        rows.append(" & ".join([*cells, WORDS.get(status, status)]) + rf" \\  % {id}")
    head = r"paper & quantity & measured, 95\,\% interval & theory allows & verdict \\"
    body = "\n".join(rows)
    return (
        "% needs \\usepackage{booktabs}\n\\begin{tabular}{@{}lllll@{}}\n\\toprule\n"
        f"{head}\n\\midrule\n{body}\n\\bottomrule\n\\end{{tabular}}\n"
    )


def numbers(check: Mapping[str, Any]) -> tuple[str, str, str]:
    """Name, measured with its interval, and the allowed region, in plain letters."""
    ends = [check[name] for name in ("measured", "low", "high")]
    measured = "not measured" if None in ends else "{:.4g} [{:.4g}, {:.4g}]".format(*map(float, ends))
    if two_sided(check):
        allowed = f"{as_fraction(float(check['expected']))} ± {float(check['margin']):.2g}"
    elif check.get("lower") is None:
        allowed = f"≤ {float(check['upper']):.3g}"
    else:
        allowed = f"≥ {float(check['lower']):.3g}"
    return check["name"], measured, allowed


def _escaped(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in text)


def _mathematics(text: str) -> str:
    """Numbers in mathematics: 1.1e-16 as a power, signs as commands."""
    if not re.search(r"\d", text):
        return _escaped(text)
    text = re.sub(
        r"(\d)e([+-]?)0*(\d+)", lambda one: rf"{one[1]} \cdot 10^{{{one[2].replace('+', '')}{one[3]}}}", text
    )
    for sign, command in {"±": r"\pm", "≤": r"\le", "≥": r"\ge"}.items():
        text = text.replace(sign, command)
    return "$" + text.replace(" [", r"\ [") + "$"
