"""Killed at any moment, by any means, a sweep loses nothing that was finished."""

import hashlib
import math
import os
import random
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

import featlab as fl
from featlab.engine import batch as many
from featlab.sweeps import sweep as sweeps

P = fl.probes
TINY = fl.Experiment(
    data=fl.data.SignalNoise(n=6, d=math.inf, snr=0.5),
    network=fl.networks.TwoLayerCNN(width=2, init_scale=0.3),
    algorithm=fl.algorithms.GradientDescent(1.0),
    probes=[P.test_error(count=50)],
    steps=5,
)
GRID = {"data.snr": "0.1:2:6log", "algorithm.learning_rate": "0.5:1.5:5"}

WRITER = """
import os, sys, time
folder, seeds, fake, pool = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
import numpy as np
import featlab as fl
from featlab.engine import batch as many
from featlab.sweeps import sweep as sweeps
from featlab.sweeps import workers
many._TOGETHER, many._BLOCKS = 1, 2
if pool:
    sweeps._SOON, sweeps.cores, workers.cores = 0, lambda: 2, lambda: 2
if fake:
    def compute(group, runs, **options):
        time.sleep(0.004)
        snr, rate = [np.array([getattr(getattr(group.table.at(i), part), name) for i in runs.experiments])
                     for part, name in (("data", "snr"), ("algorithm", "learning_rate"))]
        value = np.sin(1000 * snr + 100 * rate + runs.seeds)
        return {"test_error": value, "trained": value > 0, "steps_taken": runs.seeds + 1}
    sweeps.compute = compute
experiment = fl.rebuild(open(os.path.join(folder, "experiment.txt")).read())
def started(dataset):
    print(int(dataset.done.sum()), flush=True)
found = fl.sweep(experiment, GRID, seeds, out=os.path.join(folder, "store"), watch=started)
print("interrupted", found.attrs["interrupted"], flush=True)
""".replace("GRID", repr(GRID))


def computed(group, runs, **options):
    """What the writers compute in no time: a function of the numbers and the seed."""
    numbers = [group.table.at(i) for i in runs.experiments]
    value = np.sin([1000 * e.data.snr + 100 * e.algorithm.learning_rate for e in numbers] + runs.seeds * 1.0)
    return {"test_error": value, "trained": value > 0, "steps_taken": runs.seeds + 1}


@pytest.fixture
def small_units(monkeypatch):
    monkeypatch.setattr(many, "_TOGETHER", 1)
    monkeypatch.setattr(many, "_BLOCKS", 2)


def writer(folder, *, seeds, fake, pool=False):
    from featlab.text import describe

    (folder / "experiment.txt").write_text(describe(TINY))
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(folder.parent / "programs")}
    environment |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), str(seeds), str(int(fake)), str(int(pool))],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        text=True,
        start_new_session=True,
    )


def acknowledged(folder):
    """The sum of every unit that has its name."""
    units = folder / "store" / "units"
    names = [p for p in units.iterdir() if not p.name.startswith(".")] if units.is_dir() else []
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in names}


def kill_again_and_again(folder, moments, seeds, *, fake):
    """Two writers in one store, one of them killed at each moment; the last units seen, and how many kills."""
    dice, kills, known = random.Random(moments), 0, {}
    other = writer(folder, seeds=seeds, fake=fake)
    for _ in range(moments):
        victim = writer(folder, seeds=seeds, fake=fake)
        victim.stdout.readline()  # its first unit
        time.sleep(dice.uniform(0, 0.08))
        victim.send_signal(signal.SIGKILL)
        kills += victim.wait() == -signal.SIGKILL
        victim.stdout.close()
        now = acknowledged(folder)
        assert known.items() <= now.items(), "a unit was lost or changed"
        known = now
        if other.poll() is None and dice.random() < 0.5:
            other.kill()
            other.wait()
        if other.poll() is not None:
            other.stdout.close()
            other = writer(folder, seeds=seeds, fake=fake)
    other.kill()
    other.wait()
    other.stdout.close()
    return known, kills


def test_killed_at_random_moments_beside_another_writer_nothing_is_lost(tmp_path, small_units, monkeypatch):
    seeds = 40  # 600 units of four milliseconds
    known, kills = kill_again_and_again(tmp_path, 3, seeds, fake=True)
    assert known and kills >= 2
    partial = fl.load(tmp_path / "store")
    assert 0 < partial.done.sum() <= partial.done.size
    monkeypatch.setattr(sweeps, "compute", computed)
    whole = fl.sweep(TINY, GRID, seeds)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no unit is damaged
        resumed = fl.sweep(TINY, GRID, seeds, out=tmp_path / "store")
    assert resumed.identical(whole) and fl.load(tmp_path / "store").identical(whole)
    assert known.items() <= acknowledged(tmp_path).items()
    done = partial.done.values
    np.testing.assert_array_equal(partial.test_error.values[done], whole.test_error.values[done])


@pytest.mark.slow
def test_killed_at_many_moments_with_true_numbers(tmp_path, small_units):
    seeds = 200
    known, kills = kill_again_and_again(tmp_path, 25, seeds, fake=False)
    assert known and kills >= 10
    whole = fl.sweep(TINY, GRID, seeds)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resumed = fl.sweep(TINY, GRID, seeds, out=tmp_path / "store")
    assert resumed.identical(whole)
    assert known.items() <= acknowledged(tmp_path).items()


def children(session):
    """The processes of a session, by their ids."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and os.getsid(int(entry)) == session:
                with open(f"/proc/{entry}/stat") as file:
                    if file.read().rpartition(")")[2].split()[0] != "Z":
                        found.append(int(entry))
        except (ProcessLookupError, FileNotFoundError, PermissionError):
            pass
    return found


def gone(session, seconds=60.0):
    end = time.monotonic() + seconds
    while children(session) and time.monotonic() < end:
        time.sleep(0.05)
    return not children(session)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks for processes in /proc")
@pytest.mark.slow
@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupt_leaves_a_store_and_no_processes(blow, tmp_path, small_units):
    """With a process for each core: all are told, as by a terminal, or the first is killed."""
    process = writer(tmp_path, seeds=300, fake=False, pool=True)
    for _ in range(3):
        assert process.stdout.readline().strip().isdigit()
    assert len(children(process.pid)) >= 3
    known = acknowledged(tmp_path)
    os.killpg(process.pid, blow) if blow == signal.SIGINT else os.kill(process.pid, blow)
    rest = process.stdout.read()
    code = process.wait(timeout=120)
    process.stdout.close()
    assert gone(process.pid), "a process stayed behind"
    if blow == signal.SIGINT:
        assert code == 0 and rest.endswith("interrupted 1\n")
    assert len(known) >= 3 and known.items() <= acknowledged(tmp_path).items()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = fl.load(tmp_path / "store")
    assert loaded.attrs["unfinished"] and 6 <= int(loaded.done.sum()) < loaded.done.size
    assert int(loaded.done.sum()) >= 2 * len(known)
