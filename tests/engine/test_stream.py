"""Training that is watched gives the numbers of a run, from programs that serve many settings."""

import dataclasses

import numpy as np
import pytest

import featlab as fl
from featlab import probes as P
from featlab.engine.stream import live


def experiment(n=12, snr=0.6, steps=40):
    return fl.Experiment(
        data=fl.data.SignalNoise(n=n, d=1e6, snr=snr, noise_scale=1e-3, label_flip=0.1),
        network=fl.networks.TwoLayerCNN(width=4, init_scale=1e-3),
        algorithm=fl.algorithms.GradientDescent(2.0),
        probes=[P.train_loss, P.test_loss, P.coefficients],
        steps=steps,
        record=P.geometric(10),
    )


def test_moments_are_those_of_a_run_whatever_n_and_steps():
    first = list(live(experiment(), 3, moments=10, at_once=4))  # whose program is used again
    one = experiment(n=9, snr=0.3, steps=33)
    parts, history = list(live(one, 3, moments=10, at_once=4)), fl.run(one, 3, progress=False)
    steps = np.concatenate([part.steps for part in parts])
    assert (steps == history.step.values).all() and max(len(part.steps) for part in parts) == 4
    assert first[-1].steps[-1] == 40
    for name in ("train_loss", "test_loss"):
        seen = np.concatenate([part.readings[name] for part in parts])
        np.testing.assert_allclose(seen.T, history[name], atol=2e-5)
    rho = np.concatenate([part.readings["rho"] for part in parts])
    np.testing.assert_allclose(rho.T, abs(history.rho).max(["class", "filter", "sample"]), atol=1e-4)


@pytest.mark.slow
def test_it_ends_where_all_runs_have_reached_their_level():
    one = dataclasses.replace(experiment(), steps=P.until(P.train_loss, 0.6, at_most=400))
    parts = list(live(one, 2, moments=30))
    stopped = fl.run(one, 2, progress=False).stopped_at.values
    assert not parts[-1].live and all(part.live for part in parts[:-1])
    assert parts[-2].steps[-1] < stopped.max() <= parts[-1].steps[-1]
    assert (parts[-1].readings["train_loss"][-1] <= 0.6).all()


def test_padding_is_no_part_of_what_is_read():
    """Three samples in four rows: the fourth is no sample, whatever its margin would be."""
    experiment = fl.Experiment(
        data=fl.data.SignalNoise(n=3, d=40, snr=0.5),
        network=fl.networks.TwoLayerCNN(width=2),
        algorithm=fl.algorithms.GradientDescent(0.5),
        probes=[fl.probes.margins],
        steps=4,
    )
    (*_, last) = live(experiment, 16, moments=3)
    plain = fl.run(experiment, seeds=16, progress=False)["margin"].isel(step=-1)
    np.testing.assert_allclose(last.readings["margin"][-1], np.abs(plain).max("sample"), rtol=1e-5)
