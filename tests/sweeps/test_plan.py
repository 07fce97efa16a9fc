"""A plan says everything a sweep will do, and nothing is computed for it."""

import numpy as np
import pytest

import featlab as fl
from featlab.engine import batch
from featlab.sweeps.keys import WIDTH
from featlab.sweeps.plan import Plan

GRID = {"data.n": [3, 4, 9], "data.snr": [0.1, 0.2]}


@pytest.fixture
def experiment():
    return fl.Experiment(
        data=fl.data.SignalNoise(n=4, d=100, snr=0.5),
        network=fl.networks.TwoLayerCNN(width=2),
        algorithm=fl.algorithms.GradientDescent(0.1),
        probes=[fl.probes.train_loss, fl.probes.test_error],
        steps=3,
    )


def test_a_plan_knows_cells_seeds_programs_and_variables(experiment, monkeypatch):
    monkeypatch.setattr(batch, "compute", None)  # nothing may be computed
    plan = Plan.of(experiment, GRID, seeds=[5, 2])
    assert (plan.shape, plan.cells, plan.runs) == ((3, 2), 6, 12) and plan.seeds.tolist() == [5, 2]
    assert str(plan) == "3 x 2 cells x 2 seeds = 12 runs"
    assert {"train_loss", "test_error", "trained", "steps_taken"} <= set(plan.variables)
    assert sum(len(program.table.places) for program in plan.programs) == plan.cells
    assert plan.work > 0


def test_units_cover_every_run_once_and_only_the_cells_that_are_wanted(experiment):
    plan = Plan.of(experiment, GRID, seeds=[5, 2])
    wanted = np.zeros(plan.shape, bool)
    wanted[1, 0] = wanted[2, 1] = True
    for mask, cells in ((None, range(6)), (wanted, [2, 5])):
        places = [plan.places(*one) for one in plan.units(mask)]
        found = sorted((int(cell), int(seed)) for pair in places for cell, seed in zip(*pair))
        assert found == [(cell, seed) for cell in cells for seed in (0, 1)]


def test_runs_have_keys_of_their_own_and_the_same_ones_in_another_plan(experiment):
    plan = Plan.of(experiment, GRID, seeds=2)
    assert plan.keys.shape == (6, 2, WIDTH) and len(np.unique(plan.keys.reshape(-1, WIDTH), axis=0)) == 12
    other = Plan.of(experiment, {"data.snr": [0.2], "data.n": [9, 4]}, seeds=2)
    np.testing.assert_array_equal(other.keys[0], plan.keys[5])


def test_a_plan_is_carried_out_by_sweep(experiment):
    plan = Plan.of(experiment, GRID, seeds=2)
    found, plain = fl.sweep(plan, progress=False), fl.sweep(experiment, GRID, 2, progress=False)
    assert found.identical(plain)
    with pytest.raises(fl.InputError, match="takes a plan, or what a plan is made of"):
        fl.sweep(plan, GRID)


def test_what_cannot_be_is_refused_when_the_plan_is_made(experiment):
    with pytest.raises(fl.InputError, match="needs different seeds"):
        Plan.of(experiment, GRID, seeds=[1, 1])
    with pytest.raises(fl.InputError, match="No probe of this sweep reads 'gamma'"):
        Plan.of(experiment, GRID).check("gamma")
    with pytest.raises(fl.InputError, match="sweep needs a grid"):
        fl.sweep(experiment)
