"""The compiled core: a block of runs, drawn and then carried from one recording time to the next.

A block is made of families. The runs of a family have one seed and differ in numbers that leave most of what is
drawn as it is, such as the length of the signal: what they have in common is drawn, kept and multiplied once.

All runs of a block step together. A run that reached its level or diverged is frozen, so that no run's result
depends on the company it keeps, and a block whose runs are all frozen takes no more steps.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import GetAttrKey
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from featlab.algorithms import AbstractAlgorithm, Info, State
from featlab.core.space import AbstractSpace, Span
from featlab.core.validation import kind_of
from featlab.engine.blame import answered
from featlab.engine.compiled import make_room_for_programs
from featlab.experiment import Experiment
from featlab.networks import AbstractProductNetwork
from featlab.probes import AbstractRunning, Probe, View, until
from featlab.probes.running import as_running, read
from featlab.problem import (
    AbstractProblem,
    AbstractReadableProblem,
    Draw,
    GramProblem,
    LinearProblem,
    PlainProblem,
    draw_run,
    in_products,
)

NEVER = -1
_one_program = threading.RLock()
_UNSAID = 10**9  # the number of steps is passed when a program runs, not compiled in


def runs_axis(leaf: Any) -> int | None:
    """The axis of the runs: the first of every array, but for numbers that all runs have in common."""
    return 0 if eqx.is_array(leaf) and leaf.ndim else None


@contextlib.contextmanager
def computing(experiment: Experiment) -> Iterator[None]:
    """Where an experiment's programs run: at its precision, and alone in this process.

    On a CPU two programs that run in two threads of one process can wait for each other for ever. A GPU would
    multiply float32 matrices in ten-bit precision if it were not told.
    """
    with _one_program, jax.enable_x64(experiment.precision == 64), jax.default_matmul_precision("highest"):
        make_room_for_programs()
        with answered(experiment):
            yield


class Run(eqx.Module):
    """One run: what is trained, what chance decided, and what each probe drew beforehand."""

    experiment: Experiment
    draw: Draw
    prepared: tuple[Any, ...]

    @property
    def problem(self) -> AbstractReadableProblem:
        experiment, kind = self.experiment, PlainProblem if self.experiment.whole_inputs else LinearProblem
        kind = GramProblem if self.draw.gram is not None else kind
        return kind(experiment.data, experiment.network, experiment.bound_objective, self.draw)

    def view(self, params, step, info, prepared=None) -> View:
        return View(params, step, self.problem, self.experiment.algorithm, info, prepared)


class Block(eqx.Module):
    """Runs that step together: what the runs of a family share, and what each run has of its own.

    Arrays of `shared` have the family as first axis, those of `own` the family and the member. Without `own`
    every family is one run, and there is no axis of members anywhere.
    """

    shared: Run
    own: Run | None

    @property
    def experiment(self) -> Experiment:
        """What all runs have in common: the parts, not the numbers."""
        return self.shared.experiment

    def map(self, one: Callable[..., Any], *of_runs: Any) -> Any:
        """`one(run, *of_run)` for every run; arrays have the axes of the runs in front."""

        def whole(shared, own, *of_run):
            return one(_combined(shared, own), *of_run)

        if self.own is not None:
            whole = eqx.filter_vmap(whole, in_axes=(None, *[runs_axis] * (1 + len(of_runs))))
        return eqx.filter_vmap(whole, in_axes=runs_axis)(self.shared, self.own, *of_runs)


class Carry(eqx.Module):
    """A block of runs at one moment; every array but the clock has the axes of the runs in front."""

    step: Int[Array, ""]
    state: State
    info: Info
    memories: tuple[Any, ...]  # of the running probes
    stopped_at: Int[Array, "*run"]  # NEVER while the level is not reached
    diverged_at: Int[Array, "*run"]

    @property
    def live(self) -> Bool[Array, "*run"]:
        return (self.stopped_at == NEVER) & (self.diverged_at == NEVER)

    @property
    def steps_taken(self) -> Int[Array, "*run"]:
        """How far each run has come: no further than where it was frozen."""
        diverged = jnp.where(self.diverged_at == NEVER, self.step, self.diverged_at - 1)
        return jnp.where(self.stopped_at == NEVER, diverged, self.stopped_at)


def repeated(experiment: Experiment, runs: int) -> Experiment:
    """The experiment for several runs with the same numbers: each real number becomes an array."""
    return jax.tree.map(lambda leaf: jnp.full(runs, leaf, float) if isinstance(leaf, float) else leaf, experiment)


def open_space(experiment: Experiment, rows: int) -> AbstractSpace:
    """The empty space of an experiment, its dimension left to each run: one program serves all dimensions."""
    space = experiment.empty_space(rows)  # refuses what cannot be stored
    if isinstance(space, Span) and not space.infinite:
        space = eqx.tree_at(lambda s: s.dimension, space, 1.0)
    return space


def of_any_length(experiment: Experiment) -> Experiment:
    """The experiment without its number of steps, those of its stages as arrays: none is compiled in."""
    steps: Any = experiment.steps
    steps = dataclasses.replace(steps, at_most=_UNSAID) if isinstance(steps, until) else _UNSAID
    experiment = dataclasses.replace(experiment, steps=steps)
    leaves, parts = jax.tree_util.tree_flatten_with_path(experiment)
    told = [jnp.asarray(leaf) if _is_told(experiment, path) else leaf for path, leaf in leaves]
    return jax.tree.unflatten(parts, told)


def _is_told(experiment: Experiment, path: tuple[Any, ...]) -> bool:
    """Whether the leaf at this path is a number that a program is told when it runs."""
    owner: Any = experiment
    for key in path[:-1]:
        owner = getattr(owner, key.name) if isinstance(key, GetAttrKey) else owner[key.idx]
    kind = kind_of(owner, getattr(path[-1], "name", ""))
    return kind is not None and kind.told


def draw_one(
    experiment: Experiment, space: AbstractSpace, seed: Array, rows: int, *, products: bool = False
) -> tuple[Draw, tuple[Any, ...]]:
    """Draw one run, and what its probes want to know beforehand; `space` is the empty one of any dimension.

    With `products` as training in products needs it.
    """
    if not getattr(space, "infinite", False):  # infinity is a matter of the program, not of a number
        space = eqx.tree_at(lambda s: s.dimension, space, experiment.data.d)
    data, network, holdouts = experiment.data, experiment.network, experiment.algorithm.holdouts
    draw = draw_run(data, network, space, rows, holdouts, jax.random.key(seed))
    if products:
        assert isinstance(network, AbstractProductNetwork)
        draw = in_products(draw, network)
    problem = Run(experiment, draw, ()).problem
    return draw, tuple(p.prepared(problem) if isinstance(p, Probe) else None for p in experiment.probes)


@eqx.filter_jit
def draw_block(
    shared: Experiment,
    own: Experiment | None,
    space: AbstractSpace,
    seeds: Int[Array, " family"],
    rows: int,
    *,
    products: bool = False,
) -> Block:
    """Draw the runs of a block, one seed for each family.

    Numbers of `shared` have the family as first axis, those of `own`, where there are any, the family and the
    member.
    """

    def draw(own, shared, seed):
        return draw_one(_combined(shared, own), space, seed, rows, products=products)

    if own is None:
        return Block(Run(shared, *eqx.filter_vmap(partial(draw, None), in_axes=runs_axis)(shared, seeds)), None)
    one_family = jax.tree.map(lambda leaf: leaf[0] if runs_axis(leaf) == 0 else leaf, (shared, seeds))
    one_member = jax.tree.map(lambda leaf: leaf[0, 0], own)
    traced = dependencies(lambda own: draw(own, *one_family), one_member)
    differs = jax.tree.map(lambda outcome: bool(outcome.on), traced)
    axes = jax.tree.map(lambda outcome: 0 if outcome.on else None, traced)
    family = eqx.filter_vmap(draw, in_axes=(runs_axis, None, None), out_axes=axes)
    of_members, of_families = eqx.partition(
        eqx.filter_vmap(family, in_axes=runs_axis)(own, shared, seeds), differs
    )
    return Block(Run(shared, *of_families), Run(own, *of_members))


def _combined(shared, own):
    return shared if own is None else eqx.combine(shared, own)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """An array that a function returns: how many numbers, and on which leaves of its argument they depend."""

    size: int = 0
    on: frozenset[int] = frozenset()


def dependencies(function: Callable, argument: Any) -> Any:
    """What depends on what: an `Outcome` in place of every leaf of function(argument)."""
    are_arrays = None

    def arrays(argument):
        nonlocal are_arrays
        returned = function(argument)
        are_arrays = jax.tree.map(eqx.is_array, returned)
        return eqx.filter(returned, eqx.is_array)

    jaxpr = jax.make_jaxpr(arrays)(argument).jaxpr
    on = {id(variable): frozenset([i]) for i, variable in enumerate(jaxpr.invars)}
    nothing = frozenset[int]()
    for equation in jaxpr.eqns:
        reached = nothing.union(*[on.get(id(variable), nothing) for variable in equation.invars])
        on |= {id(variable): reached for variable in equation.outvars}
    outcomes = iter([Outcome(v.aval.size, on.get(id(v), nothing)) for v in jaxpr.outvars])
    return jax.tree.map(lambda is_array: next(outcomes) if is_array else Outcome(), are_arrays)


@eqx.filter_jit
def begin(block: Block) -> Carry:
    """The block before its first step."""

    def one(run):
        algorithm, key, problem = run.experiment.algorithm, run.draw.algorithm_key, run.problem
        state = algorithm.init(jax.random.fold_in(key, 2**31 - 1), problem)
        info = no_info(algorithm, key, state, problem)
        view = run.view(state.params, jnp.zeros((), int), info)
        memories = tuple(probe.begin(view) for probe in running_probes(run.experiment))
        return state, info, memories, _reached(run.experiment, view)

    state, info, memories, reached = block.map(one)
    never = jnp.full(reached.shape, NEVER)
    return Carry(jnp.zeros((), int), state, info, memories, jnp.where(reached, 0, never), never)


@eqx.filter_jit
def advance(block: Block, carry: Carry, times: Array, due: Array):
    """Carry the block through the given times; at each, read the scheduled probes that are due.

    `due[k, p]` says whether probe p is to be read at the k-th time; what is not due comes back as zeros.
    """

    def to_next(carry: Carry, now):
        time, is_due = now
        carry = jax.lax.while_loop(lambda c: (c.step < time) & jnp.any(c.live), partial(_step, block), carry)
        carry = eqx.tree_at(lambda c: c.step, carry, time)
        places = range(len(block.experiment.probes))
        return carry, tuple(_read_if(is_due[p], partial(_read, p, block), carry) for p in places)

    return jax.lax.scan(to_next, carry, (times, due))


@eqx.filter_jit
def end(block: Block, carry: Carry) -> Carry:
    """The block after its last step: a run whose last step left the finite numbers is told apart here."""

    def finite(run, state):
        return jnp.isfinite(run.problem.value(state.params, run.draw.training, run.draw.algorithm_key))

    lost = carry.live & ~block.map(finite, carry.state)
    return eqx.tree_at(lambda c: c.diverged_at, carry, jnp.where(lost, carry.step, carry.diverged_at))


class Stretch(NamedTuple):
    """What a few times of a training left: the readings that were due, and the block as it stands."""

    times: Any
    due: Any  # [time, probe]
    readings: tuple[dict[str, Any], ...]  # of each probe, the time first
    carry: Carry


def train(block: Block, times: Any, due: Any, at_once: int | None = None) -> Iterator[Stretch]:
    """Carry a block from its start through all the times, `at_once` of them at a time, and yield what was read.

    `due[k, p]` says whether probe p is read at the k-th time. After the last time, runs whose last step left the
    finite numbers are marked as diverged. To be called within `computing(block.experiment)`.
    """
    at_once = len(times) if at_once is None else at_once
    carry = begin(block)
    for start in range(0, len(times), at_once):
        part, part_due = times[start : start + at_once], due[start : start + at_once]
        count = len(part)
        if count < at_once:  # filled up with times at which nothing is due: one program serves all parts
            part = np.concatenate([part, np.full(at_once - count, part[-1])])
            part_due = np.concatenate([part_due, np.zeros((at_once - count, due.shape[1]), bool)])
        carry, readings = advance(block, carry, jnp.asarray(part), jnp.asarray(part_due))
        carry = end(block, carry) if start + count == len(times) else carry
        if count < at_once:
            readings = jax.tree.map(lambda leaf, count=count: leaf[:count], readings)
        yield Stretch(part[:count], part_due[:count], readings, carry)


def no_info(algorithm: AbstractAlgorithm, key: PRNGKeyArray, state: State, problem: AbstractProblem) -> Info:
    """What there is to tell before the first step: zeros, in the shape of what there will be."""
    shapes = eqx.filter_eval_shape(lambda: algorithm.step(key, state, problem)[1])
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)


def is_running(probe: Probe | AbstractRunning) -> bool:
    """Whether a probe looks at every step."""
    return as_running(probe) is not None


def running_probes(experiment: Experiment) -> tuple[AbstractRunning, ...]:
    """Those of the experiment's probes that look at every step."""
    return tuple(r for r in map(as_running, experiment.probes) if r is not None)


def _step(block: Block, carry: Carry) -> Carry:
    def one(run, state, info, memories):
        algorithm, running = run.experiment.algorithm, running_probes(run.experiment)
        # The clock is shared by the block, so that a branch on it stays a branch under vmap.
        state = eqx.tree_at(lambda s: s.step, state, carry.step)
        key = jax.random.fold_in(run.draw.algorithm_key, carry.step)
        before = run.view(state.params, carry.step, info)
        memories = tuple(probe.update(memory, key, before) for probe, memory in zip(running, memories))
        new_state, new_info = algorithm.step(key, state, before.problem)
        after = run.view(new_state.params, carry.step + 1, new_info)
        finite = _all_finite(new_state.params) & jnp.isfinite(new_info.value)
        return new_state, new_info, memories, finite, _reached(run.experiment, after)

    state, info, memories, finite, reached = block.map(one, carry.state, carry.info, carry.memories)
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


def _read(place: int, block: Block, carry: Carry):
    def one(run, state, info, memories, step):
        probe, before = run.experiment.probes[place], run.experiment.probes[:place]
        memory = memories[sum(map(is_running, before))] if is_running(probe) else None
        return read(probe, memory, run.view(state.params, step, info, run.prepared[place]))

    return block.map(one, carry.state, carry.info, carry.memories, carry.steps_taken)


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
        return jnp.where(chosen.reshape(*chosen.shape, *[1] * (a.ndim - chosen.ndim)), a, b)

    return jax.tree.map(pick, new, old)
