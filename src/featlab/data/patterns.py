"""Inputs made of patterns of a dictionary, of which a few decide the label."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from featlab.core.validation import InputError, probability, real, whole
from featlab.data._data import AbstractDataModel, Batch, signed
from featlab.data._fields import dimension, sample_size

_COINS = 40  # of an input, at least: the compiler unrolls shorter draws, which takes it three times as long


class Patterns(eqx.Module):
    """The patterns, orthonormal rows, and which of them decide the label."""

    patterns: Float[Array, "pattern column"]  # M_j
    relevant: Bool[Array, " pattern"]  # j in A


class PatternDictionary(AbstractDataModel):
    r"""Patterns that are there or not, of which an odd number decides the label.

    $$x = \frac{s}{\tilde\sigma}\, M (\tilde\phi - \mathbb{E}\tilde\phi), \qquad \tilde\phi \in \{0, 1\}^D, \qquad
    \tilde\sigma^2 = \sum_j \mathrm{Var}\,\tilde\phi_j$$

    with $M \in \mathbb{R}^{d \times D}$ orthonormal, so that $\mathbb{E}\|x\|^2 = s^2$. The label is $1$ if an
    odd number of the $k$ relevant patterns $A$ is there, and $-1$ else. A share `easy` of the inputs has all of
    them ($y = 1$, $k$ being odd) or none ($y = -1$), each half of the time; in the others each is there with
    probability $\frac12$, independently. So $\mathbb{E}\,\tilde\phi_j = \frac12$ for $j \in A$, classes are
    balanced, and $\gamma = \mathbb{E}[y\tilde\phi_j]$ is half of `easy`: the structure that gives relevant
    patterns away. Without it, `easy=0`, the label is a parity of independent fair coins. All other patterns are
    background, each there with probability $p_o$, independently of all else.

    `coins` say which inputs are easy. Shi, Wei and Liang (2022).
    """

    n: int = sample_size()
    d: float = dimension()
    patterns: int = whole(default=60, at_least=1, symbol="D", means="patterns", span=(10, 500))
    relevant: int = whole(default=7, at_least=1, symbol="k", means="relevant patterns", span=(1, 15))
    easy: float = probability(default=0.5, means="easy inputs, with all relevant patterns or none")
    background: float = probability(default=0.5, symbol="p_o", means="probability of each background pattern")
    norm: float = real(default=1.0, above=0, symbol="s", means="typical length of an input")

    @classmethod
    def examples(cls):
        return (
            cls(n=6, d=40, patterns=30, relevant=3),
            cls(n=5, d=40, patterns=40, relevant=5, easy=0.0, background=0.3, norm=2.0),
        )

    def __check_init__(self):
        if self.relevant % 2 == 0 or self.relevant > self.patterns:
            raise InputError(
                "PatternDictionary.relevant must be odd, so that all and none are of different classes, and at "
                f"most the number of patterns, {self.patterns}, got {self.relevant}."
            )
        if isinstance(self.d, float) and self.d < self.patterns:
            raise InputError(
                f"PatternDictionary.patterns must be at most d = {self.d:g}, since patterns are orthonormal, "
                f"got {self.patterns}."
            )

    @property
    def gamma(self):
        r"""$\gamma = \mathbb{E}[y\tilde\phi_j] - \mathbb{E}[y]\,\mathbb{E}[\tilde\phi_j]$, $j \in A$."""
        return self.easy / 2 if self.relevant > 1 else 0.5  # one pattern alone is the label

    @property
    def spread(self):
        r"""$\tilde\sigma = (\sum_j \mathrm{Var}\,\tilde\phi_j)^{1/2}$."""
        variance = self.background * (1 - self.background)
        return (self.relevant / 4 + (self.patterns - self.relevant) * variance) ** 0.5

    def vectors(self, rows):
        return self.patterns + rows

    def truth(self, key, space):
        rows, space = space.given(np.eye(self.patterns))
        return Patterns(rows, jnp.arange(self.patterns) < self.relevant), space

    def draw(self, key, truth, space, rows):
        return self._drawn(key, truth, jnp.arange(rows) < self.n), space

    def fresh(self, key, truth, space, count, *, training=False):
        return self._drawn(key, truth, jnp.ones(count, bool))

    def _drawn(self, key, truth, mask):
        """One input for each entry of the mask."""
        keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(len(mask)))
        present, easy = jax.vmap(lambda one: self._toss(one, truth))(keys)
        odd = jnp.sum(present & truth.relevant[None], axis=1) % 2 == 1
        expected = jnp.where(truth.relevant, 0.5, self.background)
        inputs = self.norm / self.spread * (present - expected[None]) @ truth.patterns
        labels = signed(odd)
        return Batch(inputs[:, None], labels, labels, mask, None, easy)

    def _toss(self, key, truth):
        """Which patterns one input has, and whether it is easy."""
        draws = jax.random.uniform(key, (max(self.patterns + 2, _COINS),), jnp.float32)
        easy, all_there = draws[0] < self.easy, draws[1] < 0.5
        own = draws[2 : self.patterns + 2] < jnp.where(truth.relevant, 0.5, self.background)
        return jnp.where(truth.relevant & easy, all_there, own), easy
