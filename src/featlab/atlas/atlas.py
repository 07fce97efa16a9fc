"""`featlab atlas`: every theorem and erratum put to the test, and one page that shows what came of it."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from featlab import plots
from featlab.atlas import page, tables
from featlab.atlas.cards import card, erratum_card, reading_card
from featlab.atlas.figures import Embedded, embedded, verdict_figure
from featlab.atlas.gather import Outcome, Task, gathered
from featlab.claims import Claim, find_claims
from featlab.claims.claim import SIZES
from featlab.claims.kept import decided
from featlab.claims.verdict import EXIT_CODES
from featlab.claims.verify import read_records
from featlab.core.validation import InputError
from featlab.engine.compiled import keep_compiled_programs
from featlab.engine.progress import INTERRUPTED, progress_bar
from featlab.plots.exponents import RATES
from featlab.sweeps.files import writable

BROKEN = 2
_VALUES = 12  # of a slice, more or less
_HERO = 1_200_000  # bytes of SVG: the one figure that is worth it


@dataclasses.dataclass
class Findings:
    """What there is to show: records and slices by id, and what went wrong."""

    records: dict[str, Any] = dataclasses.field(default_factory=dict)
    figures: dict[str, Path] = dataclasses.field(default_factory=dict)  # of the records, as files
    slices: dict[str, Any] = dataclasses.field(default_factory=dict)
    broken: dict[str, str] = dataclasses.field(default_factory=dict)
    interrupted: bool = False

    def exit_code(self, wanted: Collection[str], strict: bool) -> int:
        """0 once the page is written; with `strict` as `featlab verify`, where what is missing is inconclusive."""
        if self.interrupted:
            return INTERRUPTED
        if self.broken:
            return BROKEN
        statuses = {self.records[id]["status"] if id in self.records else "inconclusive" for id in wanted}
        found = next((EXIT_CODES[one] for one in ("refuted", "inconclusive") if one in statuses), 0)
        return found if strict else 0


def write_atlas(
    *,
    size: str = "smoke",
    strict: bool = False,
    out: str | Path = "out/atlas",
    folder: str | None = None,
    base_seed: int | None = None,
    perturb: bool = False,
    records: str | None = None,
    slices: bool = True,
    only: Collection[str] | None = None,
    processes: int = 1,
) -> int:
    """Verify everything, or read stored `records`, and write the page to `out`. Returns the exit code.

    What lies in `out` and is up to date is not computed again; interrupted, the page of what there is is written.
    `only` leaves out all other claims and errata; with several `processes` claims are verified side by side.
    """
    from featlab.errata import find_errata

    keep_compiled_programs()
    if size not in SIZES:
        raise InputError(f"atlas(size=) must be one of {', '.join(SIZES)}, got {size!r}.")
    claims = {id: one for id, one in find_claims(folder).items() if only is None or id in only}
    errata = {id: one for id, one in find_errata().items() if only is None or id in only}
    both: dict[str, Claim] = {**claims, **errata}
    where = Path(out)
    writable(where / "records")
    findings = Findings()
    if records is not None:
        findings.records, findings.figures = _read(Path(records), both)
    job = {"size": size, "seeds": None, "base_seed": base_seed}
    verdicts = [Task("verdict", id, str(where / "records"), folder, job, perturb) for id in both]
    pictured = [Task("slice", id, str(where / "slices"), folder, {}) for id in claims if _pictured(claims[id])]
    tasks = [*(verdicts if records is None else ()), *(pictured if slices else ())]
    _gather(findings, tasks, both, processes)
    made_by = _command(size, strict, out, folder, base_seed, perturb, records, slices)
    for path in _write(findings, claims, errata, where, folder, made_by):
        print(path)
    if findings.interrupted:
        print("featlab: interrupted; the page has what there is, and the same command goes on.", file=sys.stderr)
    return findings.exit_code(both, strict)


def _pictured(claim: Claim) -> bool:
    return type(claim).picture is not Claim.picture


def _gather(findings: Findings, tasks: list[Task], claims: Mapping[str, Claim], processes: int) -> None:
    """Carry out the tasks and keep what comes of them; an interrupt ends it."""
    if processes > 1:  # the long ones first, so that no process is left with one at the end
        tasks = sorted(tasks, key=lambda task: -claims[task.id].minutes)
    amount = sum(_weight(claims[task.id], task.kind) for task in tasks)
    with progress_bar("atlas", round(amount, 1), unit="minutes") as tell:
        try:
            done = 0
            for task, outcome in gathered(tasks, processes):
                _keep(findings, task, outcome)
                print(f"{task.id}: {outcome.note}", flush=True)
                done += _weight(claims[task.id], task.kind)
                tell(done, task.id)
        except KeyboardInterrupt:
            findings.interrupted = True


def _keep(findings: Findings, task: Task, outcome: Outcome) -> None:
    if outcome.error is not None:
        where = "" if task.kind == "verdict" else "its slice: "
        findings.broken.setdefault(task.id, f"{where}{outcome.error}")
    else:
        kept = findings.records if task.kind == "verdict" else findings.slices
        if outcome.value is not None:  # a picture may be none after all
            kept[task.id] = outcome.value
        if task.kind == "verdict":
            findings.figures[task.id] = Path(task.store) / f"{task.id}.svg"


def _weight(claim: Claim, kind: str) -> float:
    """How much of the bar it is: as its minutes; a slice is the smaller part."""
    return claim.minutes if kind == "verdict" else claim.minutes / _VALUES


def _read(path: Path, known: Mapping[str, Claim]) -> tuple[dict[str, Any], dict[str, Path]]:
    """Stored records by id, of the largest size where there are several, and their figures."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    found: dict[str, tuple[Any, Path]] = {}
    for file in files:
        try:
            records = read_records(file)
        except InputError as error:
            print(f"featlab: left out: {error}", file=sys.stderr)
            continue
        for record in records:
            if record["id"] in known and _usable(record):
                found[record["id"]] = max(found.get(record["id"], (record, file)), (record, file), key=_rank)
    if not found:
        raise InputError(f"There is no record of a verdict in {str(path)!r}; `featlab verify --out` writes some.")
    missing = [id for id in known if id not in found]
    if missing:
        print(f"featlab: no record of {', '.join(missing)}.", file=sys.stderr)
    # A figure lies beside the record whose name it has.
    figures = {id: file.with_suffix(".svg") for id, (_, file) in found.items() if file.stem == id}
    return {id: found[id][0] for id in known if id in found}, figures


def _usable(record: Mapping[str, Any]) -> bool:
    try:
        wanted = {"name", "kind", "measured", "low", "high", "expected", "margin", "status"}
        return (
            record["status"] in EXIT_CODES
            and bool(record["checks"])
            and all(wanted <= set(check) and check["status"] in EXIT_CODES for check in record["checks"])
        )
    except (KeyError, TypeError):
        return False


def _rank(one: tuple[Mapping[str, Any], Path]) -> int:
    size = one[0].get("size")
    return SIZES.index(size) if size in SIZES else -1


def _write(findings: Findings, claims, errata, where: Path, folder, made_by: str) -> list[Path]:
    """All files of the atlas."""
    from featlab.errata import HOW_READ, READINGS

    own = find_claims() if folder is not None else claims

    def facts(id: str) -> dict[str, Any]:
        record = findings.records.get(id)
        figure = None if record is None else verdict_figure(record, findings.figures.get(id))
        return {"error": findings.broken.get(id), "figure": figure}

    known = {id: decided(claim, findings.records.get(id)) for id, claim in claims.items() if id in own}
    kept = {id: record for id, record in known.items() if record is not None}
    cards = [
        card(
            claim,
            findings.records.get(id),
            kept=kept.get(id),
            piece=page.slice_view(findings.slices[id]) if id in findings.slices else None,
            folder=None if id in own else folder,
            **facts(id),
        )
        for id, claim in claims.items()
    ]
    slips = [erratum_card(one, findings.records.get(id), **facts(id)) for id, one in errata.items()]
    said = findings.records | kept
    of_claims = [said[id] for id in claims if id in said]
    drawn, alt = _exponents(of_claims, where)
    of_errata = [findings.records[id] for id in errata if id in findings.records]
    shown = {"exponents": drawn, "exponents_alt": alt, "circumstances": circumstances(of_claims, cards)}
    texts = {
        "atlas.html": page.atlas_page(cards, slips, made_by=made_by, **shown),
        "errata.html": page.errata_page(
            slips,
            [reading_card(one) for one in READINGS],
            how_read=HOW_READ,
            made_by=made_by,
            circumstances=circumstances(of_errata),
        ),
        "atlas.md": tables.markdown(claims, said, findings.broken),
        "atlas.tex": tables.latex(claims, said, findings.broken),
    }
    for name, text in texts.items():
        (where / name).write_text(text, encoding="utf-8", newline="\n")
    return [where / name for name in texts]


def _exponents(records: list[Any], where: Path) -> tuple[Embedded | None, str]:
    rates = [check for record in records for check in record["checks"] if check["kind"] in RATES]
    if not rates:
        return None, ""
    figure = plots.exponents(records)
    for kind in ("svg", "png"):
        plots.save(figure, where / f"exponents.{kind}")
    counts = Counter(check["status"] for check in rates)
    said = ", ".join(f"{counts[status]} {status}" for status in EXIT_CODES if counts[status])
    alt = (
        f"{len(rates)} measured exponents and thresholds beside theory, one row each: {said}. The numbers of each "
    )
    alt += "are in the table of its theorem below."
    return embedded((where / "exponents.svg").read_text(encoding="utf-8"), lambda: figure, _HERO), alt


def circumstances(records, cards=()) -> str:
    """Under which circumstances the numbers arose, in a sentence or two."""
    repeated = Counter(card["again"]["word"] for card in cards if card["again"] is not None)
    if any(card["decided"] for card in cards):
        said = "Decided at laptop size on fresh seeds, and shipped with featlab."
        if not repeated:
            return said
        return (
            f"{said} Repeated here, smaller: {repeated['consistent']} consistent, no check of theirs saying the "
            f"opposite; {repeated['not']} not."
        )
    sizes = Counter(record.get("size") for record in records if record.get("size"))
    if not sizes:
        return ""
    said = " and ".join(
        f"{name} ({sizes[name]})" if len(sizes) > 1 else str(name) for name in SIZES if sizes[name]
    )
    hint = ""
    if sizes["tiny"] or sizes["smoke"]:
        hint = " Small sizes take seconds and leave more verdicts open than the laptop size does."
    return f"Size: {said}.{hint}"


def _command(size, strict, out, folder, base_seed, perturb, records, slices) -> str:
    words = ["featlab", "atlas", *(["--records", str(records)] if records is not None else ["--size", size])]
    words += ["--claims", str(folder)] if folder is not None else []
    words += ["--base-seed", str(base_seed)] if base_seed is not None and records is None else []
    words += ["--perturb"] * perturb + ["--strict"] * strict + ["--no-slices"] * (not slices) + ["--out", str(out)]
    return shlex.join(words)
