"""The answers of a PyTorch module; torch is imported only where one is given."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np

from featlab.core.validation import InputError
from featlab.metering._network import _BLOCK, AbstractMetered, said
from featlab.metering._samples import plain


def is_module(apply: Any) -> bool:
    """Whether this is a PyTorch module, asked without importing PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(apply, torch.nn.Module)


class TorchModule(AbstractMetered):
    """A module that takes many inputs at once; parameters are its state before and after, or modules like it.

    It is read in evaluation mode, so that dropout and the statistics of a batch play no part.
    """

    def __init__(self, module: Any, before: Any, after: Any, *, features: str | None):
        torch: Any = importlib.import_module("torch")
        self._torch, self._module, self._features = torch, module, features
        self._names = [name for name, one in module.named_parameters() if one.requires_grad]
        if not self._names:
            raise InputError("The module has no parameters that train.")
        self.before, self.after = (self._state(one, name) for one, name in ((before, "before"), (after, "after")))
        if features is not None and features not in dict(module.named_modules()):
            known = ", ".join(name for name, _ in module.named_modules() if name)
            raise InputError(f"features must name a part of the module ({known}), got {features!r}.")

    def checked(self, inputs):
        few = inputs[:2]
        try:
            with self._torch.no_grad():
                found = self._called(self.before, self._tensor(few))
        except Exception as error:  # of the user's module
            raise InputError(f"The module fails for inputs of shape {few.shape}: {said(error)}.") from error
        if not isinstance(found, self._torch.Tensor) or not found.is_floating_point():
            raise InputError(f"A module must return a tensor of real numbers, got {type(found).__name__}.")
        _columns(found, len(few))
        self.features(self.before, few)
        return self

    def arrays(self, params):
        return {name: plain(params[name]).astype(np.float64) for name in self._names}

    def outputs(self, params, inputs):
        with self._torch.no_grad():
            found = [_columns(self._called(params, self._tensor(one)), len(one)) for one in _blocks(inputs)]
        return np.concatenate(found)

    def linear_change(self, inputs):
        return np.concatenate([self._linear_change(one) for one in _blocks(inputs)])

    def _linear_change(self, inputs):
        x, fixed = self._tensor(inputs), self._fixed(self.before)
        start = {name: self.before[name] for name in self._names}
        move = {name: self.after[name] - self.before[name] for name in self._names}

        def outputs(params):
            return self._called({**fixed, **params}, x)

        return _columns(self._torch.func.jvp(outputs, (start,), (move,))[1], len(inputs))

    def parameter_gradients(self, params, inputs, output):
        found = self._gradients(params, inputs, output, argument=0)
        rows = [found[name].reshape(len(inputs), -1) for name in self._names]
        return plain(self._torch.cat(rows, dim=1))

    def input_gradients(self, params, inputs, output):
        found = [self._gradients(params, one, output, argument=1) for one in _blocks(inputs)]
        return np.concatenate([plain(one) for one in found]).reshape(len(inputs), -1)

    def features(self, params, inputs):
        if self._features is None:
            return None
        seen: list[Any] = []
        part = dict(self._module.named_modules())[self._features]
        handle = part.register_forward_hook(lambda module, given, value: seen.append(value))
        try:
            self.outputs(params, inputs)
        finally:
            handle.remove()
        lengths = [len(one) if isinstance(one, self._torch.Tensor) and one.ndim else None for one in seen]
        if lengths != [len(one) for one in _blocks(inputs)]:
            raise InputError(
                f"features={self._features!r} must be a part that runs once and returns a tensor with a row for "
                "each input."
            )
        return np.concatenate([plain(one) for one in seen]).reshape(len(inputs), -1).astype(np.float64)

    def _state(self, given: Any, name: str) -> dict[str, Any]:
        state = given.state_dict() if isinstance(given, self._torch.nn.Module) else given
        # A state lists weights that two parts share under both names, and they are to be given under one.
        kept = [name for name, _ in (*self._module.named_parameters(), *self._module.named_buffers())]
        own = {key: value for key, value in self._module.state_dict().items() if key in kept}
        if not isinstance(state, dict) or any(
            key not in state or np.shape(state[key]) != tuple(own[key].shape) for key in own
        ):
            raise InputError(f"params_{name} must be a state_dict of the module, or a module of the same kind.")
        return {key: self._torch.as_tensor(state[key]).detach().clone().to(own[key].device) for key in own}

    def _fixed(self, params):
        return {name: value for name, value in params.items() if name not in self._names}

    def _tensor(self, inputs):
        like = self.before[self._names[0]]
        tensor = self._torch.as_tensor(inputs, device=like.device)
        return tensor.to(like.dtype) if tensor.is_floating_point() else tensor

    def _called(self, params, x):
        modes = {part: part.training for part in self._module.modules()}
        self._module.eval()
        try:
            return self._torch.func.functional_call(self._module, params, (x,))
        finally:
            for part, mode in modes.items():
                part.training = mode

    def _gradients(self, params, inputs, output, argument):
        fixed = self._fixed(params)

        def one(trained, x):
            return self._called({**fixed, **trained}, x[None]).reshape(-1)[output]

        func, trained = self._torch.func, {name: params[name] for name in self._names}
        rows = func.vmap(func.grad(one, argnums=argument), in_dims=(None, 0))
        return rows(trained, self._tensor(inputs))


def _blocks(inputs: np.ndarray) -> list[np.ndarray]:
    return [inputs[i : i + _BLOCK] for i in range(0, len(inputs), _BLOCK)]


def _columns(outputs: Any, count: int) -> np.ndarray:
    outputs = plain(outputs).astype(np.float64)
    if count == 1 and outputs.ndim == 0:  # squeezed
        outputs = outputs[None]
    if outputs.ndim > 2 or outputs.shape[:1] != (count,):
        raise InputError(
            f"A module must return a number or a vector for each of {count} inputs, got {outputs.shape}."
        )
    return outputs.reshape(count, -1)
