"""Double descent of random features: errors against N/n, with a peak at N = n that the penalty smooths.

python examples/double_descent.py --out out/double_descent
python examples/double_descent.py --n 6000 --seeds 2    # d = 2000, N up to 30000: for a GPU

Ridge regression on N random features of n samples, for three penalties at once, beside the exact limit (Mei and
Montanari, 2022; Adlam and Pennington, 2020). Each width is a program of its own, so most of the time of a small
run goes into compiling.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import xarray as xr

import featlab as fl
from featlab.theory import one_step, random_features

PENALTIES = (1e-5, 1e-3, 1e-1)
RATIOS = (0.1, 0.3, 0.6, 0.85, 1.0, 1.2, 1.7, 3.0, 5.0)  # N/n
STUDENT = fl.networks.centred(fl.networks.relu)


def experiment(n: int, width: int) -> fl.Experiment:
    """Random features under a head that ridge regression fits."""
    return fl.Experiment(
        data=fl.data.SingleIndex(n, n // 3, link=fl.networks.hermite_series((0, 1, 0.5)), label_noise=0.5),
        network=fl.networks.RandomFeatures(width, STUDENT),
        algorithm=fl.algorithms.Ridge(PENALTIES[0]),
        objective=fl.objectives.squared,
        probes=[fl.probes.ridge_errors(penalty=PENALTIES, holdout=0, count=4000).on(fl.probes.at_end)],
        steps=0,  # the probe does what the algorithm would, for all penalties
        precision=64,
    )


def law(one: fl.Experiment) -> np.ndarray:
    """The theory's test error for each penalty."""
    teacher = one_step.Teacher.of(one.data.link, one.data.label_noise)
    phi, psi = random_features.proportions(one.data.n, one.data.d, one.network.width)
    powers = teacher.coefficients[0] ** 2, teacher.nonlinear + teacher.noise
    return random_features.errors(phi, psi, np.array(PENALTIES), random_features.Activation.of(STUDENT), *powers)[
        1
    ]


def main(out: Path, seeds: int, n: int) -> Path:
    """Run, print, draw, and return where the figure is."""
    widths = [round(ratio * n) for ratio in RATIOS]
    print("    N   " + "   ".join(f"test error at lambda = {penalty:g}, theory" for penalty in PENALTIES))
    runs = []
    for width in widths:
        one = experiment(n, width)
        runs.append(fl.run(one, seeds, block=1))  # a seed at a time, so that large sizes fit
        mean = runs[-1].ridge_test_error.mean("seed").values
        print(f"{width:5d}   " + "   ".join(f"{a:28.4f}  {b:7.4f}" for a, b in zip(mean, law(one))))
    figure = fl.plots.double_descent(xr.concat(runs, "width").assign_coords(width=widths))
    fl.plots.save(figure, out / "double_descent.svg")
    return fl.plots.save(figure, out / "double_descent.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/double_descent"), help="folder to write to")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--n", type=int, default=300, help="samples; d = n/3, N from n/10 to 5n")
    given = parser.parse_args()
    try:
        print(main(given.out, given.seeds, given.n))
    except fl.InputError as error:
        parser.error(str(error))
