r"""Mean-field Langevin dynamics of neurons in one dimension, without particles: the density itself, on a grid.

Takakura and Suzuki (2024). A two-layer network $\int a(w)\, \sigma(wx)\, d\mu(w)$ whose second layer is always the
best one leaves an objective of the law $\mu$ of the first-layer weights alone,

$$F(\mu) = \min_a \tfrac1n \sum_i \bigl(y_i - \textstyle\int a(w) \sigma(w x_i) d\mu\bigr)^2
  + \lambda \|a\|_{L^2(\mu)}^2 = \lambda\, y^\top (K_\mu + n\lambda I)^{-1} y, \qquad
  K_\mu = \textstyle\int \sigma(wx) \sigma(wx)^\top d\mu,$$

which is convex in $\mu$. With confinement $r$ and temperature $\tau$, Langevin dynamics
$dw = -\nabla(\frac{\delta F}{\delta\mu} + r w^2) dt + \sqrt{2\tau}\, dB$ is the gradient flow of the free energy

$$\mathcal{L}(\mu) = F(\mu) + r \textstyle\int w^2 d\mu + \tau \int \mu \log \mu, \qquad
  \frac{\delta F}{\delta\mu}(w) = -\lambda (\alpha_\mu^\top \sigma(wx))^2, \quad
  \alpha_\mu = (K_\mu + n\lambda I)^{-1} y.$$

On the grid, mass jumps to neighbouring cells at rates that leave the Gibbs law of the potential as it is. A step
is implicit, in the potential too: then mass stays 1 and positive, and the free energy falls whatever the step
(the step is a Markov kernel that keeps the Gibbs law of its own end, and $F$ is convex).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from featlab.core.validation import InputError

_SETTLED = 1e-12  # relative change of the dual weights at which an implicit step is solved
_ITERATIONS = 500
_FOLLOWED = 1e-6  # of the first gap of the free energy: the end of the range in which a curve is followed
_LATE = 1e-3  # of the first gap: from here on the late rate is fitted
_STEP = 0.01  # of the time in which the slowest mode falls to 1/e: half of it is the error of the rate

_EMPTY = np.zeros((1, 1))
_solve_positive, _solve_tridiagonal = scipy.linalg.get_lapack_funcs(("posv", "gtsv"), (_EMPTY,))


class SobolevBounds(NamedTuple):
    r"""Between what the log-Sobolev constant $\alpha$ of a law lies: $\mathrm{KL} \leq \frac{1}{2\alpha} I$."""

    low: float
    high: float


class Curve(NamedTuple):
    """The free energy of one density over time, less its least value, and what theory says about it."""

    times: np.ndarray
    gaps: np.ndarray
    spectral_gap: float  # of the Gibbs law at the end
    sobolev: float  # a valid alpha of every law on the way

    @property
    def followed(self) -> np.ndarray:
        """Where the gap has not yet fallen to a small part of the first."""
        return self.gaps >= _FOLLOWED * self.gaps[0]

    def late_rate(self) -> float:
        """The rate at which the gap falls in the end; NaN where fewer than three times are late."""
        late = self.followed & (self.gaps <= _LATE * self.gaps[0])
        return -float(np.polyfit(self.times[late], np.log(self.gaps[late]), 1)[0]) if late.sum() > 2 else np.nan

    def straightness(self) -> float:
        """How much of the scatter of the gap's logarithm a straight line in time explains."""
        return float(np.corrcoef(self.times[self.followed], np.log(self.gaps[self.followed]))[0, 1] ** 2)


@dataclasses.dataclass(frozen=True, eq=False)
class MeanField:
    """The dynamics of one training set. A law on the grid is the array of its masses, one for each cell."""

    inputs: Any  # x, (n,)
    labels: Any  # y, (n,)
    penalty: float  # lambda, on the second layer
    confinement: float  # r
    temperature: float  # tau
    grid: Any  # the cells' centres, evenly spaced
    activation: Callable = np.tanh  # sigma

    def __post_init__(self):
        for name in ("inputs", "labels", "grid"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), float))
        if self.inputs.ndim != 1 or self.inputs.shape != self.labels.shape or not len(self.inputs):
            raise InputError(
                "MeanField needs as many labels as inputs, both numbers, got the shapes "
                f"{self.inputs.shape} and {self.labels.shape}."
            )
        for name in ("penalty", "confinement", "temperature"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise InputError(f"MeanField.{name} must be a number above 0, got {getattr(self, name)!r}.")
        steps = np.diff(self.grid)
        if len(self.grid) < 3 or not np.allclose(steps, steps[0], rtol=1e-6) or steps[0] <= 0:
            raise InputError("MeanField.grid must be three or more rising, evenly spaced numbers.")

    # ---- a law and its energies

    @functools.cached_property
    def cell(self) -> float:
        """The width of a cell."""
        return float(self.grid[1] - self.grid[0])

    @functools.cached_property
    def features(self) -> np.ndarray:
        r"""$\sigma(w x_i)$, one row for each cell."""
        return np.asarray(self.activation(np.outer(self.grid, self.inputs)), float)

    def normal(self, mean: float, deviation: float) -> np.ndarray:
        """A normal law, as far as the grid reaches."""
        return self.gibbs((self.grid - mean) ** 2 / (2 * deviation**2) * self.temperature)

    def gibbs(self, potential: np.ndarray) -> np.ndarray:
        r"""The law proportional to $e^{-V/\tau}$."""
        weights = np.exp((np.min(potential) - potential) / self.temperature)
        return weights / np.sum(weights)

    def kernel(self, mass: np.ndarray) -> np.ndarray:
        r"""$K_\mu$ on the training inputs."""
        return (self.features.T * mass) @ self.features

    def dual(self, mass: np.ndarray) -> np.ndarray:
        r"""$\alpha_\mu = (K_\mu + n\lambda I)^{-1} y$: the best head is $a(w) = \alpha^\top \sigma(wx)$."""
        n = len(self.labels)
        matrix = self.kernel(mass)
        matrix.flat[:: n + 1] += n * self.penalty
        # Called thousands of times with small matrices: without the checks of scipy.linalg.solve.
        _, dual, failed = _solve_positive(matrix, self.labels)
        if failed:
            raise ArithmeticError("the kernel of a density is not positive definite")
        return dual

    def objective(self, mass: np.ndarray) -> float:
        r"""$F(\mu)$."""
        return float(self.penalty * self.labels @ self.dual(mass))

    def energy(self, mass: np.ndarray) -> float:
        r"""$F(\mu) + r \int w^2 d\mu$: what a finite number of particles has too."""
        return self.objective(mass) + self.confinement * float(mass @ self.grid**2)

    def entropy(self, mass: np.ndarray) -> float:
        r"""$\int \mu \log \mu$ (Boltzmann's sign: small for spread-out laws)."""
        there = mass[mass > 0]
        return float(there @ np.log(there / self.cell))

    def free_energy(self, mass: np.ndarray) -> float:
        r"""$\mathcal{L}(\mu)$."""
        return self.energy(mass) + self.temperature * self.entropy(mass)

    def potential(self, mass: np.ndarray) -> np.ndarray:
        r"""$\frac{\delta F}{\delta\mu} + r w^2$ in every cell."""
        return self._potential(self.dual(mass))

    def degrees_of_freedom(self, mass: np.ndarray) -> float:
        r"""$\mathrm{tr}\, K_\mu (K_\mu + n\lambda I)^{-1}$."""
        values = scipy.linalg.eigvalsh(self.kernel(mass))
        return float(np.sum(values / (values + len(self.labels) * self.penalty)))

    # ---- where it ends

    def minimiser(self) -> np.ndarray:
        r"""The law of least free energy, the only one that is the Gibbs law of its own potential.

        Since $\lambda y^\top (K + n\lambda)^{-1} y = \max_\alpha \lambda (2 \alpha^\top y - \alpha^\top (K +
        n\lambda) \alpha)$, the least free energy is the largest value of the concave function
        $\lambda (2\alpha^\top y - n\lambda |\alpha|^2) - \tau \log \int e^{(\lambda (\alpha^\top \sigma(wx))^2 -
        r w^2)/\tau} dw$ of n numbers: Newton's method with a line search.
        """
        dual = np.zeros(len(self.labels))
        dual = self.dual(self.gibbs(self._potential(dual)))
        value, slope, curvature = self._dual_problem(dual)
        for _ in range(_ITERATIONS):
            step = scipy.linalg.solve(curvature, slope, assume_a="pos")
            gain, length = slope @ step, 1.0
            tried = self._dual_problem(dual + step)
            # Rounding of the value must not stop the last, tiny steps.
            while tried[0] < value + 0.1 * length * gain - 1e-14 * abs(value):
                length /= 2
                tried = self._dual_problem(dual + length * step)
            dual = dual + length * step
            value, slope, curvature = tried
            if gain <= 1e-24 * (abs(value) + self.temperature):
                return self.gibbs(self._potential(dual))
        raise ArithmeticError("Newton's method did not find the least free energy")

    def gap(self, mass: np.ndarray) -> float:
        """How far the free energy is above its least value."""
        return self.free_energy(mass) - self._least

    # ---- how it gets there

    def evolve(self, start: np.ndarray, times: Any, step: float) -> np.ndarray:
        """The masses at these rising times, from a start at time 0, by implicit steps no longer than `step`."""
        mass, now = np.asarray(start, float), 0.0
        if mass.shape != self.grid.shape or np.any(mass < 0) or abs(np.sum(mass) - 1) > 1e-9:
            raise InputError("MeanField.evolve needs masses of at least 0 in every cell that add up to 1.")
        times = np.asarray(times, float)
        if np.any(np.diff(times, prepend=0.0) < 0) or not step > 0:
            raise InputError("MeanField.evolve needs rising times from 0 on and a step above 0.")
        found, dual, before = [], self.dual(mass), None
        for time in times:
            parts = int(np.ceil((time - now) / step - 1e-9))
            for _ in range(parts):
                # Where the weights are heading is the better guess to begin with.
                guess = dual if before is None else 2 * dual - before
                before = dual
                mass, dual = self._implicit(mass, guess, (time - now) / parts)
            now = time
            before = None  # the next steps may have another length
            found.append(mass)
        return np.array(found)

    def curve(self, start: np.ndarray, points: int) -> Curve:
        """The free energy from a start on, until the slowest mode alone would have left a millionth of it."""
        rate = self.spectral_gap(self.potential(self.minimiser()))
        times = np.linspace(0, np.log(1 / _FOLLOWED) / (2 * rate), points + 1)
        masses = [start, *self.evolve(start, times[1:], _STEP / rate)]
        gaps = np.array([self.gap(mass) for mass in masses])
        potentials = [self.potential(mass) for mass in masses]
        return Curve(times, gaps, rate, min(max(self.sobolev(V).low, self.convexity(V)) for V in potentials))

    def spectral_gap(self, potential: np.ndarray) -> float:
        """The slowest rate at which a law approaches the Gibbs law of a potential that stays as it is."""
        right, left = self._rates(potential)
        out = np.append(right, 0.0) + np.append(0.0, left)
        hop = self.temperature / self.cell**2
        # Symmetric in the right units, where both directions between two cells have one rate.
        values = scipy.linalg.eigvalsh_tridiagonal(
            out, np.full(len(out) - 1, -hop), select="i", select_range=(0, 1)
        )
        return float(values[1])

    def sobolev(self, potential: np.ndarray) -> SobolevBounds:
        r"""Bounds of the log-Sobolev constant $\alpha$ of the Gibbs law of a potential.

        With m a median, $B_+ = \sup_{x > m} \mu(x, \infty) \log(1 + e^2/\mu(x, \infty)) \int_m^x \frac{1}{\mu}$
        and $B_-$ its mirror image, $\alpha \geq \frac{1}{2 \max(B_+, B_-)}$. With $\frac12$ in place of $e^2$,
        $\alpha \leq \frac{2}{\max(B_+, B_-)}$ (Bobkov and Götze 1999, in the form of Barthe and Roberto 2003).
        """
        mass = self.gibbs(potential)
        # 1 / density, without dividing by masses that are too small for a number.
        resistance = np.exp((potential - np.min(potential)) / self.temperature)
        resistance *= self.cell**2 * np.sum(np.exp((np.min(potential) - potential) / self.temperature))
        middle = int(np.searchsorted(np.cumsum(mass), 0.5))
        least = most = 0.0
        for side in (slice(middle, None), slice(middle, None, -1)):
            tail = np.cumsum(mass[side][::-1])[::-1]
            path = np.cumsum(resistance[side])
            # A cell counts on both sides of x for the one bound, on neither for the other: both stay bounds.
            most = max(most, np.max(tail * np.log1p(np.e**2 / tail) * path))
            least = max(least, np.max(tail[1:] * np.log1p(0.5 / tail[1:]) * (path[:-1] - resistance[middle] / 2)))
        return SobolevBounds(1 / (2 * most), 2 / least)

    def convexity(self, potential: np.ndarray) -> float:
        r"""$\min V''/\tau$: another lower bound of $\alpha$, where the potential is convex (Bakry and Émery 1985).

        For a quadratic potential it is $\alpha$ itself.
        """
        return float(np.min(np.diff(potential, 2)) / self.cell**2 / self.temperature)

    # ---- the scheme

    @functools.cached_property
    def _least(self) -> float:
        return self.free_energy(self.minimiser())

    def _potential(self, dual):
        return self.confinement * self.grid**2 - self.penalty * (self.features @ dual) ** 2

    def _dual_problem(self, dual):
        """The concave function whose top is the least free energy, its slope, and minus its curvature."""
        n, penalty = len(self.labels), self.penalty
        potential = self._potential(dual)
        mass = self.gibbs(potential)
        lowest = np.min(potential)
        partition = np.sum(np.exp((lowest - potential) / self.temperature)) * self.cell
        value = penalty * (2 * dual @ self.labels - n * penalty * dual @ dual)
        value += lowest - self.temperature * np.log(partition)
        kernel = self.kernel(mass)
        moves = 2 * penalty * (self.features @ dual)[:, None] * self.features
        mean = mass @ moves
        spread = (moves.T * mass) @ moves - np.outer(mean, mean)
        slope = 2 * penalty * (self.labels - n * penalty * dual - kernel @ dual)
        curvature = 2 * penalty * (kernel + n * penalty * np.eye(n)) + spread / self.temperature
        return value, slope, curvature

    def _rates(self, potential):
        """Of jumps to the right out of all cells but the last, and to the left out of all but the first."""
        hop = self.temperature / self.cell**2
        tilt = np.diff(potential) / (2 * self.temperature)
        return hop * np.exp(-tilt), hop * np.exp(tilt)

    def _frozen_step(self, mass, potential, step):
        """An implicit step in a potential that stays as it is."""
        right, left = self._rates(potential)
        out = np.append(right, 0.0) + np.append(0.0, left)
        # Every column is dominated by its diagonal: no pivot moves, and nothing is ever subtracted.
        *_, moved, failed = _solve_tridiagonal(-step * right, 1 + step * out, -step * left, mass)
        if failed:
            raise ArithmeticError("an implicit step of the density could not be solved")
        return moved

    def _implicit(self, mass, dual, step):
        """A step whose potential is that of its end, by a secant-accelerated iteration on the dual weights."""
        last_image = last_rest = None
        for _ in range(_ITERATIONS):
            moved = self._frozen_step(mass, self._potential(dual), step)
            image = self.dual(moved)
            rest = image - dual
            if np.linalg.norm(rest) <= _SETTLED * (np.linalg.norm(image) + 1e-300):
                return moved / np.sum(moved), image
            if last_image is None or last_rest is None:
                following = image
            else:
                turn = rest - last_rest
                share = np.clip(rest @ turn / (turn @ turn), -2.0, 2.0)
                following = image - share * (image - last_image)
            last_image, last_rest, dual = image, rest, following
        raise InputError(f"MeanField.evolve does not settle with a step of {step:.3g}; give a smaller one.")
