r"""The setting of the errata on label noise, that of the claim `han2025_label_noise`.

$n\,\mathrm{SNR}^2 = 32$, noise of length one, a fifth of each class's labels flipped. At $T_1 = nm / (\eta
\sigma^2 d)$ the signal is learnt; $t^*$ is where all samples are fitted, the flipped ones too, looked for every
$T_1$ steps.
"""

from __future__ import annotations

import math

import numpy as np

from featlab.errata import _cnn

N, D, WIDTH = 50, 2000, 16
FLIPPED = 5  # in each class
STRENGTH = 32.0  # n SNR^2
PACE = 0.5  # eta sigma^2 d / n
EARLY = math.ceil(WIDTH / PACE)  # T_1
ROUNDS = 30  # of EARLY steps each, after which all samples are fitted for sure


def drawn(rng: np.random.Generator) -> _cnn.Run:
    """A training set and a small start."""
    return _cnn.drawn(
        rng,
        n=N,
        d=D,
        width=WIDTH,
        signal_norm=math.sqrt(STRENGTH / N),
        noise_scale=D**-0.5,
        init_scale=1e-3 * math.sqrt(N / D),
        flipped=FLIPPED,
    )


def train_early(run: _cnn.Run) -> None:
    """To T_1."""
    run.step(PACE * N, EARLY)


def train_late(run: _cnn.Run) -> None:
    """To t*."""
    for _ in range(ROUNDS):
        if run.fitted().all():
            break
        run.step(PACE * N, EARLY)
