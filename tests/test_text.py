"""What is described can be rebuilt, whatever the numbers."""

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import featlab as fl
from featlab.text import describe, load_experiment, override

P = fl.probes
positive = st.floats(min_value=1e-37, max_value=1e300)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 10**9),
    d=st.floats(min_value=1, max_value=1e12),
    snr=positive,
    scale=positive,
    flip=st.floats(0, 1),
    slot=st.booleans(),
)
def test_a_data_model_survives_being_written_down(n, d, snr, scale, flip, slot):
    model = fl.data.SignalNoise(n=n, d=d, snr=snr, noise_scale=scale, label_flip=flip, random_slot=slot)
    assert fl.rebuild(describe(model)) == model


@pytest.mark.parametrize(
    "value",
    [
        P.test_error(count=50).on(P.geometric(7)),
        P.margins.on(P.first(P.below(P.train_loss, 0.5), "T1")),
        P.coefficient_bounds.on(P.throughout),
        P.coefficients_by_recursion,
        P.until(P.train_loss, 0.01, 500),
        fl.data.Minibatches(fl.data.XorSignalNoise(n=4, d=math.inf, snr=0.2), 2),
        fl.algorithms.Then(fl.algorithms.GradientDescent(0.1), 5, fl.algorithms.GradientFlow(1.0)),
        fl.networks.relu_power(2.5),
        fl.networks.relu,
        fl.Span,
        (1, 2.0, True, None, "x"),
    ],
    ids=describe,
)
def test_every_kind_of_piece_survives(value):
    assert describe(fl.rebuild(describe(value))) == describe(value)


def test_an_override_reaches_every_depth(tmp_path):
    path = tmp_path / "deep.toml"
    path.write_text(
        """
steps = "until(train_loss, 0.01, at_most=50)"
record = "every(5)"
space = "Ambient"
probes = ["train_loss", "margins.on(first(below(train_loss, 0.5), 'T1'))"]
[data]
kind = "Minibatches"
size = 3
[data.data]
kind = "SignalNoise"
n = 10
d = "10**3"
snr = 0.5
[network]
kind = "TwoLayerCNN"
width = 2
activation = {kind = "relu_power", power = 3}
[algorithm]
kind = "Then"
first = {kind = "GradientDescent", learning_rate = 0.1}
steps = 4
second = "GradientDescent(0.2, momentum=0.9)"
"""
    )
    experiment, rest = load_experiment(path)
    assert rest == {} and experiment.data.data.d == 1000.0 and experiment.algorithm.second.momentum == 0.9
    changed = override(experiment, ["data.data.n=12", "algorithm.first.learning_rate=1/4", "steps.level=0.1"])
    assert (
        changed.data.data.n == 12 and changed.algorithm.first.learning_rate == 0.25 and changed.steps.level == 0.1
    )
    assert experiment.data.data.n == 10  # the original is as it was


@pytest.mark.parametrize(
    "name",
    [
        "builtins.exit",
        "builtins.input",
        "builtins.breakpoint",
        "os.system",
        "sys.exit",
        "numpy.save",
        "pytest.exit",
    ],
)
def test_text_names_nothing_of_pythons_or_of_other_packages(name, tmp_path):
    """A word in a file, an attribute or a record must not make something else than an experiment happen."""
    import numpy  # noqa: F401  what is imported already could be named

    with pytest.raises(fl.InputError, match="cannot stand in the text of an experiment"):
        fl.rebuild(f"TwoLayerCNN(width=2, activation={name})")
    file = tmp_path / "t.toml"
    file.write_text(
        f'data = "SignalNoise(n=3, d=10, snr=0.5)"\nnetwork = "TwoLayerCNN(width=2, activation={name})"\n'
        'algorithm = "GradientDescent(0.1)"\nobjective = "logistic"\nprobes = ["train_loss"]\nsteps = 2\n'
    )
    with pytest.raises(fl.InputError, match="cannot stand in the text of an experiment"):
        load_experiment(str(file))


def test_text_names_what_a_module_of_ones_own_defines_and_not_what_it_imports(tmp_path, monkeypatch):
    (tmp_path / "parts_of_a_user.py").write_text("from os import system\n\n\ndef cube(z):\n    return z**3\n")
    monkeypatch.syspath_prepend(tmp_path)
    import parts_of_a_user as mine

    network = fl.rebuild("TwoLayerCNN(width=2, activation=parts_of_a_user.cube)")
    assert network.activation is mine.cube
    with pytest.raises(fl.InputError, match="posix.system, which cannot stand in the text"):
        fl.rebuild("TwoLayerCNN(width=2, activation=parts_of_a_user.system)")


@pytest.mark.parametrize(
    "text, words",
    [
        ("SignalNoise(n=1, n=2, d=10, snr=1)", "is given 'n' twice"),
        ("SignalNoise(**x)", "one by one, not by"),
        ("SignalNoise(*x)", "one by one, not by"),
        ("featlab.data.AbstractDataModel()", "no part itself"),
        ("Ambient(3)", "only parts of an experiment can"),
        ("unwritable()", "only the code that made it can make again"),
        ("-" * 5000 + "1", "is not an expression"),
        ("1" + "+1" * 5000, "is not an expression"),
        ("[" * 5000 + "]" * 5000, "is not an expression"),
        ("a\x00b", "is not an expression"),
    ],
)
def test_text_that_makes_nothing_is_answered_in_one_sentence(text, words):
    with pytest.raises(fl.InputError, match=re.escape(words)) as caught:
        fl.rebuild(text)
    assert len(str(caught.value)) < 300
