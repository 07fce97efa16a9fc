"""Run every experiment stated in this folder and draw its figures.

python examples/run_all.py --out figures
"""

from __future__ import annotations

import argparse
from pathlib import Path

import featlab as fl
from featlab.description import load_experiment

FIGURES = {
    "coefficients": ("gamma", fl.plots.coefficient_growth),
    "losses": ("train_loss", fl.plots.losses),
    "margins": ("margin", fl.plots.margins),
}


def main(out: Path, only: list[str]) -> None:
    """Write the figures of each TOML file, as SVG and as PNG, and name each file written."""
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        if only and path.stem not in only:
            continue
        experiment, settings = load_experiment(path)
        history = fl.run(experiment, settings.get("seeds", 1))
        for name, (variable, plot) in FIGURES.items():
            if variable in history:
                figure = plot(history)
                for ending in ("svg", "png"):
                    print(fl.plots.save(figure, out / f"{path.stem}_{name}.{ending}"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder to write to (default: figures)")
    parser.add_argument("only", nargs="*", help="names of TOML files, without the ending; all if none is given")
    given = parser.parse_args()
    main(given.out, given.only)
