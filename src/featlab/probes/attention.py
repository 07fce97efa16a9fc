r"""Where attention goes: its mass, its scores, and what queries, keys and values have learnt.

For any `AbstractAttention`, which gives the softmax rows of an input and says which rows of its weights are
queries, keys and values, on data built from signals and noise. The signal token of an input is the one that holds
most of a signal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from featlab.core.sees import Sees
from featlab.data import AbstractVectorModel, Batch
from featlab.networks import AbstractAttention
from featlab.probes._probe import Variable, View, probe
from featlab.problem import Learnt, vector_model

TEST_INPUTS = 1_000  # a mass lies between 0 and 1: known to 0.016 at worst


class Tokens(NamedTuple):
    """All inputs of a set by their tokens' products with the weights; the sample is the last axis."""

    products: Float[Array, "token row sample"]
    is_signal: Bool[Array, "token sample"]
    sign: Float[Array, " sample"]  # of the signal in its token: -1 where that is minus the signal


def _test_coins(problem, *, count: int = TEST_INPUTS):
    return problem.test_coins(count)


@probe(
    of=(AbstractVectorModel, AbstractAttention),
    sees=Sees.PRODUCTS,
    prepare=_test_coins,
    attention_on_signal=Variable("", r"\overline{A_{\ell 1}}", "attention on the signal"),
    attention_of_signal=Variable("", r"A_{11}", "attention of the signal on itself"),
    attention_of_noise=Variable("", r"\overline{A_{\ell 1}}^{\,\ell > 1}", "attention of noise on the signal"),
    test_attention_on_signal=Variable("", r"E\,\overline{A_{\ell 1}}", "attention on the signal, new inputs"),
    test_attention_of_signal=Variable("", r"E\,A_{11}", "attention of the signal on itself, new inputs"),
    test_attention_of_noise=Variable(
        "", r"E\,\overline{A_{\ell 1}}^{\,\ell > 1}", "attention of noise on the signal, new inputs"
    ),
)
def attention_mass(view: View, *, count: int = TEST_INPUTS):
    """The share of attention that goes to the signal token: of all queries, of the signal's, of the noise's."""
    model, problem = _model(view), view.problem
    coins = problem.test_coins(count) if view.prepared is None else view.prepared
    assert coins is not None
    signals, noise = model.test_products(coins, problem.draw.truth, problem.draw.space, view.weights)
    fresh = _masses(view, _put_together(model, coins, signals, noise), coins)
    trained = _masses(view, _training_tokens(view), view.training)
    return {**trained, **{f"test_{name}": value for name, value in fresh.items()}}


@probe(
    of=(AbstractVectorModel, AbstractAttention),
    sees=Sees.PRODUCTS,
    value_signal=Variable("", r"\|W_V^\top \mu_j\|", "values of the signals, their mean"),
    value_noise=Variable("", r"\max_i \|W_V^\top \xi_i\|", "largest value of training noise"),
    query_signal=Variable("", r"\|W_Q^\top \mu_j\|", "queries of the signals, their mean length"),
    query_noise=Variable("", r"\max_i \|W_Q^\top \xi_i\|", "longest query of training noise"),
    key_signal=Variable("", r"\|W_K^\top \mu_j\|", "keys of the signals, their mean length"),
    key_noise=Variable("", r"\max_i \|W_K^\top \xi_i\|", "longest key of training noise"),
)
def attention_products(view: View):
    """What values, queries and keys make of the signals and of the training noise, by their lengths."""
    _model(view)
    signals, noise = view.problem.products(view.params)
    found = {}
    for name, rows in _groups(view).items():
        of_noise = jnp.linalg.norm(noise[..., rows], axis=-1)
        found[f"{name}_signal"] = jnp.mean(jnp.linalg.norm(signals[:, rows], axis=-1))
        found[f"{name}_noise"] = jnp.max(jnp.where(view.training.mask[:, None], of_noise, 0.0))
    return found


@probe(
    of=(AbstractVectorModel, AbstractAttention),
    sees=Sees.PRODUCTS,
    signal_score=Variable(
        "", r"\overline{\langle W_Q x_\ell, W_K x_1 \rangle}", "score of the signal token, mean"
    ),
    signal_score_least=Variable(
        "", r"\min \langle W_Q x_\ell, W_K x_1 \rangle", "least score of the signal token"
    ),
    mu_score_least=Variable("", r"\min \langle W_Q x_\ell, W_K \mu \rangle", "least score of the signal itself"),
    noise_score=Variable(
        "", r"\overline{\max_k \langle W_Q x_\ell, W_K \xi_k \rangle}", "score of the preferred noise token, mean"
    ),
)
def attention_scores(view: View):
    r"""Scores before the softmax, over the queries of all training inputs.

    Where the signal's token is $y\mu$, its score and that of $\mu$ are two things.
    """
    _model(view)
    tokens, of = _training_tokens(view), _groups(view)
    queries, keys = tokens.products[:, of["query"]], tokens.products[:, of["key"]]
    scores = jnp.einsum("qri,kri->qki", queries, keys)
    on_signal = jnp.sum(jnp.where(tokens.is_signal[None], scores, 0.0), axis=1)
    on_noise = jnp.max(jnp.where(tokens.is_signal[None], -jnp.inf, scores), axis=1)
    real = view.training.mask[None]

    def least(values):
        return jnp.min(jnp.where(real, values, jnp.inf))

    return {
        "signal_score": view.training.mean(jnp.mean(on_signal, axis=0)),
        "signal_score_least": least(on_signal),
        "mu_score_least": least(tokens.sign[None] * on_signal),
        "noise_score": view.training.mean(jnp.mean(on_noise, axis=0)),
    }


def _masses(view: View, tokens: Tokens, batch: Batch) -> dict[str, Array]:
    network: Any = view.problem.network
    # In products, parameters are what was learnt beside all that is no weight vector.
    params = view.params.rest if isinstance(view.params, Learnt) else view.params
    attention = network.attention(params, tokens.products)
    on_signal = jnp.sum(jnp.where(tokens.is_signal[None], attention, 0.0), axis=1)  # (query, sample)
    of_signal = jnp.sum(jnp.where(tokens.is_signal, on_signal, 0.0), axis=0)
    of_noise = jnp.sum(jnp.where(tokens.is_signal, 0.0, on_signal), axis=0) / (len(on_signal) - 1)
    return {
        "attention_on_signal": batch.mean(jnp.mean(on_signal, axis=0)),
        "attention_of_signal": batch.mean(of_signal),
        "attention_of_noise": batch.mean(of_noise),
    }


def _training_tokens(view: View) -> Tokens:
    return _put_together(_model(view), view.training, *view.problem.products(view.params))


def _put_together(model: AbstractVectorModel, batch: Batch, signals: Array, noise: Array) -> Tokens:
    """Tokens from the weights' products with the signals, (signal, row), and with noise, (sample, vector, row)."""
    products = model.patches(batch, signals[..., None], jnp.moveaxis(noise, 0, -1))
    # What each token holds of each signal: the same combination, of the signals' coordinates on themselves.
    samples, count = len(batch.mask), len(signals)
    nothing = jnp.zeros((noise.shape[1], count, samples))
    held = jnp.stack(_wide(model.patches(batch, jnp.eye(count)[..., None], nothing), samples))
    most = jnp.max(jnp.abs(held), axis=1)
    is_signal = jnp.arange(len(most))[:, None] == jnp.argmax(most, axis=0)[None]
    sign = jnp.sign(jnp.sum(jnp.where(is_signal[:, None], held, 0.0), axis=(0, 1)))
    return Tokens(jnp.stack(_wide(products, samples)), is_signal, sign)


def _wide(patches, samples: int) -> list[Array]:
    """Patches in which every sample has its own column, also where all have the same."""
    return [jnp.broadcast_to(patch, (*patch.shape[:-1], samples)) for patch in patches]


def _model(view: View) -> AbstractVectorModel:
    model = vector_model(view.problem.data)
    assert model is not None
    return model


def _groups(view: View) -> dict[str, slice]:
    network: Any = view.problem.network
    return dict(network.groups)
