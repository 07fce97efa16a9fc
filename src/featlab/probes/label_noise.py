"""What becomes of flipped labels: losses of samples, selection by loss, and tests whose noise was trained on."""

from __future__ import annotations

import math

import jax.numpy as jnp

from featlab.core.sees import Sees
from featlab.data import AbstractVectorModel
from featlab.objectives import Supervised
from featlab.probes._probe import Variable, View, probe
from featlab.probes.risk import wrong


@probe(
    of=(Supervised,),
    sees=Sees.PRODUCTS,
    sample_loss=Variable("sample", r"\ell_i", "loss of each sample"),
)
def sample_losses(view: View):
    """Each training input's loss, with the label the loss sees."""
    return view.losses(view.problem.outputs(view.params, view.training), view.training.labels)


@probe(
    of=(Supervised,),
    sees=Sees.PRODUCTS,
    selection_precision=Variable(
        "", r"P(\tilde y_i \neq y_i \mid \ell_i > c)", "fraction of the selected samples that are flipped"
    ),
    selection_recall=Variable(
        "", r"P(\ell_i > c \mid \tilde y_i \neq y_i)", "fraction of the flipped samples that are selected"
    ),
)
def sample_selection(view: View, *, level: float = math.log(2)):
    r"""Samples whose loss is above the level, taken for flipped ones: how many are, and how many are found.

    The logistic loss is $\log 2$ at margin 0. Where nothing is selected, or nothing was flipped, it is NaN.
    """
    batch = view.training
    losses = view.losses(view.problem.outputs(view.params, batch), batch.labels)
    flipped = batch.mask & (batch.labels != batch.clean_labels)
    selected = batch.mask & (losses > level)
    both = jnp.sum(flipped & selected)

    def share(of):
        return jnp.where(jnp.any(of), both / jnp.maximum(jnp.sum(of), 1), jnp.nan)

    return {"selection_precision": share(selected), "selection_recall": share(flipped)}


@probe(
    of=(AbstractVectorModel,),
    sees=Sees.PRODUCTS,
    spurious_test_error=Variable(
        "", r"P(y f([y\mu, \xi_i]) \leq 0)", "test error where the noise is that of a training input"
    ),
    flipped_fraction=Variable("", r"\hat\tau", "fraction of the training labels that are flipped"),
)
def spurious_test_error(view: View):
    r"""The error on test inputs $[y\mu, \xi_i]$ whose noise is that of a random training input.

    It models features that are spurious and come again. Both classes beside the noise of each sample are all there
    are, so it is computed and not sampled.
    """
    batch = view.training

    def error(label):
        other = view.problem.beside(batch, jnp.full(batch.labels.shape, label))
        return batch.mean(wrong(label * view.problem.outputs(view.params, other)))

    flipped = batch.mean(jnp.where(batch.labels != batch.clean_labels, 1.0, 0.0))
    return {"spurious_test_error": (error(1.0) + error(-1.0)) / 2, "flipped_fraction": flipped}
