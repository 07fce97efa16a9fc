"""Real digits with one label in five flipped: first the pattern is learnt, then the flips are memorised.

python examples/meter_flips.py --out out/meter_flips

A network with one hidden layer is trained on scikit-learn's handwritten digits by gradient descent, once with
clean labels and once with 20 % of them replaced by another digit. Left: which share of the samples is fitted as it
is labelled. At the line, where the test error is lowest, nearly all clean labels are and flipped ones are still
given their true digit; later they are memorised, and the test error rises. The meter reads both networks, the one
with flips also at the end of the first stage. Lines are means over seeds, bands the range of all; the table, and
on the right the margins, thin after the first stage and thick at the end, are those of the first seed.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

import featlab as fl
from featlab.engine.progress import progress_bar
from featlab.metering import beside
from featlab.plots._style import BLACK, BLUE, DARK_RED, GREY, house_style, legend_above, panels, save

FIRST_SEED = 7_600_000
WIDTH, RATE, FLIPS, TRAINED = 256, 0.5, 0.2, 600
RECORDED = 40  # moments, in geometric steps


class Data(NamedTuple):
    """Samples to train on, before and after flips, and others to test with."""

    inputs: jax.Array
    labels: jax.Array
    clean: jax.Array
    test_inputs: jax.Array
    test_labels: jax.Array


def data(seed: int, flips: float) -> Data:
    """Other digits for other seeds; the flipped labels are those of other digits, all equally often."""
    images = fl.data.digits()
    random = np.random.default_rng(seed)
    order = random.permutation(len(images.labels))
    rows, labels = images.rows()[order], images.labels[order]
    moved = (labels[:TRAINED] + random.integers(1, 10, TRAINED)) % 10
    given = np.where(random.random(TRAINED) < flips, moved, labels[:TRAINED])
    return Data(*map(jnp.asarray, (rows[:TRAINED], given, labels[:TRAINED], rows[TRAINED:], labels[TRAINED:])))


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


def moments(steps: int) -> np.ndarray:
    """The steps that are recorded."""
    return np.unique(np.concatenate([[0], np.geomspace(1, steps, RECORDED).round().astype(int)]))


def shares(params, seen: Data):
    """Fitted of the clean labels, of the flipped ones, flipped ones given their true digit, and the test error."""
    found = jnp.argmax(_all(params, seen.inputs), axis=1)
    flipped = seen.labels != seen.clean

    def share(hit, of):
        return jnp.sum(hit & of) / jnp.maximum(jnp.sum(of), 1)

    wrong = jnp.mean(jnp.argmax(_all(params, seen.test_inputs), axis=1) != seen.test_labels)
    fitted = found == seen.labels
    return jnp.stack([share(fitted, ~flipped), share(fitted, flipped), share(found == seen.clean, flipped), wrong])


@jax.jit
def train(params, seen: Data, pauses):
    """Gradient descent with pauses in which shares are read; the parameters at each of them."""

    def loss(params):
        return optax.softmax_cross_entropy_with_integer_labels(_all(params, seen.inputs), seen.labels).mean()

    def step(_, params):
        return jax.tree.map(lambda w, g: w - RATE * g, params, jax.grad(loss)(params))

    def until(params, count):
        params = jax.lax.fori_loop(0, count, step, params)
        return params, (params, shares(params, seen))

    return jax.lax.scan(until, params, pauses)[1]


def run(seeds: int, steps: int):
    """Paths of parameters and shares, by the share of flipped labels, and the data."""
    pauses = jnp.asarray(np.diff(moments(steps), prepend=0))
    found: dict[float, list] = {}
    with progress_bar("training", 2 * seeds, unit="networks") as tell:
        for flips in (0.0, FLIPS):
            for i in range(seeds):
                seen = data(FIRST_SEED + i, flips)
                begun = start(jax.random.key(FIRST_SEED + i))
                found.setdefault(flips, []).append((seen, *train(begun, seen, pauses)))
                tell(sum(map(len, found.values())))
    return found


def first_stage(path: np.ndarray) -> int:
    """The moment of the lowest test error."""
    return int(np.argmin(path[:, 3]))


def at(params, k: int):
    """One moment of a path."""
    return jax.tree.map(lambda leaf: leaf[k], params)


def readings(found) -> dict[str, fl.metering.Reading]:
    """The meter on the first seed: clean labels, and with flips after either stage."""
    (clean, clean_path, _), (seen, path, shown) = found[0.0][0], found[FLIPS][0]
    middle = first_stage(np.asarray(shown))
    ends = {"clean": (clean, clean_path, -1)}
    ends |= {"flips, stage 1": (seen, path, middle), "flips, end": (seen, path, -1)}
    return {
        name: fl.meter(apply, at(one, 0), at(one, k), (of.inputs, of.labels, of.clean), features=features)
        for name, (of, one, k) in ends.items()
    }


def figure(found, read: dict[str, fl.metering.Reading], steps: int):
    """Two panels: what is fitted when, and by what margins."""
    times = moments(steps)
    paths = np.array([shown for _, _, shown in found[FLIPS]])
    clean = np.array([shown for _, _, shown in found[0.0]])
    curves = [
        (paths[:, :, 0], "clean fitted", {"color": BLUE}),
        (paths[:, :, 1], "flipped memorised", {"color": DARK_RED, "linestyle": "--"}),
        (paths[:, :, 2], "flipped: true digit", {"color": BLACK, "linestyle": ":"}),
        (paths[:, :, 3], "test error", {"color": GREY, "linestyle": "-."}),
        (clean[:, :, 3], "the same without flips", {"color": GREY, "linewidth": 1.2}),
    ]
    with house_style():
        made, (left, right) = panels(2)
        for values, label, look in curves:
            left.plot(times[1:], values.mean(0)[1:], label=label, **look)
            ends = values.min(0)[1:], values.max(0)[1:]
            left.fill_between(times[1:], *ends, color=look["color"], alpha=0.2, linewidth=0)
        left.axvline(times[first_stage(paths.mean(0))], color=GREY, linewidth=1)
        left.set_xscale("log")
        left.set_xlabel("step $t$")
        left.set_ylabel("share")
        legend_above(left, columns=2)
        looks = {"flips, stage 1": 1.4, "flips, end": 3.0}
        for name, width in looks.items():
            margins = read[name].margins
            assert margins is not None and margins.flipped is not None
            for chosen, label, colour, line in (
                (~margins.flipped, "clean", BLUE, "-"),
                (margins.flipped, "flipped", DARK_RED, "--"),
            ):
                text = f"{label}, {name.removeprefix('flips, ')}"
                right.ecdf(margins.after[chosen], color=colour, linestyle=line, linewidth=width, label=text)
        right.axvline(0, color=BLACK, linewidth=1.6)
        right.set_xlabel("margin of the label trained with")
        right.set_ylabel("share of samples below")
        legend_above(right, columns=2)
    return made


def main(out: Path, seeds: int = 4, steps: int = 1000) -> Path:
    """Train, meter, print, draw, save."""
    if seeds < 1 or steps < 10:
        raise fl.InputError(f"seeds must be at least 1 and steps at least 10, got {seeds} and {steps}.")
    found = run(seeds, steps)
    read = readings(found)
    from rich.console import Console

    Console(width=110).print(beside(read))
    for name, one in read.items():
        print(f"{name}: {one.sentence}")
    whole = fl.plots.meter(read["flips, end"], "digits, one label in five flipped")
    save(whole, out / "meter_flips_reading.png")
    return save(figure(found, read, steps), out / "meter_flips.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/meter_flips"))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=1000)
    options = parser.parse_args()
    try:
        print(main(options.out, options.seeds, options.steps))
    except fl.InputError as error:
        parser.error(str(error))
