"""What a claim is: a theorem that can be put to the test, in one file of this folder or of the user's."""

from __future__ import annotations

import abc
import dataclasses
import fnmatch
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import xarray as xr

from featlab.claims.cells import GROWING
from featlab.claims.judge import Check
from featlab.claims.lab import Lab, Size
from featlab.claims.picture import Picture, along_the_way
from featlab.core.validation import InputError, Part
from featlab.experiment import Experiment

SIZES = ("tiny", "smoke", "laptop", "full")
MUCH_LESS = 0.1  # what "<< 1" means for a number computed from a theorem's condition
# What `perturb` is where a claim says nothing, as far as it has these knobs.
PERTURB = {"width": 2, "learning_rate": 0.5, "pace": 0.5, "init_scale": 0.5, "penalty": 2, "dimensions": 1.5}
PERTURB |= {"neurons": 1.5, "samples": 1.5, "constant": 0.75}


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


class not_judged(NamedTuple):  # noqa: N801  (reads as a word where clauses are listed)
    """A clause of the theorem that no check judges, and why."""

    reason: str


class to(NamedTuple):  # noqa: N801
    """What a perturbed knob becomes, where it is not multiplied."""

    value: Any


class Claim(Part):
    """A theorem. Its fields are the knobs of the setting; everything about its statement is a fact of the class.

    Its file's docstring says it in words, `statement` in LaTeX, `clauses` one by one. `checks` measures and
    judges; `control` changes one ingredient and must be refuted by the same judge.
    """

    title: ClassVar[str]  # one plain sentence
    statement: ClassVar[str]  # LaTeX
    refuted_if: ClassVar[str]
    reference: ClassVar[str]  # BibTeX
    sizes: ClassVar[Mapping[str, Size]]
    minutes: ClassVar[float] = 1.0  # at laptop size, two cores
    control_changes: ClassVar[str]  # the one ingredient
    # What the paper says, clause by clause: the names of the checks that judge it (* stands for anything), or why
    # none does.
    clauses: ClassVar[Mapping[str, str | Sequence[str] | not_judged]] = {}
    algebra: ClassVar[bool] = False  # whether what is claimed is a formula, so that identities decide
    rival: ClassVar[bool] = (
        False  # whether the control is another formula for the same numbers: its failing decides
    )
    exploratory: ClassVar[str] = ""  # what was chosen after looking at results, if anything
    perturb: ClassVar[Mapping[str, float | to]] = (
        PERTURB  # knobs changed one at a time, by a factor or `to` a value
    )
    growing: ClassVar[Sequence[str]] = GROWING  # cells that are sizes: along them drift is looked for

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

    def judgements(self, lab: Lab) -> Iterator[Check]:
        """The checks, and the control last."""
        yield from self.checks(lab)
        yield self.control(lab)

    def trained(self, runs: xr.Dataset) -> xr.DataArray | None:
        """Which runs, by seed, count as trained, from all that was read of them at the end.

        Whatever is said here, a run must be finite and, where it is to stop at a loss, have stopped. Where runs
        take a fixed number of steps that is not enough: say what the theorem asks of them.
        """
        return None

    def scene(self) -> Experiment:
        """What a picture of the theorem trains: a small experiment that records curves."""
        return along_the_way(self.typical())

    def picture(self) -> Picture | None:
        """How the theorem divides a plane of settings, if it does."""
        return None

    def perturbed(self) -> dict[str, Claim]:
        """The same claim with one knob of its setting changed at a time."""
        changed = {}
        for name, change in self.perturb.items():
            if name not in self.knobs and self.perturb is PERTURB:
                continue
            before = self.knobs[name]
            value = change.value if isinstance(change, to) else before * change
            words = [f"{one:g}" if isinstance(one, int | float) else str(one) for one in (before, value)]
            changed[f"{name} {words[0]} -> {words[1]}"] = dataclasses.replace(self, **{name: value})
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
        for name in ("title", "statement", "refuted_if", "reference", "sizes", "control_changes"):
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


class Clause(NamedTuple):
    """A clause of the theorem and the names of the checks that judge it, or the reason why none does."""

    words: str
    checks: tuple[str, ...]
    reason: str = ""


def clauses_of(claim: Claim, names: Sequence[str]) -> list[Clause]:
    """The clauses with the checks of these names that judge them; a name that fits no check is refused."""
    found = []
    for words, judged in claim.clauses.items():
        said = judged.reason if isinstance(judged, not_judged) else judged
        if not words.strip() or not said or not all(map(str.strip, [said] if isinstance(said, str) else said)):
            raise InputError(
                f"{claim.id}: the clause {words!r} needs words, and the names of its checks or not_judged('why')."
            )
        if isinstance(judged, not_judged):
            found.append(Clause(words, (), judged.reason))
            continue
        patterns = (judged,) if isinstance(judged, str) else tuple(judged)
        by = tuple(name for name in names if any(fnmatch.fnmatchcase(name, _literal(p)) for p in patterns))
        missing = [p for p in patterns if not any(fnmatch.fnmatchcase(name, _literal(p)) for name in names)]
        if missing:
            raise InputError(
                f"{claim.id}: the clause {words!r} is judged by {missing[0]!r}, and no check is named so."
            )
        found.append(Clause(words, by))
    return found


def _literal(pattern: str) -> str:
    """Only * is special: names of checks have brackets and question marks of their own."""
    return pattern.replace("[", "[[]").replace("?", "[?]")


def check_claim_class(cls: type[Claim]) -> None:
    """Refuse an incomplete claim with one sentence."""
    problem = cls.problem()
    if problem is not None:
        raise InputError(f"{problem}; `featlab new claim` writes a complete skeleton.")
