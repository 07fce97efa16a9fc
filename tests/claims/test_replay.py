"""What a check rests on is found out, whatever a claim's code makes of what the lab read."""

import dataclasses

import numpy as np
import pytest
import xarray as xr

import featlab as fl
from featlab.claims import (
    Lab,
    Size,
    at_least,
    at_most,
    equals,
    identity,
    ratio_of_means,
    scales_as,
    switches_at,
)
from featlab.claims.replay import alter, filled, followed

SEEDS = 24
P = fl.probes


def experiment():
    return fl.Experiment(
        data=fl.data.SignalNoise(n=4, d=50, snr=0.5),
        network=fl.networks.TwoLayerCNN(width=2, init_scale=1e-3),
        algorithm=fl.algorithms.GradientDescent(0.1),
        probes=[P.train_loss.on(P.at_end)],
        steps=3,
    )


def here():
    return Lab(Size(seeds=SEEDS), range(SEEDS))


def judged(judge, lab=None):
    """The checks of a function of a lab, as `verify` has them."""
    lab = lab or here()
    checks = list(judge(lab))
    return followed(judge, lab, checks)


def one(judge):
    """The decision on a claim with one check, `judge(lab)`."""
    (check,) = judged(lambda lab: [judge(lab)])
    return check.decision(250)


def noise(seeds, scale=0.01, shift=0.0):
    return np.array([np.random.default_rng([7, seed]).normal(shift, scale) for seed in seeds])


def numbers(seeds, n=1):
    return {"x": 0.5 + noise(seeds) / n}


def tall(seeds, n=1):
    return {"x": 2 + noise(seeds) / n}


def with_gaps(seeds, n=1):
    """Every eighth seed has no value at n = 2."""
    gone = (np.arange(len(seeds)) % 8 == 0) & (n == 2)
    return {"x": np.where(gone, np.nan, 0.5 + noise(seeds) + 0 * n)}


def few_gaps(seeds, k):
    """Seed k alone has no value in cell k."""
    return {"x": np.where(np.arange(len(seeds)) == k, np.nan, 0.5 + noise(seeds))}


# -- missing runs


@pytest.fixture(scope="module")
def trained():
    """The readings of runs of which those with the loss 1e-9 did not get there; and of some that all did."""
    lab = here()

    def to_loss(loss):
        return dataclasses.replace(experiment(), steps=P.until(P.train_loss, loss, at_most=50))

    lab.run(to_loss, loss=[0.6, 0.5])
    lab.run(to_loss, loss=[0.6, 1e-9])
    return lab


def of(bad, loss):
    return bad.sel(loss=loss, drop=True)


HIDING = {
    "as it is": lambda ok, bad: bad,
    "max over cells": lambda ok, bad: bad.max("loss"),
    "mean over cells": lambda ok, bad: bad.mean("loss"),
    "sum over a cell": lambda ok, bad: bad.sel(loss=[1e-9]).sum("loss"),
    "share of cells": lambda ok, bad: (bad > 5).mean("loss"),
    "two cells compared": lambda ok, bad: (of(bad, 1e-9) > of(bad, 0.6)) * 1.0,
    "xr.where": lambda ok, bad: xr.where(of(bad, 1e-9) > of(bad, 0.6), 1.0, 0.0),
    "np.where": lambda ok, bad: np.where(of(bad, 1e-9) > of(bad, 0.6), 1.0, 0.0),
    "np.fmax": lambda ok, bad: np.fmax(of(bad, 1e-9), of(bad, 0.6)),
    "without coordinates": lambda ok, bad: of(bad, 1e-9).reset_coords(drop=True).fillna(0),
    "bare values": lambda ok, bad: np.nan_to_num(of(bad, 1e-9).values) * 1e-3 + 0.5,
    "only the small ones": lambda ok, bad: np.nanmin(bad.where(bad.values < 1).values, axis=0),
    "only what is there": lambda ok, bad: bad.notnull().mean("loss"),
    "beside a whole reading": lambda ok, bad: bad.max("loss") - ok.sel(loss=0.5, drop=True),
    "beside a trained cell": lambda ok, bad: bad.max("loss") - of(bad, 0.6),
    "the cell with the largest value": lambda ok, bad: bad.idxmax("loss"),
    "a difference of cells": lambda ok, bad: bad.diff("loss").isel(loss=0).fillna(0),
    "in a dict": lambda ok, bad: {"a": of(ok, 0.6), "b": bad.max("loss")},
    "over seeds": lambda ok, bad: bad.mean("seed").mean("loss"),
}


@pytest.mark.parametrize("how", HIDING)
def test_untrained_runs_decide_nothing_whatever_becomes_of_their_numbers(trained, how):
    def judge(lab):
        ok, bad = (lab.run().train_loss for _ in range(2))
        return [at_most("x", HIDING[how](ok, bad), 10.0), at_most("y", HIDING[how](ok, bad), 1e-9)]

    for check in judged_again(judge, trained):
        status, reason = check.decision(250)
        assert status == "inconclusive", how
        assert "0% of the runs" in reason or how in ("over seeds",), reason


def judged_again(judge, lab):
    """The checks of a function of the readings that a lab already has."""

    class Reader:
        size, seeds, growing, readings = lab.size, lab.seeds, lab.growing, lab.readings

        def __init__(self):
            found = iter(lab.readings)
            self.run = lambda: next(found)

    return followed(judge, Reader(), judge(Reader()))


def test_readings_whose_runs_all_trained_are_judged_beside_those_that_did_not(trained):
    def judge(lab):
        ok, bad = (lab.run().train_loss for _ in range(2))
        gap = of(ok, 0.6) / of(ok, 0.5)
        return [
            at_most(f"{k}", x, 2.0)
            for k, x in enumerate((ok, ok.max("loss"), gap, {"a": ok, "b": ok.min("loss")}, of(bad, 0.6)))
        ]

    assert [check.status(250) for check in judged_again(judge, trained)] == ["supported"] * 5


def test_what_was_measured_and_is_not_finite_is_missing_too():
    status, reason = one(lambda lab: at_most("x", lab.measure(with_gaps, n=[2, 4]).x.max("n"), 1.0))
    assert status == "inconclusive" and "only 87% of the runs" in reason
    status, reason = one(lambda lab: at_most("x", lab.measure(with_gaps, n=[2, 4]).x.fillna(0.5), 1.0))
    assert status == "inconclusive" and "only 87% of the runs at n = 2" in reason


def test_a_seed_that_misses_a_cell_is_missing_from_what_is_made_of_all_cells():
    def judge(lab):
        x = lab.measure(few_gaps, k=[3, 4, 5]).x
        return [at_most("a", x.max("k"), 1.0), at_most("b", x.isel(k=0) - x.isel(k=1), 1.0), at_most("c", x, 1.0)]

    assert [check.seeds for check in judged(judge)] == [SEEDS - 3, SEEDS - 2, SEEDS - 1]


def test_an_exponent_is_fitted_to_no_seed_that_misses_a_size():
    def power(seeds, n):
        gone = (np.arange(len(seeds)) < 2) & (n == 4)
        return {"x": np.where(gone, np.nan, n * np.exp(noise(seeds)))}

    (check,) = judged(lambda lab: [scales_as("x", lab.measure(power, n=[2, 4, 8]).x, "n", 1.0)])
    assert (
        check.seeds == SEEDS - 2 and np.isnan(check.drift[:, :2]).all() and np.isfinite(check.drift[:, 2:]).all()
    )


# -- what an interval over seeds means

OTHER_SEEDS = {
    "fewer": lambda x: x.isel(seed=slice(0, 22)),
    "dropped": lambda x: x.where(x.seed > 1).isel(n=0).dropna("seed"),
    "repeated": lambda x: xr.concat([x.isel(seed=slice(0, 4))] * 6, "seed"),
    "cells as seeds": lambda x: x.rename(seed="s").stack(seed=("s", "n")),
    "too many": lambda x: np.tile(x.isel(n=0).values, 2),
    "one number": lambda x: 0.5,
    "two of everything": lambda x: {"a": np.tile(x.isel(n=0).values, 2)},
}


@pytest.mark.parametrize("how", OTHER_SEEDS)
def test_a_check_has_the_seeds_of_the_lab_and_each_once(how):
    assert one(lambda lab: at_most("x", lab.measure(numbers, n=[8, 16]).x, 1.0))[0] == "supported"
    status, reason = one(lambda lab: at_most("x", OTHER_SEEDS[how](lab.measure(numbers, n=[8, 16]).x), 1.0))
    assert status == "inconclusive" and "not those of the 24 seeds, one for each" in reason


MIXED = {
    "the mean instead of each": lambda x: 0 * x + x.mean("seed"),
    "shrunk to the mean": lambda x: 0.01 * x + 0.99 * x.mean("seed"),
    "the largest": lambda x: np.maximum(0.1 * x, x.max("seed")),
    "sorted": lambda x: x.copy(data=np.sort(x.values)),
    "running means": lambda x: x.rolling(seed=3, min_periods=1).mean(),
    "bare": lambda x: np.cumsum(x.values),
}


@pytest.mark.parametrize("how", MIXED)
def test_values_by_seed_that_are_made_of_several_seeds_have_no_interval(how):
    status, reason = one(lambda lab: at_most("x", MIXED[how](lab.measure(numbers).x), 100.0))
    assert status == "inconclusive" and "several seeds" in reason


@pytest.mark.parametrize("bound", [1.0, 1e-9])
def test_an_average_over_seeds_is_no_calculation(bound):
    status, reason = one(lambda lab: at_most("x", lab.measure(numbers).x.mean("seed"), bound))
    assert status == "inconclusive" and "one number made of all seeds" in reason


def test_identities_and_calculations_decide_as_before():
    def judge(lab):
        x = lab.measure(numbers).x
        exact = lab.measure(lambda seeds: xr.Dataset({"x": 0.5})).x
        return [identity("i", (x - x).max()), identity("j", x - x + 1.0), at_most("c", exact, 1.0)]

    checks = judged(judge)
    assert [check.status(250) for check in checks] == ["supported", "refuted", "supported"]
    assert [check.evidence for check in checks] == ["identity", "identity", "computed"]


def test_a_measured_bound_has_an_error_of_its_own():
    def judge(lab):
        x = lab.measure(numbers, n=[1, 2]).x
        return equals("x", x.isel(n=0), float(x.isel(n=1).mean()))

    status, reason = one(judge)
    assert status == "inconclusive" and "its bound is measured" in reason


def test_pseudo_values_of_the_jackknife_are_made_of_all_seeds_and_say_so():
    def judge(lab):
        x = lab.measure(numbers, n=[1, 2]).x
        return equals("x", ratio_of_means(x.isel(n=0), x.isel(n=1)) / 2, 0.5)

    assert one(judge)[0] == "supported"


# -- what was not measured

UNREAD = {
    "numbers of its own": lambda x: 0.5 + noise(range(SEEDS)),
    "over itself": lambda x: x / x,
    "drowned": lambda x: 0 * x + 0.5 + noise(range(SEEDS)),
    "one cell of two": lambda x: {"a": x, "b": x / x},
}


@pytest.mark.parametrize("how", UNREAD)
@pytest.mark.parametrize("bound", [1.5, 1e-3])
def test_what_is_the_same_whatever_the_lab_reads_decides_nothing(how, bound):
    status, reason = one(lambda lab: at_most("x", UNREAD[how](lab.measure(numbers).x), bound))
    assert status == "inconclusive" and "the same whatever the lab reads" in reason
    assert "at b" in reason or how != "one cell of two"


def test_runs_that_are_not_the_labs_decide_nothing():
    own = fl.run(experiment(), seeds=SEEDS, progress=False).train_loss
    status, reason = one(lambda lab: at_most("x", own.isel(step=-1) if "step" in own.dims else own, 10.0))
    assert status == "inconclusive" and "the same whatever the lab reads" in reason


COUNTS = {
    "true or false": lambda x: (x > 0.4) * 1.0,
    "all cells alike": lambda x: ((x > 0.4).all("k")) * 1.0,
    "which is largest": lambda x: x.argmax("k") * 0.1 + 0.35,
}


@pytest.mark.parametrize("how", COUNTS)
def test_counts_and_comparisons_are_about_what_was_read(how):
    def cells(seeds, k):
        return {"x": 0.5 + k + noise(seeds)}

    assert one(lambda lab: at_least("x", COUNTS[how](lab.measure(cells, k=[1, 2, 3]).x), 0.5))[0] == "supported"


def test_every_verb_can_be_followed():
    def power(seeds, n):
        return {"x": n * np.exp(noise(seeds)), "y": np.log(n / 4) + noise(seeds)}

    def judge(lab):
        read = lab.measure(power, n=[2, 3.75, 3.9, 4.05, 4.25, 8])
        yield scales_as("s", read.x, "n", 1.0)
        yield switches_at("w", read.y, "n", 4.0, level=0.0, rising=True)
        yield equals("e", read.x / read.n, 1.0)

    assert [check.status(250) for check in judged(judge)] == ["supported"] * 3


def test_a_claim_that_asks_for_other_things_on_other_numbers_is_in_doubt():
    read = float(here().measure(tall).x.mean())

    def judge(lab):
        x = lab.measure(tall).x
        for _ in range(1 if abs(float(x.mean()) - read) < 1e-9 else 7):
            x = x + lab.measure(tall, n=3).x
        yield at_most("x", x, 100.0)

    (check,) = judged(judge)
    assert check.decision()[0] == "inconclusive" and check.doubt


# -- the alterations themselves


def test_alterations_keep_what_kind_of_number_it_is_and_touch_no_other_seed():
    rng = np.random.default_rng(0)
    values = {
        "positive": rng.exponential(100, 6) + 2,
        "share": np.array([0, 0.2, 1, 0.5, 1, 0]),
        "any": rng.normal(size=6),
        "zero": np.zeros(6),
        "count": np.arange(6),
        "yes": np.ones(6, bool),
    }
    read = xr.Dataset({name: ("seed", one) for name, one in values.items()} | {"fixed": 3.0})
    half = np.arange(6) % 2 == 0
    for strength in (0.1, 12.0):
        moved = alter(read, strength, half, 0)
        assert moved.fixed == 3 and moved.positive.min() > 0 and 0 <= moved.share.min() <= moved.share.max() <= 1
        assert all(moved[name].dtype == read[name].dtype for name in read)
        for name in values:
            assert (moved[name].values[~half] == read[name].values[~half]).all()
        assert (moved["any"].values[half] != read["any"].values[half]).all()
        xr.testing.assert_identical(moved, alter(read, strength, half, 0))


def test_what_fills_a_gap_is_of_its_kind():
    read = xr.Dataset({"p": ("seed", [3.0, np.nan, 5.0]), "s": ("seed", [0.3, np.nan, 0.4])})
    low, middle, high = (filled(read, fill).isel(seed=1) for fill in (-1.0, 0.0, 1.0))
    assert 0 < low.p < 0.1 and 2.9 < middle.p < 5.5 and high.p > 1000 and 0 <= low.s < 0.31 and 0.6 < high.s <= 1
    assert filled(read, 1.0).isel(seed=0).p == 3
    two = xr.Dataset({"p": ("seed", [3.0, np.nan, np.nan])})
    assert len(set(filled(two, 0.0).p.values)) == 3


# -- what careless code hides


def with_gaps_everywhere(seeds, k=0):
    """Every other seed has no value, in no cell."""
    return {"x": np.where(np.arange(len(seeds)) % 2 == 0, np.nan, 0.5 + k + noise(seeds))}


def infinite(seeds):
    return {"x": np.where(np.arange(len(seeds)) % 2 == 0, np.inf, 0.5 + noise(seeds))}


CARELESS = {
    "a difference of two gaps": lambda lab: 0.5 + lab.measure(with_gaps_everywhere, k=[1, 2]).x.diff("k").sum("k"),
    "two gaps compared": lambda lab: 1.0 * (lab.measure(with_gaps_everywhere, k=[1, 2]).x.diff("k") > 0).any("k"),
    "one over infinity": lambda lab: 0.3 / lab.measure(infinite).x,
    "infinity clipped": lambda lab: np.minimum(lab.measure(infinite).x, 3) / 4,
    "far above": lambda lab: xr.where(lab.measure(with_gaps_everywhere).x > 1e4, 1.2, lab.measure(numbers).x),
    "jackknife of what was filled": lambda lab: ratio_of_means(
        lab.measure(with_gaps_everywhere).x.fillna(0.5), lab.measure(numbers).x
    ),
    "even seeds averaged": lambda lab: np.tile(lab.measure(numbers).x.values.reshape(-1, 2).mean(0), SEEDS // 2),
    "less the seed half way on": lambda lab: (
        0.5 + lab.measure(numbers).x - np.roll(lab.measure(tall).x, SEEDS // 2)
    ),
    "less the seed eight places on": lambda lab: 0.5 + lab.measure(tall).x - np.roll(lab.measure(tall).x, 8),
    "clipped at the bound": lambda lab: lab.measure(numbers).x.clip(max=2.0),
    "the same question twice": lambda lab: lab.measure(numbers, n=1).x / lab.measure(numbers, n=1).x,
    "cells that are the same": lambda lab: lab.run(lambda k: experiment(), k=[1, 2]).train_loss.pipe(
        lambda x: x.isel(k=0) / x.isel(k=1)
    ),
}


@pytest.mark.parametrize("how", CARELESS)
def test_careless_code_decides_nothing(how):
    status, reason = one(lambda lab: at_most("x", CARELESS[how](lab), 2.0))
    assert status == "inconclusive", reason


def test_where_the_lab_says_what_trained_gaps_are_no_less_gaps():
    lab = Lab(Size(seeds=SEEDS), range(SEEDS), trained=lambda runs: runs.seed % 2 == 0)

    def judge(lab):
        runs = lab.run(experiment())
        return [at_most("x", runs.train_loss.where(runs.trained, 0.5), 10.0)]

    (check,) = judged(judge, lab)
    assert check.decision(250)[0] == "inconclusive" and check.seeds == SEEDS // 2


def test_a_square_is_never_negative_and_shows_nothing():
    def squares(seeds):
        return {"x": noise(seeds)}

    status, reason = one(lambda lab: at_least("x", lab.measure(squares).x ** 2, 0.0))
    assert status == "inconclusive" and "cannot fail" in reason


def test_shorter_cells_have_no_gaps_beyond_their_end():
    def samples(seeds, n):
        return {"x": 0.5 + np.stack([noise(seeds)] * n, 1) + 0.01 * np.arange(n)}

    (check,) = judged(lambda lab: [at_most("x", lab.measure(samples, n=[3, 5]).x.mean("x_dim_1"), 1.0)])
    assert check.decision(250)[0] == "supported" and check.seeds == SEEDS
    (check,) = judged(lambda lab: [at_most("x", lab.measure(with_gaps, n=[2, 4]).x.fillna(0), 1.0)])
    assert check.seeds == SEEDS - 3


def test_complex_numbers_are_refused():
    with pytest.raises(fl.InputError, match="real numbers, and got complex"):
        here().measure(lambda seeds: {"x": np.ones(len(seeds)) * 1j})


def test_a_replayed_lab_knows_what_trained():
    def judge(lab):
        assert lab.trained_fraction is None
        return [at_most("x", lab.measure(numbers).x, 1.0)]

    (check,) = judged(judge)
    assert check.decision(250)[0] == "supported"


def growing_with(seeds, n):
    return {"x": 0.1 * n * np.exp(noise(seeds))}


@pytest.mark.parametrize(
    "judge",
    [
        lambda lab: [at_most(f"x{n}", lab.measure(growing_with, n=[2, 4, 8]).x.sel(n=n), 1.0) for n in (2, 4, 8)],
        lambda lab: [at_most(f"x{n}", lab.measure(growing_with, n=[n]).x, 1.0) for n in (2, 4, 8)],
        lambda lab: [at_most(f"x{n}", lab.measure(growing_with, n=n).x, 1.0) for n in (2, 4, 8)],
    ],
)
def test_a_check_for_each_size_does_not_hide_the_drift(judge):
    *smaller, largest = judged(judge)
    status, reason = largest.decision(250)
    assert status == "inconclusive" and "drifting along n" in reason
    assert all(check.decision(250)[0] == "supported" for check in smaller)
