"""Descent with all singular values of the update made equal: steepest descent in the spectral norm."""

from __future__ import annotations

from typing import ClassVar

import jax
import optax

from featlab.algorithms.descent import AbstractDescent
from featlab.core.sees import Sees
from featlab.core.validation import real

# Five steps that pull small singular values up fast (Jordan et al., 2024), then three that converge to 1.
_PULLING, _CONVERGING = (3.4445, -4.775, 2.0315), (15 / 8, -10 / 8, 3 / 8)
_NEWTON_SCHULZ = (_PULLING,) * 5 + (_CONVERGING,) * 3


class MatrixNormalisedDescent(AbstractDescent):
    r"""Descent along the gradient's polar factor.

    $$M \leftarrow \beta M + (1 - \beta) \nabla L(W), \; M = U S V^\top, \; W \leftarrow W - \eta\, U V^\top$$

    Known as Muon. The filters are the rows of $W$; a vector, such as biases, is a matrix of one row. $U V^\top$ is
    found by Newton and Schulz's iteration, a polynomial in $M$: directions that $M$ lacks stay absent, and
    turning the input space turns the update along.

    Jordan et al. (2024); Bernstein and Newhouse (2024).
    """

    sees: ClassVar[Sees] = Sees.VECTORS
    whole_inputs: ClassVar[bool] = False

    learning_rate: float = real(above=0, symbol=r"\eta", means="learning rate")
    momentum: float = real(default=0.0, at_least=0, below=1, symbol=r"\beta", means="momentum")

    @classmethod
    def examples(cls):
        return (cls(0.05), cls(0.05, momentum=0.9))

    @property
    def transformation(self):
        muon = optax.contrib.scale_by_muon(
            ns_coeffs=_NEWTON_SCHULZ,
            ns_steps=len(_NEWTON_SCHULZ),
            beta=self.momentum,
            nesterov=False,
            weight_dimension_numbers=lambda tree: jax.tree.map(
                lambda _: optax.contrib.MuonDimensionNumbers(), tree
            ),
        )

        def update(updates, state, params=None):
            matrices, state = muon.update(_as_matrices(updates), state)
            return jax.tree.map(lambda new, old: new.reshape(old.shape), matrices, updates), state

        normalise = optax.GradientTransformation(lambda params: muon.init(_as_matrices(params)), update)
        return optax.chain(normalise, optax.scale(-self.learning_rate))


def _as_matrices(tree):
    """Every leaf as one matrix whose columns are its last axis; a leaf of one axis, a single row."""
    return jax.tree.map(lambda leaf: leaf.reshape(-1, leaf.shape[-1]) if leaf.ndim else leaf.reshape(1, 1), tree)
