"""Conformance checks for every data model, network, objective, algorithm and probe, featlab's and yours.

Whatever a part declares is put to the test. The main one is rotation: a run is repeated in a space whose every
vector is turned by the same orthogonal matrix, and each number that is read off must be what it was.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from featlab.algorithms import AbstractAlgorithm, GradientDescent
from featlab.core.sees import Sees
from featlab.core.space import AbstractSpace, Ambient, Span
from featlab.data import AbstractDataModel, SignalNoise
from featlab.engine.loop import no_info
from featlab.engine.run import run
from featlab.experiment import Experiment
from featlab.networks import AbstractNetwork, TwoLayerCNN
from featlab.objectives import AbstractObjective, Supervised
from featlab.probes import AbstractRunning, Probe, View
from featlab.probes._needs import finals, role_of
from featlab.probes.running import as_running, read
from featlab.problem import AbstractProblem, Draw, PlainProblem, draw_run
from featlab.text import describe, rebuild

__all__ = [
    "check_algorithm", "check_data_model", "check_network", "check_objective", "check_padding", "check_probe",
    "check_products", "check_rotation", "check_span", "check_text", "example_experiment", "found", "rotation_gap",
]  # fmt: skip
ROUNDING = 1e-10  # float64, over a few steps


def found(kind: type) -> list[Any]:
    """Every example of every final class of this kind that featlab's folders export."""
    folders = ("data", "networks", "objectives", "algorithms", "probes")
    modules = [importlib.import_module(f"featlab.{folder}") for folder in folders]
    things = {name: thing for module in modules for name, thing in vars(module).items() if name[0] != "_"}
    classes = [t for n, t in things.items() if isinstance(t, type) and issubclass(t, kind) and "Abstract" not in n]
    examples = [example for one in classes if one is not Probe for example in one.examples()]
    return examples + [thing for thing in things.values() if isinstance(thing, kind)]


def example_experiment(**parts) -> Experiment:
    """A small experiment around the part under test."""
    defaults = dict(
        data=SignalNoise(n=6, d=40, snr=0.5, label_flip=0.3),
        network=TwoLayerCNN(width=3, init_scale=0.1),
        algorithm=GradientDescent(0.1),
        steps=5,
        precision=64,
        space=Ambient,
    )
    return Experiment(**{**defaults, **parts})


def at_home(part: Any, **given: Any) -> dict[str, Any]:
    """Parts of the kinds that one declares to need, where neither `given` nor the usual example is of them."""
    usual = example_experiment()
    parts = {"data": usual.data, "network": usual.network, "algorithm": usual.algorithm}
    parts |= {"objective": usual.bound_objective, **given}
    found = dict(given)
    for kind in getattr(part, "of", ()):
        role = role_of(kind)
        if not isinstance(parts[role], kind):
            parts[role] = found[role] = next(next(iter(one.examples())) for one in finals(kind))
    return found


def check_text(part: Any) -> None:
    """A part can be written down and made again, unless it says that it cannot."""
    text = describe(part)
    if "unwritable" not in text and "<locals>" not in text:
        assert describe(rebuild(text)) == text, f"{text} comes back as something else"


def check_rotation(experiment: Experiment, steps: int = 5) -> None:
    """Turning every vector leaves every reading as it was and turns the weights along."""
    gap = rotation_gap(experiment, steps)
    assert gap < ROUNDING, f"readings change by {gap:.2g} when all vectors are turned"


def rotation_gap(experiment: Experiment, steps: int = 5) -> float:
    """The largest relative change, over weights and readings, when all vectors are turned."""
    with jax.enable_x64(True):
        space = Ambient(experiment.data.d)
        normals = jax.random.normal(jax.random.key(7), (space.size, space.size))
        turn = jnp.linalg.qr(normals)[0]
        plain = list(_walk(experiment, space, steps))
        turned = list(_walk(experiment, _Turned(space.dimension, space, turn), steps))
        gaps = []
        for (_, (params, readings)), (_, (turned_params, turned_readings)) in zip(plain, turned):
            back = jax.tree.map(lambda leaf: _turn_back(leaf, turn), turned_params)
            pairs = zip(jax.tree.leaves((back, turned_readings)), jax.tree.leaves((params, readings)))
            gaps += [_relative(there, here) for there, here in pairs]
        return max(gaps)


def check_span(experiment: Experiment, steps: int = 5) -> None:
    """Weights never leave the span of the vectors that were drawn."""
    with jax.enable_x64(True):
        *_, (draw, last) = _walk(experiment, Ambient(experiment.data.d), steps)
        d = int(experiment.data.d)
        drawn = [
            leaf.reshape(-1, d)
            for leaf in jax.tree.leaves((draw.truth, draw.training, draw.holdouts, draw.start))
            if _is_vector(leaf, d)
        ]
        basis = jnp.linalg.svd(jnp.concatenate(drawn), full_matrices=False)
        axes = basis[2][basis[1] > 1e-9 * basis[1][0]]
        assert len(axes) < d, "the check needs a dimension beyond the span"
        for leaf in jax.tree.leaves(last[0]):
            if _is_vector(leaf, d):
                rows = leaf.reshape(-1, d)
                assert _relative(rows @ axes.T @ axes, rows) < ROUNDING, "weights leave the span"


def check_products(experiment: Experiment, steps: int = 5) -> None:
    """Training in inner products gives the numbers of training in coordinates, where it is declared possible."""
    exact = dataclasses.replace(experiment, steps=steps, precision=64, space=None)
    if exact.representation > Sees.PRODUCTS:
        return
    plain, products = (run(exact, seeds=1, products=fast, progress=False) for fast in (False, True))
    for name, values in plain.data_vars.items():
        if values.dtype.kind == "f":
            one, other = values.values, products[name].values
            both_nan = np.isnan(one) & np.isnan(other)
            gap = float(np.max(np.where(both_nan, 0, np.abs(one - other)), initial=0.0))
            assert gap < 1e-9, f"{name} differs by {gap:.2g} when trained in products"


def check_padding(experiment: Experiment, steps: int = 3) -> None:
    """Rows beyond n, which make runs of several n one program, change no reading."""
    exact = dataclasses.replace(experiment, steps=steps, precision=64, space=None)
    plain, padded = (run(exact, seeds=1, rows=exact.data.n + more, progress=False) for more in (0, 3))
    for name, values in plain.data_vars.items():
        if values.dtype.kind == "f":
            # Only what is sorted by size, such as singular values, may be longer: by zeros.
            one, other = values.values, padded[name].values
            places = tuple(map(slice, one.shape))
            both_nan = np.isnan(one) & np.isnan(other[places])
            gap = float(np.max(np.where(both_nan, 0, np.abs(one - other[places])), initial=0.0))
            beyond = np.sum(other**2) - np.sum(other[places] ** 2) if other.size > one.size else 0.0
            assert max(gap, beyond) < 1e-9, f"{name} differs by {gap:.2g} when rows are added that do not count"


def check_data_model(model: AbstractDataModel) -> None:
    """Shapes, labels, padding, independence of purposes, and the room a model says it needs."""
    network = TwoLayerCNN(width=2)
    with jax.enable_x64(True):
        key, space = jax.random.key(1), Ambient(model.d)
        draw = _draw(model, network, space, model.n, 2, key)
        test = model.fresh(draw.test_key, draw.truth, draw.space, model.n)
        batches = [draw.training, *draw.holdouts, test]
        for batch in batches:
            assert batch.inputs.shape[0] == batch.labels.shape[0] == model.n
            assert bool(jnp.all(batch.mask))
        for i, one in enumerate(batches):
            for other in batches[:i]:
                assert not bool(
                    jnp.any(jnp.all(one.inputs == other.inputs, axis=tuple(range(1, one.inputs.ndim))))
                )
        padded = _draw(model, network, space, model.n + 3, 0, key)
        np.testing.assert_allclose(padded.training.inputs[: model.n], draw.training.inputs, atol=1e-12)
        np.testing.assert_allclose(padded.training.labels[: model.n], draw.training.labels, atol=1e-12)
        assert not bool(jnp.any(padded.training.mask[model.n :]))
        if model.sees < Sees.COORDINATES:
            room = model.vectors(model.n) + network.vectors()
            spanned = _draw(model, network, Span.create(float(model.d), room), model.n, 0, key)
            assert isinstance(spanned.space, Span)
            assert spanned.space.used == room, "vectors() says another number than was drawn"


def check_network(network: AbstractNetwork, /, **parts) -> None:
    """One output for one input, finite gradients, and the room a network says it needs.

    `parts` are what it needs of an experiment. For an objective that is a mean of losses its output is one number.
    """
    experiment = example_experiment(**{**parts, "network": network})
    problem = _problem(experiment)
    outputs, gradient = eqx.filter_jit(
        lambda t: (t.outputs(t.start, t.draw.training), t.gradient(t.start, t.draw.training))
    )(problem)
    labels = problem.draw.training.labels
    plain = isinstance(experiment.bound_objective, Supervised)
    assert outputs.shape == labels.shape if plain else len(outputs) == len(labels)
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(gradient))
    if network.sees < Sees.COORDINATES:
        space = Span.create(40.0, network.vectors())
        after = eqx.filter_jit(network.init)(jax.random.key(0), space)[1]
        assert isinstance(after, Span)
        assert after.used == network.vectors(), "vectors() says another number than was drawn"


def check_objective(objective: AbstractObjective, /, **parts) -> None:
    """One number, which padding does not change; `parts` are what it needs of an experiment."""
    experiment = example_experiment(**{**parts, "objective": objective})
    values = []
    with jax.enable_x64(True):
        for rows in (experiment.data.n, experiment.data.n + 3):
            problem = _problem(experiment, rows)
            values.append(float(problem.value(problem.start, problem.draw.training, jax.random.key(3))))
    assert np.isfinite(values[0])
    np.testing.assert_allclose(values[0], values[1], rtol=1e-12)


def check_algorithm(algorithm: AbstractAlgorithm, **parts) -> None:
    """Steps move the parameters, depend on nothing but their arguments, and keep the state's shape.

    `parts` are what it needs of an experiment.
    """
    experiment = example_experiment(algorithm=algorithm, **parts)
    one, two = (list(_walk(experiment, Ambient(40.0), 4)) for _ in range(2))
    assert all(bool(jnp.all(a == b)) for a, b in zip(jax.tree.leaves(one[-1][1]), jax.tree.leaves(two[-1][1])))
    moved = [bool(jnp.any(a != b)) for a, b in zip(jax.tree.leaves(one[0][1][0]), jax.tree.leaves(one[-1][1][0]))]
    assert any(moved), "four steps left the parameters where they were"
    with jax.enable_x64(True):
        problem = _problem(experiment)
        state = algorithm.init(jax.random.key(0), problem)
        after, info = eqx.filter_jit(algorithm.step)(jax.random.key(1), state, problem)
        assert jax.tree.map(jnp.shape, after) == jax.tree.map(jnp.shape, state)
        assert jnp.shape(info.value) == ()


def check_probe(probe: Probe | AbstractRunning, **parts) -> None:
    """It returns what it declares, with no more axes than it names; `parts` are what it needs of an experiment."""
    experiment = example_experiment(probes=(probe,), **parts)
    *_, (_, (_, readings)) = _walk(experiment, Ambient(40.0), 3)
    declared = dict((as_running(probe) or probe).variables)
    assert set(readings[0]) == set(declared)
    for name, variable in declared.items():
        if variable is not None:
            assert jnp.ndim(readings[0][name]) <= len(variable.dims.split()), f"{name} has unnamed axes"
            assert variable.symbol and variable.meaning, f"{name} has no symbol or no meaning"


_draw = eqx.filter_jit(draw_run)


class _Turned(AbstractSpace):
    """An ambient space in which everything is turned by one orthogonal matrix."""

    dimension: float
    inner: Ambient
    turn: jax.Array

    @property
    def size(self):
        return self.inner.size

    def _out(self, drawn):
        rows, inner = drawn
        return rows @ self.turn, _Turned(self.dimension, inner, self.turn)

    def _in(self, rows):
        return None if rows is None else rows @ self.turn.T

    def given(self, gram):
        return self._out(self.inner.given(gram))

    def uniform(self, key, count):
        return self._out(self.inner.uniform(key, count))

    def gaussian(self, key, count, off=None, **options):
        return self._out(self.inner.gaussian(key, count, self._in(off), **options))

    def fresh(self, key, count, off=None, **options):
        rows: Any = self.inner.fresh(key, count, self._in(off), **options)
        return rows @ self.turn

    def fresh_products(self, key, weights, count, off=None, **options):
        return self.inner.fresh_products(key, weights @ self.turn.T, count, self._in(off), **options)

    def length(self, scale):
        return self.inner.length(scale)

    def norms(self, rows):
        return self.inner.norms(rows)


def _problem(experiment: Experiment, rows: int | None = None) -> AbstractProblem:
    space = Ambient(experiment.data.d)
    rows = rows or experiment.data.n
    holdouts = experiment.algorithm.holdouts
    draw = _draw(experiment.data, experiment.network, space, rows, holdouts, jax.random.key(5))
    return PlainProblem(experiment.data, experiment.network, experiment.bound_objective, draw)


def _walk(experiment: Experiment, space: AbstractSpace, steps: int) -> Iterator[tuple[Draw, Any]]:
    """The plain loop: draw, step, read. Yields the draw with (parameters, readings) before and after each step."""
    with jax.enable_x64(True):
        data, network, algorithm = experiment.data, experiment.network, experiment.algorithm
        draw = _draw(data, network, space, data.n, algorithm.holdouts, jax.random.key(5))
        problem = PlainProblem(data, network, experiment.bound_objective, draw)
        running = [as_running(probe) for probe in experiment.probes]

        @eqx.filter_jit
        def begin(problem):
            state = algorithm.init(jax.random.key(0), problem)
            info = no_info(algorithm, jax.random.key(0), state, problem)
            view = View(state.params, jnp.array(0), problem, algorithm, info)
            return state, view, [probe and probe.begin(view) for probe in running]

        state, view, memories = begin(problem)

        @eqx.filter_jit
        def read_all(view, memories):
            return tuple(read(probe, memory, view) for probe, memory in zip(experiment.probes, memories))

        @eqx.filter_jit
        def step(t, state, view, memories):
            key = jax.random.fold_in(jax.random.key(11), t)
            memories = [r and r.update(m, key, view) for r, m in zip(running, memories)]
            return *algorithm.step(key, eqx.tree_at(lambda s: s.step, state, t), problem), memories

        yield draw, (state.params, read_all(view, memories))
        for t in range(steps):
            state, info, memories = step(jnp.array(t), state, view, memories)
            view = View(state.params, jnp.array(t + 1), problem, algorithm, info)
            yield draw, (state.params, read_all(view, memories))


def _is_vector(leaf, d: int) -> bool:
    return jnp.ndim(leaf) > 0 and jnp.shape(leaf)[-1] == d


def _turn_back(leaf, turn):
    return leaf @ turn.T if _is_vector(leaf, len(turn)) else leaf


def _relative(one, two) -> float:
    one, two = jnp.asarray(one, float), jnp.asarray(two, float)
    both_nan = jnp.isnan(one) & jnp.isnan(two)
    return float(
        jnp.max(jnp.where(both_nan, 0, jnp.abs(one - two)))
        / (1e-3 + jnp.max(jnp.where(both_nan, 0, jnp.abs(two))))
    )


def __dir__():
    return __all__
