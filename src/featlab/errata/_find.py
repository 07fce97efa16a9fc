"""Finding errata: every file of this folder that does not begin with _."""

from __future__ import annotations

import importlib
from pathlib import Path

from featlab.claims.find import _claim_of
from featlab.core.validation import InputError
from featlab.errata._erratum import Erratum

_HERE = Path(__file__).parent


def find_errata() -> dict[str, Erratum]:
    """All errata by id."""
    found = {}
    for name in sorted(path.stem for path in _HERE.glob("[!_]*.py")):
        erratum = _claim_of(importlib.import_module(f"featlab.errata.{name}"))
        if not isinstance(erratum, Erratum):
            raise InputError(f"featlab/errata/{name}.py must hold an Erratum, got {type(erratum).__name__}.")
        found[name] = erratum
    return found
