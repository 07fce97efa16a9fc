"""Intervals of a mean over few seeds, how many seeds an interval needs, and how many of them failed."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
import scipy.stats

LEVEL = 0.95
RARE = 0.15  # a failure in this share of the seeds must show
MISSED = 0.03  # how often it may stay unseen
APART = 5.0  # standard deviations of the bulk: beyond, a seed outside the region has failed
_POWER = 1.2816  # standard deviations that a mean exceeds one time in ten
_SKEWED = 0.2  # of the error that is allowed: what is left of it where a sample is skewed


@functools.cache
def _quantile(share: float, freedom: int) -> float:
    """Of Student's law."""
    return float(scipy.stats.t.ppf(share, freedom))


def student_interval(values: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """The interval of the mean of a few independent values, by Student's t; NaN are left out."""
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return math.nan, math.nan
    mean = float(values.mean())
    if len(values) == 1 or np.ptp(values) == 0:
        return mean, mean
    half = _quantile((1 + level) / 2, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return mean - float(half), mean + float(half)


def mean_interval(values: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    r"""Student's interval of the mean, and where a sample is skewed, as far as Hall's reaches beyond it.

    The mean of a skewed law is missed by Student's interval on the side of its long tail, three times as often as
    the level says for an exponential law and 12 values. Hall (1992) turns the skewness $g$ of the sample into the
    ends $\bar x - s\, h^{-1}(\pm t/\sqrt N)$ with $h^{-1}(u) = \frac3g [(1 + g (u - \frac{g}{6N}))^{1/3} - 1]$.
    Where $g$ exceeds its standard error under a normal law, $\sqrt{6/N}$, a fifth of the error is allowed.
    """
    low, high = student_interval(values, level)
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    count = len(values)
    mean = float(values.mean()) if count else math.nan
    if count < 3 or np.ptp(values) <= 1e-14 * abs(mean):  # nothing but rounding
        return low, high
    spread = values.std(ddof=1)
    standard = (values - mean) / np.max(np.abs(values - mean))  # whatever unit and zero the values have
    skew = math.sqrt(count * (count - 1)) / (count - 2) * np.mean(standard**3) / standard.std() ** 3
    if abs(skew) < 1e-6:
        return low, high
    error = (1 - level) * (_SKEWED if abs(skew) > math.sqrt(6 / count) else 1)
    reach = _quantile(1 - error / 2, count - 1) / math.sqrt(count)

    def end(u):
        return float(mean - spread * 3 / skew * (np.cbrt(1 + skew * (u - skew / (6 * count))) - 1))

    return min(low, end(reach)), max(high, end(-reach))


def seeds_needed(room: float, level: float) -> int:
    """The fewest seeds whose Student interval is nine times in ten on one side of an edge this far from the mean.

    The room is in standard deviations. Their mean has an error of its own, and an interval that fits about the
    true mean fits about the one that is found half of the time.
    """

    def narrow(count):
        return (_quantile((1 + level) / 2, count - 1) + _POWER) / math.sqrt(count) < room

    high = 4
    while not narrow(high) and high < 1e7:
        high *= 2
    low = high // 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if narrow(middle) else (middle, high)
    return high


def _fewest_seeds() -> int:
    return next(count for count in range(1, 1000) if (1 - RARE) ** count <= MISSED)


FEWEST = _fewest_seeds()  # 22: with fewer, a failure in 15 % of the seeds stays unseen too often


def apart_seeds(row: np.ndarray, where: Callable[[np.ndarray], np.ndarray]) -> int:
    """How many seeds lie there and apart from the bulk of the others."""
    row = row[np.isfinite(row)]
    middle = np.median(row)
    bulk = 1.4826 * np.median(np.abs(row - middle))  # the standard deviation, were they normal
    return int(np.sum((np.abs(row - middle) > APART * bulk) & where(row)))


@functools.cache
def unseen(seen: int, count: int) -> float:
    """How often no more seeds than these would show, of an outcome that 15 % of all seeds have."""
    return float(scipy.stats.binom.cdf(seen, count, RARE))


@functools.cache
def by_chance(seen: int, count: int) -> float:
    """How often as many seeds as these, or more, would show of an outcome that 15 % of all seeds have."""
    return float(scipy.stats.binom.sf(seen - 1, count, RARE))


def spread_of(values: np.ndarray) -> float:
    """The standard deviation of the finite ones; NaN of fewer than two."""
    values = values[np.isfinite(values)]
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan


def mean_of(values: np.ndarray) -> float:
    """The mean of the finite ones."""
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else math.nan
