"""Many numbers to one: what sweeps and live curves keep of a variable."""

from __future__ import annotations

from typing import Any

from featlab.probes import Variable


def largest(values: Any, variable: Variable | None, mask: Any, *, lead: int = 0) -> Any:
    """The largest magnitude over all axes but the first `lead`, padding left out.

    `mask` says which samples are real. The values are NumPy's or JAX's, and so is the result.
    """
    if values.ndim == lead:
        return values
    xp = values.__array_namespace__()
    dims = ((variable or Variable()).dims.split())[: values.ndim - lead]
    if "sample" in dims:
        on_samples = [1] * values.ndim
        on_samples[lead + dims.index("sample")] = -1
        values = xp.where(mask.reshape(on_samples), values, 0)
    return xp.max(xp.abs(values), axis=tuple(range(lead, values.ndim)))
