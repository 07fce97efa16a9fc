"""What a page says of one claim: its record, its file and its figure, as words and numbers ready to be set."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from typing import Any

from featlab.atlas.figures import Embedded
from featlab.atlas.words import allowed, formula, interval, number, paragraphs, sentence, typeset
from featlab.claims import Claim
from featlab.claims.citation import paper_of
from featlab.claims.kept import compared
from featlab.plots._scalings import as_fraction
from featlab.text import describe

MARKS = {"supported": "✓", "refuted": "✗", "inconclusive": "?", "broken": "!", "missing": "–"}
WORDS = {"broken": "broke", "missing": "not verified"}
_RATHER_FEW = 8  # checks that a sentence about a figure can hold


def capital(text: str) -> str:
    """A sentence with its first letter as it should be."""
    return text[:1].upper() + text[1:]


def status_of(record: Mapping[str, Any] | None, error: str | None = None) -> str:
    """The verdict, or why it is missing."""
    if error is not None:
        return "broken"
    return "missing" if record is None else str(record["status"])


def main_check(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The check that a row of the overview shows: the first that decided, evidence before what does not count."""
    decided = [one for one in record["checks"] if one["status"] == record["status"]] or record["checks"]
    return next((one for one in decided if one.get("evidence") == "evidence"), decided[0])


def card(
    claim: Claim,
    record: Mapping[str, Any] | None,
    *,
    kept: Mapping[str, Any] | None = None,
    error: str | None = None,
    figure: Embedded | None = None,
    piece: Mapping[str, Any] | None = None,
    folder: str | None = None,
) -> dict[str, Any]:
    """Everything that the page shows of a claim; `kept` is what was decided, the record that of a smaller run."""
    status = status_of(record if kept is None else kept, error)
    words = (sys.modules[type(claim).__module__].__doc__ or "").strip()
    said: dict[str, Any] = {
        "id": claim.id,
        "status": status,
        "mark": MARKS[status],
        "word": (kept or record or {}).get("word") or WORDS.get(status, status),
        "decided": None,
        "doubtful": False,
        "again": None,
        "exploratory": typeset(claim.exploratory.rstrip(".")),
        "registered": "",
        "evidence": None,
        "clauses": [],
        "title": typeset(capital(claim.title)),
        "paper": paper_of(claim.reference),
        "statement": formula(claim.statement),
        "words": paragraphs(words),
        "refuted_if": typeset(capital(claim.refuted_if)),
        "bibtex": claim.reference.strip(),
        "error": error,
        "figure": figure,
        "slice": piece,
        "record": None,
        "main": None,
        "checks": [],
        "control": None,
        "assumptions": [],
        "perturbed": [],
        "facts": [],
        "control_changes": typeset(capital(claim.control_changes)),
        "command": command_of(claim.id, record, folder),
        "search": f"{claim.id} {claim.title} {paper_of(claim.reference)}".lower(),
        "knobs": {name: describe(value) for name, value in claim.knobs.items()},
    }
    if record is not None:
        said |= _measured(claim, record)
    if kept is not None:
        said |= _decided(kept, said, record, error)
    return said


def erratum_card(erratum: Any, record: Mapping[str, Any] | None, **facts: Any) -> dict[str, Any]:
    """The same of an erratum, with both formulas and the line between them."""
    size, seed = ((record or {}).get(key, usual) for key, usual in (("size", "smoke"), ("base_seed", None)))
    script = "import featlab as fl; from featlab.errata import find_errata; "
    seeds = "" if seed is None else f", base_seed={seed}"
    script += f"print(fl.verify(find_errata()[{erratum.id!r}], {size!r}{seeds}))"
    return card(erratum, record, **facts) | {
        "source": typeset(erratum.source),
        "printed": formula(erratum.printed),
        "corrected": formula(erratum.corrected),
        "derivation": sentence(erratum.derivation),
        "one_symbol": erratum.one_symbol,
        "command": f'python -c "{script}"',
    }


def reading_card(reading: Any) -> dict[str, Any]:
    """A reading, ready to be set."""
    said = reading._asdict()
    return {name: sentence(text) for name, text in said.items()} | {"title": sentence(capital(reading.title))}


def _measured(claim: Claim, record: Mapping[str, Any]) -> dict[str, Any]:
    main = main_check(record)
    control = record.get("control")
    return {
        "record": record,
        "reason": typeset(record.get("reason", "")),
        "main": row(main),
        "checks": [row(check) for check in record["checks"]],
        "control": None if control is None else row(control),
        "assumptions": [_assumption(one) for one in record.get("assumptions", ())],
        "knobs": record.get("setting") or {name: describe(value) for name, value in claim.knobs.items()},
        "perturbed": [
            {"change": typeset(change), "status": status, "mark": MARKS.get(status, "?")}
            for change, status in (record.get("perturbed") or {}).items()
        ],
        "facts": _facts(record),
        "clauses": [_clause(one) for one in record.get("clauses", ())],
        "evidence": record.get("evidence"),
        "registered": record.get("registered", ""),
        "alt": alt_text(record),
    }


def _decided(kept, said, record, error) -> dict[str, Any]:
    """The verdict that was kept in place of that of a smaller run, which is beside it."""
    repeated = {name: said[name] for name in ("checks", "control", "control_changes", "facts", "id")}
    other = kept["other_seeds"]
    same = f"; {other[kept['status']]} of {other.total()} other sets of seeds say the same" if other else ""
    return {
        "decided": f"{kept['size']} size, {kept['seeds']} seeds, decided {kept['date']}{same}",
        "doubtful": 2 * other[kept["status"]] < other.total(),
        "again": None if record is None or error is not None else repeated | again(kept, record),
        "record": record or kept,
        "reason": typeset(kept["reason"]),
        "main": row(main_check(kept)),
        "checks": [row(check) for check in kept["checks"]],
        "control": None,
        "clauses": [_clause(one) for one in kept["clauses"]],
        "evidence": kept["evidence"],
    }


def again(kept: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, str]:
    """What a smaller run says of what was decided, in a word and in a sentence."""
    found = compared(kept, record)
    share = f"{found.inside} of {found.common}"
    inside = f"{share} numbers are where theory allows"
    if found.contradicted:
        word, said = "not", f"not consistent: {'; '.join(found.contradicted)}"
    else:
        word, said = "consistent", "consistent: no check says the opposite"
    said = f"Repeated here at {record['size']} size, {said}; {inside}"
    return {"word": word, "share": share, "inside": inside, "said": typeset(said)}


def _holds_only(check: Mapping[str, Any]) -> bool:
    """Whether a check passes without being evidence."""
    return check["status"] == "supported" and check.get("evidence", "evidence") != "evidence"


def row(check: Mapping[str, Any]) -> dict[str, Any]:
    """A check as a row of a table."""
    rivals = check.get("rivals") or ()
    beaten = [as_fraction(float(one["expected"])).replace("-", "−") for one in rivals if one["refuted"]]
    return {
        "name": typeset(check["name"]),
        "where": typeset(check.get("worst_cell") or ""),
        "kind": check["kind"],
        "measured": number(check["measured"]),
        "interval": interval(check),
        "allowed": allowed(check),
        "status": check["status"],
        "word": f"holds ({check['evidence']})" if _holds_only(check) else check["status"],
        "seeds": ""
        if not check.get("dropped")
        else f"{check['seeds']} of {check['seeds'] + check['dropped']} seeds",
        "mark": MARKS[check["status"]],
        "reason": typeset(check.get("reason") or ""),
        "rivals": ", ".join(beaten),
    }


def _clause(one: Mapping[str, Any]) -> dict[str, Any]:
    """A clause of the theorem and what became of it."""
    return {
        "words": typeset(one["clause"]),
        "status": one["status"],
        "mark": MARKS.get(one["status"], "–"),
        "said": typeset(one.get("reason") or one["status"]),
        "checks": "; ".join(one.get("checks", ())),
    }


def _assumption(one: Mapping[str, Any]) -> dict[str, Any]:
    holds = bool(one["holds"])
    should = typeset(one["should"])
    return {
        "sentence": typeset(one["sentence"]),
        "value": number(one["value"], 3),
        "should": should,
        "holds": holds,
        "mark": "✓" if holds else "✗",
        "word": "holds" if holds else "fails",
    }


def _facts(record: Mapping[str, Any]) -> list[str]:
    """What the numbers depend on, in a line."""
    facts = [f"{record['size']} size"] if record.get("size") else []
    if record.get("seeds") is not None:
        facts.append(f"{record['seeds']} seeds from {record.get('base_seed')}")
    if record.get("trained_fraction") is not None:
        facts.append(f"{100 * record['trained_fraction']:.3g} % of runs trained")
    if record.get("seconds") is not None:
        facts.append(f"{record['seconds']:.0f} s")
    versions = record.get("versions") or {}
    facts += [
        f"{name} {versions[name]}" for name in ("featlab", "source", "jax", "python", "device") if name in versions
    ]
    return facts


def command_of(id: str, record: Mapping[str, Any] | None, folder: str | None) -> str:
    """The one command that repeats a verdict."""
    words = ["featlab", "verify", id]
    record = record or {}
    words += ["--size", str(record.get("size", "smoke"))]
    words += ["--base-seed", str(record["base_seed"])] if record.get("base_seed") is not None else []
    words += ["--claims", folder] if folder is not None else []
    return shlex.join(words)


def alt_text(record: Mapping[str, Any]) -> str:
    """What the figure of a verdict shows, for those who do not see it."""
    said = [f"Verdict on {record['id']}: {record['status']}."]
    checks = list(record["checks"])
    for check in checks[:_RATHER_FEW]:
        numbers = f"{number(check['measured'])} {interval(check)}, theory {allowed(check)}"
        said.append(f"{check['name']}: {numbers.replace('<sup>', '^').replace('</sup>', '')}, {check['status']}.")
    if len(checks) > _RATHER_FEW:
        said.append(f"{len(checks) - _RATHER_FEW} more checks, in the table below.")
    control = record.get("control")
    if control is not None:
        said.append(f"The control ({control.get('changes', 'one ingredient changed')}) is {control['status']}.")
    return " ".join(said)
