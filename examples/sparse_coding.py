"""Neurons that are lucky at the start become the atoms of a sparse code, where thresholds keep the rest silent.

python examples/sparse_coding.py --out out/sparse_coding

Allen-Zhu and Li (2020), in the setting of the claim allenzhu2020_sparse_coding. Left: which neurons are surely or
potentially good during training, of one seed. Middle: the cosine of grown neurons with the nearest atom, with
growing thresholds and without thresholds; lines are means over seeds, bands the range of all. Right: test errors,
and the closed form of the best linear model.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from pathlib import Path

import featlab as fl
from featlab.claims.theorems.allenzhu2020_sparse_coding import SparseFeatures
from featlab.plots._style import BLACK, BLUE, RED, house_style, legend_above, panels, save
from featlab.plots.neuron_sets import draw_strips

FIRST_SEED = 7_400_000
MOMENTS = 60
KINDS = {
    "growing thresholds": ({}, {"color": BLUE}),
    "no thresholds": ({"thresholds": False}, {"color": RED, "linestyle": "--"}),
}


def history(d: float, seeds: int, sets: bool = False, **kind):
    """Training along the way, for each seed; with all memberships or with what is read for each network."""
    one = SparseFeatures().experiment(d, **kind)
    probes = (
        (fl.probes.neuron_sets,)
        if sets
        else (fl.probes.feature_purity, fl.probes.errors_beside_linear(count=2000))
    )
    one = dataclasses.replace(one, probes=probes, record=fl.probes.evenly(MOMENTS))
    return fl.run(one, seeds=[FIRST_SEED + i for i in range(seeds)])


def figure(seeds: int, d: float):
    """Three panels: sets, purity, errors."""
    claim = SparseFeatures()
    trained = {name: history(d, seeds, **kind) for name, (kind, _) in KINDS.items()}
    with house_style():
        made, (left, middle, right) = panels(3)
        draw_strips(left, history(d, 1, sets=True))
        for name, (_, look) in KINDS.items():
            runs = trained[name]
            for axes, variable in ((middle, "purity"), (right, "network_error")):
                values = runs[variable].transpose("step", "seed").values
                axes.plot(runs.step, values.mean(1), label=name, **look)
                axes.fill_between(
                    runs.step, values.min(1), values.max(1), color=look["color"], alpha=0.2, linewidth=0
                )
        linear = fl.theory.sparse_coding.linear_error(d, claim.sparsity, claim.noise / math.sqrt(d))
        right.axhline(linear, color=BLACK, linestyle=":", label=r"best linear model, $M w^\star$")
        middle.set(xlabel="step $t$", ylabel=r"median $\max_j |\cos(w_i, M_j)|$", ylim=(0, 1.02))
        right.set(xlabel="step $t$", ylabel=r"test error $P(y f(x) \leq 0)$", ylim=(0, None))
        legend_above(middle, rf"$d = {d:g}$, $m = {claim.width(d)}$, {seeds} seeds", columns=1)
        legend_above(right, columns=1)
    return made


def main(out: Path, seeds: int = 6, d: float = 36) -> Path:
    """Train, draw, save."""
    if not (d >= 3 and d == int(d)):
        raise fl.InputError(f"--d must be a whole number of at least 3, got {d:g}.")
    return save(figure(seeds, d), out / "sparse_coding.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/sparse_coding"))
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--d", type=float, default=36)
    options = parser.parse_args()
    try:
        print(main(options.out, options.seeds, options.d))
    except fl.InputError as error:
        parser.error(str(error))
