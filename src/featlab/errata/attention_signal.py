r"""With the signal $y\mu$ as first token, what is large is its score as it stands, and not that of $\mu$.

On the slide every token's score with $\mu$ is of order one. The key in the prompt is $y\mu$: where its score is
large, that of $\mu$ has the sign of $y$, also for the signal's own query. (Jiang, Huang, Zhang, Suzuki and Nie
(2024) have a signal for each class.) The slide's transformer is trained on prompts in its benign regime,
$n\,\mathrm{SNR}^2 = 4$, and the smallest score over all prompts and queries is read off. Only $v = W_V w_o$
matters of the value matrix.
"""

from __future__ import annotations

import numpy as np

from featlab.claims import at_least
from featlab.errata import _sources
from featlab.errata._erratum import Erratum, over_seeds

N, TOKENS, HEAD = 16, 4, 16  # n, L, width of queries and keys
NOISE = 4.0  # length of a noise token
STRENGTH = 4.0  # n SNR^2
START, RATE_ATTENTION, RATE_VALUE = 0.05, 2.0, 0.05
STOP, LONGEST = 0.01, 4000  # training loss, steps
LARGE = 1.0  # how a score of order one is read


class AttentionSignal(Erratum):
    """The erratum of this file."""

    title = "attention goes to the signal token, whose sign is the label's"
    source = (
        "Tutorial at AJCAI 2025 (A. Han, W. Huang), slide “Benign overfitting with feature learning "
        "(Transformer)”, attention on signal, with the training data of the slide before"
    )
    printed = (
        r"\langle \mathbf{W}_Q^{(T)} \mathbf{x}^{(\ell)}, \mathbf{W}_K^{(T)} \boldsymbol{\mu} \rangle = "
        r"\Omega(1), \qquad \mathbf{x}^{(1)} = y \boldsymbol{\mu}"
    )
    corrected = (
        r"\langle \mathbf{W}_Q^{(T)} \mathbf{x}^{(\ell)}, \mathbf{W}_K^{(T)} \mathbf{x}^{(1)} \rangle = "
        r"\Omega(1), \qquad \mathbf{x}^{(1)} = y \boldsymbol{\mu}"
    )
    derivation = (
        r"The softmax sees the key $y \boldsymbol{\mu}$, whose score is $y \langle \mathbf{W}_Q "
        r"\mathbf{x}^{(\ell)}, \mathbf{W}_K \boldsymbol{\mu} \rangle$; if that is positive for both labels, the "
        r"product with $\boldsymbol{\mu}$ is not."
    )
    reference = _sources.TUTORIAL

    def judge(self, lab, *, printed):
        of_signal, of_token = over_seeds(lab, _smallest_scores)
        name = "smallest score of the signal over training prompts and queries"
        yield at_least(name, of_signal if printed else of_token, LARGE)


def _smallest_scores(rng):
    """Of mu, and of the first token, over prompts and queries; NaN where the loss was not reached."""
    labels = np.tile([1.0, -1.0], N // 2)
    size = 1 + N * (TOKENS - 1)  # the signal's direction, then noise, orthogonal as for large d
    prompts = np.zeros((N, TOKENS, size))
    prompts[:, 0, 0] = labels * NOISE * np.sqrt(STRENGTH / N)
    prompts[:, 1:, 1:] = NOISE * np.eye(size - 1).reshape(N, TOKENS - 1, size - 1)
    queries, keys = START * rng.standard_normal((2, size, HEAD))
    value, trained = np.zeros(size), False
    for _ in range(LONGEST):
        attention = _softmax(prompts @ queries @ (prompts @ keys).transpose(0, 2, 1))
        worth = prompts @ value  # (prompt, token)
        read = np.einsum("nlk,nk->nl", attention, worth)
        margins = labels * read.mean(axis=1)
        trained = np.mean(np.log1p(np.exp(-margins))) < STOP
        if trained:
            break
        push = labels / (1 + np.exp(margins)) / (N * TOKENS)
        scores = push[:, None, None] * attention * (worth[:, None] - read[..., None])
        both = np.einsum("nld,nlk,nke->de", prompts, scores, prompts, optimize=True)
        value = value + RATE_VALUE * N * np.einsum("n,nlk,nkd->d", push, attention, prompts, optimize=True)
        queries, keys = (
            queries + RATE_ATTENTION * N * both @ keys,
            keys + RATE_ATTENTION * N * both.T @ queries,
        )
    on_token = np.einsum("nlh,nh->nl", prompts @ queries, prompts[:, 0] @ keys)
    scores = (labels[:, None] * on_token).min(), on_token.min()
    return scores if trained else (np.nan, np.nan)


def _softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)
