"""The heat-map of benign overfitting in ReLU networks, whole: `python benchmarks/heatmap.py [--seeds N]`.

100 x 100 cells (|mu| = 0 to 9.9, d = 100 to 1090), n = 20, width 10, 100 steps, 1,000 test inputs, 10 % flips in
training and test: 100,000 trainings with 10 seeds. In both variants: the network of the authors' public script
(bias, PyTorch's default start, mean over patches, sum over filters, isotropic noise), and the theorem's (Kou,
Chen, Chen and Gu, 2023). Beside it what a user would write instead: an eager PyTorch loop, torch.func,
torch.compile, and a jitted and vmapped JAX program on whole vectors. All in one run, on an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy as np

import featlab as fl

N, WIDTH, STEPS, TESTS = 20, 10, 100, 1000
GRID = {"data.d": np.arange(100, 1100, 10), "data.signal_norm": np.arange(100) / 10}
SAMPLE = [(d, mu) for d in (100, 350, 600, 850, 1090) for mu in (2.0, 6.0)]  # cells that others are timed on


def experiment(variant: str) -> fl.Experiment:
    authors = variant == "authors"
    return fl.Experiment(
        data=fl.data.SignalNoise(
            n=N, d=100, signal_norm=1.0, label_flip=0.1, test_flip=0.1, orthogonal=not authors
        ),
        network=fl.networks.TwoLayerCNN(
            width=WIDTH,
            average_filters=not authors,
            average_patches=authors,
            bias=authors,
            uniform_start=authors,
        ),
        algorithm=fl.algorithms.GradientDescent(0.1),
        probes=[fl.probes.test_error(count=TESTS), fl.probes.train_loss],
        steps=STEPS,
    )


def sweep(variant: str, seeds: int, **options):
    return fl.sweep(experiment(variant), GRID, seeds, **options)


def cold(variant: str, seeds: int) -> tuple[float, float]:
    """Seconds from the shell's return key to the first unit and to the end, nothing compiled before."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": cache}
        command = [sys.executable, __file__, "--cold", variant, "--seeds", str(seeds)]
        begun = time.time()
        printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    first, last = (float(word) - begun for word in printed.split())
    return first, last


def cold_child(variant: str, seeds: int) -> None:
    moments = []
    sweep(variant, seeds, watch=lambda dataset: moments.append(time.time()))
    print(moments[0], time.time())


def whole_vectors(variant: str):
    """Plain JAX on whole d-vectors, jitted, vmapped over runs: the same task, another road."""
    authors = variant == "authors"

    def respond(params, x):  # x: (sample, patch, d)
        w, b = params
        hidden = jax.nn.relu(jnp.einsum("jrd,ipd->ipjr", w, x) + b)
        hidden = hidden.mean(1) if authors else hidden.sum(1)
        hidden = hidden.sum(-1) if authors else hidden.mean(-1)
        return hidden[:, 0] - hidden[:, 1]

    def inputs(key, mu, d, count):
        keys = jax.random.split(key, 3)
        y = jnp.where(jax.random.bernoulli(keys[0], 0.5, (count,)), 1.0, -1.0)
        flipped = jnp.where(jax.random.bernoulli(keys[1], 0.1, (count,)), -y, y)
        noise = jax.random.normal(keys[2], (count, d))
        noise = noise if authors else noise.at[:, 0].set(0.0)
        signal = jnp.zeros((count, d)).at[:, 0].set(mu * y)
        return jnp.stack([signal, noise], axis=1), flipped

    def one(key, mu, d):
        keys = jax.random.split(key, 4)
        shape = (2, WIDTH, d)
        if authors:
            w = jax.random.uniform(keys[0], shape, minval=-1, maxval=1) / d**0.5
            b = jax.random.uniform(keys[1], shape[:2], minval=-1, maxval=1) / d**0.5
        else:
            w, b = 0.01 * jax.random.normal(keys[0], shape), jnp.zeros(shape[:2])
        x, y = inputs(keys[2], mu, d, N)

        def loss(params):
            return jnp.mean(jax.nn.softplus(-y * respond(params, x)))

        def step(_, params):
            gradient = jax.grad(loss)(params)
            rates = (0.1, 0.1 if authors else 0.0)
            return tuple(p - rate * g for p, g, rate in zip(params, gradient, rates))

        params = jax.lax.fori_loop(0, STEPS, step, (w, b))
        test, labels = inputs(keys[3], mu, d, TESTS)
        return jnp.mean(labels * respond(params, test) <= 0)

    program = jax.jit(jax.vmap(one, in_axes=(0, 0, None)), static_argnums=2)
    return lambda mus, d, seeds: program(jax.vmap(jax.random.key)(jnp.asarray(seeds)), jnp.asarray(mus), d)


def alternatives(variant: str, repeats: int) -> dict[str, float]:
    """Milliseconds a training of each other road: means over the sampled cells, medians over repeats."""
    runs = 20
    plain = whole_vectors(variant)
    roads = {
        "JAX, whole vectors, jitted and vmapped": lambda d, mu, s: (
            jax.block_until_ready(plain([mu] * runs, d, range(s, s + runs))) is not None and runs
        )
    }
    try:
        import _torch as torch_roads
    except ImportError:
        print("  (PyTorch is not installed: pip install 'featlab[bench]')")
    else:
        roads["PyTorch, eager loop"] = lambda d, mu, s: torch_roads.eager(mu, d, s, variant) and 1
        roads["PyTorch, torch.func"] = lambda d, mu, s: (
            torch_roads.func([mu] * runs, d, list(range(s, s + runs)), variant) and runs
        )
        if torch_roads.compiled([2.0] * 2, 100, [0, 1], variant) is not None:
            roads["PyTorch, torch.compile"] = lambda d, mu, s: (
                torch_roads.compiled([mu] * runs, d, list(range(s, s + runs)), variant) and runs
            )
    times: dict[str, dict] = {road: {cell: [] for cell in SAMPLE} for road in roads}
    for repeat in range(repeats + 1):
        for cell in SAMPLE:
            for road, call in roads.items():
                begun = time.perf_counter()
                count = call(*cell, 1000 * repeat)
                if repeat:  # the first one compiles
                    times[road][cell].append((time.perf_counter() - begun) / count * 1e3)
    return {
        road: statistics.mean(statistics.median(values) for values in cells.values())
        for road, cells in times.items()
    }


def machine() -> float:
    """Floating-point operations a second of one large float32 matrix product."""
    a = jnp.ones((2048, 2048))
    product = jax.jit(lambda a: a @ a)
    jax.block_until_ready(product(a))
    best = np.inf
    for _ in range(10):
        begun = time.perf_counter()
        jax.block_until_ready(product(a))
        best = min(best, time.perf_counter() - begun)
    return 2 * 2048**3 / best


def operations() -> tuple[float, float]:
    """Of one training with its test: in matrix products, and elementwise (counted by hand, a dozen a number)."""
    rows = 2 * WIDTH
    products = STEPS * 2 * rows * N * (N + 3) + TESTS * 2 * rows * rows
    elementwise = STEPS * 12 * 2 * rows * N + TESTS * 8 * 2 * rows
    return products, elementwise


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cold", choices=["authors", "theorem"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cold:
        return cold_child(options.cold, options.seeds)
    runs = 10_000 * options.seeds
    peak = machine()
    load = os.getloadavg()[0]
    print(f"{jax.default_backend()}: {peak / 1e9:.0f} GFLOP/s in a large matrix product; load {load:.1f}")
    for variant in ("authors", "theorem"):
        first, last = cold(variant, options.seeds)
        sweep(variant, 1)
        warm = []
        for _ in range(options.repeats):
            begun = time.perf_counter()
            diagram = sweep(variant, options.seeds)
            warm.append(time.perf_counter() - begun)
        assert bool(diagram.done.all())
        seconds = statistics.median(warm)
        each = seconds / runs * 1e3
        products, elementwise = operations()
        rate = (products + elementwise) / each * 1e3
        print(f"{variant}: {runs:,} trainings")
        print(f"  cold: first unit after {first:.1f} s, all after {last:.1f} s; warm: {seconds:.2f} s")
        print(f"  {each:.4f} ms a training; {rate / 1e9:.0f} GFLOP/s, {rate / peak:.0%} of the machine")
        for road, ms in alternatives(variant, options.repeats).items():
            print(f"  {road}: {ms:.2f} ms a training, {ms / each:.0f} times as long")


if __name__ == "__main__":
    main()
