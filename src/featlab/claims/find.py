"""Finding claims: every file of theorems/, and of a folder of the user's, that does not begin with _."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType

from featlab.claims.claim import Claim, check_claim_class
from featlab.core.validation import InputError, did_you_mean

_THEOREMS = Path(__file__).parent / "theorems"


def find_claims(folder: str | Path | None = None) -> dict[str, Claim]:
    """All claims by id, featlab's own and those in the user's folder."""
    names = sorted(path.stem for path in _THEOREMS.glob("[!_]*.py"))
    modules = {name: importlib.import_module(f"featlab.claims.theorems.{name}") for name in names}
    if folder is not None:
        for path in _files(Path(folder)):
            if path.stem in modules:
                raise InputError(f"{str(path)!r} has the name of a claim there is already; rename the file.")
            modules[path.stem] = _loaded(path)
    return {name: _claim_of(module) for name, module in modules.items()}


def find_claim(name: str, folder: str | Path | None = None) -> Claim:
    """One claim, or one sentence that says which there are."""
    found = find_claims(folder)
    if name not in found:
        raise InputError(f"There is no claim {name!r}; {did_you_mean(name, found)}")
    return found[name]


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InputError(f"--claims must be a folder with claim files, and {str(folder)!r} is not one.")
    files = sorted(folder.glob("[!_]*.py"))
    if not files:
        raise InputError(f"There is no claim file in {str(folder)!r}; `featlab new claim NAME` writes one.")
    return files


def _loaded(path: Path) -> ModuleType:
    # A package name of its own, or a claim in json.py would take the place of another module.
    spec = importlib.util.spec_from_file_location(f"featlab_claims.{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # so that its classes can be found by name
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise InputError(
            f"The claim file {str(path)!r} cannot be read: {type(error).__name__}: {error}."
        ) from error
    return module


def _claim_of(module: ModuleType) -> Claim:
    own = [
        thing
        for thing in vars(module).values()
        if inspect.isclass(thing) and issubclass(thing, Claim) and thing.__module__ == module.__name__
    ]
    if len(own) != 1:
        raise InputError(
            f"{module.__file__} must hold exactly one Claim, got {len(own)}; `featlab new claim` shows how."
        )
    check_claim_class(own[0])
    return own[0]()
