"""Losses and errors, on the training set and on fresh inputs, and how they split by flipped labels."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from featlab.core.sees import Sees
from featlab.networks import AbstractProductNetwork
from featlab.objectives import Supervised
from featlab.probes._probe import Variable, View, probe

TEST_INPUTS = 10_000  # a Monte Carlo error of at most half a percent
_KEPT = 2_000_000  # numbers a run keeps between readings; a larger test set is drawn anew each time


def _test_coins(problem, *, count: int = TEST_INPUTS):
    coins = jax.eval_shape(lambda: problem.test_coins(count))
    small = coins is not None and sum(leaf.size for leaf in jax.tree.leaves(coins)) <= _KEPT
    return problem.test_coins(count) if small else None


@probe(sees=Sees.PRODUCTS, train_loss=Variable("", "L_S", "training loss"))
def train_loss(view: View):
    """The objective's value on the training set."""
    return view.problem.value(view.params, view.training)


@probe(sees=Sees.PRODUCTS, train_error=Variable("", r"L_S^{0-1}", "training error, observed labels"))
def train_error(view: View):
    """The fraction of training inputs with $\\tilde y_i f(x_i) \\leq 0$."""
    return view.training.mean(wrong(_margins(view)))


@probe(sees=Sees.PRODUCTS, margin=Variable("sample", r"\tilde y_i f(x_i)", "margin"))
def margins(view: View):
    """Each training input's margin, with the label the loss sees."""
    return _margins(view)


@probe(
    of=(Supervised,),
    sees=Sees.PRODUCTS,
    prepare=_test_coins,
    test_loss=Variable("", "L_D", "test loss"),
    test_loss_se=Variable("", r"\mathrm{se}(L_D)", "Monte Carlo standard error of the test loss"),
)
def test_loss(view: View, *, count: int = TEST_INPUTS):
    """The mean loss on fresh inputs, with its Monte Carlo error."""
    outputs, batch = view.problem.test_outputs(view.params, count, view.prepared)
    mean, error = _mean_and_error(view.losses(outputs, batch.labels))
    return {"test_loss": mean, "test_loss_se": error}


@probe(
    sees=Sees.PRODUCTS,
    prepare=_test_coins,
    test_error=Variable("", r"L_D^{0-1}", "test error, observed labels"),
    test_error_se=Variable("", r"\mathrm{se}(L_D^{0-1})", "Monte Carlo standard error of the test error"),
    clean_test_error=Variable("", r"P(y f(x) \leq 0)", "test error, clean labels"),
)
def test_error(view: View, *, count: int = TEST_INPUTS):
    """The fraction of fresh inputs on the wrong side, with its Monte Carlo error."""
    outputs, batch = view.problem.test_outputs(view.params, count, view.prepared)
    mean, error = _mean_and_error(wrong(batch.labels * outputs))
    clean = jnp.mean(wrong(batch.clean_labels * outputs))
    return {"test_error": mean, "test_error_se": error, "clean_test_error": clean}


@probe(
    of=(Supervised,),
    sees=Sees.PRODUCTS,
    fit_clean=Variable(
        "", r"P(\tilde y_i f_i > 0 \mid \tilde y_i = y_i)", "fraction of clean samples fitted; NaN without any"
    ),
    fit_noisy=Variable(
        "",
        r"P(\tilde y_i f_i > 0 \mid \tilde y_i \neq y_i)",
        "fraction of flipped samples fitted; NaN without any",
    ),
    loss_clean=Variable("", r"L_{S_t}", "training loss of clean samples; NaN without any"),
    loss_noisy=Variable("", r"L_{S_f}", "training loss of flipped samples; NaN without any"),
)
def clean_noisy_split(view: View):
    """How the samples with true and with flipped labels fare, each by the label the loss sees."""
    batch, outputs = view.training, view.problem.outputs(view.params, view.training)
    fitted = 1 - wrong(batch.labels * outputs)
    losses = view.losses(outputs, batch.labels)
    clean = batch.labels == batch.clean_labels

    def mean(values, which):
        return jnp.where(jnp.any(batch.mask & which), batch.mean(values, which), jnp.nan)

    return {
        "fit_clean": mean(fitted, clean),
        "fit_noisy": mean(fitted, ~clean),
        "loss_clean": mean(losses, clean),
        "loss_noisy": mean(losses, ~clean),
    }


@probe(
    of=(AbstractProductNetwork,),
    sees=Sees.VECTORS,
    weight_norm=Variable("row", r"\|w_r\|", "length of each weight vector"),
)
def weight_norms(view: View):
    """Lengths of the weight vectors; infinite, and refused, at d = inf."""
    return view.problem.draw.space.norms(view.weights)


def _margins(view):
    return view.training.labels * view.problem.outputs(view.params, view.training)


def wrong(margins):
    """1 where a margin is not above 0, else 0; NaN where it is NaN, so that no error is read off such outputs."""
    return jnp.where(jnp.isnan(margins), jnp.nan, jnp.where(margins > 0, 0.0, 1.0))


def _mean_and_error(values):
    return jnp.mean(values), jnp.std(values) / jnp.sqrt(values.size)
