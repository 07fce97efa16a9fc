"""What shows a theorem to a reader: the number it speaks about, what lies on either side of 1, and a small run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

from featlab.data import AbstractVectorModel
from featlab.experiment import Experiment
from featlab.probes import geometric, noise_memorised, signal_learnt, test_error, test_loss, train_loss, until

MOMENTS = 80  # along a curve


class Picture(NamedTuple):
    """The theorem's own number, 1 at its boundary, and the two fields of the plane it is drawn in."""

    number: Callable[[Experiment], float]
    symbol: str  # LaTeX of the number
    below: str  # a plain sentence: what the theorem says where the number is below 1
    above: str
    slider: str  # the field that leads from one side to the other
    slider_symbol: str  # LaTeX
    values: tuple[float, ...]  # of the slider, on both sides of the boundary
    across: str  # the other field of the phase diagram
    across_symbol: str
    across_values: tuple[float, ...]
    shows: str  # the variable that a phase diagram shows
    level: float  # of it, where one side ends


def along_the_way(experiment: Experiment, at_most: int = 1000) -> Experiment:
    """The same training, with losses, errors, signal and noise recorded along the way, as far as it has them."""
    steps = experiment.steps
    if isinstance(steps, until):
        steps = dataclasses.replace(steps, at_most=min(steps.at_most, at_most + steps.after))
    probes = [train_loss, test_loss]
    if isinstance(experiment.data, AbstractVectorModel):
        probes += [test_error, signal_learnt, noise_memorised]
    probes = [probe for probe in probes if experiment.misfit(probe) is None]
    return dataclasses.replace(experiment, probes=probes, steps=steps, record=geometric(MOMENTS))
