"""Ranges, lists and functions become exactly the experiments one would write by hand, or one sentence."""

import dataclasses
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import featlab as fl
from featlab.engine import batch as many
from featlab.engine.program import programs_from, programs_of
from featlab.sweeps import plan as plans
from featlab.sweeps.axes import as_axes, as_values, tables

P = fl.probes
BASE = fl.Experiment(
    data=fl.data.SignalNoise(n=6, d=1000, snr=0.5, label_flip=0.1),
    network=fl.networks.TwoLayerCNN(width=2, init_scale=0.3),
    algorithm=fl.algorithms.GradientDescent(1.0),
    probes=[P.train_loss, P.test_error(count=50)],
    steps=5,
)


def made(what, grid):
    """The experiment of every cell, in the order of the grid."""
    axes = as_axes(grid, what)
    cells = {}
    for table in tables(what, axes):
        for i, place in enumerate(table.places):
            assert place not in cells
            cells[int(place)] = table.at(i)
    assert sorted(cells) == list(range(math.prod(len(axis.values) for axis in axes)))
    return [cells[i] for i in range(len(cells))]


def same(found, expected):
    leaves, parts = jax.tree.flatten(found)
    others, wanted = jax.tree.flatten(expected)
    assert parts == wanted
    assert [(type(a), a) for a in leaves] == [(type(b), b) for b in others]


@pytest.mark.parametrize(
    "text, values",
    [
        ("0:1:5", [0, 0.25, 0.5, 0.75, 1]),
        ("-1:1:11", [round(-1 + 0.2 * i, 10) for i in range(11)]),
        ("0.1:1:10", [round(0.1 * i, 10) for i in range(1, 11)]),
        ("1:0.001:4log", [1, 0.1, 0.01, 0.001]),
        (" 1e-3:1:4log ", [0.001, 0.01, 0.1, 1]),
        ("2**3:16:2", [8, 16]),
        ("3:3:1", [3]),
        ("3:4:1log", [3]),
        ("0.3", [0.3]),
        ("0.3, 1e2, inf", [0.3, 100, math.inf]),
        ("1/3, 2", [1 / 3, 2]),
        ("true, false", [True, False]),
        ("relu, relu_power(3)", [fl.networks.relu, fl.networks.relu_power(3)]),
        (np.array([0.5, 0.25]), [0.5, 0.25]),
        (jnp.array([0.5, 0.25]), [0.5, 0.25]),
        (range(2, 5), [2, 3, 4]),
        ((1, True), [1, True]),
    ],
)
def test_values_of_an_axis(text, values):
    found = as_values(text, "x")
    assert list(found) == values
    assert all(type(v) in (int, float, bool) or callable(v) for v in found)


def test_a_range_of_equal_ratios_keeps_its_ends_and_a_finer_one_its_values():
    coarse, fine = as_values("20:200:20log", "x"), as_values("20:200:39log", "x")
    assert coarse[0] == 20 and coarse[-1] == 200 and len(coarse) == 20
    np.testing.assert_allclose(np.diff(np.log(coarse)), math.log(10) / 19, rtol=1e-10)
    assert set(coarse) <= set(fine)
    assert set(as_values("0.1:0.7:20", "x")) <= set(as_values("0.1:0.7:39", "x"))


def test_ranges_of_fields_that_count_are_whole_numbers_each_once():
    axes = as_axes({"data.n": "4:9:20log", "network.width": "1:3:9", "steps": "0:10:3", "data.d": "10:12:3"}, BASE)
    assert [axis.values for axis in axes] == [(4, 5, 6, 7, 8, 9), (1, 2, 3), (0, 5, 10), (10.0, 11.0, 12.0)]
    cubed = dataclasses.replace(
        BASE, network=dataclasses.replace(BASE.network, activation=fl.networks.relu_power(3))
    )
    (power,) = as_axes({"network.activation.power": "2:4:5"}, cubed)
    assert power.values == (2.0, 2.5, 3.0, 3.5, 4.0)  # a real number, though the one it has now is whole
    assert [type(one.network.activation.power) for one in made(cubed, {"network.activation.power": "2:3:3"})] == [
        int,
        float,
        int,
    ]
    with pytest.raises(fl.InputError, match="SignalNoise.n must be a whole number .*got 4.5"):
        made(BASE, {"data.n": "4, 4.5"})


GRIDS = {
    "reals": {"data.snr": "0.1:1:4log", "algorithm.learning_rate": [2.0, 0.5], "network.init_scale": (0.1,)},
    "whole and real in turn": {"data.n": [7, 4], "data.snr": [0.9, 0.1, 0.5], "network.width": "1:3:2"},
    "the dimension": {"data.d": [math.inf, 5.0, 100, 1e6, 8], "data.n": [3, 9]},
    "parts": {"network.activation": "relu, relu_power(3), leaky_relu(0.2)", "data.label_flip": [0.0, 0.2]},
    "whole parts": {
        "data": [BASE.data, fl.data.XorSignalNoise(n=5, d=100, snr=0.5), fl.data.Minibatches(BASE.data, 2)],
        "steps": [3, P.until(P.train_loss, 0.3, 7)],
    },
    "something or nothing": {
        "algorithm.momentum": [None, 0.5, 0.9],
        "precision": [64, 32],
        "space": [None, fl.Span],
    },
    "an integer as a real number": {"data.snr": [1, 2], "data.d": [10, 100]},
}


@pytest.mark.parametrize("name", GRIDS)
def test_fields_give_the_experiments_of_a_loop(name):
    grid = GRIDS[name]
    axes = as_axes(grid, BASE)
    expected = []
    for values in itertools.product(*[axis.values for axis in axes]):
        one = BASE
        for path, value in zip(grid, values):
            field, _, inner = path.partition(".")
            value = dataclasses.replace(getattr(one, field), **{inner: value}) if inner else value
            one = dataclasses.replace(one, **{field: value})
        expected.append(one)
    found = made(BASE, grid)
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        same(one, other)
    # And so they stay when they are put in groups.
    for group in programs_from(tables(BASE, axes)):
        for i, place in enumerate(group.table.places):
            same(group.table.at(i), expected[place])


def coupled(n, c=1.0):
    return dataclasses.replace(BASE, data=fl.data.SignalNoise(n=n, d=1e4 * n, snr=(c / max(n, 1)) ** 0.5))


def test_functions_of_coupled_scalings_give_what_they_return():
    ns, cs = [4, 8, 5], [0.5, 0.1]
    found = made(coupled, {"n": ns, "c": cs})
    for one, (n, c) in zip(found, itertools.product(ns, cs), strict=True):
        same(one, coupled(n, c))
    open_ended = made(lambda **numbers: coupled(5, **numbers), {"c": "0.1:1:3"})
    assert [one.data.snr for one in open_ended] == [(c / 5) ** 0.5 for c in (0.1, 0.55, 1.0)]


def test_the_path_to_a_part_may_be_long():
    base = dataclasses.replace(BASE, data=fl.data.Minibatches(BASE.data, 2), steps=P.until(P.train_loss, 0.3, 7))
    grid = {"data.data.snr": [0.1, 0.2], "data.size": [2, 3], "steps.level": [0.5, 0.4], "data.data.n": [5, 6]}
    for one, (snr, size, level, n) in zip(made(base, grid), itertools.product(*grid.values()), strict=True):
        data = fl.data.Minibatches(dataclasses.replace(BASE.data, snr=snr, n=n), size)
        same(one, dataclasses.replace(base, data=data, steps=P.until(P.train_loss, level, 7)))


class Fussy(fl.networks.TwoLayerCNN):
    """Refuses what is inside the grid and none of its corners."""

    def __check_init__(self):
        if 0.2 < self.init_scale < 0.4 and self.width == 2:
            raise fl.InputError("Fussy.init_scale must be something else, got this.")


class Fussier(fl.data.AbstractVectorModel):
    """Refuses a combination of two real numbers that is inside the grid."""

    n: int
    d: float
    strength: float
    length: float = 1.0

    signal_count = 1
    signed_by_class = True

    def __check_init__(self):
        if self.strength == 2.0 and self.length == 0.2:
            raise fl.InputError("Fussier has no such combination.")

    signals = noise_length = noise_off = toss = compose = None  # type: ignore[assignment]


FUNCTIONS = {
    "no such": (lambda n: BASE, {"m": [1]}, "no argument 'm'; known are n"),
    "nearly": (lambda width: BASE, {"widht": [1]}, "no argument 'widht'; did you mean 'width'"),
    "missing": (lambda n, c: BASE, {"n": [1]}, "needs values of 'c', which is no axis of the grid"),
    "returns": (lambda n: n, {"n": [1]}, "must return an Experiment, got 1"),
    "inside": (coupled, {"n": [4, 0, 5]}, "SignalNoise.n must be a whole number of at least 1, got 0"),
    "no function": (3, {"n": [1]}, "needs an Experiment or a function that returns one, got 3"),
}
REFUSED = {
    "no grid": ({}, "sweep needs a grid such as"),
    "no mapping": (["data.n"], "sweep needs a grid such as"),
    "no name": ({3: [1]}, "axis of a grid must be named, .*got 3"),
    "unknown field": ({"data.snrr": [1]}, "SignalNoise has no field 'snrr'; did you mean 'snr'"),
    "unknown part": ({"dat.snr": [1]}, "no field 'dat'; did you mean 'data'"),
    "a field of a number": ({"data.snr.x": [1]}, "0.5 has no fields to change"),
    "a part and its field": ({"data.snr": [1], "data": [BASE.data]}, "axis data replaces a part"),
    "a field and its part": ({"data": [BASE.data], "data.snr": [1]}, "axis data replaces a part"),
    "wrong range": ({"data.snr": "1:2"}, "must have the form 0.1:1:10 or 0.1:1:10log, got data.snr=1:2"),
    "wrong count": ({"data.snr": "1:2:x"}, "must have the form"),
    "no steps": ({"data.snr": "1:2:0"}, "at least one value, got data.snr=1:2:0"),
    "equal ends": ({"data.snr": "1:1:3"}, "different ends"),
    "endless range": ({"data.snr": "1:inf:3"}, "ends of a range must be finite numbers"),
    "words as ends": ({"data.snr": "relu:2:3"}, "ends of a range must be finite numbers"),
    "log below 0": ({"data.snr": "0:2:3log"}, "log scale must lie above 0"),
    "endless count": ({"data.snr": "0:1:99999999999"}, "at most 10,000,000 values"),
    "unknown word": (
        {"network.activation": "relu, rely"},
        "'rely' is not a name featlab knows; did you mean 'relu'",
    ),
    "no expression": ({"data.snr": "1, )"}, "is not an expression"),
    "empty": ({"data.snr": []}, "axis data.snr has no values"),
    "empty text": ({"data.snr": " "}, "axis data.snr has no values"),
    "one number": ({"data.snr": 0.3}, "must be a list or a range such as .*got 0.3"),
    "twice": ({"data.snr": [0.1, 0.2, 0.1]}, "data.snr has the value 0.1 twice"),
    "twice, as two kinds": ({"data.snr": [1, 1.0]}, "data.snr has the value 1.0 twice"),
    "twice the same part": ({"network.activation": [fl.networks.relu] * 2}, "twice"),
    "nan": ({"data.snr": [0.1, math.nan]}, "has a value that is not a number"),
    "refused inside": ({"data.snr": [0.1, -1, 0.2]}, "SignalNoise.snr must be a finite number .*got -1"),
    "refused inside, whole": ({"data.n": [4, 0, 5]}, "SignalNoise.n must be .*got 0"),
    "refused in a corner": (
        {"data.d": [10, math.inf], "data.noise_scale": [1.0, 2.0]},
        "noise_scale means nothing at d = inf",
    ),
    "infinite among finite": ({"data.snr": [0.1, math.inf]}, "SignalNoise.snr must be a finite number"),
    "too many cells": ({"data.snr": "0:1:5000", "data.label_flip": "0:1:5000"}, "25,000,000 cells; the most"),
    "too small a dimension": (
        {"space": [fl.Span], "data.d": [100, 9]},
        "not possible: d = 9 is less than the 11",
    ),
    "no room": ({"space": [fl.Ambient], "data.d": [100, 1e12]}, "Ambient would store 11 vectors of 1e\\+12"),
    "infinite and stored": ({"space": [fl.Ambient], "data.d": [100, math.inf]}, "Ambient cannot store infinitely"),
    "no probes": ({"probes": [()]}, "at least one probe"),
    "other probes": ({"probes": [(P.train_loss,), (P.train_error,)]}, "the same probes in every cell"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_grid_that_cannot_be_is_answered_with_one_sentence(name):
    grid, sentence = REFUSED[name]
    one_sentence(BASE, grid, sentence)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_that_does_not_fit_is_answered_with_one_sentence(name):
    one_sentence(*FUNCTIONS[name])


def one_sentence(what, grid, sentence, **options):
    with pytest.raises(fl.InputError, match=sentence) as error:
        fl.sweep(what, grid, **options)
    assert "\n" not in str(error.value)


def test_a_part_with_checks_of_its_own_sees_every_combination():
    fussy = dataclasses.replace(BASE, network=Fussy(width=1, init_scale=0.1))
    one_sentence(fussy, {"network.width": [1, 2, 3], "network.init_scale": [0.1, 0.3, 0.5]}, "Fussy.init_scale")
    fussier = dataclasses.replace(BASE, data=Fussier(6, 100.0, 1.0))
    grid = {"data.strength": [1.0, 2.0, 3.0], "data.length": [0.1, 0.2, 0.3]}
    one_sentence(fussier, grid, "Fussier has no such combination")
    assert len(made(fussier, grid | {"data.length": [0.1, 0.3]})) == 6


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"seeds": 0}, "sweep\\(seeds=\\) must be"),
        ({"seeds": [1, 1]}, "different seeds, got \\[1, 1\\]"),
        ({"seeds": [-1]}, "Seeds must be whole numbers"),
        ({"seeds": 2000}, "2,000 runs; the most"),
        ({"near": {"test_errror": 0.2}}, "No probe of this sweep reads 'test_errror'; did you mean 'test_error'"),
        ({"near": {"test_error": math.nan}}, "finite number as level"),
        ({"near": {"test_error": True}}, "finite number as level"),
        ({"near": {}}, "must be one level"),
        ({"near": 0.25}, "must be one level"),
    ],
)
def test_other_arguments_that_cannot_be(options, sentence, monkeypatch):
    monkeypatch.setattr(plans, "MOST_RUNS", 1000)
    one_sentence(BASE, {"data.snr": [0.1]}, sentence, **options)


def test_many_values_are_checked_soon():
    assert len(as_values(list(range(20_000)), "x")) == 20_000


def test_an_axis_is_named_after_its_field_unless_that_says_too_little():
    base = dataclasses.replace(BASE, probes=[P.probe(snr=P.Variable())(lambda view: view.step)])
    axes = as_axes({"data.snr": [0.1], "data.n": [5], "steps": [1]}, base)
    assert [axis.name for axis in axes] == ["data.snr", "n", "steps"]
    two = as_axes({"data.data.n": [1], "network.n": [1], "data.seed": [1]}, lambda **k: BASE)
    assert [axis.name for axis in two] == ["data.data.n", "network.n", "data.seed"]
    (log,) = as_axes({"data.snr": "0.1:1:5log"}, BASE)
    (linear,) = as_axes({"data.snr": "0.1:1:5"}, BASE)
    (words,) = as_axes({"network.activation": "relu, relu_power(3)"}, BASE)
    assert (log.scale, linear.scale, words.scale) == ("log", "linear", "linear")
    assert words.coordinate[1] == ["relu", "relu_power(power=3)"]
    assert log.coordinate[2]["symbol"] == r"\mathrm{SNR}"


def test_cells_that_need_other_programs_are_told_apart():
    """Stored whole, in a span, and without a dimension, however the dimension is given."""
    found = programs_from(
        tables(BASE, as_axes({"data.d": [5, 8, 100, 1e6, math.inf], "data.snr": [0.1, 0.2]}, BASE))
    )
    kinds = [(type(g.space).__name__, g.products, sorted({one.data.d for one in members(g)})) for g in found]
    assert sorted(kinds) == [
        ("Ambient", False, [5.0]),
        ("Ambient", False, [8.0]),
        ("Span", True, [100.0, 1e6]),
        ("Span", True, [math.inf]),
    ]


def members(group):
    return [group.table.at(i) for i in range(len(group.table.places))]


def test_sizes_share_few_programs():
    found = programs_from(tables(BASE, as_axes({"data.n": list(range(3, 33)), "data.snr": [0.1, 0.2]}, BASE)))
    assert sorted(group.rows for group in found) == [4, 8, 16, 32]
    assert sum(len(group.table.places) for group in found) == 60


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_run_is_in_one_slot_of_one_unit(data):
    """And members of a family share the seed and every number that is not their own."""
    draw = data.draw
    choices = [
        dataclasses.replace(
            BASE,
            data=dataclasses.replace(BASE.data, snr=snr, label_flip=flip, n=n),
            network=dataclasses.replace(BASE.network, init_scale=scale),
        )
        for snr in (0.1, 0.2, 0.3)
        for flip in (0.0, 0.3)
        for n in (5, 6)
        for scale in (0.1, 0.2)
    ]
    experiments = draw(st.lists(st.sampled_from(choices), min_size=1, max_size=25))
    (group,) = programs_of(experiments)
    count = len(experiments)
    runs = draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, 3)), min_size=1, unique=True))
    limits = {name: draw(st.sampled_from(values)) for name, values in LIMITS.items()}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in limits.items():
            patch.setattr(many, name, value)
        held = many._runs_in_a_block(group)
        cut = many.units(group, *map(np.array, zip(*runs)))
        found = []
        for unit in cut:
            found += list(zip(unit.experiments.tolist(), unit.seeds.tolist()))
            blocks, families, members = unit.slots.shape
            assert families * members <= max(held, members) and members <= held
            assert blocks <= many._blocks_at_once(group, families * members)
            assert sorted(unit.slots[unit.real]) == list(range(len(unit.experiments)))
            assert unit.real.shape == unit.slots.shape and set(unit.slots.ravel()) <= set(range(len(unit.seeds)))
            assert (unit.seeds[unit.slots] == unit.seeds[unit.slots[..., :1]]).all()
            for place, column in group.table.columns.items():
                numbers = column[unit.experiments][unit.slots]
                assert members == 1 or place in group.own or (numbers == numbers[..., :1]).all()
        assert sorted(found) == sorted(runs)
        assert [seed for _, seed in found] == sorted(seed for _, seed in found)


LIMITS = {
    "_TOGETHER": [1, 2, 3, 64],
    "_IN_CACHE": [1, 200, 32_768],
    "_BLOCKS": [1, 2, 64],
    "_WORK": [1.0, 1e6, 2e10],
}


@pytest.mark.parametrize(("steps", "slots"), [(10, (16, 4)), (100_000, (4, 1))])
def test_only_blocks_of_light_runs_are_filled_up_far(steps, slots):
    """Where a step costs, three seeds with one value each are no reason to train sixty-four runs."""
    data = [dataclasses.replace(BASE.data, snr=snr) for snr in (0.1, 0.2, 0.3)]
    (program,) = programs_of([dataclasses.replace(BASE, steps=steps, data=one) for one in data])
    (unit,) = many.units(program, np.arange(3), np.arange(3))
    assert program.own and unit.slots.shape[1:] == slots and unit.real.sum() == 3
