"""Descent with and without label noise, side by side: test error over n and SNR.

python examples/label_noise_heatmap.py --out out/label_noise

Squared ReLU, steps of the same relative size for all n: a step multiplies a noise product by 1 + kappa g, with
kappa = 2 eta sigma^2 d / (nm). Plain descent learns the signal where n SNR^2 is above about 2, where the signal's
products grow as fast as the noise's. With labels flipped anew in every step (Huang et al., 2025) the noise stays
bounded and the signal grows at the rate kappa^2 n SNR^2 p (1 - p) / 4 a step, so that after T steps the boundary
is where that rate times T makes up for the start.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np

import featlab as fl

WIDTH, KAPPA, FLIP, STEPS, START = 10, 0.5, 0.1, 3200, 0.01
DESCENT, NOISY = "gradient descent", "label noise"


def experiment(n: int, snr: float) -> fl.Experiment:
    """Label-noise descent with noise of length one and the same kappa for every n."""
    d = 20_000.0
    return fl.Experiment(
        data=fl.data.SignalNoise(n=n, d=d, snr=snr, noise_scale=d**-0.5),
        network=fl.networks.TwoLayerCNN(width=WIDTH, activation=fl.networks.relu_power(2), init_scale=START),
        algorithm=fl.algorithms.LabelNoiseDescent(KAPPA * n * WIDTH / 2, FLIP),
        probes=[fl.probes.test_error(count=2000), fl.probes.train_loss],
        steps=STEPS,
    )


def boundaries(growth: float):
    """SNR at which descent, and label noise within that many steps, learn the signal."""
    rate = KAPPA**2 * FLIP * (1 - FLIP) / 4
    return {
        DESCENT: {r"$n\,\mathrm{SNR}^2 = 2$": lambda n: np.sqrt(2 / n)},
        NOISY: {
            r"$\frac{1}{4}\kappa^2 n\,\mathrm{SNR}^2 p(1-p)\, T = \log\frac{1}{\sigma_0}$": lambda n: np.sqrt(
                growth / (rate * STEPS * n)
            )
        },
    }


def main(out: Path, seeds: int, cells: int) -> Path:
    """Sweep both, draw, and return where the figure is."""
    changes = {DESCENT: {"algorithm.flip": 0.0}, NOISY: {"algorithm.flip": FLIP}}
    sizes = np.geomspace(20, 120, cells).round().astype(int)
    grid = {"n": sizes, "snr": f"0.03:0.35:{2 * cells}log"}
    found = fl.compare(experiment, changes, seeds=seeds, grid=grid, out=out / "store")
    figure = fl.plots.comparison_diagrams(
        found, "clean_test_error", level=0.24, boundary=boundaries(math.log(1 / START))
    )
    fl.plots.save(figure, out / "label_noise.svg")
    return fl.plots.save(figure, out / "label_noise.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/label_noise"), help="folder to write to")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--cells", type=int, default=7, help="values of n; of SNR twice as many")
    given = parser.parse_args()
    try:
        print(main(given.out, given.seeds, given.cells))
    except fl.InputError as error:
        parser.error(str(error))
