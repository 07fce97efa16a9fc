"""Sign descent on a transformer: its four stages, and what it has learnt beside Adam and gradient descent.

python examples/sign_descent.py --out out/sign_descent

Li et al. (2025). Left, strong noise: the share of signs that are as they end, and attention on the signal, by
step; vertical lines are the theory's orders of magnitude. Right, noise that gradient descent sees through:
training loss (thin) and test loss (thick) of three algorithms, each for as long as it takes.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from pathlib import Path
from typing import Any

import featlab as fl
from featlab.claims.theorems.li2025_sign_gd import DESCENT, SignDescentStages
from featlab.plots._style import BLACK, BLUE, GREY, RED, YELLOW, house_style, legend_above, panels, save

CLAIM = SignDescentStages()
FIRST_SEED = 7_900_000
SIGNS = "sign descent"
STAGES: dict[str, tuple[str, dict[str, Any]]] = {
    "settled": ("I values", {"color": BLACK, "linestyle": "-"}),
    "aligned": ("II queries, keys", {"color": BLUE, "linestyle": "--"}),
    "voted": ("III signal", {"color": RED, "linestyle": "-."}),
    "noise_query": ("IV attention", {"color": YELLOW, "linestyle": "-"}),
}
LOOKS: dict[str, dict[str, Any]] = {
    SIGNS: {"color": RED, "linestyle": "--"},
    "Adam": {"color": YELLOW, "linestyle": "-."},
    DESCENT: {"color": BLUE, "linestyle": "-"},
}


def recorded(experiment: fl.Experiment, probes, moments, seeds: int):
    """The run's curves, on one clock."""
    one = dataclasses.replace(experiment, probes=tuple(probe.on(moments) for probe in probes))
    history = fl.run(one, seeds=range(FIRST_SEED, FIRST_SEED + seeds))
    (clock,) = (dim for dim in history.dims if str(dim).startswith("step"))
    return history.rename({clock: "step"})


def draw_stages(axes, d: int, steps: int, seeds: int) -> None:
    """Shares and attention of one run that is fine enough for all stages."""
    time = 0.2 * CLAIM.time(CLAIM.noise_scale)  # attention has moved by then
    eta = time / steps
    one = CLAIM.signs(time, steps, d, CLAIM.noise_scale)
    history = recorded(one, [fl.probes.stages], fl.probes.geometric(80), seeds)
    scale = CLAIM.init_scale / eta
    pace = CLAIM.sparsity * CLAIM.noise_scale * math.sqrt(2 / math.pi)
    orders = {
        "settled": scale / math.sqrt(CLAIM.sparsity * CLAIM.value_neurons),
        "aligned": scale / math.sqrt(CLAIM.sparsity),
        "voted": scale,
        "noise_query": 1 / (eta * pace * math.sqrt(CLAIM.head)),
    }
    for name, (label, look) in STAGES.items():
        axes.plot(history.step, history[name].mean("seed"), label=label, **look)
        axes.axvline(orders[name], color=look["color"], linewidth=1.2, linestyle=(0, (6, 4)))
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlim(0, steps)
    axes.set_ylim(0, 1.03)
    axes.set_xlabel("step $t$")
    axes.set_ylabel("share of signs, or of attention")
    legend_above(
        axes, rf"$n = {CLAIM.n}$, $s = {CLAIM.sparsity}$, $\sigma_p = {CLAIM.noise_scale:g}$, {seeds} seeds"
    )


def draw_losses(axes, d: int, steps: int, seeds: int) -> None:
    """Training and test loss where noise is weak."""
    weak = CLAIM.weak_noise
    made = {SIGNS: CLAIM.signs(CLAIM.time(weak), steps, d, weak)}
    made |= {name: CLAIM.beside(name, steps, d) for name in ("Adam", DESCENT)}
    probes = (fl.probes.train_loss, fl.probes.test_loss(count=1000))
    for name, one in made.items():
        history = recorded(one, probes, fl.probes.geometric(60), seeds)
        taken = steps if name == SIGNS else float(history.stopped_at.mean())
        history = history.sel(step=history.step <= taken)
        axes.plot(history.step, history.test_loss.mean("seed"), label=f"{name}, {taken:.0f} steps", **LOOKS[name])
        axes.plot(history.step, history.train_loss.mean("seed"), **{**LOOKS[name], "linewidth": 1.2})
    axes.axhline(math.log(2), color=GREY, linestyle=":", linewidth=1.2)
    axes.set_yscale("log")
    axes.set_ylim(CLAIM.loss / 20, 1)
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlim(0, None)
    axes.set_xlabel("step $t$")
    axes.set_ylabel("$L_S$ (thin), $L_D$ (thick)")
    legend_above(axes, rf"$\sigma_p = {weak:g}$, {seeds} seeds", columns=1)


def main(out: Path, seeds: int, d: int, steps: int = 600) -> Path:
    """Train, draw, and return where the figure is."""
    with house_style():
        made, (left, right) = panels(2)
        draw_stages(left, d, 4 * steps, seeds)  # fine enough for the first stage
        draw_losses(right, d, steps, seeds)
    return save(made, out / "sign_descent.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/sign_descent"), help="folder to write to")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--d", type=int, default=5400)
    given = parser.parse_args()
    try:
        print(main(given.out, given.seeds, given.d))
    except fl.InputError as error:
        parser.error(str(error))
