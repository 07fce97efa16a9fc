"""What a training costs, against d, n, width, cells and seeds: `python benchmarks/scaling.py [--out DIR]`.

A table and a figure. One number is changed at a time from Kou's setting (n = 20, width 10, d = 1,000, 100 steps,
1,000 test inputs, 32 cells of |mu|, 8 seeds); each point is the median of three sweeps, compiled beforehand.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
from heatmap import experiment
from matplotlib.figure import Figure

import featlab as fl
from featlab.plots import house_style
from featlab.text import changed

VALUES = {
    "d": [1e2, 1e3, 1e4, 1e6, 1e9],
    "n": [10, 20, 40, 80, 160, 320],
    "width": [5, 10, 20, 40, 80],
    "cells": [8, 32, 128, 512, 2048],
    "seeds": [1, 4, 16, 64],
}


def milliseconds(**setting) -> float:
    """Milliseconds a training, median of three sweeps after one that compiles."""
    chosen = {"d": 1e3, "n": 20, "width": 10, "cells": 32, "seeds": 8} | setting
    # The cost of a step is asked for, so noise keeps its strength in every dimension.
    fields = {"data.d": chosen["d"], "data.n": chosen["n"], "network.width": chosen["width"]}
    fields["data.noise_scale"] = (1e3 / chosen["d"]) ** 0.5
    base = changed(experiment("theorem"), fields)
    times = []
    for _ in range(4):
        begun = time.perf_counter()
        fl.sweep(base, {"data.signal_norm": np.linspace(0.1, 9.9, int(chosen["cells"]))}, int(chosen["seeds"]))
        times.append(time.perf_counter() - begun)
    return statistics.median(times[1:]) / (chosen["cells"] * chosen["seeds"]) * 1e3


def main(out: Path) -> None:
    measured = {}
    for name, values in VALUES.items():
        measured[name] = [milliseconds(**{name: value}) for value in values]
        print(
            f"{name:>6}: " + ", ".join(f"{v:g}: {ms:.3f} ms" for v, ms in zip(values, measured[name])), flush=True
        )
    with house_style():
        figure = Figure(figsize=(19, 4.6), layout="constrained")
        for axes, (name, times) in zip(figure.subplots(1, len(VALUES), sharey=True), measured.items()):
            axes.loglog(VALUES[name], times, "o-")
            axes.set_xlabel(name)
            axes.set_xticks(VALUES[name], [f"{value:g}".replace("e+0", "e") for value in VALUES[name]])
            axes.set_yticks([0.1, 0.2, 0.5, 1, 2, 5], ["0.1", "0.2", "0.5", "1", "2", "5"])
            axes.minorticks_off()
        figure.axes[0].set_ylabel("ms a training")
    print(fl.plots.save(figure, out / "scaling.png"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/benchmarks"))
    main(parser.parse_args().out)
