"""What the claims on one step take for granted: a student without c_4 and c_5, strong spikes, rates told apart."""

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose

from featlab.claims import find_claim
from featlab.claims.settings import one_step as shared
from featlab.claims.settings import spike_gains
from featlab.claims.theorems.moniri2023_train_error import LARGE, LIMITS
from featlab.theory import hermite, one_step, random_features


def test_the_waves_have_three_coefficients_and_not_the_next_two():
    c = hermite.coefficients(shared.WAVES, 5)
    assert_allclose(c[[0, 4, 5]], 0, atol=1e-9)
    assert_allclose(c[[1, 2, 3]], [1.804, -0.3217, -0.1072], rtol=1e-3)


@pytest.mark.parametrize("name", list(spike_gains.SETTINGS))
def test_explicit_spikes_may_pass_for_infinitely_strong(name):
    gains = spike_gains.Gains("train", 0.02, 0.5, 0.4, 16)
    experiment, student = gains.explicit(1500, name), spike_gains.student(name)
    step = one_step.Step.of(student, experiment.algorithm.eta, 600)
    spikes = 3 if name == spike_gains.CUBIC else 2
    known = (*shared.proportions(experiment), 0.02, random_features.Activation.of(student))
    teacher = spike_gains.SETTINGS[name].teacher
    strong = one_step.gains(*known, teacher, spikes, step)
    assert_allclose(strong, one_step.gains(*known, teacher, spikes), rtol=0.01)


@pytest.mark.parametrize("which, share", [(0, 0.97), (1, 1.02)])
def test_a_step_with_a_large_constant_is_worth_nearly_what_the_limit_is(which, share):
    claim = find_claim("moniri2023_train_error")
    teacher, alpha, spikes = LIMITS[which]
    finite = claim.gains.formula(1500, teacher, spike_gains.SPIKES_OF_A_STEP, alpha, LARGE)
    assert finite / claim.gains.formula(1500, teacher, spikes) == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("power, status", [(-0.5, "supported"), (-0.25, "refuted")])
def test_a_gap_to_rank_one_that_falls_too_slowly_is_refuted(power, status):
    claim, n = find_claim("moniri2023_rank_one"), np.array([200.0, 400, 800, 1600, 3200])
    noise = np.random.default_rng(0).normal(size=(5, 32))
    gaps = xr.DataArray(n[:, None] ** power * np.exp(0.05 * noise), dims=("n", "seed"), coords={"n": n})
    assert claim._falls(xr.Dataset({"rank_one_gap": gaps})).status() == status
    slower = gaps * np.log(gaps.n) ** 1.5
    assert claim._falls(xr.Dataset({"rank_one_gap": slower})).status() != "supported"
