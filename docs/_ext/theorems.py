"""One page for each claim, from its file: words, formula, verdict, conditions, knobs, sizes, reference."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from markdown_text import fence, formula, prose, table
from public_names import field_rows

from featlab.claims.citation import paper_of
from featlab.claims.kept import kept_verdicts

ROOT = Path(__file__).parents[2]
_MARKS = {"supported": "✓ supported", "refuted": "✗ refuted", "inconclusive": "? inconclusive"}

_INTRODUCTION = """\
Each is a claim: a theorem in one file, with everything a verdict needs. *Supported* says that every 95 % interval
lies inside theory and a margin that was fixed before the run, and that a control with one ingredient changed is
refuted by the same judge; [the rule](../../claims.md) has the rest. The verdicts are those at laptop size that are
kept with the package. [Add a theorem](../../add_a_theorem.md) says how yours becomes one."""


def theorem_pages() -> dict[str, str]:
    """The text of every page by its name, and of `index`, which lists them."""
    from featlab.claims import find_claims

    claims, verdicts = find_claims(), kept_verdicts()
    pages = {name: _page(claim, verdicts.get(name)) for name, claim in claims.items()}
    return {"index": _index(claims, verdicts), **pages}


def _index(claims: dict[str, Any], verdicts: dict[str, dict[str, Any]]) -> str:
    rows = [
        (
            f"[`{name}`]({name}.md)",
            claim.title,
            paper_of(claim.reference),
            _MARKS[verdicts[name]["status"]] if name in verdicts else "",
        )
        for name, claim in claims.items()
    ]
    listed = fence("{toctree}", "", "\n".join(claims), options=(":hidden:", ":maxdepth: 1"))
    return "\n\n".join(
        [
            "# Theorems",
            _INTRODUCTION,
            table(("claim", "in one sentence", "paper", "verdict"), rows),
            listed,
        ]
    )


def _page(claim: Any, verdict: dict[str, Any] | None) -> str:
    file = Path(sys.modules[type(claim).__module__].__file__ or "")
    words = (sys.modules[type(claim).__module__].__doc__ or "").strip()
    lead, _, rest = prose(words).partition("\n\n")
    parts = [f"# {claim.id}", f"**{' '.join(lead.split())}**", _formula(claim.statement), rest]
    parts += [
        f"**Refuted if** {claim.refuted_if}.",
        f"**Control**, which must be refuted: {claim.control_changes.replace('->', '→')}.",
    ]
    parts += _verdict(claim, verdict)
    parts += _picture(claim)
    parts += ["## Conditions", "At the typical experiment of this claim:", _conditions(claim)]
    knobs = field_rows(type(claim))
    parts += ["## Knobs", table(("knob", "takes", "default", ""), knobs)] if knobs else []
    parts += ["## Sizes", _sizes(claim)]
    minutes = f"{claim.minutes:g} minute{'s' if claim.minutes != 1 else ''}"
    commands = [
        f"featlab show {claim.id}",
        f"featlab verify {claim.id} --out out/verdicts",
        f"featlab cite {claim.id}",
    ]
    parts += ["## Put it to the test", fence("sh", "", "\n".join(commands))]
    parts += [f"About {minutes} on two cores at laptop size; `--size smoke` takes seconds and decides less."]
    parts += ["## Reference", fence("bibtex", "", claim.reference.strip())]
    source = Path("../../..") / file.relative_to(ROOT)
    parts += ["## The file", fence("{literalinclude}", str(source), "", options=(":language: python",))]
    return "\n\n".join(parts)


def _formula(statement: str) -> str:
    """The statement, its parts on lines of their own where semicolons part them."""
    parts = re.split(r";\s*\\qquad", statement)
    inside = r"\begin{gathered}" + r"; \\ ".join(parts) + r"\end{gathered}" if len(parts) > 1 else statement
    return f"$$\n{inside}\n$$"


def _verdict(claim: Any, verdict: dict[str, Any] | None) -> list[str]:
    if verdict is None:
        return ["## Verdict", "None is kept with the package yet; the command below gives one."]
    rows = [
        (
            check["name"],
            f"{check['measured']:.4g}",
            f"[{check['low']:.4g}, {check['high']:.4g}]",
            _allowed(check),
            check["status"] if check["evidence"] == "evidence" else f"{check['status']} ({check['evidence']})",
        )
        for check in verdict["checks"]
    ]
    said = f"**{verdict['word'].capitalize()}**, at {verdict['size']} size with {verdict['seeds']} seeds"
    said += f", {verdict['evidence']} of {len(rows)} checks being evidence"
    found = [
        "## Verdict",
        f"{said}: {verdict['reason']}.",
        table(("check", "measured", "95 % interval", "theory allows", "verdict"), rows),
    ]
    if claim.exploratory:
        found.insert(1, f"*Exploratory*: {claim.exploratory}.")
    clauses = [
        (one["clause"], one["reason"] or "; ".join(one["checks"]), one["status"]) for one in verdict["clauses"]
    ]
    found += (
        ["Clause by clause:", table(("the theorem says", "judged by, or why not", ""), clauses)] if clauses else []
    )
    if (ROOT / "docs" / "figures" / f"{claim.id}.png").exists():
        found.append(f"![the checks of {claim.id}](../../figures/{claim.id}.png)")
    return found


def _allowed(check: dict[str, Any]) -> str:
    if check["lower"] is None or check["upper"] is None:
        return f"≤ {check['upper']:.4g}" if check["lower"] is None else f"≥ {check['lower']:.4g}"
    return f"{check['expected']:.4g} ± {check['margin']:.2g}"


def _picture(claim: Any) -> list[str]:
    """What the theorem says on either side of its boundary, where the claim says so."""
    picture = getattr(claim, "picture", lambda: None)()
    if picture is None:
        return []
    rows = [(formula(f"{picture.symbol} < 1"), picture.below), (formula(f"{picture.symbol} > 1"), picture.above)]
    return ["## Either side of the boundary", table(("", "what the theorem says"), rows)]


def _conditions(claim: Any) -> str:
    known = claim.assumptions(claim.typical())
    rows = [(one.sentence, f"{one.value:.3g}", one.should.replace("<<", "≪").replace(">=", "≥")) for one in known]
    return table(("condition", "value", "should be"), rows)


def _sizes(claim: Any) -> str:
    rows = []
    for name, size in claim.sizes.items():
        values = "; ".join(f"`{key}` {_value(value)}" for key, value in size.values.items())
        rows.append((name, size.seeds, values))
    return table(("size", "seeds", "measured at"), rows)


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_value, value))
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
