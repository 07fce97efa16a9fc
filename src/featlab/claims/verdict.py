"""What became of a claim: a verdict, as numbers, as a table, as HTML, as JSON."""

from __future__ import annotations

import dataclasses
import html
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from featlab.claims import Assumption, Check
from featlab.claims.claim import Clause
from featlab.claims.intervals import LEVEL
from featlab.claims.judge import TWO_SIDED

if TYPE_CHECKING:
    import pandas as pd

ALGEBRA = ("identity", "computed")  # what decides where a formula is claimed
EXIT_CODES = {"supported": 0, "refuted": 1, "inconclusive": 3}
ROWS = ("name", "kind", "measured", "low", "high", "expected", "margin", "lower", "upper", "status", "reason")
ROWS += ("evidence", "seeds", "dropped")  # of a data frame
COLUMNS = ("", "check", "measured", "95 % interval\nand what refutes", "theory allows", "seeds", "verdict")
NUMBERS = ("measured", "95 % interval\nand what refutes", "seeds")
_MARKS = {"supported": "✓", "refuted": "✗", "inconclusive": "?"}


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Supported, refuted or inconclusive, with the numbers and a sentence that says why."""

    id: str
    title: str
    size: str
    seconds: float
    checks: tuple[Check, ...]
    control: Check
    control_changes: str
    assumptions: tuple[Assumption, ...]
    seeds: int
    base_seed: int
    trained_fraction: float | None  # none where nothing was trained
    setting: dict[str, Any]
    versions: dict[str, str]
    judged: int  # checks judged together: what refutation is corrected for
    clauses: tuple[Clause, ...] = ()
    algebra: bool = False  # whether identities decide
    rival: bool = False  # whether the control is another formula for the same numbers, which must fail
    exploratory: str = ""  # what was chosen after looking, if anything
    registered: str = ""  # whether the source is what was registered before it was decided
    perturbed: dict[str, str] = dataclasses.field(default_factory=dict)  # change -> status

    @property
    def status(self) -> str:
        return self._decision[0]

    @property
    def reason(self) -> str:
        return self._decision[1]

    @property
    def _decision(self) -> tuple[str, str]:
        outside = [one for one in self.assumptions if not one.holds]
        if outside:
            one = outside[0]
            seen = "seen" if all(c.status(self.judged) == "supported" for c in self.checks) else "judged"
            return "inconclusive", (
                f"{seen}, but outside the theorem: {one.sentence} is {one.value:.3g}, and should be {one.should}"
            )
        decisions = [(check, *check.decision(self.judged)) for check in self.checks]
        for wanted in ("refuted", "inconclusive"):
            for check, status, reason in decisions:
                if status == wanted:
                    return wanted, f"{check.name}: {reason}"
        formulas = self.algebra and any(check.evidence in ALGEBRA for check in self.checks)
        if not (self.evidence or formulas or self.rival):
            return "inconclusive", "no check is evidence: they are identities, calculations or have room to spare"
        if not (self.rival or any(self.control.asks_the_same_as(check) for check in self.checks)):
            return "inconclusive", "the control is not judged as any of the checks is: by another verb or bound"
        control, why = self.control.decision(self.judged)
        if control != "refuted":
            low, high = self.control.interval()
            measured = f"{self.control.measured:.4g} [{low:.4g}, {high:.4g}]"
            return "inconclusive", (
                f"the control ({self.control_changes}) should be refuted and is {control}: {why or measured}"
            )
        return "supported", "every interval lies inside its margin, and the control is refuted"

    @property
    def evidence(self) -> list[Check]:
        """The checks whose pass counts."""
        return [check for check in self.checks if check.evidence == "evidence"]

    @property
    def too_small(self) -> bool:
        """Whether nothing could be supported at this size, for lack of seeds."""
        return self.status == "inconclusive" and any(check.too_small for check in self.checks)

    @property
    def word(self) -> str:
        """What a person reads: the status, or that the size is too small to judge by."""
        return "too small to judge" if self.too_small else self.status

    def record(self) -> dict[str, Any]:
        """All of it as plain data: what `--json` prints, and what `verify_again` repeats."""
        return _plain(
            {
                "id": self.id,
                "status": self.status,
                "word": self.word,
                "reason": self.reason,
                "exploratory": self.exploratory,
                "registered": self.registered,
                "size": self.size,
                "seconds": round(self.seconds, 2),
                "checks": [_check(check, self.judged) for check in self.checks],
                "control": {"changes": self.control_changes, **_check(self.control, self.judged)},
                "clauses": [self._clause(one) for one in self.clauses],
                "evidence": len(self.evidence),
                "assumptions": [{**one._asdict(), "holds": one.holds} for one in self.assumptions],
                "seeds": self.seeds,
                "base_seed": self.base_seed,
                "trained_fraction": self.trained_fraction,
                "setting": self.setting,
                "versions": self.versions,
                "judged": self.judged,
                "title": self.title,
                "perturbed": self.perturbed,
            }
        )

    def table(self):
        """The verdict as a table for the terminal."""
        from rich.table import Table
        from rich.text import Text

        head = f"{self.id}: {self.word.upper()}\n{self.title}\n{self.reason}"
        # Text, because plain strings are markup: [n] would vanish.
        title, caption = Text(head, "table.title"), Text(self._caption(), "table.caption")
        table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
        for column in COLUMNS:
            table.add_column(column, justify="right" if column in NUMBERS else "left")
        for row in self._rows():
            table.add_row(*map(Text, row))
        return table

    def _rows(self):
        for check in (*self.checks, self.control):
            control = check is self.control
            name = f"control: {self.control_changes}" if control else check.name
            status = check.status(self.judged)
            mark = ("✓" if status == "refuted" else "?") if control else _MARKS[status]
            passed = not control and status == "supported" and check.evidence != "evidence"
            word = f"holds ({check.evidence})" if passed else status
            numbers = (f"{check.measured:.4g}", _both(check, self.judged), _allowed(check), _seeds(check))
            yield mark, name, *numbers, word

    def _clause(self, one: Clause) -> dict[str, Any]:
        """A clause with what became of it: the worst status of its checks."""
        if one.reason:
            return {"clause": one.words, "checks": [], "status": "not judged", "reason": one.reason}
        by = [check for check in self.checks if check.name in one.checks]
        statuses = [check.status(self.judged) for check in by]
        status = next((s for s in ("refuted", "inconclusive") if s in statuses), "supported")
        kinds = {check.evidence for check in by}
        if status == "supported" and "evidence" not in kinds:
            status = "holds, not evidence: " + ", ".join(sorted(kinds))
        return {"clause": one.words, "checks": list(one.checks), "status": status, "reason": ""}

    def _caption(self) -> str:
        trained = "nothing was trained"
        if self.trained_fraction is not None:
            trained = f"{math.floor(1000 * self.trained_fraction + 1e-9) / 10:g}% of runs trained"
        lines = [f"{self.size}, {self.seeds} seeds from {self.base_seed}, {trained}, {self.seconds:.0f} s"]
        lines += [f"exploratory: {self.exploratory}"] if self.exploratory else []
        lines += [self.registered] if self.registered else []
        weaker = [check for check in self.checks if check.evidence != "evidence"]
        lines.append(f"{len(self.evidence)} of {len(self.checks)} checks count as evidence")
        if any(check.evidence == "room to spare" for check in weaker):
            lines.append("room to spare: a bound ten times the measurement or more, whose constant is not tested")
        for clause in map(self._clause, self.clauses):
            mark = _MARKS.get(clause["status"], "–")
            lines.append(f"{mark} {clause['clause']}: {clause['reason'] or clause['status']}")
        rivals = [(check, rival) for check in self.checks for rival in check.rivals]
        if rivals:
            beaten = sum(check.refutes(rival, self.judged) for check, rival in rivals)
            lines.append(f"rival exponents refuted: {beaten} of {len(rivals)}")
        for one in self.assumptions:
            lines.append(f"{'✓' if one.holds else '✗'} {one.sentence}: {one.value:.3g} (should be {one.should})")
        for change, status in self.perturbed.items():
            lines.append(f"{_MARKS[status]} {change}: {status}")
        return "\n".join(lines)

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(width=140, color_system=None, markup=False)
        with console.capture() as caught:
            console.print(self.table())
        return caught.get()

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each check: what was measured, its interval, what theory allows, and the verdict on it."""
        import pandas as pd

        rows = [_check(check, self.judged) for check in self.checks]
        return pd.DataFrame([{name: row[name] for name in ROWS} for row in rows]).set_index("name")

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in self._rows()
        )
        head = "".join(f"<th>{name}</th>" for name in COLUMNS)
        notes = "<br>".join(html.escape(line) for line in self._caption().splitlines())
        return (
            f"<h3>{html.escape(self.id)}: {self.word}</h3><p>{html.escape(self.title)}<br>"
            f"{html.escape(self.reason)}</p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
            f"<p>{notes}</p>"
        )


def _check(check: Check, judged: int) -> dict[str, Any]:
    low, high = check.interval()
    status, reason = check.decision(judged)
    return {
        "name": check.name,
        "kind": check.kind,
        "measured": check.measured,
        "low": low,
        "high": high,
        "expected": check.expected,
        "margin": check.margin,
        "lower": check.lower,  # of the region that theory allows; null where it has no end
        "upper": check.upper,
        "passed": status == "supported",
        "status": status,
        "reason": reason,
        "evidence": check.evidence,
        "deciding_level": check.deciding_level(judged),
        "deciding_low": check.interval(check.deciding_level(judged))[0],
        "deciding_high": check.interval(check.deciding_level(judged))[1],
        "seeds": check.seeds,
        "dropped": check.dropped,
        "theory_inside_interval": low <= check.expected <= high,
        "drift": None if check.drift is None else _largest(check.drift),
        "rivals": [{"expected": rival, "refuted": check.refutes(rival, judged)} for rival in check.rivals],
        "worst_cell": check.cells[check.worst],
        "cells": [
            {"cell": cell, "measured": float(np.nanmean(row)) if np.isfinite(row).any() else math.nan}
            for cell, row in zip(check.cells, check.samples)
        ],
        "samples": check.samples[check.worst],
        "points": check.points,
    }


def _both(check: Check, judged: int) -> str:
    """The interval that supports, and below it the one that refutes; a computed number has none."""
    if not check.chance:
        return ""
    ends = [check.interval(level) for level in (LEVEL, check.deciding_level(judged))]
    return "\n".join(f"[{low:.4g}, {high:.4g}]" for low, high in ends)


def _seeds(check: Check) -> str:
    """How many seeds have a value, of how many, in the cell that has fewest."""
    if not check.chance:
        return ""
    return f"{check.seeds} of {check.seeds + check.dropped}" if check.dropped else f"{check.seeds}"


def _largest(drift) -> float:
    """The mean over seeds, of the cell where it is largest."""
    means = [float(np.nanmean(row)) if np.isfinite(row).any() else math.nan for row in drift]
    return max(means, key=abs)


def _allowed(check: Check) -> str:
    if check.kind in TWO_SIDED and math.isfinite(check.lower) and math.isfinite(check.upper):
        return f"{check.expected:.4g} ± {check.margin:.2g}"
    return f"≤ {check.upper:.4g}" if math.isinf(check.lower) else f"≥ {check.lower:.4g}"


def _plain(value: Any) -> Any:
    """Numbers, strings, lists and dictionaries only; what is not finite becomes null."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, bool | int | str | None) else str(value)
