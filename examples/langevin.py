"""Mean-field Langevin dynamics: the density of the weights over time, and the exponential fall of the free energy.

python examples/langevin.py --out out/langevin
python examples/langevin.py --width 20000    # more particles: their free energy is followed further

A two-layer network of one input, its second layer always the best one (Takakura and Suzuki, 2024). Lines are the
density itself, computed on a grid. From a start on one side mass must cross to the other, at a rate that is known:
twice the spectral gap of the Gibbs law at the end. From an even start nothing needs to cross, and the fall is much
faster. Points are the free energy of particles trained by Langevin, as far as it can be estimated from them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

import featlab as fl
from featlab.theory.mean_field import MeanField

PENALTY, CONFINEMENT, TEMPERATURE = 0.05, 0.05, 0.03  # lambda, r, tau
SPREAD = 0.3  # deviation of the even start
ETA, STEPS = 0.02, 1000
SHOWN = (0.0, 5.0, 25.0, 150.0)  # times
LOOKS = (("#DDAA33", ":"), ("#BB5566", "-."), ("#004488", "--"), ("#000000", "-"))


def experiment(width: int) -> fl.Experiment:
    """Particles from an even start, with what the density needs to know of the training set."""

    def training_set(view):
        return jnp.stack([view.training.inputs[:, 0, 0], view.training.labels])

    return fl.Experiment(
        data=fl.data.SingleIndex(n=40, d=1, link=jnp.sin, label_noise=0.1),
        network=fl.networks.TwoLayer(width=width, activation=jnp.tanh, init_scale=SPREAD),
        algorithm=fl.algorithms.Langevin(ETA, TEMPERATURE, CONFINEMENT),
        objective=fl.objectives.ProfileRidge(penalty=PENALTY),
        probes=[fl.probes.mean_field_energy, training_set],
        steps=STEPS,
        record=fl.probes.every(STEPS // 40),
        precision=64,
    )


def draw(field: MeanField, particles: tuple[np.ndarray, np.ndarray], floor: float) -> Figure:
    """The density at a few times, and the free energy of three starts."""
    end = field.minimiser()
    rate = field.spectral_gap(field.potential(end))
    aside, even = field.normal(1.0, 0.5), field.normal(0.0, SPREAD)
    times = np.linspace(0, 150, 301)
    from_aside, from_even = (np.array([start, *field.evolve(start, times[1:], 0.1)]) for start in (aside, even))
    gaps = [np.array([field.gap(mass) for mass in masses]) for masses in (from_aside, from_even)]
    with fl.plots.house_style():
        figure = Figure(figsize=(13, 5.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        for time, (colour, line) in zip(SHOWN, LOOKS):
            mass = from_aside[np.searchsorted(times, time)]
            left.plot(field.grid, mass / field.cell, color=colour, linestyle=line, label=f"$t = {time:g}$")
        left.fill_between(field.grid, end / field.cell, color="#CCCCCC", label=r"$\mu_\infty$", zorder=1)
        left.set(xlabel="first-layer weight  $w$", ylabel=r"density  $\mu_t(w)$", xlim=(-5, 5), ylim=(0, None))
        left.legend()
        right.plot(times, gaps[0], color="#004488", label="start on one side")
        there = gaps[1] > 1e-8
        right.plot(times[there], gaps[1][there], color="#BB5566", linestyle="--", label="even start")
        shown = particles[1] > floor
        right.plot(
            particles[0][shown], particles[1][shown], "o", color="#BB5566", markerfacecolor="white",
            label="even start, particles",
        )  # fmt: skip
        guide = 3 * gaps[0][-1] * np.exp(2 * rate * (times[-1] - times))
        half = times > 50
        right.plot(times[half], guide[half], color="#000000", linestyle=":", label=r"$\propto e^{-2\gamma t}$")
        right.set(
            yscale="log", ylim=(1e-6, None), xlabel=r"time  $t = \eta \cdot$ steps",
            ylabel=r"$\mathcal{L}(\mu_t) - \mathcal{L}(\mu_\infty)$",
        )  # fmt: skip
        right.legend()
    return figure


def main(out: Path, seeds: int, width: int) -> Path:
    """Train particles, print the rates of each training set, draw the first, and return where the figure is."""
    if width < 100:
        raise fl.InputError(f"--width must be at least 100 particles, got {width}.")
    histories = fl.run(experiment(width), seeds)
    fields = []
    for inputs, labels in histories.training_set.isel(step=0).values:
        field = MeanField(inputs, labels, PENALTY, CONFINEMENT, TEMPERATURE, np.linspace(-8, 8, 321))
        rate = field.spectral_gap(field.potential(field.minimiser()))
        print(f"spectral gap of the Gibbs law at the end: {rate:.4f}; the free energy falls at {2 * rate:.4f}")
        fields.append(field)
    field, history = fields[0], histories.isel(seed=0)
    free = history.objective_value + history.confinement_energy + TEMPERATURE * history.particle_entropy
    gaps = free.values - field.free_energy(field.minimiser())
    # Three standard errors of the entropy estimated from that many particles.
    floor = 2.4 * TEMPERATURE / np.sqrt(width)
    figure = draw(field, (ETA * history.step.values, gaps), floor)
    fl.plots.save(figure, out / "langevin.svg")
    return fl.plots.save(figure, out / "langevin.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/langevin"), help="folder to write to")
    parser.add_argument("--seeds", type=int, default=1, help="training sets")
    parser.add_argument("--width", type=int, default=4000, help="particles")
    given = parser.parse_args()
    try:
        print(main(given.out, given.seeds, given.width))
    except fl.InputError as error:
        parser.error(str(error))
