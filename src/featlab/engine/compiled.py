"""Compiled programs, kept from one command to the next."""

from __future__ import annotations

import os
from pathlib import Path

import jax


def keep_compiled_programs() -> None:
    """Let the next command start where this one stopped compiling, unless the user keeps them elsewhere."""
    if getattr(jax.config, "jax_compilation_cache_dir", None) is None:
        cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "featlab"
        jax.config.update("jax_compilation_cache_dir", str(cache))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
