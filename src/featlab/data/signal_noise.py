"""One patch carries the signal, the other noise: the sandbox of benign-overfitting theory."""

import math
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp

from featlab.core.validation import InputError
from featlab.data._data import AbstractVectorModel, coin_flips, in_turn, signed
from featlab.data._fields import (
    balanced_classes,
    dimension,
    flipped_labels,
    flipped_of_negatives,
    flipped_tests,
    noise_level,
    orthogonal_noise,
    random_places,
    sample_size,
    signal_length,
    signal_to_noise,
)

_LARGEST = 1e30  # beyond, float32 overflows


class AbstractSignalNoise(AbstractVectorModel):
    """What models of a signal patch beside a noise patch have in common: how signal, noise and flips are given."""

    snr: eqx.AbstractVar[float | None]
    signal_norm: eqx.AbstractVar[float | None]
    noise_scale: eqx.AbstractVar[float]
    label_flip: eqx.AbstractVar[float]
    test_flip: eqx.AbstractVar[float]
    orthogonal: eqx.AbstractVar[bool]
    random_slot: eqx.AbstractVar[bool]

    def __check_init__(self):
        name = type(self).__name__
        if (self.snr is None) == (self.signal_norm is None):
            given = "neither" if self.snr is None else "both"
            raise InputError(f"{name} needs exactly one of snr and signal_norm, got {given}.")
        if not isinstance(self.d, float):  # a wrong or a traced one
            return
        if _LARGEST < self.d < math.inf:
            raise InputError(f"{name}.d must be at most {_LARGEST:g}, or inf, got {self.d:g}.")
        if math.isinf(self.d) and self.noise_scale != 1.0:
            raise InputError(f"{name}.noise_scale means nothing at d = inf, where noise has length one.")
        if math.isinf(self.d) and self.snr is None:
            raise InputError(f"{name}.signal_norm means nothing at d = inf, where noise has length one; give snr.")

    def signal_length(self, space) -> Any:
        """The length of the signal, however it was given."""
        return self.signal_norm if self.snr is None else self.snr * self.noise_length(space)

    def noise_length(self, space):
        return space.length(self.noise_scale)

    def noise_off(self):
        return self.orthogonal

    def flip(self, training: bool) -> float:
        """How often a label is flipped."""
        return self.label_flip if training else self.test_flip

    def in_slots(self, swapped, signal, noise):
        """The two patches, the signal's first unless slots are random and a coin says otherwise."""
        if not self.random_slot:
            return signal, noise
        return jnp.where(swapped, noise, signal), jnp.where(swapped, signal, noise)

    def rate(self, space):
        return self.signal_length(space) ** 2


class SignalNoise(AbstractSignalNoise):
    r"""Two patches, the signal and noise.

    $$x = [y\mu, \xi], \qquad \xi \sim N(0, \sigma^2 (I - \hat\mu\hat\mu^\top)), \qquad
      \mathrm{SNR} = \frac{\|\mu\|}{\sigma\sqrt d}$$

    The observed label is $y$, flipped with probability `label_flip` in training and `test_flip` in tests; the
    patch always carries the clean one. With `negative_flip`, class $-1$ has a probability of its own in training.
    With `balanced`, training inputs are of the two classes in turn, one more of class $+1$ where $n$ is odd, and
    not by a coin each. With `orthogonal=False` the noise is $N(0, \sigma^2 I)$. At $d = \infty$ noise has length
    one and `snr` is $\|\mu\|$.

    Cao, Chen, Belkin and Gu (2022); Kou, Chen, Chen and Gu (2023).
    """

    n: int = sample_size()
    d: float = dimension(infinite=True)
    snr: float | None = signal_to_noise()  # give this or signal_norm
    signal_norm: float | None = signal_length()
    noise_scale: float = noise_level()
    label_flip: float = flipped_labels()  # tau_+, where classes differ
    negative_flip: float | None = flipped_of_negatives()
    test_flip: float = flipped_tests()
    balanced: bool = balanced_classes()
    orthogonal: bool = orthogonal_noise()
    random_slot: bool = random_places()

    signal_count: ClassVar[int] = 1
    signed_by_class: ClassVar[bool] = True

    def __check_init__(self):
        if self.balanced and self.negative_flip is not None:  # flips are drawn for the class that a coin says
            raise InputError("SignalNoise takes balanced or negative_flip, not both.")

    @classmethod
    def examples(cls):
        return (
            cls(n=6, d=40, snr=0.5, label_flip=0.3),
            cls(n=5, d=40, signal_norm=2.0, orthogonal=False, random_slot=True, test_flip=0.2),
            cls(n=5, d=40, signal_norm=0.0, label_flip=0.2, negative_flip=0.5),
            cls(n=5, d=40, snr=0.5, label_flip=0.3, balanced=True),
        )

    def signals(self, space):
        return jnp.eye(1), jnp.atleast_1d(self.signal_length(space))

    def toss(self, key, training):
        slot = 0.5 if self.random_slot else 0.0
        heads, flipped, swapped = coin_flips(key, 0.5, self.flip(training), slot)
        if training and self.negative_flip is not None:  # the same coin, another bias
            flipped = jnp.where(heads, flipped, coin_flips(key, 0.5, self.negative_flip, slot)[1])
        clean = signed(heads)
        return jnp.where(flipped, -clean, clean), clean, swapped

    def compose(self, clean_label, coins, signals, noise):
        return self.in_slots(coins, clean_label * signals[0], noise[0])

    def _tossed(self, key, noise, mask, training):
        batch = super()._tossed(key, noise, mask, training)
        return in_turn(batch) if self.balanced and training else batch
