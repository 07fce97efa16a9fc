"""Broadcasting by accident is an error in tests, as warnings are."""

import os
import shutil
from pathlib import Path

# Tests run hundreds of small programs once each: on a CPU, compiling them takes longer than running them.
if shutil.which("nvidia-smi") is None:
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(autouse=True)
def _quiet_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture(autouse=True)
def _room_for_programs():
    """Each compiled program holds memory maps; beyond Linux's 65,530 a process the compiler crashes."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and len(maps.read_bytes().splitlines()) > 20_000:
        jax.clear_caches()
