"""The staircase of one gradient step: errors of ridge regression against the exponent of the step size.

python examples/staircase.py --out out/staircase
python examples/staircase.py --n 20000 --seeds 3    # d = 10000, N = 8000: for a GPU

Two teachers of equal power (Moniri, Lee, Hassani and Dobriban, 2023): y = H1 + noise gains from the first spike
alone, y = H1 + H2/sqrt 2 from the second as well. Measured errors are set against the theory for spikes as strong
as this n makes them, and drawn beside the staircase of the limit.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import xarray as xr

import featlab as fl
from featlab.theory import one_step, random_features

PENALTY = 0.01
ALPHAS = np.linspace(-0.08, 0.44, 14).round(2)
STUDENT = fl.networks.centred(fl.networks.relu)
SETTINGS = {
    r"$y = H_1 + \varepsilon$": ((0, 1, 0), 1.0),
    r"$y = H_1 + H_2/\sqrt{2}$": ((0, 1, 1 / math.sqrt(2)), 0.0),
}


def experiment(n: int, coefficients: tuple[float, ...], noise: float) -> fl.Experiment:
    """One step of the centred network, then ridge regression on fresh samples."""
    return fl.Experiment(
        data=fl.data.SingleIndex(n, n // 2, link=fl.networks.hermite_series(coefficients), label_noise=noise),
        network=fl.networks.TwoLayer(width=2 * n // 5, activation=STUDENT, centred=True),
        algorithm=fl.algorithms.GiantStep(alpha=0.0),
        objective=fl.objectives.squared,
        probes=[fl.probes.ridge_errors(penalty=(PENALTY,), count=4000).on(fl.probes.at_end)],
        steps=1,
        precision=64,
    )


def over_alpha(one: fl.Experiment, seeds: int) -> xr.Dataset:
    """The errors for every exponent; a seed at a time, so that large sizes fit."""
    steps = [replace(one, algorithm=fl.algorithms.GiantStep(alpha=alpha)) for alpha in ALPHAS]
    return xr.concat([fl.run(step, seeds, block=1) for step in steps], "alpha").assign_coords(alpha=ALPHAS)


def law(one: fl.Experiment, alpha: float) -> tuple[float, float]:
    """What the theory says of this step: training and test error."""
    data, width = one.data, one.network.width
    step = one_step.Step.of(STUDENT, data.n**alpha, width)
    teacher = one_step.Teacher.of(data.link, data.label_noise)
    sizes = random_features.proportions(data.n, data.d, width)
    return one_step.errors_after(*sizes, PENALTY, random_features.Activation.of(STUDENT), teacher, 4, step)


def main(out: Path, seeds: int, n: int) -> Path:
    """Run, print, draw, and return where the figure is."""
    found = {}
    for label, setting in SETTINGS.items():
        one = experiment(n, *setting)
        found[label] = over_alpha(one, seeds)
        means = found[label][["ridge_train_error", "ridge_test_error"]].mean(["seed", "penalty"])
        print(f"{label}\n  alpha   training error, theory      test error, theory")
        for alpha, train, test in zip(ALPHAS, means.ridge_train_error.values, means.ridge_test_error.values):
            said = law(one, alpha)
            print(f"  {alpha:5.2f}   {train:14.4f}  {said[0]:6.4f}   {test:13.4f}  {said[1]:6.4f}")
    figure = fl.plots.staircase(found)
    fl.plots.save(figure, out / "staircase.svg")
    return fl.plots.save(figure, out / "staircase.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/staircase"), help="folder to write to")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--n", type=int, default=1000, help="samples; d = n/2, N = 2n/5")
    given = parser.parse_args()
    try:
        print(main(given.out, given.seeds, given.n))
    except fl.InputError as error:
        parser.error(str(error))
