"""Pairs of views for contrastive learning: an input beside its augmentation, or beside another modality."""

import abc
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from featlab.core.validation import real
from featlab.data._data import coin_flips, in_turn, signed
from featlab.data._fields import (
    balanced_classes,
    dimension,
    noise_level,
    sample_size,
    signal_length,
    signal_to_noise,
)
from featlab.data.signal_noise import AbstractSignalNoise


class AbstractPairs(AbstractSignalNoise):
    """One sample is two views of one label, each a signal patch beside a noise patch: four patches."""

    balanced: eqx.AbstractVar[bool]

    noise_count: ClassVar[int] = 2
    signed_by_class: ClassVar[bool] = True
    views: ClassVar[int] = 2
    # Contrastive learning is told no labels that could be wrong, and knows which patch is which.
    label_flip: ClassVar[float] = 0.0
    test_flip: ClassVar[float] = 0.0
    random_slot: ClassVar[bool] = False
    orthogonal: ClassVar[bool] = True

    @abc.abstractmethod
    def signal_of(self, view: int) -> int:
        """Which of the signals a view shows."""

    def toss(self, key, training):
        label = signed(coin_flips(key, 0.5)[0])
        return label, label, jnp.zeros(())

    def _tossed(self, key, noise, mask, training):
        batch = super()._tossed(key, noise, mask, training)
        return in_turn(batch) if self.balanced and training else batch


class AugmentedPairs(AbstractPairs):
    r"""An input and its augmentation, which has the same signal and almost the same noise.

    $$[x \mid \hat x] = [y\mu, \xi \mid y\mu, \xi + \epsilon], \qquad \xi \sim N(0, \sigma^2 (I - P_\mu)),
      \quad \epsilon \sim N(0, \sigma_\epsilon^2 (I - P_\mu)), \qquad
      \mathrm{SNR} = \frac{\|\mu\|}{\sigma\sqrt d}$$

    The augmentation $\epsilon$ is drawn once for each input, `augmentation` is $\sigma_\epsilon / \sigma$. With
    `balanced`, training inputs are of the two classes in turn, one more of class $+1$ where $n$ is odd, instead of
    by a coin each. At $d = \infty$ noise has length one and `snr` is $\|\mu\|$.

    Huang, Han, Chen, Cao, Xu and Suzuki (2024), single-modal learning.
    """

    n: int = sample_size()
    d: float = dimension(infinite=True)
    snr: float | None = signal_to_noise()  # give this or signal_norm
    signal_norm: float | None = signal_length()
    noise_scale: float = noise_level()
    augmentation: float = real(
        default=0.1, at_least=0, symbol=r"\sigma_\epsilon / \sigma", means="noise of the augmentation", span=(0, 1)
    )
    balanced: bool = balanced_classes()

    signal_count: ClassVar[int] = 1

    @classmethod
    def examples(cls):
        return (
            cls(n=6, d=40, snr=0.5, balanced=True),
            cls(n=5, d=40, signal_norm=2.0, noise_scale=0.5, augmentation=0.4),
        )

    def signals(self, space):
        return jnp.eye(1), jnp.atleast_1d(self.signal_length(space))

    def signal_of(self, view):
        return 0

    def compose(self, clean_label, coins, signals, noise):
        signal = clean_label * signals[0]
        return signal, noise[0], signal, noise[0] + self.augmentation * noise[1]


class Modalities(AbstractPairs):
    r"""Two modalities that share the label and nothing else.

    $$[x \mid \tilde x] = [y\mu, \xi \mid y\tilde\mu, \tilde\xi], \qquad \|\tilde\mu\| = C_\mu \|\mu\|, \qquad
      \xi, \tilde\xi \sim N(0, \sigma^2 (I - P_{\mu, \tilde\mu})), \qquad
      \mathrm{SNR} = \frac{\|\mu\|}{\sigma\sqrt d}$$

    `strength` is $C_\mu$. Each modality has a space of its own in the paper. An encoder only ever meets vectors of
    its own modality, so the spaces may as well be one: with $\mu \perp \tilde\mu$ and noise off both, each
    modality has exactly the law that it has in a space of $d - 1$ dimensions of its own. `balanced` and
    $d = \infty$ are as for `AugmentedPairs`.

    Huang, Han, Chen, Cao, Xu and Suzuki (2024), multi-modal learning.
    """

    n: int = sample_size()
    d: float = dimension(at_least=2, infinite=True)
    snr: float | None = signal_to_noise()  # give this or signal_norm
    signal_norm: float | None = signal_length()
    noise_scale: float = noise_level()
    strength: float = real(
        default=1.0, above=0, symbol=r"C_\mu", means="length of the second signal over the first"
    )
    balanced: bool = balanced_classes()

    signal_count: ClassVar[int] = 2

    @classmethod
    def examples(cls):
        return (
            cls(n=6, d=40, snr=0.5, strength=2.0, balanced=True),
            cls(n=5, d=40, signal_norm=2.0, noise_scale=0.5, strength=3.0),
        )

    def signals(self, space):
        return jnp.eye(2), self.signal_length(space) * jnp.array([1.0, self.strength])

    def signal_of(self, view):
        return view

    def compose(self, clean_label, coins, signals, noise):
        return clean_label * signals[0], noise[0], clean_label * signals[1], noise[1]
