r"""Ridge regression on random features, where samples, dimension and width grow in proportion.

$$F_0 = \sigma(\tilde X W_0^\top) \in \mathbb{R}^{n \times N}, \qquad
  R = (F_0 F_0^\top + \lambda n I)^{-1}, \qquad d/n \to \phi, \quad d/N \to \psi$$

Two limiting traces decide everything (Pennington and Worah 2017, Adlam and Pennington 2020):
$m_1 = \frac\phi\psi \lim \mathrm{tr}\, R$ and
$m_2 = \frac\phi\psi \lim \frac1d \mathrm{tr}(\tilde X^\top R \tilde X)$. They solve

$$\phi (m_1 - m_2)(c_{>1}^2 m_1 + c_1^2 m_2) + \Psi = 0, \qquad
  \tfrac\phi\psi (c_1^2 m_1 m_2 + \phi (m_2 - m_1)) + \Psi = 0, \qquad
  \Psi = c_1^2 m_1 m_2 (\lambda \tfrac\psi\phi m_1 - 1).$$

In $r = m_2 / m_1$ and $\tau = \lambda\, \mathrm{tr} R$ the first equation is quadratic and the second
explicit, so that $\lambda$ is an increasing function of one number, written in `_penalty_at`: no branch to
choose, and no cancellation at small $\lambda$ or at the peak $N = n$.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from featlab.core.validation import InputError
from featlab.theory import hermite

_QUADRATIC = 1.75  # the slope of the deviation in min(n, N) / d^2
_WARNED, _REFUSED = 0.05, 0.25
_ROUNDS = 200  # of bisection, from a bracket that holds every double


class Activation(NamedTuple):
    """What the theory sees of an activation: the squares of its linear and of its nonlinear part."""

    linear: float  # c_1^2
    nonlinear: float  # c_{>1}^2
    second: float = 0.0  # c_2, through which the lengths of inputs and of rows are felt: see `one_step`

    @staticmethod
    def of(function: Callable) -> Activation:
        """Of a function; its mean must be 0, or the features have one more direction than the theory knows."""
        mean, slope, second = map(float, hermite.coefficients(function, 2))
        if abs(mean) > 1e-9:
            raise InputError(
                f"The theory needs an activation of mean zero, E sigma(Z) = 0, got {mean:.4g}; "
                "networks.centred(activation) subtracts it."
            )
        return Activation(slope**2, hermite.nonlinear_part(function), second).checked()

    def checked(self) -> Activation:
        """Refuse what makes the system degenerate."""
        if not self.linear > 1e-18:
            raise InputError(
                "The theory needs c_1 = E[sigma(Z) Z] other than 0: features without a linear part see nothing of "
                "a linear teacher, and the gradient step c_1 a beta' vanishes."
            )
        if not self.nonlinear > 1e-18:
            raise InputError(
                "The theory needs c_{>1} > 0: features of a linear activation have rank d at most, and are linear "
                "regression."
            )
        return self


class OutOfProportion(UserWarning):
    """Sizes at which the theory's errors are visibly off."""


def proportions(n: float, d: float, width: float) -> tuple[float, float]:
    r"""$\phi = d/n$ and $\psi = d/N$, of sizes that may pass for proportional.

    Quadratic functions of the inputs are learnt as $\min(n, N)$ grows to $d^2$, and are not the independent
    noise the theory takes them for. See `quadratic_share` for how far its errors are off; a warning says so from
    5 %, and from 25 % the sizes are refused.
    """
    sizes = {"n": n, "d": d, "width": width}
    for name, value in sizes.items():
        if not (value >= 1 and np.isfinite(value)):
            raise InputError(f"proportions({name}=) must be a finite number of at least 1, got {value}.")
    off = quadratic_share(n, d, width)
    words = f"n = {n:g}, d = {d:g} and width = {width:g}: quadratic functions are partly learnt there"
    if off > _REFUSED:
        raise InputError(f"The theory needs n, d and the width in proportion, got {words}.")
    if off > _WARNED:
        said = f"The theory's test errors may be off by {off:.0%} at {words}."
        warnings.warn(said, OutOfProportion, stacklevel=2)
    return d / n, d / width


def quadratic_share(n: float, d: float, width: float) -> float:
    r"""How far a test error may lie from its limit, relatively: about $1.75 \min(n, N) / d^2$.

    Measured for centred ReLU features, $\min(n, N)/d^2$ from 0.04 to 0.6, three teachers, N/n from 0.4 to 8 and
    two penalties: lower by 1.2 to 1.8 times that ratio where the teacher is quadratic, higher by up to as much
    where labels are linear with noise.
    """
    return _QUADRATIC * min(n, width) / d**2


class Traces(NamedTuple):
    r"""$m_1$, $m_2$ and their derivatives in $\lambda$."""

    m1: Any
    m2: Any
    dm1: Any
    dm2: Any


def traces(phi: Any, psi: Any, penalty: Any, activation: Activation) -> Traces:
    r"""The limiting traces for $\phi = d/n$, $\psi = d/N$ and $\lambda$; numbers may be arrays."""
    c, rest, _ = activation.checked()
    phi, psi, penalty = (
        _positive("traces", *named) for named in (("phi", phi), ("psi", psi), ("penalty", penalty))
    )
    phi, psi, penalty = np.broadcast_arrays(phi, psi, penalty)
    ratio = phi / psi  # N / n
    top, gap, above = np.minimum(1, ratio), np.abs(ratio - 1), np.maximum(ratio - 1, 0)

    # u runs from 0, where lambda is 0, to top, where it is infinite; it is found by its logarithms from both ends.
    low, high = np.full(phi.shape, -700.0), np.full(phi.shape, 700.0)
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        larger = _penalty_at(*_ends(middle, top), phi, gap, c, rest)[0] > penalty
        low, high = np.where(larger, low, middle), np.where(larger, middle, high)
    u, left = _ends((low + high) / 2, top)
    _, r, slope_r = _penalty_at(u, left, phi, gap, c, rest)

    line = c * r + rest
    # Logarithmic derivatives in u; within each, all terms have one sign.
    log_penalty = 1 / u + 1 / (u + gap) + c * slope_r / line + 1 / left
    log_m1 = -1 / left - 1 / (u + above) - c * slope_r / line
    m1 = ratio * left / ((u + above) * line)
    dm1 = m1 * log_m1 / (penalty * log_penalty)
    dm2 = r * dm1 + m1 * slope_r / (penalty * log_penalty)
    return Traces(m1, r * m1, dm1, dm2)


def _ends(logit, top):
    """u and top - u, both without cancellation."""
    return top / (1 + np.exp(-logit)), top / (1 + np.exp(logit))


def _penalty_at(u, left, phi, gap, c, rest):
    r"""$\lambda = u\,(u + |\tfrac Nn - 1|)\,\frac{c_1^2 r + c_{>1}^2}{\min(1, N/n) - u}$, with $r$ and $dr/du$.

    $u = \tau - \max(0, 1 - N/n)$, and $r$ is the positive root of
    $\phi c_1^2 r^2 - (\phi (c_1^2 - c_{>1}^2) + c_1^2 (\tau - 1))\, r - \phi c_{>1}^2 = 0$.
    """
    middle = phi * (c - rest) - c * left  # tau - 1 = -(min(1, N/n) - u)
    root = np.sqrt(middle**2 + 4 * phi**2 * c * rest)
    # The form without cancellation, on either side of zero.
    r = np.where(
        middle > 0, (middle + root) / (2 * phi * c), 2 * phi * rest / np.where(middle > 0, 1, root - middle)
    )
    return u * (u + gap) * (c * r + rest) / left, r, c * r / root


def quadratic_form(phi: Any, psi: Any, penalty: Any, activation: Activation, linear: float, other: float):
    r"""$Q_0 = \lim \tilde y^\top R \tilde y = \frac\psi\phi [c_{\star 1}^2 m_2 + o\, m_1]$, and its derivative
    in $\lambda$.

    `linear` is $c_{\star 1}^2$, and `other` the power of everything else in the labels: the teacher's
    nonlinear part and the noise.
    """
    m = traces(phi, psi, penalty, activation)
    scale = np.asarray(psi, float) / phi
    return scale * (linear * m.m2 + other * m.m1), scale * (linear * m.dm2 + other * m.dm1)


def errors(
    phi: Any, psi: Any, penalty: Any, activation: Activation, linear: float, other: float
) -> tuple[Any, Any]:
    r"""Training and test error of ridge regression on random features: its double descent.

    $$L_{tr} = \lambda Q_0, \qquad L_{te} = -\partial_\lambda Q_0 \left(\frac{\phi}{\psi m_1}\right)^2$$

    The training error counts the penalty, $\frac1n |\tilde y - F\hat a|^2 + \lambda |\hat a|^2$; the test
    error counts the noise of the labels.
    """
    _power_given("errors", linear, other)
    value, slope = quadratic_form(phi, psi, penalty, activation, linear, other)
    return penalty * value, -slope * loo_factor(phi, psi, penalty, activation)


def loo_factor(phi, psi, penalty, activation) -> Any:
    r"""$(\phi / \psi m_1)^2 = (\mathrm{tr} R)^{-2}$: leaving one sample out turns residuals into test errors."""
    return (np.asarray(phi, float) / (psi * traces(phi, psi, penalty, activation).m1)) ** 2


def edge(phi: float, psi: float, activation: Activation) -> float:
    r"""The largest singular value of $F_0 / \sqrt n$ in the limit: where the bulk ends.

    At $\lambda = -x$, above the bulk, $r > 1$ and $x$ is an explicit function of $r$ whose smallest value
    there is the edge.
    """
    import scipy.optimize

    c, rest, _ = activation.checked()
    ratio = phi / psi

    def minus_penalty(r):
        tau = 1 + phi * (r - 1) * (c * r + rest) / (c * r)
        return tau * (tau - 1 + ratio) * c * r / (phi * (r - 1))

    found: Any = scipy.optimize.minimize_scalar(
        lambda s: np.log(minus_penalty(1 + np.exp(s))),
        bounds=(-30, 30),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return float(np.exp(found.fun / 2))


def density(singular_values: Any, phi: float, psi: float, activation: Activation) -> np.ndarray:
    r"""The limiting density of the singular values of $F_0 / \sqrt n$ that are not zero by rank: it has mass one.

    The Stieltjes transform just above the real axis, from the quartic in $r$ that the two equations amount to.
    """
    c, rest, _ = activation.checked()
    s, ratio = np.asarray(singular_values, float), phi / psi
    # tau c r and (tau - 1 + N/n) c r as polynomials in r.
    tau = np.array([phi * c, c + phi * (rest - c), -phi * rest])
    other = tau + np.array([0, (ratio - 1) * c, 0])
    product = np.polymul(tau, other)
    values = np.zeros(s.shape)
    for i, x in np.ndenumerate(s**2):
        penalty = -x - 1e-9j * max(x, 1e-12)
        roots = np.roots(product - penalty * phi * c * np.array([0, 0, -1, 1, 0]))
        # tr R, less what the rank takes: 1 - N/n of the eigenvalues are zero.
        trace = (np.polyval(tau, roots) / (c * roots) - max(0.0, 1 - ratio)) / penalty
        values[i] = max(trace.imag.max(), 0.0) / np.pi
    return values * 2 * s / min(1.0, ratio)


def _positive(where: str, name: str, value: Any) -> np.ndarray:
    value = np.asarray(value, float)
    if not np.all((value > 0) & np.isfinite(value)):
        reasons = {
            "penalty": "at lambda = 0 the inverse of F F' + lambda n I may not exist, below it is no minimum",
            "phi": "d, n and N grow in proportion, so d/n has a positive limit",
            "psi": "d, n and N grow in proportion, so d/N has a positive limit",
        }
        raise InputError(f"{where}({name}=) must be positive and finite, got {value}: {reasons[name]}.")
    return value


def _power_given(where, linear, other) -> None:
    if not (np.all(np.asarray(linear) >= 0) and np.all(np.asarray(other) >= 0)):
        raise InputError(f"{where}(linear=, other=) are powers and cannot be negative, got {linear} and {other}.")
