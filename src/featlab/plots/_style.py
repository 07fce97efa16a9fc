"""One house style: for print, for the last row of a lecture hall, and for readers without colours."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from featlab.core.validation import InputError
from featlab.sweeps.files import write_whole

# Paul Tol's high-contrast colours: far apart in lightness, so they stay apart in grey. No two curves of a
# panel differ by colour alone.
BLUE, RED, YELLOW, BLACK, GREY = "#004488", "#BB5566", "#DDAA33", "#000000", "#777777"
DARK_RED = "#661122"  # against many pale lines

_STYLE: dict[Any, Any] = {
    "font.size": 15,
    "axes.labelsize": 17,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 1.2,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.8,
    "lines.linewidth": 2.6,
    "lines.markersize": 8,
    "legend.fontsize": 14,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "legend.columnspacing": 1.2,
    "xtick.major.width": 1.2,
    "ytick.major.width": 1.2,
    "mathtext.fontset": "dejavusans",
    "figure.dpi": 100,
    "savefig.dpi": 150,
    "pdf.fonttype": 42,  # TrueType: conferences refuse Type 3 fonts
    "svg.hashsalt": "featlab",  # or element names differ at every writing
}

# What a format would write about the moment and the program, which no figure should depend on.
_METADATA: dict[str, dict[str, None]] = {
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
    ".png": {"Software": None},
}


@contextmanager
def house_style() -> Iterator[None]:
    """The style inside this block, and the user's own settings again after it."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def panels(count: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels side by side; call it inside `house_style`."""
    figure = Figure(figsize=(7.5 if count == 1 else 6.5 * count, 5.6), layout="constrained")
    return figure, list(figure.subplots(1, count, squeeze=False)[0])


def legend_above(axes: Axes, title: str | None = None, columns: int = 2) -> None:
    """The legend above the panel, where it covers nothing, headed by what is to be known about the runs."""
    legend = axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        ncols=columns,
        title=title,
        alignment="left",
        borderaxespad=0.2,
    )
    legend.get_title().set_fontsize(matplotlib.rcParams["font.size"])


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure as SVG, PDF or PNG, by the ending of its name: the same figure gives the same bytes."""
    path = Path(path)
    if path.suffix not in _METADATA:
        raise InputError(f"save(path=) must end in {', '.join(_METADATA)}, got {path.name!r}.")
    drawn = io.BytesIO()
    with house_style():
        figure.savefig(drawn, format=path.suffix[1:], metadata=_METADATA[path.suffix])
    return write_whole(path, drawn.getvalue())
