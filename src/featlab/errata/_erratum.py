"""What an erratum is: a slip in a source, put to the test like a claim.

The corrected formula and the printed one are judged by the same judge, on the same seeds, against a simulation or
an exact computation that uses neither. The erratum is supported when the first passes and the second is refuted.
"""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from featlab.claims import Assumption, Check, Claim, Lab, Size
from featlab.core.validation import InputError
from featlab.experiment import Experiment


class Erratum(Claim):
    """A slip, its correction, and the check that decides between them.

    `judge` measures once and judges either formula; its first check is the one that the printed formula must fail.
    """

    source: ClassVar[str]  # which document, and where in it
    printed: ClassVar[str]  # LaTeX, as it stands there
    corrected: ClassVar[str]  # LaTeX
    derivation: ClassVar[str]  # one line; formulas between dollars
    one_symbol: ClassVar[bool] = False  # a sign, an index, a transpose: lost as easily when text is extracted

    sizes: ClassVar[Mapping[str, Size]] = {
        "tiny": Size(seeds=3),
        "smoke": Size(seeds=24),
        "laptop": Size(seeds=24),
        "full": Size(seeds=64),
    }
    minutes: ClassVar[float] = 0.1
    rival: ClassVar[bool] = True  # the printed formula must fail, which is what decides
    control_changes: ClassVar[str] = "the formula as printed"
    refuted_if: ClassVar[str] = "the corrected formula misses what is measured by more than the margin"

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if hasattr(cls, "corrected"):
            cls.statement = cls.corrected

    @abc.abstractmethod
    def judge(self, lab: Lab, *, printed: bool) -> Iterator[Check]:
        """Measure, and judge the printed or the corrected formula."""

    def checks(self, lab: Lab) -> Iterator[Check]:
        yield from self.judge(lab, printed=False)

    def control(self, lab: Lab) -> Check:
        return next(iter(self.judge(lab, printed=True)))

    def typical(self) -> Experiment:
        raise InputError(
            f"{self.id} is about a formula and has no experiment to show; `verify(find_errata()[{self.id!r}])` "
            "puts it to the test."
        )

    def assumptions(self, experiment: Experiment) -> list[Assumption]:
        """None: where a formula has conditions, its check is made where they hold."""
        return []

    @classmethod
    def problem(cls) -> str | None:
        for name in ("source", "printed", "corrected", "derivation"):
            if not getattr(cls, name, ""):
                return f"{cls.__name__} has no {name}"
        return super().problem()


class _Measured(NamedTuple):
    """A measurement of one seed with its options, as one of all seeds, which a lab remembers by these two."""

    measure: Callable[..., Any]
    options: tuple[Any, ...]

    def __call__(self, seeds: Sequence[int]) -> dict[str, Any]:
        with _one_thread():
            return {
                "value": np.array([self.measure(np.random.default_rng(s), *self.options) for s in seeds], float)
            }


def over_seeds(lab: Lab, measure: Callable[..., Any], *options: Any) -> np.ndarray:
    """What `measure(rng, *options)` gives with a generator for each seed; seeds run along the last axis.

    A lab measures the same thing once, so that both formulas are judged by the same numbers.
    """
    return np.moveaxis(lab.measure(_Measured(measure, options)).value.values, 0, -1)


def _one_thread() -> contextlib.AbstractContextManager[Any]:
    """Matrices are small here, and threads on a busy machine would wait for each other longer than they work."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return contextlib.nullcontext()
    return threadpool_limits(1)
