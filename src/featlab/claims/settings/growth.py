r"""What `growth_laws` compares its times with: the equation $\dot u = c\,u^{q-1}$ and the starts of a run.

Time is counted in steps times learning rate, and noise is beside a signal of length |mu|.
"""

from __future__ import annotations

from collections.abc import Callable

import xarray as xr

from featlab.theory.signal_noise import blow_up_time, early_noise_rate, early_signal_rate


def signal_rate(signal_norm: float, power: float, width: int) -> float:
    """c of the signal."""
    return early_signal_rate(learning_rate=1.0, signal_norm=signal_norm, width_scale=1 / width, power=power)


def noise_rate(n: int, noise: float, power: float, width: int) -> float:
    """c of one noise vector of that length."""
    return early_noise_rate(learning_rate=1.0, noise_norm=noise, n=n, width_scale=1 / width, power=power)


def signal_time(width: int) -> Callable:
    """The law's time for a start of exactly sigma_0 |mu|; for ReLU^2, which has none, that of ReLU^3."""

    def time(snr, power, init_scale):
        q = max(power, 3)
        return float(blow_up_time(init_scale * snr, signal_rate(snr, q, width), q))

    return time


def noise_time(width: int) -> Callable:
    """The same for a start of exactly sigma_0 |xi|."""

    def time(n, noise, power, init_scale):
        return float(blow_up_time(init_scale * noise, noise_rate(n, noise, power, width), power))

    return time


def signal_start(runs: xr.Dataset) -> xr.DataArray:
    """The largest of a run's starts with the signal, each with the sign of its filter's class."""
    return (runs.signal_product_at_start * runs["class"]).max(("class", "filter"))


def noise_start(runs: xr.Dataset) -> xr.DataArray:
    """The largest start with the noise of sample 0, whose class is +1, of the filters of that class."""
    return runs.noise_product_at_start.sel({"class": 1}).isel(sample=0).max("filter")


def over_law(times: xr.DataArray, start: xr.DataArray, rate: float, power: float) -> xr.DataArray:
    r"""Times over $1 / ((q-2) c u_0^{q-2})$."""
    return times * (power - 2) * rate * start ** (power - 2)
