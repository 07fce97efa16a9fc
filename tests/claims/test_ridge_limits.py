"""How near the deterministic equivalent of ridge regression is, and that its error falls as 1/n."""

import numpy as np
import pytest

import featlab as fl
from featlab.claims.judge import student_interval
from featlab.engine.batch import train_many
from featlab.theory import ridge

pytestmark = pytest.mark.slow

NOISE = 0.5  # sigma
N, D = 200, 2000
DECAYS = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
PENALTIES = (0.0, 1e-5, 1e-4, 1e-3, 3e-3)
RANK = 16  # the least effective rank of a cell


def simulated(decay, n, d, penalties, seeds):
    """The exact risk given the inputs, (seed, penalty)."""
    experiment = fl.Experiment(
        data=fl.data.LinearRegression(
            n, d, spectrum=fl.data.power_law(decay), target=fl.data.power_law(2.0), label_noise=NOISE
        ),
        network=fl.networks.TwoLayerLinear(diagonal=True),
        algorithm=fl.algorithms.GradientDescent(1.0),
        objective=fl.objectives.squared,
        probes=[fl.probes.ridge_risk(penalty=penalties).on(fl.probes.at_end)],
        steps=0,
        precision=64,
    )
    return train_many([experiment] * len(seeds), seeds)["ridge_risk"]


def equivalent(decay, n, d, penalty):
    """The risk, and the effective rank sum_j lambda_j / (lambda_j + kappa)."""
    j = np.arange(1.0, d + 1)
    found = ridge.risk(j**-decay, j**-2.0, n, penalty, NOISE**2)
    return found.total, np.sum(1 / (1 + found.kappa * j**decay))


@pytest.mark.parametrize("decay", DECAYS)
def test_the_equivalent_is_within_two_percent(decay):
    """Thirty cells in all; the mean over a hundred draws has a standard error of a third of that or less."""
    risks = simulated(decay, N, D, PENALTIES, range(100))
    for i, penalty in enumerate(PENALTIES):
        said, rank = equivalent(decay, N, D, penalty)
        ratios = risks[:, i] / said
        assert rank >= RANK
        assert ratios.std(ddof=1) / 10 < 0.02 / 3
        assert abs(ratios.mean() - 1) < 0.02, (penalty, rank, ratios.mean())


def test_the_error_of_the_equivalent_falls_as_one_over_n():
    """n (ratio - 1) is one number, and not 0; were the error another power of n, it would double or halve."""
    sizes, penalty, d = (16, 32, 64), 1e-3, 300
    ratios = [
        simulated(2.0, n, d, (penalty,), range(3000))[:, 0] / equivalent(2.0, n, d, penalty)[0] for n in sizes
    ]
    gaps = [n * (one - 1) for n, one in zip(sizes, ratios)]
    common = np.mean([gap.mean() for gap in gaps])
    for gap in gaps:
        low, high = student_interval(gap, 0.99)
        assert 0 < low <= common <= high, (common, low, high)
        assert not low <= common / 2 and not high >= 2 * common
