"""The meter: one network before and after training, on one set of samples."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from featlab.fields import InputError
from featlab.metering import measures
from featlab.metering._network import AbstractMetered, JaxNetwork
from featlab.metering._samples import as_classes, as_samples, as_targets
from featlab.metering._torch import TorchModule, is_module
from featlab.metering.reading import Margins, Reading, Row, judged
from featlab.progress import progress_bar

_NUMBERS = 20_000_000  # of gradients that are held at a time


def meter(
    apply: Callable,
    params_before: Any,
    params_after: Any,
    data: Any,
    *,
    batched: bool = False,
    features: Callable | str | None = None,
    weights: Callable | None = None,
    samples: int = 200,
    progress: bool | None = None,
) -> Reading:
    r"""Lazy or rich, learnt or memorised: what training did to a network, read off its parameters and outputs.

    `apply(params, input)` is any JAX function of parameters (any tree of arrays, an Equinox module too) and one
    input, or with `batched` of many; or a PyTorch module, and then parameters are its states. It returns a number
    or one for each class. `data` is (inputs, labels), with `clean_labels` as a third where some were flipped, or a
    featlab Batch. Labels are signs for one output, classes 0, 1, ... for several.

    What needs gradients is read on at most `samples` of the inputs, drawn once for all. `features(params, input)`,
    or for PyTorch the name of the part that makes them, adds the effective rank of features; `weights(params)`
    says which matrix, with a column for each coordinate of an input, the outer product of gradients is compared
    with, where it is not the first that fits.
    """
    began = time.perf_counter()
    if not isinstance(samples, int) or isinstance(samples, bool) or samples < 2:
        raise InputError(f"meter(samples=) must be a whole number of at least 2, got {samples!r}.")
    inputs, labels, clean = as_samples(data)
    network = _network(apply, params_before, params_after, batched, features, inputs)
    chosen = np.sort(np.random.default_rng(0).permutation(len(inputs))[:samples])
    with progress_bar("metering", 1, shown=progress, unit="parts") as tell:
        measured = _Measured(network, inputs, chosen, tell)
        outputs = measured.both(lambda params: network.outputs(params, inputs))
        columns = outputs[0].shape[1]
        measured.parts(4 * columns + 2)
        classes = as_classes(labels, columns)
        flipped = None if clean is None else _flipped(classes, as_classes(clean, columns, "clean_labels"))
        change, linear = (outputs[1] - outputs[0])[chosen], network.linear_change(inputs[chosen])
        measured.done(1)
        kernels = measured.both(lambda params: measured.kernel(params, columns))
        agops = _agops(measured, columns, inputs)
        first = _first_matrices(network, (params_before, params_after), weights, int(np.prod(inputs.shape[1:])))
        seen = measured.both(lambda params: network.features(params, inputs[chosen]))
    targets = as_targets(labels, classes, columns)[chosen]
    rows = [*_movements(network), *_lazy_rows(change, linear, kernels, targets)]
    if clean is not None and flipped is not None and flipped.any():
        cleaned = as_targets(clean, as_classes(clean, columns, "clean_labels"), columns)[chosen]
        rows.append(_alignment("clean_alignment", "its alignment with the clean labels", kernels, cleaned))
    rows += _feature_rows(agops, first, kernels, seen)
    margins = None
    if classes is not None:
        before, after = (measures.margins(one, classes) for one in outputs)
        margins = Margins(before, after, flipped)
        rows += margins.rows()
    values = {row.name: row.after for row in rows}
    regime, sentence = judged(values["linear_departure"], values["kernel_movement"], values["total_movement"])
    spectra = {} if agops is None else {"AGOP, before": agops[0], "AGOP, after": agops[1]}
    spectra |= {} if first is None else {"W^T W, after": first[1].T @ first[1]}
    return Reading(
        regime=regime,
        sentence=sentence,
        rows=tuple(rows),
        margins=margins,
        change=change,
        linear_change=linear,
        spectra={name: measures.eigenvalues(one) for name, one in spectra.items()},
        notes=_notes(agops, first, classes),
        inputs=len(inputs),
        samples=len(chosen),
        parameters=sum(one.size for one in network.arrays(network.before).values()),
        seconds=time.perf_counter() - began,
    )


class _Measured:
    """A network on the chosen inputs, and how much of the work is done."""

    def __init__(self, network: AbstractMetered, inputs: np.ndarray, chosen: np.ndarray, tell: Callable):
        self.network, self.chosen, self._tell = network, inputs[chosen], tell
        self._done, self._total = 0.0, 1.0

    def parts(self, total: float) -> None:
        self._total = total

    def done(self, parts: float) -> None:
        self._done += parts
        self._tell(min(self._done / self._total, 1.0))

    def both(self, read: Callable) -> tuple[Any, Any]:
        return read(self.network.before), read(self.network.after)

    def kernel(self, params: Any, columns: int) -> np.ndarray:
        r"""$K_{ij} = \sum_c \langle \nabla_\theta f_c(x_i), \nabla_\theta f_c(x_j) \rangle$, block by block."""
        count = len(self.chosen)
        size = sum(one.size for one in self.network.arrays(params).values())
        block = max(1, min(count, _NUMBERS // (2 * size)))
        blocks = [slice(i, min(i + block, count)) for i in range(0, count, block)]
        kernel = np.zeros((count, count))
        for output in range(columns):
            for k, here in enumerate(blocks):
                rows = self.network.parameter_gradients(params, self.chosen[here], output)
                kernel[here, here] += rows @ rows.T
                for there in blocks[:k]:
                    products = rows @ self.network.parameter_gradients(params, self.chosen[there], output).T
                    kernel[here, there] += products
                    kernel[there, here] += products.T
                self.done(1 / len(blocks))
        return kernel

    def agop(self, params: Any, columns: int) -> np.ndarray:
        r"""$\frac1n \sum_i \sum_c \nabla_x f_c(x_i) \nabla_x f_c(x_i)^\top$."""
        total: Any = 0.0
        for output in range(columns):
            rows = self.network.input_gradients(params, self.chosen, output).astype(np.float64)
            total = total + measures.outer_products(rows)
            self.done(1)
        return total


def _network(apply, before, after, batched, features, inputs) -> AbstractMetered:
    if is_module(apply):
        if features is not None and not isinstance(features, str):
            raise InputError("meter(features=) of a PyTorch module must be the name of one of its parts.")
        return TorchModule(apply, before, after, features=features)
    if not callable(apply):
        raise InputError(f"meter(apply=) must be a function of parameters and an input, got {apply!r}.")
    if features is not None and not callable(features):
        raise InputError(f"meter(features=) must be a function of parameters and an input, got {features!r}.")
    return JaxNetwork(apply, before, after, batched=batched, features=features).checked(inputs)


def _flipped(classes: np.ndarray | None, clean: np.ndarray | None) -> np.ndarray | None:
    return None if classes is None or clean is None else classes != clean


def _agops(measured: _Measured, columns: int, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    if not np.issubdtype(inputs.dtype, np.floating):
        return None  # no gradients in words of a vocabulary
    return measured.both(lambda params: measured.agop(params, columns))


def _first_matrices(network: AbstractMetered, given, weights: Callable | None, d: int):
    """The matrix that meets the input, before and after, with a column for each of its coordinates."""
    if weights is not None:
        found = [np.asarray(_plain(weights(params)), np.float64) for params in given]
        if any(one.ndim != 2 or one.shape[1] != d for one in found):
            raise InputError(
                f"meter(weights=) must return a matrix with {d} columns, one for each coordinate of an input, got "
                f"the shape {found[0].shape}."
            )
        return found[0], found[1]
    before, after = network.arrays(network.before), network.arrays(network.after)
    for name, one in before.items():
        if one.ndim == 2 and d in one.shape:
            turned = one.shape[1] != d
            return (one.T, after[name].T) if turned else (one, after[name])
    return None


def _plain(value: Any) -> Any:
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def _movements(network: AbstractMetered):
    before, after = network.arrays(network.before), network.arrays(network.after)
    everything = measures.movement(list(before.values()), list(after.values()))
    yield Row("total_movement", "all parameters have moved by |θ - θ₀| / |θ₀|", None, everything)
    for name, one in before.items():
        if one.ndim >= 2 and np.any(one):
            moved = measures.movement([one], [after[name]])
            yield Row(f"movement of {name}", f"{name} has moved by |W - W₀| / |W₀|", None, moved)


def _lazy_rows(change, linear, kernels, targets):
    missed = measures.departure(change, linear)
    yield Row("linear_departure", "the linearisation misses |Δf - J₀Δθ| / |Δf|", None, missed)
    moved = measures.movement([kernels[0]], [kernels[1]])
    yield Row("kernel_movement", "the tangent kernel has moved by |K - K₀| / |K₀|", None, moved)
    yield Row("kernel_similarity", "its cosine with the one at the start", None, measures.cosine(*kernels))
    yield _alignment("kernel_alignment", "its alignment with the labels", kernels, targets)


def _alignment(name, words, kernels, targets):
    return Row(name, words, *(measures.target_alignment(one, targets) for one in kernels))


def _feature_rows(agops, first, kernels, seen):
    if agops is not None and first is not None:
        grams = [one.T @ one for one in first]
        plain = [measures.cosine(one, gram) for one, gram in zip(agops, grams)]
        roots = [measures.cosine(measures.root(one), gram) for one, gram in zip(agops, grams)]
        yield Row("agop_correlation", "cosine of AGOP with WᵀW of the first layer", *plain)
        yield Row("agop_root_correlation", "cosine of AGOP^(1/2) with WᵀW", *roots)
        yield Row("weight_rank", "effective rank of WᵀW", *map(measures.effective_rank, grams))
    if agops is not None:
        yield Row("agop_rank", "effective rank of AGOP", *map(measures.effective_rank, agops))
    yield Row("kernel_rank", "effective rank of the tangent kernel", *map(measures.effective_rank, kernels))
    if seen[0] is not None:
        centred = [one - one.mean(axis=0) for one in seen]
        ranks = [measures.effective_rank(one @ one.T) for one in centred]
        yield Row("feature_rank", "effective rank of the centred features", *ranks)


def _notes(agops, first, classes):
    notes = []
    if agops is None:
        notes.append("inputs are whole numbers, in which there is no gradient: no AGOP")
    elif first is None:
        notes.append("no matrix has a side as long as an input: AGOP has nothing to be compared with")
    if classes is None:
        notes.append("labels are no classes: no margins")
    return tuple(notes)
