"""Ctrl-C at any moment: one sentence and exit 130, whatever was going on."""

import os
import random
import signal
import subprocess
import sys
import time
import warnings

import pytest
from click.testing import CliRunner

import featlab as fl
from featlab.commands import run
from featlab.commands.cli import interrupt, main
from featlab.engine.progress import heard


def test_an_interrupt_is_answered_with_where_it_stood(monkeypatch, tmp_path):
    def interrupted(*arguments, **options):
        heard("training, 50 steps done")
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run", interrupted)
    done = CliRunner().invoke(main, ["run", "cao2022_phase", "--out", str(tmp_path)])
    assert done.exit_code == 130
    assert done.stderr == "featlab: interrupted (training, 50 steps done); what was finished is kept.\n"


def test_an_interrupt_that_would_be_ignored_comes_again():
    """Python prints and forgets what is raised in a finaliser: there was Ctrl-C, and nobody heard it."""

    class Finalised:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):  # the signal is heard between two of these
                pass

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            Finalised()
            time.sleep(30)
    finally:
        signal.signal(signal.SIGINT, before)


def shell(line):
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=240)


def test_an_interrupt_that_a_script_ignores_stays_ignored():
    """As that of a job in a script's background, which a terminal's Ctrl-C must not end."""
    code = "import signal, sys; from featlab.commands import cli; cli.main = lambda **_: sys.exit("
    code += "0 if signal.getsignal(signal.SIGINT) is signal.SIG_IGN else 7); cli.command()"
    assert shell(f"trap '' INT; {sys.executable} -c '{code}'").returncode == 0


def test_who_has_read_enough_may_close_the_pipe():
    done = shell(f"set -o pipefail; {sys.executable} -m featlab claims --json | head -c 10")
    assert done.stdout.startswith("[") and "featlab:" not in done.stderr and "Traceback" not in done.stderr


COMMANDS = {
    "run": ["run", "cao2022_phase", "data.n=64", "steps=400"],
    "sweep": ["sweep", "cao2022_phase", "--grid", "data.n=20:60:4", "--grid", "data.snr=0.1:1:5", "--seeds", "4"],
    "verify": ["verify", "lazy_or_rich", "huang2025_clock", "--size", "tiny"],
    "atlas": ["atlas", "--size", "tiny"],
}


def interrupted_at(seconds, command, folder):
    """Exit code and last words of a command that is interrupted after so long, nothing having been compiled."""
    process = subprocess.Popen(
        [sys.executable, "-m", "featlab", *COMMANDS[command], "--out", str(folder / "out")],
        env={**os.environ, "JAX_COMPILATION_CACHE_DIR": str(folder / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=240)
    return process.returncode, err


def wrong_with(code, err, command, folder):
    """What an interrupt broke, in words; empty if nothing."""
    if code not in (0, 3, 130):
        return f"exit code {code}: {err[-300:]}"
    if "Traceback" in err and code == 130:  # one that JAX swallowed is no matter where the command went on
        return err[-600:]
    if command == "sweep" and list((folder / "out").glob("sweep-*.npz")):
        with warnings.catch_warnings(action="error"):  # of a damaged unit
            fl.load(folder / "out")
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_no_moment_of_an_interrupt_crashes_the_process(command, tmp_path):
    rng = random.Random(3)
    for k in range(25):
        folder = tmp_path / str(k)
        assert wrong_with(*interrupted_at(rng.uniform(1.0, 12), command, folder), command, folder) == ""
