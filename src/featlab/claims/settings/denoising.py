"""Denoisers whose patches have a length of one's choice, and classifiers with the same filters beside them."""

from __future__ import annotations

import math

import jax.numpy as jnp

from featlab.algorithms import GradientDescent
from featlab.data import SignalTokens
from featlab.experiment import Experiment
from featlab.networks import Denoiser, TwoLayerCNN
from featlab.objectives import Denoising
from featlab.probes import at_end, feature_balance, first_step_balance, relative_slope, train_loss, until
from featlab.theory import denoising

STEPS = 600  # the gradient has vanished after less than half of them


def denoiser(
    n: int, strength: float, length: float, t: float, *, width: int, d: float, pace: float, start: float
) -> Experiment:
    r"""Noise of this length, a signal with this $n\,\mathrm{SNR}^2$; step and start in units of the end."""
    noise = length**2 / n
    end = denoising.stationary(noise * strength / 2, noise, t, width)
    alpha, beta = math.exp(-t), math.sqrt(-math.expm1(-2 * t))
    data = noise * max(1.0, strength / 2)  # its power along the longest direction
    seen, snr = beta**2 + alpha**2 * end.alignment * data, math.sqrt(strength / n)
    return Experiment(
        data=SignalTokens(n=n, d=d, tokens=2, snr=snr, noise_scale=length / math.sqrt(d)),
        network=Denoiser(width=width, init_scale=start * end.length / math.sqrt(d)),
        objective=Denoising(t=t),
        algorithm=GradientDescent(pace / (beta**2 * seen * end.length**4)),
        probes=[one.on(at_end) for one in (feature_balance, first_step_balance, relative_slope)],
        steps=STEPS,
    )


def classifier(n: int, strength: float, *, width: int, start: float) -> Experiment:
    """The same filters, trained to tell the classes apart; a step multiplies products by 1.1 at most."""
    growth = max(1.0, strength / 2) / (n * width)  # of the faster product, for slope 1/2 of the loss
    return Experiment(
        data=SignalTokens(n=n, d=math.inf, tokens=2, snr=math.sqrt(strength / n)),
        network=TwoLayerCNN(width=width, activation=jnp.square, init_scale=start),
        algorithm=GradientDescent(0.1 / growth),
        probes=[feature_balance.on(at_end)],
        steps=until(train_loss, 0.01, at_most=20_000),
    )
