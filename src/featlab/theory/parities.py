r"""Fourier coefficients of a neuron's gate, and the gap they leave between relevant and irrelevant coordinates.

A neuron $\sigma(\langle w, x \rangle + b)$ with the ReLU has the gate $g(x) = 1[\langle w, x \rangle + b > 0]$.
Where the output is small the hinge loss has slope $-y$, and with $y = \chi_S(x)$ the gradient of the population in
$w$ is, but for the output's weight on the neuron,

$$\mathbb{E}[\chi_S(x)\, x_i\, g(x)] = \hat g(S \setminus \{i\}) \text{ for } i \in S, \qquad \hat g(S \cup \{i\})
  \text{ for } i \notin S$$

a Fourier coefficient $\hat g(T) = \mathbb{E}[g(x) \chi_T(x)]$ of degree $k - 1$ on the relevant coordinates and of
degree $k + 1$ on the others. Here $w = (1, ..., 1)$; a start of other signs only changes signs. Flipping a
coordinate $j \in T$ changes the gate where the others sum to one number alone, of which $p$ are $-1$. So

$$\hat g(T) = 2^{-d} K_p(|T| - 1; d - 1), \qquad K_p(t; N) = \sum_i (-1)^i \binom{t}{i} \binom{N - t}{p - i}$$

with the polynomials of Krawtchouk, exact sums of whole numbers. For odd $d$ and no bias the gate is a half plus
half the majority's sign: coefficients of odd degree $j$ fall as $d^{-j/2}$, those of even degree are 0, so for odd
$k$ biases are needed (Barak et al., 2022).
"""

from __future__ import annotations

import math
from fractions import Fraction

from featlab.core.validation import InputError


def krawtchouk(p: int, t: int, count: int) -> int:
    r"""$K_p(t; N)$: the sum of $\chi_T$, $|T| = t$, over all signs of length $N$ of which $p$ are $-1$."""
    return sum((-1) ** i * math.comb(t, i) * math.comb(count - t, p - i) for i in range(min(t, p) + 1))


def gate_coefficient(d: int, degree: int, bias: float = 0.0) -> float:
    r"""$\hat g(T)$ of $g(x) = 1[\sum_i x_i + b > 0]$ for $|T|$ = `degree`; 0 beyond degree $d$."""
    _checked(d, degree)
    if degree > d:
        return 0.0
    if degree == 0:
        above = sum(math.comb(d, p) for p in range(d + 1) if d - 2 * p + bias > 0)
        return float(Fraction(above, 2**d))
    p = math.ceil((d - 2 + bias) / 2)  # the others sum to d - 1 - 2p, of (-b - 1, -b + 1]
    if not 0 <= p <= d - 1:
        return 0.0
    return float(Fraction(krawtchouk(p, degree - 1, d - 1), 2**d))


def majority_coefficient(d: int, degree: int) -> float:
    r"""The Fourier coefficient of $\mathrm{sgn}(\sum_i x_i)$, for odd $d$.

    $$(-1)^{(j - 1)/2}\, \binom{(d-1)/2}{(j-1)/2} \binom{d-1}{j-1}^{-1} \frac{2}{2^d} \binom{d-1}{(d-1)/2}$$

    for odd degrees $j$, else 0.
    """
    _checked(d, degree)
    if d % 2 == 0:
        raise InputError(f"majority_coefficient(d=) must be odd, for a majority there must be, got {d}.")
    if degree % 2 == 0 or degree > d:
        return 0.0
    half, j = (d - 1) // 2, (degree - 1) // 2
    size = Fraction(math.comb(half, j) * 2 * math.comb(d - 1, half), math.comb(d - 1, degree - 1) * 2**d)
    return float((-1) ** j * size)


def population_gradient(d: int, k: int, bias: float = 0.0) -> tuple[float, float]:
    r"""$\mathbb{E}[\chi_S x_i g]$ for a relevant coordinate $i \in S$, and for any other."""
    if not 1 <= k <= d:
        raise InputError(f"population_gradient(k=) must be from 1 to d = {d}, got {k!r}.")
    return gate_coefficient(d, k - 1, bias), gate_coefficient(d, k + 1, bias) if k < d else 0.0


def fourier_gap(d: int, k: int, bias: float = 0.0) -> float:
    r"""$|\hat g_{k-1}| - |\hat g_{k+1}|$: by how much the gradient prefers relevant coordinates."""
    relevant, other = population_gradient(d, k, bias)
    return abs(relevant) - abs(other)


def _checked(d: int, degree: int) -> None:
    if not isinstance(d, int) or d < 1:
        raise InputError(f"A number of coordinates must be a whole number of at least 1, got {d!r}.")
    if not isinstance(degree, int) or degree < 0:
        raise InputError(f"A degree must be a whole number of at least 0, got {degree!r}.")
