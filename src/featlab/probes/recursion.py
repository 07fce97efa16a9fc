r"""The second road to gamma and rho: their own recursion, followed from 0.

The gradient in a weight vector is a combination of the data's vectors, and its coefficients are the derivatives
of the loss in the inner products. Descent that is linear in gradients and weights therefore acts on the
coefficients exactly as it acts on the weights. For the network of the theorems and labels $\tilde y_i$,

$$\gamma \leftarrow \gamma - \tfrac{\eta \|\mu\|^2}{nm}
    \sum_i \ell_i' \sigma'(\langle w, y_i \mu \rangle) y_i \tilde y_i, \qquad
  \rho_i \leftarrow \rho_i - \tfrac{\eta \|\xi_i\|^2}{nm} \ell_i' \sigma'(\langle w, \xi_i \rangle) j \tilde y_i$$
"""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from featlab.algorithms import AbstractDescent
from featlab.core.sees import Sees
from featlab.core.validation import InputError
from featlab.data import AbstractVectorModel
from featlab.networks import AbstractProductNetwork
from featlab.probes._probe import Variable, View
from featlab.probes.coefficients import ALPHA, GAMMA, RHO, order_parameters
from featlab.probes.running import AbstractRunning


class CoefficientsByRecursion(AbstractRunning):
    """Gamma, rho and alpha followed step by step, for descent that is linear: plain, momentum, weight decay."""

    sees: ClassVar[Sees] = Sees.VECTORS
    of: ClassVar[tuple[type, ...]] = (AbstractVectorModel, AbstractProductNetwork, AbstractDescent)

    @property
    def variables(self):
        marked = [GAMMA, RHO, ALPHA]
        names = ["gamma_recursion", "rho_recursion", "alpha_recursion"]
        return tuple(
            (name, Variable(v.dims, v.symbol, v.meaning + ", by its recursion")) for name, v in zip(names, marked)
        )

    def begin(self, view: View):
        algorithm = view.algorithm
        assert isinstance(algorithm, AbstractDescent)
        if not algorithm.linear:
            raise InputError(
                f"The recursion of the coefficients needs linear descent, and {type(algorithm).__name__} is not; "
                "use the probe coefficients."
            )
        if view.vectors and view.problem.data.sees == Sees.COORDINATES:
            raise InputError("The recursion of the coefficients needs a fixed training set; a Stream has none.")
        rows = len(view.weights)
        signals = len(view.problem.draw.truth.norms)
        start = (jnp.ones(rows), jnp.zeros((signals, rows)), jnp.zeros((*view.noise.shape[:2], rows)))
        return start, algorithm.transformation.init(start)

    def update(self, memory, key, before: View):
        state, optimiser = memory
        batch_key, objective_key = jax.random.split(key)  # as AbstractDescent.step splits it
        problem, draw = before.problem, before.problem.draw
        weights, rows = before.weights, len(before.training.mask)
        assert isinstance(before.algorithm, AbstractDescent)
        # Which rows of the training set this step's batch holds, read off a batch of row numbers.
        numbered = eqx.tree_at(lambda p: p.draw.training.inputs, problem, jnp.arange(rows))
        batch = before.algorithm.batch(batch_key, before.step, numbered)

        def value(signals, noise):
            inputs = before.vectors.composed(batch, signals, noise[batch.inputs])
            return batch.mean(before.losses(before.respond(inputs), batch.labels))

        products = (draw.truth.vectors @ weights.T, before.noise @ weights.T)
        gradient = (jnp.zeros(len(weights)), *jax.grad(value, argnums=(0, 1))(*products))
        updates, optimiser = before.algorithm.transformation.update(gradient, optimiser, state)
        return optax.apply_updates(state, updates), optimiser

    def read(self, memory, view: View):
        (alpha, on_signals, on_noise), _ = memory
        norms = view.problem.draw.truth.norms
        on_directions = on_signals.T * norms[None]
        named = order_parameters(view, on_directions, jnp.moveaxis(on_noise, -1, 0))
        return {
            "gamma_recursion": named["gamma"],
            "rho_recursion": named["rho"],
            "alpha_recursion": jnp.mean(alpha),
        }


coefficients_by_recursion = CoefficientsByRecursion()
