r"""The condition for gradient descent beside that for SAM carries the noise level.

The footnote quotes Kou, Chen, Chen and Gu (2023), whose condition, on an earlier slide, is $n \|\mu\|^4 \geq C_1
\sigma_\xi^4 d$. Without $\sigma_\xi^4$ it holds for $\sigma_\xi = 1$ only. Networks are trained at one value of
what each formula calls the strength of the signal, for three noise levels; below 0.1, the slides' level, the
error is small.
"""

from __future__ import annotations

import math

from featlab.claims import at_most
from featlab.errata import _cnn, _sources
from featlab.errata._erratum import Erratum, over_seeds

N, D, WIDTH = 20, 400, 16
NOISE_SCALES = (0.5, 1.0, 2.0)
STRENGTH = 4.0  # n |mu|^4 / (sigma^4 d), as each formula has it
STEPS, TESTS = 150, 2000
HARMFUL = 0.1  # the theorem's error on the harmful side


class SamFootnoteScale(Erratum):
    """The erratum of this file."""

    title = "the signal that gradient descent needs grows with the noise level"
    source = (
        "Tutorial at AJCAI 2025 (A. Han, W. Huang), slide “Feature learning under different optimizers (SAM)”, "
        "footnote on Kou et al. (2023)"
    )
    printed = r"\|\boldsymbol{\mu}\|^4 = \tilde{\Omega}(d/n)"
    corrected = r"\|\boldsymbol{\mu}\|^4 = \tilde{\Omega}(\sigma_\xi^4 d/n)"
    derivation = (
        r"Inputs, signal and noise, times $c$ make the same network with weights over $c$, so that only "
        r"$\|\boldsymbol{\mu}\| / \sigma_\xi$ can count; the power is that of $n \|\boldsymbol{\mu}\|^4 \geq C_1 "
        r"\sigma_\xi^4 d$."
    )
    reference = _sources.TUTORIAL

    def judge(self, lab, *, printed):
        errors = over_seeds(lab, _errors, printed)
        cells = {f"sigma = {scale:g}": row for scale, row in zip(NOISE_SCALES, errors)}
        yield at_most("test error where the condition holds", cells, HARMFUL)


def _errors(rng, printed):
    return [_error(rng, scale, printed) for scale in NOISE_SCALES]


def _error(rng, scale, printed):
    """The test error; NaN where not all samples are fitted."""
    fourth = STRENGTH * D / N * (1.0 if printed else scale**4)
    run = _cnn.drawn(
        rng, n=N, d=D, width=WIDTH, signal_norm=fourth**0.25, noise_scale=scale, init_scale=0.01 / scale
    )
    rate = 2 * N / (scale**2 * D)  # eta sigma^2 d / n = 2
    run.step(rate, STEPS)
    error = run.error(rng, run.fresh_noise(rng, TESTS))
    return error if run.fitted().all() else math.nan
