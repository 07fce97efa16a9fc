"""What training in inner products gains over coordinates: `python benchmarks/products.py`.

Both take the same steps with the same networks (Kou's setting, and Cao's at d = inf); times are medians of
interleaved calls, compiled beforehand. Operations are those of the products with the Gram matrix alone; the
machine's rate is that of one large matrix product.
"""

from __future__ import annotations

import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

import featlab as fl
from featlab.engine.batch import train_many

REPEATS, SEEDS = 5, 4


def kou(n):
    d = 1e9
    return fl.Experiment(
        data=fl.data.SignalNoise(n=n, d=d, signal_norm=(d / n) ** 0.25),
        network=fl.networks.TwoLayerCNN(width=16, init_scale=1e-3 * n**0.5 / d),
        algorithm=fl.algorithms.GradientDescent(8 * n / d),
        probes=[fl.probes.train_loss.on(fl.probes.at_end)],
        steps=200,
    )


def cao(n):
    return fl.Experiment(
        data=fl.data.SignalNoise(n=n, d=float("inf"), snr=(4 / n) ** (1 / 3)),
        network=fl.networks.TwoLayerCNN(width=32, activation=fl.networks.relu_power(3), init_scale=0.1),
        algorithm=fl.algorithms.PacedDescent(0.2),
        probes=[fl.probes.train_loss.on(fl.probes.at_end)],
        steps=100,
    )


def seconds(call):
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def machine():
    """Floating-point operations a second, of one large matrix product."""
    a = jnp.ones((2048, 2048))
    product = jax.jit(lambda a: a @ a)
    jax.block_until_ready(product(a))
    return 2 * 2048**3 / min(seconds(lambda: jax.block_until_ready(product(a))) for _ in range(10))


def main():
    peak = machine()
    print(f"{jax.default_backend()}: {peak / 1e9:.0f} GFLOP/s in a large matrix product")
    for name, experiment, n in [
        ("Kou, d = 1e9", kou, 128),
        ("Kou, d = 1e9", kou, 512),
        ("Cao, d = inf", cao, 256),
    ]:
        made = experiment(n)
        roads = {
            "coordinates": lambda made=made: fl.run(made, seeds=SEEDS, progress=False),
            "products": lambda made=made: train_many([made] * SEEDS, range(SEEDS)),
        }
        times = {road: [] for road in roads}
        for call in roads.values():
            call()
        for _ in range(REPEATS):
            for road, call in roads.items():
                times[road].append(seconds(call))
        plain, fast = (statistics.median(times[road]) / SEEDS for road in roads)
        line = f"{name}, n = {n}: {plain * 1e3:.0f} ms a training in coordinates, {fast * 1e3:.1f} ms in products"
        line += f", ratio {plain / fast:.1f}"
        if np.isfinite(made.data.d):
            operations = made.last_step * 2 * made.network.vectors() * n**2
            line += f"; {operations / fast / 1e9:.1f} GFLOP/s, {operations / fast / peak:.0%} of the machine"
        print(line)


if __name__ == "__main__":
    main()
