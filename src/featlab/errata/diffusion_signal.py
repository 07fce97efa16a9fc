r"""A diffusion model learns the signal in proportion to $n\,\mathrm{SNR}^2$ if each class has its own.

Han, Huang, Cao and Zou (2025a) have orthogonal signals $\mu_1$ and $\mu_{-1}$. With the tutorial's $y\mu$ the
first steps of a denoiser see the mean of the signal patches, which is zero for balanced classes, and the signal
is not learnt at their pace. The gradient of the denoising loss is averaged over pairs of noise draws
$\pm\epsilon$, and what one step adds to $\langle w_r, \mu \rangle$ and $\langle w_r, \xi_i \rangle$ is compared.
"""

from __future__ import annotations

import numpy as np

from featlab.claims import equals
from featlab.errata import _sources
from featlab.errata._erratum import Erratum, over_seeds

N, D, WIDTH = 20, 300, 24
STRENGTHS = (0.5, 2.0)  # n SNR^2
TIME = 0.2
START = 1e-3  # small, so that the network's output is negligible beside the noise that it is to predict
DRAWS = 20  # pairs of noise for each patch


class DiffusionSignal(Erratum):
    """The erratum of this file."""

    title = "a diffusion model learns balanced features when each class has a signal of its own"
    source = (
        "Tutorial at AJCAI 2025 (A. Han, W. Huang), slide “Diffusion model feature learning” (Han et al. 2025a, "
        "Theorem 3.1 & 3.2), with the data model of “Signal-noise data model”"
    )
    printed = (
        r"\mathbf{x} = [y \boldsymbol{\mu}, \boldsymbol{\xi}]: \quad |\langle \mathbf{w}_r^*, \boldsymbol{\mu} "
        r"\rangle| / |\langle \mathbf{w}_r^*, \boldsymbol{\xi} \rangle| = \Theta(n \cdot \text{SNR}^2)"
    )
    corrected = (
        r"\mathbf{x} = [\boldsymbol{\mu}_y, \boldsymbol{\xi}], \ \boldsymbol{\mu}_1 \perp "
        r"\boldsymbol{\mu}_{-1}: \quad |\langle \mathbf{w}_r^*, \boldsymbol{\mu}_y \rangle| / |\langle "
        r"\mathbf{w}_r^*, \boldsymbol{\xi} \rangle| = \Theta(n \cdot \text{SNR}^2)"
    )
    derivation = (
        r"Early on $\mathbb{E}_\epsilon \langle f, \epsilon \rangle = \frac{2 \alpha_t \beta_t}{\sqrt{m}} "
        r"\sum_r \langle \mathbf{w}_r, \mathbf{x} \rangle \|\mathbf{w}_r\|^2$, so $\mathbf{w}_r$ moves along "
        r"the sum of all patches: $\frac{n}{2} \|\boldsymbol{\mu}\|^2$ against $\sigma_\xi^2 d$, or $0$ where "
        r"$\sum_i y_i = 0$."
    )
    reference = _sources.TUTORIAL

    def judge(self, lab, *, printed):
        ratios = over_seeds(lab, _ratios, printed)
        cells = {f"n SNR^2 = {one:g}": row for one, row in zip(STRENGTHS, ratios)}
        yield equals("signal over noise of the first step, over n SNR^2 / 2", cells, 1.0)


def _ratios(rng, printed):
    return [_ratio(rng, strength, printed) / (strength / 2) for strength in STRENGTHS]


def _ratio(rng, strength, printed):
    labels = np.tile([1, -1], N // 2)
    # Noise of length one, orthogonal to all else, as for large d.
    (first, second), noise = np.sqrt(strength / N) * np.eye(2, D), np.eye(N, D, k=2)
    signals = labels[:, None] * first if printed else np.where(labels[:, None] > 0, first, second)
    weights = START * rng.standard_normal((WIDTH, D))
    step = _descent(rng, weights, np.concatenate([signals, noise]))
    return np.abs(step @ first).mean() / np.abs(step @ noise.T).mean()


def _descent(rng, weights, patches):
    r"""Minus the gradient of $\frac12 |f - \epsilon|^2$, summed over patches, for pairs of noise."""
    alpha, beta = np.exp(-TIME), np.sqrt(1 - np.exp(-2 * TIME))
    half = rng.standard_normal((DRAWS, *patches.shape))
    noise = np.concatenate([half, -half])
    x = (alpha * patches + beta * noise).reshape(-1, D)
    products = x @ weights.T  # (draw and patch, filter)
    missed = noise.reshape(-1, D) - products**2 @ weights / np.sqrt(WIDTH)
    inner = 2 * products * (missed @ weights.T)
    return (inner.T @ x + (products**2).T @ missed) / (np.sqrt(WIDTH) * 2 * DRAWS)
