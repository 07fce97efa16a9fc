"""Every number of a sweep is that of its experiment and seed alone, whatever runs beside it."""

import dataclasses
import itertools
import math
import os
import signal
import threading

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import featlab as fl
from featlab.engine import batch as many
from featlab.engine.batch import compute, train_many, units
from featlab.engine.program import programs_of
from featlab.sweeps import sweep as sweeps
from featlab.sweeps import workers

P = fl.probes
TINY = fl.Experiment(
    data=fl.data.SignalNoise(n=6, d=math.inf, snr=0.5),
    network=fl.networks.TwoLayerCNN(width=2, init_scale=0.3),
    algorithm=fl.algorithms.GradientDescent(1.0),
    probes=[P.test_error(count=50)],
    steps=5,
)


def changed(base, **data):
    return dataclasses.replace(base, data=dataclasses.replace(base.data, **data))


def with_rate(base, rate):
    return dataclasses.replace(base, algorithm=fl.algorithms.GradientDescent(rate))


@pytest.fixture
def one_by_one(monkeypatch):
    """A block is one run, so that one program serves a run alone and in company."""
    monkeypatch.setattr(many, "_TOGETHER", 1)


def alone(experiment, seed):
    """One run by itself, each of its variables as one number."""
    (group,) = programs_of([experiment])
    (unit,) = units(group, np.array([0]), np.array([seed]))
    return {name: value[0] for name, value in compute(group, unit, reduced=True).items()}


def last(history, name):
    """The largest magnitude of a variable at the end of a recorded run."""
    values = history[name].isel(step=-1) if "step" in history[name].dims else history[name]
    values = values.values[0]
    return np.max(np.abs(values)) if values.ndim else values


UNTIL = dataclasses.replace(
    TINY,
    probes=[P.train_loss, P.coefficients, P.margins, P.test_error(count=50)],
    steps=P.until(P.train_loss, 0.45, at_most=20),
)


@pytest.mark.slow
@pytest.mark.parametrize("precision, tolerance", [(64, 1e-9), (32, 1e-5)])
def test_padded_sizes_in_families_end_where_each_run_ends_alone(precision, tolerance):
    """Also where runs stop at different times, and where coefficients of padding are not zero."""
    base = dataclasses.replace(UNTIL, precision=precision)
    if precision == 32:
        base = dataclasses.replace(base, probes=[P.train_loss, P.margins])
    grid = {"data.snr": [2.0, 0.3, 0.9], "data.n": [7, 5, 8], "algorithm.learning_rate": [1.0, 2.5]}
    found = fl.sweep(base, grid, [4, 1])
    assert found.sizes == {"snr": 3, "n": 3, "learning_rate": 2, "seed": 2}
    assert len(np.unique(found.steps_taken)) > 5 and not found.trained.all() and found.trained.any()
    for snr, rate, seed in itertools.product(grid["data.snr"], grid["algorithm.learning_rate"], [1, 4]):
        history = fl.run(with_rate(changed(base, snr=snr, n=5), rate), [seed], products=True)
        cell = found.sel(snr=snr, n=5, learning_rate=rate, seed=seed)
        assert cell.done and cell.steps_taken == history.steps_taken[0] and cell.trained == history.trained[0]
        for name in set(found.data_vars) - {"done", "trained", "steps_taken"}:
            np.testing.assert_allclose(cell[name], last(history, name), atol=tolerance, err_msg=name)
    if precision == 32:
        return
    # The same cells in other company: other blocks, other units, other places on the axes.
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"_TOGETHER": 4, "_IN_CACHE": 400, "_BLOCKS": 3, "_WORK": 1e6}.items():
            patch.setattr(many, name, value)
        grid = {"data.n": [5, 8], "algorithm.learning_rate": [2.5, 1.0], "data.snr": [0.9, 0.1, 2.0]}
        other = fl.sweep(base, grid, [1, 0, 4])
    assert len(np.unique(other.train_loss)) == 36  # no run was taken for another
    shared = {"snr": [2.0, 0.9], "n": [8, 5], "learning_rate": [1.0, 2.5], "seed": [1, 4]}
    for name in found.data_vars:
        one, two = found[name].sel(shared), other[name].sel(shared).transpose(*found[name].dims)
        np.testing.assert_allclose(two, one, atol=tolerance, err_msg=name)


class Halved(fl.data.SignalNoise):
    """Wants to know n as a Python number."""

    def toss(self, key, training):
        label, clean, coins = super().toss(key, training)
        return label * (1 if range(self.n) else -1), clean, coins


XOR = fl.data.XorSignalNoise(n=5, d=1000, snr=0.7, cosine=0.3, noise_scale=0.1)
KINDS = {
    "with and without a dimension, stored whole": (
        TINY,
        {"data.d": [5.0, math.inf, 300, 1e6], "data.snr": [0.2, 1.0]},
    ),
    "mini-batches": (dataclasses.replace(TINY, data=fl.data.Minibatches(TINY.data, 4)), {"data.data.n": [5, 7]}),
    "exclusive or": (dataclasses.replace(TINY, data=XOR), {"data.cosine": [0.3, -0.5], "data.d": [100, 1e4]}),
    "a size that must be a Python number": (
        dataclasses.replace(TINY, data=Halved(n=5, d=math.inf, snr=0.5)),
        {"data.n": [5, 7], "data.snr": [0.5, 2.0]},
    ),
    "parts": (TINY, {"network.activation": "relu, relu_power(3)", "data.snr": [0.5, 2.0]}),
}


SOON = ("parts",)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in SOON else pytest.mark.slow) for name in KINDS]
)
def test_cells_of_many_kinds_are_those_of_runs_alone(name, one_by_one):
    base, grid = KINDS[name]
    found = fl.sweep(base, grid, [3, 0])
    assert len(np.unique(found.test_error)) > 1 and found.done.all()
    for i, one in enumerate(made_by_hand(base, grid)):
        if name == "mini-batches" and i:
            break  # the first is padded
        place = np.unravel_index(i, tuple(found.sizes[dim] for dim in list(found.sizes)[:-1]))
        for s, seed in enumerate([3, 0]):
            for variable, value in alone(one, seed).items():
                np.testing.assert_allclose(found[variable].values[(*place, s)], value, rtol=1e-5, err_msg=variable)


def made_by_hand(base, grid):
    from featlab.sweeps.axes import as_axes
    from featlab.text import changed as replaced

    axes = as_axes(grid, base)
    for values in itertools.product(*[axis.values for axis in axes]):
        yield replaced(base, dict(zip(grid, values)))


def test_a_size_that_must_be_a_python_number_is_not_padded():
    sizes = [5, 7]
    experiments = [dataclasses.replace(TINY, data=Halved(n=n, d=math.inf, snr=0.5)) for n in sizes]
    assert [group.rows for group in programs_of(experiments)] == sizes
    plain = [changed(TINY, n=n) for n in sizes]
    assert [group.rows for group in programs_of(plain)] == [7]


def mean_label(view):
    return jnp.mean(view.training.labels)


def largest_input(view):
    return jnp.linalg.norm(view.training.noise, axis=-1)[:, 0]


def test_probes_of_the_users_own_never_see_padding():
    """They may look at all rows, as these do; a loss or an optimiser sees none of them."""

    def rows(base):
        return [group.rows for group in programs_of([changed(base, n=n) for n in (5, 7)])]

    base = changed(TINY, d=20.0)
    assert rows(dataclasses.replace(base, probes=[mean_label])) == [5, 7]
    assert rows(dataclasses.replace(base, probes=[P.train_loss, largest_input])) == [5, 7]
    assert rows(dataclasses.replace(base, steps=P.until(mean_label, 0.0, 9))) == [5, 7]
    assert rows(dataclasses.replace(base, objective=lambda output, label: (output - label) ** 2)) == [7]
    assert rows(dataclasses.replace(base, algorithm=fl.algorithms.Descent(optax.adam(0.1)))) == [7]


class Wide(fl.data.AbstractVectorModel):
    """Noise of any length, also without a dimension."""

    n: int
    d: float
    length: float

    signal_count = 1
    signed_by_class = True

    def signals(self, space):
        return jnp.eye(1), jnp.ones(1)

    def noise_length(self, space):
        return self.length

    def noise_off(self):
        return True

    def toss(self, key, training):
        label = jax.random.rademacher(key, (), float)
        return label, label, None

    def compose(self, clean_label, coins, signals, noise):
        return clean_label * signals[0], noise[0]


def test_what_cannot_train_in_products_is_told_apart_by_its_numbers():
    base = dataclasses.replace(TINY, data=Wide(6, math.inf, 1.0))
    experiments = [dataclasses.replace(base, data=Wide(6, math.inf, length)) for length in (1.0, 0.5, 2.0)]
    with pytest.raises(fl.InputError, match="run together"):
        train_many(experiments, [0, 0, 0])
    assert sorted((group.products, len(group.table.places)) for group in programs_of(experiments)) == [
        (False, 2),
        (True, 1),
    ]


def test_runs_that_diverge_are_not_trained(one_by_one):
    linear = dataclasses.replace(TINY.network, activation=fl.networks.leaky_relu(1.0))
    base = dataclasses.replace(TINY, objective=fl.objectives.squared, network=linear)
    found = fl.sweep(base, {"algorithm.learning_rate": [0.1, 1e30], "data.snr": [0.5, 3.0]}, 2)
    assert found.trained.sel(learning_rate=0.1).all() and not found.trained.sel(learning_rate=1e30).any()
    assert found.done.all() and found.trained.dtype == bool
    assert (found.steps_taken.sel(learning_rate=0.1) == 5).all() and (found.steps_taken < 6).all()
    assert (found.steps_taken.sel(learning_rate=1e30) < 5).all()


def test_the_dataset_says_what_it_is(one_by_one):
    seen = []
    base = changed(TINY, label_flip=0.1)
    found = fl.sweep(base, {"data.snr": [0.5, 3.0]}, [2, 7], watch=seen.append)
    assert list(found.sizes.items()) == [("snr", 2), ("seed", 2)] and found.seed.values.tolist() == [2, 7]
    assert found.snr.attrs["path"] == "data.snr" and found.test_error.attrs["symbol"] == "L_D^{0-1}"
    assert fl.rebuild(found.attrs["experiment"]) == base
    assert found.attrs["interrupted"] == found.attrs["unfinished"] == 0
    assert len(seen) and seen[-1].identical(found)
    with pytest.raises(RuntimeError, match="enough"):
        fl.sweep(
            base, {"data.snr": [0.5, 3.0]}, watch=lambda dataset: (_ for _ in ()).throw(RuntimeError("enough"))
        )


def test_only_numbers_that_all_cells_share_are_attributes(one_by_one):
    def bowl(c):
        return with_rate(changed(TINY, snr=0.5 + c**2), 1.0)

    found = fl.sweep(bowl, {"c": [-1.0, 0.0, 1.0]})
    assert "signal_norm" not in found.attrs and found.attrs["n"] == 6 and found.attrs["learning_rate"] == 1.0


def test_endings_of_sizes_in_several_programs(one_by_one):
    base = dataclasses.replace(TINY, probes=[P.margins], steps=2)
    read = train_many([changed(base, n=n) for n in (4, 9)], [0, 0])
    assert read["margin"].shape == (2, 9)
    assert (read["margin"][0][4:] == 0).all() and read["margin"][0][:4].all() and read["margin"][1].all()


@pytest.fixture
def two_processes(monkeypatch):
    monkeypatch.setattr(sweeps, "_SOON", 0)
    monkeypatch.setattr(workers, "cores", lambda: 2)
    monkeypatch.setattr(sweeps, "cores", lambda: 2)
    monkeypatch.setattr(many, "_TOGETHER", 1)
    monkeypatch.setattr(many, "_BLOCKS", 2)
    workers.processes.cache_clear()
    yield workers.processes()
    workers.processes().close()
    workers.processes.cache_clear()


@pytest.mark.slow
def test_processes_compute_what_one_computes(two_processes, monkeypatch, tmp_path):
    """To the last digit; and one that is killed loses nothing."""
    grid = {"data.snr": [0.1, 0.5, 2.0], "algorithm.learning_rate": [0.5, 1.0]}
    together = fl.sweep(TINY, grid, 3, out=tmp_path / "pool")
    first = [one.pid for one in two_processes.workers]
    assert None not in first
    with monkeypatch.context() as patch:
        patch.setattr(sweeps, "_SOON", math.inf)
        here = fl.sweep(TINY, grid, 3)
    assert together.identical(here) and fl.load(tmp_path / "pool").identical(together)
    assert len(list((tmp_path / "pool" / "units").iterdir())) == 9

    killed = []

    def kill(dataset):
        if not killed:
            killed.append(first[0])
            os.kill(first[0], signal.SIGKILL)

    more = fl.sweep(TINY, grid, 6, out=tmp_path / "pool", watch=kill)
    assert killed and more.done.all() and more.isel(seed=slice(3)).equals(here)
    assert two_processes.workers[1].pid == first[1]
    assert fl.load(tmp_path / "pool").equals(more)

    def stop(dataset):
        raise KeyboardInterrupt

    partial = fl.sweep(TINY, grid, 12, out=tmp_path / "pool", watch=stop)
    assert partial.attrs["interrupted"] == 1 and not partial.done.all() and partial.done.sum() >= 37
    assert [one.pid for one in two_processes.workers] == [None, None]

    # A unit that ends every process ends the sweep.
    monkeypatch.setattr(workers, "carry_out", dies)
    with pytest.raises(fl.InputError, match="ended every process that took it"):
        fl.sweep(TINY, grid, 3)


def dies(*unit):
    os._exit(1)


def own_loss(output, label):
    return fourth_power(output - label)


def fourth_power(x):
    return x**4


@pytest.mark.slow
def test_processes_train_with_code_of_the_users_own(two_processes, monkeypatch):
    """By value, with all that it uses, as they cannot import this module."""
    data = Wide(6, 20.0, 1.0)
    base = dataclasses.replace(TINY, data=data, objective=own_loss, probes=[P.train_loss, mean_label])
    grid = {"algorithm.learning_rate": [0.5, 1.0, 2.0]}
    for one in (base, dataclasses.replace(TINY, objective=lambda output, label: (output - label) ** 4)):
        there = fl.sweep(one, grid, 2)
        assert None not in [worker.pid for worker in two_processes.workers]
        two_processes.close()
        with monkeypatch.context() as patch:
            patch.setattr(sweeps, "_SOON", math.inf)
            assert fl.sweep(one, grid, 2).identical(there)
    # What cannot be pickled is trained on here.
    lock = threading.Lock()
    kept = dataclasses.replace(TINY, objective=lambda output, label: (output - label) ** (2 if lock else 4))
    assert fl.sweep(kept, grid, 2).done.all() and [one.pid for one in two_processes.workers] == [None, None]
