"""The compiled core: a block of runs, drawn and then carried from one recording time to the next.

The experiment of a block has its real numbers as arrays with the run as first axis, so that each run may have
its own: a learning rate, a signal, a level. `numbered` makes it of one experiment for each run.

All runs of a block step together. A run that reached its level or diverged is frozen, so that no run's result
depends on the company it keeps, and a block whose runs are all frozen takes no more steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from featlab.algorithms import AbstractAlgorithm, Info, State
from featlab.experiment import Experiment
from featlab.fields import InputError
from featlab.probes import AbstractRunning, Probe, View, until
from featlab.probes.running import as_running, read
from featlab.products import ProductDraw, ProductTask, in_products
from featlab.space import AbstractSpace
from featlab.task import Draw, Task, draw_run

NEVER = -1


class Carry(eqx.Module):
    """A block of runs at one moment; every array but the clock has the run as its first axis."""

    step: Int[Array, ""]
    state: State
    info: Info
    memories: tuple[Any, ...]  # of the running probes
    stopped_at: Int[Array, " run"]  # NEVER while the level is not reached
    diverged_at: Int[Array, " run"]

    @property
    def live(self) -> Bool[Array, " run"]:
        return (self.stopped_at == NEVER) & (self.diverged_at == NEVER)

    @property
    def steps_taken(self) -> Int[Array, " run"]:
        """How far each run has come: no further than where it was frozen."""
        diverged = jnp.where(self.diverged_at == NEVER, self.step, self.diverged_at - 1)
        return jnp.where(self.stopped_at == NEVER, diverged, self.stopped_at)


def numbered(experiments: Sequence[Experiment], rows: int) -> tuple[Experiment, AbstractSpace]:
    """The experiments of a block as one, and the spaces its runs start from."""
    for other in experiments[1:]:
        if not _alike(experiments[0], other):
            raise InputError(
                "Experiments that run together may differ in finite real numbers only (snr, learning_rate, ...), "
                f"and these differ in more: {experiments[0]} and {other}."
            )
    spaces = [one.empty_space(rows) for one in experiments]
    if len({jax.tree.structure(space) for space in spaces}) > 1:
        raise InputError("Experiments that run together must all fit into a Span, or have one d in Ambient.")
    return _stacked(experiments), _stacked(spaces)


def _alike(one, other) -> bool:
    def fixed(tree):
        return jax.tree.map(lambda leaf: math.isinf(leaf) if isinstance(leaf, float) else leaf, tree)

    return bool(eqx.tree_equal(fixed(one), fixed(other)))


def _stacked(trees):
    """One tree whose real numbers and arrays have the run as first axis."""

    def stack(*leaves):
        if isinstance(leaves[0], float):
            return jnp.asarray(leaves, float)
        return jnp.stack(leaves) if isinstance(leaves[0], jax.Array) else leaves[0]

    return jax.tree.map(stack, *trees)


def draw_block(
    experiment: Experiment, space: AbstractSpace, seeds: Array, rows: int, *, products: bool = False
) -> Draw:
    """Draw a block of runs, one for each seed; with `products` as training in products needs them."""
    holdouts = experiment.algorithm.holdouts
    return _draw_block(experiment.data, experiment.network, holdouts, space, seeds, rows, products)


@eqx.filter_jit
def _draw_block(data, network, holdouts, space, seeds, rows, products):
    def one(data, network, space, seed):
        draw = draw_run(data, network, space, rows, holdouts, jax.random.key(seed))
        return in_products(draw, network) if products else draw

    return eqx.filter_vmap(one)(data, network, space, seeds)


@eqx.filter_jit
def begin(experiment: Experiment, draws: Draw) -> Carry:
    """The block before its first step."""

    def one(experiment, draw):
        task = _task(experiment, draw)
        state = experiment.algorithm.init(jax.random.fold_in(draw.algorithm_key, 2**31 - 1), task)
        info = no_info(experiment.algorithm, draw.algorithm_key, state, task)
        view = View(state.params, jnp.zeros((), int), task, experiment.algorithm, info)
        memories = tuple(probe.begin(view) for probe in running_probes(experiment))
        return state, info, memories, _reached(experiment, view)

    state, info, memories, reached = eqx.filter_vmap(one)(experiment, draws)
    never = jnp.full(reached.shape, NEVER)
    return Carry(jnp.zeros((), int), state, info, memories, jnp.where(reached, 0, never), never)


@eqx.filter_jit
def prepare(experiment: Experiment, draws: Draw) -> tuple[Any, ...]:
    """What each probe draws once for all its readings."""

    def one(experiment, draw):
        task = _task(experiment, draw)
        return tuple(p.prepared(task) if isinstance(p, Probe) else None for p in experiment.probes)

    return eqx.filter_vmap(one)(experiment, draws)


@eqx.filter_jit
def advance(experiment: Experiment, draws: Draw, prepared, carry: Carry, times: Array, due: Array):
    """Carry the block through the given times; at each, read the scheduled probes that are due.

    `due[k, p]` says whether probe p is to be read at the k-th time; what is not due comes back as zeros.
    """
    probes = experiment.probes

    def to_next(carry: Carry, now):
        time, is_due = now
        carry = jax.lax.while_loop(
            lambda c: (c.step < time) & jnp.any(c.live), partial(_step, experiment, draws), carry
        )
        carry = eqx.tree_at(lambda c: c.step, carry, time)
        readings = tuple(
            _read_if(is_due[p], partial(_read, experiment, probe), draws, prepared[p], carry)
            for p, probe in enumerate(probes)
        )
        return carry, readings

    return jax.lax.scan(to_next, carry, (times, due))


@eqx.filter_jit
def end(experiment: Experiment, draws: Draw, carry: Carry) -> Carry:
    """The block after its last step: a run whose last step left the finite numbers is told apart here."""

    def finite(experiment, draw, state):
        return jnp.isfinite(_task(experiment, draw).value(state.params, draw.training, draw.algorithm_key))

    lost = carry.live & ~eqx.filter_vmap(finite)(experiment, draws, carry.state)
    return eqx.tree_at(lambda c: c.diverged_at, carry, jnp.where(lost, carry.step, carry.diverged_at))


def no_info(algorithm: AbstractAlgorithm, key: PRNGKeyArray, state: State, task: Task) -> Info:
    """What there is to tell before the first step: zeros, in the shape of what there will be."""
    shapes = eqx.filter_eval_shape(lambda: algorithm.step(key, state, task)[1])
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)


def running_probes(experiment: Experiment) -> tuple[AbstractRunning, ...]:
    """Those of the experiment's probes that look at every step."""
    return tuple(r for r in map(as_running, experiment.probes) if r is not None)


def _task(experiment: Experiment, draw: Draw) -> Task:
    kind = ProductTask if isinstance(draw, ProductDraw) else Task
    return kind(experiment.data, experiment.network, experiment.bound_objective, draw)


def _view(experiment, draw, params, step, info, prepared=None) -> View:
    return View(params, step, _task(experiment, draw), experiment.algorithm, info, prepared)


def _step(experiment: Experiment, draws: Draw, carry: Carry) -> Carry:
    running = running_probes(experiment)

    def one(experiment, draw, state, info, memories):
        # The clock is shared by the block, so that a branch on it stays a branch under vmap.
        state = eqx.tree_at(lambda s: s.step, state, carry.step)
        key = jax.random.fold_in(draw.algorithm_key, carry.step)
        before = _view(experiment, draw, state.params, carry.step, info)
        memories = tuple(probe.update(memory, key, before) for probe, memory in zip(running, memories))
        new_state, new_info = experiment.algorithm.step(key, state, before.task)
        after = _view(experiment, draw, new_state.params, carry.step + 1, new_info)
        finite = _all_finite(new_state.params) & jnp.isfinite(new_info.value)
        return new_state, new_info, memories, finite, _reached(experiment, after)

    state, info, memories, finite, reached = eqx.filter_vmap(one)(
        experiment, draws, carry.state, carry.info, carry.memories
    )
    live = carry.live
    # A run that diverges keeps its last finite parameters.
    moves = live & finite
    now = carry.step + 1
    return Carry(
        now,
        _where(moves, state, carry.state),
        _where(moves, info, carry.info),
        _where(live, memories, carry.memories),
        jnp.where(moves & reached, now, carry.stopped_at),
        jnp.where(live & ~finite, now, carry.diverged_at),
    )


def _read(experiment: Experiment, probe: Probe | AbstractRunning, draws: Draw, prepared, carry: Carry):
    running = as_running(probe)
    place = running_probes(experiment).index(running) if running is not None else None

    def one(experiment, draw, prepared, state, info, memories, step):
        view = _view(experiment, draw, state.params, step, info, prepared)
        return read(probe, None if place is None else memories[place], view)

    return eqx.filter_vmap(one)(
        experiment, draws, prepared, carry.state, carry.info, carry.memories, carry.steps_taken
    )


def _read_if(due, read, *seen):
    shapes = jax.eval_shape(read, *seen)

    def nothing(*seen):
        return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

    return jax.lax.cond(due, read, nothing, *seen)


def _reached(experiment: Experiment, view: View):
    if not isinstance(experiment.steps, until):
        return jnp.zeros((), bool)
    return experiment.steps.reached(view)


def _all_finite(params):
    leaves = [leaf for leaf in jax.tree.leaves(params) if jnp.issubdtype(leaf.dtype, jnp.inexact)]
    return jnp.all(jnp.array([jnp.all(jnp.isfinite(leaf)) for leaf in leaves]))


def _where(chosen, new, old):
    def pick(a, b):
        return jnp.where(chosen.reshape(-1, *[1] * (a.ndim - 1)), a, b)

    return jax.tree.map(pick, new, old)
