"""What became of a claim: a verdict, as numbers, as a table, as HTML, as JSON."""

from __future__ import annotations

import dataclasses
import html
import math
from typing import Any

from featlab.claims import Assumption, Check

EXIT_CODES = {"supported": 0, "refuted": 1, "inconclusive": 3}
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
    trained_fraction: float
    setting: dict[str, Any]
    versions: dict[str, str]
    judged: int  # checks in the atlas: what refutation is corrected for
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
        control, why = self.control.decision(self.judged)
        if control != "refuted":
            low, high = self.control.interval()
            measured = f"{self.control.measured:.4g} [{low:.4g}, {high:.4g}]"
            return "inconclusive", (
                f"the control ({self.control_changes}) should be refuted and is {control}: {why or measured}"
            )
        return "supported", "every interval lies inside its margin, and the control is refuted"

    def record(self) -> dict[str, Any]:
        """All of it as plain data: what `--json` prints, and what `verify_again` repeats."""
        return _plain(
            {
                "id": self.id,
                "status": self.status,
                "reason": self.reason,
                "size": self.size,
                "seconds": round(self.seconds, 2),
                "checks": [_check(check, self.judged) for check in self.checks],
                "control": {"changes": self.control_changes, **_check(self.control, self.judged)},
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

        head = f"{self.id}: {self.status.upper()}\n{self.title}\n{self.reason}"
        # Text, because plain strings are markup: [n] would vanish.
        title, caption = Text(head, "table.title"), Text(self._caption(), "table.caption")
        table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
        for column in ("", "check", "measured", "95 % interval", "theory allows", "verdict"):
            table.add_column(column, justify="right" if column in ("measured", "95 % interval") else "left")
        for row in self._rows():
            table.add_row(*map(Text, row))
        return table

    def _rows(self):
        for check in (*self.checks, self.control):
            name = check.name if check is not self.control else f"control: {self.control_changes}"
            low, high = check.interval()
            status = check.status(self.judged)
            mark = _MARKS[status] if check is not self.control else ("✓" if status == "refuted" else "?")
            yield mark, name, f"{check.measured:.4g}", f"[{low:.4g}, {high:.4g}]", _allowed(check), status

    def _caption(self) -> str:
        lines = [
            f"{self.size}, {self.seeds} seeds from {self.base_seed}, {self.trained_fraction:.1%} of runs trained, "
            f"{self.seconds:.0f} s"
        ]
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

        console = Console(width=140, color_system=None)
        with console.capture() as caught:
            console.print(self.table())
        return caught.get()

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in self._rows()
        )
        names = ("", "check", "measured", "95 % interval", "theory allows", "verdict")
        head = "".join(f"<th>{name}</th>" for name in names)
        notes = "<br>".join(html.escape(line) for line in self._caption().splitlines())
        return (
            f"<h3>{html.escape(self.id)}: {self.status}</h3><p>{html.escape(self.title)}<br>"
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
        "passed": status == "supported",
        "status": status,
        "reason": reason,
        "theory_inside_interval": low <= check.expected <= high,
        "drift": None if check.drift is None else float(check.drift.mean()),
        "rivals": [{"expected": rival, "refuted": check.refutes(rival, judged)} for rival in check.rivals],
        "worst_cell": check.cells[check.worst] if len(check.cells) > check.worst else "",
        "samples": check.samples[check.worst],
        "points": check.points,
    }


def _allowed(check: Check) -> str:
    if check.kind in ("agrees", "scales_as", "switches_at"):
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
