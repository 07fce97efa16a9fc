"""From many experiments to few compiled programs: what can run together, and in which order.

Experiments that differ in real numbers run in one program. So do those that differ in n, on training sets padded
to a common number of rows; a few such numbers, doubling, serve all sizes.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import pickle
from collections.abc import Iterable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from featlab.core.sees import Sees
from featlab.core.space import AbstractSpace, Ambient
from featlab.data import AbstractBatching
from featlab.engine.loop import dependencies, draw_block, draw_one, open_space, train
from featlab.engine.pickled import as_bytes
from featlab.experiment import Experiment
from featlab.objectives import AbstractObjective
from featlab.text import describe, foreign, rebuild


@dataclasses.dataclass(frozen=True)
class Table:
    """Experiments with the same parts: one of them, and the numbers in which the others differ from it.

    `columns` maps the place of a number among the leaves of the experiment to its values, one for each.
    """

    first: Experiment
    columns: dict[int, np.ndarray]
    places: np.ndarray  # of each experiment in the list that is being programs_of

    @staticmethod
    def of(experiment: Experiment, place: int) -> Table:
        """A single experiment."""
        return Table(experiment, {}, np.array([place]))

    def real(self) -> dict[int, np.ndarray]:
        """All its real numbers, those that are everywhere the same too."""
        leaves = jax.tree.leaves(self.first)
        filled = {i: np.full(len(self.places), leaf) for i, leaf in enumerate(leaves) if isinstance(leaf, float)}
        return filled | self.columns

    def at(self, i: int) -> Experiment:
        """The i-th of the experiments; its numbers have been checked before."""
        leaves, parts = jax.tree.flatten(self.first)
        for place, column in self.columns.items():
            leaves[place] = column[i].item()
        return jax.tree.unflatten(parts, leaves)

    def split(self, which: np.ndarray) -> Table:
        """The experiments marked True."""
        columns = {place: column[which] for place, column in self.columns.items()}
        part = Table(self.first, columns, self.places[which])
        return dataclasses.replace(part, first=part.at(0))


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """Experiments that one compiled program runs."""

    table: Table  # among its columns is n where that is padded
    rows: int
    space: AbstractSpace  # the empty one of the first experiment
    products: bool
    own: tuple[int, ...]  # columns that differ, and on which next to nothing of a draw depends: runs share it
    size: int  # numbers in a draw

    @property
    def first(self) -> Experiment:
        return self.table.first

    def __reduce__(self):
        # An experiment travels as text, or with code of the user's own as bytes; a worker that gets the same one
        # again makes one object of both, and has its programs compiled already.
        first = as_bytes(self.first) if foreign(self.first) else describe(self.first)
        rest = (self.table.columns, self.table.places, self.rows, self.space, self.products, self.own, self.size)
        return _arrived, (first, *rest)

    def only(self, which: np.ndarray) -> Program:
        """Some of the experiments, for the same program."""
        columns = {place: column[which] for place, column in self.table.columns.items()}
        return dataclasses.replace(self, table=Table(self.first, columns, self.table.places[which]))


@functools.lru_cache(maxsize=64)
def _unpacked(first: str | bytes) -> Experiment:
    return rebuild(first) if isinstance(first, str) else pickle.loads(first)


def _arrived(first, columns, places, *rest) -> Program:
    return Program(Table(_unpacked(first), columns, places), *rest)


def programs_of(experiments: Sequence[Experiment]) -> list[Program]:
    """The experiments in programs, each of which is one program."""
    return programs_from(Table.of(experiment, i) for i, experiment in enumerate(experiments))


def programs_from(tables: Iterable[Table]) -> list[Program]:
    """The experiments of all tables in programs. Raises for an experiment that fits nowhere."""
    alike: dict[Any, list[Table]] = {}
    for table in _merged(tables):
        for part in _parts(table):
            alike.setdefault(_kind(part.first), []).append(part)
    programs = []
    for same in alike.values():
        sizes = np.array([part.first.data.n for part in same])
        if len(np.unique(sizes)) > 1 and takes_traced_size(same[0].first):
            buckets = np.ceil(np.log2(sizes))
        else:
            buckets = sizes
        for one in np.unique(buckets):
            programs.append(_program_of([part for part, bucket in zip(same, buckets) if bucket == one]))
    return programs


def _merged(tables: Iterable[Table]) -> list[Table]:
    """Tables of experiments that differ in real numbers only, as one."""
    alike: dict[Any, list[Table]] = {}
    for table in tables:
        leaves, parts = jax.tree.flatten(table.first)
        fixed = tuple(None if isinstance(leaf, float) else (type(leaf), leaf) for leaf in leaves)
        alike.setdefault(_hashable((parts, fixed), table), []).append(table)
    return [same[0] if len(same) == 1 else _joined(same) for same in alike.values()]


def _joined(tables: list[Table]) -> Table:
    reals = [table.real() for table in tables]
    columns = {place: np.concatenate([real[place] for real in reals]) for place in reals[0]}
    return Table(tables[0].first, columns, np.concatenate([table.places for table in tables]))


def _hashable(kind: Any, owner: Any) -> Any:
    """`kind` if it is hashable, else a unique key, so that this experiment gets a program of its own."""
    try:
        hash(kind)
    except TypeError:
        return id(owner)
    return kind


def _parts(table: Table) -> list[Table]:
    """The table, cut where its experiments need different programs: d is infinite, or too small for a span."""
    if not table.columns:
        return [table]
    d, place = np.full(len(table.places), table.first.data.d), _place(table.first, "d")
    if place is not None:
        d = table.columns.get(place, d)
    else:  # made of other numbers
        d = np.array([table.at(i).data.d for i in range(len(d))])
    fits = (d >= table.first.span_size(table.first.data.n)) & _may_span(table.first)
    kind = np.where(fits, np.where(np.isinf(d), -1.0, 0.0), d)
    if foreign(table.first.data):  # whose noise may have another length than one, which products do not allow
        slow = [not np.isfinite(d[i]) and table.at(i).representation > Sees.PRODUCTS for i in range(len(d))]
        kind = np.where(slow, -2.0, kind)
    return [table.split(kind == one) for one in np.unique(kind)]


def _may_span(experiment: Experiment) -> bool:
    return experiment.space is not Ambient and experiment.sees < Sees.COORDINATES


def size_place(experiment: Experiment) -> int | None:
    """The place of n among the leaves of an experiment."""
    return _place(experiment, "n")


def _place(experiment: Experiment, field: str) -> int | None:
    """The place among the leaves of the data model's n or d, where that is one of its numbers."""
    data, way = experiment.data, ["data"]
    while isinstance(data, AbstractBatching):
        data, way = data.data, [*way, "data"]
    for i, (path, leaf) in enumerate(jax.tree_util.tree_flatten_with_path(experiment)[0]):
        if [getattr(key, "name", "") for key in path] == [*way, field] and type(leaf) in (int, float):
            return i
    return None


def _kind(experiment: Experiment) -> Any:
    """What must be equal in experiments that run together: all but real numbers and n."""
    leaves, parts = jax.tree.flatten(experiment)
    n, d = size_place(experiment), experiment.data.d
    fits = _may_span(experiment) and d >= experiment.span_size(experiment.data.n)
    fixed: list[Any] = [math.isinf(leaf) if isinstance(leaf, float) else (type(leaf), leaf) for leaf in leaves]
    if n is not None:
        fixed[n] = None
    products = experiment.representation == Sees.PRODUCTS
    return _hashable((parts, tuple(fixed), products, None if fits else d), experiment)


def _program_of(parts: list[Table]) -> Program:
    table, rows = _joined(parts), max(part.first.data.n for part in parts)
    first, n = table.first, size_place(table.first)
    if any(part.first.data.n != rows for part in parts):
        assert n is not None
        table.columns[n] = np.concatenate([np.full(len(part.places), part.first.data.n) for part in parts])
    space = [open_space(part.first, rows) for part in parts][0]
    products = first.representation == Sees.PRODUCTS
    light, size = _draw(first, rows, products, n in table.columns)
    own = tuple(p for p, column in table.columns.items() if p in light and np.any(column != column[0]))
    return Program(table, rows, space, products, own, size)


_LIGHT = 0.05  # of the numbers in a draw


def _draw(first: Experiment, rows: int, products: bool, padded: bool) -> tuple[frozenset[int], int]:
    """The numbers that hardly any of a draw depends on, and how many a draw holds."""
    return _remembered(_analysed, first, rows, products, padded)


def takes_traced_size(first: Experiment) -> bool:
    """Whether the data model's n may be an array, and the training set padded.

    Not where code needs a Python number, nor where code of the user's own may look at what is padding.
    """
    watching = [*first.probes, first.steps, first.algorithm]
    if isinstance(first.objective, AbstractObjective):  # a plain loss sees one sample at a time
        watching.append(first.objective)
    if size_place(first) is None or any(not name.startswith(_BLIND) for name in foreign(watching)):
        return False
    try:
        _draw(first, first.data.n, False, True)
        if foreign(first.data):
            _remembered(_traced, first)
    except Exception:  # whatever the model's own code raises
        return False
    return True


_BLIND = "optax."  # sees gradients alone


def _traced(first: Experiment) -> None:
    """Let all code of a run see an n that is an array."""
    leaves, parts = jax.tree.flatten(first)
    space, n = first.empty_space(), size_place(first)

    def whole(size):
        filled = [jnp.full(1, leaf, float) if isinstance(leaf, float) else leaf for leaf in leaves]
        assert n is not None
        filled[n] = size
        block = draw_block(jax.tree.unflatten(parts, filled), None, space, jnp.zeros(1, jnp.uint32), first.data.n)
        due = jnp.ones((1, len(first.probes)), bool)
        return [eqx.filter(tuple(part), eqx.is_array) for part in train(block, jnp.ones(1, int), due)]

    with jax.enable_x64(first.precision == 64):
        jax.eval_shape(whole, jnp.full(1, first.data.n))


def _analysed(first: Experiment, rows: int, products: bool, padded: bool) -> tuple[frozenset[int], int]:
    leaves, parts = jax.tree.flatten(first)
    n = size_place(first)
    traced = [i for i, leaf in enumerate(leaves) if isinstance(leaf, float) or (padded and i == n)]
    space = first.empty_space(rows)

    def draw(numbers):
        filled = list(leaves)
        for place, number in zip(traced, numbers):
            filled[place] = number
        return draw_one(jax.tree.unflatten(parts, filled), space, jnp.uint32(0), rows, products=products)

    with jax.enable_x64(first.precision == 64):
        numbers = [jnp.asarray(leaves[place], float if place != n else int) for place in traced]
        outcomes = jax.tree.leaves(dependencies(draw, numbers))
    total = sum(outcome.size for outcome in outcomes)
    moved = [sum(outcome.size for outcome in outcomes if k in outcome.on) for k in range(len(traced))]
    return frozenset(place for place, size in zip(traced, moved) if size <= _LIGHT * total), total


_memory: dict[Any, Any] = {}


def _remembered(function, first: Experiment, *rest):
    """function(first, *rest), once for all experiments of a kind."""
    key = (_kind(first), *rest)
    if isinstance(key[0], int):
        return function(first, *rest)
    if key not in _memory:
        _memory[key] = function(first, *rest)
    return _memory[key]
