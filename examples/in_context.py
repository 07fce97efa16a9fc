"""Learning in context: the loss of three models while they train, at the size of the paper's experiment.

python examples/in_context.py --out out/in_context

Kim and Suzuki (2024): d = 20, 500 sigmoid neurons, 5 features of the student, 5 or 7 true ones. Lines are means
over seeds of the share of the features' variance that is missed, bands 95 % intervals; dotted lines mark what
1, 2, ... missing features cost, the levels of the saddles.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

import featlab as fl
from featlab.claims.judge import student_interval
from featlab.claims.theorems.kim2024_icl import InContextLearning
from featlab.plots._style import BLUE, GREY, RED, YELLOW, house_style, legend_above, panels, save

STUDENT, TRUE = 5, (5, 7)
LOOKS: dict[str, dict[str, Any]] = {
    "attention": {"color": YELLOW, "linestyle": "-."},
    "static": {"color": BLUE, "linestyle": "-"},
    "modified": {"color": RED, "linestyle": "--"},
}


def curves(model: str, true: int, neurons: int, steps: int, seeds: int):
    """The share of the variance missed, by step and seed."""
    one = InContextLearning().experiment(model, true, neurons, 512, steps)
    one = dataclasses.replace(one, probes=(fl.probes.in_context_loss(count=4000),), record=fl.probes.geometric(40))
    history = fl.run(one, seeds=[7_300_000 + i for i in range(seeds)])
    dim = next(name for name in history.in_context_loss.dims if name != "seed")
    return history[dim].values, history.in_context_loss.transpose(dim, "seed").values / (true / 2)


def figure(neurons: int, steps: int, seeds: int):
    """A panel for each number of true features."""
    with house_style():
        made, all_axes = panels(len(TRUE))
        for axes, true in zip(all_axes, TRUE):
            for missing in range(max(1, true - STUDENT), true + 1):
                axes.axhline(missing / true, color=GREY, linestyle=":", linewidth=1.2)
            for model, look in LOOKS.items():
                step, missed = curves(model, true, neurons, steps, seeds)
                low, high = np.array([student_interval(row) for row in missed]).T
                axes.plot(step, missed.mean(1), label=model, **look)
                axes.fill_between(step, np.maximum(low, 1e-5), high, color=look["color"], alpha=0.25, linewidth=0)
            if true > STUDENT:
                label = f"least possible, {true - STUDENT}/{true}"
                axes.axhline(1 - STUDENT / true, color="black", linewidth=1.2, label=label)
            axes.set_xscale("symlog", linthresh=1)
            axes.set_yscale("log")
            axes.set_xlim(0, None)
            axes.set_xlabel("step $t$")
            axes.set_ylabel(r"$\mathcal{L}(\mu_t)\; /\; (k_{\mathrm{true}} r^\circ / 2)$")
            title = rf"$k_{{\mathrm{{true}}}} = {true}$, $k = {STUDENT}$, {neurons} neurons, {seeds} seeds"
            legend_above(axes, title, columns=2)
    return made


def main() -> None:
    """Train, draw, save."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/in_context"))
    parser.add_argument("--neurons", type=int, default=500)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seeds", type=int, default=6)
    options = parser.parse_args()
    path = save(figure(options.neurons, options.steps, options.seeds), options.out / "in_context.png")
    print(path)


if __name__ == "__main__":
    main()
