r"""The four stages of sign descent on a transformer, read off its products with signal and noise.

Of the mean value $v$, a query neuron $q_s$ and a key neuron $k_s$ only the products with $\mu$ and $\xi_i$
matter. Sign descent moves each product with noise by $\eta\|\xi_i\|_1$ a step and each one with the signal by
$\eta$, in the direction of (Li et al., 2025)

$$y_i \langle v, \xi_i \rangle: +, \qquad
  \langle q_s, \xi_i \rangle: \mathrm{sgn}\langle k_s, \xi_i - y_i\mu \rangle, \qquad
  \langle k_s, \xi_i \rangle: \mathrm{sgn}\langle q_s, \xi_i + y_i\mu \rangle, \qquad
  \langle q_s, \mu \rangle: \mathrm{sgn}\sum_i g_i \langle k_s, y_i\xi_i - \mu \rangle, \qquad
  \langle k_s, \mu \rangle: -\mathrm{sgn}\sum_i g_i \langle q_s, y_i\xi_i + \mu \rangle$$

with $g_i = \langle v, y_i \xi_i - \mu \rangle$, while all softmax outputs are one half. So the values' noise
settles first, then queries and keys agree on the sign of each sample's noise, then a majority vote of the samples
gives the signal its sign, and at last attention moves.
"""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array

from featlab.core.sees import Sees
from featlab.core.validation import InputError, real
from featlab.data import AbstractVectorModel
from featlab.networks import TwoLayerTransformer
from featlab.probes._probe import Variable, View, probe
from featlab.probes.clocks import at_end
from featlab.probes.running import AbstractRunning
from featlab.problem import vector_model


@probe(
    of=(AbstractVectorModel, TwoLayerTransformer),
    sees=Sees.PRODUCTS,
    mean_value_signal=Variable("", r"\langle v, \mu \rangle", "mean value on the signal"),
    mean_value_noise=Variable(
        "", r"\frac1n \sum_i y_i \langle v, \xi_i \rangle", "mean value on the training noise, averaged"
    ),
    settled=Variable(
        "",
        r"P(y_i \langle v, \xi_i \rangle > 0)",
        "share of samples whose noise has their label's sign in the value",
    ),
    aligned=Variable(
        "",
        r"P(\langle q_s, \xi_i \rangle \langle k_s, \xi_i \rangle > 0)",
        "share of neurons and samples with the same sign of noise in query and key",
    ),
    voted=Variable(
        "",
        r"P(\mathrm{sgn} = \text{majority})",
        "share of query and key neurons whose signal has the sign of the samples' majority vote",
    ),
    signal_query=Variable(
        "", r"\frac1n \sum_i s_{i,11}", "attention that the signal token pays to itself, training inputs"
    ),
    noise_query=Variable(
        "", r"\frac1n \sum_i s_{i,21}", "attention that the noise token pays to the signal, training inputs"
    ),
)
def stages(view: View):
    r"""Where each stage stands: the mean value, shares of the signs that are as they end, attention.

    The majority vote is $\mathrm{sgn}\langle q_s, \mu \rangle = \mathrm{sgn}\sum_i g_i y_i \langle k_s, \xi_i
    \rangle$ for queries and $\mathrm{sgn}\langle k_s, \mu \rangle = -\mathrm{sgn}\sum_i g_i y_i \langle q_s, \xi_i
    \rangle$ for keys, with $g_i = \langle v, y_i \xi_i - \mu \rangle$, what a sample gains by attending to noise.
    """
    network, batch = _transformer(view), view.training
    signals, noises = view.problem.products(view.params)
    on_signal, on_noise = signals[0], noises[:, 0]  # (row,) and (sample, row)
    of, clean = network.groups, batch.clean_labels
    on_label = batch.labels * network.mean_values((on_noise.T,))[0]

    query, key = on_noise[:, of["query"]], on_noise[:, of["key"]]  # (sample, neuron)
    query_signal, key_signal = on_signal[of["query"]], on_signal[of["key"]]
    # A vote counts as much as its sample gains by attending to noise.
    value_signal = network.mean_values((on_signal,))[0]
    gain = on_label - batch.labels * clean * value_signal
    votes = jnp.where(batch.mask, clean * gain, 0)
    right = [query_signal * (votes @ key) > 0, -key_signal * (votes @ query) > 0]

    tokens = (jnp.outer(on_signal, clean), on_noise.T)  # (row, sample)
    attention = network.attention(None, tokens)
    return {
        "mean_value_signal": value_signal,
        "mean_value_noise": batch.mean(on_label),
        "settled": batch.mean((on_label > 0).astype(float)),
        "aligned": batch.mean((query * key > 0).astype(float)),
        "voted": jnp.mean(jnp.concatenate(right).astype(float)),
        "signal_query": batch.mean(attention[0, 0]),
        "noise_query": batch.mean(attention[1, 0]),
    }


TIMES = {
    "value_time": Variable("", "T_1", "step by which the values' noise has settled, -1 if never", "steps"),
    "alignment_time": Variable("", "T_2", "step by which queries and keys are aligned, -1 if never", "steps"),
    "vote_time": Variable("", "T_3", "step by which signals are as voted, -1 if never", "steps"),
    "noise_query_time": Variable("", "T_4", "step by which noise turns from the signal, -1 if never", "steps"),
    "signal_query_time": Variable("", "T_5", "step by which the signal turns to noise, -1 if never", "steps"),
}


class StageTimes(AbstractRunning):
    """When each stage is over: the first steps at which its signs are as they will be, or attention has moved.

    Signs are as they will be where a `share` of them is: the last few, which start next to 0, are thrown to and
    fro by steps of finite size. Attention, one half at the start, has moved where its mean is at or below `level`.
    """

    share: float = real(default=0.8, above=0.5, below=1, means="share of signs that are as they will be")
    level: float = real(default=0.25, above=0, below=0.5, means="mean attention that has moved")

    sees: ClassVar[Sees] = Sees.PRODUCTS
    of: ClassVar[tuple[type, ...]] = (AbstractVectorModel, TwoLayerTransformer)

    @classmethod
    def examples(cls):
        return (cls(),)

    @property
    def variables(self):
        moved = Variable(
            "",
            r"\frac{\sum_{i,s} |\langle \Delta k_s, \xi_i \rangle|}{\sum_{i,s} |\langle k_s, \xi_i \rangle|}",
            "how far the keys' products with noise have moved by the time the values' have settled",
        )
        return (*TIMES.items(), ("key_movement", moved))

    @property
    def clock(self):
        return at_end

    def begin(self, view: View):
        return jnp.full(len(TIMES), -1), jnp.zeros(()), _keys_on_noise(view)

    def update(self, memory, key, before: View):
        return self._looked(memory, before)

    def read(self, memory, view: View):
        times, moved, _ = self._looked(memory, view)
        return {**dict(zip(TIMES, times)), "key_movement": moved}

    def _looked(self, memory: tuple[Array, Array, Array], view: View) -> tuple[Array, Array, Array]:
        times, moved, start = memory
        now, mean = stages(view), view.training.mean
        shares = jnp.array([now["settled"], now["aligned"], now["voted"]])
        attention = jnp.array([now["noise_query"], now["signal_query"]])
        over = jnp.concatenate([shares >= self.share, attention <= self.level])
        pending = times < 0
        distance = mean(jnp.abs(_keys_on_noise(view) - start)) / mean(jnp.abs(start))
        return jnp.where(pending & over, view.step, times), jnp.where(pending[0], distance, moved), start


stage_times = StageTimes()


def _keys_on_noise(view: View) -> Array:
    return view.problem.products(view.params)[1][:, 0, _transformer(view).groups["key"]]


def _transformer(view: View) -> TwoLayerTransformer:
    network, model = view.problem.network, vector_model(view.problem.data)
    assert isinstance(network, TwoLayerTransformer) and model is not None
    if not (model.signed_by_class and model.signal_count == model.noise_count == 1):
        raise InputError(
            "The stages of sign descent need inputs of one signal y mu and one noise vector, such as those of "
            f"SparseSignalNoise, got "
            f"{type(view.problem.data).__name__}."
        )
    return network
