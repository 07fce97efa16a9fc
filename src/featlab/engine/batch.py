"""Many runs at once, each with its own numbers and its own seed, read where they end.

Runs are arranged in units, each one call of a compiled program: on a CPU a loop over blocks that stay in its
cache, on a GPU few blocks that fill its memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from featlab.core.space import Ambient
from featlab.core.validation import InputError
from featlab.engine.loop import NEVER, Block, computing, draw_block, of_any_length, runs_axis, train
from featlab.engine.program import Program, programs_of
from featlab.engine.reduction import largest
from featlab.experiment import Experiment
from featlab.probes import until
from featlab.probes.running import as_running

_IN_CACHE = 32_768  # products that a block of runs holds: beyond, runs are faster one after the other
_DRAWN_IN_CACHE = 8 * _IN_CACHE  # the same for numbers of whole draws, where a run is not in products
_TOGETHER = 64  # runs in a block on a CPU, at most
_BLOCKS = 64  # in a call, at most
_WORK = 2e10  # operations in a call, or one block: some tenths of a second on a CPU
_COMPILING = 1e11  # operations that take no longer than compiling a program for them
_NEXT_TO_NOTHING = 1e-2 * _COMPILING  # so few that a block is filled up for the sake of one program less
_TUNING = 1e14  # operations in a call of a GPU that are worth trying out several kernels for
_MEMORY = 0.25  # of a GPU, that a block may fill


def train_many(
    experiments: Sequence[Experiment], seeds: Sequence[int], *, tell: Callable[[int], None] | None = None
) -> dict[str, np.ndarray]:
    """What the probes read at the end of each run, one run for each experiment and its seed.

    The experiments may differ in real numbers and in n; they train in inner products where they can. Every
    variable has the run as first axis. Beside the probes' there are `steps_taken` and `trained`. `tell` is told
    how many runs are done.
    """
    if len(experiments) != len(seeds) or not experiments:
        raise InputError(
            f"train_many needs one seed for each experiment, got {len(experiments)} and {len(seeds)}."
        )
    if not all(isinstance(s, int | np.integer) and 0 <= s < 2**31 for s in seeds):
        raise InputError(f"Seeds must be whole numbers from 0 to 2^31 - 1, got {list(seeds)!r}.")
    programs = programs_of(experiments)
    if len(programs) > len({program.rows for program in programs}):
        raise InputError(
            "Experiments that run together may differ in finite real numbers (snr, learning_rate, ...) and in n, "
            f"and these differ in more: {programs[0].first} and {programs[1].first}."
        )
    read: dict[str, np.ndarray] = {}
    done = 0
    for program in programs:
        places = program.table.places
        for runs in units(program, np.arange(len(places)), np.asarray(seeds)[places]):
            values = compute(program, runs)
            for name, value in values.items():
                read[name] = into = _wide_enough(read.get(name), len(seeds), value)
                into[(places[runs.experiments], *map(slice, value.shape[1:]))] = value
            done += len(runs.experiments)
            if tell is not None:
                tell(done)
    return read


def _wide_enough(into: np.ndarray | None, runs: int, value: np.ndarray) -> np.ndarray:
    """Room for more values: those of training sets of other sizes have other shapes, and zeros beyond."""
    if into is None:
        return np.zeros((runs, *value.shape[1:]), value.dtype)
    missing = [(0, 0)] + [(0, max(0, new - old)) for old, new in zip(into.shape[1:], value.shape[1:])]
    return np.pad(into, missing) if np.any(missing) else into


class Unit(eqx.Module):
    """The runs of a unit, in the order in which they are computed and written down.

    `slots[k, f, m]` is the place among them of member m of family f of block k; a slot that fills up a block
    repeats a run and is marked False in `real`.
    """

    experiments: np.ndarray  # places in the program's table
    seeds: np.ndarray
    slots: np.ndarray
    real: np.ndarray


def units(program: Program, experiments: np.ndarray, seeds: np.ndarray) -> list[Unit]:
    """The runs of (experiment, seed), arranged in units; seed by seed, so that the first ones show everything."""
    families = _family_of_each(program)[experiments]
    order = np.lexsort([families, seeds])
    experiments, seeds, families = experiments[order], seeds[order], families[order]
    begins = np.ones(len(order), bool)
    begins[1:] = (np.diff(seeds) != 0) | (np.diff(families) != 0) | (not program.own)
    family = np.cumsum(begins) - 1
    starts, sizes = np.flatnonzero(begins), np.bincount(family)
    held, members = _runs_in_a_block(program), int(sizes.max())
    members = -(-members // -(-members // held))  # of a family in one block: equal parts
    few = len(order) * work(program) < _COMPILING
    light = _TOGETHER * work(program) < _NEXT_TO_NOTHING
    members = min(_rounded(members, 4), held) if few and (members > 1 or (light and program.own)) else members
    parts = -(-sizes // members)
    position = np.arange(len(order)) - starts[family]
    chunk = (np.cumsum(parts) - parts)[family] + position // members
    slots = np.full((parts.sum(), members), -1)
    slots[chunk, position % members] = np.arange(len(order))
    slots = np.where(slots < 0, slots[:, :1], slots)
    per_block = max(1, held // members)
    blocks = -(-len(slots) // per_block)
    per_block = min(_rounded(len(slots), 16 if light else 4), per_block) if few else -(-len(slots) // blocks)
    filled = np.minimum(np.arange(blocks * per_block), len(slots) - 1)
    slots = slots[filled].reshape(blocks, per_block, members)
    real = np.zeros(slots.shape, bool)
    real.ravel()[np.unique(slots.ravel(), return_index=True)[1]] = True
    length = _blocks_at_once(program, per_block * members)
    cut = []
    for start in range(0, blocks, length):
        part, kept = slots[start : start + length], real[start : start + length]
        inside, place = np.unique(part, return_inverse=True)
        cut.append(Unit(experiments[inside], seeds[inside], place.reshape(part.shape), kept))
    return cut


def _rounded(count: int, least: int) -> int:
    """Round up to a power of four: a few wasted runs cost less than compiling for a new batch size."""
    return 4 ** -(-(max(count, least) - 1).bit_length() // 2)


def compute(program: Program, runs: Unit, *, reduced: bool = False) -> dict[str, np.ndarray]:
    """What was read at the ends of the runs of a unit, in their order.

    Reduced, a variable of many numbers becomes the largest magnitude among them.
    """
    count, *shape = runs.slots.shape
    slots = np.zeros((max(count, _blocks_at_once(program, math.prod(shape))), *shape), int)
    slots[:count] = runs.slots  # beyond them nothing is computed
    with computing(program.first):
        numbers = _numbers(program, runs, slots)
        counts = jnp.asarray(count), jnp.asarray(program.first.last_step)
        tuned = jax.default_backend() == "cpu" or slots.size * work(program) > _TUNING
        finish = _finish if tuned else _finish_untuned
        read = finish(numbers, *counts, program.space, program.rows, program.products, reduced)
        read = jax.device_get(read)
    found = {}
    for name, value in read.items():
        found[name] = np.empty((len(runs.experiments), *value.shape[3:]), value.dtype)
        found[name][runs.slots[runs.real]] = value[:count][runs.real]
    return found


def _family_of_each(program: Program) -> np.ndarray:
    """A number for each experiment, the same for those that differ in the program's own numbers alone."""
    others = [c for p, c in program.table.columns.items() if p not in program.own and np.any(c != c[0])]
    if not others:
        return np.zeros(len(program.table.places), int)
    return np.unique(np.stack(others, axis=1), axis=0, return_inverse=True)[1].reshape(-1)


def _numbers(program: Program, runs: Unit, slots: np.ndarray) -> tuple[Experiment, Experiment | None, Any]:
    """The numbers of all runs, as experiments: what a family shares, and what each of its runs has alone."""
    leaves, parts = jax.tree.flatten(of_any_length(program.first))
    own = program.own if slots.shape[-1] > 1 else ()
    shared_leaves: list[Any] = list(leaves)
    own_leaves: list[Any] = [None] * len(leaves)
    for place, column in program.table.columns.items():
        kind = int if isinstance(leaves[place], int) else float
        values = column[runs.experiments]
        if place in own:
            shared_leaves[place], own_leaves[place] = None, jnp.asarray(values[slots], kind)
        else:
            shared_leaves[place] = jnp.asarray(values[slots[..., 0]], kind)
    seeds = jnp.asarray(runs.seeds[slots[..., 0]], jnp.uint32)
    members = jax.tree.unflatten(parts, own_leaves) if own else None
    return jax.tree.unflatten(parts, shared_leaves), members, seeds


def _all_blocks(numbers, count, steps, space, rows, products, reduced):
    """The blocks of a unit one after the other, `count` of them; the rest of the results stays zero."""

    def one(k):
        shared, own, seeds = jax.tree.map(lambda leaf: leaf[k] if runs_axis(leaf) == 0 else leaf, numbers)
        block = draw_block(shared, own, space, seeds, rows, products=products)
        read = follow(block, steps, reduced=reduced)
        return read if own is not None else {name: value[:, None] for name, value in read.items()}

    length = len(numbers[2])
    shapes = jax.eval_shape(one, 0)
    nothing = jax.tree.map(lambda leaf: jnp.zeros((length, *leaf.shape), leaf.dtype), shapes)

    def put(k, found):
        return jax.tree.map(lambda into, value: into.at[k].set(value), found, one(k))

    return jax.lax.fori_loop(0, count, put, nothing)


_jit: Any = eqx.filter_jit  # whose signature does not list the options of jax.jit
_finish = _jit(_all_blocks)
# Kernels are tried out one at a time, also where programs compile side by side: more than half of their time.
_finish_untuned = _jit(_all_blocks, compiler_options={"xla_gpu_autotune_level": 0})


def follow(block: Block, steps: Any, *, reduced: bool) -> dict[str, Any]:
    """Train a block for this many steps: what its probes read at the end, and how its runs fared."""
    experiment = block.experiment
    ((_, _, readings, carry),) = train(block, jnp.asarray(steps)[None], np.ones((1, len(experiment.probes)), bool))
    read = {name: value[0] for reading in readings for name, value in reading.items()}
    fine = carry.diverged_at == NEVER
    if isinstance(experiment.steps, until):
        fine = fine & (carry.stopped_at != NEVER)
    return {**(_reduced(block, read) if reduced else read), "steps_taken": carry.steps_taken, "trained": fine}


def _reduced(block, read):
    """One number for each variable: the largest magnitude, of padding none."""
    described = {k: v for p in block.experiment.probes for k, v in (as_running(p) or p).variables}

    def one(run, values):
        mask = run.draw.training.mask
        return {name: largest(value, described.get(name), mask) for name, value in values.items()}

    return block.map(one, read)


def _runs_in_a_block(program: Program) -> int:
    device = jax.local_devices()[0]
    if device.platform != "cpu":
        memory = (device.memory_stats() or {}).get("bytes_limit", 4e9)
        # A draw, and twice as much to work with; where whole vectors meet weights, also their products.
        products = 0 if program.products else 2 * program.rows * max(program.first.network.vectors(), 1)
        width = 3 * program.first.precision // 8
        return max(1, int(_MEMORY * memory / (width * (program.size + products))))
    if not program.products:
        return int(np.clip(_DRAWN_IN_CACHE // program.size, 1, _TOGETHER))
    held = 2 * program.rows * max(program.first.network.vectors(), 1)  # two patches
    return int(np.clip(_IN_CACHE // held, 1, _TOGETHER))


def _blocks_at_once(program: Program, runs: int) -> int:
    """How many blocks, of this many runs each, one call takes."""
    return int(np.clip(_WORK // (work(program) * runs), 1, _BLOCKS))


def work(program: Program) -> float:
    """About how many operations one run takes, if it takes all its steps."""
    space = program.space
    columns = space.size if isinstance(space, Ambient) else getattr(space, "columns", 0)
    width = program.rows + 50 if program.products else columns
    return operations(program.first, program.rows, width) + 10 * program.size


def operations(experiment: Experiment, rows: int, width: float) -> float:
    """Those of the products of all weights with the inputs, rows of that width, there and back, in all steps."""
    return 4.0 * max(experiment.last_step, 1) * max(experiment.network.vectors(), 1) * rows * width
