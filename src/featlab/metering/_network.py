"""What the meter asks of a network, and the answers of a JAX function."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from featlab.core.validation import InputError
from featlab.metering._samples import is_real

_BLOCK = 256  # inputs that a network sees at a time


class AbstractMetered(abc.ABC):
    """A network before and after training. Outputs are columns, also where there is only one."""

    before: Any  # parameters, as the methods take them
    after: Any

    @abc.abstractmethod
    def checked(self, inputs: np.ndarray) -> AbstractMetered:
        """Itself, if it takes such inputs and returns a number or a vector for each."""

    @abc.abstractmethod
    def arrays(self, params: Any) -> dict[str, np.ndarray]:
        """Everything that trains, by name."""

    @abc.abstractmethod
    def outputs(self, params: Any, inputs: np.ndarray) -> np.ndarray:
        """(sample, output)."""

    @abc.abstractmethod
    def linear_change(self, inputs: np.ndarray) -> np.ndarray:
        r"""$J_0 (\theta - \theta_0)$, by which the linearisation at the start says outputs have changed."""

    @abc.abstractmethod
    def parameter_gradients(self, params: Any, inputs: np.ndarray, output: int) -> np.ndarray:
        """(sample, parameter), all parameters in one row."""

    @abc.abstractmethod
    def input_gradients(self, params: Any, inputs: np.ndarray, output: int) -> np.ndarray:
        """(sample, coordinate)."""

    @abc.abstractmethod
    def features(self, params: Any, inputs: np.ndarray) -> np.ndarray | None:
        """(sample, feature), where it was said what the features are."""


class JaxNetwork(AbstractMetered):
    """A function of parameters and one input, or with `batched` of many; parameters are any tree."""

    def __init__(self, apply: Callable, before: Any, after: Any, *, batched: bool, features: Callable | None):
        (self.before, fixed), (self.after, later) = map(_partitioned, (before, after))
        shapes = [jax.tree.map(jnp.shape, tree) for tree in (self.before, self.after)]
        if shapes[0] != shapes[1]:
            raise InputError("params_before and params_after must have the same names and shapes.")
        if not jax.tree.leaves(self.before):
            raise InputError("params_before must hold arrays of real numbers, and holds none.")
        if _numbers(fixed) != _numbers(later):
            raise InputError("A number of params_before is another in params_after; what trains must be an array.")
        self._one = _One(apply, fixed, batched)
        self._feature = None if features is None else _One(features, fixed, batched)

    def checked(self, inputs: np.ndarray) -> JaxNetwork:
        hint = "" if self._one.batched else "; if it takes many inputs at once, say batched=True"
        value = self._shape("apply", self._one, inputs[0], hint)
        if len(value.shape) > 1:
            raise InputError(
                f"apply(params, input) must return a number or a vector for one input, got {value.shape}{hint}."
            )
        if not is_real(value):
            raise InputError(f"apply(params, input) must return real numbers, got {value.dtype}.")
        if self._feature is not None:
            self._shape("features", self._feature, inputs[0], hint)
        return self

    def _shape(self, name: str, one: _One, x: np.ndarray, hint: str):
        try:
            return eqx.filter_eval_shape(one.value, self.before, x)
        except Exception as error:  # of the user's function
            raise InputError(
                f"{name}(params, input) fails for one input of shape {x.shape}: {said(error)}{hint}."
            ) from error

    def arrays(self, params):
        leaves, _ = jax.tree_util.tree_flatten_with_path(params)
        names = [jax.tree_util.keystr(path, simple=True, separator=".") or "parameters" for path, _ in leaves]
        return {name: np.asarray(leaf, np.float64) for name, (_, leaf) in zip(names, leaves)}

    def outputs(self, params, inputs):
        return np.asarray(_outputs(self._one, params, inputs), np.float64)

    def linear_change(self, inputs):
        return np.asarray(_linear_change(self._one, self.before, self.after, inputs), np.float64)

    def parameter_gradients(self, params, inputs, output):
        return np.asarray(_parameter_gradients(self._one, params, inputs, jnp.asarray(output)))

    def input_gradients(self, params, inputs, output):
        return np.asarray(_input_gradients(self._one, params, inputs, jnp.asarray(output)))

    def features(self, params, inputs):
        return None if self._feature is None else np.asarray(_outputs(self._feature, params, inputs), np.float64)


class _One(eqx.Module):
    """A function of one input with a vector as its value, which compiled programs are remembered by."""

    function: Callable
    fixed: Any  # what does not train of the parameters
    batched: bool

    def value(self, params, x):
        params = eqx.combine(params, self.fixed)
        return jnp.asarray(self.function(params, x[None])[0] if self.batched else self.function(params, x))

    def __call__(self, params, x):
        return self.value(params, x).reshape(-1)


@eqx.filter_jit
def _outputs(one: _One, params, inputs):
    return jax.lax.map(lambda x: one(params, x), inputs, batch_size=_BLOCK)


@eqx.filter_jit
def _linear_change(one: _One, before, after, inputs):
    move = jax.tree.map(jnp.subtract, after, before)

    def change(x):
        return jax.jvp(lambda params: one(params, x), (before,), (move,))[1]

    return jax.lax.map(change, inputs, batch_size=_BLOCK)


@eqx.filter_jit
def _parameter_gradients(one: _One, params, inputs, output):
    gradient = jax.grad(lambda params, x: one(params, x)[output])
    found = jax.tree.leaves(jax.vmap(gradient, in_axes=(None, 0))(params, inputs))
    return jnp.concatenate([leaf.reshape(len(inputs), -1) for leaf in found], axis=1)


@eqx.filter_jit
def _input_gradients(one: _One, params, inputs, output):
    gradient = jax.grad(lambda x: one(params, x)[output])
    return jax.lax.map(gradient, inputs, batch_size=_BLOCK).reshape(len(inputs), -1)


def _partitioned(tree: Any) -> tuple[Any, Any]:
    """The arrays that train, and the rest: an Equinox module holds functions too, and numbers such as a rate."""
    tree = jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf, tree)
    return eqx.partition(tree, eqx.is_inexact_array)


def _numbers(tree: Any) -> list[float]:
    return [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, float)]


def said(error: BaseException) -> str:
    """The kind of an error and the first line of its words."""
    words = (str(error).strip().splitlines() or [""])[0].rstrip(".")
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
