"""The judge on synthetic measurements whose truth is known: how often it is right, and how often it is wrong.

Rates are counted over repetitions and compared with what Student's t promises, exactly: a count must lie between
the quantiles of its binomial law that it leaves once in 10,000 times.
"""

import dataclasses
import math
import zlib

import numpy as np
import pytest
import scipy.stats

from featlab.boundaries import exponents
from featlab.claims._judge import (
    LEVEL,
    agrees,
    bounded_by,
    exceeds,
    exponent_margin,
    identity,
    scales_as,
    student_interval,
    switches_at,
)
from featlab.fields import InputError

SEEDS = 12
REPETITIONS = [200, pytest.param(1000, marks=pytest.mark.slow)]
ONCE_IN = 1e-4

SIZES = 50 * 2.0 ** np.arange(4)
THIRD, RIVALS = -1 / 3, (-1 / 4, -1 / 2)
MARGIN = 1 / 36


def generator(*names):
    return np.random.default_rng(zlib.crc32(repr(names).encode()))


def most(repetitions, rate):
    return scipy.stats.binom.ppf(1 - ONCE_IN, repetitions, rate)


def fewest(repetitions, rate):
    return scipy.stats.binom.ppf(ONCE_IN, repetitions, rate)


def chance(distance, level=LEVEL, seeds=SEEDS):
    """That the interval lies wholly on the truth's side of an edge, so many standard errors away."""
    beyond = scipy.stats.t.ppf((1 + level) / 2, seeds - 1)
    return float(scipy.stats.nct.sf(beyond, seeds - 1, distance)) if distance else (1 - level) / 2


# Each judgement on a measurement whose true value lies so many standard errors within the edge of the region
# (beyond it, if negative); at the centre it lies `ROOM` within both edges, if there are two.
ROOM = 7.0


def agreeing(rng, within):
    room = 0.05 * 2.0
    error = room / ROOM
    return agrees("a", 2.0 + room - within * error + error * SEEDS**0.5 * rng.normal(size=SEEDS), 2.0)


def scaling(rng, within, drift=0.0, room=ROOM):
    """y = C x^a exp(noise of each run + noise that all runs of a seed share)."""
    error = MARGIN / room
    noise = error * SEEDS**0.5 * np.linalg.norm(np.log(SIZES) - np.log(SIZES).mean())
    exponent = THIRD + MARGIN - within * error
    shared = rng.normal(size=SEEDS)
    logarithm = np.log(3 * SIZES**exponent)[:, None] + noise * rng.normal(size=(4, SEEDS)) + shared
    return scales_as("s", SIZES, np.exp(logarithm) * (1 + drift / SIZES)[:, None], THIRD, RIVALS)


def switching(rng, within):
    law, margin = 0.7, 0.05
    error = law * margin / ROOM
    at = law * (1 + margin) - within * error + error * SEEDS**0.5 * rng.normal(size=SEEDS)
    grid = np.geomspace(0.4, 1.2, 81)
    return switches_at("w", grid, np.tanh(np.log(grid[:, None] / at) / 0.5), law, level=0.0)


def bounded(rng, within):
    return bounded_by("b", 3.0 - within * 0.1 + 0.1 * SEEDS**0.5 * rng.normal(size=SEEDS), 3.0)


def exceeding(rng, within):
    """The two differ far more between seeds than from each other."""
    b = 5 * rng.normal(size=SEEDS)
    return exceeds("e", b + 0.2 + within * 0.1 + 0.1 * SEEDS**0.5 * rng.normal(size=SEEDS), b, by=0.2)


JUDGEMENTS = [agreeing, scaling, switching, bounded, exceeding]
TWO_SIDED = (agreeing, scaling, switching)


def counts(judgement, within, repetitions, judged=1):
    rng = generator(judgement.__name__, within, repetitions)
    statuses = [judgement(rng, within).status(judged) for _ in range(repetitions)]
    return {status: statuses.count(status) for status in ("supported", "refuted", "inconclusive")}


@pytest.mark.parametrize("seeds", [4, 8, 12])
def test_the_interval_over_few_seeds_covers_as_often_as_it_says(seeds):
    """1,000 repetitions of normal values; the percentile bootstrap on the same values falls short."""
    repetitions, rng = 1000, generator("coverage", seeds)
    values = 3 + 2 * rng.normal(size=(repetitions, seeds))
    for level in (0.8, LEVEL, 1 - 0.05 / 20):
        ends = np.array([student_interval(row, level) for row in values])
        covered = int(((ends[:, 0] <= 3) & (3 <= ends[:, 1])).sum())
        assert fewest(repetitions, level) <= covered <= most(repetitions, level), (level, covered)
    picks = rng.integers(seeds, size=(repetitions, 400, seeds))
    means = np.take_along_axis(values[:, None], picks, axis=2).mean(axis=2)
    low, high = np.quantile(means, [0.025, 0.975], axis=1)
    assert ((low <= 3) & (3 <= high)).sum() < fewest(repetitions, LEVEL)


def test_the_interval_is_students_and_leaves_out_what_is_not_finite():
    values = np.array([1.0, 2.0, 4.0, 8.0])
    expected = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.9)
    np.testing.assert_allclose(student_interval(values, 0.9), tuple(expected))
    with_gaps = np.insert(values, [0, 2], [np.nan, np.inf])
    np.testing.assert_allclose(student_interval(with_gaps, 0.9), tuple(expected))
    assert student_interval(np.full(5, 0.1)) == (0.1, 0.1)
    assert all(math.isnan(end) for end in student_interval(np.array([np.nan])))


@pytest.mark.parametrize("repetitions", REPETITIONS)
@pytest.mark.parametrize("judgement", JUDGEMENTS, ids=lambda one: one.__name__)
def test_a_true_law_is_supported_and_never_refuted(judgement, repetitions):
    sides = 2 if judgement in TWO_SIDED else 1
    found = counts(judgement, ROOM, repetitions)
    false_alarm = 0.05 if judgement is scaling else 0.0  # of the drift check
    rate = 1 - sides * (1 - chance(ROOM)) - false_alarm
    assert found["supported"] >= fewest(repetitions, rate) and rate > 0.94
    assert found["refuted"] == 0 and chance(-ROOM) < 1e-12


@pytest.mark.parametrize("repetitions", REPETITIONS)
@pytest.mark.parametrize("judgement", JUDGEMENTS, ids=lambda one: one.__name__)
def test_at_the_edge_of_the_region_each_error_is_made_as_often_as_the_level_allows(judgement, repetitions):
    """1 in 40 on either side: a judge that is more careful than that wastes runs."""
    found = counts(judgement, 0.0, repetitions)
    one_in_40 = chance(0.0)
    least = one_in_40 * (1 - 0.05 * (judgement is scaling))
    for status in ("supported", "refuted"):
        assert fewest(repetitions, least) <= found[status] <= most(repetitions, one_in_40), found


@pytest.mark.parametrize("repetitions", REPETITIONS)
@pytest.mark.parametrize("judgement", JUDGEMENTS, ids=lambda one: one.__name__)
def test_refutation_is_as_rare_as_the_number_of_checks_judged_together_asks(judgement, repetitions):
    judged = 10
    found = counts(judgement, 0.0, repetitions, judged)
    assert found["refuted"] <= most(repetitions, 0.05 / judged / 2)
    assert found["supported"] <= most(repetitions, chance(0.0))


@pytest.mark.parametrize("repetitions", REPETITIONS)
@pytest.mark.parametrize("judgement", JUDGEMENTS, ids=lambda one: one.__name__)
def test_a_false_law_is_refuted_and_never_supported(judgement, repetitions):
    """The truth is as far beyond the edge as the true law is within; twenty checks are judged together."""
    judged = 20
    found = counts(judgement, -ROOM, repetitions, judged)
    rate = chance(ROOM, 1 - 0.05 / judged) - 0.05 * (judgement is scaling)
    assert found["refuted"] >= fewest(repetitions, rate) and rate > 0.85
    assert found["supported"] == 0


@pytest.mark.parametrize("repetitions", REPETITIONS)
def test_many_cells_at_the_edge_refute_no_more_often_than_one(repetitions):
    rng, cells = generator("cells", repetitions), 6
    statuses = [
        bounded_by("b", 1 + 0.1 * rng.normal(size=(cells, SEEDS)), 1.0).status() for _ in range(repetitions)
    ]
    some = 1 - (1 - chance(0.0, 1 - 0.05 / cells)) ** cells
    assert fewest(repetitions, some) <= statuses.count("refuted") <= most(repetitions, some) and some < 0.025
    assert statuses.count("supported") == 0  # each of six would have to be


def test_identities_hold_up_to_rounding():
    rounding = 1e-15 * generator("identity").normal(size=(3, 5))
    assert identity("i", rounding).status() == "supported"
    assert identity("i", -1e-6 + rounding).status(1000) == "refuted"
    assert identity("i", [0.0, -2e-12, 0.0]).status() == "refuted"  # one place is enough
    assert identity("i", 2e-12, tolerance=1e-11).status() == "supported"  # and one number
    status, reason = identity("i", [0.0, np.nan]).decision()
    assert status == "inconclusive" and "0%" in reason


# -- drift


def drift_error(room):
    """The standard error of the drift (two slopes between neighbours) where the whole slope's is MARGIN / room."""
    return 2 * np.linalg.norm(np.log(SIZES) - np.log(SIZES).mean()) / math.log(2) * MARGIN / room


def of_correction(correction):
    return exponents(SIZES, (1 + correction / SIZES)[:, None])


@pytest.mark.parametrize("repetitions", REPETITIONS)
@pytest.mark.parametrize("otherwise, shift", [("supported", 0), ("refuted", 3), ("refuted", -3)])
@pytest.mark.parametrize("correction", [-6.0, 12.0])
def test_a_drift_with_size_decides_nothing(correction, otherwise, shift, repetitions):
    """y = C x^a (1 + c/x): the exponent at these sizes is not yet the theorem's, whichever side it falls on."""
    room = 40.0  # the noise is small: a drift of two margins is seen every time
    drift, bias = of_correction(correction).drift[0], of_correction(correction).overall[0]
    assert abs(drift) > 2 * MARGIN and chance((abs(drift) - MARGIN) / drift_error(room)) > 1 - 1e-6
    rng = generator("drift", correction, shift, repetitions)
    within = (1 - shift + bias / MARGIN) * room  # the slope over all sizes is theory's, or misses it by 3 margins
    checks = [scaling(rng, within, correction, room) for _ in range(repetitions)]
    assert {check.status() for check in checks} == {"inconclusive"}
    assert all(check.decision()[1].startswith("drifting") for check in checks)
    assert {dataclasses.replace(check, drift=None).status() for check in checks} == {otherwise}


@pytest.mark.parametrize("repetitions", REPETITIONS)
@pytest.mark.parametrize("room", [1.0, ROOM])
def test_noise_alone_drifts_no_more_often_than_the_level_allows(room, repetitions):
    rng = generator("still", room, repetitions)
    alarms = sum(scaling(rng, room, room=room).drifts for _ in range(repetitions))
    assert alarms <= most(repetitions, 1 - LEVEL)


def test_without_noise_to_speak_of_nothing_drifts():
    rng = generator("quiet")
    assert scipy.stats.norm.sf(MARGIN / drift_error(100.0)) < 1e-12
    assert not any(scaling(rng, 100.0, room=100.0).drifts for _ in range(200))


@pytest.mark.parametrize("repetitions", REPETITIONS)
def test_a_drift_below_the_margin_is_let_pass(repetitions):
    correction, room = 1.5, 60.0
    drift, error = of_correction(correction).drift[0], drift_error(room)
    assert 0.4 * MARGIN < drift < 0.6 * MARGIN and scipy.stats.norm.sf((MARGIN - drift) / error) < 1e-6
    rng = generator("small drift", repetitions)
    checks = [scaling(rng, room, correction, room) for _ in range(repetitions)]
    assert not any(check.drifts for check in checks)
    # It is significant, so that the margin alone decides.
    significant = sum(student_interval(check.drift)[0] > 0 for check in checks)
    assert significant >= fewest(repetitions, chance(drift / error)) > 0.9 * repetitions
    assert all(check.status() == "supported" for check in checks)


def test_the_drift_is_that_of_the_halves_and_two_sizes_have_none():
    y = SIZES[:, None] ** np.array([THIRD, -0.4, -0.2])
    y[3] *= 1.5
    check = scales_as("s", SIZES, y, THIRD, RIVALS)
    np.testing.assert_allclose(check.drift, math.log(1.5, 2))
    assert check.drifts and "lower half of the sizes differ by +0.585" in check.decision()[1]
    assert scales_as("s", SIZES[:2], y[:2], THIRD).drift is None


# -- the rule, case by case


NARROW = 0.001 * np.linspace(-1, 1, SEEDS)
WIDE = 1.0 * np.linspace(-1, 1, SEEDS)


def power_law(exponent, noise=0.003, seeds=SEEDS, name="power law"):
    rng = generator(name)
    return SIZES[:, None] ** exponent * np.exp(noise * rng.normal(size=(4, seeds)) + rng.normal(size=seeds))


GOOD_AND_BAD = {
    "agrees": (lambda y, **facts: agrees("a", 1 + y, 1.0, **facts), (0.0, 0.2)),
    "bounded_by": (lambda y, **facts: bounded_by("b", y, 1.0, **facts), (0.5, 1.5)),
    "exceeds": (lambda y, **facts: exceeds("e", y, 0.0, **facts), (0.5, -0.5)),
    "identity": (lambda y, **facts: identity("i", y, 0.1, **facts), (0.0, 0.2)),
    "scales_as": (lambda y, **facts: scales_as("s", SIZES, SIZES[:, None] ** y, 0.5, **facts), (0.5, 0.7)),
    "switches_at": (
        lambda y, **facts: switches_at("w", SIZES, np.log(SIZES)[:, None] - y, 120.0, level=0.0, **facts),
        (math.log(120), math.log(200)),
    ),
}


@pytest.mark.parametrize("kind", GOOD_AND_BAD)
def test_runs_that_did_not_train_decide_nothing(kind):
    judge, (good, bad) = GOOD_AND_BAD[kind]
    assert judge(good + NARROW).status() == "supported" and judge(bad + NARROW).status() == "refuted"
    for value in (good, bad):
        assert judge(value + NARROW, trained=0.9).status() == judge(value + NARROW).status()
        status, reason = judge(value + NARROW, trained=0.89).decision()
        assert status == "inconclusive" and reason == "only 89% of the runs of a cell trained"


@pytest.mark.parametrize("kind", [kind for kind in GOOD_AND_BAD if kind != "identity"])
def test_a_value_missing_for_more_than_one_seed_in_ten_decides_nothing(kind):
    judge, (good, bad) = GOOD_AND_BAD[kind]
    seeds = 20
    for value, status in ((good, "supported"), (bad, "refuted")):
        values = value + 0.001 * np.linspace(-1, 1, seeds)
        values[:2] = np.nan
        assert judge(values).status() == status
        values[7] = np.nan
        found, reason = judge(values).decision()
        assert found == "inconclusive" and reason == "a value was found for only 85% of the seeds of a cell"


@pytest.mark.parametrize("kind", [kind for kind in GOOD_AND_BAD if kind != "identity"])
def test_fewer_than_three_seeds_decide_nothing(kind):
    judge, (good, bad) = GOOD_AND_BAD[kind]
    for value, status in ((good, "supported"), (bad, "refuted")):
        assert judge(np.full(3, value)).status() == status
        for seeds in (1, 2):
            found, reason = judge(np.full(seeds, value)).decision()
            assert found == "inconclusive" and reason.startswith("three seeds or more")


def test_a_missing_cell_is_missed_even_where_the_others_are_complete():
    y = np.full((3, SEEDS), 0.5)
    y[1, :3] = np.nan
    assert bounded_by("b", y, 1.0).status() == "inconclusive"


def test_a_wide_interval_around_theory_is_inconclusive_and_a_narrow_one_beside_it_supported():
    wide = agrees("a", 1 + WIDE, 1.0)
    assert wide.measured == pytest.approx(1.0)
    status, reason = wide.decision()
    assert status == "inconclusive" and "too wide" in reason and "seeds would decide" in reason
    low, high = (narrow := agrees("a", 1.04 + NARROW, 1.0)).interval()
    assert 1.0 < low < high < 1.05 and narrow.status() == "supported"  # theory is outside the interval
    assert agrees("a", 1.06 + NARROW, 1.0).status() == "refuted"
    assert agrees("a", 0.94 + NARROW, 1.0).status() == "refuted"
    assert agrees("a", 1.05 + NARROW, 1.0).status() == "inconclusive"


def test_margins_of_values_are_relative_also_below_zero():
    check = agrees("a", -2.08 + NARROW, -2.0)
    assert (check.lower, check.upper) == pytest.approx((-2.1, -1.9)) and check.status() == "supported"
    assert agrees("a", -2.08 + NARROW, -2.0, margin=0.03).status() == "refuted"


def test_more_checks_widen_the_interval_of_refutation_only():
    outside = agrees("a", 1.1 + 0.05 * WIDE, 1.0)
    _, p = scipy.stats.ttest_1samp(outside.samples[0], 1.05)
    allowed = math.floor(0.05 / p)
    assert 1 < allowed < 1000
    assert [outside.status(k) for k in (1, allowed, allowed + 1)] == ["refuted", "refuted", "inconclusive"]
    cells = agrees("a", np.stack([1 + NARROW, outside.samples[0]]), 1.0)  # judged as two
    assert [cells.status(k) for k in (allowed // 2, allowed // 2 + 1)] == ["refuted", "inconclusive"]
    inside = agrees("a", 1.02 + 0.03 * WIDE, 1.0)
    strict = inside.interval(1 - 0.05 / 10_000)
    assert strict[1] > 1.05 and inside.status(1) == inside.status(10_000) == "supported"


@pytest.mark.parametrize("kind", ["agrees", "bounded_by", "exceeds"])
def test_one_bad_cell_spoils_the_others(kind):
    judge, (good, bad) = GOOD_AND_BAD[kind]
    centre = np.array([[good], [good], [good]])
    assert judge(centre + NARROW).status() == "supported"
    for place in range(3):
        cells = ("n = 10", "n = 20", "n = 40")
        one_bad, one_wide = centre + NARROW, centre + NARROW
        one_bad[place] += bad - good
        status, reason = judge(one_bad, cells=cells).decision()
        assert status == "refuted" and f"at {cells[place]} is outside" in reason
        one_wide[place] += 3 * WIDE
        status, reason = judge(one_wide, cells=cells).decision()
        assert status == "inconclusive" and f"at {cells[place]} is too wide" in reason
        for spoilt in (one_bad, one_wide):  # names are no part of the decision
            assert judge(spoilt).status() == judge(spoilt, cells=cells).status()
            assert judge(spoilt, cells=cells).worst == place
            assert judge(spoilt, cells=cells).measured == spoilt[place].mean() + (kind == "agrees")


def test_the_reason_for_a_refutation_is_a_cell_that_lies_outside():
    wide, narrow = 1.9 + 5 * WIDE, 1.01 + NARROW
    status, reason = bounded_by("b", np.stack([wide, narrow]), 1.0, cells=("wide", "narrow")).decision()
    assert status == "refuted" and reason.startswith("1.01 [") and "at narrow is outside at most 1" in reason


def test_a_bound_for_each_cell_is_its_own():
    y = np.array([[1.0], [10.0]]) + NARROW
    assert bounded_by("b", y, [2.0, 20.0]).status() == "supported"
    assert bounded_by("b", y, [2.0, 9.0]).status() == "refuted"
    assert bounded_by("b", y, [20.0, 2.0]).status() == "refuted"
    assert bounded_by("b", y, 20.0).status() == "supported" and bounded_by("b", y, 5.0).status() == "refuted"
    check = bounded_by("b", y, [2.0, 20.0])
    assert check.measured == pytest.approx(0.5)


def test_what_exceeds_is_compared_seed_by_seed():
    b = 10 * WIDE
    check = exceeds("e", b + 0.3 + NARROW, b, by=0.2)
    assert check.status() == "supported" and check.measured == pytest.approx(0.3)
    shuffled = generator("shuffled").permutation(b)
    assert exceeds("e", shuffled + 0.3 + NARROW, b, by=0.2).status() == "inconclusive"
    assert exceeds("e", b + 0.3 + NARROW, b, by=0.4).status() == "refuted"
    assert exceeds("e", np.stack([b + 0.3, b + 0.1]) + NARROW, b, by=0.2).status() == "refuted"


# -- exponents and their rivals


@pytest.mark.parametrize(
    "exponent, rivals, margin",
    [
        (-1 / 3, (-1 / 4, -1 / 2), 1 / 36),
        (0, (), 0.05),
        (0, (1 / 10,), 1 / 30),
        (-1 / 4, (-1 / 3, -1 / 2), 0.025),
        (-1 / 2, (), 0.05),
        (2, (1,), 0.2),
    ],
)
def test_the_margin_of_an_exponent(exponent, rivals, margin):
    assert exponent_margin(exponent, rivals) == pytest.approx(margin, rel=1e-12)


def test_rivals_are_refuted_by_a_measurement_near_theory_and_theory_is_not():
    check = scales_as("s", SIZES, power_law(THIRD), THIRD, RIVALS)
    assert check.status(100) == "supported" and check.rivals == RIVALS
    assert all(check.refutes(rival, 100) for rival in RIVALS)
    assert not check.refutes(THIRD) and not check.refutes(THIRD + MARGIN)


def test_a_judge_pointed_at_the_wrong_exponent_refutes_it():
    y = power_law(THIRD)
    assert scales_as("s", SIZES, y, -1 / 2, (-1 / 3, -1)).status(100) == "refuted"
    assert scales_as("s", SIZES, y, -1 / 4, (-1 / 3, -1 / 2)).status(100) == "refuted"
    assert scales_as("s", SIZES, power_law(-1 / 2), THIRD, RIVALS).status(100) == "refuted"


def test_a_noisy_measurement_refutes_no_rival():
    noisy = scales_as("s", SIZES, power_law(THIRD, noise=1.0), THIRD, RIVALS)
    assert not any(noisy.refutes(rival) for rival in RIVALS) and noisy.status() == "inconclusive"


def test_a_rival_is_refuted_only_by_what_could_decide():
    far = 1.0
    assert scales_as("s", SIZES, power_law(THIRD), THIRD).refutes(far)
    assert not scales_as("s", SIZES, power_law(THIRD), THIRD, trained=0.5).refutes(far)
    assert not scales_as("s", SIZES, power_law(THIRD, seeds=1), THIRD).refutes(far)
    check = agrees("a", 1.1 + 0.05 * WIDE, 2.0, margin=0.025)
    for judged in (1, 10, 1000):  # the same region, so the same answer
        there = agrees("a", check.samples, 1.0, margin=0.05).status(judged) == "refuted"
        assert check.refutes(1.0, judged) is there


def test_the_fit_is_made_once_for_each_seed():
    """Noise that all sizes of a seed share moves no exponent, however large."""
    y = power_law(THIRD, noise=0.0)
    check = scales_as("s", SIZES, y, THIRD, RIVALS, symbols=("n", "SNR"))
    np.testing.assert_allclose(check.samples, np.full((1, SEEDS), THIRD), rtol=1e-10)
    assert check.points["symbols"] == ("n", "SNR") and check.points["local"].shape == (SEEDS, 3)
    backwards = scales_as("s", SIZES[::-1], y[::-1], THIRD, RIVALS)
    np.testing.assert_allclose(backwards.samples, check.samples)


# -- a switch


GRID = np.geomspace(0.5, 2.0, 41)


@pytest.mark.parametrize("sign", [1, -1], ids=["rising", "falling"])
def test_a_switch_is_read_off_the_line_between_two_points(sign):
    at = np.array([0.96, 1.0, 1.03, 1.2])
    y = 0.3 + sign * np.log(GRID[:, None] / at)
    np.testing.assert_allclose(switches_at("w", GRID, y, 1.0, level=0.3).samples, at[None], rtol=1e-12)


@pytest.mark.parametrize("sign", [1, -1], ids=["rising", "falling"])
def test_a_seed_that_never_crosses_counts_at_the_end_it_heads_for(sign):
    at = np.array([1.0, 5.0, 0.1])
    y = 0.3 + sign * np.log(GRID[:, None] / at)
    found = switches_at("w", GRID, y, 1.0, level=0.3).samples[0]
    np.testing.assert_allclose(found, [1.0, GRID[-1], GRID[0]])
    nowhere = np.full(SEEDS, 5.0)
    check = switches_at("w", GRID, sign * np.log(GRID[:, None] / nowhere), 1.0, level=0.0)
    assert check.status() == "refuted" and check.measured == GRID[-1]


def test_a_seed_with_a_gap_in_its_curve_has_no_switch():
    y = np.log(GRID[:, None] / np.ones(3))
    y[5, 1] = np.nan
    np.testing.assert_array_equal(
        np.isnan(switches_at("w", GRID, y, 1.0, level=0.0).samples), [[False, True, False]]
    )


# -- what is refused


CURVES = np.log(GRID[:, None] / np.ones(3))
REFUSED = {
    "a margin of 0": lambda: agrees("a", np.ones(3), 1.0, margin=0.0),
    "a negative margin": lambda: agrees("a", np.ones(3), 1.0, margin=-0.1),
    "a margin of 1": lambda: agrees("a", np.ones(3), 1.0, margin=1.0),
    "a margin that is no number": lambda: agrees("a", np.ones(3), 1.0, margin=math.nan),
    "a switch with a margin of 0": lambda: switches_at("w", GRID, CURVES, 1.0, level=0.0, margin=0),
    "a prediction of 0": lambda: agrees("a", np.ones(3), 0.0),
    "a falling grid": lambda: switches_at("w", GRID[::-1], CURVES, 1.0, level=0.0),
    "an unsorted grid": lambda: switches_at("w", GRID[[0, 2, 1, 40]], CURVES[:4], 1.0, level=0.0),
    "a grid with a point twice": lambda: switches_at("w", GRID[[0, 2, 2, 40]], CURVES[:4], 1.0, level=0.0),
    "a grid that ends before the law": lambda: switches_at("w", GRID[:15], CURVES[:15], 1.0, level=0.0),
    "a grid that begins beyond the law": lambda: switches_at("w", GRID[25:], CURVES[25:], 1.0, level=0.0),
    "a grid within the margin": lambda: switches_at("w", [0.99, 1.01], CURVES[:2], 1.0, level=0.0),
    "a grid of one point": lambda: switches_at("w", [1.0], CURVES[:1], 1.0, level=0.0),
    "a grid that begins at 0": lambda: switches_at("w", [0.0, 1.0, 2.0], CURVES[:3], 1.0, level=0.0),
    "an empty grid": lambda: switches_at("w", [], np.zeros((0, 3)), 1.0, level=0.0),
    "a switch without seeds": lambda: switches_at("w", GRID, np.zeros((41, 0)), 1.0, level=0.0),
    "curves the wrong way round": lambda: switches_at("w", GRID, CURVES.T, 1.0, level=0.0),
    "one curve without a seed": lambda: switches_at("w", GRID, CURVES[:, 0], 1.0, level=0.0),
    "no values to agree": lambda: agrees("a", [], 1.0),
    "no values to bound": lambda: bounded_by("b", np.zeros((3, 0)), 1.0),
    "no values to exceed": lambda: exceeds("e", [], []),
    "no residuals": lambda: identity("i", []),
    "cells of cells": lambda: bounded_by("b", np.zeros((3, 2, 4)), 1.0),
    "no sizes": lambda: scales_as("s", [], np.zeros((0, 3)), 1.0),
    "one size": lambda: scales_as("s", [1.0], np.ones((1, 3)), 1.0),
    "one size twice": lambda: scales_as("s", [1.0, 1.0], np.ones((2, 3)), 1.0),
    "a size of 0": lambda: scales_as("s", [0.0, 1.0], np.ones((2, 3)), 1.0),
    "sizes without seeds": lambda: scales_as("s", SIZES, np.ones((4, 0)), 1.0),
    "values without a seed": lambda: scales_as("s", SIZES, SIZES, 1.0),
    "values the wrong way round": lambda: scales_as("s", SIZES, np.ones((3, 4)), 1.0),
    "fewer bounds than cells": lambda: bounded_by("b", np.ones((3, 5)), [1.0, 2.0]),
    "a bound for each seed": lambda: bounded_by("b", np.ones(5), np.ones(5)),
    "bounds below 0": lambda: bounded_by("b", np.ones((2, 5)), [1.0, -1.0]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_judged_is_refused(what):
    with pytest.raises(InputError):
        REFUSED[what]()


def test_a_check_is_frozen_before_it_is_judged():
    check = agrees("a", 1 + NARROW, 1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        check.upper = 2.0
