"""What the meter read: as numbers, as a table, as HTML, as JSON."""

from __future__ import annotations

import dataclasses
import html
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from featlab.core.validation import InputError, did_you_mean

LAZY, RICH = 0.1, 0.5  # at most, at least: a convention, said wherever the word is
ALIKE = 0.95  # cosine of kernels that differ in size first of all
_COLUMNS = ("", "before", "after")


class Row(NamedTuple):
    """One quantity, at the start where that makes sense and at the end."""

    name: str
    words: str
    before: float | None
    after: float

    def record(self) -> dict[str, Any]:
        """The row as plain data."""
        return {"name": self.name, "words": self.words, "before": _plain(self.before), "after": _plain(self.after)}


class Margins(NamedTuple):
    """Each sample's margin, and whose label was flipped, where that is known."""

    before: np.ndarray
    after: np.ndarray
    flipped: np.ndarray | None

    def rows(self):
        """How many samples are fitted, as they are labelled, and by what margin; flipped ones apart."""
        if self.flipped is None or not self.flipped.any():
            yield from self._group("", "samples", np.ones(len(self.after), bool))
            return
        yield from self._group("clean_", "samples with a clean label", ~self.flipped)
        fitted = [float(np.mean(one[self.flipped] > 0)) for one in (self.before, self.after)]
        yield Row("memorised", f"memorised of {self.flipped.sum()} flipped labels", *fitted)
        medians = [float(np.median(one[self.flipped])) for one in (self.before, self.after)]
        yield Row("flipped_margin", "their median margin", *medians)

    def _group(self, prefix, words, chosen):
        if chosen.any():
            fitted = [float(np.mean(one[chosen] > 0)) for one in (self.before, self.after)]
            yield Row(f"{prefix}fitted", f"fitted of {chosen.sum()} {words}", *fitted)
            medians = [float(np.median(one[chosen])) for one in (self.before, self.after)]
            yield Row(f"{prefix}margin", "their median margin", *medians)


def judged(
    departure: float, kernel_movement: float, total_movement: float, kernel_similarity: float
) -> tuple[str, str]:
    """Lazy, rich or between, and the sentence that says by which numbers; of a kernel that has moved far, also
    whether it has turned or only grown.

    A departure is infinite where outputs have not changed against what the linearisation says; the movement of a
    kernel that was 0 and is no more is NaN. Both are rich.
    """
    if total_movement == 0:
        return "still", "Still: all parameters are where they began."
    missed = f"the linearisation at the start misses {_percent(departure)} of what training changed"
    if not math.isfinite(departure):
        missed = "outputs are as at the start, against what the linearisation there says"
    moved = f"moved by {_percent(kernel_movement)}" if math.isfinite(kernel_movement) else "left 0, where it began"
    if math.isfinite(kernel_movement) and kernel_movement >= RICH:
        grown = kernel_similarity >= ALIKE
        moved += f", {'mostly in size' if grown else 'not in size alone'} (cosine {kernel_similarity:.3f})"
    numbers = f"{missed}, and the tangent kernel has {moved}"
    far = max(one if math.isfinite(one) else math.inf for one in (departure, kernel_movement))
    if far <= LAZY:
        return "lazy", f"Lazy: {numbers} (lazy: at most {_percent(LAZY)} both)."
    if far >= RICH:
        return "rich", f"Rich: {numbers} (rich: at least {_percent(RICH)} one of them)."
    allowed = f"lazy: at most {_percent(LAZY)} both; rich: at least {_percent(RICH)} one of them"
    return "between", f"Between lazy and rich: {numbers} ({allowed})."


@dataclasses.dataclass(frozen=True)
class Reading:
    """What training did to a network. `reading["kernel_movement"]` is a number, `reading.regime` a word."""

    regime: str  # lazy, rich, between or still
    sentence: str
    rows: tuple[Row, ...]
    margins: Margins | None
    change: np.ndarray  # (sample, output), by which outputs have changed
    linear_change: np.ndarray  # the same as the linearisation at the start has it
    spectra: dict[str, np.ndarray]  # eigenvalues, of sum 1
    notes: tuple[str, ...]
    inputs: int
    samples: int  # those that gradients were taken of
    parameters: int
    seconds: float

    def __getitem__(self, name: str) -> float:
        return self._row(name).after

    def before(self, name: str) -> float | None:
        """The same quantity at the start, where that makes sense."""
        return self._row(name).before

    def record(self) -> dict[str, Any]:
        """All of it as plain data: what `featlab meter --json` prints."""
        margins = None
        if self.margins is not None:
            flipped = self.margins.flipped
            margins = {
                "before": _plain(self.margins.before),
                "after": _plain(self.margins.after),
                "flipped": None if flipped is None else flipped.tolist(),
            }
        return {
            "regime": self.regime,
            "sentence": self.sentence,
            "rows": [row.record() for row in self.rows],
            "margins": margins,
            "spectra": {name: _plain(values) for name, values in self.spectra.items()},
            "notes": list(self.notes),
            "inputs": self.inputs,
            "samples": self.samples,
            "parameters": self.parameters,
            "seconds": round(self.seconds, 2),
        }

    def table(self):
        """The reading as a table for the terminal."""
        from rich.table import Table
        from rich.text import Text

        title, caption = Text(self.sentence, "table.title"), Text(self._caption(), "table.caption")
        table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
        for column in _COLUMNS:
            table.add_column(column, justify="right" if column else "left")
        for row in self._cells():
            table.add_row(*map(Text, row))
        return table

    def __str__(self) -> str:
        return printed(self.table())

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in self._cells()
        )
        head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
        notes = "<br>".join(html.escape(line) for line in self._caption().splitlines())
        return (
            f"<h3>{html.escape(self.regime)}</h3><p>{html.escape(self.sentence)}</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><p>{notes}</p>"
        )

    def _cells(self):
        for row in self.rows:
            yield row.words, _number(row.before), _number(row.after)

    def _caption(self) -> str:
        line = f"{self.parameters:,} parameters, {self.inputs} samples, gradients of {self.samples}, "
        return "\n".join([f"{line}{self.seconds:.1f} s", *self.notes])

    def _row(self, name: str) -> Row:
        known = {row.name: row for row in self.rows}
        if name not in known:
            raise InputError(f"This reading has no {name!r}; {did_you_mean(name, known)}")
        return known[name]


def beside(readings: Mapping[str, Reading]):
    """A table of several readings at the end of training, one column each."""
    from rich.table import Table
    from rich.text import Text

    table = Table()
    table.add_column("after training")
    for name in readings:
        table.add_column(Text(name), justify="right")
    table.add_row("lazy or rich", *(one.regime for one in readings.values()))
    columns = [{row.name: row for row in one.rows} for one in readings.values()]
    for name in dict.fromkeys(name for rows in sorted(columns, key=len, reverse=True) for name in rows):
        found = [rows.get(name) for rows in columns]
        text = _common([row.words for row in found if row is not None])
        table.add_row(Text(text), *(_number(None if row is None else row.after) for row in found))
    return table


def printed(table) -> str:
    """A table as plain text."""
    from rich.console import Console

    console = Console(width=120, color_system=None, markup=False)
    with console.capture() as caught:
        console.print(table)
    return caught.get()


def _common(words: list[str]) -> str:
    """One row's words in several readings; where they count other samples or name other matrices, without that."""
    return words[0] if len(set(words)) == 1 else re.sub(r"( of) \d+|, W = .*", r"\1", words[0])


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _percent(value: float) -> str:
    """Three digits; more where rounding would put it on the other side of a level that decides on the word."""
    if value >= 0.9995:
        return f"{100 * value:.0f} %"
    texts = [f"{100 * value:.{digits}g}" for digits in range(3, 18)]
    return next((one for one in texts if _side(float(one) / 100) == _side(value)), texts[-1]) + " %"


def _side(value: float) -> tuple[bool, bool]:
    return value <= LAZY, value >= RICH


def _plain(value: Any) -> Any:
    """Numbers and lists of them; what is not finite becomes null."""
    if isinstance(value, np.ndarray):
        return [_plain(one) for one in value.tolist()]
    return None if value is None or not math.isfinite(value) else float(value)
