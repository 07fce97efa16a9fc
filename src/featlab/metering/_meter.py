"""The meter: one network before and after training, on one set of samples."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from featlab.core.validation import InputError
from featlab.engine.progress import progress_bar
from featlab.metering import measures
from featlab.metering._network import AbstractMetered, JaxNetwork, said
from featlab.metering._samples import as_classes, as_samples, as_targets, finite, is_real, plain
from featlab.metering._torch import TorchModule, is_module
from featlab.metering.reading import Margins, Reading, Row, judged

_NUMBERS = 20_000_000  # of gradients that are held at a time
_LONGEST = 5000  # input of which the square matrix AGOP is made


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
    with, where it is not the first that fits; names of a dictionary count in alphabetical order.
    """
    began = time.perf_counter()
    if not isinstance(samples, int | np.integer) or isinstance(samples, bool) or samples < 2:
        raise InputError(f"meter(samples=) must be a whole number of at least 2, got {samples!r}.")
    if weights is not None and not callable(weights):
        raise InputError(f"meter(weights=) must be a function of parameters, got {type(weights).__name__}.")
    inputs, labels, clean = as_samples(data, rounded=not is_module(apply))
    network = _network(apply, params_before, params_after, batched, features).checked(inputs)
    for which, params in (("params_before", network.before), ("params_after", network.after)):
        for name, array in network.arrays(params).items():
            finite(f"{name} of {which}", array)
    lacking = _lacking(inputs)
    first = None if lacking else _first_matrix(network, (params_before, params_after), weights, inputs[0].size)
    chosen = np.sort(np.random.default_rng(0).permutation(len(inputs))[:samples])
    with progress_bar("metering", 1, shown=progress, unit="parts") as tell:
        measured = _Measured(network, inputs, chosen, tell)
        outputs = measured.both(lambda params: finite("the output", network.outputs(params, inputs)))
        columns = outputs[0].shape[1]
        measured.parts(4 * columns + 2)
        classes = as_classes(labels, columns)
        flipped = None if clean is None else _flipped(classes, as_classes(clean, columns, "clean_labels"))
        change, linear = (outputs[1] - outputs[0])[chosen], finite("J₀Δθ", network.linear_change(inputs[chosen]))
        measured.done(1)
        kernels = measured.both(lambda params: measured.kernel(params, columns))
        agops = None if lacking else measured.both(lambda params: measured.agop(params, columns))
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
    decisive = ("linear_departure", "kernel_movement", "total_movement", "kernel_similarity")
    regime, sentence = judged(*(values[name] for name in decisive))
    spectra = {} if agops is None else {"AGOP, before": agops[0], "AGOP, after": agops[1]}
    spectra |= {} if first is None else {"W^T W, after": first.grams[1]}
    return Reading(
        regime=regime,
        sentence=sentence,
        rows=tuple(rows),
        margins=margins,
        change=change,
        linear_change=linear,
        spectra={name: measures.eigenvalues(one) for name, one in spectra.items()},
        notes=_notes(lacking, first, classes),
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
                rows = self._rows(params, here, output)
                kernel[here, here] += rows @ rows.T
                for there in blocks[:k]:
                    products = rows @ self._rows(params, there, output).T
                    kernel[here, there] += products
                    kernel[there, here] += products.T
                self.done(1 / len(blocks))
        return finite("the tangent kernel", kernel)

    def _rows(self, params: Any, block: slice, output: int) -> np.ndarray:
        rows = self.network.parameter_gradients(params, self.chosen[block], output)
        return rows.astype(np.promote_types(rows.dtype, np.float32))

    def agop(self, params: Any, columns: int) -> np.ndarray:
        r"""$\frac1n \sum_i \sum_c \nabla_x f_c(x_i) \nabla_x f_c(x_i)^\top$."""
        total: Any = 0.0
        for output in range(columns):
            rows = self.network.input_gradients(params, self.chosen, output).astype(np.float64)
            total = total + measures.outer_products(rows)
            self.done(1)
        return finite("AGOP", total)


def _network(apply, before, after, batched, features) -> AbstractMetered:
    if is_module(apply):
        if features is not None and not isinstance(features, str):
            raise InputError("meter(features=) of a PyTorch module must be the name of one of its parts.")
        return TorchModule(apply, before, after, features=features)
    if not callable(apply):
        raise InputError(f"meter(apply=) must be a function of parameters and an input, got {apply!r}.")
    if features is not None and not callable(features):
        raise InputError(f"meter(features=) must be a function of parameters and an input, got {features!r}.")
    return JaxNetwork(apply, before, after, batched=batched, features=features)


def _flipped(classes: np.ndarray | None, clean: np.ndarray | None) -> np.ndarray | None:
    if classes is not None and clean is None:
        raise InputError("clean_labels must be classes, as labels are.")
    return None if classes is None else classes != clean


def _lacking(inputs: np.ndarray) -> str | None:
    """Why there is no AGOP, if so."""
    if not is_real(inputs):
        return "inputs are whole numbers, in which there is no gradient: no AGOP"
    if inputs[0].size > _LONGEST:
        return f"inputs have {inputs[0].size} coordinates, more than {_LONGEST}: no AGOP, which has their square"
    return None


class _First(NamedTuple):
    """The matrix W that meets the input: its name, W'W before and after, and which others would fit."""

    name: str
    grams: list[np.ndarray]
    others: list[str]


def _first_matrix(network: AbstractMetered, given, weights: Callable | None, d: int) -> _First | None:
    if weights is not None:
        try:
            found = [plain(weights(params)).astype(np.float64) for params in given]
        except Exception as error:  # of the user's function
            raise InputError(f"meter(weights=) fails: {said(error)}.") from error
        if any(one.ndim != 2 or one.shape[1] != d for one in found):
            raise InputError(
                f"meter(weights=) must return a matrix with {d} columns, one for each coordinate of an input, got "
                f"the shape {found[0].shape}."
            )
        return _First("weights(params)", [finite("weights(params)", one).T @ one for one in found], [])
    both = [network.arrays(params) for params in (network.before, network.after)]
    fitting = [name for name, one in both[0].items() if one.ndim == 2 and d in one.shape]
    if not fitting:
        return None
    name, *others = fitting
    turned = both[0][name].shape[1] != d
    return _First(name, [one[name] @ one[name].T if turned else one[name].T @ one[name] for one in both], others)


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
        cosines = [measures.cosine(one, gram) for one, gram in zip(agops, first.grams)]
        roots = [measures.cosine(measures.root(one), gram) for one, gram in zip(agops, first.grams)]
        yield Row("agop_correlation", f"cosine of AGOP with WᵀW, W = {first.name}", *cosines)
        yield Row("agop_root_correlation", "cosine of AGOP^(1/2) with WᵀW", *roots)
        yield Row("weight_rank", "effective rank of WᵀW", *map(measures.effective_rank, first.grams))
    if agops is not None:
        yield Row("agop_rank", "effective rank of AGOP", *map(measures.effective_rank, agops))
    yield Row("kernel_rank", "effective rank of the tangent kernel", *map(measures.effective_rank, kernels))
    if seen[0] is not None:
        centred = [one - one.mean(axis=0) for one in seen]
        ranks = [measures.effective_rank(one @ one.T) for one in centred]
        yield Row("feature_rank", "effective rank of the centred features", *ranks)


def _notes(lacking, first, classes):
    notes = []
    if lacking:
        notes.append(lacking)
    elif first is None:
        notes.append("no matrix has a side as long as an input: AGOP has nothing to be compared with")
    elif first.others:
        notes.append(f"W is {first.name}; {', '.join(first.others)} would fit too: weights= says which it is")
    if classes is None:
        notes.append("labels are no classes: no margins")
    return tuple(notes)
