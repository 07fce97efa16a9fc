"""Sparse coding: inputs that are sums of a few atoms of a dictionary, under dense noise."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from featlab.core.sees import Sees
from featlab.core.space import orthonormal
from featlab.core.validation import InputError, flag, real, whole
from featlab.data._data import AbstractDataModel, Batch, signed
from featlab.data._fields import dimension, sample_size


class Dictionary(eqx.Module):
    """The atoms, one a row, and what each of them says about the label."""

    atoms: Float[Array, "atom column"]  # M_j
    votes: Float[Array, " atom"]  # w*_j


class SparseCoding(AbstractDataModel):
    r"""A few atoms of an orthonormal dictionary, each with a sign, under dense Gaussian noise.

    $$x = Mz + \xi, \qquad y = \mathrm{sign} \langle w^\star, z \rangle, \qquad \xi \sim N(0, \sigma_0^2 I)$$

    $z$ is $\pm 1$ on $s$ atoms of $d$, every set of atoms and all signs being equally likely, and
    $w^\star_j = \pm 1$. With an odd $s$ no label is undecided, and both are equally likely.

    $M$ is the identity, or with `rotated` uniform up to the signs of atoms, which $z$ has too. Whatever is
    isotropic, the noise and a Gaussian start, has the same law in the coordinates of the dictionary, so training
    by descent has too: the identity stands for every $M$.

    Allen-Zhu and Li (2020), who scale $z_j$ as $1/\sqrt s$.
    """

    n: int = sample_size()
    d: float = dimension()
    sparsity: int = whole(default=3, at_least=1, symbol="s", means="atoms of an input", span=(1, 15))
    noise_scale: float = real(
        default=0.0, at_least=0, symbol=r"\sigma_0", means="noise in each coordinate", span=(0, 1)
    )
    rotated: bool = flag(default=False, means="a random dictionary, not the coordinates")

    sees: ClassVar[Sees] = Sees.COORDINATES  # atoms fill the whole space

    def vectors(self, rows):
        return int(self.d) + rows

    @classmethod
    def examples(cls):
        return (cls(n=6, d=40, noise_scale=0.3), cls(n=5, d=40, sparsity=1, noise_scale=0.1, rotated=True))

    def __check_init__(self):
        if isinstance(self.d, float) and (self.sparsity % 2 == 0 or self.sparsity > self.d):
            raise InputError(
                "SparseCoding.sparsity must be odd, so that no label is undecided, and at most "
                f"d = {self.d:g}, got {self.sparsity}."
            )

    def truth(self, key, space):
        votes_key, atoms_key = jax.random.split(key)
        size = _stored(space)
        if self.rotated:
            atoms, space = space.gaussian(atoms_key, size)
            atoms = orthonormal(atoms)
        else:
            atoms, space = space.given(np.eye(size))
        return Dictionary(atoms, signed(jax.random.bernoulli(votes_key, shape=(size,)))), space

    def draw(self, key, truth, space, rows):
        code_key, noise_key = jax.random.split(key)
        mask = jnp.arange(rows) < self.n
        noise, space = space.gaussian(noise_key, rows, real=mask)
        return self._assembled(code_key, truth, noise, mask), space

    def fresh(self, key, truth, space, count, *, training=False):
        code_key, noise_key = jax.random.split(key)
        return self._assembled(code_key, truth, space.fresh(noise_key, count), jnp.ones(count, bool))

    def _assembled(self, key, truth: Dictionary, noise, mask):
        size, atoms = self.sparsity, len(truth.votes)

        def coins(i):  # by eights, which compile in half the time
            return jax.random.uniform(jax.random.fold_in(key, i), (-(-2 * size // 8) * 8,), jnp.float32)

        tossed = jax.vmap(coins)(jnp.arange(len(mask)))
        places = _distinct(tossed[:, :size], atoms)
        signs = jnp.where(mask[:, None], signed(tossed[:, size : 2 * size] < 0.5), 0)
        votes = jnp.sum(signs * truth.votes[places], axis=1)
        labels = jnp.where(mask, jnp.sign(votes), 1.0)
        # One comparison an atom of the input: cheaper than to scatter.
        code = sum(signs[:, k, None] * (places[:, k, None] == jnp.arange(atoms)[None]) for k in range(size))
        inputs = code @ truth.atoms + self.noise_scale * noise
        return Batch(inputs[:, None], labels, labels, mask)


def _distinct(uniforms: Float[Array, "sample place"], among: int) -> Int[Array, "sample place"]:
    """Different whole numbers below `among` in each row, every set equally likely (Floyd's method).

    The k-th is drawn from the first `among - s + k + 1` numbers; where it is taken already, the last of those
    takes its place.
    """
    size, chosen = uniforms.shape[1], []
    for k in range(size):
        last = among - size + k
        drawn = jnp.minimum(jnp.floor(uniforms[:, k] * (last + 1)).astype(int), last)
        taken = sum((drawn == one for one in chosen), jnp.zeros(len(drawn), bool))
        chosen.append(jnp.where(taken, last, drawn))
    return jnp.stack(chosen, axis=1)


def _stored(space) -> int:
    size = getattr(space, "size", None)
    if not isinstance(size, int):
        raise InputError("SparseCoding has as many atoms as dimensions and needs Ambient, where they are stored.")
    return size
