"""Tables of verdicts in README.md and pages of docs, from stored records: run this file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markdown_text import table

from featlab.atlas.cards import main_check
from featlab.atlas.tables import numbers
from featlab.claims import find_claims
from featlab.claims.deciding import EXPLORING, usual_base_seed
from featlab.claims.kept import kept_verdicts

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "claims"))
from other_seeds import counted  # noqa: E402

PAGES = ("verdicts", "clauses", "trust")
FILES = (ROOT / "README.md", *[ROOT / "docs" / f"{name}.md" for name in PAGES])
FLAGSHIP, SHOWN = "cao2022_phase", 3


def of_one(record: Mapping[str, Any]) -> str:
    """The first checks of one claim, and how many of the others were supported."""
    first, others = record["checks"][:SHOWN], record["checks"][SHOWN:]
    rows = [numbers(check) for check in first]
    supported = sum(check["status"] == "supported" for check in others)
    rows.append((f"{len(others)} more checks", "", f"{supported} supported"))
    return table((f"check of `{record['id']}`", "measured, 95 % interval", "theory allows"), rows)


def of_all(records: Mapping[str, Mapping[str, Any]]) -> str:
    """A row for each claim: its verdict, how many checks count, and the check or the reason that decided."""
    older = {name for name, claim in find_claims().items() if usual_base_seed(claim) == EXPLORING}
    lucky = {name for name, (status, seen) in counted().items() if 2 * seen[status] < seen.total()}
    marks = {name: ("†" if name in older else "") + ("‡" if name in lucky else "") for name in records}
    rows = [_row(record, marks[name]) for name, record in records.items()]
    found = [table(("claim", "verdict", "evidence", "measured, and what theory allows"), rows)]
    if older:
        found.append(
            "† The claim has changed since; `featlab verify ID --decide` decides it anew, on fresh seeds."
        )
    if lucky:
        found.append("‡ Most [other sets of seeds](trust.md#other-seeds) come out otherwise.")
    return "\n\n".join(found)


def of_clauses(records: Mapping[str, Mapping[str, Any]]) -> str:
    """Every clause of every theorem: the checks that judge it, or why none does."""
    rows = [
        (f"`{name}`", one["clause"], one["reason"] or "; ".join(one["checks"]), one["status"])
        for name, record in records.items()
        for one in record["clauses"]
    ]
    judged = sum(status != "not judged" for *_, status in rows)
    head = f"{len(rows)} clauses, {judged} of them judged."
    return f"{head}\n\n{table(('claim', 'the theorem says', 'judged by, or why not', ''), rows)}"


def counts(records: Mapping[str, Mapping[str, Any]]) -> str:
    """How many claims came out how, in a sentence."""
    words = [record["word"] for record in records.values()]
    parts = [f"{words.count(word)} {word}" for word in dict.fromkeys(sorted(words, reverse=True))]
    checks = sum(len(record["checks"]) for record in records.values())
    evidence = sum(record["evidence"] for record in records.values())
    return f"{len(records)} claims: {', '.join(parts)}; {evidence} of {checks} checks count as evidence."


def of_other_seeds() -> str:
    """How often every claim came out as it is kept, on seeds that it was not decided on."""
    found = counted()
    sets = sum(counts.total() for _, counts in found.values())
    same = sum(counts[status] for status, counts in found.values())
    opposite = {"supported": "refuted", "refuted": "supported", "inconclusive": ""}
    against = sum(counts[opposite[status]] for status, counts in found.values())
    head = f"{sets} sets: {same} give the verdict that is kept, {against} the opposite one. Not all do so of"
    rows = [
        (f"`{name}`", status, *[str(counts[one] or "") for one in ("supported", "inconclusive", "refuted")])
        for name, (status, counts) in found.items()
        if counts[status] < counts.total()
    ]
    columns = ("claim", "kept", "sets: supported", "inconclusive", "refuted")
    return f"{head}:\n\n{table(columns, rows)}"


def _row(record: Mapping[str, Any], mark: str) -> tuple[str, str, str, str]:
    evidence = f"{record['evidence']} of {len(record['checks'])}"
    name, measured, allowed = numbers(main_check(record))
    said = f"{name}: {measured}, theory {allowed}" if record["status"] == "supported" else record["reason"]
    return f"`{record['id']}`", record["word"] + mark, evidence, said


def rewritten(text: str) -> str:
    """The text of a page with its made parts made anew."""
    records = kept_verdicts()
    made = {"flagship": of_one(records[FLAGSHIP]), "verdicts": f"{counts(records)}\n\n{of_all(records)}"}
    made |= {"clauses": of_clauses(records), "other seeds": of_other_seeds()}
    found = 0
    for name, part in made.items():
        begin, end = f"<!-- made: {name} -->", f"<!-- end: {name} -->"
        before, opened, rest = text.partition(begin)
        if not opened:
            continue
        _, closed, after = rest.partition(end)
        assert closed, name
        text = f"{before}{begin}\n{part}\n{end}{after}"
        found += 1
    assert found
    return text


if __name__ == "__main__":
    for file in FILES:
        file.write_text(rewritten(file.read_text()))
