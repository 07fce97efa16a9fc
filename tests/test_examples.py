"""Every example states an experiment that runs, trains, and can be written down again."""

import importlib
from pathlib import Path

import pytest

import featlab as fl
from featlab.text import changed, describe, load_experiment

FILES = sorted((Path(__file__).parent.parent / "examples").glob("*.toml"))


def test_there_are_examples():
    assert len(FILES) >= 5


SOON = ("kou2023_flips",)
MARKED = [pytest.param(path, id=path.stem, marks=[] if path.stem in SOON else pytest.mark.slow) for path in FILES]


@pytest.mark.parametrize("path", MARKED)
def test_example(path):
    experiment, settings = load_experiment(path)
    assert fl.rebuild(describe(experiment)) == experiment
    history = fl.run(experiment, seeds=2)
    assert history.trained.all() and (history.train_loss[:, -1] < 0.05).all()
    assert settings["title"].endswith(".") and settings["seeds"] >= 8
    for one in settings.get("compare", ()):
        assert changed(experiment, {"algorithm": fl.rebuild(one.rpartition(":")[2])})


@pytest.mark.slow
def test_the_cao_pair_differs_in_the_signal_alone_and_in_what_is_learnt():
    benign, harmful = (
        load_experiment(FILES[0].parent / f"cao2022_{side}.toml")[0] for side in ("benign", "harmful")
    )
    from featlab.text import override

    assert override(harmful, [f"data.snr={benign.data.snr}"]) == benign
    good, bad = fl.run(benign, seeds=2).isel(step=-1), fl.run(harmful, seeds=2).isel(step=-1)
    assert (good.test_loss < 0.05).all() and (bad.test_loss > 0.5).all()
    assert (good.gamma.max(["class", "filter"]) > 10 * good.rho.max(["class", "filter", "sample"])).all()
    assert (bad.rho.max(["class", "filter", "sample"]) > 10 * bad.gamma.max(["class", "filter"])).all()


@pytest.mark.slow
def test_the_heat_map_draws_and_is_kept(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(FILES[0].parent)
    import heatmap

    assert heatmap.main(tmp_path, seeds=2, every=20).stat().st_size > 10_000
    assert fl.load(tmp_path / "store").done.all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "script, options",
    [
        ("heatmap", {"every": 33}),
        ("label_noise_heatmap", {"cells": 2}),
        ("staircase", {"n": 200}),
        ("spectrum", {"n": 200}),
        ("double_descent", {"n": 150}),
        ("ridge_regimes", {"n": 64}),
        ("metric_learning", {"n": 20}),
        ("langevin", {"width": 200}),
        ("transformer", {"every": 10}),
        ("sign_descent", {"d": 800}),
        ("diffusion", {"n": 6}),
        ("contrastive", {"points": 3}),
        ("sparse_coding", {"d": 16}),
        ("agop", {"n": 60}),
        ("parity", {"d": 20}),
        ("meter_flips", {"steps": 40}),
        ("meter_adam", {"steps": 40}),
        ("emergence", {"steps": 40}),
    ],
)
def test_a_script_draws_its_figure(script, options, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(FILES[0].parent)
    if script == "label_noise_heatmap":
        monkeypatch.setattr(f"{script}.STEPS", 50)
    figure = importlib.import_module(script).main(tmp_path, 2, *options.values())
    assert figure.exists() and figure.stat().st_size > 10_000
