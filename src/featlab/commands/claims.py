"""What a person sees of claims: the list, one of them, their verdicts, their references."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from featlab.atlas.records import stored_record, write_record
from featlab.claims import Assumption, Claim, find_claim, find_claims
from featlab.claims.citation import paper_of
from featlab.claims.claim import SIZES, not_judged
from featlab.claims.deciding import registration, usual_base_seed
from featlab.claims.verdict import EXIT_CODES, Verdict
from featlab.claims.verify import read_job, read_records, verify
from featlab.core.validation import InputError
from featlab.engine.compiled import keep_compiled_programs
from featlab.engine.progress import INTERRUPTED
from featlab.experiment import Experiment
from featlab.sweeps.files import writable
from featlab.text import describe, override


def list_claims(*, as_json: bool = False, folder: str | None = None) -> None:
    """Print every claim: id, paper, one sentence, time."""
    found = find_claims(folder)
    if as_json:
        print(json.dumps([_entry(claim) for claim in found.values()], indent=1))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title="featlab verify ID")
    for column in ("id", "paper", "claim", "minutes"):
        table.add_column(column, justify="right" if column == "minutes" else "left")
    for claim in found.values():
        entry = _entry(claim)
        table.add_row(entry["id"], entry["paper"], entry["title"], f"{entry['minutes']:g}")
    Console(markup=False).print(table)


def show_claim(name: str, changes: Sequence[str] = (), *, folder: str | None = None) -> None:
    """Print a claim's statement, knobs, and its assumptions with their values for an experiment with changes."""
    claim = find_claim(name, folder)
    experiment = override(claim.typical(), changes)
    words = (sys.modules[type(claim).__module__].__doc__ or "").strip()
    lines = [f"{claim.id}: {claim.title}", "", words, "", f"Formula: {claim.statement}", ""]
    lines += [f"Refuted if {claim.refuted_if}.", f"Control: {claim.control_changes}.", "", "Knobs:"]
    lines += [f"  {knob} = {describe(value)}" for knob, value in claim.knobs.items()]
    lines += ["", "Sizes:"]
    for size in SIZES:
        one = claim.sizes[size]
        values = "".join(f", {key} = {_values(value)}" for key, value in one.values.items())
        lines.append(f"  {size}: {one.seeds} seeds{values}")
    lines += ["", "Clauses:", *_clauses(claim)]
    lines += ["", f"Exploratory: {claim.exploratory}"] if claim.exploratory else []
    lines += ["", f"Log of deciding runs: {registration(claim, usual_base_seed(claim))}."]
    lines += ["", "A typical experiment:", f"  {describe(experiment)}", "", "Its assumptions:"]
    for one in _assumptions(claim, experiment):
        lines.append(
            f"  {'holds' if one.holds else 'FAILS'}  {one.sentence}: {one.value:.3g}, should be {one.should}"
        )
    print("\n".join(lines))


def _values(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_values, value))})"
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _clauses(claim: Claim) -> list[str]:
    """What the theorem says, and which checks judge it or why none does."""
    lines = []
    for words, judged in claim.clauses.items():
        by = (judged,) if isinstance(judged, str) else judged
        said = f"not judged: {judged.reason}" if isinstance(judged, not_judged) else "judged by " + "; ".join(by)
        lines.append(f"  {words}: {said}")
    return lines or ["  none listed"]


def _assumptions(claim: Claim, experiment: Experiment) -> list[Assumption]:
    try:
        return claim.assumptions(experiment)
    except (ArithmeticError, AttributeError, TypeError) as error:  # another kind of experiment
        raise InputError(f"The assumptions of {claim.id} mean nothing for this experiment: {error}.") from None


def cite(names: Sequence[str], *, folder: str | None = None) -> None:
    """Print the BibTeX of claims, each entry once."""
    found = dict.fromkeys(find_claim(name, folder).reference.strip() for name in names)
    print("\n\n".join(found))


def verify_claims(
    names: Sequence[str] = (),
    *,
    every: bool = False,
    size: str = "laptop",
    seeds: int | None = None,
    base_seed: int | None = None,
    folder: str | None = None,
    out: str | None = None,
    as_json: bool = False,
    perturb: bool = False,
    again: str | None = None,
    decide: bool = False,
) -> int:
    """Verify claims, print their verdicts, write records and figures to `out`. Returns the exit code.

    A claim whose verdict with the same setting, seeds and versions lies in `out` already is not computed again.
    """
    keep_compiled_programs()
    jobs = _jobs(names, every, size, seeds, base_seed, folder, again)
    if decide and (again or base_seed is not None or seeds is not None or perturb):
        raise InputError(
            "verify --decide takes fresh seeds, as many as the claim says; give no other options for them."
        )
    if out is not None:
        writable(out)
    records, interrupted = [], False
    for claim, options in jobs:
        try:
            stored = None if decide else stored_record(claim, options, out, perturb)
            if stored is None:
                verdict = verify(claim, claims=folder, perturb=perturb, decide=decide, **options)
                record = verdict.record()
                if not as_json:
                    _print(verdict, out)
                write_record(record, out)  # what was found is shown, whatever the disk says
            else:
                record = stored
                if not as_json:
                    print(f"{claim.id}: {record['word']} ({record['reason']}), from {out}")
            records.append(record)
        except InputError:
            raise
        except Exception as error:
            # Exit 1 says refuted, and a claim that breaks is not that.
            traceback.print_exc()
            what = f"{type(error).__name__}: {error}"
            raise InputError(f"{claim.id} broke while it was verified, see above ({what}).") from None
        except KeyboardInterrupt:
            interrupted = True
            hint = f"; the same command goes on from {out}" if out else "; with --out it could go on from there"
            print(f"featlab: interrupted during {claim.id}{hint}.", file=sys.stderr)
            break
    if as_json:
        print(json.dumps(records, indent=1))
    if interrupted:
        return INTERRUPTED
    statuses = {record["status"] for record in records}
    return next((EXIT_CODES[s] for s in ("refuted", "inconclusive") if s in statuses), 0)


def _jobs(names, every, size, seeds, base_seed, folder, again) -> list[tuple[Claim, dict[str, Any]]]:
    if again is not None:
        if names or every:
            raise InputError("verify --again repeats what is in its file; give no claims beside it.")
        return [read_job(record, folder) for record in read_records(again)]
    if every == bool(names):
        raise InputError("verify needs the ids of claims, or --all; `featlab claims` lists them.")
    found = find_claims(folder)
    chosen = list(found) if every else list(dict.fromkeys(names))
    options = {"size": size, "seeds": seeds, "base_seed": base_seed}
    return [(find_claim(name, folder), options) for name in chosen]


def _print(verdict: Verdict, out) -> None:
    from rich.console import Console

    console = Console(markup=False)
    console.print(verdict.table())
    if out is not None:
        console.print(f"{Path(out) / verdict.id}.json, .svg, .png\n")


def _entry(claim: Claim) -> dict[str, Any]:
    return {"id": claim.id, "paper": paper_of(claim.reference), "title": claim.title, "minutes": claim.minutes}
