"""Where to look next: the cells of a grid near which a quantity crosses a level.

A coarse lattice of cells is computed first, and what lies between is believed to be its interpolation. Two
neighbours on different sides of the level have the boundary between them: the cells around them are computed,
on this lattice and then on one twice as fine, until the lattice is the grid. So the boundary is followed at full
resolution, and the plains beside it are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.interpolate import RegularGridInterpolator
from scipy.ndimage import distance_transform_edt

_COARSEST = 8  # cells between neighbours on the first lattice


def toward(level: float, shape: tuple[int, ...], values: Callable[[], np.ndarray]) -> Iterator[np.ndarray]:
    """Cells to compute next, as masks of the grid, until the boundary is followed.

    `values()` are what is known of the quantity by then, NaN where nothing is.
    """
    stride = _first_stride(shape)
    points = _lattice(shape, stride)
    asked = _marked(shape, points, True)
    yield asked.copy()
    estimate = values()[np.ix_(*points)]
    while True:
        known = values()[np.ix_(*points)]
        estimate = _completed(np.where(np.isfinite(known), known, estimate))
        # What was asked for and is no number stays as it was believed to be.
        wanted = around(level, estimate) & ~np.isfinite(known) & ~asked[np.ix_(*points)]
        if wanted.any():
            cells = _marked(shape, points, wanted)
            asked |= cells
            yield cells
        elif stride == 1:
            return
        else:
            stride //= 2
            finer = _lattice(shape, stride)
            between = np.stack(np.meshgrid(*finer, indexing="ij"), axis=-1)
            estimate = _interpolated(points, estimate, between)
            points = finer


def around(level: float, values: np.ndarray) -> np.ndarray:
    """Every pair of neighbours on different sides of the level, and the cells beside the pair."""
    above, found = values > level, np.zeros(values.shape, bool)
    for axis in range(values.ndim):
        ahead, behind = _pair(values.ndim, axis)
        crossed = (above[ahead] != above[behind]) & np.isfinite(values[ahead]) & np.isfinite(values[behind])
        pair = np.zeros(values.shape, bool)
        pair[ahead] |= crossed
        pair[behind] |= crossed
        for other in set(range(values.ndim)) - {axis}:
            pair = _widened(pair, other)
        found |= pair
    return found


def _first_stride(shape: tuple[int, ...]) -> int:
    """A power of two that leaves four points along every axis that has as many."""
    stride = _COARSEST
    while stride > 1 and any(length > 3 and (length - 1) / stride < 3 for length in shape):
        stride //= 2
    return stride


def _lattice(shape: tuple[int, ...], stride: int) -> list[np.ndarray]:
    """Every `stride`-th index along each axis, and the last."""
    return [np.unique([*range(0, length, stride), length - 1]) for length in shape]


def _completed(values: np.ndarray) -> np.ndarray:
    """The values, with gaps filled by the nearest finite one."""
    missing = ~np.isfinite(values)
    if not missing.any() or missing.all():
        return values
    nearest = distance_transform_edt(missing, return_distances=False, return_indices=True)
    return values[tuple(np.asarray(nearest))]


def _marked(shape: tuple[int, ...], points: list[np.ndarray], wanted) -> np.ndarray:
    cells = np.zeros(shape, bool)
    cells[np.ix_(*points)] = wanted
    return cells


def _interpolated(points: list[np.ndarray], values: np.ndarray, between: np.ndarray) -> np.ndarray:
    for axis, places in enumerate(points):
        if len(places) == 1:  # an axis of one value has nothing between
            points = [*points[:axis], np.array([places[0], places[0] + 1]), *points[axis + 1 :]]
            values = np.repeat(values, 2, axis=axis)
    return RegularGridInterpolator(points, values)(between)


def _pair(dims: int, axis: int) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    ahead, behind = [slice(None)] * dims, [slice(None)] * dims
    ahead[axis], behind[axis] = slice(1, None), slice(None, -1)
    return tuple(ahead), tuple(behind)


def _widened(marked: np.ndarray, axis: int) -> np.ndarray:
    ahead, behind = _pair(marked.ndim, axis)
    wider = marked.copy()
    wider[ahead] |= marked[behind]
    wider[behind] |= marked[ahead]
    return wider
