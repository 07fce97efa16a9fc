r"""What sign descent does to products with sparse noise: derived from the update rules of Li et al. (2025).

Times are $\eta t$: a step of size $\eta$ moves each product with the noise of a sample by $\eta\|\xi_i\|_1$, and
the mean value's product with the signal by $2\eta$, whatever the size of the gradient.
"""

from __future__ import annotations

import math


def noise_pace(sparsity: float, noise_scale: float) -> float:
    r"""What a step of size one adds to a product with noise: $\|\xi\|_1 \approx s \sigma_p \sqrt{2/\pi}$."""
    return sparsity * noise_scale * math.sqrt(2 / math.pi)


def time_to_loss(loss: float, sparsity: float, noise_scale: float) -> float:
    r"""$\eta T$ after which the loss is at most this: before attention helps, margins are $2\eta t\|\xi_i\|_1$."""
    return math.log(1 / loss) / (2 * noise_pace(sparsity, noise_scale))


def least_test_loss(time: float) -> float:
    r"""The least test loss at $\eta t$: $\log(1 + e^{-4\eta t})$.

    By then $\langle v, \mu \rangle = 2\eta t$, and fresh noise has a random sign: whatever the attention, by
    convexity the test loss is no less than that of the signal alone.
    """
    return math.log1p(math.exp(-4 * time))


def descent_test_loss(loss: float, sparsity: float, noise_scale: float, n: int) -> float:
    r"""The test loss of gradient descent at a training loss $\varepsilon$, $\varepsilon^{1/(1 + s\sigma_p^2/n)}$.

    Its values on signal and noise grow as $1 : s\sigma_p^2/n$. It is less where attention goes to the signal.
    """
    return loss ** (1 / (1 + sparsity * noise_scale**2 / n))
