"""Figures by their structure: what is drawn, labelled, left out and refused."""

import matplotlib
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.mathtext import MathTextParser

import featlab as fl
from featlab import plots
from featlab.plots._curves import curve, note, spans_decades

STEPS, SAMPLES, FILTERS = np.arange(0, 101, 10), 6, 3


def made(seeds=4, dim="step", attrs=None, status=None):
    """A dataset as `run` returns it, with growth that is known: gamma = t/1000, rho = t/100."""
    random = np.random.default_rng(0)
    status = np.array(status or ["trained"] * seeds)
    label = np.tile([1.0, -1.0], SAMPLES // 2)[None].repeat(seeds, 0)
    clean = label.copy()
    clean[:, 0] *= -1  # one flip
    t = (
        STEPS[None, :, None, None]
        * np.ones((seeds, 1, 2, FILTERS))
        * np.linspace(0.9, 1, seeds)[:, None, None, None]
    )
    own = (label[:, None, :] == np.array([1.0, -1.0])[None, :, None])[:, None, :, None, :]
    rho = np.where(own, t[..., None] / 100, -t[..., None])
    once = np.ones((seeds, len(STEPS)))
    over = ["seed", dim]
    variables = {
        "gamma": ([*over, "class", "filter"], t / 1000, {"symbol": r"\gamma_{j,r}"}),
        "rho": ([*over, "class", "filter", "sample"], rho, {"symbol": r"\rho_{j,r,i}"}),
        "signal_product": ([*over, "class", "filter"], random.normal(0, 0.01, t.shape)),
        "noise_product": ([*over, "class", "filter", "sample"], random.normal(0, 0.01, rho.shape)),
        "train_loss": (over, once * np.exp(-STEPS), {"symbol": "L_S", "long_name": "training loss"}),
        "test_loss": (over, 0.7 * once, {"symbol": "L_D", "long_name": "test loss"}),
        "test_error": (over, 0.3 * once, {"symbol": "L_D^{0-1}", "long_name": "test error, observed labels"}),
        "test_error_se": (over, 0.004 * once),
        "clean_test_error": (
            over,
            0.2 * once,
            {"symbol": r"P(y f(x) \le 0)", "long_name": "test error, clean"},
        ),
        "margin": (
            [*over, "sample"],
            random.normal(size=(seeds, len(STEPS), SAMPLES)),
            {"symbol": r"\tilde y_i f"},
        ),
        "label": (["seed", "sample"], label),
        "clean_label": (["seed", "sample"], clean),
        "status": ("seed", status),
        "diverged_at": ("seed", np.where(status == "diverged", 7, -1)),
    }
    coords = {
        "seed": np.arange(seeds),
        "class": [1, -1],
        dim: (dim, STEPS, {"symbol": "t", "long_name": "step"}),
        "time" + dim.removeprefix("step"): (dim, STEPS * 0.5, {"symbol": r"\eta t", "long_name": "time"}),
    }
    return xr.Dataset(variables, coords, attrs or {})


THEORY = {
    "learning_rate": 0.1,
    "signal_norm": 1.0,
    "noise_norm": 1.0,
    "n": SAMPLES,
    "width_scale": 0.5,
    "power": 3,
}


def lines(figure, panel=0):
    """The lines of a panel that carry data; markers of a level do not."""
    return [line for line in figure.axes[panel].lines if len(line.get_xdata()) > 2]


def predicted(figure):
    return [line for line in lines(figure) if line.get_gid() == "theory"]


def heading(figure, panel=0):
    return figure.axes[panel].get_legend().get_title().get_text()


@pytest.mark.parametrize("plot", [plots.coefficient_growth, plots.losses, plots.margins])
@pytest.mark.parametrize("dim", ["step", "step_geometric_100"])
def test_every_plot_is_a_figure_that_can_be_written(plot, dim, tmp_path):
    before = dict(matplotlib.rcParams)
    figure = plot(made(dim=dim, attrs=THEORY))
    assert isinstance(figure, Figure)
    for ending in ("svg", "png", "pdf"):
        assert plots.save(figure, tmp_path / "new" / f"figure.{ending}").stat().st_size > 1000
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_the_same_figure_gives_the_same_file(ending, tmp_path):
    first, second = (plots.save(plots.losses(made()), tmp_path / f"{k}.{ending}") for k in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_letters_in_a_pdf_are_true_type(tmp_path):
    """Which conferences ask for; Type 3 is Matplotlib's usual."""
    written = plots.save(plots.losses(made()), tmp_path / "figure.pdf").read_bytes()
    assert b"/TrueType" in written or b"/CIDFontType2" in written
    assert b"/Type3" not in written


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(fl.InputError, match=r"\.svg, \.pdf, \.png"):
        plots.save(plots.losses(made()), tmp_path / "figure.jpeg")


def test_coefficients_are_the_largest_of_the_own_class():
    gamma, rho = lines(plots.coefficient_growth(made(seeds=1)))
    np.testing.assert_allclose(gamma.get_ydata(), 0.9 * STEPS / 1000)
    np.testing.assert_allclose(rho.get_ydata(), 0.9 * STEPS / 100)


def test_coefficients_carry_the_papers_symbols():
    axes = plots.coefficient_growth(made()).axes[0]
    assert r"\gamma_{j,r}" in axes.get_ylabel() and r"\rho_{j,r,i}" in axes.get_ylabel()
    assert axes.get_xlabel() == "step  $t$"
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert r"\gamma_{j,r}" in labels[0] and r"\rho_{j,r,i}" in labels[1]


def test_time_in_the_theorys_unit():
    figure = plots.coefficient_growth(made(attrs=THEORY), time=True)
    assert figure.axes[0].get_xlabel() == r"time  $\eta t$"
    for line in lines(figure):
        assert line.get_xdata()[-1] == 50
    with pytest.raises(fl.InputError, match="'time'"):
        plots.losses(made().drop_vars("time"), time=True)


def test_several_signals_are_drawn_in_absolute_value():
    dataset = made(attrs=THEORY)
    dataset["gamma"] = xr.concat([-dataset["gamma"], 0 * dataset["gamma"]], "signal").assign_attrs(
        symbol=r"\gamma"
    )
    figure = plots.coefficient_growth(dataset)
    assert lines(figure)[0].get_ydata()[-1] > 0
    assert r"|\gamma|" in figure.axes[0].get_ylabel()
    assert len(predicted(figure)) == 1  # noise alone: signals share the samples in another way


def test_theory_is_drawn_where_its_numbers_are_known():
    assert len(predicted(plots.coefficient_growth(made(attrs=THEORY)))) == 2
    assert not predicted(plots.coefficient_growth(made(attrs=THEORY), theory=False))
    assert not predicted(plots.coefficient_growth(made()))
    without_start = made(attrs=THEORY).drop_vars(["signal_product", "noise_product"])
    assert not predicted(plots.coefficient_growth(without_start))
    assert len(predicted(plots.coefficient_growth(without_start.assign_attrs(power=1)))) == 2
    for name in THEORY:
        attrs = {key: value for key, value in THEORY.items() if key != name}
        assert len(predicted(plots.coefficient_growth(made(attrs=attrs)))) < 2


def test_relu_theory_is_the_line_of_the_recursion():
    signal, noise = predicted(plots.coefficient_growth(made(attrs={**THEORY, "power": 1})))
    # Class +1 has two samples, none flipped, class -1 three and one flipped: both push with 2 of 6.
    np.testing.assert_allclose(signal.get_ydata(), 0.1 * 0.5 * 0.5 * 2 / 6 * signal.get_xdata())
    np.testing.assert_allclose(noise.get_ydata(), 0.1 * 0.5 * 0.5 / 6 * noise.get_xdata())


@pytest.mark.slow
@pytest.mark.parametrize("power", [1, 3])
def test_theory_meets_a_real_run_while_outputs_are_small(power):
    rate, start = {1: (0.001, 0.001), 3: (0.05, 0.1)}[power]
    history = fl.run(
        fl.Experiment(
            data=fl.data.SignalNoise(n=8, d=float("inf"), snr=0.7, label_flip=0.2),
            network=fl.networks.TwoLayerCNN(4, fl.networks.relu_power(power), init_scale=start),
            algorithm=fl.algorithms.GradientDescent(rate),
            probes=[fl.probes.coefficients, fl.probes.products, fl.probes.train_loss, fl.probes.margins],
            steps=100,
        ),
        seeds=3,
        progress=False,
    )
    known = {"learning_rate": rate, "signal_norm": 0.7, "noise_norm": 1.0, "n": 8, "width_scale": 1 / 4}
    history.attrs |= known | {"power": power}
    drawn = lines(plots.coefficient_growth(history))
    for seen, said in zip(drawn[:2], drawn[2:], strict=True):
        expected = np.interp(seen.get_xdata(), said.get_xdata(), said.get_ydata())
        np.testing.assert_allclose(seen.get_ydata()[1:], expected[1:], rtol=0.01)
    assert len(lines(plots.losses(history))) == 1
    assert len(lines(plots.margins(history, seed=2))) == 8


def test_losses_and_errors_have_a_panel_each():
    figure = plots.losses(made(attrs={"test_flip": 0.1}))
    assert [len(lines(figure, k)) for k in (0, 1)] == [2, 2]
    assert figure.axes[0].get_yscale() == "log"
    texts = " ".join(text.get_text() for axes in figure.axes for text in axes.get_legend().get_texts())
    for words in ("L_S", "L_D", "L_D^{0-1}", r"\leq", "Monte Carlo", "floor from flipped labels, 0.1"):
        assert words in texts


def test_losses_draws_what_is_there():
    figure = plots.losses(made()[["train_loss"]])
    assert len(figure.axes) == 1 and len(lines(figure)) == 1
    same = made()
    same["clean_test_error"] = same["test_error"]
    assert len(lines(plots.losses(same), 1)) == 1


def test_margins_tell_flipped_samples_by_more_than_colour():
    figure = plots.margins(made(), seed=2)
    assert len(lines(figure)) == SAMPLES
    clean, flipped = lines(figure)[0], lines(figure)[-1]
    assert clean.get_linestyle() != flipped.get_linestyle() and clean.get_linewidth() < flipped.get_linewidth()
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == [
        "clean label (5)",
        "flipped label (1)",
    ]
    assert heading(figure) == "seed 2" and r"\tilde y_i f" in figure.axes[0].get_ylabel()
    zero = [line for line in figure.axes[0].lines if list(line.get_ydata()) == [0, 0]]
    assert len(zero) == 1


def test_runs_that_failed_are_said_and_left_out():
    status = ["diverged", "trained", "unfinished", "trained"]
    dataset = made(status=status)
    dataset["gamma"][0] = 1e30
    figure = plots.coefficient_growth(dataset)
    assert (
        heading(figure)
        == "3 of 4 seeds, mean and 95 % band\n1 diverged, 1 unfinished"
        == heading(plots.losses(dataset))
    )
    assert lines(figure)[0].get_ydata().max() < 1
    assert heading(plots.margins(dataset)) == "seed 1"
    assert heading(plots.margins(dataset, seed=0)) == "seed 0, diverged at step 7"
    assert heading(plots.margins(dataset, seed=2)) == "seed 2, unfinished"
    assert heading(plots.losses(made(status=["diverged"] * 4))) == "all of 4 seeds diverged"


def test_one_run_without_a_seed_dim_is_enough():
    one = made(attrs=THEORY).isel(seed=1)
    for plot in (plots.coefficient_growth, plots.losses, plots.margins):
        assert "seed" in heading(plot(one))
    assert note(one) == "1 seed"
    assert note(made(seeds=2)) == "2 seeds, mean and range"


def test_the_band_is_students_interval_from_three_seeds_on():
    values = xr.DataArray(np.array([[1.0], [2.0], [6.0], [7.0]]), dims=("seed", "step"), coords={"step": [0]})
    drawn = curve(values, time=False, plot="test")
    half = 3.182446 * np.std([1, 2, 6, 7], ddof=1) / 2
    np.testing.assert_allclose(
        [drawn.mean[0], drawn.low[0], drawn.high[0]], [4, max(1, 4 - half), min(7, 4 + half)]
    )
    two = curve(values[:2], time=False, plot="test")
    assert (two.low[0], two.high[0]) == (1, 2)


def test_nothing_learnt_is_a_picture_too():
    still = 0 * made(attrs=THEORY)[["gamma", "rho", "label"]]
    assert plots.coefficient_growth(still).axes[0].get_yscale() == "linear"


def test_a_logarithmic_axis_is_for_decades():
    assert spans_decades(np.array([0.0, 1e-3, 1.0])) and not spans_decades(np.array([0.5, 1.0, -3.0]))


@pytest.mark.parametrize(
    "plot, lost, words",
    [
        (plots.coefficient_growth, ["gamma"], "probes.coefficients"),
        (plots.coefficient_growth, ["rho"], "probes.coefficients"),
        (plots.losses, ["train_loss", "test_loss", "test_error", "clean_test_error"], "probes.train_loss"),
        (plots.margins, ["margin"], "probes.margins"),
    ],
)
def test_a_missing_variable_is_answered_with_its_probe(plot, lost, words):
    with pytest.raises(fl.InputError, match=words) as caught:
        plot(made().drop_vars(lost))
    assert str(caught.value).count(". ") == 0 and str(caught.value).endswith(".")


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(fl.InputError, match="over steps"):
        plots.margins(made().isel(step=-1))
    with pytest.raises(fl.InputError, match="one of the dataset's seeds"):
        plots.margins(made(), seed=99)
    for plot in (plots.coefficient_growth, plots.losses, plots.margins):
        with pytest.raises(fl.InputError, match="'snr'"):
            plot(made().expand_dims(snr=[0.1, 0.2]))


def test_every_symbol_of_the_library_can_be_set():
    parser = MathTextParser("path")
    for value in vars(fl.probes).values():
        for _, variable in getattr(value, "variables", ()) if isinstance(value, fl.probes.Probe) else ():
            array = xr.DataArray(0, attrs={"symbol": variable.symbol}, name="x")
            parser.parse(f"${plots._curves.symbol(array)}$")
