"""Figures inside a page: no file beside it, no request for it."""

from __future__ import annotations

import base64
import io
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from featlab import plots
from featlab.core.validation import InputError

LARGE = 300_000  # bytes of SVG, beyond which a picture of dots is smaller
_DOTS = 2000  # its width: sharp on a page of a thousand pixels
_SCALE = 0.75  # CSS pixels a point: letters of a figure as large as those around it
_COLOURS = 64  # of a figure that has a handful and their shades


class Embedded(NamedTuple):
    """An image as a data address, with its shape."""

    src: str
    width: int  # CSS pixels
    height: int


def verdict_figure(record: Mapping[str, Any], stored: Path | None = None) -> Embedded | None:
    """The figure of a verdict: the one stored with its record, or a new one; none where it cannot be drawn."""
    if stored is not None and stored.is_file():
        return embedded(stored.read_text(encoding="utf-8"), lambda: plots.verdict(record))
    try:
        figure = plots.verdict(record)
    except InputError:  # a record of another version, with numbers but without points
        return None
    return embedded(svg_of(figure), lambda: figure)


def embedded(svg: str, draw, most: int = LARGE) -> Embedded:
    """An SVG as a data address, or the same figure in dots where that is smaller."""
    small = compact(svg)
    width, height = _shape(small)
    if len(small) <= most:
        return Embedded(_address("image/svg+xml", small.encode()), width, height)
    return Embedded(_address("image/png", _dots(draw())), width, height)


def svg_of(figure: Figure) -> str:
    """A figure as the text of an SVG file."""
    with tempfile.TemporaryDirectory() as folder:
        return plots.save(figure, Path(folder) / "figure.svg").read_text(encoding="utf-8")


def compact(svg: str) -> str:
    """The same picture in fewer letters: no comments, two digits after the point where they are enough."""
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<\?xml.*?\?>|<!DOCTYPE.*?>", "", svg, flags=re.DOTALL)
    # Small numbers are scales of letters, and keep their digits.
    svg = re.sub(r"\b[1-9]\d*\.\d{3,}", lambda one: f"{float(one[0]):.2f}".rstrip("0").rstrip("."), svg)
    return re.sub(r"\s+", " ", re.sub(r">\s+<", "><", svg)).strip()


def _shape(svg: str) -> tuple[int, int]:
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    width, height = (float(found[1]), float(found[2])) if found else (16.0, 9.0)
    return round(_SCALE * width), round(_SCALE * height)


def _address(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _dots(figure: Figure) -> bytes:
    from PIL import Image  # a part of matplotlib's own needs

    with (
        tempfile.TemporaryDirectory() as folder,
        Image.open(plots.save(figure, Path(folder) / "figure.png")) as full,
    ):
        size = (_DOTS, round(full.height * _DOTS / full.width))
        small = full.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    small.quantize(_COLOURS, dither=Image.Dither.NONE).save(buffer, "png", optimize=True)
    return buffer.getvalue()
