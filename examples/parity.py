"""A sparse parity: the accuracy of a coin for most of training, while the weights already know better.

python examples/parity.py --out out/parity

Barak et al. (2022), in the setting of the claim barak2022_parity. Left: accuracy and hidden progress z_S of a
network that learns the product of three out of d coordinates, each seed with a line of its own; the dotted line is
z_S = 3. Middle: the steps until hidden progress is seen, until the accuracy leaves .55 and until it reaches .95,
over d, for k = 3. Right: steps until the parity is learnt, over d, for k = 2, 3 and 4, with the fitted exponents.
Lines are geometric means over seeds, bands the range of all.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

import featlab as fl
from featlab.claims.theorems.barak2022_parity import LEARNT, PLATEAU, HiddenProgress
from featlab.engine.batch import train_many
from featlab.engine.progress import progress_bar
from featlab.plots._style import BLACK, BLUE, GREY, RED, YELLOW, house_style, legend_above, panels, save
from featlab.sweeps.boundary import exponents

CLAIM = HiddenProgress()
FIRST_SEED = 7_560_000
TIMES: dict[str, dict[str, Any]] = {
    "learnt_time": {"color": BLUE, "marker": "o", "linestyle": "-", "label": r"learnt, $t_\star$"},
    "escape_time": {"color": BLACK, "marker": "D", "linestyle": "--", "label": r"accuracy, $t_{.55}$"},
    "progress_time": {"color": RED, "marker": "s", "linestyle": "-.", "label": r"progress, $t_z$"},
}
ORDERS: dict[int, dict[str, Any]] = {
    2: {"color": YELLOW, "marker": "^", "linestyle": "-."},
    3: {"color": BLUE, "marker": "o", "linestyle": "-"},
    4: {"color": BLACK, "marker": "D", "linestyle": "--"},
}


def curves(d: int, seeds: int):
    """Steps, and accuracy and hidden progress by seed and step."""
    experiment = CLAIM.experiment(d, PLATEAU)
    one = dataclasses.replace(
        experiment,
        probes=(fl.probes.train_error, fl.probes.hidden_progress),
        record=fl.probes.every(20),
        steps=fl.probes.until(fl.probes.held_out_error, LEARNT, at_most=4000),
    )
    history = fl.run(one, seeds=[FIRST_SEED + i for i in range(seeds)])
    # Where a run has ended its last reading is repeated.
    running = history.step.values[None] <= history.steps_taken.values[:, None]
    accuracy = 1 - history.train_error.transpose("seed", "step").values
    progress = history.progress.transpose("seed", "step").values
    return history.step.values, [np.where(running, values, np.nan) for values in (accuracy, progress)]


def times(cells: list[tuple[int, int]], seeds: int) -> dict[tuple[int, int], dict[str, np.ndarray]]:
    """What the probe of times reads, for each cell of d and k."""
    chosen, found = [FIRST_SEED + i for i in range(seeds)], {}
    with progress_bar("training", len(cells), unit="cells") as tell:
        for done, (d, k) in enumerate(cells, 1):
            found[d, k] = train_many([CLAIM.experiment(d, k)] * seeds, chosen)
            tell(done)
    return found


def banded(axes, dimensions, values, look):
    """A line of geometric means, and a band from the least to the largest."""
    values = np.where(np.array(values) < 0, np.nan, np.maximum(np.array(values, float), 1))  # -1: never
    axes.plot(dimensions, np.exp(np.nanmean(np.log(values), axis=1)), **look)
    least, largest = np.nanmin(values, axis=1), np.nanmax(values, axis=1)
    axes.fill_between(dimensions, least, largest, color=look["color"], alpha=0.15, linewidth=0)


def figure(seeds: int, dimensions: list[int]):
    """Three panels: along a run, times over d, and learning times of several k."""
    read = times([(d, k) for k in ORDERS for d in dimensions], seeds)
    with house_style():
        made, (left, middle, right) = panels(3)
        steps, (accuracy, progress) = curves(dimensions[-1], min(seeds, 3))
        other = left.twinx()
        left.plot(steps, accuracy.T, color=BLUE, linewidth=1.8)
        other.plot(steps, progress.T, color=RED, linestyle="--", linewidth=1.4)
        left.plot([], [], color=BLUE, label="accuracy")
        left.plot([], [], color=RED, linestyle="--", label="$z_S$ (right axis)")
        other.axhline(3, color=GREY, linestyle=":", linewidth=1.6)
        other.set_ylabel("hidden progress $z_S$")
        other.spines["right"].set_visible(True)
        other.grid(visible=False)
        left.set_xlabel("step $t$")
        left.set_ylabel("accuracy")
        legend_above(left, f"$k = {PLATEAU}$, $d = {dimensions[-1]}$")
        for name, look in TIMES.items():
            banded(middle, dimensions, [read[d, PLATEAU][name] for d in dimensions], look)
        middle.set_ylabel("steps")
        legend_above(middle, f"$k = {PLATEAU}$, {seeds} seeds")
        for k, look in ORDERS.items():
            learnt = np.array([read[d, k]["learnt_time"] for d in dimensions], float)
            if (learnt < 0).any():
                raise fl.InputError(f"Parities of {k} coordinates are not all learnt in time; take a smaller --d.")
            power = np.mean(exponents(np.array(dimensions, float), learnt).overall)
            banded(right, dimensions, learnt, {**look, "label": f"$k = {k}$: $d^{{{power:.2f}}}$"})
        right.set_ylabel(r"steps until learnt, $t_\star$")
        legend_above(right, f"{seeds} seeds", columns=3)
        for axes in (middle, right):
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel("$d$")
            axes.set_xticks(dimensions, [str(d) for d in dimensions])
            axes.minorticks_off()
    return made


def main(out: Path, seeds: int = 8, d: int = 40) -> Path:
    """Train, draw, save; d is the largest of three dimensions."""
    if not isinstance(seeds, int) or seeds < 1:
        raise fl.InputError(f"--seeds must be at least 1, got {seeds!r}.")
    if d < 20:
        raise fl.InputError(f"--d must be at least 20, for three dimensions with twice four coordinates, got {d}.")
    dimensions = [round(d * factor) for factor in (0.45, 0.67, 1.0)]
    return save(figure(seeds, dimensions), out / "parity.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/parity"))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--d", type=int, default=40)
    options = parser.parse_args()
    try:
        print(main(options.out, options.seeds, options.d))
    except fl.InputError as error:
        parser.error(str(error))
