"""Contours against rows whose crossing is known, and their intervals against the truth, many times over."""

import math

import numpy as np
import pytest
import scipy.stats
import xarray as xr

import featlab as fl
from featlab.sweeps.contour import contour

STRENGTHS = np.geomspace(0.5, 8, 9)


def made(values, done=None, trained=None, scale="log", symbol=r"\|\mu\|", **coords):
    """A sweep over n and strength; values are (n, strength, seed)."""
    values = np.asarray(values, float)
    dims = ("n", "strength", "seed")
    done = np.isfinite(values) if done is None else done
    coords = {"n": np.arange(1.0, len(values) + 1), "strength": STRENGTHS[: values.shape[1]]} | coords
    return xr.Dataset(
        {
            "test_error": (dims, values, {"symbol": "L_D", "long_name": "test error"}),
            "done": (dims, done),
            "trained": (dims, done if trained is None else trained),
        },
        {
            "n": ("n", coords["n"], {"symbol": "n", "scale": "log"}),
            "strength": ("strength", coords["strength"], {"symbol": symbol, "scale": scale}),
            "seed": np.arange(values.shape[2]),
        },
    )


def rows(*lines):
    """One seed, one row each."""
    return np.array(lines, float)[:, :, None]


def in_scale(scale, grid):
    return np.log(grid) if scale == "log" else grid


@pytest.mark.parametrize("scale", ["log", "linear"])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("seeds", [1, 4])
def test_straight_rows_cross_where_they_should(scale, sign, seeds):
    """Whatever lies between the points, up or down; equal seeds leave no doubt."""
    true = np.array([0.51, 1.7, 2.0, 7.9])
    u = in_scale(scale, STRENGTHS)[None, :, None] - in_scale(scale, true)[:, None, None]
    found = contour(made(0.3 + sign * 0.2 * u.repeat(seeds, 2), scale=scale), "test_error", 0.3)
    np.testing.assert_allclose(found.at, true, rtol=1e-12)
    assert found.at.dims == found.low.dims == found.high.dims == found.se.dims == ("n",)
    np.testing.assert_array_equal(found.n, [1, 2, 3, 4])
    assert found.attrs == {"level": 0.3, "variable": "test_error", "along": "strength"}
    assert found.at.attrs["symbol"] == r"\|\mu\|" and found.n.attrs["scale"] == "log"
    if seeds == 1:
        assert np.isnan(found.low).all() and np.isnan(found.high).all() and np.isnan(found.se).all()
    else:
        np.testing.assert_allclose(found.se, 0, atol=1e-12)
        np.testing.assert_allclose(found.low, true, rtol=1e-10)


def test_the_scale_decides_what_is_straight():
    values = rows([0.0, 1.0]).repeat(2, 2)
    grid = np.array([1.0, 100.0])
    for scale, middle in {"log": 10.0, "linear": 50.5, None: 50.5}.items():
        found = contour(made(values, strength=grid, scale=scale), "test_error", 0.5)
        np.testing.assert_allclose(found.at, [middle])


def test_shifted_seeds_have_students_interval_of_their_own_crossings():
    """Parallel straight rows: the mean crosses at the mean of the crossings, and the jackknife is exact."""
    shifts = np.array([-0.3, 0.1, 0.25, 0.0, 0.2])
    u = np.log(STRENGTHS)[None, :, None] - math.log(2) - shifts
    found = contour(made(0.5 - 0.1 * u), "test_error", 0.5).isel(n=0)
    se = shifts.std(ddof=1) / math.sqrt(5)
    half = scipy.stats.t.ppf(0.975, 4) * se
    np.testing.assert_allclose(found.at, 2 * math.exp(shifts.mean()))
    np.testing.assert_allclose(found.se, se)
    np.testing.assert_allclose(found.low, 2 * math.exp(shifts.mean() - half))
    np.testing.assert_allclose(found.high, 2 * math.exp(shifts.mean() + half))


def test_a_row_on_one_side_is_nan():
    values = rows(np.linspace(0.4, 0.9, 9), np.linspace(0.2, 0.1, 9), np.full(9, 0.3), np.full(9, np.nan))
    found = contour(made(values.repeat(3, 2)), "test_error", 0.3)
    for name in ("at", "low", "high", "se"):
        assert np.isnan(found[name]).all()


@pytest.mark.parametrize("direction", [1, -1])
def test_noise_that_crosses_several_times_does_not_mislead(direction):
    """The last crossing is a small bump and the first a small dip; the large switch is between 4 and 5."""
    bumps = 0.5 + direction * np.array([-0.3, 0.05, -0.4, -0.3, -0.1, 0.3, 0.4, -0.05, 0.3])
    found = contour(made(rows(bumps), scale="linear", strength=np.arange(9.0)), "test_error", 0.5)
    np.testing.assert_allclose(found.at, [4.25])


def test_the_split_is_the_best_of_all():
    """Against the sum itself, for every split and both directions, on rows of noise."""
    rng = np.random.default_rng(3)
    grid = np.arange(7.0)
    lines = rng.normal(0.2, 1, (200, 7))
    found = contour(made(lines[:, :, None], scale="linear", strength=grid), "test_error", 0.0).at.values
    for line, at in zip(lines, found):
        sums = {(k, s): s * (line[k:].sum() - line[:k].sum()) for k in range(8) for s in (1, -1)}
        k, _ = max(sums, key=lambda key: sums[key])
        assert np.isnan(at) if k in (0, 7) else grid[k - 1] <= at <= grid[k]
        if k not in (0, 7):
            assert np.interp(at, grid, line) == pytest.approx(0, abs=1e-12)
    assert 0 < np.isnan(found).sum() < 150


def test_a_value_on_the_level_is_the_crossing():
    found = contour(made(rows([0.1, 0.2, 0.3, 0.4, 0.5]), scale="linear"), "test_error", 0.3)
    np.testing.assert_allclose(found.at, STRENGTHS[2])


def test_cells_that_were_not_done_are_left_out_of_the_row():
    grid = np.arange(9.0)
    values = np.where(np.isin(grid, [0, 2, 6, 8]), 0.5 - (grid - 4.5), np.nan)
    found = contour(made(rows(values), scale="linear", strength=grid), "test_error", 0.5)
    np.testing.assert_allclose(found.at, [4.5])
    lying = made(rows(0.5 - (grid - 4.5)), scale="linear", strength=grid)
    lying["test_error"][0, 4] = 100.0
    lying["done"][0, 4] = False  # whatever its value says
    np.testing.assert_allclose(contour(lying, "test_error", 0.5).at, [4.5])


@pytest.mark.parametrize("good, counts", [(10, True), (9, True), (8, False), (0, False)])
def test_cells_where_too_few_runs_trained_are_left_out_of_the_row(good, counts):
    grid = np.arange(9.0)
    values = np.tile((0.5 - (grid - 4.5))[None, :, None], (1, 1, 10))
    values[0, 4] = 1.5  # a straight line to the next cell's 0 crosses elsewhere
    trained = np.ones(values.shape, bool)
    trained[0, 4, good:] = False
    found = contour(made(values, trained=trained, scale="linear", strength=grid), "test_error", 0.5)
    np.testing.assert_allclose(found.at, [4 + 2 / 3 if counts else 4.5])


def test_undone_seeds_do_not_count_as_untrained():
    values = np.tile(np.linspace(0, 1, 5)[None, :, None], (1, 1, 10))
    done = np.ones(values.shape, bool)
    done[0, :, 4:] = False
    data = made(np.where(done, values, np.nan), done=done, trained=done, scale="linear")
    found = contour(data, "test_error", 0.4)
    assert np.isfinite(found.at).all() and np.isfinite(found.low).all()


def test_seeds_that_differ_from_cell_to_cell():
    """Six seeds below and three above: all six are deleted in turn, and three have two degrees of freedom."""
    below, above = np.array([-1.2, -0.8, -1.1, -0.9, -1.3, -0.7]), np.array([1.0, 1.4, 0.9])
    values = np.full((1, 2, 6), np.nan)
    values[0, 0], values[0, 1, :3] = below, above
    found = contour(made(values, scale="linear", strength=np.array([0.0, 1.0])), "test_error", 0.0).isel(n=0)

    def crossing(low, high):
        return -low.mean() / (high.mean() - low.mean())

    rest = [np.delete(above, s) if s < 3 else above for s in range(6)]
    deleted = np.array([crossing(np.delete(below, s), rest[s]) for s in range(6)])
    se = math.sqrt(5 / 6 * ((deleted - deleted.mean()) ** 2).sum())
    np.testing.assert_allclose(found.at, crossing(below, above))
    np.testing.assert_allclose(found.se, se)
    np.testing.assert_allclose(found.high, found.at + scipy.stats.t.ppf(0.975, 2) * se)


def test_seeds_done_only_far_from_the_crossing_do_not_narrow_the_interval():
    rng = np.random.default_rng(0)
    values = 0.5 - (np.log(STRENGTHS)[None, :, None] - 0.6) + rng.normal(0, 0.05, (1, 1, 4))
    alone = contour(made(values), "test_error", 0.5)
    more = np.concatenate([values, np.full((1, 9, 6), np.nan)], axis=2)
    more[0, 0, 4:], more[0, -1, 4:] = values[0, 0].mean(), values[0, -1].mean()
    np.testing.assert_allclose(contour(made(more), "test_error", 0.5).se, alone.se)


def test_one_seed_in_a_deciding_cell_has_no_interval():
    values = np.full((1, 2, 4), np.nan)
    values[0, 0], values[0, 1, 0] = [-1.0, -1.1, -0.9, -1.2], 1.0
    found = contour(made(values), "test_error", 0.0)
    assert np.isfinite(found.at).all() and np.isnan(found.low).all() and np.isnan(found.se).all()


def test_a_crossing_that_hangs_on_one_seed_has_no_interval():
    """Without the third seed the row stays below the level."""
    values = np.array([[[-1.0, -1.0, -1.0], [-0.2, -0.2, 1.0]]])
    found = contour(made(values), "test_error", 0.0)
    assert np.isfinite(found.at).all() and np.isnan(found.low).all() and np.isnan(found.high).all()


def test_any_dim_may_be_crossed_and_any_number_swept():
    grid = np.arange(4.0)
    values = np.add.outer(np.add.outer(grid, -0.5 * grid[:3]), -0.1 * grid[:2])[..., None]  # a - b/2 - c/10
    cube = xr.Dataset(
        {"v": (("a", "b", "c", "seed"), values)}, {"a": grid, "b": grid[:3], "c": grid[:2], "seed": [7]}
    )
    over_a = contour(cube, "v", 0.9, along="a")
    assert over_a.at.dims == ("b", "c") and over_a.attrs["along"] == "a"
    np.testing.assert_allclose(over_a.at, 0.9 + 0.5 * over_a.b + 0.1 * over_a.c)
    over_b = contour(cube, "v", 0.9, along="b")
    assert over_b.at.dims == ("a", "c")
    np.testing.assert_allclose(over_b.at.sel(a=1, c=0), 0.2)
    assert np.isnan(over_b.at.sel(a=0)).all()
    assert contour(cube, "v", 0.9).at.dims == ("a", "b")  # along the last
    line = contour(cube.sel(b=1, c=0), "v", 0.9)
    assert line.at.dims == () and float(line.at) == pytest.approx(1.4)


def test_a_dataset_in_any_order_gives_the_same():
    rng = np.random.default_rng(1)
    data = made(0.5 - np.log(STRENGTHS / 2)[None, :, None] + rng.normal(0, 0.1, (3, 9, 4)))
    expected = contour(data, "test_error", 0.5)
    mixed = data.isel(strength=rng.permutation(9), seed=[2, 0, 3, 1]).transpose("seed", "strength", "n")
    xr.testing.assert_allclose(contour(mixed, "test_error", 0.5, along="strength"), expected)
    bare = contour(data.drop_vars(["done", "trained"]), "test_error", 0.5)
    xr.testing.assert_allclose(bare, expected)
    np.testing.assert_allclose(
        contour(data.isel(seed=0, drop=True), "test_error", 0.5).at,
        contour(data.isel(seed=[0]), "test_error", 0.5).at,
    )


FINE = dict(variable="test_error", level=0.3)
REFUSED = {
    "an unknown variable": (dict(variable="test_eror"), "no variable 'test_eror'; did you mean 'test_error'"),
    "flags": (dict(variable="done"), "variable of numbers, and 'done' holds bool"),
    "an unknown dim": (dict(along="strenth"), "along=.*'strenth'; did you mean 'strength'"),
    "the seed": (dict(along="seed"), "along=.*swept dim, got 'seed'"),
    "no level": (dict(level=math.nan), "level=.*finite number, got nan"),
    "a word for a level": (dict(level="half"), "level=.*finite number, got 'half'"),
    "a flag for a level": (dict(level=True), "level=.*finite number, got True"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_bad_input_is_refused_in_one_sentence(what):
    change, message = REFUSED[what]
    with pytest.raises(fl.InputError, match=message) as caught:
        contour(made(np.ones((3, 9, 2))), **{**FINE, **change})
    assert str(caught.value).count(". ") == 0 and str(caught.value)[-1] in ".?"


def test_coordinates_that_have_no_place_on_the_scale_are_refused():
    for grid, scale in (([0.0, 1.0], "log"), ([1.0, math.inf], "log"), ([1.0, 1.0], "linear")):
        with pytest.raises(fl.InputError, match="contour needs different finite numbers.* for 'strength'"):
            contour(made(np.ones((1, 2, 2)), strength=np.array(grid), scale=scale), "test_error", 0.3)
    with pytest.raises(fl.InputError, match="got relu, gelu"):
        contour(made(np.ones((1, 2, 2)), strength=["relu", "gelu"], scale="linear"), "test_error", 0.3)
    with pytest.raises(fl.InputError, match="must be the Dataset of a sweep, got DataArray"):
        contour(made(np.ones((1, 2, 2))).test_error, "test_error", 0.3)
    with pytest.raises(fl.InputError, match="this diagram has none"):
        contour(made(np.ones((1, 2, 2))).isel(n=0, strength=0), "test_error", 0.3)


# -- the interval against the truth


def coverage(law, seeds, repetitions=1000):
    """The share of intervals that hold the truth, of those that there are, and how many there are.

    Eleven cells from 0 to 1, a true crossing anywhere in the middle, and seeds that shift it.
    """
    rng = np.random.default_rng(11)
    true = rng.uniform(0.4, 0.6, (repetitions, 1, 1))
    u = np.linspace(0, 1, 11)
    noise = rng.normal(size=(repetitions, 11, seeds))
    values = law(u[None, :, None] - true, rng.normal(size=(repetitions, 1, seeds)), noise)
    found = contour(made(values, scale="log", strength=np.exp(u)), "test_error", 0.5)
    there = np.isfinite(found.low.values)
    low, high, at = (np.log(found[name].values[there]) for name in ("low", "high", "at"))
    hit = (low <= true[there, 0, 0]) & (true[there, 0, 0] <= high)
    return hit.mean(), there.mean(), at - true[there, 0, 0]


LAWS = {
    # the error along the grid and what seeds and cells do to it; the least coverage that passes
    "straight, shifted": (lambda x, shift, noise: 0.5 - (x - 0.1 * shift), 0.93),
    "a switch, shifted": (lambda x, shift, noise: 1 / (1 + np.exp((x - 0.05 * shift) / 0.1)), 0.93),
    "a switch, shifted, noisy cells": (
        lambda x, shift, noise: 1 / (1 + np.exp((x - 0.05 * shift) / 0.1)) + 0.1 * noise,
        0.91,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [5, 10])
@pytest.mark.parametrize("law", LAWS)
def test_the_interval_holds_the_truth_as_often_as_it_says(law, seeds):
    """95 %, where 1000 repetitions have a standard error of 0.7 %; noise of single cells moves the split."""
    make, least = LAWS[law]
    share, there, error = coverage(make, seeds)
    assert least <= share <= 0.975
    assert there > 0.99
    assert abs(error.mean()) < 4 * error.std() / math.sqrt(1000) + 0.002


def test_a_switch_sharper_than_the_grid_is_beyond_the_interval():
    """Seeds that agree to a third of a cell say nothing about where in the cell the switch is."""
    share, _, error = coverage(lambda x, shift, noise: np.where(x < 0.03 * shift, 1.0, 0.0), 10)
    assert 0.5 < share < 0.85 and abs(error).max() < 0.1
