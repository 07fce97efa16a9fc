"""`live`: training whose readings come while it runs, for those who watch.

`run` is one program for one experiment. Here a program serves all values of the experiment's numbers, of n up to
the next power of two and of the number of steps, so that after the first time another value costs no compiling.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from featlab.experiment import Experiment
from featlab.groups import size_place, takes_traced_size
from featlab.probes import geometric
from featlab.runner import as_seeds
from featlab.space import Span
from featlab.trajectory import advance, begin, draw_block, of_any_length


class Moments(NamedTuple):
    """Some more moments of a training: their steps, and for every variable one number a moment and seed."""

    steps: np.ndarray
    readings: dict[str, np.ndarray]
    live: bool  # whether any run still trains


def live(
    experiment: Experiment, seeds: int | Iterable[int] = 1, *, moments: int = 60, at_once: int = 2
) -> Iterator[Moments]:
    """Train, and yield what the probes read, `at_once` moments at a time, about so many in all.

    A variable of many numbers becomes the largest magnitude among them. Runs that reached their level rest, and
    when all do there are no more moments.
    """
    members = as_seeds(seeds, "live")
    steps = geometric(moments).times(experiment.last_step)
    # A GPU would otherwise multiply float32 matrices in ten-bit precision.
    with jax.enable_x64(experiment.precision == 64), jax.default_matmul_precision("highest"):
        block = _drawn(of_any_length(experiment), members)
        carry = begin(block)
    for start in range(0, len(steps), at_once):
        part = steps[start : start + at_once]
        with jax.enable_x64(experiment.precision == 64), jax.default_matmul_precision("highest"):
            # The last part is filled up with moments at which nothing is due: one program serves all parts.
            missing = at_once - len(part)
            due = np.repeat(np.arange(at_once) < len(part), len(experiment.probes)).reshape(at_once, -1)
            times = np.concatenate([part, np.full(missing, part[-1])])
            carry, readings = advance(block, carry, jnp.asarray(times), jnp.asarray(due))
            read, moving = jax.device_get((readings, carry.live))
        named = {name: _reduced(value[: len(part)]) for one in read for name, value in one.items()}
        yield Moments(part, named, bool(moving.any()))
        if not moving.any():
            return


def _drawn(experiment: Experiment, seeds: np.ndarray):
    """The runs before their first step, with arrays in place of real numbers and of n."""
    n, padded = experiment.data.n, takes_traced_size(experiment)
    rows = 1 << (n - 1).bit_length() if padded else n
    leaves, parts = jax.tree.flatten(experiment)
    traced = [jnp.full(len(seeds), leaf, float) if isinstance(leaf, float) else leaf for leaf in leaves]
    if padded:
        place = size_place(experiment)
        assert place is not None
        traced[place] = jnp.full(len(seeds), n)
    space = experiment.empty_space(rows)
    if isinstance(space, Span) and not space.infinite:
        space = eqx.tree_at(lambda s: s.dimension, space, 1.0)  # every run has its own
    products = not experiment.product_obstacles()
    return draw_block(jax.tree.unflatten(parts, traced), None, space, jnp.asarray(seeds), rows, products=products)


def _reduced(values: np.ndarray) -> np.ndarray:
    """(moment, seed, ...) to one number for each moment and seed."""
    return values if values.ndim == 2 else np.abs(values.reshape(*values.shape[:2], -1)).max(axis=2)
