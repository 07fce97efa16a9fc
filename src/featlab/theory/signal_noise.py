r"""Signal against noise: thresholds and early growth in the two-patch model.

A filter's products with the signal, $u = \langle w, \mu \rangle$, and with a noise vector,
$v = \langle w, \xi_i \rangle$, both follow $\dot x = c\,x^{q-1}$ while the loss still has slope $1/2$. Which
of the two is large first decides between learning and memorising: Cao, Chen, Belkin and Gu (2022) for
$q > 2$, Kou, Chen, Chen and Gu (2023) for ReLU. Time is counted in steps. Numbers may be arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from featlab.core.validation import InputError


def snr(signal_norm: Any, noise_scale: Any, d: Any) -> Any:
    r"""Signal-to-noise ratio, $\mathrm{SNR} = \|\mu\| / (\sigma \sqrt d)$ (Cao et al. 2022)."""
    signal_norm = _checked("snr", "signal_norm", signal_norm, zero=True)
    noise_scale, d = _checked("snr", "noise_scale", noise_scale), _checked("snr", "d", d)
    return signal_norm / (noise_scale * np.sqrt(d))


def boundary(power: float) -> Callable[[Any], Any]:
    r"""The SNR, as a function of $n$, at which signal and noise grow large together.

    $$n\,\mathrm{SNR}^q = 2$$

    The time to blow-up is the same for both there (`blow_up_time`). The exponent is that of Cao et al.
    (2022); the 2 is a heuristic, and a criterion such as a level of the test error moves it by a factor.
    """
    power = _power("boundary", power)
    if power < 2:
        raise InputError(f"boundary(power=) must be at least 2, got {power:g}; for ReLU use relu_boundary.")

    def critical_snr(n):
        return (2 / _checked("boundary", "n", n)) ** (1 / power)

    return critical_snr


def relu_boundary(n: float, noise_scale: float = 1.0, constant: float = 1.0) -> Callable[[Any], Any]:
    r"""The signal's length, as a function of $d$, at which ReLU networks turn from harmful to benign.

    $$n \|\mu\|^4 = C \sigma^4 d$$

    The law is that of Kou et al. (2023), who leave the constant $C$ open.
    """
    n = _checked("relu_boundary", "n", n)
    noise_scale = _checked("relu_boundary", "noise_scale", noise_scale)
    constant = _checked("relu_boundary", "constant", constant)

    def critical_norm(d):
        return (constant * noise_scale**4 * _checked("relu_boundary", "d", d) / n) ** (1 / 4)

    return critical_norm


def strength(n: Any, signal_norm: Any, noise_scale: Any, d: Any) -> Any:
    r"""What decides the test error of a ReLU network, $X = n \|\mu\|^4 / (\sigma^4 d)$ (Kou et al. 2023)."""
    n, signal_norm = _checked("strength", "n", n), _checked("strength", "signal_norm", signal_norm, zero=True)
    noise_scale, d = _checked("strength", "noise_scale", noise_scale), _checked("strength", "d", d)
    return n * signal_norm**4 / (noise_scale**4 * d)


def early_signal_rate(
    *, learning_rate: Any, signal_norm: Any, width_scale: Any, power: float, aligned: Any = 0.5
) -> Any:
    r"""The rate of $u = j\langle w_{j,r}, \mu \rangle$, $\dot u = c_\gamma u^{q-1}$, and with it of $\gamma$.

    $$c_\gamma = \eta q s \|\mu\|^2 \frac{a}{2}, \qquad s = \frac1m$$

    `width_scale` is $s$, what the network multiplies its activations with; 1/2 is the slope of the loss at
    output 0. `aligned` is $a$, the share of the samples that activate the filter on their signal, those with
    a flipped label counted negative: 1/2, which gives $\eta q \|\mu\|^2 / 4m$ (after Cao et al. 2022), and
    $(1 - 2p)/2$ with flips.
    """
    name = "early_signal_rate"
    learning_rate = _checked(name, "learning_rate", learning_rate)
    signal_norm = _checked(name, "signal_norm", signal_norm, zero=True)
    width_scale, aligned = (
        _checked(name, "width_scale", width_scale),
        _checked(name, "aligned", aligned, zero=True),
    )
    return learning_rate * _power(name, power) * width_scale * signal_norm**2 * aligned / 2


def early_noise_rate(*, learning_rate: Any, noise_norm: Any, n: Any, width_scale: Any, power: float) -> Any:
    r"""The rate of $v = \langle w_{j,r}, \xi_i \rangle$, $\dot v = c_\rho v^{q-1}$, and with it of $\rho$.

    $$c_\rho = \frac{\eta q s \|\xi\|^2}{2n}, \qquad \|\xi\|^2 = \sigma^2 d, \qquad s = \frac1m$$

    One sample in $n$ carries this noise, so $n$ stands where the signal has its number of samples
    (after Cao et al. 2022). Noise vectors of different samples are taken as orthogonal, as for $d \gg n$.
    """
    name = "early_noise_rate"
    learning_rate = _checked(name, "learning_rate", learning_rate)
    noise_norm, n = _checked(name, "noise_norm", noise_norm), _checked(name, "n", n)
    width_scale = _checked(name, "width_scale", width_scale)
    return learning_rate * _power(name, power) * width_scale * noise_norm**2 / (2 * n)


def early_growth(steps: Any, start: Any, rate: Any, power: float) -> Any:
    r"""The solution of $\dot x = c\,x^{q-1}$, $x(0) = x_0$, after `steps` steps.

    $$x(t) = \begin{cases}
        x_0 + ct & q = 1 \\
        (x_0^{2-q} + (2-q)ct)^{1/(2-q)} & 1 < q < 2 \\
        x_0 e^{ct} & q = 2 \\
        x_0 (1 - t/T)^{-1/(q-2)} & q > 2, \quad t < T = \frac{1}{(q-2) c x_0^{q-2}}
      \end{cases}$$

    Infinite from $T$ on. For $q > 1$ nothing grows from 0. A negative rate shrinks, and not below 0.
    It describes training while the loss still has slope 1/2, that is, while outputs are small.
    """
    name = "early_growth"
    t, start = _checked(name, "steps", steps, zero=True), _checked(name, "start", start, zero=True)
    rate, power = _checked(name, "rate", rate, signed=True), _power(name, power)
    if power == 2:
        return start * np.exp(rate * t)
    if power < 2:
        left = np.maximum(start ** (2 - power) + (2 - power) * rate * t, 0)
        return np.where((start > 0) | (power == 1), left ** (1 / (2 - power)), 0.0)[()]
    left = 1 - (power - 2) * rate * start ** (power - 2) * t  # 1 - t/T
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(left > 0, start * np.maximum(left, 0) ** (-1 / (power - 2)), np.inf)[()]


def blow_up_time(start: Any, rate: Any, power: float) -> Any:
    r"""When the solution of $\dot x = c\,x^{q-1}$ becomes infinite; inf if never, as for $q \le 2$.

    $$T = \frac{1}{(q-2)\,c\,x_0^{q-2}}$$

    From the starts $\sigma_0\|\mu\|$ and $\sigma_0\sigma\sqrt d$ this gives
    $T_\rho / T_\gamma = \frac12 n\,\mathrm{SNR}^q$, the condition of Cao et al. (2022).
    """
    name = "blow_up_time"
    start, rate = _checked(name, "start", start, zero=True), _checked(name, "rate", rate, zero=True)
    power = _power(name, power)
    if power <= 2:
        return np.full(np.broadcast(start, rate).shape, np.inf)[()]
    with np.errstate(divide="ignore"):
        return (1 / np.asarray((power - 2) * rate * start ** (power - 2)))[()]


def learnt_at_least(loss: Any, power: float) -> Any:
    r"""What a class has learnt, or memorised, of one kind at a small loss: at least $C$ in its best filter.

    $$C = \left(\frac z2\right)^{1/q}, \qquad z = -\log(e^\varepsilon - 1)$$

    A mean logistic loss of $\varepsilon$ leaves some sample with a margin of at least z. That is at most the mean
    over filters of $\gamma^q + \rho^q$, up to starts, so one of the two gives half of it somewhere. Derived here.
    """
    loss = _checked("learnt_at_least", "loss", loss)
    if np.any(loss >= np.log(2)):
        raise InputError("learnt_at_least(loss=) must be below log 2, where margins are positive.")
    return (-np.log(np.expm1(loss)) / 2) ** (1 / _power("learnt_at_least", power))


def largest_start(scale: Any, products: Any) -> Any:
    r"""About the largest of k Gaussian products with the start, $s \sqrt{2 \log k}$, s being their scale."""
    scale, products = (
        _checked("largest_start", "scale", scale),
        _checked("largest_start", "products", products),
    )
    return scale * np.sqrt(2 * np.log(products))


def _checked(function: str, name: str, value: Any, *, zero: bool = False, signed: bool = False) -> Any:
    """The value in float64, if every number in it is finite and, as asked, positive, at least 0, or any."""
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{function}({name}=) must be a number or an array of numbers, got {value!r}.") from None
    lowest, bound = (
        (-np.inf, "") if signed else (0, " of at least 0") if zero else (np.nextafter(0, 1), " above 0")
    )
    if not np.all(np.isfinite(array) & (array >= lowest)):
        raise InputError(f"{function}({name}=) must be a finite number{bound}, got {value!r}.")
    return array[()]


def _power(function: str, power: float) -> float:
    power = _checked(function, "power", power)
    if np.ndim(power) or power < 1:
        raise InputError(f"{function}(power=) must be one number of at least 1, got {power!r}.")
    return float(power)
