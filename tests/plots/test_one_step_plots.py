"""Spectra, staircases and double descent: what is drawn is what was measured, beside the theory's own numbers."""

import re
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import featlab as fl
from featlab import plots
from featlab.plots._setting import Setting
from featlab.plots.spectrum import marchenko_pastur
from featlab.plots.staircase import levels
from featlab.theory import one_step, random_features

N_SAMPLES, D, WIDTH, PENALTY = 1000, 500, 400, 0.01
SIZES = (D / N_SAMPLES, D / WIDTH)
STUDENT = fl.networks.centred(fl.networks.relu)
LINK = fl.networks.hermite_series((0, 1, 0.5))
ALL = fl.networks.hermite_series((0, 1, 0.5, 0.2, 0.1))  # no coefficient is zero


def stated(**changes):
    given = fl.Experiment(
        data=fl.data.SingleIndex(N_SAMPLES, D, link=LINK, label_noise=0.3),
        network=fl.networks.TwoLayer(WIDTH, STUDENT, centred=True),
        algorithm=fl.algorithms.GiantStep(alpha=0.1),
        objective=fl.objectives.squared,
        probes=[fl.probes.ridge_errors(penalty=(PENALTY,))],
        steps=1,
        precision=64,
    )
    return replace(given, **changes)


def activation(function=STUDENT):
    return random_features.Activation.of(function)


def teacher():
    return one_step.Teacher.of(LINK, 0.3)


def told(experiment):
    from featlab.text import describe

    return {"experiment": describe(experiment)}


def over(dim, values, experiment, seeds=4, penalties=None):
    """Errors over a swept dim, as a sweep or runs put together have them: 1 for training and 2 for testing."""
    shape = (len(values), seeds) if penalties is None else (len(values), seeds, len(penalties))
    spread = np.linspace(0.9, 1.1, seeds).reshape(1, -1, *[1] * (penalties is not None)) * np.ones(shape)
    dims = (dim, "seed") if penalties is None else (dim, "seed", "penalty")
    variables = {"ridge_train_error": (dims, spread), "ridge_test_error": (dims, 2 * spread)}
    coords = {dim: values} if penalties is None else {dim: values, "penalty": list(penalties)}
    return xr.Dataset(variables, coords, told(experiment))


def spectra(kind="feature", spikes=(), seeds=4, experiment=None, dim="step"):
    """Singular values that fill [0.2, 1], and spikes that come with the step in all seeds."""
    start = np.tile(np.linspace(1, 0.2, 300), (seeds, 1))
    end = start.copy()
    for k, value in enumerate(spikes):
        end[:, k] = value * np.linspace(0.99, 1.01, seeds)
    edge = {"feature": "untrained_edge", "weight": "weight_edge"}[kind]
    variables = {
        f"{kind}_singular_value": (("seed", dim, f"{kind}_rank"), np.stack([start, end], axis=1)),
        edge: (("seed", dim), np.ones((seeds, 2))),
    }
    return xr.Dataset(variables, {dim: [0, 1]}, told(experiment or stated()))


ALPHAS = np.array([-0.1, 0.05, 0.2, 0.3, 0.36, 0.42])
WIDTHS = [100, 400, 1000, 3000]


def sweep_of_alpha(**changes):
    return over("alpha", ALPHAS, stated(**changes))


def random_feature_runs(penalties=(1e-5, 1e-2)):
    network = fl.networks.RandomFeatures(WIDTHS[0], STUDENT)
    return over("width", WIDTHS, stated(network=network), penalties=penalties)


def by_gid(figure, gid, panel=0):
    return [artist for artist in figure.axes[panel].get_children() if artist.get_gid() == gid]


def legend(figure):
    found = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
    return [one.get_title().get_text() for one in found], [t.get_text() for one in found for t in one.get_texts()]


def bars(figure, panel=0):
    """The points of each series with the ends of their intervals."""
    for container in figure.axes[panel].containers:
        line, _, (segments,) = container.lines
        yield line.get_xdata(), line.get_ydata(), np.array(segments.get_segments())[:, :, 1]


FIGURES = {
    "staircase": (plots.staircase, sweep_of_alpha),
    "double_descent": (plots.double_descent, random_feature_runs),
    "spectrum": (plots.spectrum, lambda: spectra(spikes=(2.0, 1.4))),
    "spectrum of weights": (lambda d, **o: plots.spectrum(d, "weights", **o), lambda: spectra("weight", (3.0,))),
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_with_and_without_theory_can_be_written(name, tmp_path):
    plot, make = FIGURES[name]
    with_theory, without = plot(make()), plot(make(), theory=False)
    assert isinstance(with_theory, Figure)
    assert plots.save(with_theory, tmp_path / "figure.svg").stat().st_size > 1000
    assert plots.save(without, tmp_path / "figure.png").stat().st_size > 1000
    theory = ("theory", "levels", "finite", "edge")
    assert any(by_gid(with_theory, gid) for gid in theory) and not any(by_gid(without, gid) for gid in theory)


# -- the staircase


@pytest.fixture(scope="module")
def staircase():
    return plots.staircase(sweep_of_alpha())


def test_the_levels_of_the_staircase_are_the_theorys(staircase):
    for panel, which in ((0, 0), (1, 1)):
        (stairs,) = by_gid(staircase, "levels", panel)
        heights, edges, _ = stairs.get_data()
        said = [one_step.errors_after(*SIZES, PENALTY, activation(), teacher(), k)[which] for k in (0, 1, 2)]
        np.testing.assert_allclose(heights, said, rtol=1e-12)
        # ReLU has no third coefficient: the level of two spikes lasts until the fourth appears.
        np.testing.assert_allclose(edges[1:], [0, 1 / 4, 3 / 8])


def test_a_student_with_all_coefficients_has_a_level_for_every_spike():
    setting = Setting.of(sweep_of_alpha(network=fl.networks.TwoLayer(WIDTH, ALL, centred=True)), "test")
    found = levels(setting, PENALTY)
    assert [(begin, end) for begin, end, _ in found] == [
        (-np.inf, 0), (0, 1 / 4), (1 / 4, 1 / 3), (1 / 3, 3 / 8), (3 / 8, 2 / 5)
    ]  # fmt: skip
    train = [errors[0] for *_, errors in found]
    assert all(later <= earlier for earlier, later in zip(train, train[1:]))


def test_the_curve_of_finite_n_is_the_theorys_and_ends_at_one_half():
    figure = plots.staircase(over("alpha", np.array([0.1, 0.3, 0.6]), stated()))
    (line,) = by_gid(figure, "finite", 1)
    x, y = line.get_xdata(), line.get_ydata()
    assert x.max() < 0.5
    step = one_step.Step.of(STUDENT, N_SAMPLES ** x[20], WIDTH)
    said = one_step.errors_after(*SIZES, PENALTY, activation(), teacher(), 4, step)
    np.testing.assert_allclose(y[20], said[1], rtol=1e-12)


def test_spikes_are_marked_where_they_appear(staircase):
    np.testing.assert_allclose(
        [line.get_xdata()[0] for line in by_gid(staircase, "step")], [0, 1 / 4, 1 / 3, 3 / 8]
    )
    assert [text.get_text() for text in by_gid(staircase, "spikes")][:3] == [r"$\ell = 0$", r"$\ell = 1$", "$2$"]


def test_points_of_the_staircase_are_means_with_students_interval(staircase):
    ((x, y, ends),) = bars(staircase, 1)
    np.testing.assert_allclose(x, ALPHAS)
    np.testing.assert_allclose(y, 2.0)
    half = 3.182446 * np.std(2 * np.linspace(0.9, 1.1, 4), ddof=1) / 2
    np.testing.assert_allclose(
        ends, np.tile([max(1.8, 2 - half), min(2.2, 2 + half)], (len(ALPHAS), 1)), rtol=1e-6
    )


def test_the_staircase_says_its_symbols_and_sizes(staircase):
    assert [axes.get_ylabel() for axes in staircase.axes] == [
        "training error  $L_{tr}$", "test error  $L_{te}$"
    ]  # fmt: skip
    assert r"\alpha = \log\eta\,/\log n" in staircase.axes[0].get_xlabel()
    (title,), texts = legend(staircase)
    assert "n = 1000" in title and r"\lambda = 0.01" in title and "4 seeds" in title
    assert {"measured", r"theory, $n \to \infty$", "theory, this $n$"} <= set(texts)


@pytest.mark.slow
def test_several_staircases_share_the_panels_and_are_told_apart():
    figure = plots.staircase({"one": sweep_of_alpha(), "two": sweep_of_alpha()})
    assert {"one", "two"} <= set(legend(figure)[1])
    (first, *_), (second, *_) = bars(figure)
    assert np.all(first < second)  # points of one alpha stand beside each other
    one, two = by_gid(figure, "finite")
    assert one.get_color() != two.get_color() and one.get_linestyle() != two.get_linestyle()


def test_a_staircase_of_runs_with_a_clock_takes_the_last_step():
    steps = xr.concat([sweep_of_alpha() * np.nan, sweep_of_alpha()], "step")
    ((_, y, _),) = bars(plots.staircase(steps, theory=False))
    np.testing.assert_allclose(y, 1.0)


@pytest.mark.parametrize(
    "dataset, words",
    [
        (lambda: sweep_of_alpha().drop_vars(["ridge_train_error", "ridge_test_error"]), "add probes.ridge_errors"),
        (lambda: sweep_of_alpha().rename(alpha="eta"), r"over 'alpha'.*sweep \{\"algorithm.alpha\""),
        (lambda: sweep_of_alpha().expand_dims(d=[1, 2]), "also runs over 'd'"),
        (lambda: over("alpha", ALPHAS, stated(), penalties=(0.1, 0.2)), r"one penalty.*sel\(penalty=0.1\)"),
        (lambda: sweep_of_alpha(probes=[fl.probes.ridge_errors(penalty=(0.1, 1.0))]), "tell the penalties"),
        (lambda: sweep_of_alpha().drop_attrs(), "experiment behind this dataset"),
        (lambda: sweep_of_alpha(network=fl.networks.TwoLayer(WIDTH)), "mean zero.*centred"),
        (lambda: sweep_of_alpha(network=fl.networks.TwoLayer(WIDTH, STUDENT, power=1.0)), "power = 1/2"),
        (lambda: sweep_of_alpha(network=fl.networks.TwoLayer(WIDTH, STUDENT, init_scale=2.0)), "init_scale = 1"),
        (lambda: sweep_of_alpha(data=fl.data.SingleIndex(4000, 40, link=LINK)), "in proportion"),
        (lambda: sweep_of_alpha(network=fl.networks.TwoLayerCNN(4)), "TwoLayerCNN"),
        (lambda: sweep_of_alpha(algorithm=fl.algorithms.GradientDescent(0.1)), "needs a GiantStep"),
        (lambda: sweep_of_alpha(data=fl.data.MultiIndex(1000, 500, link=jax.numpy.prod)), "one direction"),
        (dict, "at least one dataset"),
    ],
)  # fmt: skip
def test_what_the_staircase_refuses(dataset, words):
    with pytest.raises(fl.InputError, match=words):
        plots.staircase(dataset())


# -- double descent


def test_the_curves_of_double_descent_are_the_theorys_and_peak_at_n():
    figure = plots.double_descent(random_feature_runs())
    powers = teacher().coefficients[0] ** 2, teacher().nonlinear + teacher().noise
    for penalty, test, train in zip((1e-5, 1e-2), by_gid(figure, "theory", 0), by_gid(figure, "theory", 1)):
        x = test.get_xdata()
        said = random_features.errors(SIZES[0], SIZES[0] / x, penalty, activation(), *powers)
        np.testing.assert_allclose(train.get_ydata(), said[0], rtol=1e-12)
        np.testing.assert_allclose(test.get_ydata(), said[1], rtol=1e-12)
        assert x.min() == 0.1 and x.max() == 3.0
    sharp = by_gid(figure, "theory")[0]
    assert abs(sharp.get_xdata()[np.argmax(sharp.get_ydata())] - 1) < 0.01
    assert by_gid(figure, "peak")[0].get_xdata()[0] == 1


def test_double_descent_has_points_logarithms_and_symbols():
    figure = plots.double_descent(random_feature_runs())
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "test error  $L_{te}$", "training error  $L_{tr}$"
    ]  # fmt: skip
    for x, y, _ in bars(figure):
        np.testing.assert_allclose(x, np.array(WIDTHS) / N_SAMPLES)
        np.testing.assert_allclose(y, 2.0)
    for axes in figure.axes:
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log") and "N/n" in axes.get_xlabel()
    assert {r"$\lambda = 10^{-5}$", r"$\lambda = 0.01$", "theory", "$N = n$"} <= set(legend(figure)[1])


def test_a_sweep_over_widths_has_the_penalty_of_its_probe():
    figure = plots.double_descent(over("width", WIDTHS, stated()))
    assert rf"$\lambda = {PENALTY}$" in legend(figure)[1] and len(by_gid(figure, "theory")) == 1


@pytest.mark.parametrize(
    "dataset, words",
    [
        (lambda: random_feature_runs().rename(width="N"), "over 'width'.*network.width.*concat"),
        (lambda: random_feature_runs()[[]], "add probes.ridge_errors"),
        (lambda: random_feature_runs().drop_attrs(), "experiment behind this dataset"),
        (
            lambda: over("width", [10, 9000], stated(data=fl.data.SingleIndex(9000, 90, link=LINK))),
            "in proportion",
        ),
    ],
)
def test_what_double_descent_refuses(dataset, words):
    with pytest.raises(fl.InputError, match=words):
        plots.double_descent(dataset())


# -- spectra


def test_the_bulk_is_the_theorys_density_up_to_its_edge():
    figure = plots.spectrum(spectra(spikes=(2.0,)))
    (line,), (edge,) = by_gid(figure, "theory"), by_gid(figure, "edge")
    said = random_features.edge(*SIZES, activation())
    assert edge.get_xdata()[0] == pytest.approx(said, rel=1e-12) == pytest.approx(line.get_xdata()[-1])
    expected = random_features.density(line.get_xdata()[100:110], *SIZES, activation())
    np.testing.assert_allclose(line.get_ydata()[100:110], expected)
    assert f"theory, edge {said:.3g}" in legend(figure)[1]


def test_the_histograms_have_mass_one_less_what_stands_outside():
    figure = plots.spectrum(spectra(spikes=(2.0, 1.4)))
    for gid, mass in (("start", 1.0), ("end", 1 - 2 / 300)):
        (stairs,) = by_gid(figure, gid)
        heights, edges, _ = stairs.get_data()
        assert np.sum(heights * np.diff(edges)) == pytest.approx(mass)
    (start,), (end,) = by_gid(figure, "start"), by_gid(figure, "end")
    assert start.get_fill() and not end.get_fill()  # told apart without colours


def test_spikes_are_named_in_order_and_stand_at_their_means():
    figure = plots.spectrum(spectra(spikes=(2.0, 1.4)))
    at = [spike.get_segments()[0][0, 0] for spike in by_gid(figure, "spike")]
    np.testing.assert_allclose(at, [2.0, 1.4])
    assert [text.get_text() for text in by_gid(figure, "name")] == ["1st\n2", "2nd\n1.4"]
    assert [len(line.get_xdata()) for line in by_gid(figure, "seeds")] == [4, 4]
    assert not by_gid(plots.spectrum(spectra()), "spike")


def test_a_spike_of_few_seeds_is_a_tick_and_has_no_name():
    dataset = spectra(spikes=(2.0,))
    dataset["feature_singular_value"][:1, -1, 1] = 1.5
    figure = plots.spectrum(dataset)
    assert len(by_gid(figure, "spike")) == 1 and len(by_gid(figure, "seeds")) == 2
    dataset["feature_singular_value"][:3, -1, 1] = 1.5
    assert by_gid(plots.spectrum(dataset), "name")[1].get_text() == "2nd\n1.5\n3 of 4"


def test_without_a_start_the_end_stands_alone():
    figure = plots.spectrum(spectra().isel(step=-1))
    assert not by_gid(figure, "start") and len(by_gid(figure, "end")) == 1


@pytest.mark.parametrize("ratio", [0.3, 2.5])
def test_the_density_of_weights_has_mass_one_and_the_edges_of_a_drawn_matrix(ratio):
    low, high = abs(1 - ratio**0.5), 1 + ratio**0.5
    s = np.linspace(low, high, 20_001)
    assert np.trapezoid(marchenko_pastur(s, ratio), s) == pytest.approx(1, abs=1e-4)
    d = 400
    drawn = np.linalg.svd(np.random.default_rng(0).normal(size=(int(ratio * d), d)) / d**0.5, compute_uv=False)
    cumulated = np.cumsum(marchenko_pastur(s, ratio)) * (s[1] - s[0])
    quantiles = np.interp([0.1, 0.5, 0.9], cumulated, s)
    np.testing.assert_allclose(np.quantile(drawn, [0.1, 0.5, 0.9]), quantiles, atol=0.02)


def test_the_edge_of_weights_grows_with_their_start():
    network = fl.networks.TwoLayer(WIDTH, STUDENT, init_scale=2.0)
    figure = plots.spectrum(spectra("weight", experiment=stated(network=network)), "weights")
    assert by_gid(figure, "edge")[0].get_xdata()[0] == pytest.approx(2 * (1 + (WIDTH / D) ** 0.5))


@pytest.mark.parametrize(
    "dataset, which, words",
    [
        (spectra, "weight", "features or weights"),
        (spectra, "weights", "add probes.weight_spectrum"),
        (lambda: spectra().drop_vars("untrained_edge"), "features", "add probes.feature_spectrum"),
        (lambda: spectra().expand_dims(alpha=[1, 2]), "features", "select one"),
        (lambda: spectra().drop_attrs(), "features", "experiment behind this dataset"),
        (lambda: spectra(experiment=stated(network=fl.networks.TwoLayer(WIDTH))), "features", "mean zero"),
    ],
)
def test_what_spectra_refuse(dataset, which, words):
    with pytest.raises(fl.InputError, match=words):
        plots.spectrum(dataset(), which)


# -- a real run


@pytest.mark.slow
def test_a_real_step_draws_all_there_is():
    """Small, one seed at a time; that the numbers agree is for the claims to say."""
    experiment = stated(
        data=fl.data.SingleIndex(60, 30, link=LINK),
        network=fl.networks.TwoLayer(24, STUDENT, centred=True),
        probes=[fl.probes.ridge_errors(penalty=(PENALTY,), count=50), fl.probes.feature_spectrum(holdout=0)],
        precision=32,
    )
    run = fl.run(experiment, 2, block=1, progress=False)
    assert len(by_gid(plots.spectrum(run), "start")) == 1
    figure = plots.staircase(run.expand_dims(alpha=[0.1]))
    ((x, y, _),) = bars(figure)
    assert x == [0.1]
    np.testing.assert_allclose(y, run.ridge_train_error.isel(step=-1).mean())


def test_the_experiments_of_the_documentation_can_be_stated():
    text = (Path(__file__).parents[2] / "docs" / "one_step.md").read_text()
    first, second, third = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = {}
    for code, run in ((first, "history = "), (second, "found = "), (third, "widths = ")):
        exec(code.split(run)[0], names)
    assert len(names["stairs"].probes) == 1
    assert fl.rebuild(told(names["experiment"])["experiment"]) == names["experiment"]
    assert names["features"](30).network.width == 30
