"""Adam and sign descent on whole vectors: `python benchmarks/adaptive.py [--seeds N]`.

Neither commutes with rotations, so there is no span to hide in: d = 2,000 coordinates are stored, 100 seeds, 400
steps, n = 40, width 20, sparse noise (s = 40), tests included. Beside it, in the same run, an eager PyTorch loop
of the same task. The rate counts the dense products of the weights with signal and noise, forward and back.

The last lines say what sparse noise allows beyond dense arithmetic: weights on coordinates that no training input
has never move without weight decay, so 1 + ns coordinates are enough for training, whatever d is; the time of a
training in that many coordinates is set against that in d.
"""

from __future__ import annotations

import argparse
import statistics
import time

import jax
from heatmap import machine

import featlab as fl

N, WIDTH, STEPS, SPARSITY, TESTS = 40, 20, 400, 40, 1000
ALGORITHMS = {"Adam": fl.algorithms.Adam(1e-3), "sign descent": fl.algorithms.SignDescent(1e-3)}


def experiment(algorithm, d: int) -> fl.Experiment:
    return fl.Experiment(
        data=fl.data.SparseSignalNoise(n=N, d=d, sparsity=SPARSITY, noise_scale=0.15, feature_noise=0.5),
        network=fl.networks.TwoLayerCNN(
            width=WIDTH, activation=fl.networks.relu_power(3), average_filters=False, init_scale=0.02
        ),
        algorithm=algorithm,
        probes=[fl.probes.train_loss, fl.probes.test_error(count=TESTS)],
        steps=STEPS,
    )


def ours(algorithm, d: int, seeds: int, repeats: int) -> float:
    """Seconds a training, median of a few sweeps after one that compiles."""
    grid = {"algorithm.learning_rate": [1e-3]}
    times = []
    for _ in range(repeats + 1):
        begun = time.perf_counter()
        found = fl.sweep(experiment(algorithm, d), grid, seeds)
        times.append(time.perf_counter() - begun)
        assert bool(found.trained.all())
    return statistics.median(times[1:]) / seeds


def eager(name: str, d: int, seeds: int, threads: int | None) -> float | None:
    """Seconds a training of a plain PyTorch loop, or None where there is no PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    if threads is not None:
        torch.set_num_threads(threads)
    device = "cuda" if torch.cuda.is_available() and jax.default_backend() == "gpu" else "cpu"

    def inputs(count):
        y = torch.where(torch.rand(count) < 0.5, 1.0, -1.0)
        places = torch.rand(count, d - 1).argsort(1)[:, :SPARSITY] + 1
        noise = torch.zeros(count, d).scatter_(1, places, 0.15 * torch.randn(count, SPARSITY))
        signal = torch.zeros(count, d)
        signal[:, 0] = y
        return torch.stack([signal, noise - 0.5 * signal], 1).to(device), y.to(device)

    def respond(weights, x):
        hidden = torch.relu(x @ weights.T) ** 3
        return hidden[..., :WIDTH].sum((1, 2)) - hidden[..., WIDTH:].sum((1, 2))

    times = []
    for seed in range(seeds + 1):
        torch.manual_seed(seed)
        x, y = inputs(N)
        weights = (0.02 * torch.randn(2 * WIDTH, d)).to(device).requires_grad_()
        optimiser = torch.optim.Adam([weights], lr=1e-3, betas=(0.9, 0.99))
        begun = time.perf_counter()
        for _ in range(STEPS):
            optimiser.zero_grad()
            torch.nn.functional.softplus(-y * respond(weights, x)).mean().backward()
            if name == "Adam":
                optimiser.step()
            else:
                with torch.no_grad():
                    weights -= 1e-3 * weights.grad.sign()
        with torch.no_grad():
            tests, labels = inputs(TESTS)
            float((labels * respond(weights, tests) <= 0).float().mean())
        times.append(time.perf_counter() - begun)
    return statistics.median(times[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--d", type=int, default=2000)
    options = parser.parse_args()
    peak = machine()
    print(f"{jax.default_backend()}: {peak / 1e9:.0f} GFLOP/s in a large matrix product")
    operations = STEPS * 4 * 2 * WIDTH * (N + 1) * options.d
    touched = 1 + N * SPARSITY
    for name, algorithm in ALGORITHMS.items():
        seconds = ours(algorithm, options.d, options.seeds, options.repeats)
        rate = operations / seconds
        print(f"{name}, d = {options.d:,}: {seconds * 1e3:.2f} ms a training of {STEPS} steps;")
        print(f"  {rate / 1e9:.0f} GFLOP/s of dense products, {rate / peak:.0%} of the machine")
        for threads in (None, 1) if jax.default_backend() == "cpu" else (None,):
            other = eager(name, options.d, 5, threads)
            if other is None:
                print("  (PyTorch is not installed: pip install 'featlab[bench]')")
                break
            how = "all threads" if threads is None else "one thread"
            print(f"  PyTorch, eager, {how}: {other * 1e3:.0f} ms a training, {other / seconds:.1f} times as long")
        wide = 10 * options.d
        far, near = (ours(algorithm, d, max(options.seeds // 4, 4), options.repeats) for d in (wide, touched))
        print(f"  d = {wide:,}, of which {touched:,} coordinates are touched: {far * 1e3:.1f} ms in all of them,")
        print(f"  {near * 1e3:.1f} ms in those, {far / near:.1f} times less")


if __name__ == "__main__":
    main()
