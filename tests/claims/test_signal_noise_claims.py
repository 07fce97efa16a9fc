"""The claims on signal and noise, handed the numbers that their theorems predict, and slightly other ones."""

import numpy as np
import pytest
import xarray as xr

from featlab.claims import Lab, Size, find_claim
from featlab.claims.settings.kou import signal_at
from featlab.theory import signal_noise as theory

SEEDS = range(24)
DRAW = np.random.default_rng(0)
JITTER = 1 + 0.002 * DRAW.normal(size=len(SEEDS))
STARTS = DRAW.normal(size=(len(SEEDS), 2, 32))
NOISE_STARTS = DRAW.normal(size=(len(SEEDS), 2, 32, 1))


class Told(Lab):
    """A lab that is told what a run reads, and trains nothing."""

    def __init__(self, size, read):
        super().__init__(size, SEEDS)
        self._told = read

    def _read(self, experiment):
        self.deciding.append(experiment)
        return xr.Dataset(self._told(experiment), {"seed": list(SEEDS)})


def statuses(claim, read, checks=None, **size):
    lab = Told(Size(len(SEEDS), **(claim.sizes["laptop"].values | size)), read)
    found = list((checks or (lambda lab: claim.checks(lab)))(lab))
    assert all(check.samples.shape[1] in (1, len(SEEDS)) for check in found)
    return {check.name: check.status(250) for check in found}


def strength_of(data):
    return theory.strength(data.n, data.signal_norm, data.noise_scale, data.d)


def test_the_signal_has_the_strength_that_is_asked_for():
    for n, d in ((64, 1e6), (1024, 1e9)):
        assert theory.strength(n, signal_at(3.0, n, d), 1.0, d) == pytest.approx(3.0)


@pytest.mark.parametrize("constant, status", [(3.5, "supported"), (4.5, "refuted")])
def test_an_error_is_held_against_its_bound(constant, status):
    def read(experiment):
        error = np.exp(-strength_of(experiment.data) / constant) * JITTER
        observed = experiment.data.test_flip * JITTER
        return {"clean_test_error": ("seed", error), "test_error": ("seed", observed)}

    found = statuses(find_claim("kou2023_error_decay"), read)
    assert found.pop("error / exp(-X/4)") == found.pop("local slope of -log error in X") == status
    assert set(found.values()) == {"supported"}


@pytest.mark.parametrize("constant, status", [(50.0, "supported"), (75.0, "refuted")])
def test_the_error_on_exclusive_or_is_held_against_its_bound(constant, status):
    claim = find_claim("meng2024_xor")

    def read(experiment):
        clean = np.exp(-strength_of(experiment.data) / constant) * JITTER
        flip = experiment.data.test_flip
        return {"clean_test_error": ("seed", clean), "test_error": ("seed", flip + clean)}

    found = statuses(claim, read, claim._sides)
    assert found.pop("benign side: error beyond p over exp(-X / C_2)") == status
    assert set(found.values()) == {"supported"}


@pytest.mark.parametrize("faster, status", [(1.0, "supported"), (1.5, "refuted")])
def test_times_and_rates_are_those_of_the_equation(faster, status):
    def read(experiment):
        data, network, signal = experiment.data, experiment.network, experiment.data.snr > 1
        power, length = getattr(network.activation, "power", 1), data.noise_scale * np.sqrt(data.d)
        rate, norm = faster * experiment.algorithm.learning_rate, data.snr * length
        common = {"learning_rate": rate, "width_scale": 1 / network.width, "power": power}
        if signal:
            starts = network.init_scale * norm * STARTS
            rate, largest = (
                theory.early_signal_rate(signal_norm=norm, **common),
                np.maximum(starts[:, 0], -starts[:, 1]),
            )
        else:
            starts = network.init_scale * length * NOISE_STARTS
            rate, largest = theory.early_noise_rate(noise_norm=length, n=data.n, **common), starts[:, 0, :, 0]
        line = ("seed", experiment.last_step * rate * JITTER)
        time = theory.blow_up_time(np.max(largest, axis=1), rate, power)
        grown = {} if power == 1 else {"grown": ("seed", time * JITTER)}
        classes = {"signal_learnt": line, "noise_memorised": line} | grown
        products = xr.DataArray(starts, dims=("seed", "class", "filter", "sample")[: starts.ndim])
        name = "signal_product_at_start" if signal else "noise_product_at_start"
        return classes | {name: products.assign_coords({"class": [1, -1]})}

    found = statuses(find_claim("growth_laws"), read)
    over = {found.pop(name) for name in list(found) if " over " in name}
    assert over == {status} and set(found.values()) == {"supported"}


@pytest.mark.parametrize("power", [3, 4])
def test_what_is_learnt_far_from_the_threshold_is_held_against_the_loss_and_the_start(power):
    claim = find_claim("cao2022_phase")

    def read(experiment):
        data, loss = experiment.data, experiment.steps.level
        far = data.n * data.snr**power / 2
        above = far == pytest.approx({3: 16, 4: 32}[power])
        assert above or far == pytest.approx(1 / 16)
        grown = (-32 * np.log(np.expm1(loss))) ** (1 / power) * JITTER  # one filter in 32 does it all
        rest = 0.3 * experiment.network.init_scale * (1.0 if above else data.snr) * JITTER
        gamma, rho = (grown, rest) if above else (rest, grown)
        return {
            "train_loss": ("seed", loss * np.ones(len(SEEDS))),
            "test_loss": ("seed", (loss if above else 0.69) * JITTER),
            "gamma_most": ("seed", gamma),
            "signal_learnt_least": ("seed", gamma),
            "rho_own_most": ("seed", rho),
            "rho_other_least": ("seed", -rho / 2),
        }

    found = statuses(claim, read, lambda lab: claim._sides(lab, power))
    assert len(found) == 7 and set(found.values()) == {"supported"}


@pytest.mark.parametrize("exponent, status", [(7 / 16, "supported"), (1 / 4, "refuted"), (1.0, "refuted")])
def test_the_test_loss_of_attention_is_held_against_a_power_of_the_training_loss(exponent, status):
    claim = find_claim("jiang2024_transformer")

    def read(experiment):
        output = -np.log(np.expm1(experiment.steps.level))
        return {"test_loss": ("seed", np.log1p(np.exp(-exponent * output)) * JITTER)}

    (found,) = statuses(claim, read, lambda lab: [claim._of_epsilon(lab)]).values()
    assert found == status
