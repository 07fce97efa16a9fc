"""Bad input gets one sentence that names the argument, and exit 2: never a traceback."""

import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import optax
import pytest
from click.testing import CliRunner

import featlab as fl
from featlab.commands.cli import main
from featlab.text import load_experiment, override, rebuild

TOML = """
title = "A test"
seeds = 2
steps = 4
probes = ["train_loss", "coefficients", "margins"]
[data]
kind = "SignalNoise"
n = 5
d = 1e4
snr = 0.5
noise_scale = 0.01
[network]
kind = "TwoLayerCNN"
width = 3
activation = "relu_power(3)"
[algorithm]
kind = "GradientDescent"
learning_rate = 0.1
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "test.toml"
    path.write_text(TOML)
    return str(path)


def call(*arguments):
    result = CliRunner().invoke(main, list(arguments), catch_exceptions=False)
    return result.exit_code, result.output.strip()


@pytest.mark.parametrize(
    "change, sentence",
    [
        ("data.n=-3", "SignalNoise.n must be a whole number of at least 1, got -3;"),
        ("data.n=3.5", "SignalNoise.n must be a whole number of at least 1, got 3.5;"),
        ("data.n=true", "SignalNoise.n must be a whole number of at least 1, got True;"),
        ("data.snr=abc", "SignalNoise.snr must be a finite number of at least 0, got 'abc';"),
        ("data.snr=nan", "SignalNoise.snr must be a finite number of at least 0, got nan;"),
        ("data.snr=-1", "SignalNoise.snr must be a finite number of at least 0, got -1.0;"),
        ("data.signal_norm=2", "SignalNoise needs exactly one of snr and signal_norm, got both."),
        ("data.snr=none", "SignalNoise needs exactly one of snr and signal_norm, got neither."),
        (
            "data.label_flip=1.5",
            "SignalNoise.label_flip must be a probability, a number from 0 to 1, got 1.5;",
        ),
        ("data.orthogonal=maybe", "SignalNoise.orthogonal must be true or false, got 'maybe';"),
        ("data.snrr=1", "SignalNoise has no field 'snrr'; did you mean 'snr'?"),
        ("dta.snr=1", "Experiment has no field 'dta'; did you mean 'data'?"),
        ("network.activation=reluu", "TwoLayerCNN.activation must be an activation"),
        ("probes=(train_lss,)", "'train_lss' is not a name featlab knows; did you mean 'train_loss'?"),
        ("probes=(train_loss, train_loss)", "would record 'train_loss' twice"),
        ("steps=-1", "Experiment.steps must be a whole number of at least 0"),
        ("precision=16", "Experiment.precision must be 32 or 64, got 16."),
        ("algorithm=GradientDescent(learning_rat=1)", "did you mean 'learning_rate'?"),
        ("algorithm=GradientDescent()", "GradientDescent needs learning_rate, which was not given."),
        (
            "algorithm=GradientDescent(0)",
            "GradientDescent.learning_rate must be a finite number above 0, got 0.0.",
        ),
        ("algorithm=3", "Experiment.algorithm must be an algorithm, such as GradientDescent(0.1), got 3."),
        ("data=SignalNoise(n=5, d=inf, signal_norm=1)", "signal_norm means nothing at d = inf"),
        ("network.activation=leaky_relu", "(with its brackets: leaky_relu(...))"),
        ("probes=(train_loss.on(10),)", "train_loss.on needs a clock, such as every(10) or at_end, got 10."),
        ("record=every", "Experiment.record must be a clock"),
        ("probes=(test_error(50),)", "Options of test_error are given by name"),
        (
            "algorithm=GradientDescent(1,.2,.3,.4)",
            "GradientDescent takes at most 3 values",
        ),
        ("steps=until(margins, 0.1)", "A level needs a probe of one number, and margins has the shape (5,)."),
        ("data.snr=1/0", "'1 / 0' is not a finite number."),
        ("data.d=10**400", "'10 ** 400' is not a finite number."),
        ("data.d=1e40", "SignalNoise.d must be at most 1e+30, or inf"),
        ("steps.level=0.1", "4 has no fields to change, so 'level' means nothing there."),
        ("algorithm=State()", "'State' is not a name featlab knows"),
        ("data=Minibatches(Minibatches(SignalNoise(5, 100, 1), 2), 2)", "it is batched already"),
        ("data.d=inf", "SignalNoise.noise_scale means nothing at d = inf"),
        ("data.d=1e13.5", "SignalNoise.d must be a number of at least 1, got '1e13.5';"),
        ("steps", "A change must have the form data.snr=0.2, got 'steps'."),
        ("algorithm=os.system('true')", "cannot stand in the text of an experiment"),
        ("algorithm=featlab.run('true')", "cannot be called here"),
        ("data.d=8 space=Span", "Span is not possible: d = 8 is less than the 12 vectors that are drawn"),
    ],
)
def test_a_bad_change_is_answered_with_one_sentence_and_exit_2(file, change, sentence):
    code, output = call("run", file, *change.split(" ") if "Span" in change else [change])
    assert code == 2 and sentence in output and output.startswith("featlab: ") and len(output.splitlines()) == 1


def test_a_missing_file_and_a_broken_one(tmp_path):
    code, output = call("run", "nowhere.toml")
    assert code == 2 and "There is no file 'nowhere.toml'" in output
    broken = tmp_path / "broken.toml"
    broken.write_text("steps = = 3")
    code, output = call("run", str(broken))
    assert code == 2 and "is not a TOML file" in output
    for text, sentence in {
        TOML.replace('kind = "SignalNoise"\n', ""): 'needs kind = "..."',
        TOML.replace("SignalNoise", "SignalNose"): "did you mean 'SignalNoise'?",
        TOML.replace("snr =", "snrr ="): "SignalNoise has no field 'snrr'; did you mean 'snr'?",
        TOML.replace("n = 5\n", ""): "SignalNoise needs n, which was not given.",
        TOML.replace("steps =", "stesp ="): "Experiment has no field 'stesp'; did you mean 'steps'?",
        TOML.replace("[algorithm]", "[algorihm]"): "did you mean 'algorithm'?",
        'notes = "a trial run"' + TOML: "Experiment has no field 'notes'",
        'objective = {kind = "logistic", slope = 3}' + TOML: "logistic takes no settings, got slope.",
    }.items():
        broken.write_text(text)
        code, output = call("run", str(broken))
        assert code == 2 and sentence in output, output


def test_bad_options_are_refused_by_name(file):
    for arguments in (["--seeds", "0"], ["--seeds", "abc"], ["--sedes", "3"]):
        code, output = call("run", file, *arguments)
        assert code == 2 and "seeds" in output
    code, output = call("rnu", file)
    assert code == 2


def test_an_unwritable_folder_is_said_to_be_so(file, tmp_path):
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, not a folder")
    code, output = call("run", file, "--out", str(blocked))
    assert code == 2 and "cannot be written" in output


def test_a_coordinate_wise_algorithm_is_refused_in_a_span():
    adam = fl.Experiment(
        data=fl.data.SignalNoise(n=5, d=1e4, snr=0.5),
        network=fl.networks.TwoLayerCNN(width=2),
        algorithm=fl.algorithms.Descent(optax.adam(1e-3)),
        space=fl.Span,
    )
    with pytest.raises(fl.InputError, match="Span is not possible: the algorithm Descent sees coordinates"):
        fl.run(adam)
    with pytest.raises(fl.InputError, match="d = inf needs Span, which is not possible"):
        fl.run(override(adam, ["space=none", "data.d=inf"]))
    with pytest.raises(fl.InputError, match="Ambient would store 10 vectors of 1e\\+12 numbers"):
        fl.run(override(adam, ["space=none", "data.d=1e12"]))


def test_a_misspelt_field_is_answered_in_python_too():
    with pytest.raises(fl.InputError, match="SignalNoise has no field 'snrr'; did you mean 'snr'?"):
        fl.data.SignalNoise(n=5, d=100, snrr=1)
    with pytest.raises(fl.InputError, match="TwoLayerCNN needs width, which was not given"):
        fl.networks.TwoLayerCNN(init_scale=0.1)


def test_changes_of_one_part_are_made_together(file):
    experiment, _ = load_experiment(file)
    changed = override(experiment, ["data.snr=none", "data.signal_norm=2", "steps=7"])
    assert changed.data.signal_norm == 2 and changed.data.snr is None and changed.steps == 7


def test_the_code_of_the_readme_prints_what_the_readme_says(capsys):
    text = (Path(__file__).parents[2] / "README.md").read_text()
    (snippet,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (said,) = re.findall(r"```python\n.*?```\s*```\n(.*?)```", text, re.DOTALL)
    names = {}
    exec(snippet, names)
    assert capsys.readouterr().out == said
    assert len(snippet.splitlines()) < 25 and names["history"].sizes["seed"] == 8


def test_the_commands_of_the_readme_are_understood():
    text = (Path(__file__).parents[2] / "README.md").read_text()
    commands = re.findall(r"^\.venv/bin/featlab (\w+) ?(.*?)(?:  +#.*)?$", text, re.MULTILINE)
    assert {name for name, _ in commands} == {"serve", "verify"}
    for name, arguments in commands:
        code, output = call(name, *arguments.split(), "--help")
        assert code == 0, output


def test_a_plain_function_may_be_a_table(file, tmp_path):
    path = tmp_path / "table.toml"
    path.write_text('objective = {kind = "squared"}' + TOML)
    assert load_experiment(path)[0].objective is fl.objectives.squared


def test_a_reserved_name_is_refused():
    def status(view):
        return view.step

    parts = (
        fl.data.SignalNoise(n=5, d=100, snr=1),
        fl.networks.TwoLayerCNN(2),
        fl.algorithms.GradientDescent(0.1),
    )
    with pytest.raises(fl.InputError, match="may not record 'status'"):
        fl.Experiment(*parts, probes=[status])
    with pytest.raises(fl.InputError, match="must return an array"):
        fl.run(fl.Experiment(*parts, probes=[lambda view: None]))
    for bad in ({"block": 0}, {"rows": 8.5}, {"rows": 3}):
        with pytest.raises(fl.InputError, match="whole number"):
            fl.run(fl.Experiment(*parts), **bad)
    with pytest.raises(fl.InputError, match="optax transformation"):
        fl.algorithms.Descent((1, 2))


def test_numpy_numbers_are_numbers():
    model = fl.data.SignalNoise(n=np.int64(5), d=np.float64(100.0), snr=np.linspace(0.1, 1, 3)[1])
    assert model == fl.data.SignalNoise(n=5, d=100, snr=0.55)


@pytest.mark.parametrize("seeds", [0, -1, 2.5, True, [1, "a"], [-1], []])
def test_bad_seeds_are_refused(seeds):
    experiment = fl.Experiment(
        fl.data.SignalNoise(n=5, d=100, snr=1), fl.networks.TwoLayerCNN(2), fl.algorithms.GradientDescent(0.1)
    )
    with pytest.raises(fl.InputError, match="[Ss]eeds"):
        fl.run(experiment, seeds)


def test_losses_refuse_unequal_shapes():
    with pytest.raises(fl.InputError, match="one shape"):
        fl.objectives.logistic(np.ones(3), np.ones((3, 1)))


def test_text_is_never_executed():
    for text in (
        "__import__('os').getcwd()",
        "(lambda: 1)()",
        "[x for x in (1,)]",
        "open('/etc/passwd')",
        "f'{1}'",
    ):
        with pytest.raises(fl.InputError):
            rebuild(text)


def test_arithmetic_and_infinity_are_understood():
    assert rebuild("2000**-0.5") == 2000**-0.5 and rebuild("-inf") == -math.inf and rebuild("1/3") == 1 / 3


def test_a_run_from_a_file_writes_results_and_figures(file, tmp_path):
    out = tmp_path / "out"
    code, output = call("run", file, "data.snr=0.7", "--seeds", "3", "--out", str(out))
    assert code == 0 and "A test" in output and "training loss (train_loss)" in output
    history = fl.load(out)
    assert history.sizes["seed"] == 3 and fl.rebuild(history.attrs["experiment"]).data.snr == 0.7
    names = {path.name for path in out.iterdir()}
    assert names == {"results.nc"} | {
        f"{n}.{k}" for n in ("coefficients", "losses", "margins") for k in ("svg", "png")
    }


def test_help_does_not_import_the_laboratory():
    code = (
        "import sys; import featlab.commands.cli; assert 'jax' not in sys.modules and 'xarray' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_trained(tmp_path, monkeypatch):
    from featlab.commands import run as command

    def trained(*arguments, **options):
        raise AssertionError("it was trained first")

    monkeypatch.setattr(command, "run", trained)
    (tmp_path / "taken").write_text("")
    with pytest.raises(fl.InputError, match="taken.* cannot be written"):
        command.run_file("cao2022_phase", out=str(tmp_path / "taken"))
