"""How fields of experiments look on the page: their symbols, and the range of a slider."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from featlab.fields import Kind

SYMBOLS = {
    "n": ("n", "training samples"),
    "d": ("d", "dimension"),
    "snr": ("SNR", "signal-to-noise ratio"),
    "signal_norm": ("|μ|", "length of the signal"),
    "noise_scale": ("σ", "noise in each coordinate"),
    "label_flip": ("p", "flipped training labels"),
    "negative_flip": ("τ₋", "flipped labels of class -1"),
    "test_flip": ("p, test", "flipped test labels"),
    "cosine": ("cos", "angle between the two signals"),
    "sparsity": ("s", "coordinates that noise touches"),
    "feature_noise": ("α", "noise along the feature"),
    "rank": ("r", "directions of the teacher"),
    "label_noise": ("σ_ε", "noise of the labels"),
    "width": ("m", "neurons"),
    "power": ("q", "power of the activation"),
    "slope": ("s", "slope below 0"),
    "init_scale": ("σ₀", "scale of the start"),
    "learning_rate": ("η", "learning rate"),
    "momentum": ("β", "momentum"),
    "weight_decay": ("λ", "weight decay"),
    "pace": ("κ", "largest relative change a step"),
    "radius": ("τ", "radius of the perturbation"),
    "flip": ("p", "labels flipped in a step"),
    "concentration": ("α", "of the mixing weights"),
    "beta1": ("β₁", "memory of gradients"),
    "beta2": ("β₂", "memory of their squares"),
    "epsilon": ("ε", "in the denominator"),
    "alpha": ("α", "step n^α"),
    "eta": ("η", "step"),
    "constant": ("c", "step c n^α"),
    "penalty": ("λ", "ridge penalty"),
    "duration": ("t", "time of one step"),
    "size": ("B", "inputs a step"),
}
_RANGES = {
    "n": (4, 1024),
    "d": (10, 1e9),
    "snr": (0.01, 10),
    "width": (1, 256),
    "label_flip": (0, 0.5),
    "negative_flip": (0, 0.5),
    "test_flip": (0, 0.5),
    "cosine": (-0.9, 0.9),
    "power": (0.5, 6),
    "slope": (0, 1),
    "alpha": (-0.2, 0.5),
}
_LETTERS = {"mu": "μ", "sigma": "σ", "eta": "η", "alpha": "α", "tau": "τ", "rho": "ρ", "gamma": "γ", "lambda": "λ"}
_AROUND = 100.0  # a field of no usual range: this factor around its value, on a logarithmic scale


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
    """The control of a field, by its name, its kind and its usual value."""
    name = path.rpartition(".")[2]
    symbol, words = SYMBOLS.get(name, (name.replace("_", " "), name.replace("_", " ")))
    if kind.name == "flag":
        return Field(path, symbol, words, "flag", bool(value), 0, 1, False, False)
    if kind.name == "function":
        return Field(path, "activation", name, "activation", value, 0, 0, False, False)
    finite = isinstance(value, int | float) and math.isfinite(value)
    low, high = _RANGES.get(name) or _around(float(value) if finite else 1.0, kind)
    low, high = max(low, kind.low), min(high, kind.high)
    if finite:
        low, high = min(low, value), max(high, value)
    log = low > 0 and high / low > 20
    shown = value if finite or value is None else str(value)
    return Field(path, symbol, words, kind.name, shown, low, high, log, kind.optional)


def plain_symbol(latex: str) -> str:
    """A short formula as plain text, for a line of words: n|μ|^4 / (0.2 σ^4 d)."""
    text = re.sub(r"\\(?:mathrm|text)\{([^}]*)\}", r"\1", latex)
    for command, letter in _LETTERS.items():
        text = re.sub(rf"\\{command}(?![a-zA-Z]) ?", letter, text)
    return re.sub(r"\\[,;:! ]", " ", text).replace(r"\|", "|")


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
