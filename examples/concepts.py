"""Concepts and semantics: what a transformer learns from prompts, how its error falls, and why its start matters.

python examples/concepts.py --out out/concepts

Bu et al. (2024), three concepts, prompts of ten pairs. Left: components of the three matrices from the aligned
start, means over concepts and seeds; attention learns semantics, its concept component stays where it began, the
output layer learns both. Middle: errors on fresh prompts of the training law and of others, among those with a
demonstration of the query's label, and the training law's loss; dotted, the share of prompts without one. Right:
the semantic component of each concept and seed, from the aligned and from a Gaussian start; above the dotted line
one demonstration with the query's label outvotes all others.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

import featlab as fl
from featlab.claims.theorems.bu2024_concepts import LAWS, TIMES, ConceptsAndSemantics
from featlab.plots._style import BLACK, BLUE, GREY, RED, YELLOW, house_style, legend_above, panels, save

PROMPTS = 2000  # of each law, at each reading
COMPONENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "query_concepts": (r"$a_k^\top W_Q a_k$", {"color": BLUE, "linestyle": "--"}),
    "query_semantics": (r"$b_k^\top W_Q b_k$", {"color": BLUE, "linestyle": "-"}),
    "output_concepts": (r"$\langle w_O, c_k \rangle$", {"color": RED, "linestyle": "--"}),
    "output_semantics": (r"$\pm\langle w_O, d_k \rangle$", {"color": RED, "linestyle": "-"}),
}
LOOKS: dict[str, tuple[str, dict[str, Any]]] = {
    "trained": ("training law", {"color": BLUE, "linestyle": "-"}),
    "longer": ("4 times longer", {"color": RED, "linestyle": "--"}),
    "mixed": ("mixtures", {"color": YELLOW, "linestyle": "-."}),
    "imbalanced": ("imbalanced", {"color": BLACK, "linestyle": (0, (1, 1))}),
}


def history(alignment: float, probes: list, seeds: int, steps: int):
    """What the probes read, along one training for each seed."""
    one = ConceptsAndSemantics().experiment(TIMES[-1], alignment)
    one = dataclasses.replace(one, probes=probes, steps=steps, record=fl.probes.evenly(40))
    return fl.run(one, seeds=[7_730_000 + i for i in range(seeds)])


def figure(seeds: int, steps: int):
    """Three panels."""
    claim = ConceptsAndSemantics()
    components, errors = fl.probes.concept_components, fl.probes.prompt_errors(law=LAWS, count=PROMPTS)
    aligned = history(1.0, [components, errors, fl.probes.train_loss], seeds, steps)
    gaussian = history(0.0, [components], seeds, steps)
    with house_style():
        made, (left, middle, right) = panels(3)
        for name, (label, look) in COMPONENTS.items():
            left.plot(aligned.step, aligned[name].mean(["seed", "concept"]), label=label, **look)
        left.set(xlabel="step $t$", ylabel="component", ylim=(0, None))
        legend_above(left, f"$W_Q, W_K$ from ${claim.init_scale:g}\\, I$, {seeds} seeds")
        for i, law in enumerate(LAWS):
            label, look = LOOKS[law]
            error = aligned.prompt_error.isel(law=i).mean("seed")
            middle.plot(aligned.step, error.where(error > 0), label=label, **look)
        middle.plot(
            aligned.step, aligned.train_loss.mean("seed"), color=GREY, linewidth=4, alpha=0.6, label="loss"
        )
        middle.axhline(2.0**-claim.length, color=BLACK, linestyle=":", linewidth=1.2, label="$2^{-L}$")
        middle.set(xlabel="step $t$", ylabel=r"$P(y_q f_t(H) \leq 0)$", yscale="log")
        legend_above(middle, "answerable prompts")
        for run, label, look in ((gaussian, "Gaussian start", RED), (aligned, "aligned start", BLUE)):
            style: dict[str, Any] = {"linewidth": 1.2, "linestyle": "--" if run is gaussian else "-"}
            curves = run.query_semantics.transpose("step", "seed", "concept").values.reshape(len(run.step), -1)
            for j, curve in enumerate(curves.T):
                right.plot(run.step, curve, color=look, label=None if j else label, **style)
        outvotes = np.sqrt(np.log(claim.length - 1) / 2)
        one_match = r"$\sqrt{\log(L - 1)/2}$"
        right.axhline(outvotes, color=BLACK, linestyle=":", linewidth=1.2, label=one_match)
        right.set(xlabel="step $t$", ylabel=r"$b_k^\top W_Q b_k$")
        legend_above(right, "each concept and seed")
    return made


def main(out: Path, seeds: int, steps: int) -> Path:
    """Train, draw, and return where the figure is."""
    return save(figure(seeds, steps), out / "concepts.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/concepts"), help="folder to write to")
    parser.add_argument("--seeds", type=int, default=6, help="trainings from each start")
    parser.add_argument("--steps", type=int, default=600, help="steps of each")
    given = parser.parse_args()
    try:
        print(main(given.out, given.seeds, given.steps))
    except fl.InputError as error:
        parser.error(str(error))
