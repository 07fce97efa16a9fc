r"""Features that emerge from patterns: where neurons point, and what a head on top of them can do.

$A$ are the relevant patterns, $M_j$ the patterns themselves. A feature that decides the label looks along
$\sum_{j \in A} M_j$ and away from the background.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from featlab.algorithms import ridge
from featlab.core.sees import Sees
from featlab.data import PatternDictionary
from featlab.networks import AbstractProductNetwork
from featlab.probes._probe import Variable, View, probe
from featlab.probes.risk import wrong
from featlab.problem import unbatched

TEST_INPUTS = 10_000
FITTED = 4000
_CHUNK = 2000  # test inputs held at a time


@probe(
    of=(PatternDictionary, AbstractProductNetwork),
    sees=Sees.VECTORS,
    pattern_cosine=Variable(
        "neuron", r"\cos(w_i, \sum_{j \in A} M_j)", "direction of each neuron towards the sum of relevant patterns"
    ),
    median_cosine=Variable(
        "", r"\mathrm{med}_i |\cos(w_i, \sum_{j \in A} M_j)|", "median over neurons of that, without sign"
    ),
    relevant_share=Variable(
        "",
        r"|w_A|^2 / (|w_A|^2 + |w_{A^c}|^2)",
        "share of the squared weights on patterns that is on relevant ones, all neurons",
    ),
    relevant_ratio=Variable(
        "",
        r"|w_A| k^{-1/2} / (|w_{A^c}| (D-k)^{-1/2})",
        "root mean square weight of relevant over background patterns",
    ),
)
def pattern_alignment(view: View):
    """How much neurons look at the relevant patterns, and how much at the others; a neuron of length 0 at none."""
    truth, weights = view.problem.draw.truth, view.first_layer
    along = weights @ truth.patterns.T  # (neuron, pattern)
    relevant = truth.relevant.astype(along.dtype)
    lengths = jnp.linalg.norm(weights, axis=1) * jnp.sqrt(jnp.sum(relevant))
    cosine = jnp.where(lengths > 0, along @ relevant / jnp.where(lengths > 0, lengths, 1), 0)
    inside, outside = (jnp.sum(along**2 * which[None]) for which in (relevant, 1 - relevant))
    counts = jnp.sum(relevant), jnp.sum(1 - relevant)
    return {
        "pattern_cosine": cosine,
        "median_cosine": jnp.median(jnp.abs(cosine)),
        "relevant_share": inside / (inside + outside),
        "relevant_ratio": jnp.sqrt((inside / counts[0]) / (outside / counts[1])),
    }


@probe(
    of=(PatternDictionary,),
    sees=Sees.VECTORS,
    pattern_error=Variable("", r"P(y g(x) \leq 0)", "error on fresh inputs"),
    parity_error=Variable("", r"P(y g(x) \leq 0 \mid \text{not easy})", "error on those that are not easy"),
)
def pattern_errors(view: View, *, count: int = TEST_INPUTS):
    """The fraction of fresh inputs on the wrong side, of all and of those whose relevant patterns are coins."""

    def errs(batch):
        return wrong(batch.labels * view.problem.outputs(view.params, batch))

    return dict(zip(("pattern_error", "parity_error"), _errors(view, errs, count)))


@probe(
    of=(PatternDictionary,),
    sees=Sees.VECTORS,
    head_error=Variable(
        "", r"P(y \langle \hat a, \phi(x) \rangle \leq 0)", "error of a head fitted to the features"
    ),
    head_parity_error=Variable(
        "",
        r"P(y \langle \hat a, \phi(x) \rangle \leq 0 \mid \text{not easy})",
        "error of a head fitted to the features, on inputs that are not easy",
    ),
)
def head_errors(view: View, *, count: int = TEST_INPUTS, fitted: int = FITTED, penalty: float = 1e-6):
    r"""What the features are worth: a linear head is fitted to `fitted` fresh inputs and tested on `count` others.

    Least squares on features of mean 0 and variance 1, and a constant; the ridge is `penalty`. A feature that
    does not vary is left out. Features that vary little beside their mean need `precision=64`.
    """
    errors = _head_errors(view, view.params, count, fitted, penalty)
    return dict(zip(("head_error", "head_parity_error"), errors))


@probe(
    of=(PatternDictionary,),
    sees=Sees.VECTORS,
    fixed_error=Variable(
        "", r"P(y \langle \hat a, \phi_0(x) \rangle \leq 0)", "error of a head fitted to the features of the start"
    ),
    fixed_parity_error=Variable(
        "",
        r"P(y \langle \hat a, \phi_0(x) \rangle \leq 0 \mid \text{not easy})",
        "error of a head fitted to the features of the start, on inputs that are not easy",
    ),
)
def fixed_head_errors(view: View, *, count: int = TEST_INPUTS, fitted: int = FITTED, penalty: float = 1e-6):
    """`head_errors` of the features that the network began with, which is a random feature model of its width."""
    errors = _head_errors(view, view.problem.draw.start, count, fitted, penalty)
    return dict(zip(("fixed_error", "fixed_parity_error"), errors))


def fitted_head(view: View, params: Any, fitted: int = FITTED, penalty: float = 1e-6) -> Callable:
    """The head that `head_errors` fits to the features of these parameters: a function of many inputs."""
    problem, draw = view.problem, view.problem.draw
    batch = patterns(view).fresh(_keys(view)[0], draw.truth, draw.space, fitted)
    features = problem.features(params, batch.inputs)
    mean, spread = jnp.mean(features, axis=0), jnp.std(features, axis=0)
    varies = spread > 1e-3 * jnp.finfo(spread.dtype).eps ** 0.5 * jnp.max(spread)
    inverse = jnp.where(varies, 1 / jnp.where(varies, spread, 1), 0)
    level = jnp.mean(batch.labels)
    head = ridge((features - mean[None]) * inverse[None], batch.labels - level, penalty * fitted)
    return lambda inputs: (problem.features(params, inputs) - mean[None]) * inverse[None] @ head + level


def _head_errors(view: View, params, count: int, fitted: int, penalty: float):
    outputs = fitted_head(view, params, fitted, penalty)
    return _errors(view, lambda batch: wrong(batch.labels * outputs(batch.inputs)), count)


def patterns(view: View) -> PatternDictionary:
    """The data model, as one of patterns."""
    data = unbatched(view.problem.data)
    assert isinstance(data, PatternDictionary)
    return data


def _errors(view: View, errors: Callable, count: int):
    """The mean of `errors(batch)` on fresh inputs, of all and of those that are not easy; NaN of none."""
    data, draw = patterns(view), view.problem.draw
    chunk = min(count, _CHUNK)

    def one(key):
        batch = data.fresh(key, draw.truth, draw.space, chunk)
        errs, hard = errors(batch), ~batch.coins
        return jnp.sum(errs), jnp.sum(jnp.where(hard, errs, 0)), jnp.sum(hard)

    keys = jax.random.split(_keys(view)[1], -(-count // chunk))
    errs, hard_errs, hard = (jnp.sum(counted) for counted in jax.lax.map(one, keys))
    return errs / (len(keys) * chunk), jnp.where(hard > 0, hard_errs / jnp.maximum(hard, 1), jnp.nan)


def _keys(view: View):
    """Of what heads are fitted to, and of what they are tested on."""
    return jax.random.split(view.problem.draw.test_key)
