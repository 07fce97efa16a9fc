"""Descent on examples that are disturbed anew every step: in their labels, or by mixing them with one another."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from featlab.algorithms.descent import AbstractDescent
from featlab.core.sees import Sees
from featlab.core.validation import probability, real


class LabelNoiseDescent(AbstractDescent):
    r"""Descent on labels flipped anew every step.

    $$w \leftarrow w - \eta \nabla \tfrac1n \sum_i \ell(\epsilon_i^{(t)} y_i f(x_i)), \qquad
      \epsilon_i^{(t)} = -1 \text{ with probability } p, \text{ else } 1$$

    Huang, Shi, Cao and co-authors (2025).
    """

    sees: ClassVar[Sees] = Sees.PRODUCTS
    whole_inputs: ClassVar[bool] = False  # it changes labels alone
    linear: ClassVar[bool] = True

    learning_rate: float = real(above=0, symbol=r"\eta", means="learning rate")
    flip: float = probability(symbol="p", means="labels flipped in a step", span=(0, 0.5))

    @classmethod
    def examples(cls):
        return (cls(0.1, 0.3),)

    @property
    def transformation(self):
        return optax.scale(-self.learning_rate)

    def batch(self, key, step, problem):
        batch = problem.batch(key, step)
        coins = jax.random.uniform(jax.random.fold_in(key, 1), batch.mask.shape, jnp.float32)
        labels = jnp.where(coins < self.flip, -batch.labels, batch.labels)
        return eqx.tree_at(lambda b: b.labels, batch, labels)


class Mixup(AbstractDescent):
    r"""Descent on mixtures of pairs of examples, with a mixture of their losses.

    $$\tilde x_i = \lambda x_i + (1 - \lambda) x_{\pi(i)}, \qquad
      \lambda \ell(f(\tilde x_i), y_i) + (1 - \lambda) \ell(f(\tilde x_i), y_{\pi(i)}), \qquad
      \lambda \sim \mathrm{Beta}(\alpha, \alpha)$$

    One $\lambda$ and one random order $\pi$ of the batch for every step.

    Zhang, Cisse, Dauphin and Lopez-Paz (2018).
    """

    sees: ClassVar[Sees] = Sees.VECTORS

    learning_rate: float = real(above=0, symbol=r"\eta", means="learning rate")
    concentration: float = real(
        default=1.0, above=0, symbol=r"\alpha", means="concentration of the mixing weights"
    )

    @classmethod
    def examples(cls):
        return (cls(0.1), cls(0.1, 0.3))

    @property
    def transformation(self):
        return optax.scale(-self.learning_rate)

    def slope(self, key, params, batch, problem):
        order_key, share_key, objective_key = jax.random.split(key, 3)
        lottery = jax.random.uniform(order_key, batch.mask.shape, jnp.float32)
        partner = jnp.argsort(jnp.where(batch.mask, lottery, jnp.inf))  # padding stays where it is
        # Beta(a, a) is the share of one of two gamma variates; drawn in float32, as everything is.
        concentration = jnp.asarray(self.concentration, jnp.float32)
        pair = jax.random.loggamma(share_key, concentration, (2,), jnp.float32)
        # To 16 bits: a last bit that differs between programs would be another experiment.
        share = jnp.round(jax.nn.softmax(pair)[0] * 2**16).astype(float) / 2**16
        mixed = share * batch.inputs + (1 - share) * batch.inputs[partner]
        one = eqx.tree_at(lambda b: b.inputs, batch, mixed)
        other = eqx.tree_at(lambda b: b.labels, one, batch.labels[partner])

        def value(params):
            here, there = (problem.value(params, labelled, objective_key) for labelled in (one, other))
            return share * here + (1 - share) * there

        return jax.value_and_grad(value)(params)
