"""One self-contained HTML page from cards: styles, scripts, figures and data inside, no request from it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from featlab.atlas.cards import MARKS, WORDS
from featlab.atlas.figures import Embedded
from featlab.atlas.slices import SEEDS
from featlab.atlas.words import formula, interval, number, sentence

_TEMPLATES = Path(__file__).parent / "templates"
_CHARTS = Path(__file__).with_name("charts.js")


def atlas_page(
    cards: Sequence[Mapping[str, Any]],
    errata: Sequence[Mapping[str, Any]] = (),
    *,
    exponents: Embedded | None = None,
    exponents_alt: str = "",
    circumstances: str = "",
    made_by: str = "featlab atlas",
) -> str:
    """The page of all claims."""
    counted = Counter(card["status"] for card in cards)
    return _rendered(
        "atlas.html",
        charts=any(card["slice"] for card in cards),
        cards=cards,
        errata=errata,
        counts=[(status, counted[status]) for status in MARKS if counted[status]],
        words={status: WORDS.get(status, status) for status in MARKS},
        exponents=exponents,
        exponents_alt=exponents_alt,
        circumstances=circumstances,
        made_by=made_by,
        repeated=any(card["decided"] for card in cards),
    )


def errata_page(
    errata: Sequence[Mapping[str, Any]],
    readings: Sequence[Mapping[str, Any]] = (),
    *,
    how_read: str = "",
    circumstances: str = "",
    made_by: str,
) -> str:
    """The page of all errata and readings."""
    return _rendered(
        "errata.html",
        charts=False,
        errata=errata,
        readings=readings,
        how_read=how_read,
        circumstances=circumstances,
        made_by=made_by,
    )


def slice_view(piece: Mapping[str, Any]) -> dict[str, Any]:
    """A slice as the page shows it: its formulas, a table, and the data for the slider."""
    from markupsafe import Markup

    ends = piece["endings"]
    numbers = piece["numbers"]
    rows = [
        {
            "value": number(value),
            "number": number(numbers[k], 3),
            "mean": number(ends["mean"][k]),
            "interval": interval({"low": ends["low"][k], "high": ends["high"][k]}),
        }
        for k, value in enumerate(piece["values"])
    ]
    # The slider begins a little beyond the boundary: what the theorem says is to be seen there.
    above = [k for k, value in enumerate(numbers) if value is not None and value >= 2]
    return {
        "data": piece,
        "rows": rows,
        "seeds": SEEDS,
        "start": min(above, key=lambda k: numbers[k]) if above else len(rows) // 2,
        "slider_formula": sentence(f"${piece['slider_symbol']}$"),
        "symbol_formula": sentence(f"${piece['symbol']}$"),
        "json": Markup(json_inside(piece)),
    }


def json_inside(value: Any) -> str:
    """JSON that can stand inside a script element: nothing in it ends the element."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _rendered(template: str, *, charts: bool, **facts: Any) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    scripts = [_script(path) for path in [*([_CHARTS] if charts else []), _TEMPLATES / "atlas.js"]]
    style = environment.from_string(
        "{% autoescape false %}" + _text(_TEMPLATES / "atlas.css") + "{% endautoescape %}"
    )
    return environment.get_template(template).render(
        style=Markup(style.render()),
        scripts=[Markup(script) for script in scripts],
        policy=_policy(scripts),
        formula=formula,
        **facts,
    )


def _script(path: Path) -> str:
    text = _text(path)
    assert "</script" not in text.lower() and "<!--" not in text, f"{path.name} would end its own element"
    return text


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8").replace("\r\n", "\n")


def _policy(scripts: Sequence[str]) -> str:
    """What the browser may do with this page: run these very scripts, show data images, ask for nothing."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{one}'" for one in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
