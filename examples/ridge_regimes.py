"""Three regimes of ridge regression: its risk against n, with no penalty and with the best one.

python examples/ridge_regimes.py --out out/ridge_regimes
python examples/ridge_regimes.py --n 640 --seeds 64    # d up to 16191 and 512000: for a GPU

Inputs have variances j^-a, coefficients j^-2 (Tsigler and Bartlett, 2023). Where a > 1 interpolation passes the
noise on, and a penalty helps: kernel. Where a < 1 it needs no penalty: benign, unless the signal
is lost among too many directions: harmful. Bias and variance are exact given the simulated inputs; lines are the
deterministic equivalent, which knows the spectrum alone.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.stats
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

import featlab as fl
from featlab.theory import ridge

NOISE = 0.5  # sigma
TARGET = 2.0  # nu_j = j^-2


class Regime(NamedTuple):
    """A sequence of spectra, one for each n."""

    decay: float  # a
    growth: float  # d = n^growth
    smaller: tuple[int, ...]  # its n, by how many times they are smaller than the largest of all
    title: str

    def dimension(self, n: float) -> int:
        return round(n**self.growth)

    def directions(self, n: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Eigenvalues, variances of the coefficients, multiplicities."""
        j, times = ridge.index_blocks(self.dimension(n))
        return j**-self.decay, j**-TARGET, times

    def risk(self, n: float, penalty: float) -> float:
        """The deterministic equivalent."""
        spectrum, target, times = self.directions(n)
        return ridge.risk(spectrum, target, n, penalty, NOISE**2, times).total

    def best_penalty(self, n: float) -> float:
        spectrum, target, times = self.directions(n)
        return ridge.best_penalty(spectrum, target, n, NOISE**2, times)


REGIMES = {
    "kernel": Regime(2.0, 1.5, (8, 4, 2, 1), r"kernel:  $\lambda_j = j^{-2}$,  $d = n^{3/2}$"),
    "benign": Regime(0.5, 1.5, (8, 4, 2, 1), r"benign:  $\lambda_j = j^{-1/2}$,  $d = n^{3/2}$"),
    "harmful": Regime(0.5, 3.0, (32, 16, 8), r"harmful:  $\lambda_j = j^{-1/2}$,  $d = n^3$"),
}
LOOKS = {
    "no penalty": {"color": "#BB5566", "linestyle": "-", "marker": "o"},
    "best penalty": {"color": "#004488", "linestyle": "--", "marker": "s"},  # hollow, around the other
}


def experiment(regime: Regime, n: int) -> fl.Experiment:
    """Ridge regression on the inputs themselves: the first layer is the identity, and nothing is trained."""
    law = fl.data.power_law
    return fl.Experiment(
        data=fl.data.LinearRegression(
            n, regime.dimension(n), spectrum=law(regime.decay), target=law(TARGET), label_noise=NOISE
        ),
        network=fl.networks.TwoLayerLinear(diagonal=True),
        algorithm=fl.algorithms.GradientDescent(1.0),
        objective=fl.objectives.squared,
        probes=[fl.probes.ridge_risk(penalty=(0.0, regime.best_penalty(n))).on(fl.probes.at_end)],
        steps=0,
        precision=64,
    )


def sizes(regime: Regime, largest: int) -> list[int]:
    """The n of a regime, rising."""
    return [largest // factor for factor in regime.smaller]


def draw(found: dict[str, dict[int, np.ndarray]], seeds: int) -> Figure:
    """Simulated points with 95 % intervals on the theory's lines, a panel for each regime."""
    with fl.plots.house_style():
        figure = Figure(figsize=(18, 6.2), layout="constrained")
        for axes, (name, runs) in zip(figure.subplots(1, len(found)), found.items()):
            regime, n = REGIMES[name], np.array(sorted(runs), float)
            fine = np.geomspace(n[0] / 1.2, n[-1] * 1.2, 40)
            penalties = {"no penalty": np.zeros_like, "best penalty": np.vectorize(regime.best_penalty)}
            for k, (label, look) in enumerate(LOOKS.items()):
                values = np.array([runs[int(one)][:, k] for one in n])  # (size, seed)
                reach = scipy.stats.t.ppf(0.975, seeds - 1) * values.std(axis=1, ddof=1) / math.sqrt(seeds)
                points = {"color": look["color"], "marker": look["marker"], "linestyle": "none"}
                points |= {"markerfacecolor": "none", "markersize": 14, "markeredgewidth": 2.5} if k else {}
                axes.errorbar(n, values.mean(axis=1), reach, capsize=5, label=label, zorder=3, **points)
                law = [regime.risk(one, penalty) for one, penalty in zip(fine, penalties[label](fine))]
                axes.plot(fine, law, color=look["color"], linestyle=look["linestyle"])
            energy = [one[0] * one[2] @ one[1] for one in map(regime.directions, fine)]
            axes.plot(
                fine, energy, color="#000000", linestyle=":", label=r"predicting 0:  $\sum_j \lambda_j \nu_j$"
            )
            if name == "kernel":
                axes.axhline(NOISE**2, color="#777777", linestyle="-.", label=r"noise of the labels  $\sigma^2$")
            axes.set(xscale="log", yscale="log", xlabel="samples  $n$", title=regime.title)
            axes.xaxis.set_major_locator(FixedLocator(n.tolist()))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            low, high = axes.get_ylim()
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)) if high > 8 * low else MaxNLocator(5))
            axes.yaxis.set_minor_locator(NullLocator())
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        first = figure.axes[0]
        first.set_ylabel(r"risk  $E\, \langle \hat\beta - \beta, x \rangle^2$")
        title = f"lines: deterministic equivalent;  points: {seeds} seeds, mean and 95 % interval"
        figure.legend(
            *first.get_legend_handles_labels(), loc="outside upper left", ncols=4, title=title, alignment="left"
        )
    return figure


def main(out: Path, seeds: int, n: int) -> Path:
    """Run, print, draw, and return where the figure is."""
    if seeds < 2:
        raise fl.InputError(f"--seeds must be at least 2, or there is no interval, got {seeds}.")
    if n < 64:
        raise fl.InputError(f"--n must be at least 64, or its smallest part is no sample size, got {n}.")
    found: dict[str, dict[int, np.ndarray]] = {}
    for name, regime in REGIMES.items():
        print(f"{name}\n      n        d   no penalty, theory   best penalty, theory")
        for size in sizes(regime, n):
            one = experiment(regime, size)
            risks = fl.run(one, seeds, block=1).ridge_risk.transpose("seed", ..., "penalty").values
            found.setdefault(name, {})[size] = risks = risks.reshape(seeds, 2)
            said = [regime.risk(size, penalty) for penalty in (0.0, regime.best_penalty(size))]
            cells = "   ".join(f"{a:10.4f}  {b:6.4f}" for a, b in zip(risks.mean(axis=0), said))
            print(f"  {size:5d}  {one.data.d:7g}   {cells}")
    figure = draw(found, seeds)
    fl.plots.save(figure, out / "ridge_regimes.svg")
    return fl.plots.save(figure, out / "ridge_regimes.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/ridge_regimes"), help="folder to write to")
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--n", type=int, default=320, help="samples, at most; an eighth of it where d = n^3")
    given = parser.parse_args()
    try:
        print(main(given.out, given.seeds, given.n))
    except fl.InputError as error:
        parser.error(str(error))
