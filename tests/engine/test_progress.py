"""The bar appears only when it is worth it."""

import re
import subprocess
import sys
import time

import pytest

from featlab.engine import progress
from featlab.engine.progress import STUCK, heard, watchdog


@pytest.mark.parametrize("patience, expected", [(0.0, True), (60.0, False)])
def test_the_bar_appears_after_its_patience(monkeypatch, capsys, patience, expected):
    monkeypatch.setattr(progress, "_PATIENCE", patience)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    with progress.progress_bar("training", 10, shown=True) as tell:
        time.sleep(0.2)
        tell(7)
        time.sleep(0.2)
    assert ("training" in capsys.readouterr().err) == expected


def test_the_bar_shows_the_rate_and_the_time_left(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with progress.progress_bar("sweeping", 1000, shown=True, unit="runs") as tell:
        for done in (0, 400, 410, 420):  # 400 were there before
            tell(done, "(mean 0.3)")
            time.sleep(0.15)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().err)
    assert re.search(r"sweeping \(mean 0.3\).*420/1000 runs +\d\d runs/s +0:00:\d\d", shown), shown


@pytest.mark.parametrize(
    "speed, text",
    [(None, ""), (0, ""), (0.0523, "0.052 runs/s"), (3.14, "3.1 runs/s"), (12345.6, "12,346 runs/s")],
)
def test_a_rate_is_short(speed, text):
    assert progress.rate(speed, "runs") == text


def test_without_a_terminal_there_is_no_bar(capsys):
    with progress.progress_bar("training", 10) as tell:
        tell(10)
    assert capsys.readouterr().err == ""


def test_a_command_that_hears_nothing_says_where_it_stands_and_ends():
    """In a process of its own: it ends, with a sentence and its own exit code."""
    script = (
        "import time\n"
        "from featlab.engine.progress import progress_bar, watchdog\n"
        "with watchdog(0.01, 'verdicts that were finished are in out'):\n"
        "    with progress_bar('verifying mine', None, shown=False, unit='checks') as tell:\n"
        "        tell(3, '(48 trainings)')\n"
        "        time.sleep(60)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=50)
    assert done.returncode == STUCK
    assert done.stderr == (
        "featlab: no progress for 0.01 minutes after verifying mine, 3 checks done (48 trainings); given up. "
        "Verdicts that were finished are in out; --patience MINUTES waits longer.\n"
    )


def test_what_makes_progress_is_left_alone():
    ended = []
    with watchdog(0.005, "nothing", end=ended.append):
        for _ in range(8):
            time.sleep(0.1)
            heard("going on")
    with watchdog(0, "nothing", end=ended.append):
        time.sleep(0.2)
    time.sleep(0.5)
    assert not ended
