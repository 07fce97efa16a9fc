r"""One large gradient step on the first layer, then ridge regression: spikes, and what they are worth.

A step $\eta \asymp n^\alpha$ with $\frac{\ell-1}{2\ell} < \alpha < \frac{\ell}{2\ell+2}$ adds $\ell$ spikes to
the features (Moniri, Lee, Hassani and Dobriban 2023):

$$F \approx F_0 + \sum_{k \leq \ell} c_1^k c_k \eta^k (\tilde X \beta)^{\circ k} (a^{\circ k})^\top, \qquad
  \beta = \tfrac1n X^\top y, \qquad \|\beta\|^2 \to b = c_{\star 1}^2 + \phi\,(c_\star^2 + \sigma_\varepsilon^2)$$

Ridge regression on infinitely strong spikes fits $(\tilde X\beta)^{\circ k}$, $k \leq \ell$, for nothing. Of
the labels they see $u_p = c_{\star p} \kappa^p$, $\kappa = c_{\star 1} / \sqrt b$ being the cosine of $\beta$
with the teacher's direction; so with $\xi$ the powers in Hermite polynomials and
$D = \mathrm{diag}(k!\, m_1)$, but $m_2$ at $k = 1$ and $m_1'$ at $k = 0$, the training error falls by

$$\Delta_\ell = \lambda \tfrac\psi\phi \; \| P\, u \|_D^2, \qquad P\, u = \xi^\top (\xi D \xi^\top)^{-1} \xi D u$$

the part of $u$ within the span of $x, ..., x^\ell$. (There is no intercept, so $x^2$ brings its constant.) One
formula then gives all errors: $Q_\ell = Q_0 - \Delta_\ell/\lambda$, $L_{tr} = \lambda Q_\ell$,
$L_{te} = -\partial_\lambda Q_\ell\, (\phi / \psi m_1)^2$.

*Lengths matter where $c_2 \neq 0$* (derived here). Rows $w_j \sim N(0, I/d)$ differ in length,
$|w_j|^2 = 1 + \delta_j$ with $\delta_j \approx \sqrt{2/d}$, and over inputs the mean of feature j is
$c_2 \delta_j$. So $F_0$ has a piece $1\, (c_2 \delta)^\top$, of squared length $2 c_2^2 / \psi$ over n: an outlier
that linear features with independent noise do not have. It explains part of a constant, for which the second
spike need not pay:

$$m_1' = \frac{m_1}{1 + t\, \frac{2 c_2^2}{\psi} \frac\psi\phi m_1}, \qquad
  t = 1 - \tfrac nN (1 - \lambda\, \mathrm{tr} R)$$

and $m_1' = m_1$ for rows of length one, for which the formula of Moniri et al. holds as it stands. The lengths
of inputs, $|x_i|^2 = d (1 + \epsilon_i)$, make the transposed piece $(c_2 \epsilon)\, 1^\top$. It explains no
label, but $1$ and $a^{\circ 2}$ have the cosine $1/\sqrt 3$, so that a second spike of finite strength is
partly hidden in it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from featlab.core.validation import InputError
from featlab.theory import hermite
from featlab.theory.random_features import Activation, errors, loo_factor, traces


class Teacher(NamedTuple):
    r"""What the theory sees of the labels $y = \sigma_\star(\langle \beta_\star, x \rangle) + \varepsilon$."""

    coefficients: tuple[float, ...]  # c_{*1}, c_{*2}, ..., as many as spikes are asked about
    power: float  # c_*^2, the second moment of sigma_*
    noise: float  # sigma_eps^2

    @staticmethod
    def of(link, noise: float, order: int = 6) -> Teacher:
        r"""Of a link function and the standard deviation $\sigma_\varepsilon$ of the noise."""
        mean, *others = hermite.coefficients(link, order)
        if abs(mean) > 1e-9:
            raise InputError(
                f"The theory needs labels of mean zero, got {mean:.4g}: there is no intercept to learn it; "
                "networks.centred(link) subtracts it."
            )
        return Teacher(tuple(others), hermite.second_moment(link), noise**2)

    @property
    def nonlinear(self) -> float:
        r"""$\|P_{>1} f_\star\|^2 = c_\star^2 - c_{\star 1}^2$: no kernel that sees inner products alone learns
        less than this badly while $n \asymp d$ (Ba et al. 2022)."""
        return self.power - self.coefficients[0] ** 2


def spikes_at(alpha: float) -> int:
    r"""How many spikes a step of size $n^\alpha$ makes: $\ell$ with
    $\frac{\ell-1}{2\ell} < \alpha < \frac{\ell}{2\ell+2}$.

    None at $\alpha \leq 0$. At the end of such an interval, and from $\alpha = \frac12$ on, this theory is silent.
    """
    if not math.isfinite(alpha) or alpha >= 0.5:
        raise InputError(
            f"spikes_at(alpha) needs alpha below 1/2, got {alpha:g}: from there on all spikes are of one order, "
            "and the expansion does not end."
        )
    if alpha <= 0:
        return 0
    order = 1 / (1 - 2 * alpha)  # l is below this, and l + 1 above
    if abs(order - round(order)) < 1e-12:
        raise InputError(
            f"spikes_at(alpha) is between two numbers of spikes at {alpha:g}; move a little to either side."
        )
    return math.ceil(order) - 1


def steps_of_the_staircase(most: int) -> list[float]:
    r"""The exponents $\alpha = 0, \frac14, \frac13, \frac38, ...$ at which the 1st, 2nd, 3rd, ... spike
    appears."""
    return [(k - 1) / (2 * k) for k in range(1, most + 1)]


def alignment(phi: Any, teacher: Teacher) -> Any:
    r"""$\cos(\beta, \beta_\star) \to c_{\star 1} / \sqrt b$."""
    first = teacher.coefficients[0]
    return first / np.sqrt(squared_length(phi, teacher))


def squared_length(phi: Any, teacher: Teacher) -> Any:
    r"""$b = c_{\star 1}^2 + \phi\,(c_\star^2 + \sigma_\varepsilon^2)$, the limit of $\|\beta\|^2$."""
    phi = np.asarray(phi, float)
    if not np.all(phi > 0):
        raise InputError(f"phi = d/n must be positive, got {phi}: n and d grow in proportion.")
    return teacher.coefficients[0] ** 2 + phi * (teacher.power + teacher.noise)


class Step(NamedTuple):
    r"""A step of finite size on a network of finite width: spikes that are strong, not infinitely so."""

    eta: float
    width: int  # N
    coefficients: tuple[float, ...]  # c_0, c_1, ... of the student's activation

    @staticmethod
    def of(activation, eta: float, width: int, order: int = 6) -> Step:
        """A step of this size with this activation, with Hermite coefficients up to this order."""
        return Step(eta, width, tuple(hermite.coefficients(activation, order)))

    def strengths(self, length: float, spikes: int) -> np.ndarray:
        r"""$\Theta_{jk} = \theta_j \theta_k\, \mathbb{E}\langle a^{\circ j}, a^{\circ k} \rangle$,
        $\theta_k = c_1^k c_k (\eta \|\beta\|)^k$.

        With $a \sim N(0, I/N)$ the mean is $(j + k - 1)!!\, N^{1 - (j+k)/2}$ for even $j + k$, else 0.
        """
        k, theta = np.arange(1, spikes + 1), self._factors(length, spikes)
        return np.outer(theta, theta) * self._moments(k[:, None] + k[None])

    def hidden(self, length: float, spikes: int, lengths: float) -> np.ndarray:
        r"""The products of the spikes' right vectors with that of the inputs' lengths, of this squared length."""
        k = np.arange(1, spikes + 1)
        return math.sqrt(lengths / self.width) * self._factors(length, spikes) * self._moments(k)

    def _factors(self, length: float, spikes: int) -> np.ndarray:
        k, c = np.arange(1, spikes + 1), np.asarray(self.coefficients, float)
        return c[1] ** k * c[k] * (self.eta * length) ** k

    def _moments(self, power: np.ndarray) -> np.ndarray:
        r"""$\sum_r \mathbb{E}\, a_r^s$."""
        odd = [0.0 if s % 2 else float(math.prod(range(1, int(s), 2))) for s in power.flat]
        return np.reshape(odd, power.shape) * float(self.width) ** (1 - power / 2)


def gains(
    phi: float,
    psi: float,
    penalty: float,
    activation: Activation,
    teacher: Teacher,
    spikes: int,
    step: Step | None = None,
    *,
    unit_rows: bool = False,
) -> tuple[float, float]:
    r"""By how much $\ell$ spikes lower the training and the test error: $\Delta_\ell$ and $\Lambda_\ell$.

    Without a step the spikes are infinitely strong, as the theorem has it; with one, as strong as it makes them.
    `unit_rows` is for a start whose rows have length one; otherwise they are $N(0, I/d)$.
    """
    value, slope = _explained(phi, psi, penalty, activation, teacher, spikes, step, unit_rows)
    return penalty * value, -slope * float(loo_factor(phi, psi, penalty, activation))


def errors_after(
    phi: float,
    psi: float,
    penalty: float,
    activation: Activation,
    teacher: Teacher,
    spikes: int,
    step: Step | None = None,
    *,
    unit_rows: bool = False,
) -> tuple[float, float]:
    r"""Training and test error after a step that makes `spikes` spikes; 0 spikes are random features."""
    other = teacher.nonlinear + teacher.noise
    train, test = errors(phi, psi, penalty, activation, teacher.coefficients[0] ** 2, other)
    less_train, less_test = gains(phi, psi, penalty, activation, teacher, spikes, step, unit_rows=unit_rows)
    return float(train - less_train), float(test - less_test)


def spike_strengths(step: Step, phi: float, teacher: Teacher, spikes: int) -> np.ndarray:
    r"""The length of each spike over $\sqrt n$, with $a \sim N(0, I/N)$.

    It is $\|c_1^k c_k \eta^k (\tilde X\beta)^{\circ k} (a^{\circ k})^\top\| / \sqrt n$, for $k \leq \ell$, that is
    $|c_1^k c_k|\, \eta^k b^{k/2} (2k-1)!!\, N^{(1-k)/2}$: of order $n^{k(\alpha - 1/2) + 1/2}$.
    """
    own = np.diagonal(step.strengths(float(np.sqrt(squared_length(phi, teacher))), spikes))
    moments = [float(math.prod(range(1, 2 * k, 2))) for k in range(1, spikes + 1)]
    return np.sqrt(own * moments)


def _explained(phi, psi, penalty, activation, teacher, spikes, step, unit_rows) -> tuple[float, float]:
    r"""$\Delta_\ell / \lambda$ and its derivative in $\lambda$.

    Spikes of finite strength $\Theta$ are penalised: with $M = \frac\psi\phi\, \xi D \xi^\top$ and
    $v = \frac\psi\phi\, \xi D u$,

    $$\frac{\Delta_\ell}{\lambda} = v^\top (M + (t\, \Theta)^{-1})^{-1} v, \qquad
      t = \lambda \tfrac nN\, \mathrm{tr} (F_0^\top F_0 + \lambda n I)^{-1} = 1 - \tfrac nN (1 - \lambda\,
      \mathrm{tr} R),$$

    by Woodbury's formula for $F = F_0 + U V^\top$: products of $U$ and of $F_0 V$ vanish, and
    $V^\top V - V^\top F_0^\top R F_0 V \to t\, V^\top V$. Beside the spikes there is the piece of the inputs'
    lengths, orthogonal to all powers of $\tilde X\beta$, with $2 c_2^2/\psi$ in $\Theta$ and $m_1$ in $D$.
    """
    if not isinstance(spikes, int) or spikes < 0:
        raise InputError(f"The number of spikes must be a whole number of at least 0, got {spikes!r}.")
    if spikes == 0:
        return 0.0, 0.0
    known = (
        len(teacher.coefficients) if step is None else min(len(teacher.coefficients), len(step.coefficients) - 1)
    )
    if spikes > known:
        raise InputError(f"{spikes} spikes need as many Hermite coefficients, got {known}.")
    m = traces(phi, psi, penalty, activation)
    factorials = np.array([float(math.factorial(k)) for k in range(spikes + 1)])
    linear = np.arange(spikes + 1) == 1
    weight, slope = (
        psi / phi * np.where(linear, two, factorials * one) for one, two in ((m.m1, m.m2), (m.dm1, m.dm2))
    )
    trace, dtrace = float(weight[0]), float(slope[0])  # tr R
    free = 1 - psi / phi * (1 - penalty * trace)  # t
    dfree = psi / phi * (trace + penalty * dtrace)
    lengths = 2 * activation.second**2 / psi
    rows = 0.0 if unit_rows else lengths
    weight[0] = trace / (1 + rows * free * trace)
    slope[0] = (dtrace - rows * trace**2 * dfree) / (1 + rows * free * trace) ** 2
    cosine = float(alignment(phi, teacher))
    seen = np.array([0.0, *teacher.coefficients[:spikes]]) * cosine ** np.arange(spikes + 1)
    xi = hermite.powers(spikes)[1:]
    if step is None:
        matrix, target = (xi * weight) @ xi.T, (xi * weight) @ seen
        fit, kept = np.linalg.solve(matrix, target), 0.0
    else:
        length = float(np.sqrt(squared_length(phi, teacher)))
        hidden = step.hidden(length, spikes, lengths)[:, None]
        own = np.full((1, 1), lengths)
        strengths = free * np.block([[step.strengths(length, spikes), hidden], [hidden.T, own]])
        xi = np.block([[xi, np.zeros((spikes, 1))], [np.zeros((1, spikes + 1)), np.ones((1, 1))]])
        weight, slope, seen = np.append(weight, trace), np.append(slope, dtrace), np.append(seen, 0.0)
        matrix, target = (xi * weight) @ xi.T, (xi * weight) @ seen
        fit = strengths @ np.linalg.solve(matrix @ strengths + np.eye(spikes + 1), target)
        kept = dfree / free * float(fit @ (target - matrix @ fit))
    fitted = xi.T @ fit
    # The fit minimises, so its own change does not count to first order.
    return float(target @ fit), float(np.sum(slope * (2 * seen * fitted - fitted**2))) + kept
