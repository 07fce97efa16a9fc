"""What training did to a network, in four panels: linear or not, moved or not, learnt or memorised."""

from __future__ import annotations

import textwrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from featlab.core.validation import InputError
from featlab.metering import Reading
from featlab.plots._style import BLACK, BLUE, DARK_RED, GREY, RED, house_style

_BARS = 10  # matrices that are shown
_POINTS = 2000
_LINES = {
    "AGOP, before": (GREY, ":", "AGOP, before"),
    "AGOP, after": (BLUE, "-", "AGOP, after"),
    "W^T W, after": (RED, "--", r"$W^\top W$, after"),
}


def meter(reading: Reading, title: str = "") -> Figure:
    r"""A reading of `featlab.meter` as a figure.

    By how much outputs changed, against what the linearisation at the start says: lazy training lies on the line.
    How far each matrix and the tangent kernel have moved. Which share of the samples has a margin below each
    value: at 0, the share that is not fitted. The eigenvalues of the average gradient outer product and of
    $W^\top W$, of sum 1.
    """
    if not isinstance(reading, Reading):
        raise InputError(f"plots.meter draws what featlab.meter returns, got {type(reading).__name__}.")
    with house_style():
        figure = Figure(figsize=(14, 11), layout="constrained")
        ((linear, moved), (margins, spectra)) = figure.subplots(2, 2)
        _linearised(linear, reading)
        _movements(moved, reading)
        _margins(margins, reading)
        _spectra(spectra, reading)
        heading = f"{title}\n{reading.sentence}" if title else reading.sentence
        lines = [line for part in heading.splitlines() for line in textwrap.wrap(part, 105)]
        figure.suptitle("\n".join(lines), fontsize=15)
    return figure


def _linearised(axes: Axes, reading: Reading) -> None:
    across, up = reading.linear_change.ravel(), reading.change.ravel()
    every = max(1, len(up) // _POINTS)
    ends = [min(across.min(), up.min()), max(across.max(), up.max())]
    axes.plot(ends, ends, color=BLACK, linewidth=1.6, label="lazy: the same")
    axes.plot(across[::every], up[::every], ".", color=BLUE, alpha=0.4, markersize=5, label="outputs of samples")
    axes.set_xlabel(r"linearised change $J_0 (\theta - \theta_0)$")
    axes.set_ylabel(r"change of the output $f - f_0$")
    axes.legend(loc="best", fontsize=13)


def _movements(axes: Axes, reading: Reading) -> None:
    start = "movement of "
    matrices = [(row.name.removeprefix(start), row.after) for row in reading.rows if row.name.startswith(start)]
    shown = [*matrices[:_BARS], ("all parameters", reading["total_movement"])]
    shown.append(("tangent kernel", reading["kernel_movement"]))
    places = np.arange(len(shown))[::-1]
    colours = [BLUE] * (len(shown) - 1) + [RED]
    lengths = [value if np.isfinite(value) else 0.0 for _, value in shown]
    axes.barh(places, lengths, color=colours, height=0.6)
    for place, length, (_, value) in zip(places, lengths, shown):
        axes.annotate(f" {value:.2g}" if np.isfinite(value) else " began at 0", (length, place), va="center")
    axes.set_yticks(places, [name if len(name) <= 22 else f"...{name[-19:]}" for name, _ in shown])
    axes.set_xlabel(r"$\|W - W_0\| / \|W_0\|$,  $\|K - K_0\| / \|K_0\|$")
    axes.set_xlim(0, 1.15 * max([*lengths, 1e-12]))
    axes.grid(axis="y", visible=False)


def _margins(axes: Axes, reading: Reading) -> None:
    if reading.margins is None:
        _nothing(axes, "labels are no classes: no margins")
        return
    before, after, flipped = reading.margins
    flipped = np.zeros(len(after), bool) if flipped is None else flipped
    words = "clean labels" if flipped.any() else "samples"
    groups = [(~flipped, words, BLUE, "-"), (flipped, "flipped labels", DARK_RED, "--")]
    for chosen, words, colour, line in groups:
        if chosen.any():
            axes.ecdf(after[chosen], color=colour, linestyle=line, label=f"{chosen.sum()} {words}")
            axes.ecdf(before[chosen], color=colour, linestyle=":", linewidth=1.6)
    axes.plot([], [], ":", color=GREY, linewidth=1.6, label="before training")
    axes.axvline(0, color=BLACK, linewidth=1.6)
    axes.set_xlabel("margin of the label trained with")
    axes.set_ylabel("share of samples below")
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, fontsize=12, handlelength=1.8, borderaxespad=0.1
    )


def _spectra(axes: Axes, reading: Reading) -> None:
    if not reading.spectra:
        _nothing(axes, next((note for note in reading.notes if "AGOP" in note), "no AGOP"))
        return
    for name, values in reading.spectra.items():
        colour, line, label = _LINES[name]
        axes.semilogy(np.arange(1, len(values) + 1), np.maximum(values, 1e-12), line, color=colour, label=label)
    largest = max(values.max() for values in reading.spectra.values())
    smallest = min(values.min() for values in reading.spectra.values())
    axes.set_ylim(max(1e-6 * largest, smallest / 2), 2 * largest)
    axes.set_xlabel("$j$")
    axes.set_ylabel(r"eigenvalue $\mu_j / \sum_k \mu_k$")
    axes.legend(loc="best")


def _nothing(axes: Axes, words: str) -> None:
    axes.set_axis_off()
    axes.text(0.5, 0.5, words, ha="center", va="center", transform=axes.transAxes)
