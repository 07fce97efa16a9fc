"""How fields of experiments look on the page: their symbols as plain text, and the range of a slider."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from featlab.atlas.words import GREEK
from featlab.core.validation import Kind

_SIGNS = {**GREEK, "nu": "ν", "varepsilon": "ε", "star": "⋆", "circ": "°", "pm": "±", "cos": "cos "}
_LOWERED = str.maketrans("0123456789+-", "₀₁₂₃₄₅₆₇₈₉₊₋")
_AROUND = 100.0  # a field of no declared span: this factor around its value, on a logarithmic scale


class Field(NamedTuple):
    """One control of the page."""

    name: str
    symbol: str
    words: str
    kind: str  # whole, real, probability, flag or activation
    value: Any  # the usual one; None where nothing is given
    low: float
    high: float
    log: bool
    optional: bool


def field_of(path: str, kind: Kind, value: Any) -> Field:
    """The control of a field, by its path, what it was declared to hold, and its usual value."""
    symbol, words = named(path, kind)
    if kind.name == "flag":
        return Field(path, symbol, words, "flag", bool(value), 0, 1, False, False)
    if kind.name == "function":
        return Field(path, symbol, words, "activation", value, 0, 0, False, False)
    finite = isinstance(value, int | float) and math.isfinite(value)
    low, high = kind.span or _around(float(value) if finite else 1.0, kind)
    low, high = max(low, kind.low), min(high, kind.high)
    if finite:
        low, high = min(low, value), max(high, value)
    log = low > 0 and high / low > 20
    shown = value if finite or value is None else str(value)
    return Field(path, symbol, words, kind.name, shown, low, high, log, kind.optional)


def named(path: str, kind: Kind | None) -> tuple[str, str]:
    """Symbol and words of a field; its own name, where the declaration has none."""
    plain = path.rpartition(".")[2].replace("_", " ")
    return (plain_symbol(kind.symbol) or plain, kind.means or plain) if kind is not None else (plain, plain)


def plain_symbol(latex: str) -> str:
    """A short formula as plain text, for a line of words: n|μ|^4 / (0.2 σ₀^4 d)."""
    text = re.sub(r"\\(?:mathrm|text)\{([^}]*)\}", r"\1", latex)
    for command, sign in _SIGNS.items():
        text = re.sub(rf"\\{command}(?![a-zA-Z]) ?", sign, text)
    text = re.sub(r"_\{?([0-9+-]+)\}?", lambda index: index[1].translate(_LOWERED), text)
    text = re.sub(r"([_^])\{(\w+)\}", r"\1\2", text)
    return re.sub(r"\\[,;:! ]", " ", text).replace(r"\|", "|").replace("^°", "°")


def _around(value: float, kind: Kind) -> tuple[float, float]:
    if kind.name == "probability":
        return 0.0, 1.0
    if kind.name == "whole":
        return max(1.0, value // 10), max(10.0, 10 * value)
    if math.isfinite(kind.low) and math.isfinite(kind.high):
        return kind.low, kind.high
    if value > 0:
        return value / _AROUND, value * _AROUND
    return (0.0, 1.0) if kind.low >= 0 else (-1.0, 1.0)
