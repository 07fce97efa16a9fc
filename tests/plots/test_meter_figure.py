"""The meter's figure shows what was read."""

import dataclasses

import numpy as np
import pytest

import featlab as fl
from featlab.metering import Reading
from featlab.metering.reading import Margins, Row

RANDOM = np.random.default_rng(0)
ROWS = [
    Row("total_movement", "all", None, 0.4),
    Row("movement of first", "first", None, 0.3),
    Row("movement of a.very.long.name.of.a.layer.of.a.network", "long", None, 0.6),
    Row("kernel_movement", "kernel", None, 1.2),
]
MARGINS = Margins(RANDOM.normal(size=50), 2 + RANDOM.normal(size=50), RANDOM.random(50) < 0.2)
READING = Reading(
    "rich", "Rich: it is.", tuple(ROWS), MARGINS, RANDOM.normal(size=(20, 3)), RANDOM.normal(size=(20, 3)),
    {"AGOP, before": np.array([0.6, 0.4]), "AGOP, after": np.array([0.9, 0.1])}, (), 50, 20, 99, 0.1,
)  # fmt: skip


def drawn(reading):
    linear, moved, margins, spectra = fl.plots.meter(reading, "a network").axes
    return linear, moved, margins, spectra


def test_every_panel_shows_its_numbers():
    linear, moved, margins, spectra = drawn(READING)
    points = linear.lines[1]
    np.testing.assert_array_equal(points.get_xdata(), READING.linear_change.ravel())
    np.testing.assert_array_equal(points.get_ydata(), READING.change.ravel())
    assert [bar.get_width() for bar in moved.patches] == [0.3, 0.6, 0.4, 1.2]
    after = margins.lines[0].get_xdata()
    flipped = MARGINS.flipped
    assert flipped is not None and set(after[np.isfinite(after)]) == set(MARGINS.after[~flipped])
    words = [text.get_text() for text in margins.get_legend().get_texts()]
    assert words == [f"{(~flipped).sum()} clean labels", f"{flipped.sum()} flipped labels", "before training"]
    assert [line.get_ydata().tolist() for line in spectra.lines] == [[0.6, 0.4], [0.9, 0.1]]


def test_what_was_not_read_is_said():
    _, _, margins, spectra = drawn(dataclasses.replace(READING, margins=None, spectra={}))
    assert "no margins" in margins.texts[0].get_text() and "no AGOP" in spectra.texts[0].get_text()


def test_what_began_at_zero_is_drawn_without_a_length():
    rows = [row._replace(after=float("nan")) if row.name == "total_movement" else row for row in ROWS]
    _, moved, _, _ = drawn(dataclasses.replace(READING, rows=tuple(rows)))
    assert [bar.get_width() for bar in moved.patches] == [0.3, 0.6, 0, 1.2]
    assert [text.get_text() for text in moved.texts] == [" 0.3", " 0.6", " began at 0", " 1.2"]


def test_only_readings_are_drawn():
    with pytest.raises(fl.InputError, match="plots.meter draws what featlab.meter returns, got dict."):
        fl.plots.meter({})  # type: ignore
