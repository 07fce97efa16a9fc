"""What the theory of random features sees of a Dataset: the sizes, the student and the teacher behind it."""

from __future__ import annotations

from typing import NamedTuple

import xarray as xr

from featlab.core.validation import InputError
from featlab.data import AbstractIndexModel, SingleIndex
from featlab.experiment import Experiment
from featlab.networks import AbstractTwoLayer
from featlab.problem import unbatched
from featlab.text import rebuild
from featlab.theory.one_step import Teacher
from featlab.theory.random_features import Activation, proportions


class Setting(NamedTuple):
    """Gaussian inputs with a teacher, and a two-layer student."""

    experiment: Experiment
    data: AbstractIndexModel
    network: AbstractTwoLayer

    @staticmethod
    def of(dataset: xr.Dataset, plot: str) -> Setting:
        """The setting of the experiment that a Dataset remembers, or one sentence about what it is instead."""
        if "experiment" not in dataset.attrs:
            raise InputError(
                f"{plot} needs the experiment behind this dataset, which its attrs do not hold; "
                "give the Dataset of a run or of a sweep."
            )
        experiment = rebuild(dataset.attrs["experiment"])
        data, network = unbatched(experiment.data), experiment.network
        if not isinstance(data, AbstractIndexModel) or not isinstance(network, AbstractTwoLayer):
            raise InputError(
                f"{plot} is about index models and two-layer networks, such as SingleIndex and TwoLayer, "
                f"and this dataset is of {type(data).__name__} and {type(network).__name__}."
            )
        return Setting(experiment, data, network)

    @property
    def activation(self) -> Activation:
        """The student's, as the theory sees it."""
        if self.network.init_scale != 1:
            raise InputError(f"The theory needs init_scale = 1, w ~ N(0, I/d), got {self.network.init_scale:g}.")
        return Activation.of(self.network.activation)

    @property
    def teacher(self) -> Teacher:
        """The one direction's, as the theory sees it."""
        if not isinstance(self.data, SingleIndex):
            raise InputError(f"The theory needs one direction, SingleIndex, got {type(self.data).__name__}.")
        return Teacher.of(self.data.link, self.data.label_noise)

    @property
    def sizes(self) -> str:
        """Samples, dimension and width, for a legend."""
        return rf"$n = {self.data.n}$,  $d = {self.data.d:g}$,  $N = {self.network.width}$"

    def proportions(self, width: float | None = None) -> tuple[float, float]:
        """d/n and d/N, of the experiment's width or another."""
        return proportions(self.data.n, self.data.d, self.network.width if width is None else width)
