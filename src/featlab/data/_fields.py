"""Fields that many data models share, each declared once: its check, its symbol and its words."""

from __future__ import annotations

import dataclasses
from typing import Any

from featlab.core.validation import flag, probability, real, whole

_FLIPS = (0, 0.5)  # beyond, a label says the opposite


def sample_size(default: Any = dataclasses.MISSING) -> Any:
    return whole(default=default, at_least=1, symbol="n", means="training inputs", span=(4, 1024))


def dimension(*, at_least: float = 1, infinite: bool = False, means: str = "dimension") -> Any:
    return real(at_least=at_least, infinite=infinite, symbol="d", means=means, span=(10, 1e9))


def signal_to_noise() -> Any:
    """One of two ways to say how strong the signal is, beside its length."""
    means = "signal-to-noise ratio"
    return real(default=None, at_least=0, optional=True, symbol=r"\mathrm{SNR}", means=means, span=(0.01, 10))


def signal_length(symbol: str = r"\|\mu\|") -> Any:
    return real(default=None, at_least=0, optional=True, symbol=symbol, means="length of the signal")


def noise_level() -> Any:
    return real(default=1.0, above=0, symbol=r"\sigma", means="noise in each coordinate")


def noise_of_labels(symbol: str = r"\sigma_\varepsilon") -> Any:
    return real(default=0.0, at_least=0, symbol=symbol, means="noise of the labels", span=(0, 2))


def flipped_labels() -> Any:
    return probability(default=0.0, symbol="p", means="probability of a flipped training label", span=_FLIPS)


def flipped_of_negatives() -> Any:
    """For data whose classes are flipped with different probabilities."""
    means = "probability of a flipped label of class -1"
    return probability(default=None, optional=True, symbol=r"\tau_-", means=means, span=_FLIPS)


def flipped_tests() -> Any:
    return probability(
        default=0.0, symbol=r"p_{\mathrm{test}}", means="probability of a flipped test label", span=_FLIPS
    )


def orthogonal_noise() -> Any:
    return flag(default=True, means="noise orthogonal to the signal")


def random_places() -> Any:
    return flag(default=False, means="signal in either patch, by a coin")


def balanced_classes() -> Any:
    return flag(default=False, means="classes in turn, not by a coin")
