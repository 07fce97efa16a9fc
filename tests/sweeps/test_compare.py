"""`compare`: the same seeds, data and start for every algorithm; what it says, writes, draws and refuses."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner

import featlab as fl
from featlab import plots
from featlab.algorithms import SAM, Adam, GradientDescent, SignDescent
from featlab.commands import compare as commands
from featlab.commands.cli import main
from featlab.probes import evenly, margins, train_loss
from featlab.sweeps import compare as comparisons
from featlab.sweeps import sweep as sweeps
from featlab.sweeps.compare import as_changes, names_of, paired, planned

pytestmark = pytest.mark.xdist_group("compare")  # one comparison for all
BAD_INPUT, INTERRUPTED = 2, 130
ROOT = Path(__file__).parents[2]
GD, NEAR = GradientDescent(0.1), SAM(0.1, radius=0.05)
TOML = """
title = "A test"
seeds = 3
steps = 4
record = "evenly(2)"
probes = ["train_loss", "margins", "test_error(count=50)"]
[data]
kind = "SignalNoise"
n = 4
d = 40
snr = 0.5
label_flip = 0.25
test_flip = 0.1
[network]
kind = "TwoLayerCNN"
width = 2
[algorithm]
kind = "GradientDescent"
learning_rate = 0.3
"""


@pytest.fixture(scope="module")
def experiment():
    return fl.Experiment(
        data=fl.data.SignalNoise(n=4, d=40, snr=0.5, label_flip=0.25, test_flip=0.1),
        network=fl.networks.TwoLayerCNN(width=2),
        algorithm=GradientDescent(0.3),
        probes=[train_loss, margins, fl.probes.test_error(count=50)],
        steps=4,
        record=evenly(2),
    )


@pytest.fixture(scope="module")
def both(experiment):
    return fl.compare(experiment, {"gd": GD, "sam": NEAR, "adam": Adam(0.01)}, seeds=3)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "test.toml"
    path.write_text(TOML)
    return str(path)


@pytest.fixture
def quick(monkeypatch):
    """Runs of a sweep whose results are made up of seed and algorithm."""
    computed = []

    def compute(group, runs, **_):
        computed.append(len(runs.seeds))
        names = [name for probe in group.first.probes for name, _ in probe.variables]
        shift = 0.2 * isinstance(group.first.algorithm, SAM) + 0.01 * runs.experiments
        values = {name: 0.5 - shift + 0.1 * (runs.seeds % 3) for name in (*names, "steps_taken")}
        return values | {"trained": np.ones(len(runs.seeds), bool)}

    monkeypatch.setattr(sweeps, "compute", compute)
    monkeypatch.setattr(sweeps, "_SOON", np.inf)
    return computed


def alone(experiment, **changes):
    return fl.run(replace(experiment, **changes), 3)


def call(*arguments):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def refused(*arguments):
    code, out, err = call("compare", *arguments)
    assert code == BAD_INPUT and out == "" and len(err.strip().splitlines()) == 1, out + err
    return err.strip()


# ---- pairing


def test_a_seed_is_the_same_data_start_and_test_for_every_algorithm(both):
    assert list(both.algorithm.values) == ["gd", "sam", "adam"] and both.train_loss.dims[0] == "algorithm"
    assert both.attrs["space"] == "Ambient"  # Adam needs it
    begin, gd = both.isel(step=0), both.sel(algorithm="gd")
    for name in ("sam", "adam"):
        for variable in ("label", "clean_label"):
            np.testing.assert_array_equal(both[variable].sel(algorithm=name), gd[variable])
        for variable in ("margin", "test_error", "clean_test_error"):  # of data and start together
            np.testing.assert_array_equal(begin[variable].sel(algorithm=name), begin[variable].sel(algorithm="gd"))
        assert (both.train_loss.sel(algorithm=name)[:, -1] != gd.train_loss[:, -1]).all()
    assert len(np.unique(begin.margin.sel(algorithm="gd"))) == 12  # seeds differ


def test_each_is_exactly_the_run_alone(both, experiment):
    for name, algorithm in {"gd": GD, "sam": NEAR, "adam": Adam(0.01)}.items():
        separate = alone(experiment, algorithm=algorithm, space=fl.Ambient)
        part = both.sel(algorithm=name)
        for variable in separate.data_vars:
            np.testing.assert_array_equal(part[variable], separate[variable])
            assert both[variable].attrs == separate[variable].attrs
        assert fl.rebuild(str(part.experiment.item())).algorithm == algorithm


def test_one_space_for_all_and_span_where_all_can(experiment):
    free = paired(experiment, as_changes({"gd": GD, "sam": NEAR}))
    assert [one.space for one in free.values()] == [None, None]
    algorithms = as_changes({"gd": GD, "sign": SignDescent(0.1)})
    mixed = planned(experiment, algorithms, {"data.d": [10, 4000]}, 1)
    assert list(mixed) == ["gd", "sign"]
    assert all(isinstance(program.space, fl.Ambient) for plan in mixed.values() for program in plan.programs)
    endless = replace(experiment, data=fl.data.SignalNoise(n=4, d=np.inf, snr=0.5))
    with pytest.raises(fl.InputError, match="needs Span, which is not possible: the algorithm Adam"):
        fl.compare(endless, [GD, Adam(0.01)])


@pytest.mark.slow
def test_what_one_algorithm_did_not_record_is_nan(experiment, both):
    other = {"algorithm": NEAR, "steps": 2, "probes": [train_loss, fl.probes.deactivation]}
    mixed = fl.compare(replace(experiment, space=fl.Ambient), {"gd": GD, "short": other}, seeds=3)
    assert mixed.step.values.tolist() == [0, 1, 2, 4]
    np.testing.assert_array_equal(mixed.train_loss.sel(algorithm="gd", step=[0, 2, 4]), both.train_loss[0])
    short = mixed.sel(algorithm="short")
    assert np.isfinite(short.train_loss.sel(step=[0, 1, 2])).all() and np.isnan(short.train_loss.sel(step=4)).all()
    assert np.isnan(mixed.deactivated.sel(algorithm="gd")).all() and short.steps_taken.values.tolist() == [2] * 3
    assert np.isfinite(commands._ending(short, "train_loss")).all()  # where that one ended
    assert plots.comparison(mixed).axes[0].lines[1].get_xdata()[-1] == 2
    with pytest.raises(fl.InputError, match="deactivation needs SAM"):
        fl.compare(experiment, {"gd": {"algorithm": GD, "probes": [fl.probes.deactivation]}})


def test_names_say_the_class_and_what_differs():
    assert names_of([GD, SAM(0.1, 0.05), SAM(0.1, 0.2)]) == [
        "GradientDescent",
        "SAM(radius=0.05)",
        "SAM(radius=0.2)",
    ]
    with pytest.raises(fl.InputError, match="compare has GradientDescent twice"):
        as_changes([GD, GD])
    for bad, words in (
        ([], "at least one algorithm"),
        ([3], "must be algorithms"),
        (GD, "must be a mapping such as"),
        ({"": GD}, "must be a word"),
    ):
        with pytest.raises(fl.InputError, match=words):
            as_changes(bad)


def test_bad_calls_are_refused_before_anything_is_trained(experiment, monkeypatch):
    monkeypatch.setattr(comparisons, "run", lambda *_, **__: pytest.fail("trained"))
    monkeypatch.setattr(comparisons, "sweep", lambda *_, **__: pytest.fail("trained"))
    for given, words in (
        ({"algorithms": {"gd": GD, "three": 3}}, "Experiment.algorithm must be an algorithm"),
        ({"algorithms": {"gd": {"algorithm": GD, "stepz": 3}}}, "did you mean 'steps'"),
        ({"algorithms": [GD], "out": "somewhere"}, r"compare\(out=\) belongs to sweeps"),
        ({"algorithms": [GD], "seeds": 0}, r"compare\(seeds=\)"),
        ({"algorithms": [GD], "grid": {"algorithm": [GD, NEAR]}}, "cannot sweep the algorithm itself"),
        ({"algorithms": [GD, NEAR], "grid": {"algorithm.momentum": [0.1, 0.2]}}, "SAM has no field 'momentum'"),
        ({"algorithms": [GD], "grid": {"data.snrr": [1.0]}}, "did you mean 'snr'"),
    ):
        with pytest.raises(fl.InputError, match=words):
            fl.compare(experiment, **given)
    with pytest.raises(fl.InputError, match="needs an Experiment"):
        fl.compare(lambda n: experiment, [GD])


# ---- sweeps


GRID = {"data.snr": [0.2, 0.8]}


@pytest.mark.slow
def test_with_a_grid_each_is_exactly_the_sweep_alone_and_is_kept(experiment, tmp_path, monkeypatch):
    less = replace(experiment, probes=[train_loss])
    wanted = {"gd": GD, "my/sam": NEAR}
    together = fl.compare(less, wanted, seeds=2, grid=GRID, out=tmp_path)
    assert together.train_loss.dims == ("algorithm", "snr", "seed") and together.done.all()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gd", "my_sam"]
    monkeypatch.setattr(sweeps, "compute", lambda *_, **__: pytest.fail("computed again"))
    xr.testing.assert_identical(fl.compare(less, wanted, seeds=2, grid=GRID, out=tmp_path), together)
    for (name, algorithm), folder in zip(wanted.items(), ("gd", "my_sam")):
        separate = fl.sweep(replace(less, algorithm=algorithm), GRID, 2, out=tmp_path / folder)
        for variable in separate.data_vars:
            np.testing.assert_array_equal(together[variable].sel(algorithm=name), separate[variable])
    loaded = fl.load(fl.save(together, tmp_path).parent)
    np.testing.assert_array_equal(loaded.train_loss, together.train_loss)


def test_a_function_is_swept_with_every_algorithm(experiment, quick):
    def scaled(n, c):
        return replace(experiment, data=replace(experiment.data, n=n, snr=c / n))

    found = fl.compare(scaled, [GD, Adam(0.1)], seeds=2, grid={"n": [2, 4], "c": [1.0, 2.0]})
    assert found.sizes == {"algorithm": 2, "n": 2, "c": 2, "seed": 2} and sum(quick) == 16
    spaces = [fl.rebuild(text).space for text in found.experiment.values]
    assert fl.Ambient in spaces


@pytest.mark.parametrize("grid", [None, GRID])
def test_an_interrupt_keeps_what_there_is(experiment, monkeypatch, quick, both, grid):
    turns = []

    def interrupted(*arguments, **options):
        if len(turns) > 1:
            raise KeyboardInterrupt
        return both.sel(algorithm="gd").drop_vars("algorithm").assign_attrs(experiment="", interrupted=0)

    real = sweeps.sweep
    monkeypatch.setattr(comparisons, "run", interrupted)
    monkeypatch.setattr(comparisons, "sweep", lambda *a, **k: interrupted() if len(turns) > 1 else real(*a, **k))
    found = fl.compare(experiment, [GD, NEAR, Adam(0.1)], seeds=3, grid=grid, tell=turns.append)
    assert turns == ["GradientDescent", "SAM"] and found.algorithm.values.tolist() == ["GradientDescent"]
    assert found.attrs["interrupted"] == 1
    turns += ["more"]
    with pytest.raises(KeyboardInterrupt):
        fl.compare(experiment, [GD], seeds=3, grid=grid)


def test_seeds_that_an_interrupted_run_lacks_are_marked(both):
    parts = {str(name): both.sel(algorithm=name, drop=True) for name in both.algorithm.values}
    parts = {name: part.assign_attrs(experiment="", interrupted=0) for name, part in parts.items()}
    parts["adam"] = parts["adam"].isel(seed=[0, 1], step=[0, 1])
    joined = comparisons._beside(parts, True)
    assert joined.status.values[2].tolist() == ["trained", "trained", "not run"]
    assert joined.trained.dtype == bool and joined.steps_taken.dtype.kind == "i"
    assert not joined.trained[2, 2] and np.isnan(joined.train_loss[2, 2]).all()


# ---- the command


def test_the_command_prints_a_table_and_writes_results_and_figures(file, tmp_path, both):
    out = tmp_path / "out"
    code, text, err = call(
        "compare", file, "gd: GradientDescent(0.1)", "sam: SAM(0.1, radius=0.05)", "adam: Adam(0.01)", "data.d=40",
        "--out", out,
    )  # fmt: skip
    assert code == 0 and err == "", text + err
    assert text.splitlines()[0] == f"gd, sam, adam: the same 3 seeds for each; kept in {out}."
    loaded = fl.load(out)
    np.testing.assert_array_equal(loaded.train_loss, both.train_loss)
    losses = both.train_loss[:, :, -1].values.astype(float)
    for name, values in zip(("gd", "sam", "adam"), losses):
        error = np.std(values, ddof=1) / np.sqrt(3)
        assert re.search(rf" {name} +{re.escape(f'{values.mean():.3g}')} ±{error:.1g} .* 4   3 of 3", text), text
    gap = (both.test_error[1] - both.test_error[0])[:, -1].values
    assert "test error minus" in text and f"{gap.mean():+.3g} ±{np.std(gap, ddof=1) / np.sqrt(3):.1g}" in text
    for ending in ("svg", "png"):
        assert str(out / f"comparison.{ending}") in text and (out / f"comparison.{ending}").stat().st_size > 10_000


def test_with_a_grid_the_command_draws_phase_diagrams_and_goes_on(file, tmp_path, quick, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(file).write_text('compare = ["GradientDescent(0.1)", "SAM(0.1, 0.05)"]\n' + TOML)
    grid = ("--grid", "data.snr=0.2,0.4,0.8", "--grid", "data.n=4,6", "--level", "0.45", "--show", "test_error")
    code, text, err = call("compare", file, *grid)
    assert code == 0 and err == "", text + err
    out = Path("out/test-compare")
    assert text.splitlines()[0] == f"GradientDescent, SAM: the same 3 seeds for each; kept in {out}."
    assert "3 snr x 2 n, 3 seeds in each cell" in text and "cells below 0.45" in text
    assert text.count("18 of 18     100%") == 2 and str(out / "phase_diagrams.svg") in text
    assert {"GradientDescent", "SAM", "results.nc", "phase_diagrams.png"} <= {path.name for path in out.iterdir()}
    done = sum(quick)
    assert fl.load(out).done.all() and done == 36
    assert call("compare", file, *grid)[0] == 0 and sum(quick) == done  # nothing is computed again


def test_an_interrupted_command_says_so(file, tmp_path, monkeypatch, both):
    monkeypatch.setattr(commands, "compare", lambda *_, **__: both.assign_attrs(interrupted=1))
    code, text, _ = call("compare", file, "Adam(0.1)", "--out", tmp_path / "out")
    assert code == INTERRUPTED and "Interrupted; this is what there is." in text

    def at_once(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "compare", at_once)
    assert call("compare", file, "Adam(0.1)", "--out", tmp_path / "out")[0] == INTERRUPTED


def test_the_command_refuses_in_one_sentence(file, tmp_path):
    algorithm = "GradientDescent(0.1)"
    (tmp_path / "blocked").write_text("a file, not a folder")
    for words, sentence in (
        ([], 'compare needs algorithms, for instance "GradientDescent(0.1)"'),
        (["GradintDescent(0.1)"], "did you mean 'GradientDescent'?"),
        (["GradientDescent()"], "GradientDescent needs learning_rate"),
        (["train_loss"], "must be algorithms, such as SAM(0.1, radius=0.05)"),
        (["GradientDescent(0.1"], "is not an expression"),
        ([algorithm, algorithm], "compare has GradientDescent twice"),
        ([f"a: {algorithm}", "a: Adam(0.1)"], "compare has a twice"),
        ([algorithm, "data.snrr=1"], "did you mean 'snr'?"),
        ([algorithm, "Adam(0.1)", "data.d=inf"], "which is not possible: the algorithm Adam"),
        ([algorithm, "--show", "train_los"], "did you mean 'train_loss'?"),
        ([algorithm, "--level", "0.1"], "--level belongs to a sweep"),
        ([algorithm, "--near", "test_error=0.1"], "--near belongs to a sweep"),
        ([algorithm, "--grid", "data.snr"], "--grid must have the form"),
        ([algorithm, "--grid", "data.snr=0.1,0.2", "--show", "test_eror"], "did you mean 'test_error'?"),
        ([algorithm, "--grid", "data.snr=0.1,0.2", "--show", "a", "--show", "b"], "--show takes one variable"),
        ([algorithm, "--out", str(tmp_path / "blocked")], "cannot be written"),
    ):
        assert sentence in refused(file, *words)
    Path(file).write_text("compare = [3]\n" + TOML)
    assert "must be a list of algorithms in quotes" in refused(file)
    assert "There is no file 'nowhere.toml'" in refused("nowhere.toml", algorithm)


@pytest.mark.parametrize("name", ["docs/guide.md"])
def test_the_commands_of_the_documentation_are_understood(name, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    seen = []

    def stop(experiment, algorithms, *, seeds, **options):
        changes, grid = as_changes(algorithms), options.get("grid")
        seen.append(planned(experiment, changes, grid, seeds) if grid else paired(experiment, changes))
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "compare", stop)
    found = re.findall(r"^ *(?:\.venv/bin/)?featlab (compare .*)$", (ROOT / name).read_text(), re.MULTILINE)
    for command in found:
        code, text, err = call(*shlex.split(command), "--out", tmp_path / "out")
        assert code == INTERRUPTED, text + err
    assert found and len(seen) == len(found) and all(len(one) > 1 for one in seen)


# ---- figures


def diagrams():
    """The error falls from 0.5 to 0.1, for each next algorithm at half the signal."""
    names, mu, d = ("gd", "SAM", "third"), np.geomspace(1, 16, 9), np.geomspace(100, 1e4, 4)
    shift = np.log(2) * np.arange(len(names))[:, None, None, None] + np.array([-0.1, 0.0, 0.2])
    u = np.log(mu)[:, None] - 0.5 * np.log(d / 50)[:, None, None] + shift
    dims = ("algorithm", "d", "signal_norm", "seed")
    error = np.clip(0.3 - 0.15 * u, 0.1, 0.5)
    return xr.Dataset(
        {
            "test_error": (dims, error, {"symbol": "L_D^{0-1}", "long_name": "test error"}),
            "done": (dims, np.ones(error.shape, bool)),
            "trained": (dims, np.ones(error.shape, bool)),
        },
        {
            "algorithm": list(names),
            "d": ("d", d, {"symbol": "d", "long_name": "dimension", "scale": "log"}),
            "signal_norm": ("signal_norm", mu, {"symbol": r"\|\mu\|", "scale": "log"}),
            "seed": np.arange(3),
        },
    )


def of(axes, gid):
    return [artist for artist in [*axes.lines, *axes.collections] if artist.get_gid() == gid]


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_curves_have_a_panel_for_each_variable_and_a_line_for_each_algorithm(both, tmp_path):
    figure = plots.comparison(both)
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "training loss  $L_S$", "test error, observed labels  $L_D^{0-1}$",
    ]  # fmt: skip
    assert figure.axes[0].get_xlabel() == "step  $t$"
    lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 3]
    np.testing.assert_allclose([line.get_ydata() for line in lines], both.train_loss.mean("seed"))
    for feature in ("get_color", "get_marker"):
        assert len({getattr(line, feature)() for line in lines}) == 3
    assert len({str(line._dash_pattern) + line.get_linestyle() for line in lines}) == 3
    assert legend(figure) == ["gd", "sam", "adam", "floor from flipped labels, 0.1"]
    assert figure.legends[0].get_title().get_text() == "the same 3 seeds for each, mean and 95 % band"
    first, second = (plots.save(plots.comparison(both), tmp_path / f"{k}.svg").read_bytes() for k in "ab")
    assert first == second and len(first) > 10_000
    (axes,) = plots.comparison(both, "margin").axes
    assert axes.get_ylabel() == r"largest margin  $\max\,|\tilde y_i f(x_i)|$"
    np.testing.assert_allclose(axes.lines[2].get_ydata(), abs(both.margin).max("sample").mean("seed")[2])


def test_curves_of_what_diverged_and_of_nothing(both):
    status = both.status.copy(data=np.where(np.arange(9).reshape(3, 3) == 7, "diverged", "trained"))
    lost = both.assign(status=status, diverged_at=both.diverged_at.where(status != "diverged", 2))
    assert legend(plots.comparison(lost))[:3] == ["gd", "sam", "adam (1 diverged)"]
    for bad, words in (("train_los", "did you mean 'train_loss'"), ("steps_taken", "read only once")):
        with pytest.raises(fl.InputError, match=words):
            plots.comparison(both, bad)
    with pytest.raises(fl.InputError, match="what compare returned"):
        plots.comparison(both.isel(algorithm=0))
    with pytest.raises(fl.InputError, match="needs a variable over steps"):
        plots.comparison(both[["steps_taken"]])


def test_diagrams_share_their_colours_and_have_a_contour_each():
    made = diagrams()
    made["trained"][1, 3, :2] = False
    figure = plots.comparison_diagrams(
        made, "test_error", level=0.3, floor=0.1, boundary=lambda d: (d / 50) ** 0.5
    )
    *panels, bar = figure.axes
    assert [axes.get_title() for axes in panels] == ["gd", "SAM", "third"]
    assert len({(of(axes, "cells")[0].norm.vmin, of(axes, "cells")[0].norm.vmax) for axes in panels}) == 1
    assert bar.get_ylabel() == "test error  $L_D^{0-1}$" and "floor 0.1" in [
        t.get_text() for t in bar.get_yticklabels()
    ]
    for k, axes in enumerate(panels):
        part = made.isel(algorithm=k)
        expected = fl.contour(part, "test_error", 0.3).at
        np.testing.assert_allclose(of(axes, "contour")[0].get_ydata(), expected)
        np.testing.assert_allclose(of(axes, "cells")[0].get_array(), part.test_error.mean("seed").T)
        assert len(of(axes, "theory")) == 1 and bool(of(axes, "untrained")) == (k == 1)
        assert axes.get_xlabel() == "dimension  $d$" and axes.get_ylabel() == ("" if k else r"$\|\mu\|$")
    assert sorted(legend(figure)) == ["measured  $L_D^{0-1} = 0.3$, 95 %", "theory", "under 90 % of runs trained"]
    assert figure.legends[0].get_title().get_text() == "mean over the same 3 seeds"


def test_diagrams_say_where_the_level_is_not_crossed_and_have_theories_of_their_own():
    made = diagrams()
    made["test_error"][2] = 0.1
    figure = plots.comparison_diagrams(made, "test_error", level=0.3, boundary={"SAM": lambda d: (d / 200) ** 0.5})
    assert [axes.get_title() for axes in figure.axes[:3]] == ["gd", "SAM", "third: 0.3 not crossed"]
    assert [len(of(axes, "theory")) for axes in figure.axes[:3]] == [0, 1, 0]
    assert legend(figure) == ["measured  $L_D^{0-1} = 0.3$, 95 %", "theory, SAM"]
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert box.x1 <= figure.bbox.x1 and box.y0 >= max(axes.get_window_extent().y1 for axes in figure.axes)


def test_one_swept_dim_is_one_panel_of_curves():
    made = diagrams().isel(d=2)
    figure = plots.comparison_diagrams(made, "test_error", level=0.3, floor=0.1, boundary=3.0)
    (axes,) = figure.axes
    np.testing.assert_allclose([line.get_ydata() for line in of(axes, "mean")], made.test_error.mean("seed"))
    at = [float(fl.contour(made.isel(algorithm=k), "test_error", 0.3).at) for k in range(3)]
    names = [f"{name}, crossed at {one:.3g}" for name, one in zip(made.algorithm.values, at)]
    assert legend(figure) == [*names, "level 0.3", "floor 0.1", "theory"]


def test_what_cannot_be_drawn_as_diagrams_is_refused():
    made = diagrams()
    for dataset, variable, words in (
        (made, "test_eror", "did you mean 'test_error'"),
        (made.isel(algorithm=0), "test_error", "what compare returned"),
        (made.isel(d=0, signal_norm=0), "test_error", "draws one or two swept dims"),
        (made.assign(done=~made.done), "test_error", "nothing to draw"),
    ):
        with pytest.raises(fl.InputError, match=words):
            plots.comparison_diagrams(dataset, variable)
