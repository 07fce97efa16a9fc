"""Features emerge from the structure of inputs: what a network learns, and what two steps do for its neurons.

python examples/emergence.py --out out/emergence

Shi, Wei and Liang (2022), in the setting of the claim shi2022_emergence. Left: error by step of a network that
trains all its layers, of its linearisation, of the best head on the features of its start, and of the same
network where inputs have no structure. Right: what a head makes of the number of relevant patterns in an
input, fitted to the features after each of the paper's two steps; circles are the labels, crosses the best
linear function of the input. Lines are means over seeds, bands the range of all.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import featlab as fl
from featlab.claims.theorems.shi2022_emergence import EASY, STEPS, Emergence
from featlab.plots._style import BLACK, BLUE, GREY, RED, YELLOW, house_style, legend_above, panels, save
from featlab.probes.emergence import fitted_head, patterns

FIRST_SEED = 7_500_000
MOMENTS = 40  # along a curve
TEST_INPUTS = 2000  # at each of them
_COUNTED = 20_000  # inputs, over which outputs are averaged
LOOKS: dict[str, dict[str, Any]] = {
    "no structure": {"color": GREY, "linestyle": "-."},
    "linearised": {"color": YELLOW, "linestyle": "--"},
    "fixed features": {"color": RED, "linestyle": ":"},
    "network": {"color": BLUE, "linestyle": "-"},
}


@fl.probes.probe(
    response=fl.probes.Variable(
        "patterns", r"\langle \hat a, \phi(x) \rangle", "output by number of relevant patterns"
    )
)
def response(view):
    """What a head on the features says, as a mean over inputs with 0, 1, ..., k relevant patterns."""
    draw, data = view.problem.draw, patterns(view)
    batch = data.fresh(jax.random.fold_in(draw.test_key, 2), draw.truth, draw.space, _COUNTED)
    outputs = fitted_head(view, view.params)(batch.inputs)
    there = (batch.inputs[:, 0] @ draw.truth.patterns.T > 0) & draw.truth.relevant[None]
    of_count = jnp.sum(there, axis=1)[:, None] == jnp.arange(data.relevant + 1)[None]
    return jnp.sum(jnp.where(of_count, outputs[:, None], 0), axis=0) / jnp.sum(of_count, axis=0)


def curves(steps: int, seeds: list[int]):
    """Name, steps, and errors by step and seed."""
    claim, errors = Emergence(), fl.probes.pattern_errors(count=TEST_INPUTS)
    for name, made in {
        "no structure": claim.descent(2 * steps, easy=0.0),
        "linearised": claim.descent(steps, linearised=True),
        "network": claim.descent(steps),
    }.items():
        fixed = [fl.probes.fixed_head_errors.on(fl.probes.at_end)] if name == "network" else []
        recorded = dataclasses.replace(made, probes=[errors, *fixed], record=fl.probes.geometric(MOMENTS))
        history = fl.run(recorded, seeds=seeds, progress=True)
        if fixed:
            level = np.tile(history.fixed_error.values, (2, 1))
            yield "fixed features", np.array([1, 2 * steps]), level
        yield name, history.step.values, history.pattern_error.transpose("step", "seed").values


def responses(seeds: list[int]):
    """After one step and after both: outputs by number of relevant patterns and seed."""
    for second in (False, True):
        made = dataclasses.replace(Emergence().two_steps(second=second), probes=[response.on(fl.probes.at_end)])
        yield fl.run(made, seeds=seeds, progress=True).response.transpose("patterns", "seed").values


def figure(seeds: int, steps: int):
    """Two panels: errors by step, and the head's answer to the number of relevant patterns."""
    chosen = [FIRST_SEED + i for i in range(seeds)]
    claim = Emergence()
    with house_style():
        made, (left, right) = panels(2)
        for name, times, values in curves(steps, chosen):
            left.plot(times, values.mean(1), label=name, **LOOKS[name])
            left.fill_between(
                times, values.min(1), values.max(1), color=LOOKS[name]["color"], alpha=0.2, linewidth=0
            )
        left.set_xscale("log")
        left.set_xlim(left=1)
        left.set_ylim(0, 0.6)
        left.set_xlabel("step $t$")
        left.set_ylabel(r"error $P(y g(x) \leq 0)$")
        legend_above(left, f"$D = {claim.patterns}$, $k = {claim.relevant}$, {seeds} seeds", columns=2)
        counts = np.arange(claim.relevant + 1)
        labels, linear = np.where(counts % 2, 1, -1), EASY / (1 + EASY * (claim.relevant - 1))
        right.plot(counts, labels, "o", color=BLACK, markerfacecolor="none", markersize=14, label="label $y$")
        theory = linear * (2 * counts - claim.relevant)
        right.plot(counts, theory, "x", color=BLACK, markersize=11, zorder=5, label="best linear function")
        looks = ((RED, ":", "s", "after step 1"), (BLUE, "-", "D", "after step 2"))
        for (colour, line, marker, label), values in zip(looks, responses(chosen)):
            right.plot(counts, values.mean(1), line, color=colour, marker=marker, markersize=6, label=label)
            right.fill_between(counts, values.min(1), values.max(1), color=colour, alpha=0.2, linewidth=0)
        right.set_xlabel(r"relevant patterns in the input, $\sum_{j \in A} \tilde\phi_j$")
        right.set_ylabel(r"$\langle \hat a, \phi(x) \rangle$")
        legend_above(right, "a head fitted to the features", columns=2)
    return made


def main(out: Path, seeds: int = 6, steps: int = STEPS) -> Path:
    """Train, draw, save."""
    return save(figure(seeds, steps), out / "emergence.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/emergence"))
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    try:
        print(main(options.out, options.seeds, options.steps))
    except fl.InputError as error:
        parser.error(str(error))
