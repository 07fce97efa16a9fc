"""The heat-map of benign overfitting in ReLU networks: 100,000 trainings, test error over d and |mu|.

python examples/heatmap.py --out out/heatmap

The network and the data are those of a published script (published_script.toml). The theorem's boundary is
n |mu|^4 = C sigma^4 d (Kou, Chen, Chen and Gu, 2023); its constant C is fitted to the contour where the test error
is 0.1 above the flip rate, below which no error on observed labels can fall.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import featlab as fl
from featlab.text import load_experiment


def main(out: Path, seeds: int, every: int) -> Path:
    """Sweep, draw, and return where the figure is."""
    if every < 1:
        raise fl.InputError(f"--every must be at least 1, got {every}.")
    experiment, _ = load_experiment(Path(__file__).parent / "published_script.toml")
    data, probes = experiment.data, [fl.probes.test_error(count=1000), fl.probes.train_loss]
    experiment = fl.Experiment(data, experiment.network, experiment.algorithm, probes=probes, steps=100)
    grid = {"data.d": np.arange(100, 1100, 10)[::every], "data.signal_norm": (np.arange(100) / 10)[::every]}
    diagram = fl.sweep(experiment, grid, seeds, out=out / "store")
    level = data.test_flip + 0.1
    measured = fl.contour(diagram, "test_error", level).at
    fitted = float(np.exp(np.log(data.n * measured**4 / diagram.d).mean()))  # sigma = 1
    boundary = {
        rf"$n\|\mu\|^4 = {fitted:.2g}\,\sigma^4 d$": fl.theory.signal_noise.relu_boundary(data.n, 1.0, fitted)
    }
    figure = fl.plots.phase_diagram(diagram, "test_error", boundary=boundary, level=level, floor=data.test_flip)
    fl.plots.save(figure, out / "heatmap.svg")
    return fl.plots.save(figure, out / "heatmap.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/heatmap"), help="folder to write to")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--every", type=int, default=1, help="take every k-th value of d and |mu|")
    given = parser.parse_args()
    try:
        print(main(given.out, given.seeds, given.every))
    except fl.InputError as error:
        parser.error(str(error))
