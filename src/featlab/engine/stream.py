"""`live`: training whose readings come while it runs, for those who watch.

`run` is one program for one experiment. Here a program serves all values of the experiment's numbers, of n up to
the next power of two and of the number of steps, so that after the first time another value costs no compiling.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from featlab.core.sees import Sees
from featlab.engine.loop import computing, draw_block, of_any_length, open_space, train
from featlab.engine.program import size_place, takes_traced_size
from featlab.engine.reduction import largest
from featlab.engine.run import as_seeds
from featlab.experiment import Experiment
from featlab.probes import geometric
from featlab.probes.running import as_running


class Moments(NamedTuple):
    """Some more moments of a training: their steps, and for every variable one number a moment and seed."""

    steps: np.ndarray
    readings: dict[str, np.ndarray]
    live: bool  # whether any run still trains


def live(
    experiment: Experiment, seeds: int | Iterable[int] = 1, *, moments: int = 60, at_once: int = 2
) -> Iterator[Moments]:
    """Train, and yield what the probes read, `at_once` moments at a time, about `moments` in all.

    A variable of many numbers becomes the largest magnitude among them. Runs that reached their level rest, and
    when all do there are no more moments.
    """
    members = as_seeds(seeds, "live")
    steps = geometric(moments).times(experiment.last_step)
    described = {name: one for probe in experiment.probes for name, one in (as_running(probe) or probe).variables}
    with computing(experiment):
        block = _drawn(experiment, members)
    real = np.arange(block.shared.draw.training.mask.shape[-1]) < experiment.data.n
    due = np.ones((len(steps), len(experiment.probes)), bool)
    stretches = train(block, steps, due, at_once)
    while True:
        with computing(experiment):  # not while nobody asks for more
            part = next(stretches, None)
            if part is None:
                return
            read, moving = jax.device_get((part.readings, part.carry.live))
        named = {
            name: largest(value, described.get(name), real, lead=2) for one in read for name, value in one.items()
        }
        yield Moments(part.times, named, bool(moving.any()))
        if not moving.any():
            return


def _drawn(experiment: Experiment, seeds: np.ndarray):
    """The runs before their first step, with arrays in place of real numbers and of n."""
    n, padded = experiment.data.n, takes_traced_size(experiment)
    rows = 1 << (n - 1).bit_length() if padded else n
    leaves, parts = jax.tree.flatten(of_any_length(experiment))
    traced = [jnp.full(len(seeds), leaf, float) if isinstance(leaf, float) else leaf for leaf in leaves]
    if padded:
        place = size_place(experiment)
        assert place is not None
        traced[place] = jnp.full(len(seeds), n)
    products, space = experiment.representation == Sees.PRODUCTS, open_space(experiment, rows)
    return draw_block(jax.tree.unflatten(parts, traced), None, space, jnp.asarray(seeds), rows, products=products)
