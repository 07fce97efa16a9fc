"""The judge on synthetic measurements whose truth is known: how often it is right, and how often it is wrong."""

import dataclasses
import functools
import math

import numpy as np
import pytest
import scipy.stats
import xarray as xr
from tests.claims.error_rates import (
    FALSE,
    JUST,
    PROMISED,
    SEEDS,
    TRUE,
    generator,
    mirrored,
    most,
    rates,
    refuted,
)

from featlab.claims import at_least, at_most, equals, identity, scales_as, switches_at
from featlab.claims.intervals import (
    FEWEST,
    LEVEL,
    MISSED,
    RARE,
    mean_interval,
    seeds_needed,
    student_interval,
)
from featlab.claims.verbs import exponent_margin
from featlab.core.validation import InputError

N = 24  # seeds, enough for a verdict
SIZES = 50 * 2.0 ** np.arange(4)
THIRD, RIVALS, MARGIN = -1 / 3, (-1 / 4, -1 / 2), 1 / 36
NARROW = 0.001 * np.linspace(-1, 1, N)
WIDE = 1.0 * np.linspace(-1, 1, N)
SETS = [300, pytest.param(4000, marks=pytest.mark.slow)]


def labelled(values, **coords):
    """(cells..., seed) with these coordinates; n, d and width are sizes."""
    values = np.asarray(values, float)
    one = xr.DataArray(values, dims=(*coords, "seed"), coords={name: list(v) for name, v in coords.items()})
    for name in coords:
        if name in ("n", "d", "width"):
            one[name].attrs["size"] = 1
    return one


def power_law(exponent, noise=0.003, seeds=N, name="power law", sizes=SIZES):
    rng = generator(name)
    noisy = np.exp(noise * rng.normal(size=(len(sizes), seeds)) + rng.normal(size=seeds))
    return labelled(sizes[:, None] ** exponent * noisy, n=sizes)


def scaling(y, exponent=THIRD, rivals=RIVALS, **options):
    return scales_as("s", y, "n", exponent, rivals, **options)


# -- how often it is wrong


@pytest.mark.parametrize("sets", SETS)
@pytest.mark.parametrize("name", FALSE)
def test_what_is_false_is_supported_no_more_often_than_promised(name, sets):
    """At the bound or beyond it, for every law and number of seeds; by all three relations."""
    for seeds in SEEDS:
        supported, refuted = rates(FALSE[name], name, seeds, sets)
        assert supported <= most(sets, PROMISED), (seeds, supported)
        assert refuted <= most(sets, PROMISED) or "beyond" in name, (seeds, refuted)
        assert seeds >= FEWEST or supported == refuted == 0
    for supported in mirrored(FALSE[name], name, 32, sets):
        assert supported <= most(sets, PROMISED), supported


@pytest.mark.parametrize("sets", SETS)
@pytest.mark.parametrize("name", JUST)
def test_what_holds_is_refuted_no_more_often_than_promised(name, sets):
    """By all three relations; where it is most likely, and with more seeds."""
    for seeds in SEEDS[2:] if sets > 1000 else (24,):
        for share in refuted(JUST[name], name, seeds, sets):
            assert share <= most(sets, PROMISED), (seeds, share)


def test_a_mode_that_would_bring_the_mean_inside_must_have_been_looked_for():
    few, enough = np.zeros(21), np.zeros(24)
    status, reason = at_least("c", few, 1.0).decision()
    assert status == "inconclusive" and "0 [0, 0] is outside at least 1, but 21 seeds are too few" in reason
    assert at_least("c", few, 1.0).too_small and at_least("c", enough, 1.0).status(250) == "refuted"
    enough[0] = 1.05
    status, reason = at_least("c", enough, 1.0, on_average=True).decision()
    assert status == "inconclusive" and "1 of 24 seeds lie apart and not outside on that side" in reason
    assert equals("e", np.where(np.arange(64) == 0, 1.2, 0.9), 1.0).status(250) == "refuted"


@pytest.mark.parametrize("name", TRUE)
def test_what_is_true_is_supported_once_there_are_seeds_enough(name):
    found = [rates(TRUE[name], name, seeds, 200) for seeds in SEEDS]
    assert [supported for supported, _ in found[:2]] == [0, 0] and all(s > 0.97 for s, _ in found[2:]), found
    assert not any(refuted for _, refuted in found)


def test_more_seeds_never_make_a_false_support_more_likely_where_seeds_fail():
    for share in (0.15, 0.2, 0.4):
        chances = []
        for seeds in range(4, 130):
            allowed = [k for k in range(seeds) if scipy.stats.binom.cdf(k, seeds, RARE) <= MISSED]
            chances.append(scipy.stats.binom.cdf(allowed[-1], seeds, share) if allowed else 0.0)
        assert max(chances) <= MISSED + 1e-12


def test_the_fewest_seeds_that_can_support_follow_from_the_failures_that_must_show():
    assert FEWEST == 22 and (1 - RARE) ** 22 <= MISSED < (1 - RARE) ** 21
    assert at_most("b", np.full(22, 0.5), 1.0).status() == "supported"
    status, reason = (few := at_most("b", np.full(21, 0.5), 1.0)).decision()
    assert status == "inconclusive" and "21 seeds are too few" in reason and "22 seeds would do" in reason
    assert few.too_small and not at_most("b", np.full(22, 0.5), 1.0).too_small


def test_a_seed_that_fails_among_few_stands_against_support():
    values = np.full(32, 0.5)
    values[3] = 1.2  # the mean is far inside, and its interval too
    status, reason = at_most("b", values, 1.0).decision()
    assert status == "inconclusive" and reason.startswith("1 of 32 seeds lie outside at most 1")
    many = np.full(64, 0.5)
    many[:4] = 1.2
    assert at_most("b", many, 1.0).status() == "supported"  # 5 of 64 would be too many
    many[4] = 1.2
    assert "5 of 64 seeds lie outside" in at_most("b", many, 1.0).decision()[1]


def test_scatter_of_single_seeds_is_no_failure():
    rng = generator("scatter")
    check = equals("e", 1 + 0.05 * rng.normal(size=128), 1.0)
    outside = np.mean(np.abs(check.samples - 1) > 0.05)
    assert 0.2 < outside < 0.5 and check.status() == "supported"


@pytest.mark.parametrize("seeds", [4, 12, 32])
def test_the_interval_covers_at_least_as_often_as_it_says(seeds):
    sets, rng = 1000, generator("coverage", seeds)
    laws = (3 + 2 * rng.normal(size=(sets, seeds)), 3.0), (rng.exponential(size=(sets, seeds)), 1.0)
    for values, mean in laws:
        ends = np.array([mean_interval(row) for row in values])
        missed = 1 - np.mean((ends[:, 0] <= mean) & (mean <= ends[:, 1]))
        assert missed <= most(sets, 1 - LEVEL) or seeds == 4, missed
    ends = np.array([student_interval(row) for row in rng.exponential(size=(sets, 12))])
    assert np.mean(ends[:, 1] < 1) > most(sets, 0.025)  # what Student alone would do


def test_the_interval_is_students_unless_values_are_skewed_and_never_narrower():
    values = np.array([1.0, 2.0, 3.0, 4.0])
    expected = tuple(scipy.stats.ttest_1samp(values, 0).confidence_interval(0.9))
    np.testing.assert_allclose(mean_interval(values, 0.9), expected)
    np.testing.assert_allclose(mean_interval(np.insert(values, [0, 2], [np.nan, np.inf]), 0.9), expected)
    assert mean_interval(np.full(5, 0.1)) == (0.1, 0.1)
    assert all(math.isnan(end) for end in mean_interval(np.array([np.nan])))
    rng = generator("skewed")
    for _ in range(50):
        row = rng.exponential(size=24)
        (low, high), (wide_low, wide_high) = student_interval(row), mean_interval(row)
        assert wide_low <= low and high <= wide_high
        np.testing.assert_allclose(mean_interval(-row), (-wide_high, -wide_low))
        np.testing.assert_allclose(mean_interval(5 + 2 * row), (5 + 2 * wide_low, 5 + 2 * wide_high))


# -- what decides nothing, through every verb


FINE = np.geomspace(50, 400, 61)
VERBS = {
    "equals": (lambda y: equals("a", 1 + y, 1.0), (0.0, 0.2)),
    "at_most": (lambda y: at_most("b", y, 1.0), (0.5, 1.5)),
    "at_least": (lambda y: at_least("c", y, 1.0), (1.5, 0.5)),
    "scales_as": (lambda y: scales_as("s", labelled(SIZES[:, None] ** y, n=SIZES), "n", 0.5), (0.5, 0.7)),
    "scales_as at most": (
        lambda y: scales_as("s", labelled(SIZES[:, None] ** y, n=SIZES), "n", at_most=0.5), (0.3, 0.7),
    ),
    "scales_as at least": (
        lambda y: scales_as("s", labelled(SIZES[:, None] ** y, n=SIZES), "n", at_least=0.5), (0.7, 0.3),
    ),
    "switches_at": (
        lambda y: switches_at(
            "w", labelled(np.log(FINE)[:, None] - y, snr=FINE), "snr", 120.0, level=0.0, rising=True
        ),
        (math.log(120), math.log(200)),
    ),
}  # fmt: skip
each_verb = pytest.mark.parametrize("verb", VERBS)


@each_verb
def test_runs_without_a_value_decide_nothing(verb):
    """Untrained, diverged and not finite runs reach the judge as NaN; a tenth of them may be missing.

    They count as failed: as few may be missing from what is supported as may fail.
    """
    judge, ends = VERBS[verb]
    for value, status in zip(ends, ("supported", "refuted")):
        values = np.full(64, value) + 1e-4 * np.linspace(-1, 1, 64)
        assert judge(values).status() == status
        for nothing in (np.nan, np.inf):
            values[:4] = nothing
            check = judge(values)
            assert check.status() == status and (check.seeds, check.dropped) == (60, 4)
            values[4] = nothing
            found, reason = judge(values).decision()
            assert found == "refuted" if status == "refuted" else "5 of 64 seeds have no value" in reason
            values[5:7] = nothing
            found, reason = judge(values).decision()
            assert found == "inconclusive" and "only 89% of the runs" in reason
            values[:7] = value
        found, reason = judge(np.full(64, np.nan)).decision()
        assert found == "inconclusive" and "only 0% of the runs" in reason


@each_verb
def test_too_few_runs_decide_nothing(verb):
    judge, (good, bad) = VERBS[verb]
    for seeds in (1, 2):
        for value in (good, bad):
            assert judge(np.full(seeds, value)).decision()[0] == "inconclusive"
    assert judge(np.full(4, good) + 1e-6 * np.arange(4)).status() == "inconclusive"
    status, reason = judge(np.full(21, bad) + 1e-6 * np.arange(21)).decision()
    assert status == "inconclusive" and "21 seeds are too few: another outcome in 15% of them" in reason
    assert judge(np.full(22, bad) + 1e-6 * np.arange(22)).status(250) == "refuted"


def test_a_missing_cell_is_named():
    values = labelled(np.full((3, N), 0.5), n=[10, 20, 40])
    values[1, :3] = np.nan
    assert "of the runs at n = 20 have a value" in at_most("b", values, 1.0).decision()[1]


# -- what counts


def test_identities_hold_up_to_rounding_and_prove_nothing():
    rounding = 1e-15 * generator("identity").normal(size=(3, 5))
    check = identity("i", rounding)
    assert check.status() == "supported" and check.evidence == "identity"
    assert identity("i", -1e-6 + rounding).status(1000) == "refuted"
    assert identity("i", [0.0, -2e-12, 0.0]).status() == "refuted"  # one place is enough
    assert identity("i", 2e-12, tolerance=1e-11).status() == "supported"
    assert identity("i", [0.0, np.nan]).status() == "inconclusive"


def test_a_number_without_chance_must_hold_and_is_not_evidence():
    curve = xr.DataArray(SIZES**-0.5, dims="n", coords={"n": SIZES})
    check = scales_as("s", curve, "n", -0.5)
    assert (check.status(), check.evidence) == ("supported", "computed") and not check.too_small
    assert scales_as("s", curve, "n", -0.7).status(1000) == "refuted"
    assert equals("e", xr.DataArray(1.01), 1.0).evidence == "computed"
    assert equals("e", xr.DataArray(np.nan), 1.0).status() == "inconclusive"


@pytest.mark.parametrize(
    "check, spare",
    [
        (at_most("b", 0.099 + NARROW / 100, 1.0), True),
        (at_most("b", 0.101 + NARROW / 100, 1.0), False),
        (at_most("b", -0.5 + NARROW, 1.0), True),
        (at_most("b", -0.5 + NARROW / 1000, 1.0), True),
        (at_most("b", -0.5 + 0.1 * WIDE, 0.0), False),
        (at_most("b", -0.5 + 0.01 * WIDE, 0.0), True),  # no seed could have another sign
        (at_most("b", -9 + WIDE, -1.0), False),
        (at_most("b", -20 + WIDE, -1.0), True),
        (at_least("c", np.abs(WIDE), -1e-9), True),
        (at_least("c", 1000 + WIDE, 0.0), True),
        (at_least("c", -0.05 + NARROW, -0.1), False),
        (at_least("c", -0.009 + NARROW / 10, -0.1), True),
        (scaling(power_law(-1.0), None, at_most=50.0), True),
        (scaling(power_law(4.0), None, at_most=50.0), True),
        (scaling(power_law(6.0), None, at_most=50.0), False),
        (scaling(power_law(-0.3), None, at_most=0.05), False),  # as exponents go, that is not far
        (scaling(power_law(-0.3), None, at_most=0.0), False),
        (scaling(power_law(-0.6), None, at_most=0.0), True),
        (scaling(power_law(0.6), None, at_least=0.0), True),
        (at_most("b", np.stack([0.01 + NARROW / 100, 0.5 + NARROW]), 1.0), False),
        (at_least("c", 10.1 + NARROW, 1.0), True),
        (at_least("c", 9.9 + NARROW, 1.0), False),
        (at_least("c", 0.5 + 0.1 * WIDE, 0.0), False),
        (equals("e", 1 + NARROW, 1.0), False),
    ],
)
def test_a_bound_ten_times_the_measurement_has_room_to_spare(check, spare):
    assert check.status() == "supported"
    assert check.evidence == ("room to spare" if spare else "evidence")


# -- drift


def of_correction(correction):
    return power_law(THIRD, noise=1e-4) * (1 + correction / SIZES)[:, None]


@pytest.mark.parametrize("correction", [-6.0, 12.0])
def test_an_exponent_that_drifts_decides_nothing(correction):
    for exponent in (THIRD, -0.5, -0.2):
        rivals = (exponent - 1 / 12, exponent + 1 / 12)
        status, reason = scaling(of_correction(correction), exponent, rivals).decision()
        assert status == "inconclusive" and reason.startswith("drifting: upper and lower half")


def test_a_drift_below_the_margin_is_let_pass():
    check = scaling(of_correction(1.5))
    assert 0.4 * MARGIN < check.drift.mean() < 0.6 * MARGIN and check.status() == "supported"


def test_a_one_sided_exponent_may_drift_away_from_its_bound():
    falling = labelled(SIZES[:, None] ** -0.4 * (1 + 12 / SIZES)[:, None] * (1 + NARROW), n=SIZES)
    rising = 1 / falling
    assert scales_as("s", falling, "n", at_least=-1.0).status() == "supported"
    assert scales_as("s", falling, "n", at_most=0.1).decision()[1].startswith("drifting")
    assert scales_as("s", rising, "n", at_most=1.0).status() == "supported"


def test_two_sizes_support_no_exponent_and_refute_one():
    y = power_law(THIRD)
    for pair in ([0, 1], [0, 3], [2, 3]):
        check = scaling(y[pair])
        assert check.decision()[1].startswith("an exponent over two sizes shows no drift")
        assert check.refutes(-1 / 2, 100) and not check.refutes(THIRD)
    assert scaling(y[:2], -1 / 2, (-1 / 3, -1)).status(100) == "refuted"


def test_a_drift_that_noise_could_hide_stands_against_support_only():
    noisy = power_law(THIRD, noise=0.05, seeds=200)
    hidden = dataclasses.replace(scaling(noisy), drift=MARGIN * 40 * np.linspace(-1, 1, 200)[None])
    assert hidden.status() == "inconclusive" and "could hide" in hidden.decision()[1]
    assert all(hidden.refutes(rival, 100) for rival in RIVALS)


@pytest.mark.parametrize("verb", [at_most, at_least, equals], ids=lambda one: one.__name__)
def test_values_that_drift_towards_an_edge_decide_nothing(verb):
    """Inside at every size, outside as far again; or outside now, and inside there."""
    sizes = [10, 20, 40]
    steps = np.array([0.0, 1.0, 2.0])[:, None] + NARROW
    sign = -1 if verb is at_least else 1
    inside = labelled(1 + sign * (0.02 + 0.01 * steps), n=sizes)
    bound = 1.0 if verb is equals else 1 + sign * 0.05
    status, reason = verb("v", inside, bound).decision()
    assert status == "inconclusive" and reason.startswith("drifting along n: ") and "as far again" in reason
    back = labelled(1 + sign * (0.09 - 0.015 * steps), n=sizes)
    assert verb("v", back, bound).decision()[1].startswith("drifting along n")
    still = labelled(1 + sign * (0.04 + 0 * steps), n=sizes)
    assert verb("v", still, bound).status() == "supported"
    settling = labelled(1 + sign * (0.04 - 0.01 * steps), n=sizes)
    assert verb("v", settling, bound).status() == "supported"
    assert verb("v", labelled(1 + sign * (0.02 + 0.01 * steps), strength=sizes), bound).status() == "supported"


def drifting(sizes, bound=1.0):
    """Below the bound at every size and above it as far again."""
    return labelled(bound * np.linspace(0.9, 0.999, len(sizes))[:, None] + NARROW / 10, n=sizes)


WAYS = {
    "as it is": lambda x, theory: x,
    "theory first": lambda x, theory: theory * x,
    "other coordinates": lambda x, theory: x.assign_coords(n=x.n.values),
    "joined": lambda x, theory: xr.concat([x.sel(n=n) for n in x.n.values], "n"),
    "a function's": lambda x, theory: xr.apply_ufunc(np.abs, x),
    "a dict by size": lambda x, theory: {f"n = {n:g}": x.sel(n=n, drop=True) for n in x.n.values},
    "a dict by size, shorter": lambda x, theory: {f"n={n:g}": x.sel(n=n, drop=True) for n in x.n.values},
    "a dict by other words": lambda x, theory: {w: x.sel(n=n) for w, n in zip("abcd", x.n.values)},
    "renamed": lambda x, theory: x.rename(n="samples"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_drift_is_seen_whatever_becomes_of_what_the_lab_said_of_sizes(way):
    sizes = [10.0, 20.0, 40.0, 80.0]
    theory = xr.DataArray(np.ones(4), dims="n", coords={"n": sizes})
    status, reason = at_most("b", WAYS[way](drifting(sizes), theory), 1.0).decision()
    assert status == "inconclusive" and reason.startswith("drifting along "), reason


def test_each_seed_shows_its_trend_over_the_sizes_it_has():
    sizes = 8 * 2.0 ** np.arange(16)
    x = drifting(sizes).isel(seed=slice(0, 16))
    for seed in range(16):
        x[seed, seed] = np.nan  # one of 16 is missing at each size
    whole, holes = (at_most("b", one, 1.0).trends[0].change for one in (drifting(sizes), x))
    np.testing.assert_allclose(holes, whole[:16], rtol=0.1)
    assert at_most("b", x, 1.0).decision()[1].startswith("drifting along n")
    alone = dataclasses.replace(check := at_most("b", drifting(sizes), 1.0), trends=(
        check.trends[0]._replace(change=np.full(N, np.nan)),
    ))  # fmt: skip
    assert alone.decision()[1].startswith("its trend along n cannot be computed")


def test_what_grows_is_what_the_claim_says():
    inside = at_most("b", drifting([10.0, 20.0, 40.0]).rename(n="ratio").assign_coords(ratio=[1.0, 2, 4]), 1.0)
    assert inside.status() == "supported"
    assert dataclasses.replace(inside, growing=("ratio",)).decision()[1].startswith("drifting along ratio")


def test_a_drift_that_noise_makes_up_is_none():
    rng = generator("no drift")
    alarms = 0
    for _ in range(100):
        alarms += bool(at_most("b", labelled(0.99 + 0.05 * rng.normal(size=(4, N)), n=SIZES), 1.0).drifting)
    assert alarms <= 100 * most(100, 0.05)


# -- the rule, case by case


def test_a_wide_interval_is_inconclusive_and_a_narrow_one_beside_theory_supported():
    status, reason = (wide := equals("a", 1 + WIDE, 1.0)).decision()
    assert status == "inconclusive" and "too wide" in reason and "seeds would decide" in reason
    assert wide.measured == pytest.approx(1.0)
    low, high = (narrow := equals("a", 1.04 + NARROW, 1.0)).interval()
    assert 1.0 < low < high < 1.05 and narrow.status() == "supported"  # theory is outside the interval
    assert equals("a", 1.06 + NARROW, 1.0).status() == equals("a", 0.94 + NARROW, 1.0).status() == "refuted"
    assert equals("a", 1.05 + NARROW, 1.0).status() == "inconclusive"


def test_margins_of_values_are_relative_also_below_zero():
    check = equals("a", -2.08 + NARROW, -2.0)
    assert (check.lower, check.upper) == pytest.approx((-2.1, -1.9)) and check.status() == "supported"
    assert equals("a", -2.08 + NARROW, -2.0, margin=0.03).status() == "refuted"


def test_more_checks_widen_the_interval_of_refutation_only():
    outside = equals("a", 1.1 + 0.1 * WIDE, 1.0)
    _, p = scipy.stats.ttest_1samp(outside.samples[0], 1.05)
    allowed = math.floor(0.05 / p)
    assert 1 < allowed < 1e6
    assert [outside.status(k) for k in (1, allowed, allowed + 1)] == ["refuted", "refuted", "inconclusive"]
    cells = equals("a", np.stack([1 + NARROW, outside.samples[0]]), 1.0)  # judged as two
    assert [cells.status(k) for k in (allowed // 2, allowed // 2 + 1)] == ["refuted", "inconclusive"]
    assert outside.deciding_level(10) == pytest.approx(0.995) and cells.deciding_level(10) == pytest.approx(0.9975)
    inside = equals("a", 1.02 + 0.03 * WIDE, 1.0)
    assert inside.interval(1 - 0.05 / 1e8)[1] > 1.05 and inside.status(1) == inside.status(10**8) == "supported"


@pytest.mark.parametrize("verb", ["equals", "at_most", "at_least"])
def test_one_bad_cell_spoils_the_others_and_is_named(verb):
    judge, (good, bad) = VERBS[verb]
    for place in range(3):
        values = np.full((3, 1), good) + NARROW
        values[place] += bad - good
        check = judge(labelled(values, strength=[1, 2, 4]))
        status, reason = check.decision()
        assert status == "refuted" and f"at strength = {[1, 2, 4][place]} is outside" in reason
        assert check.worst == place and check.cells[place] == f"strength = {[1, 2, 4][place]}"


def test_cells_have_the_names_of_their_coordinates_or_of_a_dict():
    one = labelled(np.full((2, 2, N), 0.5) + NARROW, d=[100, 1e6], law=["trained", "longer"])
    one["d"].attrs["symbol"] = "d/n"
    check = at_most("b", {"early": one, "late": one[0, 0]}, 1.0)
    assert check.cells == (
        "early, d/n = 100, trained", "early, d/n = 100, longer", "early, d/n = 1e+06, trained",
        "early, d/n = 1e+06, longer", "late",
    )  # fmt: skip
    np.testing.assert_array_equal(check.samples, np.tile(0.5 + NARROW, (5, 1)))
    assert at_most("b", one.transpose("seed", "law", "d"), 1.0).samples.shape == (4, N)


def test_an_exponent_is_fitted_once_for_each_seed_and_each_cell():
    check = scaling(power_law(THIRD, noise=0.0), symbols=("n", "SNR"))
    np.testing.assert_allclose(check.samples, np.full((1, N), THIRD), rtol=1e-10)
    assert check.points["symbols"] == ("n", "SNR") and check.points["local"].shape == (N, 3)
    backwards = scaling(power_law(THIRD, noise=0.0)[::-1])
    np.testing.assert_allclose(backwards.samples, check.samples)
    two = xr.concat([power_law(THIRD), power_law(-0.5)], dim="q").assign_coords(q=[3, 2])
    check = scaling(two)
    assert check.cells == ("q = 3", "q = 2") and check.decision()[1].endswith("outside [-0.3611, -0.3056]")
    assert check.measured == pytest.approx(-0.5, abs=0.01) and check.drift.shape == (2, N)


@pytest.mark.parametrize(
    "exponent, rivals, margin",
    [(-1 / 3, (-1 / 4, -1 / 2), 1 / 36), (0, (), 0.05), (0, (1 / 10,), 1 / 30), (-1 / 4, (-1 / 3, -1 / 2), 0.025),
     (-1 / 2, (), 0.05), (2, (1,), 0.2)],
)  # fmt: skip
def test_the_margin_of_an_exponent(exponent, rivals, margin):
    assert exponent_margin(exponent, rivals) == pytest.approx(margin, rel=1e-12)


def test_rivals_are_refuted_by_a_measurement_near_theory_and_theory_is_not():
    check = scaling(power_law(THIRD))
    assert check.status(100) == "supported" and check.rivals == RIVALS
    assert all(check.refutes(rival, 100) for rival in RIVALS)
    assert not check.refutes(THIRD) and not check.refutes(THIRD + MARGIN)
    noisy = scaling(power_law(THIRD, noise=1.0))
    assert not any(noisy.refutes(rival) for rival in RIVALS) and noisy.status() == "inconclusive"


def test_a_judge_pointed_at_the_wrong_exponent_refutes_it():
    assert scaling(power_law(THIRD), -1 / 2, (-1 / 3, -1)).status(100) == "refuted"
    assert scaling(power_law(-1 / 2)).status(100) == "refuted"


# -- advice


@pytest.mark.parametrize("mean, level", [(0.8, LEVEL), (1.3, 1 - 0.05 / 250)])
def test_as_many_seeds_as_advised_decide(mean, level):
    """Inside by the interval of 95 %, outside by the one that refutes: the advice knows which, and suffices."""
    rng = generator("advice", mean)
    wide_of = functools.partial(at_most, "b", bound=1.0, on_average=True)
    wide = wide_of(mean + 2.0 * scipy.stats.zscore(np.linspace(-1, 1, 40), ddof=1))
    status, reason = wide.decision(250)
    assert status == "inconclusive"
    advised = int(reason.split("about ")[1].split(" seeds")[0])
    assert advised == seeds_needed(abs(mean - 1) / 2.0, level)
    for seeds, decided in ((advised, True), (advised - 1, False)):
        quantiles = scipy.stats.t.ppf((1 + level) / 2, seeds - 1) + scipy.stats.norm.ppf(0.9)
        assert bool(quantiles * 2.0 / math.sqrt(seeds) < abs(mean - 1)) is decided
    found = [wide_of(mean + 2 * rng.normal(size=advised)).status(250) for _ in range(200)]
    assert found.count("supported" if mean < 1 else "refuted") > 200 * 0.82  # nine in ten


def test_a_skewed_sample_needs_more_seeds_than_it_has():
    """Its interval, not Student's, is what must become narrow."""
    rng = generator("skewed advice")
    for _ in range(20):
        row = rng.lognormal(sigma=1.5, size=24)
        status, reason = at_least("b", row - row.mean() + 0.1, 1.5).decision(250)
        if status == "inconclusive" and "about" in reason:
            assert int(reason.split("about ")[1].split(" seeds")[0]) > 24


def test_the_advice_is_about_the_cells_that_decide():
    """The one that needs most where all must come inside; the one that needs least where one outside refutes."""

    def of(mean, spread, seeds=40):
        return mean + spread * scipy.stats.zscore(np.linspace(-1, 1, seeds), ddof=1)

    def advised(*rows):
        status, reason = at_most("b", np.array(rows), 1.0).decision(250)
        assert status == "inconclusive"
        return int(reason.split("about ")[1].split(" seeds")[0])

    strict = 1 - 0.05 / 500
    far, near, beyond = of(-0.5, 10.0), of(0.9, 0.5), of(1.1, 0.5)
    assert advised(near, far) == max(seeds_needed(0.1 / 0.5, LEVEL), seeds_needed(1.5 / 10, LEVEL))
    assert advised(far, beyond) == seeds_needed(0.1 / 0.5, strict)
    assert advised(of(1.1, 5.0), beyond) == seeds_needed(0.1 / 0.5, strict)


def test_the_advice_for_a_skewed_sample_looks_at_the_side_of_the_edge():
    row = 0.93 + 0.25 * scipy.stats.zscore(-np.exp(np.linspace(-2, 2, 24)), ddof=1)  # a long tail away from it
    checks = at_most("b", row, 0.96), at_least("b", row, 0.90)
    short, long = (int(check.decision()[1].split("about ")[1].split(" seeds")[0]) for check in checks)
    student = seeds_needed(0.03 / 0.25, LEVEL)
    assert student <= short < 1.3 * student and 2 * student < long


def test_the_interval_does_not_depend_on_unit_and_zero():
    row = generator("units").lognormal(-0.5, 1.0, size=32)
    low, high = mean_interval(row)
    assert low < student_interval(row)[0] or high > student_interval(row)[1]
    for scale in (1e-120, 1e120):
        np.testing.assert_allclose(mean_interval(scale * row), (scale * low, scale * high), rtol=1e-9)
    np.testing.assert_allclose(np.array(mean_interval(row + 1e10)) - 1e10, (low, high), rtol=1e-4)


def test_the_advice_is_never_below_what_can_support():
    reason = equals("a", [1.0, 1.02, 0.98, 1.0], 1.0, 0.02).decision()[1]
    assert f"about {FEWEST} seeds would decide" in reason


# -- a switch


GRID = np.geomspace(0.5, 2.0, 41)


def switching(at, grid=GRID, law=1.0, sign=1):
    y = labelled(sign * np.log(grid[:, None] / at), snr=grid)
    return switches_at("w", y, "snr", law, level=0.0, rising=sign > 0)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_switch_is_read_off_the_line_between_two_points(sign):
    at = np.array([0.96, 1.0, 1.03, 1.2])
    np.testing.assert_allclose(switching(at, sign=sign).samples, at[None], rtol=1e-12)
    far = switching(np.array([1.0, 5.0, 0.1]), sign=sign).samples[0]
    np.testing.assert_allclose(far, [1.0, 10 * GRID[-1], GRID[0] / 10])


def test_seeds_that_cross_beyond_the_grid_support_nothing_and_all_together_refute():
    at = np.full(N, 1.0)
    assert switching(at + NARROW).status() == "supported"
    at[0] = 5.0
    assert switching(at).status() == "inconclusive"
    assert switching(np.full(N, 5.0)).status(1000) == switching(np.full(N, 0.1)).status(1000) == "refuted"


def test_points_as_fine_as_the_margin_are_needed_around_the_law():
    for grid in (GRID[(GRID < 0.9) | (GRID > 1.1)], np.array([0.5, 2.0]), GRID[:15], GRID[25:], GRID[::-1]):
        with pytest.raises(InputError):
            switching(np.ones(N), grid)


# -- what is refused


REFUSED = {
    "a margin of 0": lambda: equals("a", np.ones(3), 1.0, margin=0.0),
    "a margin of 1": lambda: equals("a", np.ones(3), 1.0, margin=1.0),
    "a value of 0": lambda: equals("a", np.ones(3), 0.0),
    "a bound for each cell": lambda: at_most("b", np.ones((2, 5)), [1.0, 2.0]),
    "a bound that is no number": lambda: at_least("b", np.ones(5), math.nan),
    "no values": lambda: at_most("b", [], 1.0),
    "no cells": lambda: at_most("b", {}, 1.0),
    "cells of other seeds": lambda: at_most("b", {"a": np.ones(3), "b": np.ones(4)}, 1.0),
    "cells of cells": lambda: at_most("b", np.zeros((3, 2, 4)), 1.0),
    "an exponent of a bare array": lambda: scales_as("s", np.ones((3, 4)), "n", 1.0),
    "an exponent along another dim": lambda: scales_as("s", power_law(1.0), "d", 1.0),
    "no exponent": lambda: scales_as("s", power_law(1.0), "n"),
    "an exponent and a bound": lambda: scales_as("s", power_law(1.0), "n", 1.0, at_most=1.0),
    "one size": lambda: scaling(power_law(1.0)[:1]),
    "a size of 0": lambda: scaling(power_law(1.0, sizes=np.array([1.0, 2.0])).assign_coords(n=[0.0, 1.0])),
    "a rival that is the exponent": lambda: exponent_margin(THIRD, (-1 / 2, -1 / 3)),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_judged_is_refused(what):
    with pytest.raises(InputError):
        REFUSED[what]()


def test_a_check_is_frozen_before_it_is_judged():
    with pytest.raises(dataclasses.FrozenInstanceError):
        equals("a", 1 + NARROW, 1.0).upper = 2.0


def along(values, name="n", scale=0.01):
    """Values by size, with a little noise for each seed."""
    sizes = [2.0**k for k in range(1, len(values) + 1)]
    shift = scale * np.random.default_rng(3).normal(size=24)
    return xr.DataArray(
        np.array(values)[:, None] * (1 + shift), dims=(name, "seed"), coords={name: sizes, "seed": range(24)}
    )


def test_a_trend_that_turns_is_followed_where_it_goes():
    status, reason = at_most("x", along([0.9, 0.5, 0.3, 0.5, 0.9]), 1.0).decision()
    assert status == "inconclusive" and "drifting along n" in reason
    assert at_most("x", along([0.9, 0.5, 0.3, 0.3, 0.3]), 1.0).status() == "supported"


def test_a_sign_may_be_lost_along_a_size():
    status, reason = at_least("x", along([0.76, 0.52, 0.04]), 0.0).decision()
    assert status == "inconclusive" and "drifting along n" in reason
    assert at_least("x", along([0.8, 0.4, 0.2, 0.1, 0.05]), 0.0).status() == "supported"  # as 1/n, never 0


@pytest.mark.parametrize("name", ["N", "samples", "neurons", "depth"])
def test_sizes_have_several_names(name):
    assert "drifting" in at_most("x", along([0.2, 0.4, 0.8], name), 1.0).decision()[1]


def test_the_unit_does_not_matter():
    coin = np.where(np.arange(24) < 5, 1.5, 0.5)
    for unit in (1.0, 1e-13, 1e13):
        assert at_most("x", coin * unit, unit).status() == "inconclusive"
        assert at_most("x", 0.5 * coin * unit, unit).status() == "supported"
    small, other = at_most("a", coin * 1e-30, 1e-30), at_most("b", coin * 1e-30, 1e-9)
    assert not small.asks_the_same_as(other)


def test_a_bound_that_most_runs_keep_is_not_refuted_by_a_few_wild_ones():
    values = np.where(np.arange(200) < 24, 50.0, 0.5)
    assert at_most("x", values, 1.0).status(250) == "inconclusive"
    assert at_most("x", np.where(np.arange(200) < 100, 50.0, 0.5), 1.0).status(250) == "refuted"


def test_numbers_of_a_check_are_numbers():
    x = along([1.0, 2.0, 4.0])
    for wrong in (np.nan, np.inf, None, "1"):
        for make in (
            lambda w: equals("x", x, w),
            lambda w: at_most("x", x, w),
            lambda w: identity("x", x, w),
            lambda w: scales_as("x", x, "n", at_most=w) if w is not None else scales_as("x", x, "n"),
        ):
            with pytest.raises(InputError):
                make(wrong)
    with pytest.raises(InputError, match="rounding is at most 0.01"):
        identity("x", x, 0.5)
