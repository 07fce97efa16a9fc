"""Many runs at once, each with its own numbers and its own seed, read where they end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from featlab.experiment import Experiment
from featlab.fields import InputError
from featlab.probes import until
from featlab.trajectory import NEVER, advance, begin, draw_block, end, numbered, prepare

_IN_CACHE = 32_768  # products that a block of runs holds: beyond, runs are faster one after the other


def endings(
    experiments: Sequence[Experiment],
    seeds: Sequence[int],
    *,
    rows: int | None = None,
    tell: Callable[[int], None] | None = None,
) -> dict[str, np.ndarray]:
    """What the probes read at the end of each run, one run for each experiment and its seed.

    The experiments may differ in real numbers only; they train in inner products where they can. Every variable
    has the run as first axis. Beside the probes' there are `steps_taken` and `trained`. `tell` is told how many
    runs are done.
    """
    if len(experiments) != len(seeds) or not experiments:
        raise InputError(f"endings needs one seed for each experiment, got {len(experiments)} and {len(seeds)}.")
    if not all(isinstance(s, int | np.integer) and 0 <= s < 2**31 for s in seeds):
        raise InputError(f"Seeds must be whole numbers from 0 to 2^31 - 1, got {list(seeds)!r}.")
    first = experiments[0]
    rows = first.data.n if rows is None else rows
    size = _block_size(first, rows, len(seeds))
    count = -(-len(seeds) // size)
    # The last block is filled up, so that one compiled program serves all.
    places = np.minimum(np.arange(count * size), len(seeds) - 1).reshape(count, size)
    numbered([experiments[i] for i in places[:, 0]], rows)  # refuses blocks that have no place beside the first
    blocks = []
    with jax.enable_x64(first.precision == 64), jax.default_matmul_precision("highest"):
        for place in places:
            members = [experiments[i] for i in place]
            experiment, space = numbered(members, rows)
            products = not any(member.product_obstacles() for member in members)
            block_seeds = jnp.asarray([seeds[i] for i in place], jnp.uint32)
            blocks.append(jax.device_get(_finish(experiment, space, block_seeds, rows, products)))
            if tell is not None:
                tell(min(len(blocks) * size, len(seeds)))
    return {name: np.concatenate([block[name] for block in blocks])[: len(seeds)] for name in blocks[0]}


@eqx.filter_jit
def _finish(experiment, space, seeds, rows, products):
    draws = draw_block(experiment, space, seeds, rows, products=products)
    prepared, carry = prepare(experiment, draws), begin(experiment, draws)
    times, due = jnp.array([experiment.last_step]), jnp.ones((1, len(experiment.probes)), bool)
    carry, readings = advance(experiment, draws, prepared, carry, times, due)
    carry = end(experiment, draws, carry)
    read = {name: value[0] for reading in readings for name, value in reading.items()}
    fine = carry.diverged_at == NEVER
    if isinstance(experiment.steps, until):
        fine = fine & (carry.stopped_at != NEVER)
    return {**read, "steps_taken": carry.steps_taken, "trained": fine}


def _block_size(experiment: Experiment, rows: int, runs: int) -> int:
    if jax.default_backend() != "cpu":
        return runs
    held = 2 * rows * max(experiment.network.vectors(), 1)  # two patches
    size = int(np.clip(_IN_CACHE // held, 1, 16))
    return -(-runs // -(-runs // size))
