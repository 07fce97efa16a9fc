"""What a denoiser learns, beside a classifier: signal over noise, against n SNR^2 and against the noise level t.

python examples/diffusion.py --out out/diffusion

Han, Huang, Cao and Zou (2025). Points are means over seeds where the gradient has vanished (hollow where it has
not), lines the reduced theory (`theory.denoising.stationary`), dots the ratio of the first step, n SNR^2 / 2.
Small data keeps that ratio. Large data, or little noise, pushes it towards 1.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

import numpy as np

import featlab as fl
from featlab.claims.theorems.han2025_diffusion import STATIONARY, BalancedDenoiser
from featlab.engine.batch import train_many
from featlab.plots._style import BLACK, BLUE, GREY, RED, YELLOW, house_style, legend_above, panels, save
from featlab.theory.denoising import stationary

CLAIM = BalancedDenoiser(pace=0.02)  # data is larger here than in the claim, and its curvature underestimated
FIRST_SEED = 7_710_000
STEPS = 2000
STRENGTHS = np.geomspace(0.1, 30, 8)  # n SNR^2
TIMES = np.geomspace(0.05, 2, 8)  # t
LENGTHS = {0.1: (BLUE, "o", "-"), 3.0: (YELLOW, "s", "--"), 20.0: (RED, "^", "-.")}  # |xi|: colour, marker, line
BESIDE = (0.2, 20.0)  # n SNR^2 of the second panel


def ends(experiments, seeds: int):
    """What is read at the end, by experiment and seed."""
    repeated = [one for one in experiments for _ in range(seeds)]
    read = train_many(repeated, [FIRST_SEED + i for i in range(seeds)] * len(experiments))
    return {name: values.reshape(len(experiments), seeds) for name, values in read.items()}


def denoisers(n: int, seeds: int, cells):
    """Ratio and whether the gradient has vanished, for each cell of n SNR^2, |xi| and t; all in one program."""
    stated = [CLAIM.denoiser(n, strength, length=length, t=t) for strength, length, t in cells]
    read = ends([dataclasses.replace(one, steps=STEPS) for one in stated], seeds)
    settled = read["relative_slope"].max(axis=1) < STATIONARY
    return dict(zip(cells, zip(read["balance"].mean(axis=1).tolist(), settled.tolist())))


def theory(n: int, strength: float, length: float, t: float) -> float:
    """The reduced theory's ratio."""
    noise = length**2 / n
    return stationary(noise * strength / 2, noise, t, CLAIM.width).balance


def points(axes, x, found, look, label):
    """Full markers where the gradient has vanished, hollow ones elsewhere."""
    colour, marker, line = look
    for at, (ratio, settled) in zip(x, found):
        axes.plot(at, ratio, marker, color=colour, markerfacecolor=colour if settled else "none", zorder=3)
    axes.plot([], [], marker + line, color=colour, label=label)


def against_strength(axes, n: int, seeds: int):
    """The first panel: denoisers of several lengths of the data, and the classifier."""
    fine = np.geomspace(STRENGTHS[0], STRENGTHS[-1], 60)
    axes.plot(fine, fine / 2, ":", color=GREY, label=r"first step, $n\,\mathrm{SNR}^2/2$")
    found = denoisers(n, seeds, [(one, length, CLAIM.t) for length in LENGTHS for one in STRENGTHS])
    for length, look in LENGTHS.items():
        axes.plot(fine, [theory(n, one, length, CLAIM.t) for one in fine], look[2], color=look[0])
        along = [found[one, length, CLAIM.t] for one in STRENGTHS]
        points(axes, STRENGTHS, along, look, rf"denoiser, $\|\xi\| = {length:g}$")
    read = ends([CLAIM.classifier(n, strength) for strength in STRENGTHS], seeds)
    jump = np.exp(np.log(read["balance"]).mean(axis=1))
    axes.plot(STRENGTHS, jump, "x-", color=BLACK, linewidth=1.4, label="classifier")
    axes.set(xscale="log", yscale="log", xlabel=r"$n\,\mathrm{SNR}^2$")


def against_time(axes, n: int, seeds: int):
    """The second panel: the same at two strengths, for noise levels from little to little else."""
    fine = np.geomspace(TIMES[0], TIMES[-1], 60)
    found = denoisers(n, seeds, [(one, length, t) for one in BESIDE for length in LENGTHS for t in TIMES])
    for strength in BESIDE:
        axes.axhline(strength / 2, color=GREY, linestyle=":")
        for length, look in LENGTHS.items():
            axes.plot(fine, [theory(n, strength, length, t) for t in fine], look[2], color=look[0])
            label = rf"$\|\xi\| = {length:g}$" if strength == BESIDE[0] else None
            points(axes, TIMES, [found[strength, length, t] for t in TIMES], look, label)
    axes.set(xscale="log", yscale="log", xlabel="noise level $t$")


def main(out: Path, seeds: int = 4, n: int = 40) -> Path:
    """Train, draw, save."""
    with house_style():
        made, (left, right) = panels(2)
        against_strength(left, n, seeds)
        against_time(right, n, seeds)
        for axes in (left, right):
            axes.set_ylabel(r"$|\langle w, \mu \rangle|\; /\; |\langle w, \xi \rangle|$")
        legend_above(left, f"$n = {n}$, $t = {CLAIM.t:g}$, {CLAIM.width} neurons, {seeds} seeds")
        legend_above(right, rf"$n\,\mathrm{{SNR}}^2 = {BESIDE[0]:g}$ (below) and ${BESIDE[1]:g}$ (above)")
    return save(made, out / "diffusion.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/diffusion"))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--n", type=int, default=40)
    options = parser.parse_args()
    try:
        print(main(options.out, options.seeds, options.n))
    except fl.InputError as error:
        parser.error(str(error))
