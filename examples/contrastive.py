"""One modality memorises noise where two learn the signal: how both grow, and where the balance tips.

python examples/contrastive.py --out out/contrastive

Huang, Han, Chen, Cao, Xu and Suzuki (2024), in the setting of the claim huang2024_contrastive. Left: n SNR^2 = 1,
the largest product of a neuron with the signal (solid) and the mean over samples of the largest with its noise
(dashed). Right: their ratio at the end of training, over n SNR^2; dotted lines are where both grow at the same
rate, 2 / C_mu, and where they end up equal. Lines are geometric means over seeds, bands the range of all.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

import featlab as fl
from featlab.claims.theorems.huang2024_contrastive import BALANCE, STOP, STRONGER, Contrastive
from featlab.engine.batch import train_many
from featlab.plots._style import BLACK, BLUE, GREY, RED, YELLOW, house_style, legend_above, panels, save

N = 50
FIRST_SEED = 7_300_000
_CURVES = {"signal_response": "-", "noise_response": "--"}
GROWTH: dict[float | None, dict[str, Any]] = {None: {"color": RED}, STRONGER: {"color": BLUE}}
LOOKS: dict[float | None, dict[str, Any]] = {
    None: {"color": RED, "marker": "s", "label": "one modality", "markersize": 11, "markerfacecolor": "none"},
    1.0: {"color": YELLOW, "marker": "^", "label": r"two, $C_\mu = 1$"},
    4.0: {"color": BLUE, "marker": "o", "label": r"two, $C_\mu = 4$"},
    16.0: {"color": BLACK, "marker": "D", "label": r"two, $C_\mu = 16$"},
}


def growth(strength: float | None, seeds: int):
    """Steps, and signal and noise by step and seed."""
    one = dataclasses.replace(
        Contrastive().experiment(N, strength, 1.0),
        probes=(fl.probes.encoder_ratio,),
        record=fl.probes.every(2),
        steps=fl.probes.until(fl.probes.relative_loss, STOP, at_most=400),
    )
    history = fl.run(one, seeds=[FIRST_SEED + i for i in range(seeds)], progress=False)
    last = int(history.steps_taken.max())
    kept = history.sel(step=slice(0, last))
    return kept.step.values, [kept[name].transpose("step", "seed").values for name in _CURVES]


def ratios(strength: float | None, signals: np.ndarray, seeds: int) -> np.ndarray:
    """Signal over noise at the end, by n SNR^2 and seed."""
    claim, chosen = Contrastive(), [FIRST_SEED + i for i in range(seeds)]
    experiments = [claim.experiment(N, strength, float(signal)) for signal in signals for _ in chosen]
    return train_many(experiments, chosen * len(signals))["encoder_ratio"].reshape(len(signals), seeds)


def figure(seeds: int, points: int):
    """Two panels: growth, and what it ends in."""
    with house_style():
        made, (left, right) = panels(2)
        for strength, look in GROWTH.items():
            name = "one modality" if strength is None else rf"two, $C_\mu = {strength:g}$"
            steps, both = growth(strength, seeds)
            for values, line, kind in zip(both, _CURVES.values(), ("signal", "noise")):
                left.plot(steps, np.exp(np.log(values).mean(1)), line, label=f"{name}: {kind}", **look)
                left.fill_between(steps, values.min(1), values.max(1), color=look["color"], alpha=0.2, linewidth=0)
        left.set_yscale("log")
        left.set_xlabel("step $t$")
        left.set_ylabel(r"$\max_r |\langle w_r, \mu \rangle|$,  mean $\max_r \langle w_r, \xi_i \rangle$")
        legend_above(left, rf"$n\,\mathrm{{SNR}}^2 = 1$, $n = {N}$, {seeds} seeds", columns=2)
        for strength, look in LOOKS.items():
            middle = BALANCE / (strength or 1.0)
            signals = middle * np.geomspace(0.4, 3.0, points)
            found = ratios(strength, signals, seeds)
            right.plot(signals, np.exp(np.log(found).mean(1)), **{"linewidth": 2, "markersize": 6, **look})
            right.axvline(middle, color=look["color"], linestyle=":", linewidth=1.4)
        right.axhline(1, color=GREY, linestyle=":", linewidth=1.4)
        right.set_xscale("log")
        right.set_yscale("log")
        right.set_xlabel(r"$n\,\mathrm{SNR}^2$")
        right.set_ylabel("signal over noise in the encoder")
        legend_above(right, r"dotted: equal rates, $n\,\mathrm{SNR}^2 = 2/C_\mu$", columns=2)
    return made


def main(out: Path, seeds: int = 6, points: int = 13) -> Path:
    """Train, draw, save."""
    return save(figure(seeds, points), out / "contrastive.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/contrastive"))
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--points", type=int, default=13)
    options = parser.parse_args()
    try:
        print(main(options.out, options.seeds, options.points))
    except fl.InputError as error:
        parser.error(str(error))
