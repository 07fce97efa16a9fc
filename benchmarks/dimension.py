"""What d costs: the same run at d = 1e3, 1e6, 1e9 and inf in a span, and stored whole.

Medians of interleaved runs after compilation, of training alone and of training with test errors. The last column
is against the time at d = 1e3; storing whole vectors (Ambient) is what one would write without the span.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import time

import jax

import featlab as fl

REPEATS, SEEDS, STEPS, N, WIDTH = 15, 16, 500, 50, 16


def experiment(d: float, space=None) -> fl.Experiment:
    return fl.Experiment(
        data=fl.data.SignalNoise(n=N, d=d, snr=0.3, noise_scale=1.0 if math.isinf(d) else d**-0.5),
        network=fl.networks.TwoLayerCNN(width=WIDTH, init_scale=0.01),
        algorithm=fl.algorithms.GradientDescent(1.0),
        probes=[
            p.on(fl.probes.at_end) for p in (fl.probes.train_loss, fl.probes.test_error, fl.probes.coefficients)
        ],
        steps=STEPS,
        space=space,
    )


def interleaved(cases: dict[str, fl.Experiment], repeats: int) -> dict[str, float]:
    """Median seconds of each case, the cases taken in turns so that a busy moment hits all of them."""
    for case in cases.values():
        fl.run(case, seeds=SEEDS)
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(repeats):
        for name, case in cases.items():
            begun = time.perf_counter()
            fl.run(case, seeds=SEEDS)
            times[name].append(time.perf_counter() - begun)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    print(f"{jax.devices()[0].device_kind}: n={N}, width={WIDTH}, {STEPS} steps, {SEEDS} seeds a run")
    spans = {f"Span    d={d:g}": experiment(d) for d in (1e3, 1e6, 1e9, math.inf)}
    medians = interleaved(spans, REPEATS)
    stored = {f"Ambient d={d:g}": experiment(d, fl.Ambient) for d in (1e3, 1e4)}
    medians |= interleaved({name: dataclasses.replace(case) for name, case in stored.items()}, 3)
    base = medians["Span    d=1000"]
    for name, seconds in medians.items():
        print(f"{name:16} {1e3 * seconds / SEEDS:9.2f} ms a training {seconds / base:8.2f} x")
    finite = [medians[f"Span    d={d:g}"] for d in (1e3, 1e6, 1e9)]
    print(f"spread of the medians over d = 1e3, 1e6, 1e9: {100 * (max(finite) / min(finite) - 1):.0f} %")


if __name__ == "__main__":
    main()
