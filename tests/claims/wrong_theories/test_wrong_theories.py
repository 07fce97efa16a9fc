"""Every claim must notice a wrong theory: none of the checks that speak of it may come out supported."""

from __future__ import annotations

import fnmatch
import importlib.util
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # the families' files import `rival`


def _rivals():
    found = []
    for file in sorted(HERE.glob("*.py")):
        if file.stem in ("rival", "__init__") or file.stem.startswith("test_"):
            continue
        spec = importlib.util.spec_from_file_location(f"wrong_theories_{file.stem}", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found += module.RIVALS
    return found


@pytest.mark.slow
@pytest.mark.parametrize("rival", _rivals(), ids=lambda one: f"{one.claim}: {one.words}")
def test_a_wrong_theory_is_not_supported(rival):
    from rival import statuses

    found = statuses(rival, lambda name: fnmatch.fnmatchcase(name, rival.checks))
    assert found, f"no check of {rival.claim} is named {rival.checks!r}"
    assert "supported" not in found.values(), found
