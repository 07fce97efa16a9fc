"""Sequences of tokens: the first carries the signal of its class, the others are noise."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp

from featlab.core.validation import flag, real, whole
from featlab.data._data import coin_flips, in_turn, signed
from featlab.data._fields import (
    balanced_classes,
    dimension,
    flipped_labels,
    flipped_tests,
    noise_level,
    orthogonal_noise,
    sample_size,
    signal_length,
    signal_to_noise,
)
from featlab.data.signal_noise import AbstractSignalNoise


class SignalTokens(AbstractSignalNoise):
    r"""One token is the signal of the class, the others are noise.

    $$X = [\mu_y, \xi_2, \ldots, \xi_L], \qquad \mu_+ \perp \mu_-, \quad \|\mu_+\| = \|\mu_-\| = \|\mu\|, \qquad
      \xi_\ell \sim N(0, \sigma_\ell^2 (I - P_{\mu_\pm})), \qquad \mathrm{SNR} = \frac{\|\mu\|}{\sigma\sqrt d}$$

    All $\sigma_\ell$ are $\sigma$, but for $\sigma_2 = $ `larger_noise` times $\sigma$. With `shared_signal` the
    first token is $y\mu$, one signal for both classes: to a bilinear attention score the key of one class is
    then minus that of the other, so no query can prefer both. With `balanced`, training inputs are of the two
    classes in turn, one more of class $+1$ where $n$ is odd, instead of by a coin each; since all else about
    them is independent and alike, their order says nothing. At $d = \infty$ noise tokens have length one, the
    second one `larger_noise`, and `snr` is $\|\mu\|$.

    Two tokens are the two patches of denoising theory, too.

    Jiang, Huang, Zhang, Suzuki and Nie (2024); Han, Huang, Cao and Zou (2025).
    """

    n: int = sample_size()
    d: float = dimension(at_least=2, infinite=True)
    tokens: int = whole(default=4, at_least=2, symbol="L", means="tokens of an input", span=(2, 20))
    snr: float | None = signal_to_noise()  # give this or signal_norm
    signal_norm: float | None = signal_length()
    noise_scale: float = noise_level()
    larger_noise: float = real(
        default=1.0, above=0, symbol=r"\sigma_2 / \sigma", means="noise of the second token over the others'"
    )
    label_flip: float = flipped_labels()
    test_flip: float = flipped_tests()
    shared_signal: bool = flag(default=False, means="one signal for both classes, with a sign")
    balanced: bool = balanced_classes()
    orthogonal: bool = orthogonal_noise()

    random_slot: ClassVar[bool] = False  # attention does not see the order of its tokens

    @classmethod
    def examples(cls):
        return (
            cls(n=6, d=40, tokens=3, snr=0.5, label_flip=0.3, balanced=True, larger_noise=2.0),
            cls(n=5, d=40, tokens=4, signal_norm=2.0, shared_signal=True, orthogonal=False, test_flip=0.2),
        )

    @property
    def signal_count(self):
        return 1 if self.shared_signal else 2

    @property
    def noise_count(self):
        return self.tokens - 1

    @property
    def signed_by_class(self):
        return self.shared_signal

    def signals(self, space):
        return jnp.eye(self.signal_count), jnp.full(self.signal_count, self.signal_length(space))

    def toss(self, key, training):
        heads, flipped = coin_flips(key, 0.5, self.flip(training))
        clean = signed(heads)
        return jnp.where(flipped, -clean, clean), clean, flipped

    def compose(self, clean_label, coins, signals, noise):
        if self.shared_signal:
            signal = clean_label * signals[0]
        else:
            signal = jnp.where(clean_label > 0, signals[0], signals[1])
        return signal, self.larger_noise * noise[0], *(noise[k] for k in range(1, self.noise_count))

    def _tossed(self, key, noise, mask, training):
        batch = super()._tossed(key, noise, mask, training)
        return in_turn(batch) if self.balanced and training else batch
