r"""Images and their labels: handwritten digits that come with featlab, MNIST and CIFAR-10 from a folder of yours.

The digits (`digits.npz`) are the test set of "Optical Recognition of Handwritten Digits" by E. Alpaydin and
C. Kaynak (1998), UCI Machine Learning Repository, https://doi.org/10.24432/C50P49, licensed under CC BY 4.0; the
copy is scikit-learn's, stored as whole numbers and otherwise unchanged.
"""

from __future__ import annotations

import functools
import gzip
import io
import pickle
import tarfile
import zlib
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from featlab.core.sees import Sees
from featlab.core.validation import InputError, whole
from featlab.data._data import AbstractDataModel, Batch, signed
from featlab.data._fields import flipped_labels, sample_size

_TESTED = 3  # one image in three is kept for tests
_DAMAGED = (OSError, EOFError, zlib.error, tarfile.TarError)


class Images(NamedTuple):
    """Images as they were stored, one a row, and which class each belongs to."""

    pixels: np.ndarray  # whole numbers: (image, row, column), with a last axis for colours where there are some
    labels: np.ndarray

    def rows(self, like: Images | None = None) -> np.ndarray:
        """Each image as one vector; all pixels together have mean 0 and variance 1, in this set or in `like`."""
        pixels = (self if like is None else like).pixels
        values = self.pixels.reshape(len(self.labels), -1).astype(np.float32)
        return (values - np.float32(pixels.mean())) / np.float32(pixels.std())


@functools.cache
def digits() -> Images:
    """1797 handwritten digits of 8 x 8 pixels from 0 to 16 (Alpaydin and Kaynak, 1998; CC BY 4.0)."""
    with np.load(Path(__file__).with_name("digits.npz")) as stored:
        pixels, labels = stored["pixels"], stored["labels"].astype(np.int32)
    for array in (pixels, labels):  # they are kept, and given to everybody
        array.flags.writeable = False
    return Images(pixels, labels)


def mnist(folder: str | Path, *, train: bool = True) -> Images:
    """MNIST from its four files, `train-images-idx3-ubyte` and so on, as they are or with `.gz`.

    Fashion-MNIST and Kuzushiji-MNIST come in the same files.
    """
    part = "train" if train else "t10k"
    pixels = _idx(_found(folder, f"{part}-images-idx3-ubyte", f"{part}-images.idx3-ubyte"), 3)
    labels = _idx(_found(folder, f"{part}-labels-idx1-ubyte", f"{part}-labels.idx1-ubyte"), 1)
    if len(pixels) != len(labels):
        raise InputError(f"mnist: {str(folder)!r} has {len(pixels)} {part} images and {len(labels)} labels.")
    return Images(pixels, labels.astype(np.int32))


def cifar10(folder: str | Path, *, train: bool = True) -> Images:
    """CIFAR-10 from its Python batches, `data_batch_1` to `data_batch_5` and `test_batch`.

    They are looked for in the folder, in its `cifar-10-batches-py` and in `cifar-10-python.tar.gz`. Batches are
    pickled; nothing but arrays, lists, numbers and text is taken out of them.
    """
    names = [f"data_batch_{i}" for i in range(1, 6)] if train else ["test_batch"]
    batches = [_batch(name, _batch_bytes(_existing(folder), name)) for name in names]
    pixels = np.concatenate([pixels for pixels, _ in batches])
    # A row holds all of red, then green, then blue.
    return Images(
        pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), np.concatenate([labels for _, labels in batches])
    )


class Pair(eqx.Module):
    """The images of two digits in an order of their own for each seed; the last ones are for tests."""

    inputs: Float[Array, "image column"]
    labels: Float[Array, " image"]  # 1 for the first digit, -1 for the second


class DigitPair(AbstractDataModel):
    r"""Two handwritten digits to be told apart: $y = 1$ for digit $a$, $-1$ for digit $b$.

    An input is one patch of 64 pixels, which over all digits have mean 0 and variance 1. Every seed puts a third
    of the images (there are about 360) aside for tests, and draws n others without repetition; each of their
    labels is flipped with probability $p$. Test labels are not flipped. Holdout sets are drawn as the training set
    is, from the same images.
    """

    sees: ClassVar[Sees] = Sees.COORDINATES
    n: int = sample_size(default=200)
    a: int = whole(default=3, at_least=0, symbol="a", means="digit of the label 1", span=(0, 9))
    b: int = whole(default=8, at_least=0, symbol="b", means="digit of the label -1", span=(0, 9))
    label_flip: float = flipped_labels()

    def __check_init__(self):
        for name in ("a", "b"):
            digit = getattr(self, name)
            if isinstance(digit, int) and digit > 9:
                raise InputError(f"DigitPair.{name} must be a digit, 0 to 9, got {digit}.")
        if isinstance(self.a, int) and self.a == self.b:
            raise InputError(f"DigitPair.b must be another digit than a, got {self.b} twice.")
        if isinstance(self.n, int) and isinstance(self.a, int) and self.n > self._trainable():
            raise InputError(
                f"DigitPair.n must be at most {self._trainable()}, as two of three images of a {self.a} or a "
                f"{self.b} are for training, got {self.n}."
            )

    @classmethod
    def examples(cls):
        return (cls(n=6, label_flip=0.3),)  # type: ignore  (d is no field here)

    @property
    def d(self):
        return 64.0

    def truth(self, key, space):
        inputs, labels = _pair(self.a, self.b)
        order = _shuffled(key, len(labels))
        return Pair(jnp.asarray(inputs, float)[order], jnp.asarray(labels, float)[order]), space

    def draw(self, key, truth, space, rows):
        order_key, flip_key = jax.random.split(key)
        order = _shuffled(order_key, self._trainable())
        chosen = order[jnp.arange(rows) % len(order)]
        return self._batch(flip_key, truth, chosen, jnp.arange(rows) < self.n, self.label_flip), space

    def fresh(self, key, truth, space, count, *, training=False):
        order_key, flip_key = jax.random.split(key)
        first, last = (0, self._trainable()) if training else (self._trainable(), len(truth.labels))
        order = first + _shuffled(order_key, last - first)
        # All of them in turn: a count beyond their number sees each equally often.
        chosen = order[jnp.arange(count) % len(order)]
        return self._batch(flip_key, truth, chosen, jnp.ones(count, bool), self.label_flip if training else 0.0)

    def _trainable(self) -> int:
        images = len(_pair(self.a, self.b)[1])
        return images - images // _TESTED

    def _batch(self, key, truth, chosen, mask, flip):
        keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(len(mask)))
        flipped = jax.vmap(lambda one: jax.random.uniform(one, (), jnp.float32))(keys) < flip
        clean = truth.labels[chosen]
        return Batch(truth.inputs[chosen][:, None], clean * signed(~flipped), clean, mask)


@functools.cache
def _pair(a: int, b: int) -> tuple[np.ndarray, np.ndarray]:
    images = digits()
    chosen = np.isin(images.labels, (a, b))
    return images.rows()[chosen], np.where(images.labels[chosen] == a, 1.0, -1.0)


def _shuffled(key, count: int) -> Array:
    return jnp.argsort(jax.random.uniform(key, (count,), jnp.float32))


# ---- files


def _existing(folder: str | Path) -> Path:
    if not Path(folder).is_dir():
        raise InputError(f"The folder {str(folder)!r} is not there; give that of the data set's files.")
    return Path(folder)


def _found(folder: str | Path, *names: str) -> Path:
    for path in (_existing(folder) / f"{name}{ending}" for name in names for ending in ("", ".gz")):
        if path.is_file():
            return path
    raise InputError(f"{str(folder)!r} has no file {names[0]!r}, with or without .gz.")


def _idx(path: Path, axes: int) -> np.ndarray:
    """An array of bytes: two zeros, the kind 8, how many axes, the length of each in four bytes, the numbers."""
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except _DAMAGED as error:
        raise _unreadable(path, error) from None
    shape = np.frombuffer(data[4 : 4 + 4 * axes], ">u4").astype(int) if len(data) >= 4 + 4 * axes else ()
    if data[:4] != bytes((0, 0, 8, axes)) or len(data) != 4 + 4 * axes + np.prod(shape):
        raise InputError(f"{str(path)!r} is no idx file of bytes with {axes} axes, or not all of one.")
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)


def _batch_bytes(folder: Path, name: str) -> bytes:
    archive = folder / "cifar-10-python.tar.gz"
    plain = [path for path in (folder / name, folder / "cifar-10-batches-py" / name) if path.is_file()]
    try:
        if plain:
            return plain[0].read_bytes()
        if archive.is_file():
            with tarfile.open(archive) as packed:
                member = next((one for one in packed if one.isfile() and Path(one.name).name == name), None)
                stored = None if member is None else packed.extractfile(member)
                if stored is not None:
                    return stored.read()
    except _DAMAGED as error:
        raise _unreadable((*plain, archive)[0], error) from None
    raise InputError(f"{str(folder)!r} has no file {name!r}, and no {archive.name!r} that holds it.")


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(f"{str(path)!r} cannot be unpacked: {str(error).rstrip('.')}.")


def _batch(name: str, data: bytes) -> tuple[np.ndarray, np.ndarray]:
    try:
        stored = _ArraysOnly(io.BytesIO(data), encoding="bytes").load()
        stored = {key.decode() if isinstance(key, bytes) else key: value for key, value in stored.items()}
        pixels, labels = np.asarray(stored["data"], np.uint8), np.asarray(stored["labels"], np.int32)
    except InputError:
        raise
    except Exception as error:  # a damaged pickle may raise anything
        raise InputError(f"{name!r} is no batch of CIFAR-10: {type(error).__name__}: {error}.") from None
    if labels.ndim != 1 or pixels.shape != (len(labels), 3072):
        raise InputError(
            f"{name!r} must hold images of 3072 bytes, one for each label, got the shapes {pixels.shape} and "
            f"{labels.shape}."
        )
    return pixels, labels


class _ArraysOnly(pickle.Unpickler):
    """Reads arrays, lists, numbers and text; a pickle that asks for anything else is refused, not obeyed."""

    _ALLOWED: ClassVar[set[tuple[str, str]]] = {
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy.core.numeric", "_frombuffer"),
        ("numpy._core.numeric", "_frombuffer"),
        ("_codecs", "encode"),
    }

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if (module_name, global_name) not in self._ALLOWED:
            raise InputError(f"A batch of CIFAR-10 holds arrays alone; this asks for {module_name}.{global_name}.")
        return super().find_class(module_name.replace("numpy.core", "numpy._core"), global_name)
