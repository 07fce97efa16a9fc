"""Exponents outside claims: powers that are known, and questions that have no answer."""

import numpy as np
import pytest
import xarray as xr

import featlab as fl
from featlab.claims.intervals import mean_interval

N = np.array([64.0, 128.0, 256.0, 512.0])


def thresholds(power=-0.5, spread=0.05, seeds=12, levels=(0.1, 0.2)):
    """As `fl.boundary` returns them: y = c x^power with a power of each seed's own."""
    own = power + spread * np.random.default_rng(0).standard_normal(seeds)
    y = np.stack([level * N[:, None] ** own for level in levels])
    return (
        xr.Dataset(
            {"snr": (["level", "n", "seed"], y), "trained": (["n", "seed"], np.ones((len(N), seeds), bool))},
            {"level": list(levels), "n": N, "seed": range(seeds)},
        ),
        own,
    )


def test_the_exponent_is_the_mean_over_seeds_with_the_judges_interval():
    found, own = thresholds()
    read = fl.exponent(found)
    assert read.exponent.dims == ("level",) and list(read.seeds) == [12, 12]
    np.testing.assert_allclose(read.exponent, own.mean(), rtol=1e-12)
    np.testing.assert_allclose([read.low[1], read.high[1]], mean_interval(own), rtol=1e-12)
    np.testing.assert_allclose(read.local, own.mean(), rtol=1e-12)
    np.testing.assert_allclose(read.drift, 0, atol=1e-12)
    np.testing.assert_allclose(read.n_between, np.sqrt(N[1:] * N[:-1]))
    assert read.attrs == {"variable": "snr", "along": "n"}


def test_sizes_need_no_order_and_drift_is_told():
    found, _ = thresholds(spread=0)
    bent = found.snr * xr.DataArray(np.array([1, 1, 1, 2.0]), dims="n")
    read = fl.exponent(bent.isel(n=[2, 0, 3, 1]))
    np.testing.assert_allclose(read.local[0], [-0.5, -0.5, 0.5], rtol=1e-9)
    np.testing.assert_allclose(read.drift[0], 1.0, rtol=1e-9)


def test_a_seed_without_a_value_or_an_untrained_one_does_not_count():
    found, own = thresholds()
    found.snr[0, 1, 3] = np.nan
    found.trained[2, 5] = False
    read = fl.exponent(found)
    assert list(read.seeds) == [10, 11]
    np.testing.assert_allclose(read.exponent[0], np.delete(own, [3, 5]).mean(), rtol=1e-12)


def test_a_drift_that_all_seeds_share_has_a_narrow_interval():
    found, _ = thresholds(spread=0)
    bent = found.snr * xr.DataArray(np.array([1, 1, 1, 2.0]), dims="n")
    read = fl.exponent(bent).isel(level=0)
    np.testing.assert_allclose([read.drift_low, read.drift_high], read.drift, rtol=1e-9)


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda found: fl.exponent(found, "d"), "one of .'n'."),
        (lambda found: fl.exponent(found.assign(other=found.snr)), "needs variable="),
        (lambda found: fl.exponent(found, variable="snrr"), "one of snr"),
        (lambda found: fl.exponent(found.snr.isel(seed=0, drop=True)), "needs the dim seed"),
        (lambda found: fl.exponent([1, 2]), "got list"),
        (lambda found: fl.exponent(found.where(found.seed < 0)), "no seed that has a positive value"),
        (lambda found: fl.exponent(-found.snr), "no seed that has a positive value"),
        (lambda found: fl.exponent(found.snr.astype(complex)), "'snr' holds complex128"),
        (lambda found: fl.exponent(found.assign_coords(n=list("abcd"))), "'n' holds str"),
        (lambda found: fl.exponent(found.assign_coords(n=-found.n)), "two different positive sizes"),
        (lambda found: fl.exponent(found.isel(n=[0])), "along="),
    ],
)
def test_what_has_no_exponent_is_refused_in_a_sentence(ask, sentence):
    with pytest.raises(fl.InputError, match=sentence) as told:
        ask(thresholds()[0])
    assert len(str(told.value)) < 300


def test_boundary_takes_a_number_of_seeds_as_its_kin_do():
    def make(n, snr):
        return fl.Experiment(
            data=fl.data.SignalNoise(n=n, d=1e4, snr=snr, noise_scale=0.01),
            network=fl.networks.TwoLayerCNN(width=4, activation=fl.networks.relu_power(3), init_scale=0.05),
            algorithm=fl.algorithms.GradientDescent(5.0),
            probes=[fl.probes.test_loss(count=200).on(fl.probes.at_end)],
            steps=60,
        )

    options = {"over": {"n": (8, 16)}, "between": lambda n: (0.05, 5.0), "tolerance": 0.2}
    by_number = fl.boundary(make, "snr", "test_loss", 0.35, seeds=3, **options)
    by_list = fl.boundary(make, "snr", "test_loss", 0.35, seeds=[0, 1, 2], **options)
    assert by_number.equals(by_list) and list(by_number.seed) == [0, 1, 2]
    assert fl.exponent(by_number).seeds.item() <= 3
    with pytest.raises(fl.InputError, match=r"boundary\(seeds=\)"):
        fl.boundary(make, "snr", "test_loss", 0.35, seeds=0, **options)
