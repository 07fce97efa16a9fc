"""Networks of truncated ReLUs on patterns, trained by descent and by the first two steps of Shi, Wei and Liang."""

from __future__ import annotations

import dataclasses
import math

from featlab.algorithms import LayerwiseDescent, Then
from featlab.data import PatternDictionary, Stream
from featlab.experiment import Experiment
from featlab.networks import Linearised, TruncatedReLU
from featlab.objectives import hinge
from featlab.probes import at_end, fixed_head_errors, head_errors, pattern_alignment, pattern_errors

EASY = 0.5  # of the inputs


def descent(
    data: PatternDictionary, width: int, rate: float, batch: int, steps: int, *, linearised: bool, count: int
) -> Experiment:
    """All layers trained on fresh inputs with unit variance along patterns; or the linearisation."""
    network = TruncatedReLU(
        width=width,
        weights_scale=1 / (data.relevant * math.sqrt(data.patterns)),  # products of size 1/k, as with |x| = 1
        biases_scale=1 / data.relevant**2,
        power=1.0,
    )
    more = [] if linearised else [pattern_alignment.on(at_end), fixed_head_errors(count=count).on(at_end)]
    return Experiment(
        data=Stream(data=dataclasses.replace(data, norm=math.sqrt(data.patterns)), size=batch),
        network=Linearised(network) if linearised else network,
        objective=hinge,
        algorithm=LayerwiseDescent(rate * width, rate * width, rate * width),
        probes=[pattern_errors(count=count).on(at_end), *more],
        steps=steps,
    )


def fixed_features(start: Experiment, inputs: int, count: int) -> Experiment:
    """A head on the features of the start, fitted to this number of inputs: no step moves them."""
    probes = [fixed_head_errors(count=count, fitted=inputs).on(at_end)]
    return dataclasses.replace(start, probes=probes, steps=1)


def two_steps(data: PatternDictionary, width: int, inputs: int, *, second: bool, count: int) -> Experiment:
    r"""The paper's first steps on fresh inputs of length 1, without `second` the first one alone.

    The start has $\sigma_w = 1/k$, $\sigma_b = 1/k^2$, $\sigma_a = \tilde\sigma^2/(\gamma k^2)$; $\gamma$ is that
    of easy inputs, also where there are none. Penalties leave nothing of the old weights but their gradient, first
    with $\eta^{(1)} = \gamma^2 \tilde\sigma/(k m^3)$, then with $\eta^{(2)} = 1$.
    """
    k, gamma, spread = data.relevant, EASY / 2, data.spread
    network = TruncatedReLU(
        width=width,
        weights_scale=1 / k,
        biases_scale=1 / k**2,
        head_scale=spread**2 / (gamma * k**2),
        noise_scale=k**-1.5,
    )
    tiny = gamma**2 * spread / (k * (width // 2) ** 3)  # eta^(1)
    eta = 1.0 if second else 0.0  # eta^(2); a step that moves nothing, so that both are one program
    return Experiment(
        data=Stream(data=data, size=inputs),
        network=network,
        objective=hinge,
        algorithm=Then(
            LayerwiseDescent(tiny, 0.0, tiny, weights_decay=1 / tiny),
            1,
            LayerwiseDescent(eta, 0.0, eta, weights_decay=1.0, head_decay=1.0),
        ),
        probes=[pattern_alignment.on(at_end), head_errors(count=count).on(at_end)],
        steps=2,
        precision=64,  # after the first step features vary by 1e-9
    )
