"""What following the boundary saves: `python benchmarks/refinement.py`.

The boundary of the heat-map (the theorem's network, clean test error 0.2), once from the whole grid and once with
`sweep(near=)`, both with the same seeds, against a reference from other and more seeds on the whole grid.
"""

from __future__ import annotations

import time

import numpy as np
from heatmap import experiment

import featlab as fl

LEVEL, CELLS, SEEDS, MORE = 0.2, 65, 8, 32


def main():
    variable = "clean_test_error"
    grid = {"data.d": np.linspace(100, 1060, CELLS), "data.signal_norm": np.linspace(0, 8, CELLS)}
    reference = fl.contour(fl.sweep(experiment("theorem"), grid, range(1000, 1000 + MORE)), variable, LEVEL).at
    step = 8 / (CELLS - 1)
    print(f"reference: the whole grid, {MORE} other seeds")
    for name, options in [("whole grid", {}), ("near the level", {"near": {variable: LEVEL}})]:
        seconds = []
        for _ in range(2):  # the second finds its programs compiled
            begun = time.perf_counter()
            diagram = fl.sweep(experiment("theorem"), grid, SEEDS, **options)
            seconds.append(time.perf_counter() - begun)
        runs = int(diagram.done.sum())
        measured = fl.contour(diagram, variable, LEVEL).at
        error = float(np.sqrt(((measured - reference) ** 2).mean())) / step
        found = int(np.isfinite(measured).sum())
        share = runs / diagram.done.size
        print(f"{name}: {runs:,} runs ({share:.1%}), {seconds[0]:.1f} s, then {seconds[1]:.1f} s; boundary in")
        print(f"  {found} of {CELLS} columns, root mean square error {error:.3f} grid steps")


if __name__ == "__main__":
    main()
