"""Fields say what they hold and what they are called; whatever shows them takes its words from there."""

import dataclasses
import importlib
import math
import sys
from pathlib import Path

import jax.numpy as jnp
import pytest
from matplotlib.mathtext import MathTextParser

import featlab as fl
from featlab.core.validation import Part, flag, function, kind_of, probability, real, whole
from featlab.sweeps.axes import as_axes
from featlab.text import known_names
from featlab.web._catalogue import Catalogue
from featlab.web._fields import named, plain_symbol

PARTS = {
    name: thing for name, thing in known_names().items() if isinstance(thing, type) and issubclass(thing, Part)
}
FIELDS = {
    f"{name}.{field.name}": kind_of(thing, field.name)
    for name, thing in PARTS.items()
    for field in dataclasses.fields(thing)
}
BASE = fl.Experiment(
    data=fl.data.SignalNoise(n=6, d=1000, snr=0.5),
    network=fl.networks.TwoLayer(width=4, activation=fl.networks.relu_power(3)),
    algorithm=fl.algorithms.GradientDescent(0.1),
)


class Spring(Part):
    stiffness: float = real(above=0, symbol=r"k_0", means="force a unit of length", span=(0.1, 10))
    coils: int = whole(at_least=1)


@pytest.mark.parametrize(
    "name", [name for name, kind in FIELDS.items() if kind is not None and kind.name != "part"]
)
def test_every_declared_field_says_what_it_means(name):
    kind = FIELDS[name]
    assert kind.means or kind.name == "function"  # which says what it is where a wrong one is given
    assert kind.means == kind.means.strip(" .") and not set("()$\\") & set(kind.means)  # in plain words
    if kind.symbol:
        MathTextParser("path").parse(f"${kind.symbol}$")
        assert "\\" not in plain_symbol(kind.symbol) and "{" not in plain_symbol(kind.symbol)


@pytest.mark.parametrize(
    "declare, complaint",
    [
        (lambda: real(means="size", span=(2, 1)), "span of 'size' must be two rising numbers from -inf to inf"),
        (lambda: real(means="size", above=0, span=(-1, 1)), "two rising numbers from 0 to inf, got .-1, 1"),
        (lambda: whole(means="count", at_least=2, span=(1, 9)), "two rising numbers from 2 to inf"),
        (lambda: probability(means="chance", span=(0.0, 1.5)), "two rising numbers from 0 to 1"),
        (lambda: real(means="size", at_least=0, default=-1.0), "default of 'size' must be a finite number of at"),
        (lambda: whole(means="count", default=2.5), "default of 'count' must be a whole number"),
        (lambda: flag(means="choice", default=1), "default of 'choice' must be true or false"),
        (lambda: function("a loss", means="loss", default=3), "default of 'loss' must be a loss"),
    ],
)
def test_a_wrong_declaration_fails(declare, complaint):
    with pytest.raises(fl.InputError, match=complaint):
        declare()


def test_a_wrong_value_is_answered_in_the_words_of_its_field():
    with pytest.raises(
        fl.InputError, match=r"^Spring.stiffness must be .* got 0.0; it stands for force a unit of length\.$"
    ):
        Spring(0.0, 3)
    with pytest.raises(fl.InputError, match=r"^Spring.coils must be a whole number of at least 1, got 0\.$"):
        Spring(1.0, 0)


def test_an_axis_has_the_words_of_the_very_field():
    grid = {"network.power": [0.5, 1], "network.activation.power": [2, 3], "steps": [1, 2], "precision": [32, 64]}
    found = {axis.path: axis.coordinate[2] for axis in as_axes(grid, BASE)}
    said = {path: (attrs["symbol"], attrs["long_name"]) for path, attrs in found.items()}
    assert said == {
        "network.power": ("p", "power of the width over the output"),
        "network.activation.power": ("q", "power of the activation"),
        "steps": ("T", "steps of training"),
        "precision": ("", "precision"),
    }


def test_a_functions_own_arguments_go_by_their_names():
    (axis,) = as_axes({"power": [1, 2]}, lambda power: BASE)
    assert (axis.coordinate[2]["symbol"], axis.coordinate[2]["long_name"]) == ("", "power")


def test_a_slider_has_the_words_and_the_span_of_the_very_field():
    kinds = Catalogue().page()["kinds"]

    def said(section, kind, name):
        (field,) = [one for one in kinds[section][kind]["fields"] if one["name"] == name]
        return field["symbol"], field["words"], field["low"], field["high"]

    assert said("network", "TwoLayer", "power") == ("p", "power of the width over the output", 0, 1)
    assert said("activation", "relu_power", "power") == ("q", "power of the activation", 0.5, 6)
    assert said("data", "SignalNoise", "snr")[:2] == ("SNR", "signal-to-noise ratio")
    assert said("algorithm", "Adam", "beta1")[:2] == ("β₁", "memory of gradients")
    assert named("data.coils", None) == ("coils", "coils")


@pytest.mark.parametrize(
    "latex, plain",
    [
        (r"\|\mu\|", "|μ|"),
        (r"\sigma_0", "σ₀"),
        (r"\tau_-", "τ₋"),
        (r"p_{\mathrm{test}}", "p_test"),
        (r"\sigma_\varepsilon", "σ_ε"),
        (r"r^\circ", "r°"),
        (r"\cos\theta", "cos θ"),
    ],
)
def test_symbols_as_plain_text(latex, plain):
    assert plain_symbol(latex) == plain


def test_an_api_page_has_the_words_of_the_very_field(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "docs" / "_ext")
    pages = importlib.import_module("public_names")
    rows = {name.strip("`"): row for name, *row in pages.field_rows(fl.networks.TwoLayer)}
    assert rows["power"] == ["a finite number", "`0.5`", "$p$, power of the width over the output"]
    (row,) = pages.field_rows(fl.networks.relu_power)
    assert row[3] == "$q$, power of the activation"
    rows = {name.strip("`"): row for name, *row in pages.field_rows(fl.data.SignalNoise)}
    assert rows["snr"][2] == r"$\mathrm{SNR}$, signal-to-noise ratio; give this or signal_norm"
    for name in ("public_names", "markdown_text"):
        del sys.modules[name]


def test_spans_hold_whatever_was_usual():
    low, high = kind_of(fl.data.SignalNoise, "d").span
    assert (low, high) == (10, 1e9) and not math.isinf(high)
    assert jnp.isfinite(high)
