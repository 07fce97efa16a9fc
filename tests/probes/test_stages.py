"""The stages of sign descent: its update rules, and clocks that say when each is over."""

import numpy as np
import pytest

import featlab as fl
from featlab.probes.stages import StageTimes

ETA, STEPS = 2e-5, 60


def all_products(view):
    """Products of all weights with the signal and the noise, and what the rules need besides."""
    signals, noise = view.problem.products(view.params)
    lengths = abs(view.noise[:, 0]).sum(-1)
    return {"signal": signals[0], "noise": noise[:, 0], "lengths": lengths, "labels": view.training.labels}


@pytest.fixture(scope="module")
def history():
    network = fl.networks.TwoLayerTransformer(head=4, value_neurons=8, init_scale=5e-4)
    experiment = fl.Experiment(
        data=fl.data.SparseSignalNoise(n=5, d=5000, sparsity=10, noise_scale=6.0),
        network=network,
        algorithm=fl.algorithms.SignDescent(ETA),
        probes=[all_products, fl.probes.stages, fl.probes.stage_times],
        steps=STEPS,
        record=fl.probes.every(1),
    )
    return network, fl.run(experiment, seeds=[4], progress=False).isel(seed=0)


def test_a_step_moves_products_as_the_rules_say(history):
    """Supports are disjoint for this seed: each product moves by the same length, in the direction of the rule."""
    network, run = history
    of = network.groups
    signal, noise, y = run.signal.values, run.noise.values, run.labels.values[0][:, None]
    pace = ETA * run.lengths.values[0][:, None]
    moved, moved_signal = np.diff(noise, axis=0) / pace, np.diff(signal, axis=0) / ETA
    q, k = noise[:-1, :, of["query"]], noise[:-1, :, of["key"]]
    q_signal, k_signal = (signal[:-1, None, of[part]] for part in ("query", "key"))
    head = np.repeat([1, -1], network.value_neurons) / network.value_neurons
    v, v_signal = noise[:-1, :, of["value"]] @ head, signal[:-1, of["value"]] @ head
    gain = y[:, 0] * v - v_signal[:, None]
    late = int(run.value_time) + 1
    assert np.all(gain[late:] > 0) and np.all(run.noise_query.values > 0.4)

    def agree(moved, direction, at_least=1.0):
        moved, direction = moved[late:], direction[late:]
        np.testing.assert_allclose(np.abs(moved), 1, atol=0.02)  # float32 of what is 1e-4 of the weights
        assert np.mean(np.sign(moved) == np.sign(direction)) >= at_least

    agree(moved[:, :, of["value"]] * y * np.sign(head), np.ones_like(moved[:, :, of["value"]]))
    agree(moved[:, :, of["query"]], k - y * k_signal)
    # The rules take attention for one half and all slopes of the loss for equal: all but the closest calls.
    agree(moved[:, :, of["key"]], q + y * q_signal, 0.98)
    weights = gain[:, :, None]
    agree(moved_signal[:, of["query"]], np.sum(weights * (y * k - k_signal), axis=1), 0.95)
    agree(moved_signal[:, of["key"]], -np.sum(weights * (y * q + q_signal), axis=1), 0.95)


@pytest.mark.slow
def test_the_clocks_stop_where_the_shares_are_reached(history):
    _, run = history
    for share, time in (("settled", "value_time"), ("aligned", "alignment_time"), ("voted", "vote_time")):
        over = np.flatnonzero(run[share].values >= 0.8)
        assert int(run[time]) == (over[0] if len(over) else -1)
    assert 0 < run.value_time < run.alignment_time and run.vote_time > 0  # few signals: their order is chance
    assert run.noise_query_time == run.signal_query_time == -1
    keys = run.noise.values[..., history[0].groups["key"]]
    moved = np.abs(keys[int(run.value_time)] - keys[0]).mean() / np.abs(keys[0]).mean()
    assert float(run.key_movement) == pytest.approx(moved, rel=1e-4)


@pytest.mark.slow
def test_what_has_no_stages_is_refused():
    with pytest.raises(fl.InputError, match="StageTimes needs a TwoLayerTransformer network, got TwoLayerCNN"):
        fl.testing.example_experiment(probes=[fl.probes.stage_times])
    (network,) = fl.networks.TwoLayerTransformer.examples()
    two = fl.data.XorSignalNoise(n=4, d=40, snr=0.5)
    with pytest.raises(fl.InputError, match="need inputs of one signal y mu and one noise vector"):
        fl.run(fl.testing.example_experiment(data=two, network=network, probes=[fl.probes.stages]), seeds=1)
    with pytest.raises(fl.InputError, match="share"):
        StageTimes(share=0.3)
