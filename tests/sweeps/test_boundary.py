"""Thresholds against closed forms and a plain scan; exponents against the numbers that went in."""

import math

import numpy as np
import pytest

import featlab as fl
from featlab.sweeps.boundary import boundary, crossings, exponents

pytestmark = pytest.mark.xdist_group("boundaries")  # one boundary for all
P = fl.probes

LANES = np.array([0.5, 1.0, 2.0, 30.0])  # each lane has its own scale
LOW, HIGH = LANES / 20, LANES * 7


def counted(f):
    calls = []

    def g(x):
        calls.append(x)
        return f(x)

    return g, calls


SMOOTH = {
    "x": (lambda x: x / LANES, lambda y: y * LANES),
    "falling power": (lambda x: (x / LANES) ** -1.5, lambda y: LANES * y ** (-1 / 1.5)),
    "rising switch": (lambda x: 1 / (1 + (LANES / x) ** 4), lambda y: LANES * (y / (1 - y)) ** 0.25),
    "falling switch": (lambda x: 1 / (1 + (x / LANES) ** 4), lambda y: LANES * ((1 - y) / y) ** 0.25),
    "below 0": (lambda x: -np.log1p(x / LANES), lambda y: LANES * np.expm1(-y)),
}


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("tolerance", [0.1, 0.01, 1e-4])
def test_crossings_of_smooth_functions_are_those_of_the_formula(name, tolerance):
    """The straight line between the ends of the last bracket gains another order over its width."""
    f, inverse = SMOOTH[name]
    levels = [-0.7, -0.3] if name == "below 0" else [0.3, 0.5, 0.9]
    found = crossings(f, levels, LOW, HIGH, tolerance=tolerance)
    exact = np.stack([inverse(level) for level in levels])
    assert found.at.shape == found.width.shape == (len(levels), len(LANES))
    assert (found.width <= tolerance).all() and (found.width > tolerance / 4).any()
    np.testing.assert_allclose(found.at, exact, rtol=2 * tolerance**2)
    alone = crossings(f, levels[:1], LOW, HIGH, tolerance=tolerance)
    np.testing.assert_allclose(alone.at[0], exact[0], rtol=2 * tolerance**2)


def test_each_evaluation_halves_a_bracket_and_serves_every_level():
    f, calls = counted(lambda x: (x / LANES) ** 2)
    one = crossings(f, [0.25], LOW, HIGH, tolerance=0.01)
    assert one.evaluations == len(calls) == 2 + math.ceil(math.log2(math.log(140) / 0.01))
    assert all(len(x) == len(LANES) for x in calls)
    calls.clear()
    close = crossings(f, [0.25, 0.2501], LOW, HIGH, tolerance=0.01)
    assert close.evaluations == len(calls) <= one.evaluations + 1
    calls.clear()
    levels = [0.02, 0.2, 1.0, 3.0, 9.0]
    many = crossings(f, levels, LOW, HIGH, tolerance=0.01)
    assert many.evaluations == len(calls) < len(levels) * (one.evaluations - 2)
    np.testing.assert_allclose(many.at, np.sqrt(levels)[:, None] * LANES, rtol=1e-4)


@pytest.mark.parametrize("tolerance", [0.05, 0.001])
@pytest.mark.parametrize("ends", [(0.0, 1.0), (1.0, 0.0), (-3.0, 100.0)])
def test_a_jump_is_found_within_the_tolerance(ends, tolerance):
    jump = LANES * np.array([0.1, 0.7, 1.0, 5.0])
    before, after = ends
    levels = [before + share * (after - before) for share in (0.1, 0.5, 0.9)]
    found = crossings(lambda x: np.where(x < jump, before, after), levels, LOW, HIGH, tolerance=tolerance)
    assert (abs(np.log(found.at / jump)) <= tolerance).all()
    assert (abs(np.log(found.at[0] / found.at[2])) <= tolerance).all()


def test_levels_that_are_not_crossed_are_nan_and_the_others_are_found():
    found = crossings(lambda x: x / LANES, [0.01, 1.0, 8.0], LOW, HIGH)
    assert np.isnan(found.at[[0, 2]]).all()
    np.testing.assert_allclose(found.at[1], LANES, rtol=1e-4)
    nothing = crossings(lambda x: x / LANES, [9.0], LOW, HIGH)
    assert np.isnan(nothing.at).all() and nothing.evaluations == 2


def test_lanes_without_a_crossing_are_nan_and_the_others_are_found():
    flat, unknown = np.array([False, True, False, False]), np.array([False, False, True, False])

    def f(x):
        return np.where(unknown, np.nan, np.where(flat, 0.2, x / LANES))

    found = crossings(f, [0.1, 1.0], LOW, HIGH)
    np.testing.assert_array_equal(np.isnan(found.at), np.tile([False, True, True, False], (2, 1)))
    np.testing.assert_allclose(found.at[:, [0, 3]], np.outer([0.1, 1.0], LANES[[0, 3]]), rtol=1e-4)
    rising_and_falling = crossings(lambda x: (x / LANES) ** np.array([1, -1, 2, -2]), [2.0], LOW, HIGH)
    np.testing.assert_allclose(rising_and_falling.at[0], LANES * 2 ** np.array([1, -1, 0.5, -0.5]), rtol=1e-4)


def test_a_lane_finds_the_same_whatever_its_company():
    """The company may narrow its bracket further, and does no more."""
    high = HIGH * np.array([1, 2, 4, 80])
    together = crossings(lambda x: np.tanh(np.log(x / LANES)), [0.1], LOW, high, tolerance=0.01)
    for i, scale in enumerate(LANES):
        alone = crossings(lambda x, s=scale: np.tanh(np.log(x / s)), [0.1], LOW[[i]], high[[i]], tolerance=0.01)
        assert alone.at[0, 0] == pytest.approx(together.at[0, i], rel=1e-4)
        assert together.width[0, i] <= alone.width[0, 0] + 1e-12


REFUSED = {
    "ends in the wrong order": dict(low=HIGH, high=LOW),
    "equal ends": dict(high=LOW),
    "one lane without room": dict(high=np.where(LANES == 2, LOW, HIGH)),
    "an end at 0": dict(low=0 * LOW),
    "an end below 0": dict(low=-LOW),
    "an end at infinity": dict(high=HIGH + np.inf),
    "an end that is no number": dict(low=LOW * np.nan),
    "unequal numbers of lanes": dict(low=LOW[:2]),
    "numbers for lanes": dict(low=0.1, high=0.2),
    "a tolerance of 0": dict(tolerance=0.0),
    "a tolerance below 0": dict(tolerance=-0.1),
    "a tolerance that is no number": dict(tolerance=math.nan),
}


@pytest.mark.parametrize("what", REFUSED)
def test_crossings_refuse_what_they_cannot_search(what):
    with pytest.raises(fl.InputError):
        crossings(**{**dict(f=lambda x: x, levels=[1.0], low=LOW, high=HIGH), **REFUSED[what]})


def test_exponents_of_power_laws_are_exact():
    sizes, true = np.array([8.0, 20.0, 30.0, 100.0, 700.0]), np.array([-1 / 3, 0.0, 2.0])
    found = exponents(sizes, np.array([0.1, 3.0, 7.0]) * sizes[:, None] ** true)
    np.testing.assert_allclose(found.overall, true, atol=1e-13)
    np.testing.assert_allclose(found.local, np.tile(true[:, None], 4), atol=1e-13)
    np.testing.assert_allclose(found.drift, 0, atol=1e-13)


def test_exponents_are_the_slopes_of_a_line_fitted_by_least_squares():
    rng = np.random.default_rng(5)
    sizes, y = np.array([30.0, 8.0, 700.0, 100.0]), np.exp(rng.normal(size=(4, 6)))  # in any order
    found = exponents(sizes, y)
    np.testing.assert_allclose(found.overall, np.polyfit(np.log(sizes), np.log(y), 1)[0])
    order = np.argsort(sizes)
    u, v = np.log(sizes[order]), np.log(y[order])
    for gap in range(3):
        np.testing.assert_allclose(found.local[:, gap], (v[gap + 1] - v[gap]) / (u[gap + 1] - u[gap]))
    np.testing.assert_allclose(found.drift, found.local[:, 2] - found.local[:, 0])


@pytest.mark.parametrize("count, half", [(3, 2), (4, 2), (5, 3), (6, 3), (7, 4)])
def test_the_drift_is_the_slope_of_the_upper_half_less_that_of_the_lower(count, half):
    """An odd number of sizes shares the middle one."""
    sizes = 10.0 * 1.7 ** np.arange(count)
    y = sizes[:, None] ** -0.5 * (1 + np.array([3.0, -2.0]) / sizes[:, None])
    u, v = np.log(sizes), np.log(y)
    expected = np.polyfit(u[-half:], v[-half:], 1)[0] - np.polyfit(u[:half], v[:half], 1)[0]
    np.testing.assert_allclose(exponents(sizes, y).drift, expected, rtol=1e-9)


def test_the_drift_by_hand():
    """Slopes 1, 2 and 3 between sizes 1, 2, 4 and 8: 3 - 1; and of the least squares line, 2."""
    found = exponents([1, 2, 4, 8], [[1.0], [2.0], [8.0], [64.0]])
    np.testing.assert_allclose(found.local, [[1, 2, 3]])
    np.testing.assert_allclose([found.overall[0], found.drift[0]], [2, 2])
    np.testing.assert_allclose(exponents([1, 2], [[1.0], [8.0]]).drift, 0)  # two sizes have no halves


@pytest.mark.parametrize("value", [np.nan, 0.0, -1.0, np.inf])
def test_a_value_without_logarithm_spoils_its_seed_alone(value):
    sizes = np.array([1.0, 2.0, 4.0, 8.0])
    y = np.tile(sizes[:, None], 3)
    y[1, 1] = value
    found = exponents(sizes, y)
    np.testing.assert_array_equal(np.isnan(found.overall), [False, True, False])
    np.testing.assert_array_equal(np.isnan(found.drift), [False, True, False])
    np.testing.assert_array_equal(np.isnan(found.local[1]), [True, True, False])
    np.testing.assert_allclose(found.overall[[0, 2]], 1)


@pytest.mark.parametrize(
    "sizes, shape",
    [([], (0, 3)), ([1], (1, 3)), ([1, 1], (2, 3)), ([0, 1], (2, 3)), ([-1, 1], (2, 3)), ([1, 2], (3, 2)),
     ([1, 2], (2,)), ([1, 2, 3], (3,)), ([1, 2], (2, 0))],
)  # fmt: skip
def test_exponents_refuse_what_has_none(sizes, shape):
    with pytest.raises(fl.InputError):
        exponents(np.array(sizes, float), np.ones(shape))


# -- a boundary of real runs


LEVELS, SAMPLES, SEEDS, TOLERANCE = (0.35, 0.2), (8, 16), (0, 1, 5), 0.02


def experiment(n, snr, level=0.05, at_most=100_000):
    return fl.Experiment(
        data=fl.data.SignalNoise(n=n, d=math.inf, snr=snr),
        network=fl.networks.TwoLayerCNN(width=8, activation=fl.networks.relu_power(3), init_scale=0.1),
        algorithm=fl.algorithms.PacedDescent(0.2),
        probes=[P.train_loss, P.test_loss],
        steps=P.until(P.train_loss, level, at_most=at_most),
    )


def between(n):
    return 0.5 * n ** (-1 / 3), 3 * n ** (-1 / 3)


@pytest.fixture(scope="module")
def found():
    told = []
    thresholds = boundary(
        experiment,
        "snr",
        "test_loss",
        LEVELS,
        over={"n": SAMPLES},
        seeds=SEEDS,
        between=between,
        tolerance=TOLERANCE,
        tell=told.append,
    )
    return thresholds, told


@pytest.mark.slow
def test_a_boundary_has_a_threshold_for_each_level_size_and_seed(found):
    thresholds, told = found
    assert thresholds.snr.dims == ("level", "n", "seed") and thresholds.trained.dims == ("n", "seed")
    assert thresholds.trained.dtype == bool and thresholds.trained.all()
    for name, values in {"level": LEVELS, "n": SAMPLES, "seed": SEEDS}.items():
        assert tuple(thresholds[name].values) == values
    assert thresholds.attrs["variable"] == "test_loss"
    assert thresholds.attrs["runs"] == len(SEEDS) * told.count(len(SEEDS))
    for n in SAMPLES:
        inside = thresholds.snr.sel(n=n)
        assert (inside > between(n)[0]).all() and (inside < between(n)[1]).all()
    assert (thresholds.snr.sel(level=0.2) > thresholds.snr.sel(level=0.35)).all()  # the loss falls
    assert len(np.unique(thresholds.snr)) == thresholds.snr.size  # each seed has its own


@pytest.mark.slow
def test_a_plain_scan_finds_the_same_thresholds(found):
    """A seed's test loss falls through both levels where the boundary says, and nowhere else."""
    thresholds, _ = found
    n, seed = SAMPLES[0], SEEDS[1]
    scan = np.geomspace(*between(n), 24)
    loss = np.array([float(fl.run(experiment(n, float(snr)), [seed]).test_loss[0, -1]) for snr in scan])
    for level in LEVELS:
        at = float(thresholds.snr.sel(level=level, n=n, seed=seed))
        assert (loss[scan < at * (1 - TOLERANCE)] > level).all() and (
            loss[scan > at * (1 + TOLERANCE)] < level
        ).all()
        below, above = (
            float(fl.run(experiment(n, at * (1 + side * TOLERANCE)), [seed]).test_loss[0, -1]) for side in (-1, 1)
        )
        assert above < level < below


@pytest.mark.slow
def test_a_seed_keeps_its_threshold_in_other_company(found):
    thresholds, _ = found
    alone = boundary(
        experiment, "snr", "test_loss", 0.35, over={"n": [8]}, seeds=[5], between=between, tolerance=TOLERANCE
    )
    assert alone.snr.dims == ("level", "n", "seed") and alone.snr.shape == (1, 1, 1)
    expected = float(thresholds.snr.sel(level=0.35, n=8, seed=5))
    assert abs(math.log(float(alone.snr[0, 0, 0]) / expected)) < TOLERANCE


@pytest.mark.parametrize("level, trained", [(0.05, True), (-1.0, False)])
def test_one_run_that_did_not_train_is_enough_to_say_so(level, trained):
    """A loss is never below -1: the first of a seed's runs goes on to the last step."""

    def make(n, snr):
        return experiment(n, snr, level=level if snr < 1.001 * between(n)[0] else 0.05, at_most=300)

    given = dict(over={"n": [8]}, seeds=SEEDS, between=between, tolerance=0.5)
    assert (boundary(make, "snr", "test_loss", 0.35, **given).trained == trained).all()


def test_a_boundary_refuses_what_it_cannot_find():
    given = dict(over={"n": [8]}, seeds=[0], between=between)
    with pytest.raises(fl.InputError, match="needs 'loss_test', which no probe records; there is .*'test_loss'"):
        boundary(lambda n, snr: experiment(n, snr, at_most=1), "snr", "loss_test", 0.35, **given)
    for missing in ({"over": {}}, {"over": {"n": []}}, {"seeds": []}):
        with pytest.raises(fl.InputError, match="at least one level and one value|Seeds must be"):
            boundary(experiment, "snr", "test_loss", 0.35, **{**given, **missing})
    with pytest.raises(fl.InputError, match="at least one level and one value"):
        boundary(experiment, "snr", "test_loss", [], **given)
    with pytest.raises(fl.InputError, match="low < high"):
        boundary(experiment, "snr", "test_loss", 0.35, **{**given, "between": lambda n: (1.0, 0.5)})
