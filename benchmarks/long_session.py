"""One process for a long day: runs of different shapes, sweeps and verifications; maps, memory and time of each.

    python benchmarks/long_session.py --runs 1000 --sweeps 300 --verifications 100 --out out/long_session

Every run has another shape, so that every one is compiled. Flat curves mean that nothing is kept that will not be
needed again. Writes long_session.csv and .png, and says how the last tenth compares with the second.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import random
import time
from pathlib import Path

import numpy as np

import featlab as fl
from featlab.engine.compiled import keep_compiled_programs

COLUMNS = ("kind", "number", "maps", "megabytes", "seconds")
CLAIMS = ("kim2024_strict_saddle", "lazy_or_rich", "suzuki2024_dof_risk", "takakura2024_langevin")


def experiment(n: int, width: int) -> fl.Experiment:
    """A small training; each n and width are a shape of their own."""
    return fl.Experiment(
        data=fl.data.SignalNoise(n=n, d=1e4, snr=0.5, noise_scale=0.01),
        network=fl.networks.TwoLayerCNN(width=width),
        algorithm=fl.algorithms.GradientDescent(0.1),
        probes=[fl.probes.train_loss, fl.probes.test_error(count=100)],
        steps=5,
    )


def jobs(runs: int, sweeps: int, verifications: int):
    """All that is done, in an order of chance."""
    shapes = itertools.product(range(3, 90), range(1, 40))
    todo = [("run", shape) for shape in itertools.islice(shapes, runs)]
    todo += [("sweep", (3 + i % 80, 41 + i // 80)) for i in range(sweeps)]
    todo += [("verify", CLAIMS[i % len(CLAIMS)]) for i in range(verifications)]
    random.Random(0).shuffle(todo)
    return todo


def carry_out(kind: str, what) -> None:
    """One job; what comes of it is thrown away."""
    if kind == "run":
        fl.run(experiment(*what), 2, progress=False)
    elif kind == "sweep":
        fl.sweep(experiment(*what), {"data.snr": [0.2, 0.4, 0.8]}, seeds=2, progress=False)
    else:
        fl.verify(what, "tiny", base_seed=0)


def held() -> tuple[int, float]:
    """Memory maps of this process, and its resident memory in MB."""
    maps = len(Path("/proc/self/maps").read_bytes().splitlines())
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return maps, pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def draw(rows, path: Path) -> None:
    """Three panels over the number of jobs."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(3, 1, sharex=True, figsize=(9, 8), constrained_layout=True)
    order = np.arange(1, len(rows) + 1)
    for axis, column, label in zip(axes, (2, 3, 4), ("memory maps", "memory (MB)", "seconds each")):
        for kind, mark in {"run": "o", "sweep": "s", "verify": "^"}.items():
            chosen = np.array([row[0] == kind for row in rows])
            values = np.array([float(row[column]) for row in rows])
            axis.plot(order[chosen], values[chosen], mark, markersize=3, label=kind, alpha=0.7)
        axis.set_ylabel(label)
    axes[0].axhline(int(Path("/proc/sys/vm/max_map_count").read_text()), ls="--", color="black", lw=1)
    axes[0].set_yscale("log")
    axes[2].set_yscale("log")
    axes[0].legend(ncols=3, title="dashed: the limit of Linux")
    axes[2].set_xlabel("jobs done in one process")
    figure.savefig(path, dpi=120)


def main() -> None:
    """Parse, do, write after every job."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, count in {"runs": 1000, "sweeps": 300, "verifications": 100}.items():
        parser.add_argument(f"--{name}", type=int, default=count)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--out", type=Path, default=Path("out/long_session"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    keep_compiled_programs()
    rows, since = [], time.monotonic()
    with open(chosen.out / "long_session.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for kind, what in jobs(chosen.runs, chosen.sweeps, chosen.verifications):
            began = time.monotonic()
            carry_out(kind, what)
            rows.append((kind, len(rows) + 1, *held(), time.monotonic() - began))
            writer.writerow(rows[-1])
            file.flush()
            if time.monotonic() - since > 60 * chosen.minutes:
                break
    draw(rows, chosen.out / "long_session.png")
    tenth = max(len(rows) // 10, 1)
    for name, column in {"maps": 2, "MB": 3}.items():
        values = np.array([float(row[column]) for row in rows])
        print(f"{name}: {values[tenth : 2 * tenth].max():,.0f} at most in the second tenth of {len(rows)} jobs, "
              f"{values[-tenth:].max():,.0f} in the last")  # fmt: skip
    for kind in ("run", "sweep", "verify"):
        each = [float(row[4]) for row in rows if row[0] == kind]
        if len(each) >= 4:
            quarter = len(each) // 4
            print(f"{kind}: median {np.median(each[:quarter]):.2f} s in the first quarter, "
                  f"{np.median(each[-quarter:]):.2f} s in the last")  # fmt: skip


if __name__ == "__main__":
    main()
