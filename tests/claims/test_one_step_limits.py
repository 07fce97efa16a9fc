"""The limits of one gradient step and of random features, at sizes and seeds beyond a claim's laptop size."""

import pytest

from featlab.algorithms import GiantStep
from featlab.claims import Lab, Size
from featlab.claims.judge import student_interval
from featlab.claims.settings import one_step as shared
from featlab.claims.settings.spike_gains import STRONG
from featlab.claims.theorems.mei2022_double_descent import BESIDE, DoubleDescent
from featlab.probes import ridge_errors
from featlab.theory import one_step, random_features

PENALTY = 0.02
pytestmark = [pytest.mark.slow, pytest.mark.gpu]


@pytest.mark.parametrize("name", list(shared.SETTINGS))
def test_explicit_spikes_gain_what_the_formula_says(name):
    setting, lab = shared.SETTINGS[name], Lab(Size(seeds=60), range(60))
    probe = ridge_errors(penalty=(PENALTY,), spikes=(0, 1, 2), count=4000)
    experiment = shared.stated(4000, setting, GiantStep(eta=STRONG), [probe], steps=0)
    read, sizes = lab.run(experiment), shared.proportions(experiment)
    activation = random_features.Activation.of(shared.STUDENT)
    for spikes in (1, 2):
        theory = one_step.gains(*sizes, PENALTY, activation, setting.teacher, spikes)
        for error, gain, margin in zip(("train", "test"), theory, (0.08, 0.1)):
            errors = read[f"ridge_{error}_error"].sel(penalty=PENALTY).values  # (seed, spikes)
            low, high = student_interval((errors[:, 0] - errors[:, spikes]) / gain)
            assert 1 - margin < low and high < 1 + margin, (error, spikes, low, high)


@pytest.mark.parametrize("width", [*BESIDE, 0.95, 1.0, 1.05])
def test_double_descent_follows_its_curve(width):
    claim, lab = DoubleDescent(), Lab(Size(seeds=50), range(50))
    errors = claim._errors(lab, 1500, ratio=width).transpose("seed", "penalty").values
    for i, penalty in enumerate((claim.small_penalty, claim.penalty)):
        law, (low, high) = claim._law(1500, width, penalty), student_interval(errors[:, i], 0.99)
        if width in BESIDE:
            assert abs(errors[:, i].mean() / law - 1) < 0.05
        else:
            assert low <= law <= high
