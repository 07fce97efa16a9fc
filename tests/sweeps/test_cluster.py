"""Sweeps on dask workers: the same numbers on any worker, also when some die."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import jax
import pytest

import featlab as fl
from featlab.engine import batch as train_many
from featlab.sweeps import cluster
from featlab.sweeps.store import Store

distributed = pytest.importorskip("distributed")

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
GRID = {"data.n": [5, 6, 8], "data.snr": [0.2, 0.5, 1.0]}  # one program
SMALL = {"_BLOCKS": 1, "_TOGETHER": 16}
TOML = """
title = "A test"
steps = 2
probes = ["train_loss"]
[data]
kind = "SignalNoise"
n = 6
d = 1e4
snr = 0.5
noise_scale = 0.01
[network]
kind = "TwoLayerCNN"
width = 2
[algorithm]
kind = "GradientDescent"
learning_rate = 0.1
"""


def experiment(steps=2, **network):
    return fl.Experiment(
        data=fl.data.SignalNoise(n=6, d=1e4, snr=0.5, noise_scale=0.01),
        network=fl.networks.TwoLayerCNN(width=2, **network),
        algorithm=fl.algorithms.GradientDescent(0.1),
        probes=[fl.probes.train_loss],
        steps=steps,
    )


@pytest.fixture(autouse=True)
def _small_units(monkeypatch):
    """One block of runs in each unit, so that a small sweep has many."""
    for name, number in SMALL.items():
        monkeypatch.setattr(train_many, name, number)


@pytest.fixture(scope="module", autouse=True)
def _programs(tmp_path_factory):
    """What one process has compiled the others need not."""
    before = jax.config.jax_compilation_cache_dir, jax.config.jax_persistent_cache_min_compile_time_secs
    folder = str(tmp_path_factory.mktemp("programs"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_COMPILATION_CACHE_DIR", folder)
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
        yield
    jax.config.update("jax_compilation_cache_dir", before[0])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", before[1])


@pytest.fixture(scope="module")
def local(_programs):
    """Processes of this machine, as cluster="local" begins them."""
    with cluster.on_cluster("local") as own:
        make_units_small(own.client)
        yield own.client


def make_units_small(client):
    def change(numbers):
        from featlab.engine import batch as train_many

        for name, number in numbers.items():
            setattr(train_many, name, number)

    client.run(change, SMALL)


@contextmanager
def started(folder, workers, *options):
    """A scheduler and its workers, each a process of its own; yields the scheduler file and the processes."""
    file = Path(folder) / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    listen = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    processes = [subprocess.Popen([BIN / "dask", "scheduler", *listen], **quiet)]
    serve = ["--scheduler-file", str(file), "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1"]
    for _ in range(workers):
        processes.append(subprocess.Popen([BIN / "dask", "worker", *serve, *options], **quiet))
    try:
        wait_for(file.exists)
        yield file, processes
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for(condition, seconds=240):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it took too long"
        time.sleep(0.05)


def same(one, other):
    assert set(one) == set(other) and all(one[name].equals(other[name]) for name in one)


# ---- the same numbers


@pytest.mark.slow
def test_local_processes_give_the_very_numbers_of_a_plain_sweep_and_write_them(local, tmp_path, monkeypatch):
    plain = fl.sweep(experiment(), GRID, 8)
    monkeypatch.setattr(Store, "put", lambda *_: pytest.fail("the workers write"))
    swept = fl.sweep(experiment(), GRID, 8, cluster=local, out=tmp_path)
    same(swept, plain)
    assert swept.done.all() and len(list((tmp_path / "units").iterdir())) > 4
    same(fl.load(tmp_path), plain)
    monkeypatch.setattr(local, "submit", lambda *_, **__: pytest.fail("all is there already"))
    same(fl.sweep(experiment(), GRID, 8, cluster=local, out=tmp_path), plain)
    if hasattr(os, "sched_getaffinity"):  # workers of one thread compute in one, on any core
        assert set(threads_of_xla(local)) == {(1, len(os.sched_getaffinity(0)))}


def threads_of_xla(client):
    def count():
        tasks = [task for task in Path("/proc/self/task").iterdir() if "XLAEigen" in (task / "comm").read_text()]
        return len(tasks), min(len(os.sched_getaffinity(int(task.name))) for task in tasks)

    return client.run(count).values()


@pytest.mark.slow
def test_an_activation_of_the_script_goes_along_and_is_compiled_once(local, tmp_path):
    script = {"__name__": "__main__"}
    exec("import jax.numpy as jnp\ndef mine(x):\n    return jnp.maximum(x, 0) ** 2.5 + 0.01 * x", script)
    own, before = experiment(activation=script["mine"]), compiled(local)
    plain = fl.sweep(own, {"data.snr": [0.2, 0.5, 1.0]}, 40)
    swept = fl.sweep(own, {"data.snr": [0.2, 0.5, 1.0]}, 40, cluster=local, out=tmp_path)
    assert swept.done.all() and len(list((tmp_path / "units").iterdir())) >= 7
    assert all(after - before[worker] <= 1 for worker, after in compiled(local).items())
    same(swept, plain)


def compiled(client):
    def count():
        from featlab.engine import batch as train_many

        return train_many._finish._cached._cache_size()

    return client.run(count)


def test_code_of_a_file_goes_along_and_a_package_that_a_worker_lacks_is_named(local, tmp_path, monkeypatch):
    for folder, name in ((tmp_path, "own_file"), (tmp_path / "site-packages", "only_here")):
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text("def mine(x):\n    return x**2\n")
        monkeypatch.syspath_prepend(str(folder))
    import only_here  # pyright: ignore[reportMissingImports]
    import own_file  # pyright: ignore[reportMissingImports]

    assert fl.sweep(experiment(activation=own_file.mine), {"data.snr": [0.2]}, cluster=local).done.all()
    with pytest.raises(fl.InputError, match="A worker cannot import 'only_here'"):
        fl.sweep(experiment(activation=only_here.mine), {"data.snr": [0.2]}, cluster=local)


# ---- addresses


NOBODY = ["tcp://127.0.0.1:1", "nonsense", "foo://bar", "localhost:99999", "", "{}", "x"]


@pytest.mark.parametrize("address", NOBODY)
def test_where_nobody_answers_one_sentence_says_so(address, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "_PATIENCE", 0.3)
    if address in ("{}", "x"):  # a file that no scheduler wrote
        (tmp_path / "scheduler.json").write_text(address)
        address = str(tmp_path / "scheduler.json")
    begun = time.monotonic()
    with pytest.raises(fl.InputError, match="No dask scheduler answers at .*; start one with"):
        fl.sweep(experiment(), GRID, cluster=address)
    assert time.monotonic() - begun < 10


def test_what_is_no_cluster_is_refused():
    with pytest.raises(fl.InputError, match="must be an address, a dask client or"):
        fl.sweep(experiment(), GRID, cluster=3)


@pytest.mark.slow
def test_workers_may_come_later():
    with (
        warnings.catch_warnings(),
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as own,
        distributed.Client(own) as client,
    ):
        warnings.simplefilter("ignore")
        timer = threading.Timer(0.5, lambda: own.scale(1))
        with pytest.warns(cluster.NoWorkers, match="no workers yet"):
            timer.start()
            assert fl.sweep(experiment(), GRID, 8, cluster=client).done.all()


# ---- deaths


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced_by_the_others(tmp_path):
    plain, killed = fl.sweep(experiment(5000), GRID, 16), []
    with started(tmp_path, 2, "--no-nanny") as (file, (scheduler, *workers)):
        with distributed.Client(scheduler_file=str(file)) as client:
            client.wait_for_workers(2, timeout=240)
            make_units_small(client)

            def kill_one(diagram):
                busy = [address for address, keys in client.processing().items() if keys]
                if not killed and len(busy) == 2:
                    killed.append(client.run(os.getpid)[busy[0]])
                    os.kill(killed[0], signal.SIGKILL)

            kept = {"out": tmp_path / "out", "watch": kill_one}
            same(fl.sweep(experiment(5000), GRID, 16, cluster=client, **kept), plain)
        assert len(killed) == 1
        same(fl.load(tmp_path / "out"), plain)
        # The address of the scheduler, and its death.
        address = json.loads(file.read_text())["address"]
        same(fl.sweep(experiment(5000), GRID, 2, cluster=address), plain.isel(seed=slice(2)))
        with pytest.raises(fl.InputError, match="connection to the dask scheduler was lost"):
            fl.sweep(experiment(5000), GRID, 16, cluster=address, watch=lambda _: scheduler.kill())


@pytest.mark.slow
def test_workers_that_die_again_and_again_finish_all_units(tmp_path):
    with started(tmp_path, 2) as (file, _):  # with nannies, which begin new workers
        client = distributed.Client(scheduler_file=str(file))
        client.wait_for_workers(2, timeout=240)
        last = [time.monotonic()]

        def kill_now_and_then(diagram):
            if time.monotonic() > last[0] + 8:
                last[0] = time.monotonic()
                found = client.run(os.getpid)
                os.kill(found[sorted(found)[0]], signal.SIGKILL)

        with client:
            kept = {"out": tmp_path / "out", "watch": kill_now_and_then}
            swept = fl.sweep(experiment(30_000), GRID, 128, cluster=client, **kept)
    same(swept, fl.sweep(experiment(30_000), GRID, 128))


@pytest.mark.slow
def test_an_interrupt_keeps_what_there_is_and_leaves_no_process(tmp_path):
    (tmp_path / "test.toml").write_text(TOML)
    command = [BIN / "featlab", "sweep", "test.toml", "steps=60", "--seeds", "5000", "--out", "out"]
    command += ["--grid", "data.snr=0.1:1:20", "--cluster", "local"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    process = subprocess.Popen(command, cwd=tmp_path, **pipes)
    wait_for(lambda: process.poll() is not None or len(list(tmp_path.glob("out/units/[!.]*"))) > 2)
    assert children(process.pid)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    out, err = process.communicate(timeout=240)
    assert process.returncode == 130 and err == "" and "runs done, interrupted" in out, err
    assert (tmp_path / "out" / "phase_diagram.svg").exists() and fl.load(tmp_path / "out").done.any()
    wait_for(lambda: not children(process.pid))


def children(session):
    """Processes of a session, apart from the one that began it."""
    found = subprocess.run(["ps", "-o", "pid=", "-s", str(session)], capture_output=True, text=True).stdout
    return set(map(int, found.split())) - {session}


# ---- SLURM


@pytest.mark.slow
def test_the_batch_script_runs_a_sweep_on_the_workers_it_begins(tmp_path):
    """With an srun that runs its command here, and writes down what it was asked for."""
    (tmp_path / "test.toml").write_text(TOML)
    srun = tmp_path / "bin" / "srun"
    srun.parent.mkdir()
    asked = 'echo "$@" >> "$SRUN_LOG"\nwhile [[ "$1" == --* ]]; do shift; done\nexec "$@"\n'
    srun.write_text(f"#!/bin/bash\n{asked}")
    srun.chmod(0o755)
    slurm = {"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "1", "SRUN_LOG": str(tmp_path / "asked")}
    path = f"{srun.parent}:{BIN}:{os.environ['PATH']}"
    command = ["bash", ROOT / "examples" / "slurm_sweep.sh", "test.toml", "--grid", "data.snr=0.2:0.8:3log"]
    options = {"capture_output": True, "text": True, "cwd": tmp_path, "timeout": 120}
    done = subprocess.run([*command, "--out", "out"], env={**os.environ, **slurm, "PATH": path}, **options)
    assert done.returncode == 0 and "3 of 3 runs done" in done.stdout, done.stdout + done.stderr
    same(fl.load(tmp_path / "out"), fl.sweep(experiment(), {"data.snr": "0.2:0.8:3log"}))
    asked = (tmp_path / "asked").read_text().splitlines()
    scheduler, worker = sorted(asked, key=lambda line: "worker" in line)
    assert "--ntasks=1" in scheduler and "dask scheduler" in scheduler
    assert "dask worker" in worker and "--nworkers 1 --nthreads 1" in worker
    assert not (tmp_path / "scheduler-7.json").exists()


def test_the_documented_jobs_are_what_the_documentation_says():
    jobqueue = pytest.importorskip("dask_jobqueue")
    text = (ROOT / "docs" / "cluster.md").read_text()
    options = re.search(r"SLURMCluster\((.*)\)", text)[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = eval(
            f"cluster({options}, scheduler_options=dict(dashboard_address=':0'))",
            {"cluster": jobqueue.SLURMCluster},
        )
    with own:
        script = own.job_script()
    assert "16 workers of one thread on 16 cores, for four hours" in text
    for line in ("#SBATCH -p cpu", "#SBATCH --cpus-per-task=16", "#SBATCH -t 04:00:00", "#SBATCH -n 1"):
        assert line in script.splitlines(), script
    assert "--nthreads 1 " in script and "--nworkers 16 " in script


def test_threads_of_a_worker_take_turns(monkeypatch):
    inside, most = [], []

    def slow():
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.05)
        inside.pop()
        return {}

    monkeypatch.setattr(cluster, "pickle", SimpleNamespace(loads=lambda message: (slow, ())))
    monkeypatch.setattr(cluster, "_begin", lambda cache: None)
    threads = [threading.Thread(target=cluster._received, args=(b"", None)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1, 1]
