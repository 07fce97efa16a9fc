"""The figure of a verdict by its structure, from measurements that are made up."""

import dataclasses
import json

import matplotlib
import numpy as np
import pytest
import xarray as xr

import featlab as fl
from featlab import plots
from featlab.claims import at_least, at_most, equals, identity, scales_as, switches_at
from featlab.claims.verdict import Verdict
from featlab.plots._forest import REACH, place
from featlab.plots._scalings import as_fraction, number, read_scaling, split_names

N = np.array([64.0, 128.0, 256.0, 512.0])
RANDOM = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def same_numbers_for_every_test():
    RANDOM.bit_generator.state = np.random.default_rng(7).bit_generator.state


def law(name="exponent of SNR* in n, q = 3, level 0.1", exponent=-1 / 3, slope=None, **facts):
    """Thresholds of 24 seeds that follow a power law, each seed a little off in its constant and its slope."""
    slopes = (exponent if slope is None else slope) + RANDOM.normal(0, 0.005, 24)
    y = RANDOM.lognormal(0, 0.1, 24) * 2 * N[:, None] ** slopes
    facts = {"rivals": (exponent - 1 / 6, exponent + 1 / 12), "symbols": ("n", r"\mathrm{SNR}^*")} | facts
    return scales_as(name, over(N, y), "n", exponent, **facts)


def over(x, y, dim="n"):
    return xr.DataArray(y, coords={dim: x}, dims=(dim, "seed"))


def others():
    """One check of every other kind."""
    grid = np.geomspace(1, 4, 21)
    falling = np.repeat(np.linspace(1, 0, 21)[:, None], 24, axis=1)
    sides = {f"n = {n}": RANDOM.uniform(0.01, 0.02, 24) for n in (64, 128)}
    return [
        at_most("test loss above", sides, 0.06),
        at_least("test loss below", RANDOM.uniform(0.2, 0.25, 24), 0.1),
        at_least("signal over noise", RANDOM.uniform(4, 5, 24), 0.0),
        equals("observed error over p", RANDOM.normal(1, 0.01, 24), 1.0),
        identity("excess loss", 0.0),
        switches_at("switch", over(grid, falling, "x"), "x", 2.0, level=0.45, rising=False, margin=0.2),
    ]


def decay():
    x, pairs = np.array([1.0, 2.0, 4.0]), [(64, 1e6), (64, 1e9), (256, 1e9)]
    errors = RANDOM.lognormal(0, 0.1, (3, 3, 24)) * 0.2 * np.exp(-x / 2)[None, :, None]
    points = {"x": x, "pairs": pairs, "errors": errors, "bound": np.exp(-np.asarray(x) / 4)}
    bounds = np.tile(np.exp(-x / 4), 3)[:, None]
    return dataclasses.replace(at_most("error / exp(-X/4)", errors.reshape(9, 24) / bounds, 1.0), points=points)


def made(*checks, control=None, seeds=24, **facts):
    return Verdict(
        id="cao2022_phase",
        title="networks turn benign at n SNR^q = const",
        size="laptop",
        seconds=1.0,
        checks=checks,
        control=control or law(slope=-1 / 4),
        control_changes="ReLU^3 -> ReLU^4",
        assumptions=(),
        seeds=seeds,
        base_seed=7,
        trained_fraction=1.0,
        setting={},
        versions={},
        judged=10,
        **facts,
    )


def two_levels():
    return [law(), law("exponent of SNR* in n, q = 3, level 0.35")]


def many():
    return [law(f"time, q = {k}", -1 / k, symbols=(r"\sigma_0", "T"), rivals=(-1.0,)) for k in range(2, 7)]


def with_role(axes, role):
    return [line for line in axes.lines if line.get_gid() == role]


def slope(line):
    (x0, x1), (y0, y1) = (np.log(np.array(line.get_data())[k]) for k in (0, 1))
    return (y1 - y0) / (x1 - x0)


def texts(axes):
    legend = axes.get_legend()
    return [legend.get_title().get_text(), *(text.get_text() for text in legend.get_texts())]


def forest_of(figure):
    (found,) = [axes for axes in figure.axes if "margin,  or" in axes.get_xlabel()]
    return found


def names_of(axes):
    return [text.get_text().replace("\n", " ").replace("\xa0", " ") for text in axes.get_yticklabels()]


def test_a_stored_record_draws_the_same_picture(tmp_path):
    unfound = law("exponent in n, q = 5", -1 / 5)
    unfound.points["y"][1, 3] = np.nan
    one = made(*two_levels(), unfound, *others(), decay())
    before = dict(matplotlib.rcParams)
    stored = json.loads(json.dumps(one.record()))
    first, second = (
        plots.save(plots.verdict(each), tmp_path / f"{k}.svg") for k, each in enumerate((one, stored))
    )
    assert first.read_bytes() == second.read_bytes()
    assert dict(matplotlib.rcParams) == before


def test_the_title_says_what_became_of_the_claim():
    supported = made(*two_levels())
    assert plots.verdict(supported).get_suptitle() == "cao2022_phase: supported, 24 seeds"
    refuted = plots.verdict(made(law(slope=-0.45), seeds=1))
    assert refuted.get_suptitle() == "cao2022_phase: refuted, 1 seed"
    said = [text.get_text() for text in refuted.texts]
    assert "turn benign" in said[1] and "is outside" in said[1]
    assert plots.verdict(supported).texts[1].get_text() == supported.title


def test_levels_share_a_panel_and_exponents_do_not():
    other = law("exponent of SNR* in n, q = 4, level 0.1", -1 / 4)
    figure = plots.verdict(made(*two_levels(), other))
    first, beside, second, _, forest = figure.axes
    assert texts(first)[0] == "exponent of SNR* in n, q = 3"
    assert {"level 0.1", "level 0.35", "theory: slope -1/3", "rivals: -1/2, -1/4"} == set(texts(first)[1:])
    assert texts(second)[0] == "exponent of SNR* in n, q = 4, level 0.1"
    assert forest is forest_of(figure)
    assert {first.get_xlabel(), beside.get_xlabel()} == {"$n$"} and first.get_ylabel() == r"$\mathrm{SNR}^*$"
    assert first.get_xscale() == first.get_yscale() == "log"


def test_the_lines_have_the_slopes_of_theory_and_rivals():
    axes = plots.verdict(made(*two_levels())).axes[0]
    np.testing.assert_allclose([slope(line) for line in with_role(axes, "theory")], [-1 / 3] * 2)
    np.testing.assert_allclose([slope(line) for line in with_role(axes, "rival")], [-1 / 2, -1 / 4] * 2)
    for role in ("theory", "seeds"):  # not by colour alone
        styles = {(line.get_linestyle(), line.get_marker()) for line in with_role(axes, role)}
        dashes = {str(line._unscaled_dash_pattern) for line in with_role(axes, role)}
        assert max(len(styles), len(dashes)) == 2


def test_theory_goes_through_the_geometric_mean():
    check = law()
    axes = plots.verdict(made(check)).axes[0]
    (theory,) = with_role(axes, "theory")
    x, y = (np.log(np.array(values)) for values in theory.get_data())
    assert y.mean() == pytest.approx(np.log(check.points["y"]).mean())
    assert x.mean() == pytest.approx(np.log(N).mean())
    (errorbar,) = axes.containers
    np.testing.assert_allclose(errorbar[0].get_ydata(), np.exp(np.log(check.points["y"]).mean(axis=1)))
    assert [line.get_ydata().size for line in with_role(axes, "seeds")] == [4] * 24


def test_the_drift_has_local_exponents_and_the_margin():
    check = law()
    axes = plots.verdict(made(check)).axes[1]
    (errorbar,) = axes.containers
    np.testing.assert_allclose(errorbar[0].get_xdata(), np.sqrt(N[1:] * N[:-1]))
    np.testing.assert_allclose(errorbar[0].get_ydata(), check.points["local"].mean(axis=0))
    (band,) = axes.patches
    low, high = band.get_y(), band.get_y() + band.get_height()
    np.testing.assert_allclose([low, high], [check.lower, check.upper])


def test_sizes_may_fall():
    check = law()
    falling = scales_as(
        check.name, over(N[::-1], check.points["y"][::-1]), "n", -1 / 3, rivals=check.rivals, symbols=("n", "y")
    )
    one, other = (read_scaling(made(each).record()["checks"][0]) for each in (check, falling))
    for name in ("x", "y", "local"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name))


def test_many_scalings_share_one_panel_for_their_drift():
    figure = plots.verdict(made(*many()))
    *scalings, forest, drift = figure.axes
    assert len(scalings) == 5 and forest is forest_of(figure)
    assert [texts(axes)[0] for axes in scalings] == [f"({k}) time, q = {k + 1}" for k in range(1, 6)]
    assert set(texts(drift)[1:]) == {"theory ± margin", *(f"({k})" for k in range(1, 6))}
    assert [text.get_text() for text in drift.get_xticklabels()] == [f"sizes {k} and {k + 1}" for k in (1, 2, 3)]
    first = drift.containers[0][0].get_ydata()
    check = many()[0]
    assert np.abs(first).max() < 1 and check.margin == pytest.approx(0.05)


def test_every_check_has_a_row_and_the_control_is_marked():
    checks = [law(), *others()]
    axes = forest_of(plots.verdict(made(*checks)))
    names = names_of(axes)
    assert names[1] == f"test loss above ({checks[1].cells[checks[1].worst]})"
    assert [name.split(" (")[0] for name in names[:-1]] == [check.name for check in checks]
    assert names[-1] == "control, should lie outside: ReLU^3 -> ReLU^4"
    marks = with_role(axes, "measured")
    assert [mark.get_marker() for mark in marks] == ["o"] * len(checks) + ["X"]
    (numbers,) = axes.child_axes
    beside = [text.get_text().splitlines()[1] for text in numbers.get_yticklabels()]
    assert beside[:4] == ["theory -1/3 ± 0.028", "theory ≤ 0.06", "theory ≥ 0.1", "theory ≥ 0"]
    assert beside[5] == "theory ≤ 1e-12" and "bound 0" in axes.get_xlabel()


def test_rows_are_in_units_of_what_theory_allows():
    one = made(law(slope=-0.35), *others())
    rows = [place(check) for check in one.record()["checks"]]
    exponent, above, below, zero, ratio, exact, switch = rows
    assert exponent.allowed == ratio.allowed == switch.allowed == (-1, 1) and exponent.theory == 0
    assert exponent.at == pytest.approx((-0.35 + 1 / 3) * 36, abs=0.2)
    assert above.allowed == exact.allowed == (-np.inf, 1) and above.at == pytest.approx(0.015 / 0.06, rel=0.2)
    assert below.allowed == (1, np.inf) and below.at == pytest.approx(2.25, rel=0.1)
    assert zero.allowed == (0, np.inf) and zero.high == 1 and 0.8 < zero.low < zero.at < 1
    for check, row in zip(one.checks, rows):
        inside = row.allowed[0] <= row.low and row.high <= row.allowed[1]
        assert inside == (check.status() == "supported"), check.name


def test_the_status_is_a_shape_and_what_is_far_has_an_arrow():
    wide = equals("wide", [0.5, 1.0, 1.5], 1.0)
    axes = forest_of(plots.verdict(made(law(), law(slope=-2 / 3), wide)))
    marks = with_role(axes, "measured")
    assert [mark.get_marker() for mark in marks] == ["o", "X", "D", "X"]
    assert marks[1].get_xdata()[0] > -REACH  # -12 margins
    assert [mark.get_markerfacecolor() == "white" for mark in marks] == [False, True, False, False]
    arrows = [(line.get_marker(), line.get_ydata()[0]) for line in axes.lines if line.get_marker() in ("<", ">")]
    assert ("<", 1) in arrows and {("<", 2), (">", 2)} <= set(arrows) and not any(y == 0 for _, y in arrows)


def test_the_error_and_its_bound_have_a_panel():
    figure = plots.verdict(made(decay(), control=at_most("c", RANDOM.uniform(3, 4, 24), 1.0)))
    axes, forest = figure.axes
    assert forest is forest_of(figure) and axes.get_yscale() == "log"
    (theory,) = with_role(axes, "theory")
    np.testing.assert_allclose(theory.get_ydata(), np.exp(-theory.get_xdata() / 4))
    assert len(axes.containers) == 3
    assert {"n = 64, d = $10^{6}$", "n = 256, d = $10^{9}$", "theory: at most $e^{-X/4}$"} <= set(texts(axes))
    assert "X = n" in axes.get_xlabel()


def test_no_scaling_leaves_the_forest_alone():
    figure = plots.verdict(made(*others()))
    assert figure.axes == [forest_of(figure)]


def test_what_was_not_found_is_said(tmp_path):
    nothing = scales_as("nothing", over(N, np.full((4, 3), np.nan)), "n", -1 / 3)
    figure = plots.verdict(made(nothing, at_most("none", [np.nan] * 3, 1.0)))
    assert [text.get_text() for text in figure.axes[0].texts] == ["nothing found"]
    (numbers,) = forest_of(figure).child_axes
    assert [text.get_text().splitlines()[0] for text in numbers.get_yticklabels()[:2]] == ["not measured"] * 2
    assert len(with_role(forest_of(figure), "measured")) == 1
    assert plots.save(figure, tmp_path / "figure.svg").exists()


@pytest.mark.parametrize("checks", [lambda: [*two_levels(), *others(), decay()], many])
def test_no_text_is_on_another(checks):
    figure = plots.verdict(made(*checks()))
    with plots.house_style():
        figure.draw_without_rendering()
    shown = list(figure.texts)
    for axes in figure.axes:
        shown += [axes.get_legend(), axes.xaxis.label, axes.yaxis.label]
        for one in (axes, *axes.child_axes):
            (left, right), (low, high) = sorted(one.get_xlim()), sorted(one.get_ylim())
            shown += [text for text in one.get_xticklabels() if left <= text.get_position()[0] <= right]
            shown += [text for text in one.get_yticklabels() if low <= text.get_position()[1] <= high]
    boxes = [one.get_window_extent() for one in shown if one is not None]
    boxes = [box for box in boxes if box.width > 1 and box.height > 1]
    crossing = [
        (one, other)
        for k, one in enumerate(boxes)
        for other in boxes[k + 1 :]
        if one.shrunk(0.98, 0.98).overlaps(other.shrunk(0.98, 0.98))
    ]
    assert not crossing
    assert all(figure.bbox.padded(1).contains(*corner) for box in boxes for corner in box.corners())


def test_names_with_dollars_are_drawn_as_they_are(tmp_path):
    figure = plots.verdict(made(law("cost in $, not $ x_")))
    assert texts(figure.axes[0])[0] == r"cost in \$, not \$ x_"
    assert plots.save(figure, tmp_path / "figure.svg").exists()


def test_numbers_and_names():
    assert [as_fraction(value) for value in (-1 / 3, 2.0, 0.0, 0.123456)] == ["-1/3", "2", "0", "0.123"]
    assert [number(value) for value in (64, 1e6, 2.5e-5)] == ["64", "$10^{6}$", r"$2.5 \cdot 10^{-5}$"]
    assert split_names(["a, b, 1", "a, b, 2"]) == ("a, b", ["1", "2"])
    assert split_names(["same, x", "same, x"]) == ("same", ["x", "x"])


def without(path):
    record = json.loads(json.dumps(made(law(), decay()).record()))
    *folders, last = path
    at = record
    for folder in folders:
        at = at[folder]
    del at[last]
    return record


@pytest.mark.parametrize(
    "path",
    [
        ["id"],
        ["seeds"],
        ["checks"],
        ["control"],
        ["control", "changes"],
        ["checks", 0, "name"],
        ["checks", 0, "low"],
        ["checks", 0, "rivals"],
        ["checks", 0, "points"],
        ["checks", 0, "points", "symbols"],
        ["checks", 0, "points", "y", 0],
        ["checks", 1, "points", "errors", 0, 0],
    ],
)
def test_what_is_missing_is_said_in_one_sentence(path):
    with pytest.raises(fl.InputError, match="not the record of a verdict") as caught:
        plots.verdict(without(path))
    assert str(caught.value).endswith(".") and str(caught.value).count(". ") == 0


@pytest.mark.parametrize(
    "change",
    [
        {"lower": None, "upper": None},
        {"status": "perhaps"},
        {"measured": "much"},
        {"name": 3},
        {"points": {"x": [1, 2], "y": 3}},
    ],
)
def test_a_check_of_another_kind_is_refused(change):
    record = made(law()).record()
    record["checks"][0] |= change
    with pytest.raises(fl.InputError, match="not the record of a verdict"):
        plots.verdict(record)


@pytest.mark.parametrize("one", [None, "cao2022_phase", [{}], 3])
def test_only_a_verdict_or_its_record_is_drawn(one):
    with pytest.raises(fl.InputError, match="a Verdict or its record"):
        plots.verdict(one)
