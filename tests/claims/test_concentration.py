"""The bound of han2025_label_noise, where errors are frequent enough to be counted."""

import math

import numpy as np
import pytest

import featlab as fl
from featlab.engine.batch import train_many
from featlab.probes import concentration

P = fl.probes


@pytest.mark.slow
def test_the_counted_error_lies_below_its_bound_and_the_bound_says_something():
    def made(strength):
        return fl.Experiment(
            data=fl.data.SignalNoise(n=20, d=200, snr=math.sqrt(strength / 20), noise_scale=200**-0.5),
            network=fl.networks.TwoLayerCNN(width=8, init_scale=1e-4),
            algorithm=fl.algorithms.GradientDescent(2.0),
            probes=[P.test_error(count=4000).on(P.at_end), concentration.on(P.at_end)],
            steps=40,
        )

    strengths, seeds = np.repeat([0.3, 1.0, 3.0], 8), np.tile(np.arange(8), 3)
    read = train_many([made(float(one)) for one in strengths], seeds.tolist())
    error, bound = read["clean_test_error"], np.exp(-read["concentration"])
    counted = error + 3 * np.sqrt(error * (1 - error) / 4000)  # Monte Carlo, either way
    assert (error - (counted - error) <= bound).all()
    assert (error > 0.01).sum() >= 4 and ((bound < 0.5) & (error > 0)).sum() >= 4  # there was something to bound
    assert not (error <= bound**8).all()  # a bound much stronger would be seen to be false
