"""An output that is no number is never a right answer, in any probe that counts errors."""

import jax.numpy as jnp
import numpy as np
import pytest

import featlab as fl
from featlab.engine.batch import train_many
from featlab.probes.risk import wrong

P = fl.probes


def test_an_output_that_is_no_number_is_never_a_right_answer():
    np.testing.assert_array_equal(wrong(jnp.array([1.0, -1.0, 0.0, jnp.nan])), [0.0, 1.0, 1.0, jnp.nan])


def no_number(z):
    return jnp.nan * z


SIGNALS = fl.data.SignalNoise(n=4, d=30, snr=0.5)
CNN = fl.networks.TwoLayerCNN(width=2, activation=no_number)
PATTERNS = fl.data.PatternDictionary(n=8, d=10, patterns=10, relevant=3)
BROKEN = fl.networks.TruncatedReLU(width=40, head_scale=3e38)  # beyond float32: inf - inf
WHOLE = fl.networks.TruncatedReLU(width=4)


@pytest.mark.parametrize(
    "data, network, probe, names",
    [
        (SIGNALS, CNN, P.train_error, ["train_error"]),
        (SIGNALS, CNN, P.test_error(count=50), ["test_error", "clean_test_error"]),
        (SIGNALS, CNN, P.spurious_test_error, ["spurious_test_error"]),
        (PATTERNS, BROKEN, P.pattern_errors(count=50), ["pattern_error"]),
        (PATTERNS, WHOLE, P.head_errors(count=50, fitted=50, penalty=-1.0), ["head_error"]),
        (PATTERNS, WHOLE, P.fixed_head_errors(count=50, fitted=50, penalty=-1.0), ["fixed_error"]),
    ],
    ids=["train", "test", "spurious", "patterns", "head", "fixed head"],
)
def test_errors_of_such_outputs_are_none(data, network, probe, names):
    experiment = fl.Experiment(
        data=data,
        network=network,
        algorithm=fl.algorithms.GradientDescent(1.0),
        probes=[probe.on(P.at_end)],
        steps=0,
    )
    read = train_many([experiment], [3])
    for name in names:
        assert np.isnan(read[name]).all(), (name, read)
