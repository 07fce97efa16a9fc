"""Compiled programs: kept from one command to the next, and forgotten before a process holds too many.

Each program holds about a hundred memory maps, and a training of a new shape needs seven programs or so. At the
limit of Linux, 65,530 maps, the compiler ends the process with a segmentation fault.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from pathlib import Path
from typing import Any

import jax

MOST_PROGRAMS = 250  # where maps cannot be counted
_SHARE = 0.3  # of the limit of maps, beyond which programs are forgotten
_MAPS = Path("/proc/self/maps")
_LIMIT = Path("/proc/sys/vm/max_map_count")
_compiled = [0, 0]  # programs since all were forgotten, and since maps were last counted


def keep_compiled_programs() -> None:
    """Let the next command start where this one stopped compiling, unless the user keeps them elsewhere."""
    if getattr(jax.config, "jax_compilation_cache_dir", None) is None:
        cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "featlab"
        jax.config.update("jax_compilation_cache_dir", str(cache))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def make_room_for_programs() -> None:
    """Forget all compiled programs if there are too many; those that are needed again are compiled again.

    To be called where no program runs.
    """
    if _compiled[1] and _too_many():
        jax.clear_caches()
        _give_memory_back()
        _compiled[0] = 0
    _compiled[1] = 0


def _give_memory_back() -> None:
    """Give back what the compiler has freed and the C library would keep: half a gigabyte or more."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _too_many() -> bool:
    try:
        with _MAPS.open("rb") as maps:
            return sum(1 for _ in maps) > _SHARE * int(_LIMIT.read_text())
    except (OSError, ValueError):
        return _compiled[0] > MOST_PROGRAMS


def _count(event: str, *rest: Any, **more: Any) -> None:
    if event.endswith("backend_compile_duration"):  # also of programs that were read from the disk
        _compiled[0] += 1
        _compiled[1] += 1


jax.monitoring.register_event_duration_secs_listener(_count)
