r"""The second modality's signal must be several times as strong as the first's, not only stronger.

Huang, Han and co-authors (2024) ask for $C_\mu \geq 2.66$. Early in training the signal grows at the rate
$\frac12 \|\mu\| \|\tilde\mu\|$, since half of the pairs see it, and a sample's noise at $\sigma^2 d/n$; so at
$n\,\mathrm{SNR}^2 = 1$ the signal is ahead for $C_\mu > 2$ alone. Two encoders are trained by gradient descent
on the slide's multi-modal loss, in both directions, with the negatives of the other label and the candidates
held fixed.
"""

from __future__ import annotations

import numpy as np

from featlab.claims import at_least
from featlab.errata import _sources
from featlab.errata._erratum import Erratum, over_seeds

N, WIDTH, TEMPERATURE, START = 50, 50, 0.5, 1e-4
STRENGTH = 1.0  # n SNR^2, with noise of length one
STOP, LONGEST = 0.05, 3000  # in units of the loss at the start; steps
ENOUGH, TOO_LITTLE = (2.66, 4.0), (1.25,)  # C_mu that the paper and that only the slide allows


class ContrastiveCondition(Erratum):
    """The erratum of this file."""

    title = "two modalities learn the signal when the second one's is several times as strong"
    source = (
        "Tutorial at AJCAI 2025 (A. Han, W. Huang), slide “Multi-model contrastive learning”, cooperation between "
        "modalities (Huang et al. 2024)"
    )
    printed = r"\|\tilde{\mu}\| = C_{\mu} \|\mu\| > \|\mu\|"
    corrected = r"\|\tilde{\mu}\| = C_{\mu} \|\mu\|, \qquad C_{\mu} \geq 2.66"
    derivation = (
        r"At $n \cdot \mathrm{SNR}^2 = 1$ the growth rates are $\frac{1}{2} C_\mu \|\mu\|^2$ and $\sigma^2 d/n = "
        r"\|\mu\|^2$: signal wins for $C_\mu > 2$, with room for finite time and width."
    )
    reference = _sources.TUTORIAL

    def judge(self, lab, *, printed):
        factors = TOO_LITTLE if printed else ENOUGH
        logs = over_seeds(lab, _log_ratios, factors)
        cells = {f"C = {factor:g}": row for factor, row in zip(factors, logs)}
        yield at_least("log of the largest product with the signal over the mean largest with noise", cells, 0)


def _log_ratios(rng, factors):
    return [_log_ratio(rng, factor) for factor in factors]


def _log_ratio(rng, factor):
    """That of the check; NaN where the loss was not reached."""
    labels = np.tile([1.0, -1.0], N // 2)
    other = labels[:, None] != labels  # who is a negative of whom
    lengths = np.sqrt(STRENGTH / N) * np.array([1.0, factor])
    # Coordinates: the signal's direction, then the samples' noise, orthogonal as for large d.
    inputs = [np.concatenate([labels[:, None] * length, np.eye(N)], axis=1) for length in lengths]
    weights = [START * rng.standard_normal((WIDTH, N + 1)) for _ in lengths]
    rate = 0.1 * N * WIDTH * TEMPERATURE  # noise grows by a tenth a step
    trained = False
    for _ in range(LONGEST):
        hidden = [_embedded(one, x) for one, x in zip(weights, inputs)]
        losses = 0.0
        for own in (0, 1):
            loss, pull = _pull(hidden[own], hidden[1 - own], other)
            losses += loss
            signal, noise = pull[0] * (hidden[own][0] > 0), pull[1] * (hidden[own][1] > 0)
            gradient = np.concatenate([(signal.T @ inputs[own][:, 0])[:, None], noise.T], axis=1)
            weights[own] = weights[own] + rate * gradient / N
        trained = losses < 2 * STOP * np.log(1 + N / 2)
        if trained:
            break
    found = np.log(weights[0][:, 0].max() * lengths[0] / weights[0][:, 1:].max(axis=0).mean())
    return found if trained else np.nan


def _embedded(weights, x):
    """Both patches of every sample, (sample, filter) each."""
    return np.maximum(x[:, :1] * weights[:, 0], 0), np.maximum(weights[:, 1:].T, 0)


def _pull(anchors, candidates, other):
    """The loss, and minus its derivative in the anchors' embeddings, for both patches."""
    both = [a @ c.T for a, c in zip(anchors, candidates)]
    similarity = (both[0] + both[1]) / (WIDTH * TEMPERATURE)
    allowed = other | np.eye(len(other), dtype=bool)
    chances = np.where(allowed, np.exp(similarity - similarity.max(axis=1, keepdims=True)), 0)
    chances /= chances.sum(axis=1, keepdims=True)
    loss = -np.log(np.diagonal(chances)).mean()
    return loss, [(np.eye(len(other)) - chances) @ c / (WIDTH * TEMPERATURE) for c in candidates]
