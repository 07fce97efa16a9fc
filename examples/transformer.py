"""Benign or harmful overfitting of softmax attention: 2,000 trainings, over n and the signal-to-noise ratio.

python examples/transformer.py --out out/transformer

Two diagrams of the same trainings, each to a training loss of 0.01: the test loss, and how much of the attention
of training inputs is on the signal. The line is n SNR^2 = 2, where the values of a signal and of a noise token
grow alike (Jiang, Huang, Zhang, Suzuki and Nie, 2024).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import featlab as fl
from featlab.claims.theorems.jiang2024_transformer import ALIKE, LEVEL, Transformer

SIZES = np.unique(np.round(np.geomspace(8, 64, 20)).astype(int))
SNRS = np.geomspace(0.1, 1.0, 20)


def main(out: Path, seeds: int, every: int) -> Path:
    """Sweep, draw, and return where the diagram of the test loss is."""
    if every < 1:
        raise fl.InputError(f"--every must be at least 1, got {every}.")
    grid = {"n": SIZES[::every].tolist(), "snr": SNRS[::every].tolist()}
    diagram = fl.sweep(Transformer().experiment, grid, seeds, out=out / "store")
    boundary = {rf"$n\,\mathrm{{SNR}}^2 = {ALIKE:g}$": lambda n: np.sqrt(ALIKE / n)}
    attention = fl.plots.phase_diagram(diagram, "attention_on_signal", boundary=boundary, level=0.5)
    fl.plots.save(attention, out / "attention.png")
    figure = fl.plots.phase_diagram(diagram, "test_loss", boundary=boundary, level=LEVEL)
    return fl.plots.save(figure, out / "transformer.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/transformer"), help="folder to write to")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--every", type=int, default=1, help="take every k-th value of n and SNR")
    given = parser.parse_args()
    try:
        print(main(given.out, given.seeds, given.every))
    except fl.InputError as error:
        parser.error(str(error))
