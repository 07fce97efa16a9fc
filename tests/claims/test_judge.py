"""The judge on synthetic measurements whose truth is known: how often it is right, and how often it is wrong.

Rates are counted over repetitions and compared with what Student's t promises, exactly: a count must lie between
the quantiles of its binomial law that it leaves once in 10,000 times.
"""

import dataclasses
import functools
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
MORE_REPETITIONS = [200, pytest.param(5000, marks=pytest.mark.slow)]  # for rates below 1 in 100
ONCE_IN = 1e-4

SIZES = 50 * 2.0 ** np.arange(4)
THIRD, RIVALS = -1 / 3, (-1 / 4, -1 / 2)
MARGIN = 1 / 36
RESOLVED = 3 * MARGIN  # how large a drift must be excluded before an exponent is supported


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


@functools.cache
def chi_quantiles(seeds):
    parts = 100_000
    return np.sqrt(scipy.stats.chi2.ppf((np.arange(parts) + 0.5) / parts, seeds - 1) / (seeds - 1))


def share(allowed, distance=0.0, seeds=SEEDS):
    """How often the mean over seeds lies within `allowed` of 0, a function of its interval's half width.

    All in standard errors, and the truth is so many of them from 0. Mean and spread are independent, so that it
    is the normal law's answer for each spread, averaged over the spreads.
    """
    half = scipy.stats.t.ppf((1 + LEVEL) / 2, seeds - 1) * chi_quantiles(seeds)
    room = np.maximum(allowed(half), 0)
    return float(np.mean(scipy.stats.norm.cdf(room - distance) - scipy.stats.norm.cdf(-room - distance)))


def drift_error(room):
    """The standard error of the drift (two slopes between neighbours) where the whole slope's is MARGIN / room."""
    return 2 * np.linalg.norm(np.log(SIZES) - np.log(SIZES).mean()) / math.log(2) * MARGIN / room


def silent(room, drift=0.0, seeds=SEEDS):
    """How often no drift is reported: it is below the margin, or within its interval of 0."""
    error = drift_error(room)
    return share(lambda half: np.maximum(MARGIN / error, half), drift / error, seeds)


def cleared(room, drift=0.0, seeds=SEEDS):
    """How often moreover none can hide: the interval of the drift reaches no further than three margins."""
    error = drift_error(room)
    return share(
        lambda half: np.minimum(RESOLVED / error - half, np.maximum(MARGIN / error, half)), drift / error, seeds
    )


# Each judgement on a measurement whose true value lies so many standard errors within the edge of the region
# (beyond it, if negative); at the centre it lies `ROOM` within both edges, if there are two.
ROOM = 7.0


def agreeing(rng, within):
    room = 0.05 * 2.0
    error = room / ROOM
    return agrees("a", 2.0 + room - within * error + error * SEEDS**0.5 * rng.normal(size=SEEDS), 2.0)


def scaling(rng, within, drift=0.0, room=ROOM):
    """y = C x^a exp(noise of each run + noise that all runs of a seed share).

    At four sizes, each twice the last, slope and drift have weights -3, -1, 1, 3 and 1, -1, -1, 1: these are
    orthogonal, the two are independent, and their rates multiply.
    """
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
    rate = (1 - sides * (1 - chance(ROOM))) * (cleared(ROOM) if judgement is scaling else 1)
    assert fewest(repetitions, rate) <= found["supported"] <= most(repetitions, rate) and rate > 0.94
    assert found["refuted"] == 0 and chance(-ROOM) < 1e-12


@pytest.mark.parametrize("repetitions", REPETITIONS)
@pytest.mark.parametrize("judgement", JUDGEMENTS, ids=lambda one: one.__name__)
def test_at_the_edge_of_the_region_each_error_is_made_as_often_as_the_level_allows(judgement, repetitions):
    """1 in 40 on either side: a judge that is more careful than that wastes runs."""
    found = counts(judgement, 0.0, repetitions)
    for status, drift_allows in (("supported", cleared(ROOM)), ("refuted", silent(ROOM))):
        rate = chance(0.0) * (drift_allows if judgement is scaling else 1)
        assert fewest(repetitions, rate) <= found[status] <= most(repetitions, rate), found


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
    rate = chance(ROOM, 1 - 0.05 / judged) * (silent(ROOM) if judgement is scaling else 1)
    assert fewest(repetitions, rate) <= found["refuted"] <= most(repetitions, rate) and rate > 0.85
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
    still = [dataclasses.replace(check, drift=check.drift - check.drift.mean()) for check in checks]
    assert {check.status() for check in still} == {otherwise}


@pytest.mark.parametrize("repetitions", REPETITIONS)
@pytest.mark.parametrize("room", [1.0, ROOM])
def test_noise_alone_drifts_no_more_often_than_the_level_allows(room, repetitions):
    rng = generator("still", room, repetitions)
    alarms = sum(scaling(rng, room, room=room).drifts for _ in range(repetitions))
    rate = 1 - silent(room)
    assert fewest(repetitions, rate) <= alarms <= most(repetitions, rate) and rate <= 1 - LEVEL + 1e-6


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


# x^(-1/4) (1 + 11.3 / x) has slope -1/3 over these sizes, its halves differing by 3.61 margins. With a standard
# error of margin / room: how often it is supported, and how often it would be if only a drift that shows counted.
LOOKS_RIGHT = 11.3
FALSE_LAW = [(8.0, 1.6e-5, 5.3e-5), (6.0, 9.1e-4, 0.0075), (4.0, 5.5e-3, 0.148), (3.0, 3.6e-3, 0.227)]
TRUE_LAW = [(8.0, 0.960, 0.962), (6.0, 0.882, 0.951), (4.0, 0.357, 0.860), (3.0, 0.052, 0.537)]


def inside(room, miss=0.0):
    """How often the interval of the slope lies inside the region."""
    return share(lambda half: room - half, miss * room / MARGIN)


@pytest.mark.parametrize("repetitions", MORE_REPETITIONS)
@pytest.mark.parametrize("room, now, before", FALSE_LAW)
def test_a_drift_that_noise_hides_supports_no_false_law(room, now, before, repetitions):
    """At most 1 time in 180; with the most noise 1 in 280, where heeding only a drift that shows gives 1 in 4."""
    fitted = of_correction(LOOKS_RIGHT)
    drift, miss = fitted.drift[0], fitted.overall[0] - 1 / 4 - THIRD
    assert abs(miss) < 0.02 * MARGIN and drift == pytest.approx(3.61 * MARGIN, rel=0.002)
    rate, blind = inside(room, miss) * cleared(room, drift), inside(room, miss) * silent(room, drift)
    assert (rate, blind) == pytest.approx((now, before), rel=0.05)
    rng = generator("false law", room, repetitions)
    within = -2 * room  # the exponent is -1/4, three margins from -1/3
    checks = [scaling(rng, within, LOOKS_RIGHT, room) for _ in range(repetitions)]
    statuses = [check.status() for check in checks]
    assert fewest(repetitions, rate) <= statuses.count("supported") <= most(repetitions, rate)
    assert statuses.count("refuted") == 0
    slopes = [check.interval() for check in checks]
    unseen = sum(
        not check.drifts and check.lower <= low and high <= check.upper
        for check, (low, high) in zip(checks, slopes)
    )
    assert fewest(repetitions, blind) <= unseen <= most(repetitions, blind)


@pytest.mark.parametrize("repetitions", REPETITIONS)
@pytest.mark.parametrize("room, now, before", TRUE_LAW)
def test_a_true_law_is_supported_as_often_as_its_noise_lets_a_drift_be_excluded(room, now, before, repetitions):
    """With a standard error of a sixth of the margin 88 times in 100: 5 seem to drift, in 7 a drift could hide."""
    rate = inside(room) * cleared(room)
    assert (rate, inside(room) * silent(room)) == pytest.approx((now, before), abs=6e-4)
    rng = generator("true law", room, repetitions)
    decisions = [scaling(rng, room, room=room).decision() for _ in range(repetitions)]
    statuses = [status for status, _ in decisions]
    assert fewest(repetitions, rate) <= statuses.count("supported") <= most(repetitions, rate)
    assert statuses.count("refuted") == 0
    hidden = sum("could hide" in reason for _, reason in decisions)
    share_hidden = inside(room) * (silent(room) - cleared(room))
    assert fewest(repetitions, share_hidden) <= hidden <= most(repetitions, share_hidden)


@pytest.mark.parametrize("seeds", [4, 8, 12, 24])
def test_no_noise_hides_a_drift_of_three_margins_more_often_than_1_in_40(seeds):
    rates = [cleared(room, RESOLVED, seeds) for room in np.geomspace(0.5, 50, 40)]
    assert max(rates) < chance(0.0)
    beyond = [cleared(room, of_correction(LOOKS_RIGHT).drift[0], seeds) for room in np.geomspace(0.5, 50, 40)]
    assert max(beyond) < 0.008


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("mean", [0.0, 0.9])
def test_an_interval_of_the_drift_may_reach_three_margins_and_no_further(mean, sign):
    check = scales_as("s", SIZES, power_law(THIRD, noise=0.0), THIRD, RIVALS)
    assert check.status() == "supported" and check.unseen_drift == ""
    unit = WIDE / student_interval(WIDE)[1]  # half width 1
    for reach, status in ((2.999, "supported"), (3.001, "inconclusive")):
        drift = sign * MARGIN * (mean + (reach - mean) * unit)
        there = dataclasses.replace(check, drift=drift)
        np.testing.assert_allclose(np.abs(student_interval(drift)).max(), reach * MARGIN)
        assert not there.drifts and there.status(1000) == there.status() == status
        gap = dataclasses.replace(check, drift=np.append(drift, np.nan))
        assert gap.status() == status
    assert there.decision()[1].startswith(f"a drift of {3.001 * MARGIN:.3g} could hide")


def test_a_drift_that_could_hide_stands_against_support_only():
    """Noise that cannot exclude a drift still refutes what is far away."""
    hidden = MARGIN * 40 * WIDE
    right, wrong = (
        dataclasses.replace(scales_as("s", SIZES, power_law(exponent), THIRD, RIVALS), drift=hidden)
        for exponent in (THIRD, -1 / 2)
    )
    assert right.status() == "inconclusive" and wrong.status(100) == "refuted"
    assert all(right.refutes(rival, 100) for rival in RIVALS) and not right.refutes(THIRD)
    other = agrees("a", 1 + NARROW, 1.0, drift=hidden)
    assert other.unseen_drift == "" and other.status() == "supported"


@pytest.mark.parametrize("noise", [0.0, 0.003])
def test_two_sizes_support_no_exponent_and_refute_one(noise):
    for repetition in range(50):
        y = power_law(THIRD, noise, name=repetition)
        for pair in ([0, 1], [0, 3], [2, 3]):
            check = scales_as("s", SIZES[pair], y[pair], THIRD, RIVALS)
            low, high = check.interval()
            assert check.lower < low <= high < check.upper  # only the missing drift stands against it
            status, reason = check.decision()
            assert status == "inconclusive" and reason.startswith("an exponent over two sizes shows no drift")
            assert check.refutes(-1 / 2, 100) and not check.refutes(THIRD)
        assert scales_as("s", SIZES[:2], y[:2], -1 / 2, (-1 / 3, -1)).status(100) == "refuted"
        for sizes in (3, 4):
            quiet = scales_as("s", SIZES[:sizes], power_law(THIRD, 0.0)[:sizes], THIRD, RIVALS)
            assert quiet.status() == "supported"


# -- the rule, case by case


NARROW = 0.001 * np.linspace(-1, 1, SEEDS)
WIDE = 1.0 * np.linspace(-1, 1, SEEDS)


def power_law(exponent, noise=0.003, seeds=SEEDS, name="power law"):
    rng = generator(name)
    return SIZES[:, None] ** exponent * np.exp(noise * rng.normal(size=(4, seeds)) + rng.normal(size=seeds))


FINE = np.geomspace(50, 400, 61)
GOOD_AND_BAD = {
    "agrees": (lambda y, **facts: agrees("a", 1 + y, 1.0, **facts), (0.0, 0.2)),
    "bounded_by": (lambda y, **facts: bounded_by("b", y, 1.0, **facts), (0.5, 1.5)),
    "exceeds": (lambda y, **facts: exceeds("e", y, 0.0, **facts), (0.5, -0.5)),
    "identity": (lambda y, **facts: identity("i", y, 0.1, **facts), (0.0, 0.2)),
    "scales_as": (lambda y, **facts: scales_as("s", SIZES, SIZES[:, None] ** y, 0.5, **facts), (0.5, 0.7)),
    "switches_at": (
        lambda y, **facts: switches_at("w", FINE, np.log(FINE)[:, None] - y, 120.0, level=0.0, **facts),
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
    both = np.stack([b, b])
    assert exceeds("e", np.stack([b + 0.3, b + 0.3]) + NARROW, both, by=0.2).status() == "supported"
    assert exceeds("e", np.stack([b + 0.3, b + 0.1]) + NARROW, both, by=0.2).status() == "refuted"


def test_what_is_exceeded_is_one_number_or_one_for_each_seed_of_each_cell():
    """Each cell has its own: b[i] belongs to a[i], never to a seed where it should belong to a cell."""
    b = np.arange(3.0)[:, None] + 10 * np.arange(4.0)
    np.testing.assert_array_equal(
        exceeds("e", b + [[0.1], [0.2], [0.3]], b).samples.round(12).T, [[0.1, 0.2, 0.3]] * 4
    )
    for a, other in ((b, 1.0), (b[0], 1.0), (b[0], b[1]), (b[:1], b[1]), (b[0], b[1:2])):
        np.testing.assert_array_equal(exceeds("e", a, other).samples, np.atleast_2d(a - other))


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
SHORT = np.geomspace(0.93, 1.08, 7)  # just beyond the margin


@pytest.mark.parametrize("sign", [1, -1], ids=["rising", "falling"])
def test_a_switch_is_read_off_the_line_between_two_points(sign):
    at = np.array([0.96, 1.0, 1.03, 1.2])
    y = 0.3 + sign * np.log(GRID[:, None] / at)
    np.testing.assert_allclose(switches_at("w", GRID, y, 1.0, level=0.3).samples, at[None], rtol=1e-12)


@pytest.mark.parametrize("sign", [1, -1], ids=["rising", "falling"])
def test_a_seed_that_never_crosses_counts_ten_times_beyond_the_end_it_heads_for(sign):
    at = np.array([1.0, 5.0, 0.1])
    y = 0.3 + sign * np.log(GRID[:, None] / at)
    found = switches_at("w", GRID, y, 1.0, level=0.3).samples[0]
    np.testing.assert_allclose(found, [1.0, 10 * GRID[-1], GRID[0] / 10])


def switched(grid, above, below, rest, sign=1):
    """So many seeds that cross above the grid, below it, and where the law says."""
    at = np.repeat([1.2 * grid[-1], grid[0] / 1.2, 1.0], [above, below, rest])
    return switches_at("w", grid, sign * np.log(grid[:, None] / at), 1.0, level=0.0)


@pytest.mark.parametrize("sign", [1, -1], ids=["rising", "falling"])
@pytest.mark.parametrize("grid", [GRID, SHORT], ids=["grid", "short grid"])
def test_seeds_that_all_cross_beyond_one_end_refute(grid, sign):
    for above, end in ((True, 10 * grid[-1]), (False, grid[0] / 10)):
        check = switched(grid, SEEDS * above, SEEDS * (not above), 0, sign)
        assert check.status(1000) == "refuted" and check.measured == pytest.approx(end)


@pytest.mark.parametrize("sign", [1, -1], ids=["rising", "falling"])
@pytest.mark.parametrize("grid", [GRID, SHORT], ids=["grid", "short grid"])
@pytest.mark.parametrize("seeds", [3, 6, 12, 24])
def test_one_seed_or_more_beyond_the_grid_support_nothing(seeds, grid, sign):
    """However many are above and below, and though the others cross exactly where the law says."""
    for above in range(seeds + 1):
        for below in range(above == 0, seeds + 1 - above):
            check = switched(grid, above, below, seeds - above - below, sign)
            assert check.status() != "supported", (above, below)


def test_among_very_many_seeds_one_may_cross_below_the_grid():
    """Wherever it crosses, above 0, the mean is within the margin; beyond the upper end it could be anywhere."""
    assert [switched(GRID, 0, 1, rest).status() for rest in (47, 99)] == ["inconclusive", "supported"]
    for grid in (GRID, SHORT):
        assert switched(grid, 1, 0, 499).status() == "inconclusive"


def jump(grid, at):
    """It is below the level up to there and above it from there on, at once."""
    return np.repeat(np.where(grid < at, -1.0, 1.0)[:, None], 3, axis=1)


def test_points_as_fine_as_the_margin_are_needed_around_the_law_and_only_there():
    steps = np.arange(-9.5, 10)
    fine = 1.05**steps
    assert switches_at("w", fine, jump(fine, 1.0), 1.0, level=0.0).status() == "supported"
    for step in steps[1:-1]:  # without this point
        grid = fine[steps != step]
        if abs(step) < 2:  # one of the two around the margin, or of the two in it
            with pytest.raises(InputError, match="points closer than the margin, 0.05, around 1"):
                switches_at("w", grid, jump(grid, 1.0), 1.0, level=0.0)
        else:
            assert switches_at("w", grid, jump(grid, 1.0), 1.0, level=0.0).status() == "supported"
    for ratio, margin in ((1.051, 0.05), (1.11, 0.1), (1.011, 0.01), (4.0, 0.05)):
        grid = ratio ** np.arange(-29.5, 30)
        with pytest.raises(InputError, match="points closer than the margin"):
            switches_at("w", grid, jump(grid, 1.0), 1.0, level=0.0, margin=margin)
    with pytest.raises(InputError, match="points closer"):  # or a jump at 1.9 would be read as one at 1
        switches_at("w", [0.5, 2.0], jump(np.array([0.5, 2.0]), 1.9), 1.0, level=0.0)


def test_on_points_as_fine_as_the_margin_a_jump_is_read_within_the_margin():
    grid = 1.05 ** np.arange(-19.5, 20)
    for at in np.geomspace(0.8, 1.25, 101):
        check = switches_at("w", grid, jump(grid, at), 1.0, level=0.0)
        assert 1 / 1.05 < check.measured / at < 1.05
        if abs(math.log(at)) > 2 * math.log(1.05) + 0.01:
            assert check.status(1000) == "refuted"


def test_a_seed_with_a_gap_in_its_curve_has_no_switch():
    y = np.log(GRID[:, None] / np.ones(3))
    y[5, 1] = np.nan
    np.testing.assert_array_equal(
        np.isnan(switches_at("w", GRID, y, 1.0, level=0.0).samples), [[False, True, False]]
    )


# -- what is refused


CURVES = np.log(GRID[:, None] / np.ones(3))


def on_grid(grid):
    """A switch of three seeds with nothing wrong but, perhaps, the grid."""
    return switches_at("w", grid, np.repeat(np.asarray(grid)[:, None] - 1.0, 3, axis=1), 1.0, level=0.0)


REFUSED = {
    "a margin of 0": lambda: agrees("a", np.ones(3), 1.0, margin=0.0),
    "a negative margin": lambda: agrees("a", np.ones(3), 1.0, margin=-0.1),
    "a margin of 1": lambda: agrees("a", np.ones(3), 1.0, margin=1.0),
    "a margin that is no number": lambda: agrees("a", np.ones(3), 1.0, margin=math.nan),
    "a switch with a margin of 0": lambda: switches_at("w", GRID, CURVES, 1.0, level=0.0, margin=0),
    "a prediction of 0": lambda: agrees("a", np.ones(3), 0.0),
    "a falling grid": lambda: switches_at("w", GRID[::-1], CURVES, 1.0, level=0.0),
    "an unsorted grid": lambda: on_grid(GRID[[0, 2, 1, *range(3, 41)]]),
    "a grid with a point twice": lambda: on_grid(np.sort(np.append(GRID, GRID[5]))),
    "a grid that ends before the law": lambda: switches_at("w", GRID[:15], CURVES[:15], 1.0, level=0.0),
    "a grid that begins beyond the law": lambda: switches_at("w", GRID[25:], CURVES[25:], 1.0, level=0.0),
    "a grid within the margin": lambda: switches_at("w", [0.99, 1.01], CURVES[:2], 1.0, level=0.0),
    "a grid of one point": lambda: switches_at("w", [1.0], CURVES[:1], 1.0, level=0.0),
    "a grid that begins at 0": lambda: on_grid(np.append(0.0, GRID)),
    "a grid that begins below 0": lambda: on_grid(np.append(-1.0, GRID)),
    "a grid of two points": lambda: on_grid(GRID[[0, -1]]),
    "a grid without points near the law": lambda: on_grid(GRID[(GRID < 0.9) | (GRID > 1.1)]),
    "an empty grid": lambda: switches_at("w", [], np.zeros((0, 3)), 1.0, level=0.0),
    "a switch without seeds": lambda: switches_at("w", GRID, np.zeros((41, 0)), 1.0, level=0.0),
    "curves the wrong way round": lambda: switches_at("w", GRID, CURVES.T, 1.0, level=0.0),
    "one curve without a seed": lambda: switches_at("w", GRID, CURVES[:, 0], 1.0, level=0.0),
    "no values to agree": lambda: agrees("a", [], 1.0),
    "no values to bound": lambda: bounded_by("b", np.zeros((3, 0)), 1.0),
    "no values to exceed": lambda: exceeds("e", [], []),
    "what one cell exceeds for two": lambda: exceeds("e", np.ones((2, 5)), np.zeros(5)),
    "the same where cells are as many as seeds": lambda: exceeds("e", np.ones((5, 5)), np.zeros(5)),
    "the same with its cell named": lambda: exceeds("e", np.ones((2, 5)), np.zeros((1, 5))),
    "what is exceeded for a cell": lambda: exceeds("e", np.ones((2, 5)), np.zeros(2)),
    "what is exceeded for a cell, as a column": lambda: exceeds("e", np.ones((2, 5)), np.zeros((2, 1))),
    "what is exceeded for more cells": lambda: exceeds("e", np.ones(5), np.zeros((2, 5))),
    "what is exceeded for fewer seeds": lambda: exceeds("e", np.ones(5), np.zeros(4)),
    "what is exceeded for one seed": lambda: exceeds("e", np.ones(5), np.zeros(1)),
    "what is exceeded in cells of cells": lambda: exceeds("e", np.ones((2, 5)), np.zeros((1, 2, 5))),
    "a rival that is the exponent": lambda: exponent_margin(THIRD, (-1 / 2, -1 / 3)),
    "a rival that is the exponent 0": lambda: exponent_margin(0, (0.0,)),
    "an exponent judged against itself": lambda: scales_as("s", SIZES, power_law(2), 2, (1, 2)),
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


def test_the_grids_that_are_refused_have_no_other_fault():
    assert on_grid(GRID).status() == "supported"


def test_a_check_is_frozen_before_it_is_judged():
    check = agrees("a", 1 + NARROW, 1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        check.upper = 2.0
