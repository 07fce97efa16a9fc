"""One patch carries the signal, the other noise: the sandbox of benign-overfitting theory."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import jax.numpy as jnp

from featlab.data._data import AbstractVectorModel, coin_flips, signed
from featlab.fields import InputError, flag, probability, real, whole


class SignalNoise(AbstractVectorModel):
    r"""Two patches, the signal and noise.

    $$x = [y\mu, \xi], \qquad \xi \sim N(0, \sigma^2 (I - \hat\mu\hat\mu^\top)), \qquad
      \mathrm{SNR} = \frac{\|\mu\|}{\sigma\sqrt d}$$

    The observed label is $y$, flipped with probability `label_flip` in training and `test_flip` in tests; the
    patch always carries the clean one. With `orthogonal=False` the noise is $N(0, \sigma^2 I)$. At $d = \infty$
    noise has length one and `snr` is $\|\mu\|$.

    Cao, Chen, Belkin and Gu (2022); Kou, Chen, Chen and Gu (2023).
    """

    n: int = whole(at_least=1)
    d: float = real(at_least=1, infinite=True)
    snr: float | None = real(default=None, at_least=0, optional=True)  # give this or signal_norm
    signal_norm: float | None = real(default=None, at_least=0, optional=True)  # |mu|
    noise_scale: float = real(default=1.0, above=0)  # sigma
    label_flip: float = probability(default=0.0)  # p
    test_flip: float = probability(default=0.0)
    orthogonal: bool = flag(default=True)
    random_slot: bool = flag(default=False)  # signal in either patch, by a coin

    signal_count: ClassVar[int] = 1
    signed_by_class: ClassVar[bool] = True

    def __check_init__(self):
        check_strength(self)

    @classmethod
    def examples(cls):
        return (
            cls(n=6, d=40, snr=0.5, label_flip=0.3),
            cls(n=5, d=40, signal_norm=2.0, orthogonal=False, random_slot=True, test_flip=0.2),
            cls(n=5, d=40, signal_norm=0.0),
        )

    def signals(self, space):
        return jnp.eye(1), jnp.atleast_1d(signal_length(self, space))

    def noise_length(self, space):
        return space.length(self.noise_scale)

    def noise_off(self):
        return self.orthogonal

    def toss(self, key, training):
        flip = self.label_flip if training else self.test_flip
        heads, flipped, swapped = coin_flips(key, 0.5, flip, 0.5 if self.random_slot else 0.0)
        clean = signed(heads)
        return jnp.where(flipped, -clean, clean), clean, swapped

    def compose(self, clean_label, coins, signals, noise):
        patches = jnp.stack([clean_label * signals[0], noise[0]])
        return jnp.where(coins, patches[::-1], patches)

    def rate(self, space):
        return signal_length(self, space) ** 2


_LARGEST = 1e30  # beyond, float32 overflows


def check_strength(model) -> None:
    """A signal is given by its norm or by its ratio to the noise, never by both; and d = inf has its own rules."""
    if (model.snr is None) == (model.signal_norm is None):
        given = "neither" if model.snr is None else "both"
        raise InputError(f"{type(model).__name__} needs exactly one of snr and signal_norm, got {given}.")
    if isinstance(model.d, float) and _LARGEST < model.d < math.inf:
        raise InputError(f"{type(model).__name__}.d must be at most {_LARGEST:g}, or inf, got {model.d:g}.")
    if not (isinstance(model.d, float) and math.isinf(model.d)):
        return
    if model.noise_scale != 1.0:
        raise InputError(
            f"{type(model).__name__}.noise_scale means nothing at d = inf, where noise has length one."
        )
    if model.snr is None:
        raise InputError(
            f"{type(model).__name__}.signal_norm means nothing at d = inf, where noise has length one; give snr."
        )


def signal_length(model, space) -> Any:
    """The length of the signal, however it was given."""
    return model.signal_norm if model.snr is None else model.snr * space.length(model.noise_scale)
