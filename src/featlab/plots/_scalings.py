"""Power laws of a verdict: thresholds against size, and local exponents that show a drift with size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from featlab.claims.intervals import student_interval
from featlab.plots._style import BLACK, BLUE, GREY, RED, YELLOW, legend_above

BAND = "#D0D0D0"  # what theory allows
SERIES: list[dict[str, Any]] = [
    {"color": BLUE, "marker": "o"},
    {"color": RED, "marker": "s"},
    {"color": YELLOW, "marker": "^"},
    {"color": BLACK, "marker": "D"},
    {"color": GREY, "marker": "v"},
]
_DASHES = ["--", (0, (6, 2, 1, 2)), (0, (2, 1)), (0, (8, 2, 1, 2, 1, 2)), (0, (4, 3))]
_DODGE = 0.03  # of an axis, between what shares a size
_NEIGHBOURS = "between neighbouring sizes, 95 %"


class Scaling(NamedTuple):
    """One exponent: what was measured at each size and seed, and what theory says."""

    name: str
    x: np.ndarray  # (size,), rising
    y: np.ndarray  # (size, seed)
    local: np.ndarray  # (gap, seed)
    symbols: tuple[str, str]
    exponent: float
    margin: float
    rivals: tuple[float, ...]


class Mean(NamedTuple):
    """The mean over seeds and its 95 % interval, at each size."""

    at: np.ndarray
    low: np.ndarray
    high: np.ndarray


def read_scaling(check: Mapping[str, Any]) -> Scaling:
    """A check of kind `scales_as`, from its record; `null` is NaN."""
    x, y, local = arrays(check, "x", "y", "local")
    fits = x.ndim == 1 and y.ndim == 2 and len(y) == len(x) > 1 and local.shape == (y.shape[1], len(x) - 1)
    if not fits or not np.all(x > 0) or len(np.unique(x)) < len(x):
        raise ValueError(f"the points of {check['name']!r}")
    order = np.argsort(x)
    across, up = check["points"]["symbols"]
    rivals = tuple(float(rival["expected"]) for rival in check["rivals"])
    return Scaling(
        check["name"],
        x[order],
        np.where(y > 0, y, np.nan)[order],
        local.T,
        (str(across), str(up)),
        float(check["expected"]),
        float(check["margin"]),
        rivals,
    )


def arrays(check: Mapping[str, Any], *names: str) -> list[np.ndarray]:
    """Some of the points of a check's record."""
    try:
        return [np.array(check["points"][name], float) for name in names]
    except ValueError:
        raise ValueError(f"the points of {check['name']!r}") from None


def groups(scalings: Sequence[Scaling]) -> list[list[Scaling]]:
    """Those with the same axes, sizes and theory are drawn in one panel."""
    found: dict[Any, list[Scaling]] = {}
    for one in scalings:
        theory = one.exponent, one.margin, one.rivals
        found.setdefault((one.symbols, tuple(one.x), theory), []).append(one)
    return list(found.values())


def thresholds(axes: Axes, group: Sequence[Scaling], tag: str = "", columns: int = 2) -> None:
    """Log-log: a point for each seed, the geometric mean and its interval, theory and its rivals."""
    first = group[0]
    axes.set(xscale="log", yscale="log")
    heading, labels = split_names([one.name for one in group])
    aside = (first.x[-1] / first.x[0]) ** _DODGE
    for one, label, style, dashes in zip(group, labels, SERIES * len(group), _DASHES * len(group)):
        mean = over_seeds(np.log(one.y))
        if not np.isfinite(mean.at).any():
            continue
        seeds = np.broadcast_to(aside * one.x[:, None], one.y.shape)
        axes.plot(seeds, one.y, linestyle="none", markersize=5, alpha=0.6, markeredgewidth=0, gid="seeds", **style)
        draw_mean(axes, one.x, Mean(*map(np.exp, mean)), linestyle="none", label=label, **style)
        found = np.isfinite(mean.at)
        centre = np.log(one.x[found]).mean(), mean.at[found].mean()
        for rival in one.rivals:
            _line(axes, one.x, centre, rival, "rival", color=GREY, linestyle=":", linewidth=1.6)
        _line(axes, one.x, centre, one.exponent, "theory", color=style["color"], linestyle=dashes, linewidth=2.4)
    label = f"theory: slope {as_fraction(first.exponent)}"
    axes.plot([], [], color=BLACK, linestyle="--", linewidth=2.4, label=label)
    if first.rivals:
        slopes = ", ".join(as_fraction(rival) for rival in first.rivals)
        axes.plot([], [], color=GREY, linestyle=":", linewidth=1.6, label=f"rivals: {slopes}")
    _sizes(axes, first)
    level_ticks(axes)
    axes.set_ylabel(f"${first.symbols[1]}$")
    if not any(np.isfinite(one.y).any() for one in group):
        axes.text(0.5, 0.5, "nothing found", transform=axes.transAxes, ha="center")
    legend_above(axes, f"{tag}{heading}", columns)


def drift(axes: Axes, group: Sequence[Scaling]) -> None:
    """Exponents between neighbouring sizes, and the band that theory allows the exponent of all sizes."""
    first = group[0]
    axes.set_xscale("log")
    _, labels = split_names([one.name for one in group])
    low, high = first.exponent - first.margin, first.exponent + first.margin
    axes.axhspan(low, high, color=BAND, linewidth=0, label="theory ± margin")
    axes.axhline(first.exponent, color=BLACK, linestyle="--", linewidth=1.8)
    width = first.x[-1] / first.x[0]
    for one, label, shift, style in zip(group, labels, _shifts(len(group), _DODGE), SERIES * len(group)):
        x = np.sqrt(one.x[1:] * one.x[:-1]) * width**shift
        draw_mean(axes, x, over_seeds(one.local), linewidth=1.2, label=label, **style)
    reach = axes.get_ylim()
    for rival in first.rivals:
        axes.axhline(rival, color=GREY, linestyle=":", linewidth=1.6)
    axes.set_ylim(min(reach[0], low - first.margin), max(reach[1], high + first.margin))
    _sizes(axes, first)
    axes.set_ylabel("local exponent")
    legend_above(axes, _NEIGHBOURS)


def all_drifts(axes: Axes, panels: Mapping[str, Sequence[Scaling]]) -> None:
    """The local exponents of many panels in one, in units of their margins."""
    axes.axhspan(-1, 1, color=BAND, linewidth=0, label="theory ± margin")
    axes.axhline(0, color=BLACK, linestyle="--", linewidth=1.8)
    drawn = [
        (f"{tag} {label}" if len(group) > 1 else tag, one)
        for tag, group in panels.items()
        for one, label in zip(group, split_names([one.name for one in group])[1])
    ]
    for k, ((label, one), shift) in enumerate(zip(drawn, _shifts(len(drawn), 0.7 / len(drawn)))):
        mean = over_seeds((one.local - one.exponent) / (one.margin or 1.0))
        hollow = {"markerfacecolor": "white", "markeredgewidth": 2} if k // len(SERIES) % 2 else {}
        x = np.arange(1, len(one.x)) + shift
        draw_mean(axes, x, mean, linewidth=0.8, label=label, **SERIES[k % len(SERIES)], **hollow)
    most = max(len(one.x) for _, one in drawn)
    axes.set_xticks(range(1, most), [f"sizes {k} and {k + 1}" for k in range(1, most)])
    axes.set_xlim(0.5, most - 0.5)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, -2), max(high, 2))
    axes.set_ylabel("(local - theory) / margin")
    legend_above(axes, f"exponents {_NEIGHBOURS}", columns=6)


def split_names(names: Sequence[str]) -> tuple[str, list[str]]:
    """What the names of a panel's checks share, and what is left of each."""
    parts = [plain(name).split(", ") for name in names]
    shared = 0
    while len(parts) > 1 and all(shared < len(one) - 1 and one[shared] == parts[0][shared] for one in parts):
        shared += 1
    if len(parts) == 1:
        return ", ".join(parts[0]), ["mean, 95 %"]
    return ", ".join(parts[0][:shared]), [", ".join(one[shared:]) for one in parts]


def plain(text: str) -> str:
    """A name as it is, even where it has dollars in it."""
    return text.replace("$", r"\$")


def as_fraction(value: float) -> str:
    """-1/3 for -0.333..., three digits for what is no simple fraction."""
    near = Fraction(value).limit_denominator(12)
    return str(near) if abs(near - value) < 1e-9 else f"{value:.3g}"


def over_seeds(values: np.ndarray) -> Mean:
    """Mean and Student interval of each row, NaN where nothing was found."""
    low, high = np.array([student_interval(row) for row in values]).T
    return Mean((low + high) / 2, low, high)  # the mean is the middle


def draw_mean(axes: Axes, x: np.ndarray, mean: Mean, **style) -> None:
    """Means with their intervals."""
    error = [mean.at - mean.low, mean.high - mean.at]
    axes.errorbar(x, mean.at, error, capsize=5, elinewidth=2, zorder=3, **style)


def size_ticks(axes: Axes, x: np.ndarray) -> None:
    """The sizes themselves as ticks."""
    axes.xaxis.set_major_locator(FixedLocator(x.tolist()))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


def level_ticks(axes: Axes) -> None:
    """Ticks with plain numbers on a logarithmic axis, few but never none."""
    low, high = axes.get_ylim()
    decades = np.log10(high / low)
    locator = MaxNLocator(5) if decades < 0.9 else LogLocator(subs=(1, 2, 5) if decades < 2.5 else (1,))
    axes.yaxis.set_major_locator(locator)
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


def number(value: float) -> str:
    """A number for a tick or a legend, with a power of ten where it is large or small."""
    if 1e-3 <= value < 1e4 or value == 0:
        return f"{value:g}"
    mantissa, power = f"{value:.1e}".split("e")
    front = "" if float(mantissa) == 1 else rf"{float(mantissa):g} \cdot "
    return rf"${front}10^{{{int(power)}}}$"


def _line(axes, x, centre, slope, role, **style) -> None:
    over = 0.06 * np.log(x[-1] / x[0])
    u = np.array([np.log(x[0]) - over, np.log(x[-1]) + over])
    axes.plot(np.exp(u), np.exp(centre[1] + slope * (u - centre[0])), gid=role, **style)


def _shifts(count, apart):
    return (np.arange(count) - (count - 1) / 2) * apart


def _sizes(axes, scaling) -> None:
    over = (scaling.x[-1] / scaling.x[0]) ** 0.08
    axes.set_xlim(scaling.x[0] / over, scaling.x[-1] * over)
    size_ticks(axes, scaling.x)
    axes.set_xlabel(f"${scaling.symbols[0]}$")
