"""`featlab meter FILE.py`: a table, a figure, JSON, and one sentence for everything that is wrong."""

import json

import pytest
from click.testing import CliRunner

from featlab.commands.cli import main

FILE = """
import numpy as np
import helper

print("a word of the file's own")
random = np.random.default_rng(0)
inputs = random.normal(size=(12, 4)).astype("float32")
clean_labels = np.where(inputs[:, 0] > 0, 1, -1)
labels = clean_labels * np.where(np.arange(12) < 3, -1, 1)
params_before, params_after = {"w": np.ones(4, "float32")}, {"w": 2 * np.ones(4, "float32")}
samples = 9

def apply(params, x):
    return helper.twice(params["w"] @ x)
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "helper.py").write_text("def twice(value):\n    return 2 * value\n")
    (tmp_path / "mine.py").write_text(FILE)
    return tmp_path / "mine.py"


def call(*arguments):
    return CliRunner().invoke(main, ["meter", *map(str, arguments)], catch_exceptions=False)


def test_a_file_is_metered_as_json(file):
    result = call(file, "--json", "--samples", 5)
    assert result.exit_code == 0
    printed = json.loads(result.stdout)
    assert printed["samples"] == 5 and printed["inputs"] == 12 and printed["regime"] == "lazy"
    values = {row["name"]: row["after"] for row in printed["rows"]}
    assert values["total_movement"] == pytest.approx(1)


@pytest.mark.slow
def test_a_file_is_metered_into_a_folder(file, tmp_path):
    result = call(file, "--out", tmp_path / "out")
    assert result.exit_code == 0 and "Lazy: the linearisation" in result.stdout
    assert "memorised of 3 flipped labels" in result.stdout and "file's own" not in result.stdout
    names = ("meter.json", "meter.txt", "meter.svg", "meter.png")
    assert all((tmp_path / "out" / name).stat().st_size > 500 for name in names)
    record = json.loads((tmp_path / "out" / "meter.json").read_text())
    assert record["samples"] == 9 and record["regime"] == "lazy"


@pytest.mark.parametrize(
    "old, new, sentence",
    [
        ("params_after = {", "params_aftr = {", "must define params_after; did you mean 'params_aftr'?"),
        (
            "import helper",
            "import helpless",
            "cannot be run, line 3: ModuleNotFoundError: No module named 'helpless'.",
        ),
        ('params["w"]', 'params["v"]', "apply(params, input) fails for one input of shape (4,): KeyError: 'v'"),
        ("import helper", "import helper)", "cannot be run: SyntaxError: unmatched ')' (mine.py, line 3)."),
        ("samples = 9", "raise ValueError", "cannot be run, line 11: ValueError."),
        ("samples = 9", "samples = 0", "meter(samples=) must be a whole number of at least 2, got 0."),
    ],
)
def test_a_wrong_file_is_answered_with_one_sentence(file, old, new, sentence):
    file.write_text(file.read_text().replace(old, new))
    result = call(file)
    assert result.exit_code == 2 and sentence in result.stderr
    assert result.stderr.strip().splitlines()[-1].startswith("featlab: ") and result.stdout == ""


def test_no_file_is_answered_with_one_sentence(tmp_path):
    result = call(tmp_path / "nowhere.py")
    assert result.exit_code == 2 and "featlab meter needs a Python file that defines apply" in result.stderr


def test_a_folder_that_cannot_be_made_is_answered_before_anything_is_run(file, tmp_path):
    (tmp_path / "taken").write_text("a file")
    result = call(file, "--out", tmp_path / "taken" / "out")
    assert result.exit_code == 2 and "taken/out' cannot be written: Not a directory." in result.stderr
    assert "file's own" not in result.stderr


def test_a_file_of_results_that_cannot_be_written_is_named(file, tmp_path):
    (tmp_path / "out" / "meter.json").mkdir(parents=True)
    result = call(file, "--out", tmp_path / "out")
    assert result.exit_code == 2 and "out' cannot be written: Is a directory." in result.stderr
