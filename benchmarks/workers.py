"""What a second dask worker gains: `python benchmarks/workers.py`.

The same sweep on one and on two workers of one core each, in turns, its programs compiled before; medians,
and the load of the machine beside them. Where others use it too, the work done for each core that the workers
really got says more than the time.
"""

from __future__ import annotations

import os
import statistics
import time

from distributed import Client, LocalCluster

import featlab as fl

REPEATS, SEEDS = 7, 64

EXPERIMENT = fl.Experiment(
    data=fl.data.SignalNoise(n=20, d=1e6, snr=0.1, noise_scale=1e-3),
    network=fl.networks.TwoLayerCNN(width=10, activation=fl.networks.relu_power(3), init_scale=0.05),
    algorithm=fl.algorithms.GradientDescent(1.0),
    probes=[fl.probes.train_loss, fl.probes.test_error],
    steps=1000,
)
GRID = {"data.snr": "0.05:1:20log"}


def seconds(client: Client, begin: int) -> float:
    """The time of a sweep with seeds of its own."""
    begun = time.perf_counter()
    fl.sweep(EXPERIMENT, GRID, range(begin, begin + SEEDS), cluster=client, progress=False)
    return time.perf_counter() - begun


def used(client: Client) -> float:
    """Seconds of processors that the workers have used."""
    return sum(client.run(lambda: sum(os.times()[:2])).values())


def main() -> None:
    runs = 20 * SEEDS
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as one,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as two,
        Client(one) as single,
        Client(two) as double,
    ):
        clients = {1: single, 2: double}
        times: dict[int, list[float]] = {1: [], 2: []}
        cores: dict[int, list[float]] = {1: [], 2: []}
        for client in clients.values():
            seconds(client, 0)
        for k in range(REPEATS):
            for workers, client in clients.items():
                before = used(client)
                times[workers].append(seconds(client, 10_000 * (k + 1)))
                cores[workers].append((used(client) - before) / times[workers][-1])
            alone, both, load = times[1][-1], times[2][-1], os.getloadavg()[0]
            print(f"{alone:.2f} s and {both:.2f} s, ratio {alone / both:.2f}; load {load:.1f}")
        for workers, taken in times.items():
            busy, rate = statistics.median(cores[workers]), runs / statistics.median(taken)
            print(f"{workers} worker(s): {rate:,.0f} runs/s on {busy:.2f} cores, {rate / busy:,.0f} a core")
        print(f"ratio of the medians {statistics.median(times[1]) / statistics.median(times[2]):.2f}")


if __name__ == "__main__":
    main()
