"""A boundary is followed at full resolution, and the plains beside it are not computed."""

import dataclasses
import math

import numpy as np
import pytest

import featlab as fl
from featlab.engine import batch as many
from featlab.sweeps.refine import around, toward

P = fl.probes


def crossing(values, level):
    """Both cells of every pair of neighbours on different sides, one pair at a time."""
    found = np.zeros(values.shape, bool)
    for place in np.ndindex(values.shape):
        for axis in range(values.ndim):
            other = tuple(p + (a == axis) for a, p in enumerate(place))
            if other[axis] == values.shape[axis]:
                continue
            one, two = values[place], values[other]
            if np.isfinite(one) and np.isfinite(two) and (one > level) != (two > level):
                found[place] = found[other] = True
    return found


def followed(values, level):
    """What is computed of a field, stage by stage; no cell twice."""
    known, done = np.full(values.shape, np.nan), np.zeros(values.shape, bool)
    for stage, wanted in enumerate(toward(level, values.shape, lambda: known)):
        assert stage < 1000 and wanted.shape == values.shape and wanted.any() and not (wanted & done).any()
        done |= wanted
        known[wanted] = values[wanted]
    return done


def grid(*shape):
    return np.meshgrid(*[np.linspace(-1, 1, length) for length in shape], indexing="ij")


X, Y = grid(100, 100)
SMOOTH = {
    "a circle": np.hypot(X, Y) - 0.6,
    "a small circle off the middle": np.hypot(X - 0.3, Y + 0.2) - 0.3,
    "a straight line": X - 0.31 * Y,
    "a steep line": 20 * X + Y,
    "along an axis": X - 0.123,
    "between the last two rows": Y - 0.99,
    "touching the edge": np.hypot(X - 1, Y) - 0.5,
    "through a corner": X + Y + 1.8,
    "two branches": X * Y - 0.1,
    "a wave": Y - 0.5 * np.sin(3 * X),
    "a steep switch": np.tanh(30 * (Y - X**2 + 0.5)),
    "a law": np.log(0.05 + X**2 + (Y + 1) ** 2),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_every_pair_of_cells_across_the_level_is_computed(name):
    values = SMOOTH[name]
    done, wanted = followed(values, 0.0), crossing(values, 0.0)
    assert wanted.any() and not (wanted & ~done).any()
    assert done.sum() <= values.size / 5


@pytest.mark.parametrize(
    "shape", [(5,), (64,), (100,), (7, 90), (1, 40), (40, 1), (20, 24, 30), (3, 3), (2, 2), (4,)]
)
def test_any_number_of_axes_of_any_length(shape):
    axes = grid(*shape)
    values = sum((k + 1) * (axis - 0.13) for k, axis in enumerate(axes)) + np.zeros(shape)
    for level in (0.0, 0.4):
        assert not (crossing(values, level) & ~followed(values, level)).any()


@pytest.mark.parametrize("shape", [(100, 100), (9,), (1, 1), (3, 5, 4)])
def test_where_nothing_crosses_only_the_first_lattice_is_computed(shape):
    done = followed(np.ones(shape), 0.0)
    assert done.sum() == done[tuple(slice(None) for _ in shape)].sum() <= math.prod(-(-n // 8) + 4 for n in shape)
    assert followed(np.zeros(shape), 0.0).sum() == done.sum()  # at the level is not above it


def test_noise_hides_little_of_the_boundary():
    rng = np.random.default_rng(0)
    for name in ("a circle", "a wave", "two branches"):
        noisy = SMOOTH[name] + rng.normal(0, 0.02, X.shape)
        done, wanted = followed(noisy, 0.0), crossing(noisy, 0.0)
        near = crossing(SMOOTH[name], 0.0)
        assert (done & wanted).sum() > 0.85 * wanted.sum()
        assert (done & near).sum() > 0.97 * near.sum()
        assert done.sum() < values_within(0.35)


def values_within(share):
    return share * X.size


def test_cells_without_a_number_are_asked_for_once_and_hide_nothing():
    """A quarter of the plane, single cells on the boundary, everything."""
    circle = SMOOTH["a circle"]
    rng = np.random.default_rng(1)
    holes = {
        "a quarter": (X > 0) & (Y > 0),
        "here and there": rng.random(X.shape) < 0.1,
        "the lattice": np.isin(np.arange(100), np.arange(0, 100, 8))[:, None] & (Y < 0),
        "a strip": abs(X) < 0.05,
        "all": X > -2,
    }
    for name, hole in holes.items():
        values = np.where(hole, np.nan, circle)
        done, wanted = followed(values, 0.0), crossing(values, 0.0)
        assert (wanted & done).sum() >= 0.9 * wanted.sum(), name
        assert done.sum() < values_within(0.4), name


def test_around_marks_pairs_and_their_neighbours():
    values = np.array([[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, np.nan], [0, 0, np.nan, 9.0]])
    marked = around(0.5, values)
    assert marked.tolist() == [[True] * 3 + [False]] * 3 + [[False] * 4]


def test_a_sweep_near_a_level_has_the_contour_of_the_whole_one(monkeypatch):
    monkeypatch.setattr(many, "_TOGETHER", 1)
    base = fl.Experiment(
        data=fl.data.SignalNoise(n=6, d=math.inf, snr=0.5),
        network=fl.networks.TwoLayerCNN(width=2, init_scale=0.3),
        algorithm=fl.algorithms.GradientDescent(1.0),
        probes=[P.test_error(count=50)],
        steps=5,
    )
    axes = {"data.snr": "0.05:3:24log", "algorithm.learning_rate": "0.1:5:18log"}
    whole = fl.sweep(base, axes, 2)
    near = fl.sweep(base, axes, 2, near={"test_error": 0.25})
    assert near.attrs["unfinished"] and not whole.attrs["unfinished"]
    done = near.done.all("seed").values
    assert (done == near.done.any("seed")).all() and 0.1 < done.mean() < 0.7
    means = whole.test_error.mean("seed").values
    wanted = crossing(means, 0.25)
    assert (wanted & done).sum() > 0.9 * wanted.sum() > 10
    np.testing.assert_array_equal(near.test_error.values[done], whole.test_error.values[done])
    assert np.isnan(near.test_error.values[~done]).all() and not near.trained.values[~done].any()
    same = dataclasses.replace(base, steps=base.steps)
    again = fl.sweep(same, axes, 2, near={"test_error": 5.0})  # nowhere: the first lattice alone
    assert again.done.mean() < done.mean()
