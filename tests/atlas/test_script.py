"""The NumPy script of an experiment: the same law, the same descent, nothing beside NumPy, nothing superfluous.

In law: 200 seeds of the script against 200 others of featlab, a two-sample z-test of each mean. Seeds are fixed,
so a verdict never changes by luck; scripts with one deliberate defect are rejected by the same test. To rounding:
the script's own descent from featlab's own draws.
"""

import ast
import dataclasses
import itertools
import json
import os
import re
import subprocess
import sys

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy import stats

import featlab as fl
from featlab.algorithms import SAM, Adam, GradientDescent, LabelNoiseDescent, PacedDescent, SignDescent
from featlab.atlas.script import _conditions, _kept, numpy_script
from featlab.atlas.script_template import TEMPLATE
from featlab.data import SignalNoise, XorSignalNoise
from featlab.engine.batch import train_many
from featlab.engine.loop import draw_one
from featlab.networks import TwoLayerCNN, identity, leaky_relu, relu_power
from featlab.objectives import logistic, squared
from featlab.probes import at_end, noise_memorised, signal_learnt, train_loss, until

SEEDS = 200
TESTS = 500
QUANTITIES = {
    "train_loss": "train_loss",
    "test_error": "clean_test_error",
    "test_loss": "test_loss",
    "max_gamma": "signal_learnt",
    "max_rho": "noise_memorised",
}


def make(data, network, algorithm, steps=40, loss=logistic, **rest):
    tests = [fl.probes.test_error(count=TESTS), fl.probes.test_loss(count=TESTS)]
    read = [train_loss, *tests, signal_learnt, noise_memorised]
    return fl.Experiment(
        data=data,
        network=network,
        algorithm=algorithm,
        objective=loss,
        probes=[probe.on(at_end) for probe in read],
        steps=steps,
        **rest,
    )


CASES = {
    "cubic at d = inf, paced": make(
        SignalNoise(n=12, d=np.inf, snr=0.5),
        TwoLayerCNN(width=4, activation=relu_power(3), init_scale=0.4),
        PacedDescent(0.2),
        until(train_loss, 0.2, at_most=200),
    ),
    "ReLU at d = 1e6, flips": make(
        SignalNoise(n=16, d=1e6, snr=0.3, noise_scale=1e-3, label_flip=0.15, test_flip=0.05),
        TwoLayerCNN(width=4, init_scale=0.5),
        GradientDescent(1.0),
    ),
    "classes in turn": make(
        SignalNoise(n=5, d=1e4, snr=0.6, noise_scale=0.01, label_flip=0.2, balanced=True),
        TwoLayerCNN(width=4, init_scale=0.3),
        GradientDescent(1.0),
    ),
    "exclusive or": make(
        XorSignalNoise(n=20, d=1e4, signal_norm=0.8, noise_scale=0.01, cosine=0.3, label_flip=0.05),
        TwoLayerCNN(width=6, activation=leaky_relu(0.1), init_scale=0.3),
        GradientDescent(1.0),
        60,
    ),
    "label noise": make(
        SignalNoise(n=12, d=200, snr=0.4, noise_scale=200**-0.5),
        TwoLayerCNN(width=4, activation=relu_power(2), init_scale=0.3),
        LabelNoiseDescent(0.5, flip=0.2),
        60,
    ),
    "SAM": make(
        SignalNoise(
            n=12, d=60, snr=0.5, noise_scale=60**-0.5, orthogonal=False, label_flip=0.1, negative_flip=0.3
        ),
        TwoLayerCNN(width=4, init_scale=0.2, average_filters=False),
        SAM(0.1, radius=0.6),
    ),
    "momentum and decay": make(
        SignalNoise(n=12, d=24, signal_norm=0.3, noise_scale=24**-0.5),
        TwoLayerCNN(width=4, init_scale=0.5, average_patches=True),
        GradientDescent(0.2, momentum=0.8, weight_decay=0.05),
        20,
        loss=squared,
    ),
    "Adam": make(
        SignalNoise(n=12, d=100, snr=0.5, noise_scale=0.1),
        TwoLayerCNN(width=4, init_scale=0.1),
        Adam(0.01, bias_correction=True),
        30,
    ),
}
SOON = {"cubic at d = inf, paced"}
LEVEL = 1e-4 / (len(CASES) * (len(QUANTITIES) + 1))


def each(names=CASES):
    return [pytest.param(name, marks=[] if name in SOON else pytest.mark.slow) for name in names]


@pytest.fixture(scope="module")
def measured():
    """What featlab reads at the ends of a case's runs, each case once."""
    found = {}

    def of(name):
        if name not in found:
            found[name] = train_many([CASES[name]] * SEEDS, list(range(SEEDS)))
        return found[name]

    return of


def results(text, tmp_path, *, seeds=SEEDS, first=10_000):
    path = tmp_path / "script.py"
    path.write_text(text)
    command = [sys.executable, "-I", str(path), "--json", "--seeds", str(seeds), "--first-seed", str(first)]
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=300, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    )
    assert ran.returncode == 0 and ran.stderr == "", ran.stderr
    return json.loads(ran.stdout)


def p_values(script, featlab):
    """A two-sample z-test for each quantity; equal constants have p-value 1."""
    found = {}
    pairs = dict(QUANTITIES, **({"steps": "steps_taken"} if "steps" in script[0] else {}))
    for ours, theirs in pairs.items():
        one, two = np.array([run[ours] for run in script]), np.asarray(featlab[theirs], float)
        assert one.shape == two.shape == (SEEDS,) and np.isfinite(one).all() and np.isfinite(two).all()
        error = np.sqrt(one.var(ddof=1) / SEEDS + two.var(ddof=1) / SEEDS)
        difference = abs(one.mean() - two.mean())
        found[ours] = 2 * stats.norm.sf(difference / error) if error > 0 else float(difference == 0)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", each())
def test_the_script_agrees_with_featlab_in_law(name, measured, tmp_path):
    found = p_values(results(numpy_script(CASES[name]), tmp_path), measured(name))
    assert min(found.values()) > LEVEL, found


# One change of a script each.
DEFECTS = {
    "a longer signal": ("cubic at d = inf, paced", "SIGNAL = 0.5 ", "SIGNAL = 0.6 "),
    "a larger start": ("cubic at d = inf, paced", "SIGMA_0 = 0.4 ", "SIGMA_0 = 0.5 "),
    "louder fresh noise": ("cubic at d = inf, paced", "weights[:, -2 * M :].T", "(2 * weights[:, -2 * M :].T)"),
    "a larger learning rate": ("ReLU at d = 1e6, flips", "ETA = 1 ", "ETA = 1.3 "),
    "louder noise": ("ReLU at d = 1e6, flips", "SIGMA = 0.001 ", "SIGMA = 0.0012 "),
    "quieter fresh noise": ("ReLU at d = 1e6, flips", "on_noise = SIGMA *", "on_noise = 0.6 * SIGMA *"),
    "more flips": ("ReLU at d = 1e6, flips", "FLIP = 0.15 ", "FLIP = 0.25 "),
    "classes by a coin": ("classes in turn", "turns = np.resize([1.0, -1.0], N)", "turns = y"),
    "no sign of the cluster": ("exclusive or", "return s * np.where", "return np.where"),
    "another angle": ("exclusive or", "COSINE = 0.3 ", "COSINE = 0.6 "),
    "labels flipped once": ("label noise", "rng.random(N) < NOISE", "np.arange(N) < NOISE * N"),
    "less label noise": ("label noise", "NOISE = 0.2 ", "NOISE = 0.1 "),
    "no perturbation": ("SAM", "TAU = 0.6 ", "TAU = 0 "),
    "one probability for both classes": ("SAM", "NEGATIVE_FLIP = 0.3 ", "NEGATIVE_FLIP = 0.1 "),
    "wrong degrees of freedom": ("momentum and decay", "D - used - np.arange(count)", "D + 0 * np.arange(count)"),
    "less momentum": ("momentum and decay", "BETA = 0.8 ", "BETA = 0.7 "),
    "alpha forgotten": ("momentum and decay", "weights - alpha * start", "weights - start"),
    "less correction": ("Adam", "square / (1 - BETA_2 ** (steps + 1))", "square"),
}


@pytest.mark.parametrize(
    "defect", [pytest.param(d, marks=[] if d == "a longer signal" else pytest.mark.slow) for d in DEFECTS]
)
def test_a_defect_is_rejected_by_the_same_test(defect, measured, tmp_path):
    name, right, wrong = DEFECTS[defect]
    text = numpy_script(CASES[name])
    assert text.count(right) == 1
    found = p_values(results(text.replace(right, wrong), tmp_path), measured(name))
    assert min(found.values()) < LEVEL, found


def test_the_script_takes_classes_in_turn():
    text = numpy_script(CASES["classes in turn"])
    assert "y = +-1 in turn" in text and "turns" not in numpy_script(CASES["Adam"])
    plain = numpy_script(dataclasses.replace(CASES["Adam"], data=SignalNoise(n=5, d=1e4, snr=1.0, balanced=True)))
    for one in (text, plain):
        assert loaded(one)["run"](0)["train_loss"] < 0.7


def loaded(text):
    """The script's functions, without running it."""
    names = {"__name__": "script", "__doc__": text[3:]}
    exec(compile(text, "script.py", "exec"), names)
    return names


EXACT = {name: case for name, case in CASES.items() if name != "label noise"} | {
    "sign descent": dataclasses.replace(CASES["Adam"], algorithm=SignDescent(0.01, weight_decay=0.1)),
    "Adam without correction": dataclasses.replace(
        CASES["Adam"], algorithm=Adam(0.01, 0.8, 0.95, weight_decay=0.1)
    ),
    "fewer dimensions than vectors": dataclasses.replace(
        CASES["ReLU at d = 1e6, flips"], data=SignalNoise(n=12, d=15, snr=0.5, noise_scale=0.25, random_slot=True)
    ),
    "decay at d = inf, after": dataclasses.replace(
        CASES["cubic at d = inf, paced"],
        algorithm=GradientDescent(0.5, weight_decay=0.01),
        steps=until(train_loss, 0.6, at_most=60, after=30),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_from_the_same_draw_the_script_descends_alike(name):
    """Gradients by hand against autodiff, least squares against inner products, in float64."""
    read = [train_loss.on(at_end), signal_learnt.on(at_end), noise_memorised.on(at_end)]
    experiment = dataclasses.replace(EXACT[name], precision=64, probes=read)
    with jax.enable_x64(True):
        drawn = eqx.filter_jit(draw_one)  # one program instead of many small ones
        draw, _ = drawn(experiment, experiment.empty_space(), np.uint32(3), experiment.data.n)
        draw = jax.tree.map(np.asarray, (draw.truth.vectors, draw.training, draw.start.filters))
    signals, training, filters = draw
    start = filters.reshape(-1, filters.shape[-1])
    script, patches = loaded(numpy_script(experiment)), list(np.moveaxis(training.inputs, 1, 0))
    weights, steps = script["train"](start, patches, training.labels), experiment.steps
    if isinstance(steps, until):
        weights, steps = weights
    own, of_start = weights[:, -len(start) :], start[:, -len(start) :]
    alpha = np.sum(own * of_start) / np.sum(of_start**2) if "alpha" in numpy_script(experiment) else 1.0
    gamma, rho = script["largest_coefficients"](weights - alpha * start, signals, training.noise[:, 0])
    expected = train_many([experiment], [3])
    assert steps == expected["steps_taken"][0] > 5
    assert np.abs(weights - start).max() > 0.05
    loss = script["training_loss"](weights, patches, training.labels)
    found = {"train_loss": loss, "signal_learnt": gamma, "noise_memorised": rho}
    for variable, value in found.items():
        np.testing.assert_allclose(value, expected[variable][0], rtol=1e-9, err_msg=variable)


DATA = [
    SignalNoise(n=5, d=np.inf, snr=0.5, test_flip=0.1),
    SignalNoise(n=5, d=40, snr=0.5, orthogonal=False),
    SignalNoise(n=5, d=40.5, signal_norm=1, label_flip=0.2, negative_flip=0.4),
    XorSignalNoise(n=5, d=np.inf, snr=0.5),
    XorSignalNoise(n=5, d=1e9, snr=0.5, noise_scale=1e-4, label_flip=0.1),
    XorSignalNoise(n=5, d=40, signal_norm=1, cosine=-0.4, orthogonal=False),
]
NETWORKS = [
    TwoLayerCNN(width=2),
    TwoLayerCNN(width=2, activation=relu_power(3), average_filters=False),
    TwoLayerCNN(width=2, activation=relu_power(0.5), average_patches=True, init_scale=0.5),
    TwoLayerCNN(width=2, activation=leaky_relu(0.2), average_filters=False, average_patches=True),
    TwoLayerCNN(width=2, activation=identity),
]
ALGORITHMS = [
    GradientDescent(0.1),
    GradientDescent(0.1, 0.9),
    GradientDescent(0.1, weight_decay=0.1),
    GradientDescent(1 / 3, 0.9, 0.1),
    PacedDescent(0.1),
    LabelNoiseDescent(0.1, 0.2),
    SAM(0.1, 0.1),
]
BY_COORDINATE = [
    SignDescent(0.1),
    SignDescent(0.1, 0.1),
    Adam(0.1),
    Adam(0.1, bias_correction=True, weight_decay=1),
]
STEPS = [3, 0, until(train_loss, 0.69, at_most=3), until(train_loss, 0.69, at_most=3, after=2)]


def variants():
    parts = list(itertools.product(DATA, NETWORKS, ALGORITHMS, STEPS, (logistic, squared)))
    yield from (make(*four, loss=loss) for *four, loss in parts[::37])  # 37 is prime to the numbers of each
    for algorithm, steps in itertools.product(BY_COORDINATE, STEPS):
        yield make(SignalNoise(n=5, d=40, snr=0.5), NETWORKS[0], algorithm, steps)
    yield make(SignalNoise(n=5, d=7, snr=0.5), NETWORKS[0], PacedDescent(0.1))
    for flip in (0.0, 0.2):
        in_turn = SignalNoise(n=5, d=40, snr=0.5, balanced=True, label_flip=flip)
        yield make(in_turn, NETWORKS[0], GradientDescent(0.1))
    yield make(DATA[0], TwoLayerCNN(width=2, init_scale=0), GradientDescent(0.1, weight_decay=0.1))


@pytest.fixture(scope="module")
def texts():
    return [(experiment, numpy_script(experiment)) for experiment in variants()]


def test_all_variants_run_and_have_nothing_superfluous(texts, tmp_path):
    for i, (experiment, text) in enumerate(texts):
        (tmp_path / f"script_{i}.py").write_text(text)
        result = loaded(text)["run"](5)
        assert all(np.isfinite(value) for value in result.values()) and list(result)[0] == "seed"
        assert ("steps" in result) == isinstance(experiment.steps, until)
        names = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
        made = {name.id for name in names if isinstance(name.ctx, ast.Store)}
        made |= {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
        used = {name.id for name in names if isinstance(name.ctx, ast.Load)}
        assert made - used <= {"_"}, text
        assert not re.search(r"\?\?|==$|%[a-z]", text, flags=re.M) and max(map(len, text.splitlines())) <= 100
    ruff = [sys.executable, "-m", "ruff"]
    for check in (["check", "--select", "F,E,W,ARG"], ["format", "--check"]):
        ran = subprocess.run(
            [*ruff, *check, "--isolated", "--no-cache", "--line-length", "100", str(tmp_path)],
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_line_of_the_template_is_some_script_s(texts):
    conditions = {line.partition("??")[2] for line in TEMPLATE.splitlines()}
    conditions |= {line[2:] for line in TEMPLATE.splitlines() if line.startswith("==")}
    holding = [_conditions(experiment) for experiment, _ in texts]
    for condition in conditions:
        assert any(_kept(condition, holds) for holds in holding), condition


def test_a_script_needs_numpy_and_nothing_else(texts):
    for _, text in texts:
        imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
        assert all(isinstance(node, ast.Import) for node in imports)
        assert {alias.name for node in imports for alias in node.names} == {"argparse", "json", "numpy"}


def test_numbers_are_literals_that_mean_the_same():
    data = SignalNoise(n=7, d=1e9, snr=1 / 3, noise_scale=1e9**-0.5, label_flip=0.1)
    text = numpy_script(make(data, TwoLayerCNN(width=3, init_scale=6e-5), GradientDescent(2.0)), seeds=9)
    assert "D = 1e9  #" in text and "SNR = 0.3333333333333333  #" in text and "SIGMA_0 = 6e-5  #" in text
    script = loaded(text)
    names = ("N", "D", "SNR", "SIGMA", "FLIP", "TEST_FLIP", "M", "SIGMA_0", "ETA", "STEPS", "TESTS")
    assert [script[name] for name in names] == [7, 1e9, 1 / 3, 1e9**-0.5, 0.1, 0, 3, 6e-5, 2, 40, TESTS]
    assert script["SIGNAL"] == pytest.approx(1 / 3) and "default=9" in text


def test_the_table_has_every_seed_and_their_means(tmp_path):
    text = numpy_script(CASES["cubic at d = inf, paced"])
    (tmp_path / "script.py").write_text(text)
    command = [sys.executable, "-I", "script.py", "--seeds", "3", "--first-seed", "5"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    head, *rows = [line.split() for line in ran.stdout.splitlines()]
    assert head == ["seed", "steps", "train_loss", "test_error", "test_loss", "max_gamma", "max_rho"]
    assert [row[0] for row in rows] == ["5", "6", "7", "mean"]
    numbers = np.array([row[1:] for row in rows], float)
    np.testing.assert_allclose(numbers[-1], numbers[:-1].mean(axis=0), rtol=2e-3)
    assert results(text, tmp_path, seeds=1, first=6)[0]["max_rho"] == pytest.approx(numbers[1, -1], rel=1e-3)
    wrong = subprocess.run([*command[:3], "--seeds", "0"], capture_output=True, text=True, cwd=tmp_path)
    assert wrong.returncode == 2 and "--seeds must be at least 1" in wrong.stderr


class Mine(SignalNoise):
    """A law of the user's own."""


def mine(z):
    return z**2


PLAIN = CASES["ReLU at d = 1e6, flips"]
REFUSED = {
    "data model Minibatches": {"data": fl.data.Minibatches(PLAIN.data, 4)},
    "data model Mine": {"data": Mine(n=5, d=40, snr=0.5)},
    "signal of length 0": {"data": SignalNoise(n=5, d=40, snr=0)},
    "d = 5 dimensions": {"data": SignalNoise(n=5, d=5, snr=1)},
    "Weight decay in d = 9": {
        "data": SignalNoise(n=5, d=9, snr=1),
        "algorithm": GradientDescent(0.1, weight_decay=0.1),
    },
    "network PlainNetwork": {"network": fl.networks.PlainNetwork.examples()[0], "probes": []},
    "activation erf": {"network": TwoLayerCNN(width=2, activation=fl.networks.erf)},
    "activation mine": {"network": TwoLayerCNN(width=2, activation=mine)},
    "TwoLayerCNN with bias": {"network": TwoLayerCNN(width=2, bias=True)},
    "TwoLayerCNN with train_head": {"network": TwoLayerCNN(width=2, train_head=True)},
    "TwoLayerCNN with uniform_start": {"network": TwoLayerCNN(width=2, uniform_start=True)},
    "loss <lambda>": {"objective": lambda f, y: mine(f - y)},
    "another network": {"objective": fl.objectives.Supervised(TwoLayerCNN(width=3), logistic)},
    "algorithm Mixup": {"algorithm": fl.algorithms.Mixup(0.1)},
    "Adam on whole vectors of d = 1e+06": {"algorithm": Adam(0.1)},
    "until the probe test_loss": {"steps": until(fl.probes.test_loss, 0.1)},
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_a_script_is_refused_in_one_sentence(what):
    with pytest.raises(fl.InputError) as caught:
        numpy_script(dataclasses.replace(PLAIN, **REFUSED[what]))
    message = str(caught.value)
    assert what in message and "featlab run FILE.toml" in message and message.endswith("`.")


@pytest.mark.parametrize("seeds", [0, -1, 2.5, True, "4"])
def test_seeds_are_a_number(seeds):
    with pytest.raises(fl.InputError, match="whole number of seeds"):
        numpy_script(PLAIN, seeds)


def test_what_cannot_be_run_is_no_script_either():
    with pytest.raises(fl.InputError, match="Span is not possible"):
        numpy_script(dataclasses.replace(CASES["Adam"], space=fl.Span))
