r"""Sparse coding $x = Mz + \xi$: which neurons are good before training, and how well a linear model does.

A neuron's products with the atoms, $\langle w_i, M_j \rangle$, begin as independent $N(0, \sigma_1^2)$. With
$Q(t) = P(N(0, 1) > t)$ the probabilities of the sets of Allen-Zhu and Li (2020) follow; a neuron is in
$S_{\mathrm{sure},j}$ for one $j$ at most, so that the number of surely good neurons is binomial.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.stats

from featlab.core.validation import InputError


def sure_probability(d: float, c1: float, c2: float) -> float:
    r"""$P(i \in S_{\mathrm{sure},j}) = Q(\sqrt{(c_1 + c_2) \log d})\,
    [1 - 2 Q(\sqrt{(c_1 - c_2) \log d})]^{d-1}$ at the start.

    Large and of the right sign along $M_j$, small along all other atoms.
    """
    high, low = _levels(d, c1, c2)
    return float(_q(high) * (1 - 2 * _q(low)) ** (d - 1))


def first_threshold(d: float, c1: float) -> float:
    r"""$\sqrt{c_1 \log d}$: where a threshold has to begin, in standard deviations of the start, to lie between
    what is large in $S_{\mathrm{sure}}$ and what is small."""
    if not (d >= 1 and c1 > 0):
        raise InputError(f"A first threshold needs d >= 1 and c1 > 0, got d = {d}, c1 = {c1}.")
    return math.sqrt(c1 * math.log(d))


def potential_probability(d: float, c1: float, c2: float) -> float:
    r"""$P(i \in S_{\mathrm{pot},j}) = 2 Q(\sqrt{(c_1 - c_2) \log d})$ at the start."""
    return float(2 * _q(_levels(d, c1, c2)[1]))


def sure_count(width: int, d: float, c1: float, c2: float) -> tuple[float, float]:
    r"""Mean and standard deviation of the number of surely good neurons among `width`: that of a binomial law
    with the probability $d\, P(i \in S_{\mathrm{sure},j})$."""
    chance = d * sure_probability(d, c1, c2)
    return width * chance, math.sqrt(width * chance * (1 - chance))


def linear_error(d: float, sparsity: int, noise_scale: float) -> float:
    r"""$P(y \langle M w^\star, x \rangle \leq 0)$, the error of the best linear model.

    $\langle M w^\star, x \rangle = \langle w^\star, z \rangle + \sigma_0 \sqrt d\, N(0, 1)$, and with s signs of
    either kind $\langle w^\star, z \rangle = 2k - s$ with probability $2^{-s} \binom sk$. Exchanging atoms, or
    the signs of $M_j$, $z_j$ and $w_j^\star$ together, leaves the law as it is, so no direction does better.
    """
    if sparsity < 1 or sparsity % 2 == 0:
        raise InputError(f"linear_error needs an odd sparsity, so that no label is undecided, got {sparsity!r}.")
    counts = np.arange(sparsity + 1)
    chances = scipy.stats.binom.pmf(counts, sparsity, 0.5)
    if noise_scale == 0:
        return 0.0
    return float(chances @ _q(np.abs(2 * counts - sparsity) / (noise_scale * math.sqrt(d))))


def _levels(d: float, c1: float, c2: float) -> tuple[float, float]:
    r"""$\sqrt{(c_1 \pm c_2) \log d}$, in standard deviations of the start."""
    if not (d >= 1 and 0 < c2 < c1):
        raise InputError(f"The sets of neurons need d >= 1 and 0 < c2 < c1, got d = {d}, c1 = {c1}, c2 = {c2}.")
    return math.sqrt((c1 + c2) * math.log(d)), math.sqrt((c1 - c2) * math.log(d))


def _q(t):
    return scipy.stats.norm.sf(t)
