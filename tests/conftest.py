"""Broadcasting by accident is an error in tests, as warnings are."""

import atexit
import os
import shutil
import signal
import tempfile
from importlib.metadata import version
from pathlib import Path

# A suite begun in the background ignores interrupts, and so would the processes that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests run hundreds of small programs once each: on a CPU, compiling them takes longer than running them.
if shutil.which("nvidia-smi") is None:
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    # Without fused emitters it takes half as long, and what is drawn in float32 may be rounded in two ways by one
    # program: good enough for all tests but those marked `rounding`. Later versions do not know the flag.
    if os.environ.get("FEATLAB_TESTS") == "fast" and version("jaxlib") < "0.11":
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_use_fusion_emitters=false"
# The processes of a session share what they compile; the one that begins it cleans up.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    _programs = tempfile.mkdtemp(prefix="featlab-programs-")
    atexit.register(shutil.rmtree, _programs, ignore_errors=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = _programs
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.05"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")


def pytest_collection_modifyitems(items):
    """Groups run in one process each; they begin first, so that none is left over at the end."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


def pytest_collection_finish(session):
    """With pytest 9.2 xdist 3.8 forgets its groups: two browsers and two servers would share two cores."""
    if getattr(session.config.option, "loadgroup", False):
        grouped = [item for item in session.items if item.get_closest_marker("xdist_group") is not None]
        if not all(item.nodeid.rpartition("@")[0] for item in grouped):
            raise pytest.UsageError("These versions of pytest and pytest-xdist do not keep groups together.")


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


# One change of the skeleton's text each, and what becomes of the claim.
VARIANTS = {
    "supported": ("", ""),
    "refuted": (" -1.0, rivals=(-2.0, -0.5)", " -1.5, rivals=(-2.0, -0.5)"),
    "untrained": ("at_most=20_000", "at_most=3"),
    "blind control": ("rates).train_loss)", "rates).steps_taken)"),
    "outside": ("experiment.algorithm.learning_rate / self.width", "5.0"),
}
# Larger steps to a higher loss: a verification in a third of a second, once its program is compiled.
_QUICK = [
    ("(seeds=3, rates=(0.2, 0.1, 0.05))", "(seeds=24, rates=(0.8, 0.4, 0.2))"),
    ("loss: float = 0.3", "loss: float = 0.5"),
]


@pytest.fixture
def skeleton(tmp_path):
    """Writes the skeleton of `featlab new claim` with changes of its text, and returns the folder it is in."""
    from featlab.claims.skeleton import write_skeleton

    def write(name="mine", *changes, folder="claims"):
        path = write_skeleton(name, tmp_path / folder)
        text = path.read_text()
        for change in (*_QUICK, *changes):
            old, new = VARIANTS[change] if isinstance(change, str) else change
            assert old in text, old
            text = text.replace(old, new)
        path.write_text(text)
        return path.parent

    return write


@pytest.fixture(autouse=True)
def _reserved_seeds_stay_unseen(monkeypatch):
    """Verdicts rest on seeds that nothing was tuned on, and a test that fails on them would be tuned on them."""
    from featlab.claims import Lab
    from featlab.claims.deciding import BASE_SEED

    begin = Lab.__init__

    def guarded(self, size, seeds, *rest, **options):
        assert not any(BASE_SEED <= seed < BASE_SEED + 5_000_000 for seed in seeds), "give another base seed"
        begin(self, size, seeds, *rest, **options)

    monkeypatch.setattr(Lab, "__init__", guarded)
