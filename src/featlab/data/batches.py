"""Which part of the data a step sees: mini-batches of a fixed set, or fresh inputs every step."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from featlab.core.sees import Sees
from featlab.core.validation import InputError, part, whole
from featlab.data._data import AbstractDataModel
from featlab.data.signal_noise import SignalNoise


class AbstractBatching(AbstractDataModel):
    """A data model that is another one, seen a few inputs at a time.

    One whose batches hold inputs of the other model as they were drawn has no more `whole_inputs` than that model.
    """

    data: AbstractDataModel = part(AbstractDataModel, "a data model")
    size: int = whole(at_least=1, symbol="B", means="inputs a step", span=(1, 256))

    def __check_init__(self):
        if isinstance(self.data, AbstractBatching):
            raise InputError(
                f"{type(self).__name__} of a {type(self.data).__name__} makes no sense: it is batched already."
            )

    @classmethod
    def examples(cls):
        kind: Any = cls  # whose subclasses say what they are made of
        return (kind(data=SignalNoise(n=6, d=40, snr=0.5, label_flip=0.3), size=4),)

    @property
    def n(self):
        return self.data.n

    @property
    def d(self):
        return self.data.d

    def vectors(self, rows):
        return self.data.vectors(rows)

    def truth(self, key, space):
        return self.data.truth(key, space)

    def draw(self, key, truth, space, rows):
        return self.data.draw(key, truth, space, rows)

    def fresh(self, key, truth, space, count, *, training=False):
        return self.data.fresh(key, truth, space, count, training=training)

    def rate(self, space):
        return self.data.rate(space)


class Minibatches(AbstractBatching):
    """A fixed training set, seen `size` inputs at a time, in epochs, each in a new random order.

    The last batch of an epoch is smaller where `size` does not divide n.
    """

    def __init__(self, data: AbstractDataModel, size: int):
        # Written out, because n and d, which other data models are given, are those of `data` here.
        self.data, self.size = data, size

    @property
    def sees(self):
        return max(Sees.VECTORS, self.data.sees)

    @property
    def whole_inputs(self):
        return self.data.whole_inputs

    def batch(self, key, step, training, draw):
        rows = len(training.mask)
        in_epoch = (self.n + self.size - 1) // self.size
        epoch, place = step // in_epoch, step % in_epoch
        order_key = jax.random.fold_in(draw.batch_key, epoch)
        lottery = jax.random.uniform(order_key, (rows,), jnp.float32)
        order = jnp.argsort(jnp.where(training.mask, lottery, jnp.inf))
        positions = place * self.size + jnp.arange(self.size)
        return training.take(order[positions % rows], positions < self.n)


class Stream(AbstractBatching):
    """Fresh inputs of the training law every step: online learning.

    The training set that probes speak of is drawn beforehand, n inputs that are never trained on.
    """

    sees: ClassVar[Sees] = Sees.COORDINATES  # fresh d-vectors every step fill the whole space

    @property
    def whole_inputs(self):
        return self.data.whole_inputs

    def __init__(self, data: AbstractDataModel, size: int):
        self.data, self.size = data, size

    def batch(self, key, step, training, draw):
        return self.data.fresh(key, draw.truth, draw.space, self.size, training=True)
