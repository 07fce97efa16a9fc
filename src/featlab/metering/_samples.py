"""What a network is metered on: inputs, the labels it was trained with, and those they were before any flip."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from featlab.core.validation import InputError
from featlab.data import Batch

_FIELDS = ("inputs", "labels", "clean_labels")


class Samples(NamedTuple):
    """Inputs and labels as arrays; `clean` is None where nothing is said about flips."""

    inputs: np.ndarray
    labels: np.ndarray
    clean: np.ndarray | None


def as_samples(data: Any, *, rounded: bool = True) -> Samples:
    """Samples from a featlab Batch, a mapping, or (inputs, labels) and perhaps (..., clean_labels).

    With `rounded`, inputs have the precision that JAX computes in.
    """
    if isinstance(data, Batch):
        real = np.asarray(data.mask)
        given = {name: np.asarray(getattr(data, name))[real] for name in _FIELDS}
    elif isinstance(data, Mapping):
        given = {name: data[name] for name in _FIELDS if data.get(name) is not None}
    elif isinstance(data, tuple | list) and len(data) in (2, 3):
        given = {name: value for name, value in zip(_FIELDS, data) if value is not None}
    else:
        given = {}
    if not {"inputs", "labels"} <= set(given):
        raise InputError("data must be (inputs, labels), (inputs, labels, clean_labels) or a featlab Batch.")
    arrays = {name: _array(name, value) for name, value in given.items()}
    lengths = {name: len(value) if value.ndim else 0 for name, value in arrays.items()}
    if len(set(lengths.values())) > 1 or not lengths["inputs"]:
        counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in lengths.items())
        raise InputError(f"data must have one label for each input, and at least one of each, got {counts}.")
    inputs = np.ascontiguousarray(arrays["inputs"])  # PyTorch takes no negative strides
    if rounded and inputs.dtype == np.float64 and not _x64():
        inputs = inputs.astype(np.float32)
    return Samples(inputs, arrays["labels"], arrays.get("clean_labels"))


def as_classes(labels: np.ndarray, outputs: int, name: str = "labels") -> np.ndarray | None:
    """Signs for one output, whole numbers for several; None where labels are numbers to be predicted."""
    if outputs == 1:
        flat = labels.reshape(len(labels), -1)
        if flat.shape[1] != 1:
            raise InputError(f"{name} must be one number for each input, as outputs are, got {labels.shape}.")
        signs, values = flat[:, 0].astype(float), set(np.unique(labels).tolist())
        return signs if values <= {-1, 1} else 2 * signs - 1 if values <= {0, 1} else None
    if labels.ndim == 2 and labels.shape[1] == outputs:
        hot = np.isin(labels, (0, 1)).all() and (labels.sum(axis=1) == 1).all()
        return labels.argmax(axis=1) if hot else None
    if labels.ndim != 1 or not (np.isin(labels, np.arange(outputs))).all():
        odd = labels.shape if labels.ndim != 1 else labels[~np.isin(labels, np.arange(outputs))][0]
        raise InputError(f"{name} must be classes, 0 to {outputs - 1}, as there are {outputs} outputs, got {odd}.")
    return labels.astype(int)


def as_targets(labels: np.ndarray, classes: np.ndarray | None, outputs: int) -> np.ndarray:
    """What a kernel should be aligned with, one row a sample: signs, centred indicators of classes, or numbers."""
    if classes is None or outputs == 1:
        return (labels if classes is None else classes).reshape(len(labels), -1).astype(float)
    return np.eye(outputs)[classes] - 1 / outputs


def finite(name: str, values: np.ndarray) -> np.ndarray:
    """The values, if all of them are finite: of NaN nothing can be read."""
    if not np.isfinite(values).all():
        raise InputError(f"The meter needs finite numbers, and {name} has NaN or infinity among its own.")
    return values


def plain(value: Any) -> np.ndarray:
    """An array of NumPy's; of PyTorch's short numbers, not all of which NumPy has, in single precision."""
    if not hasattr(value, "detach"):
        return np.asarray(value)
    tensor = value.detach().cpu()
    return (tensor.float() if tensor.is_floating_point() and tensor.element_size() < 4 else tensor).numpy()


def is_real(array: Any) -> bool:
    """Whether its numbers are real and not whole, in any precision."""
    return bool(jnp.issubdtype(array.dtype, jnp.floating))  # NumPy's own does not know bfloat16


def _array(name: str, value: Any) -> np.ndarray:
    try:
        array = plain(value)
    except (TypeError, ValueError):  # rows of several lengths
        raise InputError(f"data: {name} must be an array of numbers, got {type(value).__name__}.") from None
    if not (is_real(array) or array.dtype.kind in "biu"):
        raise InputError(f"data: {name} must be numbers, got {array.dtype}.")
    return finite(name, array)


def _x64() -> bool:
    import jax

    return bool(jax.config.jax_enable_x64)  # type: ignore
