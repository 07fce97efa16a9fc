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
    from featlab.claims.exponent import exponent as exponent
    from featlab.claims.verify import verify as verify
    from featlab.claims.verify import verify_again as verify_again
    from featlab.core.sees import Sees as Sees
    from featlab.core.space import Ambient as Ambient
    from featlab.core.space import Span as Span
    from featlab.core.validation import InputError as InputError
    from featlab.engine.run import run as run
    from featlab.experiment import Experiment as Experiment
    from featlab.metering import meter as meter
    from featlab.sweeps.boundary import boundary as boundary
    from featlab.sweeps.compare import compare as compare
    from featlab.sweeps.contour import contour as contour
    from featlab.sweeps.files import export as export
    from featlab.sweeps.files import save as save
    from featlab.sweeps.store import load as load
    from featlab.sweeps.sweep import sweep as sweep
    from featlab.text import rebuild as rebuild

_FOLDERS = ("algorithms", "claims", "data", "networks", "objectives", "plots", "probes", "testing", "theory")
_NAMES = {
    "Experiment": "featlab.experiment",
    "boundary": "featlab.sweeps.boundary",
    "compare": "featlab.sweeps.compare",
    "InputError": "featlab.core.validation",
    "contour": "featlab.sweeps.contour",
    "exponent": "featlab.claims.exponent",
    "export": "featlab.sweeps.files",
    "sweep": "featlab.sweeps.sweep",
    "load": "featlab.sweeps.store",
    "meter": "featlab.metering",
    "rebuild": "featlab.text",
    "run": "featlab.engine.run",
    "save": "featlab.sweeps.files",
    "verify": "featlab.claims.verify",
    "verify_again": "featlab.claims.verify",
    "Sees": "featlab.core.sees",
    "Ambient": "featlab.core.space",
    "Span": "featlab.core.space",
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
