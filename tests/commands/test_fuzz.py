"""Commands that nobody would type are answered with a sentence: `tests/commands/fuzz.py` is the grammar."""

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import fuzz  # noqa: E402

from featlab.commands import run  # noqa: E402

QUICK, SLOW, PIECE = 200, 5000, 50


def badly_answered(first, count, folder):
    cases = [fuzz.case(random.Random(seed)) for seed in range(first, first + count)]
    answers = {first + i: (fuzz.answer(one, folder), fuzz.told(one)) for i, one in enumerate(cases)}
    return {seed: found for seed, found in answers.items() if found[0]}


@pytest.mark.parametrize("first", range(0, QUICK, PIECE))
def test_every_command_is_answered(first, tmp_path):
    assert badly_answered(first, PIECE, tmp_path) == {}


@pytest.mark.slow
@pytest.mark.parametrize("first", range(QUICK, SLOW, 10 * PIECE))
def test_every_command_is_answered_thousands_of_times(first, tmp_path):
    assert badly_answered(first, 10 * PIECE, tmp_path) == {}


def test_the_grammar_would_notice(tmp_path, monkeypatch):
    """A traceback, a silent acceptance, a long sentence: each is told."""
    valid = fuzz.Case(["run", "t.toml"], {"t.toml": fuzz._written({k: v[0] for k, v in fuzz.FINE.items()})})
    assert fuzz.answer(valid, tmp_path) == ""
    assert "accepted" in fuzz.answer(valid._replace(nonsense=True), tmp_path)
    monkeypatch.setattr(run, "stated", lambda file: 1 / 0)
    assert "ZeroDivisionError" in fuzz.answer(valid, tmp_path)
