"""What a person sees of claims: the list, one of them, their verdicts, their references."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from featlab import plots
from featlab.claims import Assumption, Claim, find_claim, find_claims
from featlab.claims._claim import SIZES
from featlab.description import describe, override
from featlab.experiment import Experiment
from featlab.fields import InputError
from featlab.report._runs import INTERRUPTED, keep_compiled_programs
from featlab.verdict import EXIT_CODES, Verdict
from featlab.verification import BASE_SEED, checks_in_atlas, read_job, read_records, verify, versions


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
    Console().print(table)


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
        lists = ", ".join(f"{key} = {tuple(f'{v:g}' for v in values)}" for key, values in one.lists.items())
        lines.append(f"  {size}: {one.seeds} seeds, {lists}".replace("'", ""))
    lines += ["", "A typical experiment:", f"  {describe(experiment)}", "", "Its assumptions:"]
    for one in _assumptions(claim, experiment):
        lines.append(
            f"  {'holds' if one.holds else 'FAILS'}  {one.sentence}: {one.value:.3g}, should be {one.should}"
        )
    print("\n".join(lines))


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
    base_seed: int = BASE_SEED,
    folder: str | None = None,
    out: str | None = None,
    as_json: bool = False,
    perturb: bool = False,
    again: str | None = None,
) -> int:
    """Verify claims, print their verdicts, write records and figures to `out`. Returns the exit code.

    A claim whose verdict with the same setting, seeds and versions lies in `out` already is not computed again.
    """
    keep_compiled_programs()
    jobs = _jobs(names, every, size, seeds, base_seed, folder, again)
    make_folder(out)
    records, interrupted = [], False
    for claim, options in jobs:
        try:
            stored = stored_record(claim, options, out, perturb, folder)
            if stored is None:
                verdict = verify(claim, claims=folder, perturb=perturb, **options)
                record = verdict.record()
                write_record(record, out)
                if not as_json:
                    _print(verdict, out)
            else:
                record = stored
                if not as_json:
                    print(f"{claim.id}: {record['status']} ({record['reason']}), from {out}")
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


def stored_record(claim: Claim, options, out, perturb, folder) -> dict[str, Any] | None:
    """The record in `out` that this job would give again, if there is one."""
    path = None if out is None else Path(out) / f"{claim.id}.json"
    if path is None or not path.is_file():
        return None
    try:
        (record,) = read_records(path)
        count = options["seeds"] or claim.sizes[options["size"]].seeds
        wanted = {
            "size": options["size"],
            "seeds": count,
            "base_seed": options["base_seed"],
            "setting": {name: describe(value) for name, value in claim.knobs.items()},
            "versions": versions(claim),
            "judged": options.get("judged") or checks_in_atlas(claim, folder),
        }
        same = all(record.get(key) == value for key, value in wanted.items())
        return record if same and bool(record.get("perturbed")) == perturb else None
    except (InputError, ValueError):
        print(f"featlab: {path} cannot be read and is computed again.", file=sys.stderr)
        return None


def make_folder(out) -> None:
    """Before anything is computed for it."""
    try:
        if out is not None:
            Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Verdicts cannot be written to {str(out)!r}: {error.strerror}.") from None


def write_record(record, out) -> None:
    """A record and its figure, into a folder."""
    if out is None:
        return
    folder = Path(out)
    figure = plots.verdict(record)
    for kind in ("svg", "png"):
        plots.save(figure, folder / f"{record['id']}.{kind}")
    # The record last, and whole or not at all: it says that the rest is there.
    handle, temporary = tempfile.mkstemp(dir=folder, suffix=".part")
    with os.fdopen(handle, "w") as file:
        json.dump([record], file, indent=1)
    os.replace(temporary, folder / f"{record['id']}.json")


def _print(verdict: Verdict, out) -> None:
    from rich.console import Console

    console = Console()
    console.print(verdict.table())
    if out is not None:
        console.print(f"{Path(out) / verdict.id}.json, .svg, .png\n")


def _entry(claim: Claim) -> dict[str, Any]:
    return {"id": claim.id, "paper": paper_of(claim.reference), "title": claim.title, "minutes": claim.minutes}


def paper_of(reference: str) -> str:
    """The family names of one or two authors, or the first of more, and the year, from BibTeX."""
    fields = {}
    for line in reference.replace(", author", ",\n author").replace(", year", ",\n year").splitlines():
        key, equals, value = line.partition("=")
        if equals:
            fields[key.strip().lower()] = value.strip().strip(",}{ ")
    names = [author.split(",")[0].strip() for author in fields.get("author", "").split(" and ")]
    authors = " and ".join(names) if len(names) <= 2 and "others" not in names else f"{names[0]} et al."
    return f"{authors} {fields.get('year', '')}".strip()
