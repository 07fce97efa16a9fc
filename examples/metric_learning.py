"""A learnt metric against tuned ridge regression: their risks over the decay of the tasks' covariance.

python examples/metric_learning.py --out out/metric_learning
python examples/metric_learning.py --n 400 --seeds 24    # for a GPU

Inputs have variances 1/j, the coefficients of the tasks variances j^-a (K. Suzuki and T. Suzuki, 2024). The metric
is diagonal and learnt by descent on the ridge loss of many tasks plus degrees of freedom; ridge regression has the
best penalty on a grid; the Bayes estimator knows the covariance. Risks are exact given the inputs.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

import featlab as fl
from featlab.theory import ridge

DECAYS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)  # a
D, TASKS, NOISE = 1000, 5, 1.0  # d, m/n, sigma^2
DOF = 1.2 * NOISE * (1 + TASKS**-0.5) ** 2  # sigma'^2, just above the edge of the noise of the tasks
GRID = tuple(float(one) for one in 10.0 ** np.arange(-3, 1.75, 0.25))
ADAM = fl.algorithms.Adam(0.3, beta2=0.999, bias_correction=True)
LOOKS: dict[str, dict[str, Any]] = {
    "tuned ridge": {"color": "#BB5566", "linestyle": "--", "marker": "s"},
    "learnt metric": {"color": "#004488", "linestyle": "-", "marker": "o"},
    "Bayes": {"color": "#000000", "linestyle": ":", "marker": "D"},
}


def experiment(a: float, n: int, penalty: tuple[float, ...], steps: int, **metric) -> fl.Experiment:
    """Many tasks on shared inputs, and a diagonal first layer."""
    law = fl.data.power_law
    return fl.Experiment(
        data=fl.data.LinearRegression(
            n, D, spectrum=law(1), target=law(a), tasks=TASKS * n, label_noise=NOISE**0.5
        ),
        network=fl.networks.TwoLayerLinear(diagonal=True, **metric),
        objective=fl.objectives.ProfileRidge(penalty=NOISE / n, dof=DOF),
        algorithm=ADAM,
        probes=[fl.probes.ridge_risk(penalty=penalty).on(fl.probes.at_end)],
        steps=steps,
        precision=64,
    )


def risks(n: int, seeds: int) -> xr.Dataset:
    """The risk of each of the three, over a and seed."""
    bayes = NOISE / n

    def over(make):
        return xr.concat([fl.run(make(a), seeds, progress=False).ridge_risk for a in DECAYS], "a")

    plain = over(lambda a: experiment(a, n, (*GRID, bayes), 0))
    learnt = over(lambda a: experiment(a, n, (bayes,), 60, bound=5.0))
    knowing = over(lambda a: experiment(a, n, (*GRID, bayes), 0, decay=a / 2))
    return xr.Dataset(
        {
            "tuned ridge": plain.min("penalty"),
            "learnt metric": learnt.isel(penalty=0, drop=True),
            "Bayes": knowing.isel(penalty=-1, drop=True),
        }
    ).assign_coords(a=list(DECAYS))


def draw(found: xr.Dataset, n: int) -> Figure:
    """Means over seeds with their spread, and the theorem's bound."""
    with fl.plots.house_style():
        figure = Figure(figsize=(9, 6.5), layout="constrained")
        axes = figure.subplots()
        for name, look in LOOKS.items():
            mean, spread = found[name].mean("seed"), found[name].std("seed")
            axes.errorbar(DECAYS, mean, spread, capsize=4, label=name, **look)
        j = np.arange(1, D + 1)
        bound = [ridge.optimal_bound(j ** (-1 - a), n, DOF) for a in DECAYS]
        axes.plot(DECAYS, bound, color="#777777", label=r"$\sum_j \min\{\sigma'^2/n,\, j^{-1-a}\}$")
        axes.set(yscale="log", xlabel=r"decay $a$ of $\Sigma_\beta = \mathrm{diag}(j^{-a})$")
        axes.set_ylabel(r"risk  $E\, \langle \hat\beta - \beta, x \rangle^2$")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.legend(title=f"$n = {n}$,  $d = {D}$,  $m = {TASKS * n}$ tasks")
    return figure


def main(out: Path, seeds: int, n: int) -> Path:
    """Run, print, draw, and return where the figure is."""
    found = risks(n, seeds)
    print("     a  " + "  ".join(f"{name:>14s}" for name in LOOKS))
    for a in DECAYS:
        print(f"{a:6g}  " + "  ".join(f"{float(found[name].sel(a=a).mean()):14.4f}" for name in LOOKS))
    figure = draw(found, n)
    fl.plots.save(figure, out / "metric_learning.svg")
    return fl.plots.save(figure, out / "metric_learning.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/metric_learning"), help="folder to write to")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--n", type=int, default=100, help="samples; d = 1000, 5n tasks")
    given = parser.parse_args()
    try:
        print(main(given.out, given.seeds, given.n))
    except fl.InputError as error:
        parser.error(str(error))
