"""The rules that processes of the pool live by."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import featlab as fl
from featlab.engine.pool import Pool
from featlab.engine.worker import Lost, Silent, Worker

IN_PROC = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="looks for threads in /proc")


@pytest.fixture(scope="module")
def worker():
    one = Worker({"JAX_PLATFORMS": "cpu"})
    yield one
    one.close()


@pytest.fixture(scope="module")
def pool():
    one = Pool(2, attempts=3)
    yield one
    one.close()


def asked(worker, function, *arguments):
    """The result of one job."""
    heard = queue.SimpleQueue()
    worker.begin(object(), heard.put, function, *arguments)
    return heard.get(timeout=240).result()


def running(pid):
    """Whether there is such a process, and it is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition, seconds=240):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it took too long"
        time.sleep(0.02)


# ---- jobs, which are functions of a module that no worker can import


class Pair:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def swapped(self):
        return Pair(self.y, self.x)


def swapped(pair):
    return pair.swapped()


def wait(seconds, value=None):
    time.sleep(seconds)
    return value


def count(folder, name, until):
    for i in range(until):
        with open(os.path.join(folder, "order"), "a") as file:
            file.write(name)
        yield i
        time.sleep(0.01)


def die(folder, name, times=10**9):
    """End the process, the first times it is tried."""
    path = os.path.join(folder, name)
    with open(path, "a") as file:
        file.write("x")
    if os.path.getsize(path) <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return os.path.getsize(path)


def kind(function, *arguments):
    """One job that does what it is told, so that a pool can have jobs of many kinds."""
    return function(*arguments)


def broken(error):
    raise error


def threads():
    tasks = [task for task in Path("/proc/self/task").iterdir() if "XLAEigen" in (task / "comm").read_text()]
    return len(tasks), min(len(os.sched_getaffinity(int(task.name))) for task in tasks)


def noisy():
    print("a line")
    os.system("echo another line")
    return sys.stdin.read()


# ---- the rules


def test_objects_of_the_users_own_go_there_and_come_back(worker):
    found = asked(worker, swapped, Pair(1, lambda x: x + 1))
    assert type(found) is Pair and found.x(2) == 3 and found.y == 1


@IN_PROC
def test_xla_has_one_core_and_the_system_any(worker):
    assert asked(worker, threads) == (1, len(os.sched_getaffinity(0)))


def test_what_is_printed_is_no_answer(capfd):
    worker = Worker()
    assert asked(worker, noisy) == ""
    with pytest.raises(RuntimeError):
        asked(worker, broken, ValueError("first line\nsecond line"))
    worker.close()
    out, err = capfd.readouterr()
    assert out == "" and err.startswith("a line\nanother line\nTraceback") and "second line" in err


def test_interrupts_are_not_for_workers(worker):
    assert asked(worker, signal.getsignal, signal.SIGINT) is signal.SIG_IGN
    before = worker.pid
    os.kill(before, signal.SIGINT)
    assert asked(worker, wait, 0.1, "alive") == "alive" and worker.pid == before


def test_errors_arrive_as_one_sentence(worker):
    with pytest.raises(fl.InputError, match=r"^d must be positive\.$"):
        asked(worker, broken, fl.InputError("d must be positive."))
    with pytest.raises(RuntimeError, match="^ValueError: first line$"):
        asked(worker, broken, ValueError("first line\nsecond line"))
    with pytest.raises(RuntimeError, match="^TypeError: .*pickle"):
        asked(worker, threading.Lock)  # whose result cannot come back
    with pytest.raises(TypeError, match="pickle"):
        asked(worker, swapped, threading.Lock())


def test_jobs_take_turns_and_a_newer_one_of_a_key_replaces_the_older(worker, tmp_path):
    heard, first, replaced = queue.SimpleQueue(), queue.SimpleQueue(), []
    worker.begin("a", replaced.append, count, str(tmp_path), "a", 100)
    many = 200  # so that the first is not done before the second arrives
    worker.begin("a", heard.put, count, str(tmp_path), "A", many)
    worker.begin("b", first.put, count, str(tmp_path), "b", many)
    assert {"a", "b"} >= set(worker.keys())
    for values in (heard, first):
        news = [values.get(timeout=240) for _ in range(many + 1)]
        assert [(one.value, one.last) for one in news] == [*((k, False) for k in range(many)), (None, True)]
    assert len(replaced) <= 1 and not worker.keys()
    order = (tmp_path / "order").read_text()
    assert "AbAbAb" in order.replace("a", "") or "bAbAbA" in order.replace("a", "")
    worker.begin("c", heard.put, count, str(tmp_path), "c", 1000)
    heard.get(timeout=240)
    worker.stop("c")
    assert asked(worker, wait, 0.0, 1) == 1 and not worker.keys()


def test_a_silent_job_ends_with_its_process_and_the_next_one_gets_another():
    impatient = Worker(deadline=60.0)
    assert asked(impatient, wait, 0.0, 1) == 1
    before, impatient.deadline = impatient.pid, 1.0
    heard = queue.SimpleQueue()
    impatient.begin("slow", heard.put, wait, 1000)
    with pytest.raises(Silent, match="longer than 1 s without a result and was stopped"):
        heard.get(timeout=240).result()
    assert not running(before)
    impatient.deadline = 60.0
    assert asked(impatient, wait, 0.0, 2) == 2 and impatient.pid not in (None, before)
    impatient.close()


@IN_PROC
def test_a_job_that_ends_its_process_is_tried_again_and_others_lose_nothing(pool, tmp_path):
    tasks = [(i, (wait, 0.02 * (i % 3), i)) for i in range(12)]
    tasks[3:3] = [("once", (die, str(tmp_path), "once", 1)), ("always", (die, str(tmp_path), "always"))]
    taken = []

    def coming():
        for name, arguments in tasks:
            taken.append(name)
            yield name, arguments

    found = {}
    for name, news in pool.results(kind, coming()):
        found[name] = news
        assert len(taken) <= len(found) + 2 * len(pool.workers)  # no more than it has room for
    assert set(found) == {"once", "always", *range(12)}
    assert all(found[i].result() == i for i in range(12)) and found["once"].result() == 2
    with pytest.raises(Lost, match="process ended; perhaps it needs more memory"):
        found["always"].result()
    assert (tmp_path / "always").stat().st_size == 3  # attempts
    # What cannot be pickled is the outcome of its own task alone.
    lock = threading.Lock()
    found = dict(pool.results(kind, [("a", (wait, 0, 1)), ("b", (wait, 0, lock)), ("c", (wait, 0, 2))]))
    assert found["a"].result() == 1 and found["c"].result() == 2 and isinstance(found["b"].error, TypeError)
    # Stopping early leaves no process, and the next tasks begin others.
    results = pool.results(kind, [(i, (wait, 0.0 if i == 0 else 100, i)) for i in range(4)])
    assert next(results)[0] == 0
    before = [one.pid for one in pool.workers]
    results.close()
    assert not any(running(pid) for pid in before) and [one.pid for one in pool.workers] == [None, None]
    assert dict(pool.results(kind, [(0, (wait, 0, 5))]))[0].result() == 5
    assert [one.pid for one in pool.workers].count(None) == 1  # no more processes than tasks


SCRIPT = """
import os, sys, time
from featlab.engine.pool import Pool
from featlab.engine.worker import Worker
def busy(seconds):
    time.sleep(seconds)
    return os.getpid()
pool = Pool(2)
try:
    for name, news in pool.results(busy, [(0, (0.0,)), (1, (0.0,)), (2, (1000.0,)), (3, (1000.0,))]):
        print(news.result(), *[one.pid for one in pool.workers], flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@IN_PROC
@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_the_one_that_began_it(blow, tmp_path):
    """At work on functions of a script, when all are told, as by a terminal, or the first is killed."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    (tmp_path / "script.py").write_text(SCRIPT)
    process = subprocess.Popen([sys.executable, str(tmp_path / "script.py")], **pipes)
    said = [process.stdout.readline().split() for _ in range(2)]
    workers = {int(pid) for line in said for pid in line if pid != "None"}
    assert len(workers) == 2 and all(map(running, workers))
    begun = time.monotonic()
    os.killpg(process.pid, blow) if blow == signal.SIGINT else os.kill(process.pid, blow)
    out, err = process.communicate(timeout=120)
    wait_for(lambda: not any(map(running, workers)), 10)
    assert time.monotonic() - begun < 10
    if blow == signal.SIGINT:
        assert out == "interrupted\n" and err == "" and process.returncode == 0


OWN = """
import featlab as fl
from featlab.engine import batch
from featlab.sweeps import sweep, workers
sweep.cores = workers.cores = lambda: 2
batch._TOGETHER, batch._BLOCKS = 1, 2
experiment = fl.Experiment(
    data=fl.data.SignalNoise(n=6, d=1e4, snr=0.5), network=fl.networks.TwoLayerCNN(width=2),
    algorithm=fl.algorithms.GradientDescent(1.0), objective=lambda output, label: (output - label) ** 4,
    probes=[fl.probes.train_loss], steps=3,
)
grid = {"data.snr": [0.2, 0.5, 1.0]}
here = fl.sweep(experiment, grid, 2)
sweep._SOON = 0
there = fl.sweep(experiment, grid, 2)
begun = [one.pid is not None for one in workers.processes().workers]
print(there.identical(here), there.train_loss.values.min() > 0, sum(begun))
"""


@pytest.mark.slow
def test_a_loss_of_the_script_is_trained_on_by_workers(tmp_path):
    """Of a script without `if __name__ == "__main__"`, which no worker may run again."""
    (tmp_path / "script.py").write_text(OWN)
    done = subprocess.run([sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True)
    assert done.stdout == "True True 2\n", done.stderr
