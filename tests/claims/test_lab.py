"""The lab labels what it measures, leaves out what did not train, and runs nothing twice or side by side."""

import dataclasses
import itertools
import threading
import time

import numpy as np
import pytest
import xarray as xr

import featlab as fl
from featlab.claims import Lab, Size, at_most
from featlab.claims.lab import Grid
from featlab.engine import batch as many

SEEDS = [5, 6, 7]
P = fl.probes


def experiment(n=4, learning_rate=0.1, steps=3, probes=(P.train_loss,)):
    return fl.Experiment(
        data=fl.data.SignalNoise(n=n, d=50, snr=0.5),
        network=fl.networks.TwoLayerCNN(width=2),
        algorithm=fl.algorithms.GradientDescent(learning_rate),
        probes=[probe.on(P.at_end) for probe in probes],
        steps=steps,
    )


def lab(**options):
    return Lab(Size(seeds=3), SEEDS, **options)


def test_a_size_holds_numbers_lists_and_flags():
    size = Size(seeds=4, n=(8, 16), d=100, adam=False, rates=[0.1])
    assert (size.seeds, size.n, size.d, size.adam, size.rates) == (4, (8, 16), 100, False, (0.1,))
    with pytest.raises(AttributeError, match="this size has no 'width'"):
        size.width  # noqa: B018


def test_cells_are_dims_labels_functions_and_what_is_handed_on():
    def link(z):
        return z

    grid = Grid.of({"n": [2, 4], "q": {"three": 3.0, "four": 4.0}, "link": link, "snr": lambda n: 1 / n, "d": 7})
    cells = list(grid)
    assert len(cells) == 4 and cells[1] == {"n": 2, "q": 4.0, "link": link, "snr": 0.5, "d": 7}
    dims, values = grid.derived()["snr"]
    assert dims == ["n"] and values.tolist() == [0.5, 0.25]
    for wrong in ({"n": []}, {"n": [1, 1]}):
        with pytest.raises(fl.InputError):
            Grid.of(wrong)


def test_runs_come_labelled_by_cell_and_seed_and_equal_what_was_run():
    def make(n, learning_rate):
        return experiment(n, learning_rate, probes=(P.train_loss, P.margins))

    read = lab().run(make, n=[4, 8], learning_rate=lambda n: 0.1 * n)
    assert read.train_loss.dims == ("n", "seed") and read.n.values.tolist() == [4, 8]
    assert read.learning_rate.values.tolist() == [0.4, 0.8] and read.seed.values.tolist() == SEEDS
    assert read.margin.dims == ("n", "seed", "sample") and np.isnan(read.margin.sel(n=4)[:, 4:]).all()
    for n in (4, 8):
        alone = many.train_many([make(n, 0.1 * n)] * 3, SEEDS)
        np.testing.assert_array_equal(read.train_loss.sel(n=n), alone["train_loss"])
        np.testing.assert_array_equal(read.margin.sel(n=n)[:, :n], alone["margin"][:, :n])
    assert read.n.attrs["size"] == 1 and "size" not in read.seed.attrs


def test_what_was_asked_is_not_run_again():
    reports: list[int] = []
    here = Lab(Size(seeds=3), SEEDS, reports.append)
    first = here.run(experiment, learning_rate=[0.1, 0.3])
    again = here.run(experiment(learning_rate=0.3))
    np.testing.assert_array_equal(first.train_loss.sel(learning_rate=0.3), again.train_loss)
    assert here.runs == here.trainings == max(reports) == 6 and len(here.deciding) == 3
    here.run(experiment(learning_rate=0.4))
    assert here.runs == 9


def to_loss(loss, at_most=50):
    return dataclasses.replace(experiment(), steps=P.until(P.train_loss, loss, at_most=at_most))


def test_runs_that_did_not_reach_their_loss_are_left_out_and_counted():
    here = lab()
    read = here.run(lambda loss: to_loss(loss), loss=[0.5, 1e-9])
    assert np.isfinite(read.train_loss.sel(loss=0.5)).all() and np.isnan(read.train_loss.sel(loss=1e-9)).all()
    assert np.isnan(read.steps_taken.sel(loss=1e-9)).all()
    assert read.trained.values.tolist() == [[True] * 3, [False] * 3] and here.trained_fraction == 0.5
    assert at_most("loss", read.train_loss, 1.0).decision()[1].startswith("only 0% of the runs at loss = 1e-09")


def test_runs_that_diverge_are_left_out():
    wild = dataclasses.replace(experiment(learning_rate=1e6, steps=40), objective=fl.objectives.squared)
    read = lab().run(wild)
    assert not read.trained.any() and np.isnan(read.train_loss).all()


def test_a_claim_says_what_trained_means():
    def fallen(runs):
        return runs.train_loss < float(runs.train_loss.median())

    here = lab(trained=fallen)
    read = here.run(experiment())
    assert read.trained.sum() == 1 and np.isfinite(read.train_loss).sum() == 1 and here.trained_fraction == 1 / 3
    assert lab(trained=lambda runs: None).run(experiment()).trained.all()


def test_what_never_happened_has_no_step():
    moment = P.first(P.above(P.train_loss, 1e9), name="never")
    one = dataclasses.replace(experiment(), probes=(P.train_loss.on(moment),))
    assert np.isnan(lab().run(one).never).all()


def test_no_training_is_no_fraction():
    here = lab()
    found = here.measure(lambda seeds, a: {"x": a * np.array(seeds)}, setting=experiment(), a=[1, 2])
    assert found.x.dims == ("a", "seed") and found.x.sel(a=2).values.tolist() == [10, 12, 14]
    assert here.trained_fraction is None and here.deciding == [experiment()]


def test_a_measurement_is_made_once():
    calls = itertools.count()

    def counted(seeds, a):
        next(calls)
        return {"x": np.zeros(len(seeds))}

    here = lab()
    for _ in range(2):
        here.measure(counted, a=[1, 2])
    assert next(calls) == 2


def test_a_function_that_holds_something_else_by_now_is_asked_again():
    scale = 1.0

    def scaled(seeds):
        return {"x": scale * np.ones(len(seeds))}

    here = lab()
    before = here.measure(scaled)
    scale = 2.0
    assert (here.measure(scaled).x == 2 * before.x).all()


def test_what_a_claim_writes_into_a_reading_is_not_remembered():
    here = lab()
    here.run(experiment()).train_loss.values[:] = 0
    assert (here.run(experiment()).train_loss > 0).all() and (here.readings[0].train_loss > 0).all()


def test_a_size_that_follows_from_a_cell_says_that_it_is_one():
    read = lab().measure(lambda seeds, k, n: {"x": np.zeros(len(seeds))}, k=[1, 2], n=lambda k: 10 * k)
    assert read.n.attrs["size"] and "size" not in read.k.attrs


def test_a_boundary_is_labelled_and_remembered_and_knows_what_trained():
    here = lab()
    options = {"between": lambda n: (0.01, 3.0 / n), "tolerance": 0.2}

    def make(n, learning_rate):
        return experiment(n, learning_rate, steps=5)

    found = here.boundary(make, "learning_rate", "train_loss", (0.5, 0.6), n=[2, 4], **options)
    assert set(found.learning_rate.dims) == {"n", "level", "seed"}
    plain = fl.boundary(
        make, "learning_rate", "train_loss", (0.5, 0.6), over={"n": [2, 4]}, seeds=SEEDS, **options
    )
    np.testing.assert_array_equal(found.learning_rate.transpose("level", "n", "seed"), plain.learning_rate)
    runs = here.trainings
    here.boundary(make, "learning_rate", "train_loss", (0.5, 0.6), n=[2, 4], **options)
    assert here.trainings == runs
    untrained = here.boundary(
        lambda n, learning_rate: to_loss(1e-9, at_most=5),
        "learning_rate", "train_loss", 0.5, n=[2], **options,
    )  # fmt: skip
    assert not untrained.trained.any() and np.isnan(untrained.learning_rate).all()


def test_no_two_programs_of_a_process_run_side_by_side(monkeypatch):
    """Two threads that train wait for each other's programs: on a CPU they could wait for ever."""
    running, overlaps = [], []
    finish = many._finish

    def watched(*arguments):
        running.append(1)
        overlaps.append(len(running))
        time.sleep(0.05)
        result = finish(*arguments)
        running.pop()
        return result

    monkeypatch.setattr(many, "_finish", watched)
    threads = [
        threading.Thread(target=many.train_many, args=([experiment(learning_rate=rate)] * 3, SEEDS))
        for rate in (0.1, 0.2, 0.3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert overlaps == [1, 1, 1] and not any(thread.is_alive() for thread in threads)


def test_the_lab_itself_starts_no_threads():
    before = threading.active_count()
    seen = []
    here = Lab(Size(seeds=3), SEEDS, lambda trainings: seen.append(threading.active_count()))
    here.run(experiment, learning_rate=[0.1, 0.2])
    assert seen and max(seen) <= before


def test_nothing_that_is_not_an_experiment_is_run():
    with pytest.raises(fl.InputError, match="lab.run needs an Experiment"):
        lab().run(lambda: 3)


def test_dims_of_a_probe_stay_by_name():
    read = lab().run(experiment(probes=(P.coefficients,)))
    assert isinstance(read, xr.Dataset) and {"class", "filter", "seed"} <= set(read.gamma.dims)


def test_what_is_measured_is_put_in_the_order_of_the_seeds_or_refused():
    def backwards(seeds):
        return xr.Dataset({"x": ("seed", np.array(seeds[::-1], float))}, {"seed": seeds[::-1]})

    assert lab().measure(backwards).x.values.tolist() == SEEDS
    wrong = {
        "other seeds": lambda seeds: xr.Dataset({"x": ("seed", np.zeros(3))}, {"seed": [1, 2, 3]}),
        "two seeds": lambda seeds: xr.Dataset({"x": ("seed", np.zeros(2))}),
        "two values": lambda seeds: {"x": np.zeros(2)},
        "one value": lambda seeds: {"x": 0.5},
        "nothing": lambda seeds: {},
        "none": lambda seeds: None,
    }
    for what, function in wrong.items():
        with pytest.raises(fl.InputError, match=r"lab\.measure"):
            lab().measure(function)
            pytest.fail(what)

    def mixed(seeds, n):
        return xr.Dataset({"x": ("seed", np.zeros(3))} if n == 2 else {"x": 0.5})

    with pytest.raises(fl.InputError, match="a value for each seed in some cells, and one in others"):
        lab().measure(mixed, n=[2, 4])


def test_a_claim_says_of_each_seed_whether_it_trained():
    for said in (
        lambda runs: runs.trained.isel(seed=slice(0, 2)),
        lambda runs: runs.trained.isel(seed=slice(None, None, -1)),
        lambda runs: runs.train_loss,
        lambda runs: True,
    ):
        with pytest.raises(fl.InputError, match="must say true or false for each seed"):
            lab(trained=said).run(experiment())
    assert lab(trained=lambda runs: np.array([True, False, True])).run(experiment()).trained.sum() == 2
