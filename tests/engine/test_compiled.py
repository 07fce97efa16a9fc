"""A process never comes near Linux's limit of memory maps, however many shapes it trains."""

import dataclasses

import jax
import numpy as np
import pytest

import featlab as fl
from featlab.engine import compiled
from featlab.engine.batch import train_many

P = fl.probes


def experiment(n, steps=2):
    return fl.Experiment(
        data=fl.data.SignalNoise(n=n, d=50, snr=0.5),
        network=fl.networks.TwoLayerCNN(width=2),
        algorithm=fl.algorithms.GradientDescent(0.1),
        probes=[P.train_loss.on(P.at_end)],
        steps=steps,
    )


@pytest.fixture
def forgotten(monkeypatch):
    """How often all programs were forgotten."""
    times = []
    monkeypatch.setattr(jax, "clear_caches", lambda: times.append(1))
    monkeypatch.setattr(compiled, "_compiled", [0, 0])
    return times


def test_programs_are_forgotten_once_there_are_too_many(monkeypatch, forgotten):
    fl.run(experiment(3), 1, progress=False)
    fl.run(experiment(4), 1, progress=False)
    assert not forgotten  # far from the limit
    monkeypatch.setattr(compiled, "_SHARE", 0.0)
    fl.run(experiment(4), 1, progress=False)
    assert len(forgotten) == 1
    fl.run(experiment(4), 1, progress=False)  # nothing was compiled since: nothing is counted
    assert len(forgotten) == 1


def test_without_memory_maps_to_count_programs_are_counted(monkeypatch, forgotten, tmp_path):
    monkeypatch.setattr(compiled, "_MAPS", tmp_path / "maps")
    monkeypatch.setattr(compiled, "MOST_PROGRAMS", 3)
    fl.run(experiment(5), 1, progress=False)
    fl.run(experiment(6), 1, progress=False)
    assert len(forgotten) == 1


@pytest.mark.slow
def test_eighty_shapes_in_one_process_hold_no_more_maps_than_thirty():
    if not compiled._MAPS.exists():
        pytest.skip("there are no memory maps to count here")
    most = 0
    for n in range(3, 83):
        fl.run(experiment(n), 1, progress=False)
        most = max(most, len(compiled._MAPS.read_bytes().splitlines()))
    assert most < 0.4 * int(compiled._LIMIT.read_text())


def staged(first, steps):
    """Two stages; the loss may end the run in the second alone."""
    one = fl.algorithms.Then(fl.algorithms.SAM(0.1, 0.1), first, fl.algorithms.GradientDescent(0.2))
    level = P.until(P.train_loss, 0.2, at_most=steps, after=first)
    return dataclasses.replace(experiment(5), algorithm=one, steps=level)


@pytest.mark.parametrize("train", [lambda one: fl.run(one, 2, progress=False), lambda one: train_many([one], [0])])
def test_other_numbers_of_steps_need_no_new_program(train):
    """Neither the last step, nor those of stages."""
    jax.clear_caches()  # so that there is room for these few, whatever ran before
    train(staged(3, 40))
    before = compiled._compiled[0]
    found = train(staged(7, 60))
    assert compiled._compiled[0] == before
    jax.clear_caches()
    again = train(staged(7, 60))
    assert compiled._compiled[0] > before
    assert np.array_equal(found["train_loss"], again["train_loss"])
    assert np.array_equal(found["steps_taken"], again["steps_taken"])
