r"""The stationary point of a denoiser with tied weights, for signal and noise of any length.

The denoiser $f(x) = \frac{1}{\sqrt m} \sum_r \langle w_r, x \rangle^2 w_r$ sees patches $\alpha_t x + \beta_t
\epsilon$ with $x = \mu_{\pm 1}$, orthogonal and each in half of the $n$ samples, or noise $x = \xi_i$,
orthogonal too. Where descent from a small random start ends, all neurons are alike: equally long, with the same
product $p$ with both signals, the same $q$ with all noise vectors, and a rest that is a corner of a simplex in a
space of its own,

$$w_r = \frac{p}{\|\mu\|^2} \sum_j \mu_j + \frac{q}{\|\xi\|^2} \sum_i \xi_i + b\,e_r, \qquad \sum_r e_r = 0.$$

That leaves a loss of three numbers. Its data enter through $\|\mu\|^2 / 2$ and $\sigma^2 d / n$ alone, the
lengths of the two patches' means; the loss is that of Han, Huang, Cao and Zou (2025), the reduction is not
theirs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.optimize

from featlab.core.validation import InputError


class Stationary(NamedTuple):
    """What all neurons have in common where the gradient vanishes."""

    balance: float  # p / q
    loss: float  # less that of finding no noise
    length: float  # |w_r|
    alignment: float  # the share of |w_r|^2 in the span of the data


def first_balance(n: float, snr: float) -> float:
    r"""Signal over noise in what the first step adds to small weights: $\frac12 n\,\mathrm{SNR}^2$.

    To third order in the weights the loss sees the data through $S = \frac1n \sum_{i,p} x_i^{(p)}$ alone, and
    $\langle S, \mu_j \rangle / \langle S, \xi_i \rangle = \frac n2 \|\mu\|^2 / \|\xi_i\|^2$.
    """
    return n * snr**2 / 2


def small_data(signal: float, noise: float, t: float, width: int) -> Stationary:
    r"""The stationary point where data is small beside the noise that is added to it.

    There the loss is $\beta_t^4 (2 \|T\|^2 + \|\tau\|^2) - 2 \alpha_t \beta_t \langle S, \tau \rangle$, of the
    tensor $T = \frac{1}{\sqrt m} \sum_r w_r^{\otimes 3}$ and its trace $\tau$. With equal lengths $\ell$ and
    cosines $g$ it is least where $2 (m - 1) g^3 + 3 g^2 = 1$, and the weights' share along $S$ is $(1 + (m - 1)
    g) / m$.
    """
    alpha, beta = _checked(signal, noise, t, width)
    roots = np.roots([2 * (width - 1), 3, 0, -1])  # of which one is positive
    cosine = float(max(roots.real[roots.imag == 0]))
    share = (1 + (width - 1) * cosine) / width
    curvature = 2 * (1 + (width - 1) * cosine**3) + width * share
    drive = alpha * math.sqrt(signal + noise) / beta**3
    length = (math.sqrt(width * share) * drive / curvature) ** (1 / 3)
    return Stationary(signal / noise, -(beta**4) * drive**2 * width * share / curvature, length, share)


def stationary(signal: float, noise: float, t: float, width: int) -> Stationary:
    r"""The stationary point for `signal` $= \|\mu\|^2 / 2$ and `noise` $= \sigma^2 d / n$, both above 0.

    For small data `small_data`, with the ratio $\frac12 n\,\mathrm{SNR}^2$; for large data the ratio tends to a
    constant, since every patch holds its own product down.
    """
    alpha, beta = _checked(signal, noise, t, width)
    limit = small_data(signal, noise, t, width)
    data = np.sqrt([signal, noise])  # lengths of the means of the two patches
    # Large data holds its products near beta, so that lengths stay where they are for data of that size.
    unit = limit.length / (1 + (alpha / beta) ** 2 * (signal + noise)) ** (1 / 6)

    def loss(numbers):
        along, rest = unit * numbers[:2], unit * numbers[2]
        squared = along @ along + rest**2
        other = along @ along - rest**2 / max(width - 1, 1)  # product of two neurons
        products = alpha * data * along
        second = (products**2 + beta**2 * squared) ** 2

        def power(gram):
            return gram * (second + 4 * beta**2 * products**2 * gram + 2 * beta**4 * gram**2)

        found = 2 * beta * math.sqrt(width) * products * squared
        return float(np.sum(power(squared) + (width - 1) * power(other) - 2 * found) / 2)

    begin = np.append(math.sqrt(limit.alignment) * data / np.linalg.norm(data), math.sqrt(1 - limit.alignment))
    scale = abs(limit.loss)
    found = scipy.optimize.minimize(lambda numbers: loss(numbers) / scale, begin, method="BFGS", tol=1e-10)
    along, rest = unit * found.x[:2], unit * found.x[2]
    squared = along @ along + rest**2
    ratio = (along[0] * data[0]) / (along[1] * data[1])
    return Stationary(float(ratio), loss(found.x), math.sqrt(squared), float(along @ along / squared))


def _checked(signal, noise, t, width) -> tuple[float, float]:
    """The scales of what is left of the data and of the noise added to it."""
    for name, value in {"signal": signal, "noise": noise, "t": t}.items():
        if not value > 0:
            raise InputError(f"A stationary denoiser needs {name} above 0, got {value!r}.")
    if width != int(width) or width < 1:
        raise InputError(f"A stationary denoiser needs a whole width of at least 1, got {width!r}.")
    return math.exp(-t), math.sqrt(-math.expm1(-2 * t))
