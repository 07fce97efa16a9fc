"""What is read of networks on a sparse code: at the end of training, and before it."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from featlab.core.space import Ambient
from featlab.data import SparseCoding
from featlab.networks import SymmetricReLU
from featlab.probes import (
    Probe,
    at_end,
    errors_beside_linear,
    feature_purity,
    feature_responses,
    set_counts,
    sure_kept,
    throughout,
)
from featlab.probes.neuron_sets import members


def readings(c1: float, c2: float) -> list[Probe]:
    """Sets of neurons, their purity, magnitudes and errors, at the end."""
    read = [set_counts(c1=c1, c2=c2), feature_purity, feature_responses, errors_beside_linear(count=4000)]
    # The set at every step is looked at too, for the fewest of its first members that are in it.
    return [*(probe.on(at_end) for probe in read), sure_kept(c1=c1, c2=c2).on(throughout)]


def surely_good(
    seeds: Sequence[int], coding: SparseCoding, network: SymmetricReLU, c1: float, c2: float
) -> np.ndarray:
    """How many neurons are surely good at the start, for each seed."""

    def count(seed):
        truth_key, start_key = jax.random.split(jax.random.key(seed))
        truth, space = coding.truth(truth_key, Ambient(coding.d))
        return jnp.sum(members(network.init(start_key, space)[0], truth, c1, c2)[0])

    return np.asarray(jax.jit(lambda keys: jax.lax.map(count, keys))(jnp.asarray(seeds)))
