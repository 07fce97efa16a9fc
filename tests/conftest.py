"""Broadcasting by accident is an error in tests, as warnings are."""

import os
import shutil

# Tests run hundreds of small programs once each: on a CPU, compiling them takes longer than running them.
if shutil.which("nvidia-smi") is None:
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(autouse=True)
def _quiet_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
