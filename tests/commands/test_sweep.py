"""`featlab sweep`: what it says, writes and refuses, and the exit codes a script can rely on."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import featlab as fl
from featlab.commands import sweep as commands
from featlab.commands.cli import main
from featlab.engine import batch as train_many
from featlab.sweeps import sweep as sweeps

BAD_INPUT, INTERRUPTED = 2, 130
ROOT = Path(__file__).parents[2]
TOML = """
title = "A test"
seeds = 2
steps = 3
probes = ["train_loss", "test_error(count=200)"]
[data]
kind = "SignalNoise"
n = 6
d = 1e4
snr = 0.5
noise_scale = 0.01
test_flip = 0.1
[network]
kind = "TwoLayerCNN"
width = 2
[algorithm]
kind = "GradientDescent"
learning_rate = 0.1
"""
SNR = ("--grid", "data.snr=0.2:0.8:3log")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "test.toml"
    path.write_text(TOML)
    return str(path)


@pytest.fixture
def quick(monkeypatch):
    """Unit whose results are made up of their seeds: compiling takes longer than all the rest."""

    def compute(group, runs, **_):
        names = [name for probe in group.first.probes for name, _ in probe.variables]
        values = {name: 0.2 + 0.1 * (runs.seeds % 3) for name in (*names, "steps_taken")}
        return values | {"trained": np.ones(len(runs.seeds), bool)}

    monkeypatch.setattr(sweeps, "compute", compute)
    monkeypatch.setattr(sweeps, "_SOON", np.inf)  # no other processes


@pytest.fixture
def drawn(monkeypatch):
    """What was drawn, and with which options."""
    seen = []

    def draw(diagram, variable, **options):
        seen.append((variable, options))
        return real(diagram, variable, **options)

    real = commands.plots.phase_diagram
    monkeypatch.setattr(commands.plots, "phase_diagram", draw)
    return seen


def call(*arguments):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def refused(*arguments):
    """The one sentence that answers bad input."""
    code, out, err = call("sweep", *arguments)
    assert code == BAD_INPUT and out == "" and len(err.strip().splitlines()) == 1, out + err
    assert err.startswith("featlab: ") and err.strip()[-1] in ".?"
    return err.strip()


# ---- what it does


def test_a_sweep_says_what_it_does_and_writes_it(file, tmp_path, drawn):
    out = tmp_path / "out"
    what = ("sweep", file, "data.d=2e4", *SNR, "--grid", "data.n=5,8", "--out", out)
    code, text, err = call(*what, "--seeds", 3)
    lines = text.splitlines()
    assert code == 0 and err == "" and lines[0] == f"3 x 2 cells x 3 seeds = 18 runs; kept in {out}."
    assert "A test" in text and "18 of 18 runs done, 18 of them trained; 3 snr x 2 n" in text
    assert lines[-3:-1] == [str(out / "phase_diagram.svg"), str(out / "phase_diagram.png")]
    diagram = fl.load(out)
    assert diagram.sizes == {"snr": 3, "n": 2, "seed": 3} and diagram.done.all()
    assert fl.rebuild(diagram.attrs["experiment"]).data.d == 2e4
    assert np.allclose(diagram.snr, [0.2, 0.4, 0.8]) and diagram.n.values.tolist() == [5, 8]
    means = diagram.train_loss.mean("seed")
    assert re.search(rf"\(train_loss\) +│ +{means.min():.4g} │ +{means.max():.4g} │", text)
    assert drawn == [("clean_test_error", {"level": None, "floor": None})]
    # The same again computes nothing, and says so before it begins; more seeds use what is there.
    assert ", where 18 are already." in call(*what, "--seeds", 3)[1].splitlines()[0]
    code, text, _ = call(*what, "--seeds", 4)
    assert code == 0 and all(word in text for word in ("= 24 runs;", "where 18 are already", "24 of 24 runs"))


def test_the_folder_and_the_seeds_of_the_file_are_the_defaults(file, tmp_path, monkeypatch, quick):
    monkeypatch.chdir(tmp_path)
    code, text, _ = call("sweep", file, *SNR)
    assert code == 0 and "3 cells x 2 seeds = 6 runs; kept in out/test-sweep." in text
    assert (tmp_path / "out" / "test-sweep" / "phase_diagram.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_a_sweep_and_another_run_of_one_file_keep_their_results(file, tmp_path, monkeypatch, quick):
    """And what a sweep says reads its results, also where a run's are in the same folder."""
    monkeypatch.chdir(tmp_path)
    call("run", file)
    _, text, _ = call("sweep", file, *SNR)
    assert 'fl.load("out/test-sweep") reads' in text and fl.load("out/test-sweep").sizes["snr"] == 3
    assert "step" in fl.load("out/test").dims
    before = fl.load("out/test")
    _, text, _ = call("run", file, "data.n=3")
    assert "Earlier results there, of something else, are now in out/test/results-1.nc." in " ".join(text.split())
    assert fl.load("out/test/results-1.nc").identical(before) and fl.load("out/test").sizes["sample"] == 3
    _, text, _ = call("sweep", file, *SNR, "--out", "out/test")
    (read,) = re.findall(r'fl.load\("(.*)"\) reads', text)
    assert fl.load(read).sizes["snr"] == 3


def test_a_claim_can_be_swept(tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "sweep", lambda plan, **__: pytest.fail(f"{plan.programs[0].first.data.d:g}"))
    with pytest.raises(pytest.fail.Exception, match=r"^inf$"):
        call("sweep", "cao2022_phase", "--grid", "data.n=8,16", "--out", tmp_path)


@pytest.mark.parametrize(
    "options, variable, level, floor",
    [
        (["--show", "train_loss"], "train_loss", None, None),
        (["--show", "test_error"], "test_error", None, 0.1),
        (["--near", "test_error=0.3"], "test_error", 0.3, 0.1),
        (["--near", "test_error=3/10", "--show", "clean_test_error"], "clean_test_error", None, None),
        (["--show", "test_error", "--grid", "data.test_flip=0.1,0.2"], "test_error", None, None),
    ],
)
def test_what_is_drawn(file, tmp_path, drawn, options, variable, level, floor, quick):
    code, text, _ = call("sweep", file, *SNR, "--out", tmp_path / "out", *options)
    assert code == 0 and drawn == [(variable, {"level": level, "floor": floor})]
    assert ("those near test_error = 0.3 are computed" in text) == ("--near" in options)


def test_without_a_test_error_the_first_variable_is_drawn(file, tmp_path, drawn, quick):
    assert call("sweep", file, "probes=(train_loss,)", *SNR, "--out", tmp_path / "out")[0] == 0
    assert drawn[0][0] == "train_loss"


def test_what_cannot_be_drawn_is_said_in_one_line(file, tmp_path, quick):
    three = ("--grid", "data.n=5,8", "--grid", "data.d=1e4,2e4")
    code, text, _ = call("sweep", file, *SNR, *three, "--seeds", 1, "--out", tmp_path / "out")
    (line,) = [line for line in text.splitlines() if line.startswith("No figure: ")]
    assert code == 0 and "one or two swept dims" in line and "12 of 12 runs done" in text
    words = ("--grid", "network.activation=relu,relu_power(3)")
    code, text, _ = call("sweep", file, *words, "--seeds", 1, "--out", tmp_path / "words")
    assert code == 0 and "No figure: " in text and not list(tmp_path.glob("words/*.svg"))
    assert fl.load(tmp_path / "words").activation.values.tolist()[0] == "relu"


def test_a_change_may_make_sense_on_the_grid_alone(file, tmp_path, quick):
    grid = ("--grid", "data.signal_norm=0.5,1")
    assert "exactly one of snr and signal_norm" in refused(file, *grid)
    assert call("sweep", file, "data.snr=none", *grid, "--seeds", 1, "--out", tmp_path / "out")[0] == 0
    assert "SignalNoise has no field 'snrr'" in refused(file, "data.snrr=1", *grid)


# ---- interrupts


@pytest.mark.parametrize("after", [0, 1])
def test_an_interrupt_keeps_what_there_is(file, tmp_path, monkeypatch, after, quick):
    monkeypatch.setattr(train_many, "_BLOCKS", 1)
    monkeypatch.setattr(train_many, "_TOGETHER", 2)
    computed, real = [], sweeps.compute

    def compute(*arguments, **options):
        if len(computed) == after:
            raise KeyboardInterrupt
        computed.append(1)
        return real(*arguments, **options)

    monkeypatch.setattr(sweeps, "compute", compute)
    out = tmp_path / "out"
    code, text, _ = call("sweep", file, *SNR, "--out", out)
    assert code == INTERRUPTED and f"{2 * after} of 6 runs done, interrupted" in text
    assert "the same command goes on" in text and (out / "phase_diagram.svg").exists() == bool(after)
    monkeypatch.setattr(sweeps, "compute", real)
    code, text, _ = call("sweep", file, *SNR, "--out", out)
    assert code == 0 and "6 of 6 runs done, 6" in text and (", where" in text) == bool(after)


def test_an_interrupt_before_it_begins_is_an_interrupt(file, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "sweep", interrupted)
    code, text, _ = call("sweep", file, *SNR, "--out", tmp_path)
    assert code == INTERRUPTED and text == f"3 cells x 2 seeds = 6 runs; kept in {tmp_path}.\n"  # said before


# ---- bad input


def test_bad_grids_are_refused(file):
    assert "A sweep needs a grid, for instance --grid data.n=20:200:8log" in refused(file)
    for bad in ("data.snr", "=0.1", "data.snr="):
        assert "--grid must have the form data.n=20:200:8log" in refused(file, "--grid", bad)
    assert "--grid has the axis data.snr twice" in refused(file, *SNR, "--grid", "data.snr=0.1")
    assert "did you mean 'snr'?" in refused(file, "--grid", "data.snrr=0.1")
    assert "did you mean 'data'?" in refused(file, "--grid", "dta.snr=0.1")
    assert "A range must have the form" in refused(file, "--grid", "data.snr=0.1:1")
    assert "SignalNoise.n must be a whole number" in refused(file, "--grid", "data.n=2.5,3")


def test_bad_levels_and_variables_are_refused(file):
    for bad in ("test_error", "test_error=", "=0.25", "test_error=abc", "test_error=nan", "test_error=True"):
        assert "--near must be a variable and a level, such as test_error=0.25" in refused(
            file, *SNR, "--near", bad
        )
    assert "reads 'test_eror'; did you mean 'test_error'?" in refused(file, *SNR, "--near", "test_eror=0.1")
    assert "reads 'test_eror'; did you mean 'test_error'?" in refused(file, *SNR, "--show", "test_eror")


def test_files_that_are_not_there_or_in_the_way(file, tmp_path):
    assert "There is no file 'nowhere.toml'" in refused("nowhere.toml", *SNR)
    assert "nowhere" in refused("nowhere", *SNR)
    (tmp_path / "blocked").write_text("a file, not a folder")
    for folder in ("blocked", "blocked/inside"):
        assert "cannot be written" in refused(file, *SNR, "--out", tmp_path / folder)
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "units").write_text("a file, not a folder")
    code, _, err = call("sweep", file, *SNR, "--out", tmp_path / "half")
    assert code == BAD_INPUT and len(err.strip().splitlines()) == 1


def test_an_unreachable_scheduler_is_one_sentence(file, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    from featlab.sweeps import cluster

    monkeypatch.setattr(cluster, "_PATIENCE", 0.3)
    code, _, err = call("sweep", file, *SNR, "--out", tmp_path / "out", "--cluster", "tcp://127.0.0.1:1")
    assert code == BAD_INPUT and "No dask scheduler answers" in err and len(err.strip().splitlines()) == 1


# ---- what is written about it


def blocks(name, kind):
    return re.findall(rf"```{kind}\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)


def commands_of(name):
    return re.findall(r"^ *(?:\.venv/bin/)?featlab (sweep .*)$", (ROOT / name).read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", ["docs/sweeps.md"])
def test_the_commands_of_the_documentation_work(name, tmp_path, monkeypatch, quick):
    monkeypatch.chdir(ROOT)
    done = 0
    for command in commands_of(name):
        if "--cluster" in command:
            continue  # see test_cluster.py
        few = re.sub(r":\d+log", ":2log", command).split()
        few = [word for i, word in enumerate(few) if "--seeds" not in (word, few[i - 1])]
        less = "probes=(train_loss,test_error(count=100))"
        code, text, err = call(*few, "steps=2", less, "--seeds", "1", "--out", tmp_path / str(done))
        assert code == 0, text + err
        done += 1
    assert done


SHORTER = {"steps=1000": "steps=2", "seeds=10": "seeds=2", "seeds=18": "seeds=3", "seeds=16": "seeds=1"}


@pytest.mark.parametrize("name", ["docs/sweeps.md"])
@pytest.mark.parametrize("trained", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_code_of_the_documentation_works(tmp_path, monkeypatch, request, name, trained):
    pytest.importorskip("zarr")
    if not trained:
        request.getfixturevalue("quick")
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in blocks(name, "python"):
        for long, short in SHORTER.items():
            code = code.replace(long, short)
        exec(re.sub(r":\d+log", ":2log", code), names)
    assert names["diagram"].done.all()
    assert set(names["scaled"].dims) == {"n", "c", "seed"}
    assert {"diagram.zarr", "diagram.nc"} <= set(os.listdir(tmp_path))


def test_what_takes_long_is_announced(file, tmp_path, monkeypatch):
    """Before it begins, in minutes or hours; what does not is not."""
    begun = []

    def begin(plan, **_):
        begun.append(plan)
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "sweep", begin)
    for steps, words in {"3": "", "2000000000": "minutes or more if every run takes all its steps"}.items():
        result = call("sweep", file, *SNR, f"steps={steps}", "--out", tmp_path)
        assert words in result[1] and ("operations" in result[1]) == bool(words)
    assert len(begun) == 2
