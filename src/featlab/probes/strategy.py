"""How a training strategy works: what SAM switches off, how steep the loss is, how fast each part grows."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp

from featlab.algorithms import Perturbation, Then
from featlab.core.sees import Sees
from featlab.core.validation import InputError
from featlab.data import AbstractVectorModel
from featlab.networks import AbstractProductNetwork
from featlab.probes._probe import Variable, View, probe
from featlab.probes.running import AbstractRunning

_SIGNAL = r"\max_r \langle w_{\tilde y_i,r}, y_i \mu \rangle"
_NOISE = r"\max_r \langle w_{\tilde y_i,r}, \xi_i \rangle"


@probe(
    of=(AbstractVectorModel, AbstractProductNetwork),
    sees=Sees.PRODUCTS,
    deactivated=Variable(
        "",
        r"P(\langle w_{j,r} + \hat\epsilon, \xi_i \rangle < 0 \mid \langle w_{j,r}, \xi_i \rangle \geq 0)",
        "fraction of the neurons active on noise of their own class that SAM's perturbation switches off",
    ),
    deactivated_on_signal=Variable(
        "",
        r"P(\langle w_{j,r} + \hat\epsilon, y_i\mu \rangle < 0 \mid \langle w_{j,r}, y_i\mu \rangle \geq 0)",
        "the same for the signal",
    ),
)
def deactivation(view: View):
    r"""What the last step's perturbation switched off: pairs of a sample and a filter of its class $\tilde y_i$.

    NaN before the first step, while another algorithm runs, and where nothing was active.
    """
    perturbation = _perturbation(view)
    before, after = (_on_own_class(view, params) for params in (perturbation.before, perturbation.perturbed))
    ends = zip(jax.tree.leaves(perturbation.before), jax.tree.leaves(perturbation.perturbed))
    looked = jnp.any(jnp.array([jnp.any(here != there) for here, there in ends]))

    def share(was, now):
        active = was >= 0  # False where the filter is of the other class: there is no product
        off = jnp.sum(active & (now < 0)) / jnp.maximum(jnp.sum(active), 1)
        return jnp.where(looked & jnp.any(active), off, jnp.nan)

    return {"deactivated": share(before[1], after[1]), "deactivated_on_signal": share(before[0], after[0])}


@probe(
    of=(AbstractVectorModel, AbstractProductNetwork),
    sees=Sees.PRODUCTS,
    signal_alignment=Variable(
        "", rf"\frac1n \sum_i {_SIGNAL}", "mean over samples of the signal in its best filter"
    ),
    noise_alignment=Variable("", rf"\frac1n \sum_i {_NOISE}", "mean over samples of the noise in its best filter"),
)
def alignments(view: View):
    """How much the best filter of its class makes of each sample's signal, and of its noise."""
    signal, noise = (
        jnp.max(jnp.nan_to_num(part, nan=-jnp.inf), axis=1) for part in _on_own_class(view, view.params)
    )
    return {"signal_alignment": view.training.mean(signal), "noise_alignment": view.training.mean(noise)}


class Growth(AbstractRunning):
    """What the last step added to the alignments."""

    sees: ClassVar[Sees] = Sees.PRODUCTS
    of: ClassVar[tuple[type, ...]] = (AbstractVectorModel, AbstractProductNetwork)

    @property
    def variables(self):
        return (
            ("signal_growth", Variable("", rf"\Delta \frac1n \sum_i {_SIGNAL}", "signal alignment gained a step")),
            ("noise_growth", Variable("", rf"\Delta \frac1n \sum_i {_NOISE}", "noise alignment gained a step")),
        )

    def begin(self, view):
        return alignments(view)

    def update(self, memory, key, before):
        return alignments(before)

    def read(self, memory, view):
        now = alignments(view)
        return {
            f"{part}_growth": now[f"{part}_alignment"] - memory[f"{part}_alignment"]
            for part in ("signal", "noise")
        }


growth_rates = Growth()


@probe(
    sees=Sees.PRODUCTS,
    gradient_norm=Variable("", r"\|\nabla L_S\|_2", "length of the gradient, weight decay included"),
)
def gradient_norm(view: View):
    """How far from stationary the weights are, as gradient descent measures it."""
    return view.problem.norm(_gradient(view))


@probe(
    gradient_norm_1=Variable("", r"\|\nabla L_S\|_1", "sum of the gradient's magnitudes, weight decay included")
)
def gradient_norm_1(view: View):
    """How far from stationary the weights are, as sign descent and Adam measure it."""
    return sum(jnp.sum(jnp.abs(leaf)) for leaf in jax.tree.leaves(_gradient(view)))


def _gradient(view: View):
    gradient = view.problem.gradient(view.params, view.training, view.problem.draw.algorithm_key)
    decay = _weight_decay(view.algorithm, view.step)
    return jax.tree.map(lambda slope, leaf: slope + decay * leaf, gradient, view.params)


def _weight_decay(algorithm, step):
    """What the next step multiplies the weights with and adds to their gradient."""
    if isinstance(algorithm, Then):
        first, second = algorithm.first, algorithm.second
        since = step - algorithm.steps
        return jnp.where(since < 0, _weight_decay(first, step), _weight_decay(second, since))
    decay = getattr(algorithm, "weight_decay", None)
    return 0.0 if decay is None else decay


def _perturbation(view: View) -> Perturbation:
    leaves = jax.tree.leaves(view.info, is_leaf=lambda leaf: isinstance(leaf, Perturbation))
    for leaf in leaves:
        if isinstance(leaf, Perturbation):
            return leaf
    raise InputError(f"deactivation needs SAM, and {type(view.algorithm).__name__} perturbs nothing.")


def _on_own_class(view: View, params):
    """Products of every sample's signal and noise with the filters; NaN where the class is another, or padding."""
    model, batch = view.vectors, view.training
    signals, noise = view.problem.products(params)
    if model.signed_by_class:
        on_signal = batch.clean_labels[:, None] * signals.sum(axis=0)[None]
    else:
        on_signal = model.composed(batch, signals, jnp.zeros_like(noise)).sum(axis=1)
    filters = signals.shape[-1] // len(view.class_signs)
    own = batch.labels[:, None] == jnp.repeat(view.class_signs, filters)[None]
    own = own & batch.mask[:, None]
    return jnp.where(own, on_signal, jnp.nan), jnp.where(own, noise.sum(axis=1), jnp.nan)
