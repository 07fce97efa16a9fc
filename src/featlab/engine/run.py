"""`run`: from an experiment and seeds to a labelled Dataset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from featlab.core.sees import Sees
from featlab.core.validation import InputError, whole_if_exact
from featlab.engine.dataset import Origin, Recorded, to_dataset
from featlab.engine.loop import computing, draw_block, of_any_length, repeated, train
from featlab.engine.progress import progress_bar
from featlab.experiment import Experiment
from featlab.objectives import Supervised, hinge, logistic
from featlab.text import foreign

_BLOCK = 16  # runs that step together on a CPU: their weights stay in its cache
MOST_SEEDS = 10_000_000  # in one call
_TOGETHER = 1e9  # numbers that a block may hold in vectors
_SEGMENTS = 20  # returns to Python at least this often, for the progress bar and an interrupt


def run(
    experiment: Experiment,
    seeds: int | Iterable[int] = 1,
    *,
    progress: bool | None = None,
    rows: int | None = None,
    block: int | None = None,
    products: bool = False,
) -> xr.Dataset:
    """Train once for each seed and return what the probes read, as a Dataset.

    `seeds` is a number of seeds, counted from 0, or the seeds themselves. A result depends on the experiment and
    the seed alone: not on `block`, the number of runs that step together, nor on `rows`, the number of rows the
    training set is padded to. With `products` it trains in inner products, the same numbers at a fraction of the
    cost, where the experiment allows it. Interrupted, it returns what was recorded so far.
    """
    if not isinstance(experiment, Experiment):
        raise InputError(f"run needs an Experiment, got {experiment!r}; `featlab run` takes a file.")
    seeds = as_seeds(seeds)
    rows = experiment.data.n if rows is None else rows
    if not isinstance(rows, int) or rows < experiment.data.n:
        raise InputError(f"run(rows=) must be a whole number of at least n = {experiment.data.n}, got {rows!r}.")
    if block is not None and (not isinstance(block, int) or block < 1):
        raise InputError(f"run(block=) must be a whole number of at least 1, got {block!r}.")
    finer = experiment.needs_finer(Sees.PRODUCTS) if products else None
    if finer:
        raise InputError(f"run(products=True) is not possible: {finer}.")
    origin = Origin(experiment)  # before training: what cannot be said must not cost a run
    with computing(experiment):
        times, due = _schedule(experiment)
        blocks = _blocks(seeds, block, experiment.span_size(rows))
        recorded: list[Recorded] = []
        interrupted = False
        with progress_bar("training", experiment.last_step * len(blocks), shown=progress) as tell:
            try:
                traced, space = repeated(of_any_length(experiment), len(blocks[0])), experiment.empty_space(rows)
                for i, members in enumerate(blocks):
                    drawn = draw_block(traced, None, space, jnp.asarray(members), rows, products=products)
                    _look_at(experiment, drawn.shared.draw.training)
                    recorded.append(Recorded(drawn.shared.draw, len(experiment.probes)))
                    for stretch in train(drawn, times, due, at_once=-(-len(times) // _SEGMENTS)):
                        recorded[-1].add(stretch)
                        tell(i * experiment.last_step + int(stretch.times[-1]))
            except KeyboardInterrupt:
                interrupted = True
        # Interrupted, whole blocks are worth more than the beginning of one; with none, the beginning is kept.
        whole = [one for one in recorded if one.reached == len(times)]
        recorded = whole or [one for one in recorded if one.reached]
        if not recorded:
            raise KeyboardInterrupt
        return to_dataset(origin, seeds, times, due, recorded, rows, interrupted)


def _look_at(experiment: Experiment, training: Any) -> None:
    """Refuse what a data model of the user's own may draw and no training can mend."""
    name = type(experiment.data).__name__
    if not foreign(experiment.data):
        return
    for what, drawn in {"inputs": training.inputs, "labels": training.labels}.items():
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(drawn)):
            raise InputError(f"{name} draws {what} that are not finite numbers.")
    objective = experiment.bound_objective
    if (
        isinstance(objective, Supervised)
        and objective.loss in (logistic, hinge)
        and set(np.unique(training.labels)) == {0, 1}
    ):
        raise InputError(f"{name} has labels 0 and 1, and {objective.loss.__name__} is for labels -1 and 1.")


def _schedule(experiment: Experiment) -> tuple[np.ndarray, np.ndarray]:
    """All times at which something happens, and which probe is due when."""
    last = experiment.last_step
    clocks = [experiment.clock_of(probe).times(last) for probe in experiment.probes]
    stops = np.linspace(0, last, _SEGMENTS + 1).round().astype(int)
    times = np.unique(np.concatenate([stops, *clocks])).astype(int)
    due = (
        np.stack([np.isin(times, clock) for clock in clocks], axis=1)
        if clocks
        else np.zeros((len(times), 0), bool)
    )
    return times, due


def as_seeds(seeds: Any, verb: str = "run") -> np.ndarray:
    """The seeds: a count n means 0 to n - 1, a list is used as given."""
    seeds = whole_if_exact(seeds)
    if isinstance(seeds, bool) or (isinstance(seeds, int) and not 1 <= seeds <= MOST_SEEDS):
        raise InputError(
            f"{verb}(seeds=) must be a whole number from 1 to {MOST_SEEDS:,}, or a list of seeds, got {seeds!r}."
        )
    values = (
        list(range(seeds)) if isinstance(seeds, int) else list(seeds) if isinstance(seeds, Iterable) else [seeds]
    )
    if not values or any(
        isinstance(s, bool) or not isinstance(s, int | np.integer) or not 0 <= s < 2**31 for s in values
    ):
        raise InputError(f"Seeds must be whole numbers from 0 to 2^31 - 1, got {seeds!r}.")
    if len(set(values)) < len(values):
        raise InputError(f"{verb} needs different seeds, got {values}.")
    return np.array(values, np.uint32)


def _blocks(seeds: np.ndarray, block: int | None, vectors: int) -> list[np.ndarray]:
    """The seeds in blocks of one size that fits into memory, the last one filled up with a seed of its own."""
    if block is None:
        fitting = max(1, int(_TOGETHER / vectors**2))
        block = min(fitting, _BLOCK if jax.default_backend() == "cpu" else len(seeds))
    count = -(-len(seeds) // block)
    size = -(-len(seeds) // count)
    filled = np.concatenate([seeds, np.full(count * size - len(seeds), seeds[-1])])
    return np.split(filled.astype(np.uint32), count)
