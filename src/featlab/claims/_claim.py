"""What a claim is: a theorem that can be put to the test, in one file of this folder or of the user's."""

from __future__ import annotations

import abc
import dataclasses
import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, NamedTuple

import numpy as np
import xarray as xr

from featlab.boundaries import boundary
from featlab.claims._judge import Check
from featlab.claims._picture import Picture, along_the_way
from featlab.endings import endings
from featlab.experiment import Experiment
from featlab.fields import InputError, Part

SIZES = ("tiny", "smoke", "laptop", "full")
MUCH_LESS = 0.1  # what "<< 1" means for a number computed from a theorem's condition


class Size:
    """How large a verification is: a number of seeds, and the claim's own lists of sizes."""

    def __init__(self, seeds: int, **lists: Sequence[float]):
        self.seeds = seeds
        self.lists = {name: tuple(values) for name, values in lists.items()}

    def __getattr__(self, name: str):
        try:
            return self.__dict__["lists"][name]
        except KeyError:
            raise AttributeError(f"this size has no {name!r}") from None


class Assumption(NamedTuple):
    """A condition of the theorem, as a number computed for an experiment."""

    sentence: str
    value: float
    should: str  # "<< 1" or ">= 1"

    @property
    def holds(self) -> bool:
        return self.room >= 0

    @property
    def room(self) -> float:
        """How far it is from failing; a value that is no number has failed."""
        if self.should not in ("<< 1", ">= 1"):
            raise InputError(f"An assumption should be '<< 1' or '>= 1', got {self.should!r}.")
        room = MUCH_LESS - self.value if self.should == "<< 1" else self.value - 1
        return -math.inf if math.isnan(room) else room


class Lab:
    """Where a claim measures: the size, the seeds, and a record of what was run."""

    def __init__(self, size: Size, seeds: Sequence[int], tell: Callable[[int], None] = lambda trainings: None):
        self.size, self.seeds = size, list(seeds)
        self.deciding: list[Experiment] = []  # the cells a judgement rests on
        self.runs = 0
        self.trained = 0
        self.trainings = 0
        self._tell, self._lock = tell, threading.Lock()
        self._found: dict[Any, xr.Dataset] = {}
        self._read: dict[Any, dict[str, np.ndarray]] = {}

    def boundary(self, make, parameter, variable, levels, *, over, between, tolerance=0.01, remember=None):
        """`boundary` on this lab's seeds; with `remember`, a second call by that name returns the first result."""
        if remember is not None and remember in self._found:
            return self._found[remember]
        found = boundary(
            make, parameter, variable, levels, over=over, seeds=self.seeds, between=between,
            tolerance=tolerance, tell=self._counting(),
        )  # fmt: skip
        ((name, values),) = over.items()
        for value in values:
            crossed = found[parameter].sel({name: value}).values
            crossed = crossed[np.isfinite(crossed)]
            if len(crossed):
                self.deciding.append(make(**{name: value, parameter: float(np.exp(np.log(crossed).mean()))}))
        self.trained += int(found.trained.sum())
        self.runs += found.trained.size
        if remember is not None:
            self._found[remember] = found
        return found

    def endings(self, experiment: Experiment, remember: Any = None) -> dict[str, np.ndarray]:
        """What the probes read at the end, one run for each seed; `remember` as for `boundary`."""
        if remember is not None and remember in self._read:
            return self._read[remember]
        return self._recorded(experiment, self._endings(experiment), remember)

    def several(self, experiments: Mapping[Any, Experiment]) -> dict[Any, dict[str, np.ndarray]]:
        """`endings` of each, remembered by its name: as many at a time as there are cores.

        Programs then compile side by side, which on a GPU is most of the time.
        """
        missing = {name: one for name, one in experiments.items() if name not in self._read}
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            for (name, one), read in zip(missing.items(), pool.map(self._endings, missing.values())):
                self._recorded(one, read, name)
        return {name: self._read[name] for name in experiments}

    def _endings(self, experiment: Experiment) -> dict[str, np.ndarray]:
        return endings([experiment] * len(self.seeds), self.seeds, tell=self._counting())

    def _recorded(
        self, experiment: Experiment, read: dict[str, np.ndarray], remember: Any
    ) -> dict[str, np.ndarray]:
        self.deciding.append(experiment)
        self.trained += int(read["trained"].sum())
        self.runs += len(self.seeds)
        if remember is not None:
            self._read[remember] = read
        return read

    @property
    def trained_fraction(self) -> float:
        return self.trained / self.runs if self.runs else 1.0

    def _counting(self) -> Callable[[int], None]:
        """Counts trainings, from reports that begin anew with every call of `endings`."""
        last = 0

        def told(done: int) -> None:
            nonlocal last
            with self._lock:
                self.trainings += done - last if done > last else done
                last = done
                self._tell(self.trainings)

        return told


class Claim(Part):
    """A theorem. Its fields are the knobs of the setting; everything about its statement is a fact of the class.

    Its file's docstring says it in words, `statement` in LaTeX. `checks` measures and judges; `control` changes
    one ingredient and must be refuted by the same judge.
    """

    title: ClassVar[str]  # one plain sentence
    statement: ClassVar[str]  # LaTeX
    refuted_if: ClassVar[str]
    reference: ClassVar[str]  # BibTeX
    sizes: ClassVar[Mapping[str, Size]]
    number_of_checks: ClassVar[int]
    minutes: ClassVar[float] = 1.0  # at laptop size, two cores
    control_changes: ClassVar[str]  # the one ingredient

    @property
    def id(self) -> str:
        """The name of its file."""
        return type(self).__module__.rpartition(".")[2]

    @abc.abstractmethod
    def typical(self) -> Experiment:
        """One experiment of the kind the theorem is about, for `featlab show` and `featlab run`."""

    @abc.abstractmethod
    def assumptions(self, experiment: Experiment) -> list[Assumption]:
        """The theorem's conditions, computed for an experiment."""

    @abc.abstractmethod
    def checks(self, lab: Lab) -> Iterator[Check]:
        """Measure and judge."""

    @abc.abstractmethod
    def control(self, lab: Lab) -> Check:
        """The same judgement with one ingredient changed; it must be refuted."""

    def scene(self) -> Experiment:
        """What a picture of the theorem trains: a small experiment that records curves."""
        return along_the_way(self.typical())

    def picture(self) -> Picture | None:
        """How the theorem divides a plane of settings, if it does."""
        return None

    def perturbed(self) -> dict[str, Claim]:
        """The same claim with one knob of its setting changed at a time."""
        factors = {"width": 2, "learning_rate": 0.5, "pace": 0.5, "init_scale": 0.5}
        factors |= {"penalty": 2, "dimensions": 1.5, "neurons": 1.5, "samples": 1.5, "constant": 0.75}
        changed = {}
        for name, factor in factors.items():
            if name in self.knobs:
                value = self.knobs[name] * factor
                changed[f"{name} {self.knobs[name]:g} -> {value:g}"] = dataclasses.replace(self, **{name: value})
        return changed

    @property
    def knobs(self) -> dict[str, Any]:
        """The setting: names and values of its fields."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.init}

    @classmethod
    def examples(cls) -> Iterable[Part]:
        return (cls(),)

    @classmethod
    def problem(cls) -> str | None:
        """What is missing for this class to be a claim, if anything."""
        for name in (
            "title",
            "statement",
            "refuted_if",
            "reference",
            "sizes",
            "number_of_checks",
            "control_changes",
        ):
            if not hasattr(cls, name):
                return f"{cls.__name__} has no {name}"
        for name in sorted(getattr(cls, "__abstractmethods__", ())):
            return f"{cls.__name__} has no {name}"
        missing = [size for size in SIZES if size not in cls.sizes]
        if missing:
            return f"{cls.__name__}.sizes lacks {missing[0]!r}"
        if not cls.reference.lstrip().startswith("@"):
            return f"{cls.__name__}.reference must be a BibTeX entry"
        return None


def check_claim_class(cls: type[Claim]) -> None:
    """Refuse an incomplete claim with one sentence."""
    problem = cls.problem()
    if problem is not None:
        raise InputError(f"{problem}; `featlab new claim` writes a complete skeleton.")
