"""Everything random about one run, drawn before training."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from featlab.core.space import AbstractSpace
from featlab.core.validation import InputError
from featlab.data import AbstractBatching, AbstractDataModel, AbstractVectorModel, Batch, Signals
from featlab.networks import AbstractNetwork


class OnBasis(eqx.Module):
    """One number for each weight vector and each vector of the basis: coefficients C, or products P."""

    signals: Float[Array, "row signal"]
    noise: Float[Array, "row vector"]


class Gram(eqx.Module):
    """The products that training in inner products starts from: of the weights and of the noise with the basis."""

    start: OnBasis  # P_0
    noise: tuple[Array, Array] | None  # with noise, with signals; None at d = inf: orthonormal


class Draw(eqx.Module):
    """Everything that chance decided before training: one draw per seed."""

    space: AbstractSpace
    truth: Any
    training: Batch
    holdouts: tuple[Batch, ...]
    start: Any  # the network's initial parameters
    dual: Float[Array, "column vector"] | None  # weights @ dual = coefficients on the signals and noise vectors
    batch_key: PRNGKeyArray
    test_key: PRNGKeyArray
    algorithm_key: PRNGKeyArray
    gram: Gram | None = None  # of a run that is trained in products, which has no inputs

    def noise_geometry(self) -> tuple[Array, Array]:
        """The squared length of each noise vector, and its products with the signals' directions."""
        noise = self.training.noise
        assert noise is not None
        return jnp.sum(noise**2, axis=-1), noise @ self.truth.directions.T


def draw_run(
    data: AbstractDataModel,
    network: AbstractNetwork,
    space: AbstractSpace,
    rows: int,
    holdouts: int,
    key: PRNGKeyArray,
) -> Draw:
    """Draw one run. Every purpose has its own key, so no two of them ever share randomness."""
    truth_key, training_key, start_key, holdout_key, batch_key, test_key, algorithm_key = jax.random.split(key, 7)
    truth, space = data.truth(truth_key, space)
    start: Any = None
    if network.starts_first:
        start, space = network.init(start_key, space)
    training, space = _training_set(data, training_key, truth, space, rows)
    held = []
    for i in range(holdouts):
        batch, space = data.draw(jax.random.fold_in(holdout_key, i), truth, space, rows)
        held.append(batch)
    if not network.starts_first:
        start, space = network.init(start_key, space)
    if not all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(start)):
        raise InputError(
            f"{type(network).__name__}.init must return nothing but arrays; an Equinox module that holds "
            "functions goes into EquinoxNetwork."
        )
    dual = _dual(truth, training) if vector_model(data) is not None else None
    return Draw(space, truth, training, tuple(held), start, dual, batch_key, test_key, algorithm_key)


def _training_set(data: AbstractDataModel, key: PRNGKeyArray, truth: Any, space: AbstractSpace, rows: int):
    """What the model draws, if it is what a model must draw."""
    drawn = data.draw(key, truth, space, rows)
    if not isinstance(drawn, tuple) or len(drawn) != 2 or not isinstance(drawn[0], Batch):
        raise InputError(
            f"{type(data).__name__}.draw must return a Batch and a space, got {type(drawn).__name__}."
        )
    mask = getattr(drawn[0].mask, "shape", None)
    if mask is None or mask[:1] != (rows,):
        raise InputError(
            f"{type(data).__name__}.draw must mark each of {rows} inputs as real or not: a Batch with a mask of "
            f"that length, got {'none' if mask is None else mask}."
        )
    return drawn


def unbatched(data: AbstractDataModel) -> AbstractDataModel:
    """The model under any batching."""
    return data.data if isinstance(data, AbstractBatching) else data


def vector_model(data: AbstractDataModel) -> AbstractVectorModel | None:
    """The model under any batching, if its inputs are linear in signals and Gaussian vectors."""
    data = unbatched(data)
    return data if isinstance(data, AbstractVectorModel) else None


def basis(truth: Signals, training: Batch) -> Float[Array, "vector column"]:
    """The vectors that training combines: the signals' directions, then the noise of each sample."""
    assert training.noise is not None
    columns = truth.directions.shape[-1]
    return jnp.concatenate([truth.directions, training.noise.reshape(-1, columns)])


def _dual(truth: Signals, training: Batch) -> Float[Array, "column vector"]:
    """The pseudo-inverse of the basis, by a QR: weights @ dual are their coefficients on it."""
    vectors = basis(truth, training)
    q, r = jnp.linalg.qr(vectors.T)
    if len(r) < len(vectors):  # more vectors than dimensions: the smallest coefficients that do it
        return jnp.linalg.pinv(vectors)
    per_sample = (len(vectors) - len(truth.norms)) // len(training.mask)
    real = jnp.concatenate([jnp.ones(len(truth.norms), bool), jnp.repeat(training.mask, per_sample)])
    r = r + jnp.diag(jnp.where(real, 0.0, 1.0))
    dual = jax.scipy.linalg.solve_triangular(r, q.T, lower=False).T
    return jnp.where(real[None], dual, 0)
