"""Ctrl-C at any moment: one sentence and exit 130, whatever was going on."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from featlab.commands import run
from featlab.commands.cli import main
from featlab.engine.progress import heard


def test_an_interrupt_is_answered_with_where_it_stood(monkeypatch, tmp_path):
    def interrupted(*arguments, **options):
        heard("training, 50 steps done")
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run", interrupted)
    done = CliRunner().invoke(main, ["run", "cao2022_phase", "--out", str(tmp_path)])
    assert done.exit_code == 130
    assert done.stderr == "featlab: interrupted (training, 50 steps done); what was finished is kept.\n"


@pytest.mark.slow
def test_no_moment_of_an_interrupt_crashes_the_process(tmp_path):
    """With nothing compiled beforehand, most of these moments lie inside the compiler."""
    rng = random.Random(3)
    for k in range(20):
        settings = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(tmp_path / f"cache {k}")}
        command = [sys.executable, "-m", "featlab", "run", "cao2022_phase", "--out", str(tmp_path / f"{k}")]
        process = subprocess.Popen(
            command,
            env=settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        time.sleep(rng.uniform(3, 15))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=240)
        assert process.returncode in (0, 130), err
        assert "Traceback" not in err or process.returncode == 0  # one that JAX has swallowed, and went on
