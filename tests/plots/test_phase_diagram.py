"""Phase diagrams by their structure: what is drawn in which cell, lines and labels, and what is refused."""

import math
from functools import partial

import matplotlib
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import featlab as fl
from featlab import plots
from featlab.plots._maps import BLANK, COLOURS
from featlab.sweeps.contour import contour

D, MU = np.geomspace(100, 1e4, 5), np.geomspace(1, 16, 9)
SHIFTS = np.array([-0.2, 0.0, 0.1, 0.3])


def made(d=D, mu=MU, shifts=SHIFTS):
    """The error falls in a straight line from 0.5 to 0.1 around mu^2 = d / 50, which seeds shift."""
    u = np.log(mu)[None, :, None] - 0.5 * np.log(d / 50)[:, None, None] - shifts
    error = np.clip(0.3 - 0.15 * u, 0.1, 0.5)
    dims = ("d", "signal_norm", "seed")
    return xr.Dataset(
        {
            "test_error": (dims, error, {"symbol": "L_D^{0-1}", "long_name": "test error"}),
            "done": (dims, np.ones(error.shape, bool)),
            "trained": (dims, np.ones(error.shape, bool)),
        },
        {
            "d": ("d", d, {"symbol": "d", "long_name": "dimension", "path": "data.d", "scale": "log"}),
            "signal_norm": ("signal_norm", mu, {"symbol": r"\|\mu\|", "path": "signal_norm", "scale": "log"}),
            "seed": np.arange(len(shifts)),
        },
        {"test_flip": 0.1},
    )


def only(diagram, cells):
    """The same diagram with these cells done, and the others not."""
    cells = xr.DataArray(cells, dims=("d", "signal_norm"))
    return diagram.assign(
        done=diagram.done & cells, trained=diagram.trained & cells, test_error=diagram.test_error.where(cells)
    )


def drawn(diagram=None, **given):
    return plots.phase_diagram(made() if diagram is None else diagram, "test_error", **given)


def of(figure, gid, panel=0):
    axes = figure.axes[panel]
    return [artist for artist in [*axes.lines, *axes.collections] if artist.get_gid() == gid]


def mesh(figure):
    return of(figure, "cells")[0]


def covered(figure, gid):
    """The centres of the rectangles over cells, to three digits."""
    rectangles = [path.vertices[:4] for one in of(figure, gid) for path in one.get_paths()]
    return {tuple(f"{value:.3g}" for value in np.exp(np.log(corners).mean(axis=0))) for corners in rectangles}


def cell(i, j):
    return f"{D[i]:.3g}", f"{MU[j]:.3g}"


def legend(figure):
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def heading(figure):
    shown = figure.axes[0].get_legend()
    return shown.get_title().get_text() if shown else figure.axes[0].get_title(loc="left")


def critical_norm(d):
    return math.sqrt(d / 50)  # refuses arrays


CASES = {
    "a map": lambda: drawn(boundary=critical_norm, level=0.3, floor=0.1),
    "a sparse map": lambda: plots.phase_diagram(only(made(), np.eye(5, 9) > 0), "test_error", level=0.3),
    "a curve": lambda: drawn(made().isel(d=2), boundary=3.0, level=0.3, floor=0.1),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_it_is_a_figure_that_can_be_written_twice_the_same(case, tmp_path):
    before = dict(matplotlib.rcParams)
    assert isinstance(CASES[case](), Figure)
    for ending in ("svg", "png", "pdf"):
        first, second = (plots.save(CASES[case](), tmp_path / f"{k}.{ending}").read_bytes() for k in "ab")
        assert first == second and len(first) > 1000
    assert dict(matplotlib.rcParams) == before


def test_each_cell_has_the_mean_over_seeds_and_edges_half_way():
    shown = mesh(drawn())
    expected = made().test_error.mean("seed").transpose("signal_norm", "d").values
    np.testing.assert_allclose(shown.get_array(), expected)
    corners = shown.get_coordinates()
    np.testing.assert_allclose(corners[0, 1:-1, 0], np.sqrt(D[1:] * D[:-1]))
    np.testing.assert_allclose(corners[1:-1, 0, 1], np.sqrt(MU[1:] * MU[:-1]))
    ends = D[[0, -1]] ** 1.5 / D[[1, -2]] ** 0.5
    np.testing.assert_allclose(corners[0, [0, -1], 0], ends)


def test_linear_coordinates_have_linear_axes():
    diagram = made(mu=np.linspace(1, 9, 9))
    diagram.signal_norm.attrs["scale"] = "linear"
    figure = drawn(diagram)
    assert (figure.axes[0].get_xscale(), figure.axes[0].get_yscale()) == ("log", "linear")
    np.testing.assert_allclose(mesh(figure).get_coordinates()[:, 0, 1], np.arange(0.5, 10))


def test_the_axes_and_the_bar_are_named():
    axes, bar = drawn().axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("dimension  $d$", r"$\|\mu\|$")
    assert bar.get_ylabel() == "test error  $L_D^{0-1}$"
    bare = made()
    for one in (bare.d, bare.signal_norm, bare.test_error):
        one.attrs = {"symbol": "", "scale": "log"}
    axes, bar = drawn(bare).axes
    assert (axes.get_xlabel(), axes.get_ylabel(), bar.get_ylabel()) == ("d", "signal norm", "test error")


@pytest.mark.parametrize("given", [dict(x="signal_norm"), dict(y="d"), dict(x="signal_norm", y="d")])
def test_the_axes_can_be_exchanged(given):
    figure = drawn(boundary=lambda mu: 50 * mu**2, level=0.3, **given)
    assert figure.axes[0].get_ylabel() == "dimension  $d$"
    np.testing.assert_allclose(mesh(figure).get_array(), made().test_error.mean("seed").values)
    (theory,), (measured,) = of(figure, "theory"), of(figure, "contour")
    np.testing.assert_allclose(theory.get_ydata(), 50 * theory.get_xdata() ** 2)
    expected = contour(made(), "test_error", 0.3, along="d").at
    np.testing.assert_allclose(measured.get_xdata(), MU)
    np.testing.assert_allclose(measured.get_ydata(), expected)


def test_the_order_of_the_coordinates_does_not_matter():
    mixed = made().isel(d=[3, 0, 4, 1, 2], signal_norm=[8, 0, 1, 7, 2, 3, 6, 4, 5])
    figure, same = (drawn(one, level=0.3) for one in (mixed, made()))
    np.testing.assert_allclose(mesh(figure).get_array(), mesh(same).get_array())
    np.testing.assert_allclose(of(figure, "contour")[0].get_xydata(), of(same, "contour")[0].get_xydata())


def test_the_colours_are_those_of_a_grey_scale():
    """Each step from low to high is lighter, by about as much, and blank cells are lighter than all."""
    weights = np.array([0.2126, 0.7152, 0.0722])
    linear = np.where(
        COLOURS.colors[:, :3] <= 0.04045,
        COLOURS.colors[:, :3] / 12.92,
        ((COLOURS.colors[:, :3] + 0.055) / 1.055) ** 2.4,
    )
    lightness = 116 * np.cbrt(linear @ weights) - 16
    steps = np.diff(lightness)
    assert (steps > 0).all() and steps.max() < 2.5 * np.median(steps)
    assert lightness[-1] - lightness[0] > 65
    blank = ((np.array(matplotlib.colors.to_rgb(BLANK)) + 0.055) / 1.055) ** 2.4 @ weights
    assert 116 * np.cbrt(blank) - 16 > lightness[-1] + 5


def test_the_limits_of_the_colours_are_those_of_the_cells_that_trained():
    diagram = made()
    diagram["trained"][0, 0] = False
    diagram["test_error"][0, 0] = 50.0
    norm = mesh(drawn(diagram)).norm
    means = diagram.test_error.mean("seed").values.ravel()[1:]
    assert (norm.vmin, norm.vmax) == pytest.approx((means.min(), means.max()))
    flat = made()
    flat["test_error"][:] = 0.3
    norm = mesh(drawn(flat)).norm
    assert norm.vmin < 0.3 < norm.vmax


def test_the_floor_is_on_the_bar_and_inside_it():
    for floor, beside in ((0.1, True), (0.02, True), (0.3, False)):
        figure = drawn(floor=floor)
        (line,) = of(figure, "floor", panel=1)
        norm, bar = mesh(figure).norm, figure.axes[1]
        assert set(line.get_ydata()) == {floor} and norm.vmin < floor < norm.vmax
        assert (norm.vmin < made().test_error.mean("seed").min()) == beside
        texts = {text.get_text(): tick for text, tick in zip(bar.get_yticklabels(), bar.get_yticks())}
        assert texts[f"floor {floor:g}"] == floor
        others = [tick for text, tick in texts.items() if "floor" not in text]
        assert min(abs(np.array(others) - floor)) > 0.05 * (norm.vmax - norm.vmin)  # labels do not collide
    assert not of(drawn(), "floor", panel=1)


# -- lines


def test_the_theory_is_a_line_with_its_name_inside_the_axes():
    figure = drawn(boundary=critical_norm)
    (line,) = of(figure, "theory")
    np.testing.assert_allclose(line.get_ydata(), np.sqrt(line.get_xdata() / 50))
    assert legend(figure) == ["theory: critical norm"]
    corners = mesh(figure).get_coordinates()
    np.testing.assert_allclose(line.get_xdata()[[0, -1]], corners[0, [0, -1], 0])
    plain = drawn()
    for side in ("get_xlim", "get_ylim"):
        assert getattr(figure.axes[0], side)() == getattr(plain.axes[0], side)()
    far = drawn(boundary=lambda d: 1e6 * d)
    assert far.axes[0].get_ylim() == plain.axes[0].get_ylim()


def test_a_boundary_of_the_theory_can_be_drawn():
    n = np.array([20.0, 40.0, 60.0, 80.0])  # linear: the first cell begins at 10
    snr = np.geomspace(0.1, 1, 6)
    values = np.add.outer(n / 100, snr)[..., None]
    diagram = xr.Dataset(
        {"test_error": (("n", "snr", "seed"), values)},
        {"n": ("n", n, {"scale": "linear"}), "snr": ("snr", snr, {"scale": "log"}), "seed": [0]},
    )
    boundary = fl.theory.signal_noise.boundary(power=3)
    figure = drawn(diagram, boundary=boundary)
    (line,) = of(figure, "theory")
    np.testing.assert_allclose(line.get_ydata(), (2 / line.get_xdata()) ** (1 / 3))
    assert legend(figure) == ["theory: critical snr"] and heading(figure) == "1 seed"
    (line,) = of(drawn(diagram.isel(n=[0, 3]), boundary=boundary), "theory")
    assert line.get_xdata()[0] == 20  # the cell begins below 0, where there is no theory


def test_several_boundaries_have_labels_and_patterns_of_their_own():
    laws = {"Kou": critical_norm, r"$\sqrt{d}$": math.sqrt}
    figure = drawn(boundary=laws)
    assert legend(figure) == list(laws)
    assert len({str(line._dash_pattern) for line in of(figure, "theory")}) == 2
    for nameless in (lambda d: 3.0, partial(critical_norm)):
        assert legend(drawn(boundary=nameless)) == ["theory"]


def test_few_columns_have_a_point_and_an_interval_each():
    figure = drawn(level=0.3)
    expected = contour(made(), "test_error", 0.3)
    (line,), (bars,) = of(figure, "contour"), of(figure, "interval")
    np.testing.assert_allclose(line.get_xydata(), np.stack([D, expected.at], axis=1))
    assert line.get_marker() == "o" and len(line.get_markevery()) == 5
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    sure = np.isfinite(expected.low.values)  # the last column's crossing hangs on one seed
    assert sure.tolist() == [True] * 4 + [False]
    np.testing.assert_allclose(ends, np.stack([expected.low, expected.high], axis=1)[sure])
    assert (ends[:, 0] < ends[:, 1]).all() and not of(figure, "band")
    assert legend(figure) == ["measured  $L_D^{0-1} = 0.3$, 95 %"]
    (mark,) = of(figure, "level", panel=1)
    assert set(mark.get_ydata()) == {0.3}


def test_many_columns_have_a_line_and_a_band():
    diagram = made(d=np.geomspace(100, 1e4, 30))
    figure = drawn(diagram, level=0.3)
    expected = contour(diagram, "test_error", 0.3)
    (line,), (band,) = of(figure, "contour"), of(figure, "band")
    np.testing.assert_allclose(line.get_ydata(), expected.at)
    corners = band.get_paths()[0].vertices
    assert corners[:, 1].min() == pytest.approx(float(expected.low.min()))
    assert corners[:, 1].max() == pytest.approx(float(expected.high.max()))
    assert not of(figure, "interval") and line.get_marker() == "None"


def test_one_seed_has_no_interval_and_a_level_outside_no_line():
    one = drawn(made(shifts=SHIFTS[:1]), level=0.3)
    assert legend(one) == ["measured  $L_D^{0-1} = 0.3$"] and not of(one, "interval")
    none = drawn(level=0.9)
    assert legend(none) == ["measured  $L_D^{0-1} = 0.9$: not crossed"]
    assert np.isnan(of(none, "contour")[0].get_ydata()).all() and not of(none, "level", panel=1)


# -- cells that did not train, and cells that were not computed


def test_cells_where_too_few_runs_trained_are_hatched():
    diagram = made(shifts=np.linspace(-0.1, 0.1, 10))
    diagram["trained"][0, 0, :1] = False  # nine of ten are enough
    diagram["trained"][0, 8, :2] = False  # dark
    diagram["trained"][4, :2, :5] = False  # light
    figure = drawn(diagram)
    assert covered(figure, "untrained") == {cell(0, 8), cell(4, 0), cell(4, 1)}
    inks = {tuple(one.get_edgecolor()[0][:3]): len(one.get_paths()) for one in of(figure, "untrained")}
    assert inks == {(0, 0, 0): 2, (1, 1, 1): 1}
    assert all(one.get_hatch() for one in of(figure, "untrained"))
    assert legend(figure) == ["under 90 % of runs trained"] and heading(figure) == "mean over 10 seeds"
    np.testing.assert_allclose(mesh(figure).get_array()[8, 0], diagram.test_error[0, 8].mean())
    clean = drawn(boundary=critical_norm)
    assert not of(clean, "untrained") and not of(clean, "blank") and not of(clean, "computed")


def test_diverged_cells_are_hatched_and_have_no_colour():
    diagram = made()
    diagram["test_error"][4, 0], diagram["trained"][4, 0] = np.nan, False
    figure = drawn(diagram)
    assert covered(figure, "untrained") == {cell(4, 0)} and not of(figure, "blank")
    assert mesh(figure).get_array().mask.sum() == mesh(figure).get_array().mask[0, 4] == 1


def test_what_an_interrupted_sweep_has_not_reached_is_blank():
    cells = np.zeros((5, 9), bool)
    cells[:3], cells[3, :4] = True, True
    figure = drawn(only(made(), cells), level=0.3)
    assert covered(figure, "blank") == {cell(i, j) for i, j in np.argwhere(~cells)}
    np.testing.assert_array_equal(mesh(figure).get_array().mask, ~cells.T)
    assert not of(figure, "computed") and "not computed" in legend(figure)
    assert heading(figure) == "mean over 4 seeds, 31 of 45 cells computed"
    (line,) = of(figure, "contour")
    np.testing.assert_allclose(line.get_xdata(), D[:4])


def test_a_coarse_square_has_the_values_of_its_nearest_computed_cells():
    cells = np.zeros((5, 9), bool)
    cells[::4, ::4] = True
    cells[0, 5] = True  # and a finer one
    figure = drawn(only(made(), cells))
    colours, means = mesh(figure).get_array().T, made().test_error.mean("seed").values
    assert not np.ma.getmaskarray(colours).any() and not of(figure, "blank")
    sources = {(0, 0): (0, 0), (1, 1): (0, 0), (3, 3): (4, 4), (0, 5): (0, 5), (1, 6): (0, 5)}
    for at, source in sources.items():
        assert colours[at] == pytest.approx(means[source])
    (dots,) = of(figure, "computed")
    places = {tuple(f"{value:.3g}" for value in point) for point in dots.get_xydata()}
    assert places == {cell(i, j) for i, j in np.argwhere(cells)} and len(dots.get_xdata()) == cells.sum()
    assert legend(figure) == ["computed cell"] and "7 of 45 cells" in heading(figure)


def test_a_contour_passes_over_columns_that_were_not_computed():
    cells = np.zeros((5, 9), bool)
    cells[::2] = True
    figure = drawn(only(made(), cells), level=0.3)
    (line,) = of(figure, "contour")
    np.testing.assert_allclose(line.get_xdata(), D[::2])
    assert np.isfinite(line.get_ydata()).all()


def test_a_column_between_two_without_a_crossing_is_a_point():
    diagram = made(d=np.geomspace(100, 1e4, 15))
    diagram["test_error"][:] = 0.4
    diagram["test_error"][7] = made(d=D[2:3]).test_error[0].values
    figure = drawn(diagram, level=0.3)
    assert of(figure, "contour")[0].get_markevery() == [7]
    assert len(of(figure, "interval")[0].get_segments()) == 1


def test_a_diagram_without_results_is_blank():
    figure = drawn(only(made(), np.zeros((5, 9), bool)), level=0.3, boundary=critical_norm)
    assert len(covered(figure, "blank")) == 45 and heading(figure) == "nothing computed yet"
    assert len(of(figure, "theory")) == 1


def test_unequal_seeds_are_counted():
    diagram = made()
    diagram["done"][0, 0, 1:] = False
    assert heading(drawn(diagram)) == "mean over 1 to 4 seeds"
    shown = mesh(drawn(diagram)).get_array()
    assert shown[0, 0] == pytest.approx(float(diagram.test_error[0, 0, 0]))


def test_a_long_legend_does_not_leave_the_figure():
    diagram = made()
    diagram["trained"][4, 0] = False
    laws = {f"a law with a long name, the {k}th of its kind": critical_norm for k in range(3)}
    figure = drawn(diagram, boundary=laws, level=0.3)
    figure.draw_without_rendering()
    box = figure.axes[0].get_legend().get_window_extent()
    assert box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1
    panel, bar = (axes.get_window_extent() for axes in figure.axes)
    assert panel.width > 0.6 * figure.bbox.width and bar.x0 - panel.x1 < 0.05 * figure.bbox.width


# -- one swept dim


def test_one_dim_is_a_curve_with_a_band():
    diagram = made().isel(d=2)
    diagram["trained"][0, :2] = False
    figure = drawn(diagram, boundary=3.0, level=0.3, floor=0.1)
    (axes,) = figure.axes
    (line,) = of(figure, "mean")
    np.testing.assert_allclose(line.get_xydata(), np.stack([MU, diagram.test_error.mean("seed")], axis=1))
    at = contour(diagram, "test_error", 0.3)
    assert axes.get_xscale() == "log" and axes.get_xlabel() == r"$\|\mu\|$"
    assert axes.get_ylabel() == "test error  $L_D^{0-1}$"
    assert set(of(figure, "theory")[0].get_xdata()) == {3.0}
    for gid, value in {"level": 0.3, "floor": 0.1}.items():
        assert set(of(figure, gid)[0].get_ydata()) == {value}
    np.testing.assert_allclose(of(figure, "untrained")[0].get_xdata(), MU[:1])
    assert legend(figure) == [
        "mean, 95 % band", "under 90 % of runs trained", "level 0.3", "floor 0.1", "theory",
        f"measured  {float(at.at):.3g}, 95 %",
    ]  # fmt: skip
    (band,) = [one for one in axes.collections if one.get_alpha()]
    values = diagram.test_error.values[4]
    half = 3.182446 * values.std(ddof=1) / 2
    heights = band.get_paths()[0].vertices
    edge = heights[np.isclose(heights[:, 0], MU[4]), 1]
    assert (edge.min(), edge.max()) == pytest.approx((values.mean() - half, values.mean() + half), rel=1e-5)


def test_a_curves_boundary_may_be_a_function_or_several():
    diagram = made().isel(d=2)

    def threshold():
        return 4.0

    figure = drawn(diagram, boundary=threshold)
    assert set(of(figure, "theory")[0].get_xdata()) == {4.0} and legend(figure)[-1] == "theory: threshold"
    figure = drawn(diagram, boundary={"a": 2, "b": threshold})
    assert [line.get_xdata()[0] for line in of(figure, "theory")] == [2, 4]
    assert legend(figure)[-2:] == ["a", "b"]


def test_a_curve_skips_what_was_not_computed_and_one_seed_has_no_band():
    diagram = made(shifts=SHIFTS[:1]).isel(d=2)
    diagram["done"][3:5] = False
    figure = drawn(diagram, level=0.9)
    np.testing.assert_allclose(of(figure, "mean")[0].get_xdata(), np.delete(MU, [3, 4]))
    assert legend(figure) == ["mean", "level 0.9"] and heading(figure) == "1 seed, 7 of 9 cells computed"


# -- bad input

REFUSED = {
    "an unknown variable": (
        dict(variable="tst_error"),
        "finds no variable 'tst_error'; did you mean 'test_error'",
    ),
    "an unknown x": (dict(x="dim"), r"\(x=\) must be a swept dim, got 'dim'"),
    "the seed for y": (dict(y="seed"), r"\(y=\) must be a swept dim, got 'seed'"),
    "the same dim twice": (dict(x="d", y="d"), "must be two dims, got 'd' for both"),
    "a level that is no number": (dict(level="0.3"), r"\(level=\) must be a finite number, got '0.3'"),
    "a floor that is no number": (dict(floor=math.inf), r"\(floor=\) must be a finite number, got inf"),
    "a number for a boundary": (dict(boundary=3.0), r"must be a function y\(x\), or a dict"),
    "a boundary of words": (dict(boundary=lambda d: "far"), "must return a number, got 'far'"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_bad_input_is_refused_in_one_sentence(what):
    change, message = REFUSED[what]
    with pytest.raises(fl.InputError, match=message):
        plots.phase_diagram(made(), **{"variable": "test_error", **change})


def test_more_than_two_swept_dims_are_refused_with_advice():
    cube = made().expand_dims(n=[20, 40]).transpose("d", "signal_norm", "n", "seed")
    with pytest.raises(fl.InputError, match=r"d, signal_norm, n; select one value, e.g. .*sel\(n=20\)\."):
        drawn(cube)
    with pytest.raises(fl.InputError, match=r"diagram.sel\(d=100"):
        drawn(cube, x="n", y="signal_norm")
    assert mesh(drawn(cube.sel(n=20)))
    with pytest.raises(fl.InputError, match="this diagram has none"):
        drawn(made().isel(d=0, signal_norm=0))


def test_what_has_no_place_on_an_axis_is_refused():
    with pytest.raises(fl.InputError, match="phase_diagram needs different finite numbers above 0 for 'd'"):
        drawn(made().assign_coords(d=("d", [1, 2, 3, 4, math.inf], {"scale": "log"})))
    with pytest.raises(fl.InputError, match=r"\(boundary=\) must be a finite number, got 'far'"):
        drawn(made().isel(d=0), boundary="far")


def test_a_curve_without_results_is_refused_in_one_sentence():
    nothing = xr.Dataset(
        {"test_error": (["d", "seed"], np.full((3, 2), np.nan)), "done": (["d", "seed"], np.zeros((3, 2), bool))},
        {"d": [1.0, 2.0, 3.0], "seed": [0, 1]},
    )
    with pytest.raises(fl.InputError, match="nothing to draw"):
        fl.plots.phase_diagram(nothing, "test_error")
