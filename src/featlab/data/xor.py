"""A signal no linear classifier can read: exclusive-or clusters beside noise."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp

from featlab.core.validation import real
from featlab.data._data import coin_flips, signed
from featlab.data._fields import (
    dimension,
    flipped_labels,
    flipped_tests,
    noise_level,
    orthogonal_noise,
    random_places,
    sample_size,
    signal_length,
    signal_to_noise,
)
from featlab.data.signal_noise import AbstractSignalNoise


class XorSignalNoise(AbstractSignalNoise):
    r"""The class is the axis on which the signal lies; its sign is a coin.

    $$x = [s\,u_y, \xi], \qquad u_{+1} = a + b, \quad u_{-1} = a - b, \qquad s = \pm 1 \text{ w.p. } \tfrac12,
      \qquad \xi \sim N(0, \sigma^2 (I - P_{a,b}))$$

    Both signals have length `signal_norm`, or `snr` times the noise; `cosine` is the one between them, 0 when
    $\|a\| = \|b\|$. Since $x$ and its mirror image in the signal patch are equally likely in each class, a linear
    classifier errs half the time.

    Meng, Zou and Cao (2024).
    """

    n: int = sample_size()
    d: float = dimension(at_least=2, infinite=True)
    snr: float | None = signal_to_noise()  # give this or signal_norm
    signal_norm: float | None = signal_length(r"\|a \pm b\|")
    noise_scale: float = noise_level()
    cosine: float = real(
        default=0.0, above=-1, below=1, symbol=r"\cos\theta", means="cosine between the signals", span=(-0.9, 0.9)
    )
    label_flip: float = flipped_labels()
    test_flip: float = flipped_tests()
    orthogonal: bool = orthogonal_noise()
    random_slot: bool = random_places()

    signal_count: ClassVar[int] = 2
    signed_by_class: ClassVar[bool] = False

    @classmethod
    def examples(cls):
        return (
            cls(n=6, d=40, snr=0.5, label_flip=0.3),
            cls(n=5, d=40, signal_norm=2.0, cosine=0.4, orthogonal=False, random_slot=True),
        )

    def signals(self, space):
        gram = jnp.eye(2) + self.cosine * (1 - jnp.eye(2))
        return gram, jnp.full(2, self.signal_length(space))

    def toss(self, key, training):
        slot = 0.5 if self.random_slot else 0.0
        heads, flipped, swapped, up = coin_flips(key, 0.5, self.flip(training), slot, 0.5)
        clean = signed(heads)
        return jnp.where(flipped, -clean, clean), clean, (swapped, signed(up))

    def compose(self, clean_label, coins, signals, noise):
        swapped, sign = coins
        signal = sign * jnp.where(clean_label > 0, signals[0], signals[1])
        return self.in_slots(swapped, signal, noise[0])
