"""How things of a kind are told apart in one panel, and the legend that several panels share."""

from __future__ import annotations

from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from featlab.plots._style import BLACK, BLUE, GREY, RED, YELLOW

_COLOURS = (BLUE, RED, YELLOW, BLACK, GREY)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_LINES: tuple[Any, ...] = ("-", "--", "-.", (0, (1, 1)), (0, (6, 1.5)), (0, (5, 1, 1, 1, 1, 1)))


def look(k: int) -> dict[str, Any]:
    """The k-th look: colour, line and marker, of which any one is enough to tell it from its neighbours."""
    return {
        "color": _COLOURS[k % len(_COLOURS)],
        "linestyle": _LINES[k % len(_LINES)],
        "marker": _MARKERS[k % len(_MARKERS)],
    }


def shared_legend(figure: Figure, panels: list[Axes], title: str) -> None:
    """One legend above all panels, in as many columns as fit, and the figure higher by as much."""
    entries = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    width, height = figure.get_size_inches()
    room = {"loc": "outside upper left", "title": title, "alignment": "left", "borderaxespad": 0.2}
    columns = max(1, len(entries))
    while True:
        legend = figure.legend(list(entries.values()), list(entries), ncols=columns, **room)
        legend.get_title().set_fontsize(matplotlib.rcParams["font.size"])
        figure.draw_without_rendering()
        if columns == 1 or legend.get_window_extent().width <= 0.98 * figure.bbox.width:
            break
        legend.remove()
        columns -= 1
    figure.set_size_inches(width, height + legend.get_window_extent().height / figure.dpi)
