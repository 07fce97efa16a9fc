"""featlab: a laboratory for feature-learning theory.

You will meet four objects: an `Experiment`, which states a learning task, the labelled `xarray.Dataset` that
`run(experiment, seeds)` returns, a claim, which is a theorem to be tested, and the `Verdict` that
`verify(claim)` returns.
"""

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from featlab import algorithms as algorithms
    from featlab import claims as claims
    from featlab import data as data
    from featlab import networks as networks
    from featlab import objectives as objectives
    from featlab import plots as plots
    from featlab import probes as probes
    from featlab import testing as testing
    from featlab import theory as theory
    from featlab.boundaries import boundary as boundary
    from featlab.comparisons import compare as compare
    from featlab.contours import contour as contour
    from featlab.description import rebuild as rebuild
    from featlab.experiment import Experiment as Experiment
    from featlab.fields import InputError as InputError
    from featlab.metering import meter as meter
    from featlab.runner import run as run
    from featlab.space import Ambient as Ambient
    from featlab.space import Span as Span
    from featlab.store import export as export
    from featlab.store import load as load
    from featlab.store import save as save
    from featlab.sweeps import sweep as sweep
    from featlab.verification import verify as verify
    from featlab.verification import verify_again as verify_again

_FOLDERS = ("algorithms", "claims", "data", "networks", "objectives", "plots", "probes", "testing", "theory")
_NAMES = {
    "Experiment": "featlab.experiment",
    "boundary": "featlab.boundaries",
    "compare": "featlab.comparisons",
    "InputError": "featlab.fields",
    "contour": "featlab.contours",
    "export": "featlab.store",
    "sweep": "featlab.sweeps",
    "load": "featlab.store",
    "meter": "featlab.metering",
    "rebuild": "featlab.description",
    "run": "featlab.runner",
    "save": "featlab.store",
    "verify": "featlab.verification",
    "verify_again": "featlab.verification",
    "Ambient": "featlab.space",
    "Span": "featlab.space",
}


def __getattr__(name: str):
    # Importing JAX takes a second; nothing is imported before it is asked for.
    if name in _FOLDERS:
        return importlib.import_module(f"featlab.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"featlab has no {name!r}")


def __dir__():
    return sorted([*_FOLDERS, *_NAMES, "__version__"])
