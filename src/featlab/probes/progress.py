r"""Hidden progress on a sparse parity: what first-layer weights know while the error is still that of a coin.

On $y = \prod_{i \in S} x_i$ the error stays at $\frac12$ for most of training. Meanwhile the gradient's Fourier
coefficients, larger on $S$ than elsewhere, move the weights there a little further at every step (Barak et al.,
2022).
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from featlab.core.validation import InputError, probability, real, whole
from featlab.data import Relevant, SparseParity
from featlab.networks import AbstractProductNetwork
from featlab.probes._probe import Variable, View, probe
from featlab.probes.clocks import at_end
from featlab.probes.risk import train_error
from featlab.probes.running import AbstractRunning
from featlab.problem import unbatched


@probe(
    of=(SparseParity, AbstractProductNetwork),
    progress=Variable(
        "",
        r"z_S",
        "movement of the best neurons on the relevant coordinates, in deviations of that on as many others",
    ),
    relevance=Variable(
        "",
        r"\frac{\|W_S\| / \sqrt{k}}{\|W_{S^c}\| / \sqrt{d-k}}",
        "size of a first-layer weight on a relevant coordinate over that on any other",
    ),
)
def hidden_progress(view: View, *, best: int = 5, subsets: int = 200):
    r"""How far weights have moved on the relevant coordinates $S$, compared with sets $T$ of as many others.

    $$z_S = \frac{M_S - \mathrm{mean}_T M_T}{\mathrm{sd}_T M_T}, \qquad M_T = \text{mean of the largest }
      \|(w_r - w_r^{(0)})_T\| \text{ over neurons } r$$

    over random subsets $T$ of the irrelevant coordinates, the same at every reading. Of the neurons only the
    `best` count, each set having its own: those that a parity is made of are few.
    """
    return _compared(view, subsets, best)


@probe(
    of=(SparseParity, AbstractProductNetwork),
    fourier_gap=Variable(
        "",
        r"\max_r (\min_{i \in S} |\hat g_{r,i}| - \max_{i \notin S} |\hat g_{r,i}|)",
        "gap between relevant and other coordinates of the population gradient, largest over neurons",
    ),
    relevant_gradient=Variable(
        "", r"(\frac{1}{mk}\sum_{r, i \in S} \hat g_{r,i}^2)^{1/2}", "gradient on a relevant coordinate"
    ),
)
def fourier_gap(view: View, *, count: int = 20_000):
    r"""The Fourier gap of the neurons: of $\hat g_{r,i} = \mathbb{E}[y\, x_i\, \sigma'(\langle w_r, x \rangle +
    b_r)]$, the gradient of the population's hinge loss in $w_r$ where the output is small.

    On `count` fresh inputs, the same at every reading: each $\hat g$ is off by about `count`$^{-1/2}$.
    """
    relevant, problem = _relevant(view), view.problem
    network: Any = problem.network
    batch = problem.data.fresh(problem.draw.test_key, problem.draw.truth, problem.draw.space, count)
    inputs = batch.inputs[:, 0]
    biases = network.biases(view.params)[0][None] if hasattr(network, "biases") else 0.0
    slope = jax.vmap(jax.vmap(jax.grad(network.activation)))(inputs @ view.weights.T + biases)
    gradient = (batch.labels[:, None] * slope).T @ inputs / count  # (neuron, column)
    sizes = jnp.abs(gradient)
    gap = jnp.min(jnp.where(relevant[None] > 0, sizes, jnp.inf), axis=1) - jnp.max(
        jnp.where(relevant[None] > 0, 0, sizes), axis=1
    )
    on, _ = _means(jnp.mean(gradient**2, axis=0), relevant)
    return {"fourier_gap": jnp.max(gap), "relevant_gradient": jnp.sqrt(on)}


@probe(held_out_error=Variable("", r"P(y f(x) \leq 0)", "error on the training law, where looked; 1 elsewhere"))
def held_out_error(view: View, *, interval: int = 10):
    """The error on the inputs that a `Stream` holds out, at every `interval`-th step; 1 at the others.

    To end a run with: `until(held_out_error, 0.05)` costs little at the steps where it does not look.
    """
    return jax.lax.cond(
        view.step % interval == 0, lambda: train_error.number(view).astype(float), lambda: jnp.ones(())
    )


TIMES = {
    "progress_time": Variable("", "t_z", "step from which hidden progress was seen, -1 if never", "steps"),
    "escape_time": Variable("", r"t_{.55}", "step at which the accuracy left its plateau, -1 if never", "steps"),
    "learnt_time": Variable("", r"t_\star", "step at which the parity was learnt, -1 if never", "steps"),
}


class ProgressTimes(AbstractRunning):
    r"""When hidden progress is seen, when the accuracy leaves its plateau, and when the parity is learnt.

    The run is looked at every `interval` steps. The accuracy, on the inputs that a `Stream` holds out, leaves its
    plateau where it is first above `escape`; the parity is learnt where it is first at `learnt`. Progress is seen
    from the look on since when $z_S$ has been above `level` at every look before the escape: sets of coordinates
    are many and looks too, and now and then one lies above the level by chance. Where it is not above at the
    escape, the first look that is counts. `relevance_gain` is how much the relevance of `hidden_progress` has
    grown at the escape.
    """

    of: ClassVar[tuple[type, ...]] = (SparseParity, AbstractProductNetwork)

    interval: int = whole(default=10, at_least=1, means="steps between two looks", span=(1, 100))
    level: float = real(default=3.0, above=0, symbol="z_S", means="level of the hidden progress", span=(1, 6))
    escape: float = probability(default=0.55, means="accuracy at the escape")
    learnt: float = probability(default=0.95, means="accuracy of what is learnt")
    best: int = whole(default=5, at_least=1, means="neurons that are counted", span=(1, 50))
    subsets: int = whole(
        default=200, at_least=2, means="other sets of coordinates to compare with", span=(10, 1000)
    )

    @classmethod
    def examples(cls):
        return (cls(interval=2),)

    @property
    def variables(self):
        gain = Variable("", "r_{t_{.55}} / r_0", "relevance at the escape over that of the start")
        return (*TIMES.items(), ("relevance_gain", gain))

    @property
    def clock(self):
        return at_end

    def begin(self, view):
        start = _relevance(view)
        return jnp.full(len(TIMES), -1), start, start

    def update(self, memory, key, before):
        # The step is the same for all runs of a block, so what is not looked at costs nothing.
        return jax.lax.cond(before.step % self.interval == 0, lambda: self._looked(memory, before), lambda: memory)

    def read(self, memory, view):
        times, relevance, start = self._looked(memory, view)
        return {**dict(zip(TIMES, times)), "relevance_gain": relevance / start}

    def _looked(self, memory: tuple[Array, Array, Array], view: View) -> tuple[Array, Array, Array]:
        (seen, escaped, learnt), relevance, start = memory
        now = _compared(view, self.subsets, self.best)
        accuracy, hidden = 1 - train_error.number(view), escaped < 0
        before = jnp.where(hidden & (now["progress"] <= self.level), -1, seen)
        seen = jnp.where((before < 0) & (now["progress"] > self.level), view.step, before)
        escaped = jnp.where(hidden & (accuracy > self.escape), view.step, escaped)
        learnt = jnp.where((learnt < 0) & (accuracy >= self.learnt), view.step, learnt)
        return jnp.stack([seen, escaped, learnt]), jnp.where(hidden, now["relevance"], relevance), start


def _compared(view: View, subsets: int, best: int) -> dict[str, Array]:
    """The readings of `hidden_progress`."""
    sets = jnp.asarray(_sets(view.weights.shape[1], _parity(view).k, subsets))
    moved = jnp.sqrt(sets @ ((view.weights - view.start_weights) ** 2).T)  # (set, neuron)
    movement = jnp.mean(jax.lax.top_k(moved, min(best, moved.shape[1]))[0], axis=1)
    own, others = movement[0], movement[1:]
    spread = jnp.std(others)
    z = jnp.where(spread > 0, (own - jnp.mean(others)) / jnp.where(spread > 0, spread, 1), 0)
    return {"progress": z, "relevance": _relevance(view)}


def _relevance(view: View) -> Array:
    on, off = _means(jnp.mean(view.weights**2, axis=0), _relevant(view))
    return jnp.sqrt(on / off)


def _means(values, relevant):
    """Of one number a coordinate, the means over the relevant ones and over the others."""
    return jnp.sum(values * relevant) / jnp.sum(relevant), jnp.sum(values * (1 - relevant)) / jnp.sum(1 - relevant)


@functools.cache
def _sets(d: int, k: int, count: int) -> Float[np.ndarray, "set column"]:
    """The relevant coordinates, which are the first, then random sets of as many others: rows of zeros and ones.

    The same for every run: its own coordinates are drawn, and exchangeable.
    """
    lottery = np.random.default_rng(0).random((count, d - k))
    sets = np.zeros((1 + count, d))
    sets[0, :k] = 1
    np.put_along_axis(sets[1:], k + np.argsort(lottery, axis=1)[:, :k], 1, axis=1)
    return sets


def _relevant(view: View) -> Float[Array, " column"]:
    """1 on the relevant coordinates, 0 on the others."""
    _parity(view)
    truth = view.problem.draw.truth
    assert isinstance(truth, Relevant)
    return truth.coordinates.astype(float)


def _parity(view: View) -> SparseParity:
    data = unbatched(view.problem.data)
    assert isinstance(data, SparseParity)
    if not isinstance(data.d, jax.Array) and 2 * data.k > data.d:
        raise InputError(
            f"Hidden progress compares {data.k} relevant coordinates with as many others, and d = {data.d:g} has "
            "fewer."
        )
    return data
