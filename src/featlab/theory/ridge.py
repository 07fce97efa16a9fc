r"""The risk of ridge regression, from the spectrum of its inputs alone.

$$y = \langle \beta, x \rangle + \varepsilon, \quad x \sim \mathcal{N}(0, \mathrm{diag}\,\lambda_j), \quad
  \mathbb{E} \varepsilon^2 = \sigma^2, \qquad
  \hat\beta = \arg\min_b \tfrac1n |y - Xb|^2 + \lambda |b|^2$$

The risk $\mathbb{E} \langle \hat\beta - \beta, x \rangle^2$ has a deterministic equivalent (Hastie, Montanari,
Rosset and Tibshirani 2022; Canatar, Bordelon and Pehlevan 2021; Simon, Dickens, Karkada and DeWeese 2023) with
relative error $O(1/n)$, and an order of magnitude that is a theorem for every $n$ (Bartlett, Long, Lugosi and
Tsigler 2020; Tsigler and Bartlett 2023). Here are both.

`spectrum` is $\lambda_j$ and `energy` $\beta_j^2$, or its mean $\nu_j$; an entry may stand for several equal
ones, as many as `multiplicity` says. `noise` is $\sigma^2$.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from featlab.core.validation import InputError

_ROUNDS = 200  # bisection alone needs about 70 from a bracket that holds every double
_HALF_LOST = 0.25  # of its energy, a direction keeps the rest when kappa is its eigenvalue: (1 / (1 + 1))^2


class Risk(NamedTuple):
    r"""Bias, variance and $\kappa$ of the deterministic equivalent."""

    bias: float
    variance: float
    kappa: float

    @property
    def total(self) -> float:
        """The risk, noise of new labels not counted."""
        return self.bias + self.variance


class Bound(NamedTuple):
    """Bias and variance up to constants, and the number of directions that are learnt."""

    bias: float
    variance: float
    k_star: int

    @property
    def total(self) -> float:
        """Their sum."""
        return self.bias + self.variance


class Regime(NamedTuple):
    """What interpolation does, and the two numbers that say so."""

    name: str  # kernel, benign or harmful
    passed_on: float  # E_0 - 1, the share of the labels' noise that reaches new predictions
    lost: float  # (kappa / (lambda_1 + kappa))^2, the share of the leading direction's energy that is not learnt


def index_blocks(
    d: float, exact: float = 1000, width: float = 3e-3, breaks: Sequence[float] = ()
) -> tuple[np.ndarray, np.ndarray]:
    r"""Indices $j$ and multiplicities that stand for $1, \dots, d$ in sums of powers of $j$.

    The first `exact` stand for themselves, the others for blocks of `width` times the index, at whose middle
    a power $j^{-p}$ is the block's mean up to a relative $p (p + 1)\, \mathrm{width}^2 / 24$. A block ends at
    every index in `breaks`: where another power begins, and on both sides of a single entry that stands out.
    """
    d, exact = _number("index_blocks", "d", d), _number("index_blocks", "exact", exact)
    width = _number("index_blocks", "width", width)
    if d != round(d) or not 1 <= d <= 2**53 or width > 1:
        raise InputError(
            f"index_blocks needs a whole d from 1 to 2^53 and a width of at most 1, got {d:g} and {width:g}."
        )
    first = np.arange(1.0, min(d, math.ceil(exact)) + 1)
    if first[-1] == d:
        return first, np.ones(len(first))
    count = math.ceil(math.log(d / first[-1]) / width)
    inside = [at for at in breaks if first[-1] < at < d]
    ends = np.unique(np.round(np.append(np.geomspace(first[-1], d, count + 1), inside)))
    return (
        np.concatenate([first, (ends[:-1] + 1 + ends[1:]) / 2]),
        np.concatenate([np.ones(len(first)), np.diff(ends)]),
    )


def kappa(spectrum: Any, n: float, penalty: float, multiplicity: Any = None) -> float:
    r"""The effective penalty: the root $\kappa$ of

    $$n = \frac{n \lambda}{\kappa} + \sum_j \frac{\lambda_j}{\lambda_j + \kappa},$$

    the right side being a falling function of $\kappa$. At penalty $\lambda = 0$ it is positive if there are
    more directions than samples, and 0 if there are fewer.
    """
    return _kappa(*_directions("kappa", spectrum, multiplicity), *_sizes("kappa", n, penalty))


def risk(spectrum: Any, energy: Any, n: float, penalty: float, noise: float, multiplicity: Any = None) -> Risk:
    r"""The deterministic equivalent of the risk of ridge regression.

    $$R = E_0 \sum_j \left(\frac{\kappa}{\lambda_j + \kappa}\right)^2 \lambda_j \beta_j^2 + \sigma^2 (E_0 - 1),
      \qquad E_0^{-1} = 1 - \frac1n \sum_j \left(\frac{\lambda_j}{\lambda_j + \kappa}\right)^2$$

    with $\kappa$ as in `kappa` (Hastie et al. 2022, Theorem 5; Canatar et al. 2021; Simon et al. 2023).
    """
    values, weights = _directions("risk", spectrum, multiplicity)
    signal = values * _like("risk", "energy", energy, values)
    return _risk(values, signal, weights, *_sizes("risk", n, penalty), _number("risk", "noise", noise, zero=True))


def metric_risk(
    spectrum: Any, energy: Any, metric: Any, n: float, penalty: float, noise: float, multiplicity: Any = None
) -> Risk:
    r"""The risk of ridge regression on $Wx$ with $W^\top W = \mathrm{diag}(\text{metric})$.

    It is `risk` of the spectrum $\lambda_j w_j$ and the energy $\beta_j^2 / w_j$, whose product, the energy of
    the predictions, is that without a metric. A direction of metric 0 is not learnt at all.
    """
    values, weights = _directions("metric_risk", spectrum, multiplicity)
    signal = values * _like("metric_risk", "energy", energy, values)
    values = values * _like("metric_risk", "metric", metric, values)
    _some("metric_risk", "spectrum * metric", values)
    noise = _number("metric_risk", "noise", noise, zero=True)
    return _risk(values, signal, weights, *_sizes("metric_risk", n, penalty), noise)


def best_penalty(spectrum: Any, energy: Any, n: float, noise: float, multiplicity: Any = None) -> float:
    r"""The penalty of at least 0 at which the equivalent `risk` is least.

    $\lambda = \kappa\, (1 - \frac1n \sum_j \frac{\lambda_j}{\lambda_j + \kappa})$ is an explicit function of
    $\kappa$, so the search is along $\kappa$ and solves no equation. (With a few strong directions among many
    weak ones a negative penalty may be better still, Tsigler and Bartlett 2023; it is not looked for.)
    """
    import scipy.optimize

    name = "best_penalty"
    values, weights = _directions(name, spectrum, multiplicity)
    signal = values * _like(name, "energy", energy, values)
    (n, _), noise = _sizes(name, n, 0.0), _number(name, "noise", noise, zero=True)
    power = float((weights * values) @ signal)
    if not power > 0:
        raise InputError("best_penalty needs energy in a direction of the spectrum; without it, infinity is best.")
    rank = float(weights[values > 0].sum())
    top, trace = float(values.max()), float(weights @ values)
    # Beyond this kappa the risk rises: what shrinking saves in variance no longer pays for what it costs in bias.
    high = 100 * (top + trace / n + noise * float((weights * values) @ values) / (n * power))
    low = _kappa(values, weights, n, 0.0) if rank > n else 1e-9 * float(values[values > 0].min()) / (1 + rank)

    def penalty_at(at):
        return max(0.0, at * (1 - float(weights @ (values / (values + at))) / n))

    def total(log_kappa):
        at = math.exp(log_kappa)
        return _risk_at(values, signal, weights, n, penalty_at(at), noise, at).total

    grid = np.linspace(math.log(low), math.log(high), 60)
    best = int(np.argmin([total(one) for one in grid]))
    ends = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found: Any = scipy.optimize.minimize_scalar(total, bounds=ends, method="bounded", options={"xatol": 1e-6})
    if total(grid[0]) <= found.fun:  # an end that a bounded search does not reach
        return 0.0
    return penalty_at(math.exp(found.x))


def tsigler_bartlett(
    spectrum: Any,
    energy: Any,
    n: float,
    penalty: float,
    noise: float,
    b: float = 1.0,
    multiplicity: Any = None,
) -> Bound:
    r"""Bias and variance up to constants (Tsigler and Bartlett 2023, Theorems 1 and 2).

    $$B = \sum_{j \le k} \beta_j^2 \frac{(n\lambda + \sum_{i>k} \lambda_i)^2}{n^2 \lambda_j}
          + \sum_{j > k} \beta_j^2 \lambda_j, \qquad
      V = \sigma^2 \left(\frac kn + n \frac{\sum_{j>k} \lambda_j^2}{(n\lambda + \sum_{j>k} \lambda_j)^2}\right)$$

    for $k = k^\star = \min\{k : n\lambda + \sum_{i>k} \lambda_i \ge b\, n \lambda_{k+1}\}$. The theorem speaks of
    $k^\star$ below a constant part of $n$.
    """
    name = "tsigler_bartlett"
    values, weights = _directions(name, spectrum, multiplicity)
    energy = _like(name, "energy", energy, values)
    (n, penalty), noise = _sizes(name, n, penalty), _number(name, "noise", noise, zero=True)
    b = _number(name, "b", b)
    order = np.argsort(-values, kind="stable")
    values, weights, energy = values[order], weights[order], energy[order]
    # Sums over each entry and all later ones, the small ones first. Among equal eigenvalues the left side of the
    # condition falls with k and the right side stays, so k_star is where a run of equal ones begins.
    tails = np.append(np.cumsum((weights * values)[::-1])[::-1], 0.0)
    reached = np.append(n * penalty + tails[:-1] >= b * n * values, True)
    cut = int(np.argmax(reached))
    k = float(weights[:cut].sum())
    held = (n * penalty + tails[cut]) / n
    bias = (weights * energy)[:cut] @ (held**2 / values[:cut]) + (weights * energy)[cut:] @ values[cut:]
    squares = float(weights[cut:] @ values[cut:] ** 2)
    variance = k / n + (squares / (n * held**2) if squares else 0.0)
    return Bound(float(bias), noise * variance, round(k))


def regime(spectrum: Any, n: float, multiplicity: Any = None) -> Regime:
    r"""What interpolating the labels, penalty 0, does: kernel, benign or harmful overfitting.

    With `risk` at $\lambda = 0$, a leading direction loses the share $(\kappa / (\lambda_1 + \kappa))^2$ of its
    energy, and the share $E_0 - 1$ of the labels' noise is passed on. Both tend to 0 if overfitting is benign
    (Bartlett et al. 2020). It is called

    * *harmful* where the first is a quarter or more, that is where $\kappa \ge \lambda_1$: not even the leading
      direction is learnt, and $k^\star = 0$ in `tsigler_bartlett`;
    * *kernel* where it is not, and a quarter or more of the noise is passed on: a penalty is needed. For
      $\lambda_j = j^{-a}$, $a > 1$, that share tends to $a - 1$;
    * *benign* otherwise.
    """
    values, weights = _directions("regime", spectrum, multiplicity)
    n, _ = _sizes("regime", n, 0.0)
    rank = float(weights[values > 0].sum())
    if rank <= n:
        raise InputError(
            f"regime speaks of interpolation, which needs more directions than n = {n:g}, got {rank:g}."
        )
    found = _risk(values, np.zeros_like(values), weights, n, 0.0, 1.0)
    lost = (found.kappa / (float(values.max()) + found.kappa)) ** 2
    name = "harmful" if lost >= _HALF_LOST else "kernel" if found.variance >= _HALF_LOST else "benign"
    return Regime(name, found.variance, lost)


def optimal_bound(mu: Any, n: float, noise: float = 1.0, multiplicity: Any = None) -> float:
    r"""The best order of the risk, $\sum_j \min\{\sigma^2 / n, \mu_j\}$ (K. Suzuki and T. Suzuki 2024).

    $\mu_j$ are the eigenvalues of $\Sigma_\beta^{1/2} \Sigma_X \Sigma_\beta^{1/2}$.
    """
    values, weights = _directions("optimal_bound", mu, multiplicity)
    n, noise = _number("optimal_bound", "n", n), _number("optimal_bound", "noise", noise, zero=True)
    return float(weights @ np.minimum(noise / n, values))


def least_criterion(mu_hat: Any, n: float, noise: float, noise_prime: float) -> float:
    r"""The least value of the criterion $R(W) - \sigma^2$ over all $W$, for many tasks:

    $$\sum_j \min\left\{\hat\mu_j, \frac{\sigma'^2 - \sigma^2}{n}\right\}$$

    with $\hat\mu_j$ the eigenvalues of $\Sigma_\beta^{1/2} \frac{X^\top X}{n} \Sigma_\beta^{1/2}$. In the terms of
    K. Suzuki and T. Suzuki (2024): with the smoother $H$ it is $\frac1n \mathrm{tr}(X \Sigma_\beta X^\top
    (I - H)) + \frac{\sigma'^2 - \sigma^2}{n} \mathrm{tr} H$, least where $H$ is the projection on the eigenvectors
    with $\hat\mu_j$ above the threshold.
    """
    values, _ = _directions("least_criterion", mu_hat, None)
    name = "least_criterion"
    n, noise = _number(name, "n", n), _number(name, "noise", noise, zero=True)
    noise_prime = _number(name, "noise_prime", noise_prime)
    if noise_prime <= noise:
        raise InputError(
            f"least_criterion needs sigma'^2 above sigma^2 = {noise:g}, got {noise_prime:g}: otherwise "
            "interpolating costs nothing and the least value says nothing about the risk."
        )
    return float(np.minimum(values, (noise_prime - noise) / n).sum())


def _kappa(values, weights, n, penalty) -> float:
    """Newton's method for log(sum) as a function of log kappa, kept inside a bracket that shrinks."""
    rank, trace = float(weights[values > 0].sum()), float(weights @ values)
    if penalty == 0 and rank == n:
        raise InputError(
            f"With penalty 0 and as many directions as samples, n = {n:g}, the risk is infinite; give a penalty, "
            "or another n."
        )
    if penalty == 0 and rank < n:
        return 0.0
    # kappa lies above the penalty, and above lambda (k - n) / n for the k eigenvalues of at least lambda.
    least = max(penalty, float(values[values > 0].min()) * (rank - n) / n)
    low, high = math.log(least), math.log(penalty + trace / n)
    at = high
    for _ in range(_ROUNDS):
        now = math.exp(at)
        share = values / (values + now)
        weighted = weights * share
        linear, square = float(weighted.sum()), float(weighted @ share)
        total = n * penalty / now + linear
        low, high = (at, high) if total > n else (low, at)
        fall = (total - square) / total  # -d log(sum) / d log(kappa)
        step = math.log(total / n) / fall if fall > 0 else math.inf
        before, at = at, at + step
        if not low <= at <= high:
            at = (low + high) / 2
        # A step this small is followed by one of its square; a residual this small is rounding.
        if abs(at - before) <= 1e-13 * max(1.0, abs(at)) or abs(total / n - 1) <= 4 * np.finfo(float).eps:
            break
    return math.exp(at)


def _risk(values, signal, weights, n, penalty, noise) -> Risk:
    return _risk_at(values, signal, weights, n, penalty, noise, _kappa(values, weights, n, penalty))


def _risk_at(values, signal, weights, n, penalty, noise, at) -> Risk:
    r"""The equivalent for a $\kappa$ that belongs to the penalty.

    With $s_j = \lambda_j / (\lambda_j + \kappa)$, $1 - \frac1n \sum_j s_j^2$ is by the equation of $\kappa$ the
    same as $\frac1n (n \lambda / \kappa + \sum_j s_j (1 - s_j))$, a sum without cancellation.
    """
    if at == 0:  # fewer directions than samples, and no penalty
        rank = float(weights[values > 0].sum())
        inflation = n / (n - rank)
        missed = float(weights[values == 0] @ signal[values == 0])
        return Risk(inflation * missed, noise * rank / (n - rank), 0.0)
    kept = values / (values + at)
    lost = at / (values + at)
    weighted = weights * kept
    left = n * penalty / at + float(weighted @ lost)
    bias = n / left * float((weights * lost) @ (lost * signal))
    return Risk(bias, noise * float(weighted @ kept) / left, at)


def _directions(where, spectrum, multiplicity) -> tuple[np.ndarray, np.ndarray]:
    """The spectrum and its multiplicities, checked."""
    values = _array(where, "spectrum", spectrum)
    _some(where, "spectrum", values)
    if multiplicity is None:
        return values, np.ones_like(values)
    weights = _like(where, "multiplicity", multiplicity, values)
    if not np.all(weights > 0):
        raise InputError(f"{where}(multiplicity=) must hold numbers above 0; leave out what does not occur.")
    return values, weights


def _some(where, name, values) -> None:
    if not values.max() > 0:
        raise InputError(f"{where}({name}=) must have an eigenvalue above 0.")


def _array(where: str, name: str, values: Any) -> np.ndarray:
    try:
        values = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{where}({name}=) must be an array of numbers, got {values!r}.") from None
    if values.ndim != 1 or values.size == 0:
        raise InputError(f"{where}({name}=) must be a list of numbers, got an array of shape {values.shape}.")
    # The extremes of an array with a NaN in it are NaN.
    if not (values.min() >= 0 and math.isfinite(values.max())):
        raise InputError(f"{where}({name}=) must hold finite numbers of at least 0.")
    return values


def _like(where, name, values, others) -> np.ndarray:
    values = _array(where, name, values)
    if values.shape != others.shape:
        raise InputError(f"{where}({name}=) must have one number for each of {len(others)}, got {len(values)}.")
    return values


def _sizes(where, n, penalty) -> tuple[float, float]:
    return _number(where, "n", n), _number(where, "penalty", penalty, zero=True)


def _number(where: str, name: str, value: Any, *, zero: bool = False) -> float:
    try:
        value = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{where}({name}=) must be a number, got {value!r}.") from None
    if not (math.isfinite(value) and (value > 0 or (zero and value == 0))):
        raise InputError(
            f"{where}({name}=) must be a finite number {'of at least' if zero else 'above'} 0, got {value}."
        )
    return value
