"""The spectrum of features before and after one gradient step: a bulk, and a spike for each power that was learnt.

python examples/spectrum.py --out out/spectrum
python examples/spectrum.py --n 20000 --seeds 1    # d = 10000, N = 8000: for a GPU

Steps of size n^alpha with alpha = -0.2, 0.2 and 0.3 leave 0, 1 and 2 singular values beyond the bulk, whose edge
the theory of random features knows. The figure shows the last of them. The teacher is y = H1 + H2/sqrt 2.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path

import xarray as xr

import featlab as fl
from featlab.theory import one_step, random_features

ALPHAS = (-0.2, 0.2, 0.3)
STUDENT = fl.networks.centred(fl.networks.relu)


def experiment(n: int) -> fl.Experiment:
    """One step of the centred network, and the features of fresh samples."""
    return fl.Experiment(
        data=fl.data.SingleIndex(n, n // 2, link=fl.networks.hermite_series((0, 1, 1 / math.sqrt(2)))),
        network=fl.networks.TwoLayer(width=2 * n // 5, activation=STUDENT, centred=True),
        algorithm=fl.algorithms.GiantStep(alpha=0.0),
        objective=fl.objectives.squared,
        probes=[fl.probes.feature_spectrum],
        steps=1,
        precision=64,
    )


def report(alpha: float, found: xr.Dataset, edge: float) -> None:
    """Outliers of every seed beside what the theory says."""
    values = found.feature_singular_value.isel(step=-1).transpose("seed", ...).values
    counts = found.feature_outliers.isel(step=-1).values
    said, start = one_step.spikes_at(alpha), float(found.untrained_edge.mean())
    print(f"alpha = {alpha:g}: {counts.tolist()} outliers, theory {said}; edge {start:.4f}, theory {edge:.4f}")
    for seed, (count, row) in enumerate(zip(counts, values)):
        print(
            f"  seed {seed}: " + ", ".join(f"{value:.3f}" for value in row[: count + 1]) + " (the last is inside)"
        )


def main(out: Path, seeds: int, n: int) -> Path:
    """Run, print, draw, and return where the figure is."""
    one = experiment(n)
    sizes = random_features.proportions(n, one.data.d, one.network.width)
    edge = random_features.edge(*sizes, random_features.Activation.of(STUDENT))
    for alpha in ALPHAS:
        step = replace(one, algorithm=fl.algorithms.GiantStep(alpha=alpha))
        found = fl.run(step, seeds, block=1)  # a seed at a time, so that large sizes fit
        report(alpha, found, edge)
    figure = fl.plots.spectrum(found)
    fl.plots.save(figure, out / "spectrum.svg")
    return fl.plots.save(figure, out / "spectrum.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/spectrum"), help="folder to write to")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--n", type=int, default=1500, help="samples; d = n/2, N = 2n/5")
    given = parser.parse_args()
    try:
        print(main(given.out, given.seeds, given.n))
    except fl.InputError as error:
        parser.error(str(error))
