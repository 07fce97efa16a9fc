"""A GPU gives the CPU's numbers: the draws are the same bits, the rest differs by rounding."""

import jax
import numpy as np
import pytest
from scipy import stats

import featlab as fl

pytestmark = pytest.mark.gpu

P = fl.probes


@pytest.fixture
def cpu_and_gpu():
    if jax.default_backend() == "cpu":
        pytest.skip("there is no GPU here")
    return jax.devices("cpu")[0], jax.devices()[0]


def experiment(**changes):
    base = dict(
        data=fl.data.SignalNoise(n=40, d=1e6, snr=0.2, noise_scale=1e-3, label_flip=0.1),
        network=fl.networks.TwoLayerCNN(width=8, init_scale=0.01),
        algorithm=fl.algorithms.GradientDescent(1.0),
        probes=[P.coefficients, P.train_loss, P.test_error],
        steps=300,
        record=P.every(50),
    )
    return fl.Experiment(**{**base, **changes})


@pytest.mark.parametrize("start", [{}, {"uniform_start": True, "bias": True}], ids=["gaussian", "uniform"])
def test_the_same_seeds_agree(cpu_and_gpu, start):
    histories = []
    for device in cpu_and_gpu:
        with jax.default_device(device):
            network = fl.networks.TwoLayerCNN(width=8, init_scale=0.01, **start)
            histories.append(fl.run(experiment(network=network, precision=64), seeds=4))
    for name in ("gamma", "rho", "train_loss"):
        np.testing.assert_allclose(histories[0][name], histories[1][name], atol=1e-6, err_msg=name)


def test_other_seeds_agree_in_law(cpu_and_gpu):
    histories = []
    for device, seeds in zip(cpu_and_gpu, (range(300), range(1000, 1300))):
        with jax.default_device(device):
            histories.append(fl.run(experiment(record=P.every(300)), seeds=seeds).isel(step=-1))
    one, two = histories
    rest = ["class", "filter"]
    pairs = [
        (one.gamma.max(rest), two.gamma.max(rest)),
        (one.rho.max([*rest, "sample"]), two.rho.max([*rest, "sample"])),
        (one.train_loss, two.train_loss),
        (one.clean_test_error, two.clean_test_error),
    ]
    assert min(stats.ks_2samp(a.values, b.values).pvalue for a, b in pairs) > 1e-4
