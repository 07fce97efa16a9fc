"""The bar appears only when it is worth it."""

import time

import pytest

from featlab import progress


@pytest.mark.parametrize("patience, expected", [(0.0, True), (60.0, False)])
def test_the_bar_appears_after_its_patience(monkeypatch, capsys, patience, expected):
    monkeypatch.setattr(progress, "_PATIENCE", patience)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    with progress.progress_bar("training", 10, shown=True) as tell:
        time.sleep(0.2)
        tell(7)
        time.sleep(0.2)
    assert ("training" in capsys.readouterr().err) == expected


def test_without_a_terminal_there_is_no_bar(capsys):
    with progress.progress_bar("training", 10) as tell:
        tell(10)
    assert capsys.readouterr().err == ""
