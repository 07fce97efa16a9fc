"""The phase diagram of softmax attention, whole: `python benchmarks/transformer.py [--seeds N] [--every K]`.

20 x 20 cells (n = 8 to 64, SNR = 0.05 to 1), 5 seeds, 4 tokens, head size 16, each run to a training loss of 0.01
(Jiang, Huang, Zhang, Suzuki and Nie, 2024): 2,000 trainings in one sweep, in inner products, at d = inf unless
--dimension says otherwise. With --every K only every K-th row and column is trained, and the seconds of the whole
are those times the number of cells left out.

Beside it the eager PyTorch loop that a user would write for the same task, on the same device, with whole vectors
of d = 2,000 where the sweep has d = inf. A step of it is timed at four n; a diagram takes as many steps as the
sweep's runs took. One cell is trained to its end by both, as a check that it is the same task.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time

import jax
import numpy as np
from heatmap import machine

import featlab as fl

TOKENS, HEAD, LOSS, TESTS = 4, 16, 0.01, 500
START, RATE, OUTPUT = 0.2, 4.0, math.sqrt(0.025)  # sigma_0, eta / n and |w_O|, for noise tokens of length one
SIZES = np.unique(np.round(np.geomspace(8, 64, 20)).astype(int))
SNRS = np.geomspace(0.05, 1.0, 20)
STORED = 2_000  # d of whole vectors, where the sweep's is infinite
TIMED = (8, 24, 41, 64)  # n at which a step of PyTorch is timed
CHECKED = (16, 0.5)  # n and SNR that both train to the end


def experiment(n: int, snr: float, d: float = math.inf) -> fl.Experiment:
    scale = 1.0 if math.isinf(d) else math.sqrt(d)  # of weights that meet noise of length sqrt(d)
    probes = fl.probes
    return fl.Experiment(
        data=fl.data.SignalTokens(n=n, d=d, tokens=TOKENS, snr=snr, balanced=True),
        network=fl.networks.SoftmaxAttention(head=HEAD, init_scale=START / scale, output_norm=OUTPUT),
        algorithm=fl.algorithms.GradientDescent(RATE * n / scale**2),
        probes=[probes.train_loss.on(probes.at_end), probes.test_loss(count=TESTS).on(probes.at_end)],
        steps=probes.until(probes.train_loss, LOSS, at_most=20_000),
    )


def operations(n, steps):
    """Of a training of `steps` steps, counted by hand.

    A step and the loss after it are two forward passes and one backward pass over the scores (four products of
    L x h and h x L a sample), a dozen operations for each product that is moved, and the softmax.
    """
    scores, moved, softmax = 4 * 2 * TOKENS**2 * HEAD, 12 * (2 * HEAD + 1) * (TOKENS - 1), 30 * TOKENS**2
    return n * steps * (scores + moved + softmax)


class Torch:
    """The eager loop, on whole vectors."""

    def __init__(self, d: int):
        import torch

        self.torch, self.d = torch, d
        cuda = jax.default_backend() == "gpu" and torch.cuda.is_available()
        self.device = "cuda" if cuda else "cpu"

    def train(self, n: int, snr: float, seed: int, at_most: int) -> tuple[int, float, float]:
        """Steps taken, seconds a step, and the test loss."""
        torch = self.torch
        key = torch.Generator(self.device).manual_seed(seed)
        normal = {"generator": key, "device": self.device}
        labels = torch.tensor([1.0, -1.0], device=self.device).repeat(n)[:n]
        tokens = self._tokens(labels, snr, key)
        start = [torch.randn(self.d, HEAD, **normal) * START for _ in ("query", "key")]
        params = [p.requires_grad_() for p in (*start, torch.zeros(self.d, device=self.device))]
        optimizer = torch.optim.SGD(params, lr=RATE * n)
        begun, steps = time.perf_counter(), 0
        loss = self._loss(params, tokens, labels)
        while loss.item() > LOSS and steps < at_most:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss, steps = self._loss(params, tokens, labels), steps + 1
        seconds = time.perf_counter() - begun
        with torch.no_grad():
            fresh = torch.tensor([1.0, -1.0], device=self.device).repeat(TESTS // 2)
            test = self._loss(params, self._tokens(fresh, snr, key), fresh).item()
        return steps, seconds / steps, test

    def _tokens(self, labels, snr, key):
        tokens = self.torch.randn(len(labels), TOKENS, self.d, generator=key, device=self.device) / self.d**0.5
        tokens[:, :, :2] = 0
        tokens[:, 0] = 0
        tokens[:, 0, 0], tokens[:, 0, 1] = snr * (labels > 0), snr * (labels < 0)
        return tokens

    def _loss(self, params, tokens, labels):
        query, key, value = params
        scores = (tokens @ query) @ (tokens @ key).transpose(1, 2)
        read = (scores.softmax(dim=-1) @ (tokens @ value)[..., None]).squeeze(-1)
        return self.torch.nn.functional.softplus(-labels * OUTPUT * read.mean(dim=1)).mean()


def eager(diagram, d: float) -> tuple[float, str] | None:
    """Seconds of the diagram's trainings in an eager loop, and on which device; None without PyTorch."""
    try:
        road = Torch(STORED if math.isinf(d) else int(d))
    except ImportError:
        print("  PyTorch is not installed, so there is nothing to compare with: pip install 'featlab[bench]'")
        return None
    road.train(8, 0.1, 0, 20)  # first calls load libraries
    each = [statistics.median(road.train(n, 0.2, seed, 60)[1] for seed in range(3)) for n in TIMED]
    n, snr = CHECKED
    steps, _, test = road.train(n, snr, 1, 20_000)
    mine = fl.run(experiment(n, snr, d), seeds=4, progress=False)
    print(
        f"  n = {n}, SNR = {snr:g}: {steps} steps and a test loss of {test:.3f} in PyTorch, "
        f"{float(mine.steps_taken.mean()):.0f} and {float(mine.test_loss.mean()):.3f} here"
    )
    of_each_n = diagram.steps_taken.sum(["snr", "seed"]).values
    return float(of_each_n @ np.interp(diagram.n.values, TIMED, each)), road.device


def main():
    parser = argparse.ArgumentParser(description="The phase diagram of softmax attention, timed.")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--every", type=int, default=1, help="only every K-th row and column")
    parser.add_argument("--repeats", type=int, default=3, help="of the compiled sweep, of which the median counts")
    parser.add_argument("--dimension", type=float, default=math.inf, help="d")
    options = parser.parse_args()
    if min(options.seeds, options.every, options.repeats) < 1:
        parser.error("--seeds, --every and --repeats must be at least 1")
    grid = {"n": SIZES[:: options.every].tolist(), "snr": SNRS[:: options.every].tolist()}
    cells = len(grid["n"]) * len(grid["snr"])

    def sweep():
        begun = time.perf_counter()
        made = fl.sweep(
            lambda n, snr: experiment(n, snr, options.dimension), grid, seeds=options.seeds, progress=False
        )
        return made, time.perf_counter() - begun

    (diagram, cold), warm = sweep(), statistics.median(sweep()[1] for _ in range(options.repeats))
    whole = len(SIZES) * len(SNRS) / cells
    assert bool(diagram.done.all()) and bool(diagram.trained.all())
    counted = float(operations(diagram.n, diagram.steps_taken).sum())
    peak, load = machine(), os.getloadavg()[0]
    print(
        f"{jax.default_backend()}, {os.cpu_count()} cores, load {load:.1f}: "
        f"{peak / 1e9:.0f} GFLOP/s in a large matrix product"
    )
    print(
        f"{cells} cells, {options.seeds} seeds, {float(diagram.steps_taken.mean()):.0f} steps each on average: "
        f"{warm:.2f} s compiled, {cold:.1f} s the first time; {counted / warm / 1e9:.1f} GFLOP/s, "
        f"{counted / warm / peak:.1%} of the peak"
    )
    if whole > 1:
        print(f"  all {len(SIZES) * len(SNRS)} cells, by their number: {warm * whole:.0f} s")
    other = eager(diagram, options.dimension)
    if other is not None:
        print(f"  PyTorch, eager loop on {other[1]}: {other[0]:.0f} s, {other[0] / warm:.0f} times as long")


if __name__ == "__main__":
    main()
