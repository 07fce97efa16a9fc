"""Adam against SGD on real digits, metered where both have the same training loss.

python examples/meter_adam.py --out out/meter_adam

The same network from the same start on the same mini-batches of scikit-learn's handwritten digits. Left: how far
all parameters have moved, right: the test error, both over the training loss, which falls from left to right.
Lines are means over seeds, bands the range of all. The table has the meter's readings of the first seed at the
first recorded moment with a training loss below 0.01; the losses there are printed.
"""

from __future__ import annotations

import argparse
import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import featlab as fl
from featlab.engine.progress import progress_bar
from featlab.metering import beside
from featlab.plots._style import BLUE, RED, house_style, legend_above, panels, save

FIRST_SEED = 7_610_000
WIDTH, BATCH, TRAINED = 256, 50, 600
SAME_LOSS = 0.01
RECORDED = 40  # moments, in geometric steps
ALGORITHMS = {"SGD": optax.sgd(0.2), "Adam": optax.adam(1e-3)}
LOOKS: dict[str, dict[str, Any]] = {
    "SGD": {"color": BLUE, "label": r"SGD, $\eta = 0.2$"},
    "Adam": {"color": RED, "linestyle": "--", "label": r"Adam, $\eta = 0.001$"},
}


def data(seed: int):
    """Inputs and labels to train on, and to test with; other ones for other seeds."""
    images = fl.data.digits()
    order = np.random.default_rng(seed).permutation(len(images.labels))
    rows, labels = jnp.asarray(images.rows()[order]), jnp.asarray(images.labels[order])
    return (rows[:TRAINED], labels[:TRAINED]), (rows[TRAINED:], labels[TRAINED:])


def start(key) -> dict[str, Any]:
    """Weights of a network with one hidden layer and ten outputs."""
    first, second = jax.random.split(key)
    return {
        "first": jax.random.normal(first, (WIDTH, 64)) / 8,
        "last": jax.random.normal(second, (10, WIDTH)) / jnp.sqrt(WIDTH),
    }


def features(params, x):
    """What the last layer sees."""
    return jax.nn.relu(params["first"] @ x)


def apply(params, x):
    """One number for each digit."""
    return params["last"] @ features(params, x)


_all = jax.vmap(apply, in_axes=(None, 0))


def loss(params, inputs, labels):
    """Cross-entropy."""
    return optax.softmax_cross_entropy_with_integer_labels(_all(params, inputs), labels).mean()


@functools.partial(jax.jit, static_argnames="algorithm")
def train(algorithm: str, params, key, seen, test, pauses):
    """The parameters, the training loss and the test error at each pause."""
    optimiser = ALGORITHMS[algorithm]

    def step(i, state):
        params, memory = state
        chosen = jax.random.randint(jax.random.fold_in(key, i), (BATCH,), 0, TRAINED)
        updates, memory = optimiser.update(jax.grad(loss)(params, seen[0][chosen], seen[1][chosen]), memory)
        return optax.apply_updates(params, updates), memory

    def until(state, ends):
        params, memory = jax.lax.fori_loop(ends[0], ends[1], step, state)
        wrong = jnp.mean(jnp.argmax(_all(params, test[0]), axis=1) != test[1])
        return (params, memory), (params, loss(params, *seen), wrong)

    return jax.lax.scan(until, (params, optimiser.init(params)), pauses)[1]


def run(seeds: int, steps: int):
    """What `train` returns, by algorithm and seed, and the data of the first seed."""
    moments = np.unique(np.concatenate([[0], np.geomspace(1, steps, RECORDED).round().astype(int)]))
    pauses = jnp.asarray(np.stack([np.concatenate([[0], moments[:-1]]), moments], axis=1))
    found: dict[str, list] = {name: [] for name in ALGORITHMS}
    with progress_bar("training", len(ALGORITHMS) * seeds, unit="networks") as tell:
        for i in range(seeds):
            seen, test = data(FIRST_SEED + i)
            for name in ALGORITHMS:
                keys = jax.random.split(jax.random.key(FIRST_SEED + i))
                found[name].append(train(name, start(keys[0]), keys[1], seen, test, pauses))
                tell(sum(map(len, found.values())))
    return found, data(FIRST_SEED)[0]


def moment(losses) -> int:
    """The first recorded one with a training loss that is low enough, or the last."""
    low = np.flatnonzero(np.asarray(losses) < SAME_LOSS)
    return int(low[0]) if len(low) else -1


def readings(found, seen) -> dict[str, fl.metering.Reading]:
    """The meter on the first seed, where the training loss is first low enough, or at the end."""
    read = {}
    for name, ((path, losses, _), *_) in found.items():
        first, there = (jax.tree.map(lambda leaf, k=k: leaf[k], path) for k in (0, moment(losses)))
        read[name] = fl.meter(apply, first, there, seen, features=features)
    return read


def movement(path) -> np.ndarray:
    """How far all parameters have moved, at each moment."""
    leaves = [np.asarray(leaf).reshape(len(leaf), -1) for leaf in jax.tree.leaves(path)]
    everything = np.concatenate(leaves, axis=1)
    return np.linalg.norm(everything - everything[0], axis=1) / np.linalg.norm(everything[0])


def figure(found):
    """Two panels over the training loss: movement, and test error."""
    with house_style():
        made, (left, right) = panels(2)
        for name, paths in found.items():
            losses = np.array([np.asarray(one[1]) for one in paths])
            grid = np.geomspace(losses[:, 0].min(), losses.min(axis=1).max(), 40)
            for axes, values in (
                (left, [movement(one[0]) for one in paths]),
                (right, [np.asarray(one[2]) for one in paths]),
            ):
                # The loss of mini-batch training does not fall at every moment; its smallest value so far does.
                over = [
                    np.interp(-np.log(grid), -np.log(np.minimum.accumulate(one)), value)
                    for one, value in zip(losses, values)
                ]
                axes.plot(grid, np.mean(over, axis=0), **LOOKS[name])
                ends = np.min(over, axis=0), np.max(over, axis=0)
                axes.fill_between(grid, *ends, color=LOOKS[name]["color"], alpha=0.2, linewidth=0)
        for axes, words in ((left, r"$\|\theta - \theta_0\| / \|\theta_0\|$"), (right, "test error")):
            axes.set_xscale("log")
            axes.invert_xaxis()
            axes.set_xlabel("training loss")
            axes.set_ylabel(words)
            legend_above(axes)
        right.set_yscale("log")
    return made


def main(out: Path, seeds: int = 4, steps: int = 4000) -> Path:
    """Train, meter, print, draw, save."""
    if seeds < 1 or steps < 10:
        raise fl.InputError(f"seeds must be at least 1 and steps at least 10, got {seeds} and {steps}.")
    found, seen = run(seeds, steps)
    read = readings(found, seen)
    from rich.console import Console

    Console(width=110).print(beside(read))
    for name, one in read.items():
        print(f"{name}, training loss {found[name][0][1][moment(found[name][0][1])]:.4f}: {one.sentence}")
    return save(figure(found), out / "meter_adam.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/meter_adam"))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=4000)
    options = parser.parse_args()
    try:
        print(main(options.out, options.seeds, options.steps))
    except fl.InputError as error:
        parser.error(str(error))
