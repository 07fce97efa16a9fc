"""What a data model is: what is fixed, what is random, what is a label.

`AbstractDataModel` is the whole contract. `AbstractVectorModel` is for the common case in which an input is
built linearly from fixed signals and Gaussian noise vectors: such a model only says how *one* input is put
together, and training, holdout and test draws, padding and the dimension-free simulation follow.
"""

import abc
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from featlab.core.sees import Sees
from featlab.core.space import AbstractSpace, product_normals
from featlab.core.validation import InputError, Part


class Batch(eqx.Module):
    """A set of inputs with what is known about each; the first axis of every field is the sample."""

    inputs: Array
    labels: Array  # what the loss sees
    clean_labels: Array  # before any flip
    mask: Bool[Array, " sample"]  # False on padding
    task: Array | None = None  # which task a sample belongs to, where there are several
    coins: Any = None  # what chance decided for each sample, apart from its vectors
    noise: Float[Array, "sample vector column"] | None = None  # the Gaussian vectors each input is built from

    def mean(self, values: Float[Array, "sample *task"], where: Array | None = None) -> Float[Array, ""]:
        """The average over samples, and over tasks where there are several; 0 where there are none."""
        chosen = self.mask if where is None else self.mask & where
        values = values.reshape(len(values), -1).mean(axis=1) if jnp.ndim(values) > 1 else values
        total = jnp.sum(jnp.where(chosen, values, 0))
        return total / jnp.maximum(jnp.sum(chosen), 1)

    def take(self, indices: Array, mask: Array) -> "Batch":
        """The samples with these indices, of which `mask` says which count."""
        chosen = jax.tree.map(lambda leaf: leaf[indices], self)
        return eqx.tree_at(lambda batch: batch.mask, chosen, chosen.mask & mask)


class AbstractDataModel(Part):
    """The law that inputs and labels come from: `n` training inputs, of patches of dimension `d`.

    It `sees` whole vectors and no coordinates when every random d-vector it draws is isotropic Gaussian given
    finitely many fixed ones and is drawn from the space; inner products only, when its inputs are moreover linear
    in signals and noise, as those of an `AbstractVectorModel` are. `whole_inputs`: whether the batches that an
    algorithm gets hold inputs that cannot be put together from their signals and noise.
    """

    sees: ClassVar[Sees] = Sees.COORDINATES
    whole_inputs: ClassVar[bool] = True
    n: eqx.AbstractVar[int]
    d: eqx.AbstractVar[float]

    def vectors(self, rows: int) -> int:
        """How many d-vectors the truth and a set of `n` inputs take in a span."""
        return rows

    def truth(self, key: PRNGKeyArray, space: AbstractSpace) -> tuple[Any, AbstractSpace]:
        """What all draws share: the signal, the teacher, the dictionary."""
        return None, space

    @abc.abstractmethod
    def draw(self, key: PRNGKeyArray, truth: Any, space: AbstractSpace, rows: int) -> tuple[Batch, AbstractSpace]:
        """A training set of `n` inputs in `rows` rows; what is beyond n is padding, masked out."""

    @abc.abstractmethod
    def fresh(
        self, key: PRNGKeyArray, truth: Any, space: AbstractSpace, count: int, *, training: bool = False
    ) -> "Batch":
        """New inputs, of the test law or, with `training`, of the training law."""

    def batch(self, key: PRNGKeyArray, step: Array, training: Batch, draw: Any) -> "Batch":
        """What a step of an algorithm sees: here the whole training set."""
        return training

    def rate(self, space: AbstractSpace) -> Any:
        """The factor that makes learning rate times steps the theory's time, where there is one."""
        return None


class Signals(eqx.Module):
    """The fixed directions of a data model and the lengths of the signals along them."""

    directions: Float[Array, "signal column"]
    norms: Float[Array, " signal"]

    @property
    def vectors(self) -> Float[Array, "signal column"]:
        return self.norms[:, None] * self.directions


class AbstractVectorModel(AbstractDataModel):
    r"""Inputs that are linear in fixed signals and in fresh Gaussian vectors.

    Because `compose` is linear, it may be handed the vectors themselves or their products with any set of
    weights, and then returns the input or the input's products with those weights.
    """

    sees: ClassVar[Sees] = Sees.PRODUCTS
    whole_inputs: ClassVar[bool] = False
    signal_count: ClassVar[int]
    noise_count: ClassVar[int] = 1  # Gaussian vectors in one input
    signed_by_class: ClassVar[bool]  # whether the signal of class j is j times one vector

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if "batch" in vars(cls):  # training would go on with the inputs as they were drawn
            raise InputError(
                f"{cls.__name__} is linear in signals and noise, so its batches are its training set; "
                "write `batch` in an AbstractBatching of it."
            )

    @abc.abstractmethod
    def signals(self, space: AbstractSpace) -> tuple[Float[Array, "signal signal"], Float[Array, " signal"]]:
        """The Gram matrix of the signals' directions, and the signals' lengths."""

    @abc.abstractmethod
    def noise_length(self, space: AbstractSpace) -> Float[Array, ""]:
        """The typical length of a noise vector."""

    @abc.abstractmethod
    def noise_off(self) -> bool:
        """Whether the noise is orthogonal to the signals."""

    @abc.abstractmethod
    def toss(self, key: PRNGKeyArray, training: bool) -> tuple[Array, Array, Any]:
        """One input's label, clean label and other coins."""

    @abc.abstractmethod
    def compose(
        self,
        clean_label: Array,
        coins: Any,
        signals: Float[Array, "signal column"],
        noise: Float[Array, "vector column"],
    ) -> Sequence[Float[Array, " column"]]:
        """The patches of one input, linear in the signals and the noise, by elementwise operations alone.

        So it may also be handed many inputs at once, with the sample as the last axis of everything.
        """

    def vectors(self, rows):
        return self.signal_count + rows * self.noise_count

    def truth(self, key, space):
        gram, norms = self.signals(space)
        directions, space = space.given(gram)
        return Signals(directions, norms), space

    def draw(self, key, truth, space, rows):
        coin_key, noise_key = jax.random.split(key)
        mask = jnp.arange(rows) < self.n
        noise, space = space.gaussian(
            noise_key,
            rows * self.noise_count,
            self._off(truth),
            unit_norm=True,
            real=jnp.repeat(mask, self.noise_count),
        )
        noise = self.noise_length(space) * noise
        return self._assembled(coin_key, truth.vectors, noise, mask, training=True), space

    def fresh(self, key, truth, space, count, *, training=False):
        coin_key, noise_key = jax.random.split(key)
        noise = space.fresh(noise_key, count * self.noise_count, self._off(truth), unit_norm=True)
        noise = self.noise_length(space) * noise
        mask = jnp.ones(count, bool)
        return self._assembled(coin_key, truth.vectors, noise, mask, training=training)

    def test_coins(self, key, weights_shape: tuple[int, ...], count: int) -> "Batch":
        """Test inputs before they meet any weights: labels, coins, and the normals their products come from."""
        coin_key, noise_key = jax.random.split(key)
        normals = product_normals(noise_key, weights_shape, count * self.noise_count)
        return self._tossed(coin_key, normals.reshape(count, self.noise_count, -1), jnp.ones(count, bool), False)

    def test_products(self, coins: Batch, truth, space, weights) -> tuple[Array, Array]:
        """Products of the weights with the signals and with the noise of each test input: no d-vector is made."""
        assert coins.noise is not None
        normals = coins.noise.reshape(-1, coins.noise.shape[-1])
        noise = space.fresh_products(
            None, weights, len(normals), self._off(truth), unit_norm=True, normals=normals
        )
        noise = self.noise_length(space) * noise.reshape(*coins.noise.shape[:2], -1)
        return truth.vectors @ weights.T, noise

    def patches(
        self, batch: Batch, signals: Float[Array, "signal row *one"], noise: Float[Array, "vector row sample"]
    ):
        """The patches of all inputs at once, with the sample as last axis: no vmap, elementwise throughout."""
        coins = jax.tree.map(lambda coin: jnp.moveaxis(coin, 0, -1)[..., None, :], batch.coins)
        return self.compose(batch.clean_labels[None], coins, signals, noise)

    def composed(self, batch: Batch, signals, noise):
        """The batch's inputs, built anew from other vectors (or products) with the same coins."""

        def one(clean_label, coins, noise):
            return jnp.stack(self.compose(clean_label, coins, signals, noise))

        return jax.vmap(one)(batch.clean_labels, batch.coins, noise)

    def _off(self, truth):
        return truth.directions if self.noise_off() else None

    def _assembled(self, key, signals, noise, mask, *, training):
        noise = noise.reshape(len(mask), self.noise_count, -1)
        batch = self._tossed(key, noise, mask, training)
        return eqx.tree_at(lambda b: b.inputs, batch, self.composed(batch, signals, noise))

    def _tossed(self, key, noise, mask, training):
        keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(len(mask)))
        labels, clean_labels, coins = jax.vmap(lambda one: self.toss(one, training))(keys)
        return Batch(noise, labels, clean_labels, mask, None, coins, noise)


def coin_flips(key: PRNGKeyArray, *probabilities) -> Bool[Array, " coin"]:
    """Independent coins, one for each probability of True."""
    return jax.random.uniform(key, (len(probabilities),), jnp.float32) < jnp.array(probabilities, jnp.float32)


def signed(coin: Array) -> Float[Array, "..."]:
    """+1 for True, -1 for False."""
    return jnp.where(coin, 1.0, -1.0)


def in_turn(batch: Batch) -> Batch:
    """The same inputs, of the two classes in turn; labels are flipped where they were."""
    clean = signed(jnp.arange(len(batch.mask)) % 2 == 0)
    labels = clean * batch.clean_labels * batch.labels
    return eqx.tree_at(lambda b: (b.labels, b.clean_labels), batch, (labels, clean))
