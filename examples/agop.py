"""A kernel machine learns its metric from its own gradients, and a trained first layer has that metric too.

python examples/agop.py --out out/agop

Radhakrishnan, Beaglehole, Pandit and Belkin (2022), in the setting of the claim radhakrishnan2022_agop. Left: test
error of recursive feature machines, relative to the variance of the labels, and how much of the two top
eigenvectors of AGOP lies in the plane that the labels depend on, after each metric; 0 is kernel ridge regression.
Right: cosine of W'W with the root of AGOP over the scale of the start sigma_0, when both layers are trained to the
same loss. Lines are means over seeds, bands the range of all.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

import featlab as fl
from featlab.claims.theorems.radhakrishnan2022_agop import ALIGNED, LEARNT, VARIANCES, AverageGradientOuterProduct
from featlab.engine.batch import train_many
from featlab.engine.progress import progress_bar
from featlab.plots._style import BLACK, BLUE, GREY, RED, house_style, legend_above, panels, save

FIRST_SEED = 7_200_000
AT_MOST = 4000
LOOKS: dict[str, dict[str, Any]] = {
    "product": {"color": BLUE, "marker": "o", "label": r"$z_1 z_2$"},
    "two_stairs": {"color": RED, "marker": "s", "label": r"$z_1 + z_1 z_2$"},
    "sine_and_square": {"color": BLACK, "marker": "^", "label": r"$\sin z_1 + z_2^2 - 1$"},
}


def learning(claim: AverageGradientOuterProduct, target: str, seeds: int):
    """Relative test error and share of the plane, by metric and seed."""
    one = dataclasses.replace(
        claim.machine(target),
        probes=(fl.probes.test_loss(count=2000), fl.probes.agop_subspace),
        record=fl.probes.every(1),
    )
    history = fl.run(one, seeds=[FIRST_SEED + i for i in range(seeds)], progress=False)
    history = history.sel(step=slice(1, None)).transpose("step", "seed", ...)
    return 2 * history.test_loss.values / VARIANCES[target], history.agop_overlap.values


def ansatz(claim: AverageGradientOuterProduct, target: str, scales: np.ndarray, seeds: int) -> np.ndarray:
    """The cosine of W'W with the root of AGOP, by start and seed; NaN where a run did not reach its loss."""
    chosen = [FIRST_SEED + i for i in range(seeds)]
    made = [claim.network(AT_MOST, init_scale=float(s), target=target) for s in scales for _ in chosen]
    read = train_many(made, chosen * len(scales))
    return np.where(read["trained"], read["feature_root_cosine"], np.nan).reshape(len(scales), seeds)


def figure(seeds: int, n: int):
    """Two panels: metrics of kernel machines, and first layers of networks."""
    claim = AverageGradientOuterProduct(n=n)
    scales = np.geomspace(0.01, 1.0, 7)
    with house_style(), progress_bar("targets", 2 * len(LOOKS)) as tell:
        made, (left, right) = panels(2)
        share = left.twinx()
        for i, (target, look) in enumerate(LOOKS.items()):
            error, overlap = learning(claim, target, seeds)
            metrics = np.arange(LEARNT + 1)
            _band(left, metrics, error, **look)
            _band(
                share, metrics, overlap, **{**look, "label": None, "linestyle": "--", "markerfacecolor": "white"}
            )
            tell(2 * i + 1)
            _band(right, scales, ansatz(claim, target, scales, seeds), **look)
            tell(2 * i + 2)
        left.set_yscale("log")
        left.set_ylim(4e-3, 6)  # leaves the upper part to the shares
        left.set_xlabel("metrics learnt")
        left.set_ylabel(r"test error $E(f - y)^2 / \mathrm{Var}\, y$ (solid)")
        share.set_ylabel(r"$\frac{1}{2} \|U V_2\|_F^2$ (dashed)")
        share.set_ylim(0.5, 1.02)
        share.grid(False)
        share.spines["right"].set_visible(True)
        legend_above(left, rf"kernel machines, $n = {n}$, $d = {claim.d:g}$, {seeds} seeds", columns=3)
        right.axhline(ALIGNED, color=GREY, linestyle=":", linewidth=1.4)
        right.set_xscale("log")
        right.set_ylim(0, 1.02)
        right.set_xlabel(r"scale of the start $\sigma_0$")
        right.set_ylabel(r"$\cos(W^\top W, \mathrm{AGOP}^{1/2})$")
        legend_above(right, rf"networks, both layers trained, $N = {claim.width}$", columns=3)
    return made


def _band(axes, x, values, *, color, **look) -> None:
    axes.plot(x, np.nanmean(values, axis=1), color=color, **{"linewidth": 2, **look})
    axes.fill_between(x, np.nanmin(values, 1), np.nanmax(values, 1), color=color, alpha=0.15, linewidth=0)


def main(out: Path, seeds: int = 6, n: int = 400) -> Path:
    """Train, draw, save."""
    return save(figure(seeds, n), out / "agop.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/agop"))
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--n", type=int, default=400)
    options = parser.parse_args()
    try:
        print(main(options.out, options.seeds, options.n))
    except fl.InputError as error:
        parser.error(str(error))
