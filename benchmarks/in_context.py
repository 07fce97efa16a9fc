"""One training of each in-context model at the paper's size: `python benchmarks/in_context.py [--seeds N]`.

d = 20, k = 5 features, 500 sigmoid neurons, fresh batches of 512 inputs, Adam: attention, static and modified, in
milliseconds a training, tests included. Beside it, in the same run, an eager PyTorch loop of the static and the
attention model (autograd, torch.optim.Adam) with all threads and with one.
"""

from __future__ import annotations

import argparse
import statistics
import time

import jax

from featlab.claims.theorems.kim2024_icl import InContextLearning
from featlab.engine.batch import train_many
from featlab.experiment import Experiment

D, K, NEURONS, BATCH, TEACHER = 20, 5, 500, 512, 30
MODELS = ("attention", "static", "modified")


def ours(experiment: Experiment, seeds: int, repeats: int) -> float:
    """Seconds a training, median of a few after one that compiles."""
    times = []
    for repeat in range(repeats + 1):
        numbers = [7_200_000 + repeat * seeds + i for i in range(seeds)]
        begun = time.perf_counter()
        found = train_many([experiment] * seeds, numbers)
        times.append(time.perf_counter() - begun)
        assert found["trained"].all()
    return statistics.median(times[1:]) / seeds


def eager(model: str, steps: int, seeds: int, threads: int | None) -> float | None:
    """Seconds a training of a plain PyTorch loop, or None where there is no PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(threads or torch.get_num_threads())
    device = "cuda" if torch.cuda.is_available() and jax.default_backend() == "gpu" else "cpu"

    def features(weights, heads, x):
        return torch.sigmoid(x @ weights.T) @ heads / len(weights)

    def loss(true, learnt, gamma):
        if gamma is None:
            gamma = torch.linalg.inv(learnt.T @ learnt / len(learnt) + 1e-6 * torch.eye(K, device=device))
        readout = true.T @ learnt / len(true) @ gamma
        return ((true - learnt @ readout.T) ** 2).sum() / (2 * len(true))

    times = []
    for seed in range(seeds + 1):
        torch.manual_seed(seed)
        true_weights, true_heads = (torch.randn(TEACHER, size, device=device) for size in (D, K))
        weights = (2 / D**0.5 * torch.randn(NEURONS, D, device=device)).requires_grad_()
        heads = torch.randn(NEURONS, K, device=device).requires_grad_()
        gamma = torch.eye(K, device=device).requires_grad_() if model == "attention" else None
        moved = [weights, heads] + ([gamma] if gamma is not None else [])
        optimiser = torch.optim.Adam(moved, lr=0.02, betas=(0.9, 0.99))
        begun = time.perf_counter()
        for _ in range(steps):
            x = torch.randn(BATCH, D, device=device)
            optimiser.zero_grad()
            loss(features(true_weights, true_heads, x), features(weights, heads, x), gamma).backward()
            optimiser.step()
        with torch.no_grad():
            x = torch.randn(10_000, D, device=device)
            float(loss(features(true_weights, true_heads, x), features(weights, heads, x), gamma))
        times.append(time.perf_counter() - begun)
    return statistics.median(times[1:])


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--steps", type=int, default=600)
    options = parser.parse_args()
    print(f"{jax.default_backend()}: d = {D}, k = {K}, N = {NEURONS}, batches of {BATCH}")
    for model in MODELS:
        experiment = InContextLearning().experiment(model, K, NEURONS, BATCH, options.steps)
        seconds = ours(experiment, options.seeds, options.repeats)
        print(f"{model}: {seconds * 1e3:.0f} ms a training of {experiment.last_step} steps")
        if model == "modified":
            continue  # PyTorch's loop would be the static one, and the births
        for threads in (None, 1) if jax.default_backend() == "cpu" else (None,):
            other = eager(model, experiment.last_step, 2, threads)
            if other is None:
                print("  (PyTorch is not installed: pip install 'featlab[bench]')")
                break
            how = "all threads" if threads is None else "one thread"
            print(f"  PyTorch, eager, {how}: {other * 1e3:.0f} ms a training, {other / seconds:.1f} times as long")


if __name__ == "__main__":
    main()
