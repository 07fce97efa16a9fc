r"""On a sparse parity the error stays that of a coin for most of training, while the weights already move to it.

Barak, Edelman, Goel, Kakade, Malach and Zhang (2022). $y = \prod_{i \in S} x_i$ with $|S| = k$ is uncorrelated
with everything that fewer coordinates say, so loss and accuracy stay on a plateau. Yet the gradient of a neuron
has a Fourier coefficient of degree $k - 1$, of order $d^{-(k-1)/2}$, on each coordinate of $S$, and one of degree
$k + 1$, a factor $d$ smaller, on every other: first-layer weights move along $S$ from the first step on. This
hidden progress is measured by $z_S$, the movement of the five best neurons on $S$ against that on 200 sets of $k$
other coordinates (`hidden_progress`); it is seen from the time $t_z$ on since when $z_S > 3$. $t_{.55}$ is when
the accuracy leaves .55, $t_\star$ when it reaches .95.

* Progress is seen in the first half of the plateau, $t_z \leq \frac12 t_{.55}$, for $k \geq 3$.
* The plateau takes most of the time, $t_{.55} \geq \frac12 t_\star$. The paper proves that its share tends to 1 as
  $d$ grows, for $k \geq 3$, gradient flow, and networks that see $S$ in $k$ disjoint blocks. It is judged at $k =
  3$ and the largest $d$.
* Both together: progress leads by a quarter of all steps, $t_{.55} - t_z \geq \frac14 t_\star$, for $k \geq 3$.
* The exponent of $t_\star$ in $d$ is larger for larger $k$, paired by seed. Its value is not judged: $d^k$ bounds
  the computation, not the number of steps.

The control has $k = 1$: a single coordinate shows in weights and accuracy alike within a few steps, and nothing
leads.

Seen on other seeds, and chosen after that: the plateau is not judged at $k = 4$, where its share was 0.45, 0.48
and 0.51 at $d = 18, 27, 40$, growing but too near one half for a verdict; the control is judged by the lead in
steps and not by the ratio of the times, which for $k = 1$ are one to four steps and say nothing; that lead itself,
which follows from the first two; $k = 4$ in the first and third, where it passed; $d \leq 40$; and the number of
seeds. With the batch fixed $t_z / t_{.55}$ grows with $d$ (0.23, 0.28, 0.36 at $k = 3$), since noise hides
progress the longer the smaller the coefficient: batches have to grow with $d$ in the paper too. The weights as a
whole do not show it: their size on a relevant coordinate over that on another has grown by a tenth at $t_{.55}$.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from featlab.algorithms import GradientDescent
from featlab.boundaries import exponents
from featlab.claims._claim import Assumption, Claim, Size
from featlab.claims._judge import bounded_by, exceeds
from featlab.data import SparseParity, Stream
from featlab.experiment import Experiment
from featlab.fields import real, whole
from featlab.networks import MLP
from featlab.objectives import hinge
from featlab.probes import ProgressTimes, evenly, held_out_error, hidden_progress, train_error, train_loss, until

PLATEAU = 3  # the smallest k whose plateau is known to grow with d
HELD_OUT = 2000  # inputs that no step sees: an accuracy of .55 is 4.5 deviations from that of a coin
LOOKS = 10  # steps between two looks
LEARNT = 0.05  # error
HALF = 0.5  # of the plateau, in which progress is to be seen, and of all steps, which the plateau is to take
QUARTER = HALF**2  # of all steps, by which progress then leads


class HiddenProgress(Claim):
    """The claim of this file."""

    title = "on a sparse parity weights move towards the relevant coordinates long before the accuracy does"
    statement = (
        r"y = \prod_{i \in S} x_i, \ |S| = k \geq 3: \quad t_z \leq \tfrac12\, t_{.55}, \quad t_{.55} - t_z \geq "
        r"\tfrac14\, t_\star; \qquad k = 3, \ d \gg 1: \quad t_{.55} \geq \tfrac12\, t_\star; \qquad "
        r"t_\star \sim d^{\alpha_k}, \quad \alpha_2 < \alpha_3 < \alpha_4"
    )
    refuted_if = (
        "for k = 3 or 4 hidden progress leads the accuracy by less than a quarter of all steps or is not seen in "
        "the first half of the plateau, for k = 3 and the largest d the plateau takes less than half the steps, "
        "or their exponent in d does not grow with k"
    )
    reference = """@inproceedings{barak2022hidden,
  title     = {Hidden Progress in Deep Learning: {SGD} Learns Parities Near the Computational Limit},
  author    = {Barak, Boaz and Edelman, Benjamin L. and Goel, Surbhi and Kakade, Sham and Malach, Eran and Zhang, Cyril},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2022}
}"""  # noqa: E501
    sizes = {
        "tiny": Size(seeds=3, dimensions=(8,), orders=(2, 3), steps=(10_000,)),
        "smoke": Size(seeds=12, dimensions=(18, 30), orders=(2, 3), steps=(10_000,)),
        "laptop": Size(seeds=40, dimensions=(18, 27, 40), orders=(2, 3, 4), steps=(20_000,)),
        "full": Size(seeds=128, dimensions=(18, 22, 27, 33, 40), orders=(2, 3, 4), steps=(50_000,)),
    }
    number_of_checks = 4
    minutes = 2.0
    control_changes = "the label is a single coordinate, k = 1"

    width: int = whole(default=100, at_least=1)  # m
    learning_rate: float = real(default=0.05, above=0)  # eta
    batch: int = whole(default=256, at_least=1)  # B, fresh inputs a step
    init_scale: float = real(default=3**-0.5, above=0)  # s, of both layers: as if uniform on [-1, 1]
    bias_scale: float = real(default=0.1, at_least=0)  # s_b

    def typical(self):
        return self.experiment(27, PLATEAU)

    def scene(self):
        probes = [train_loss, train_error, hidden_progress]
        return dataclasses.replace(self.experiment(18, PLATEAU), probes=probes, steps=2000, record=evenly(80))

    def perturbed(self) -> dict[str, Claim]:
        changes = {"width": 2, "learning_rate": 0.5, "batch": 2}
        return {
            f"{name} {self.knobs[name]:g} -> {self.knobs[name] * factor:g}": dataclasses.replace(
                self, **{name: self.knobs[name] * factor}
            )
            for name, factor in changes.items()
        }

    def assumptions(self, experiment):
        stream, network, algorithm = experiment.data, experiment.network, experiment.algorithm
        assert isinstance(stream, Stream) and isinstance(network, MLP) and isinstance(algorithm, GradientDescent)
        parity = stream.data
        assert isinstance(parity, SparseParity)
        k, d = parity.k, parity.d
        seen = experiment.last_step * stream.size
        return [
            Assumption("m / 2^k: neurons for each pattern of signs", network.width / 2**k, ">= 1"),
            Assumption("d / 2k: most coordinates are irrelevant", d / (2 * k), ">= 1"),
            Assumption("T B / d^(k-1): samples for a coefficient of degree k - 1", seen / d ** (k - 1), ">= 1"),
            Assumption("eta: small steps", algorithm.learning_rate, "<< 1"),
        ]

    def checks(self, lab):
        dimensions, orders = lab.size.dimensions, lab.size.orders
        read = self._reads(lab, [(d, k) for k in orders for d in dimensions])
        hidden = {(d, k): one for (d, k), one in read.items() if k >= PLATEAU}
        yield self._lead(hidden)
        ratio = [_time(one, "progress_time") / _time(one, "escape_time") for one in hidden.values()]
        yield bounded_by("time of hidden progress over time of the accuracy", ratio, HALF, **_facts(hidden))
        last = {(dimensions[-1], PLATEAU): read[dimensions[-1], PLATEAU]}
        share = [_time(one, "escape_time") / _time(one, "learnt_time") for one in last.values()]
        yield exceeds("share of the plateau in all steps", share, 0.0, HALF, **_facts(last))
        steps = {k: np.array([_time(read[d, k], "learnt_time") for d in dimensions]) for k in orders}
        fitted = [_exponents(dimensions, steps[k]) for k in orders]
        cells = tuple(f"k = {k} over k = {before}" for before, k in zip(orders, orders[1:]))
        facts = {**_facts(read), "cells": cells}
        yield exceeds(
            "exponent of the steps in d less that of the next smaller k", fitted[1:], fitted[:-1], **facts
        )

    def control(self, lab):
        return self._lead(self._reads(lab, [(lab.size.dimensions[-1], 1)]))

    def _lead(self, read):
        lead = [
            (_time(one, "escape_time") - _time(one, "progress_time")) / _time(one, "learnt_time")
            for one in read.values()
        ]
        return exceeds(
            "lead of hidden progress over the accuracy, of all steps", lead, 0.0, QUARTER, **_facts(read)
        )

    def _reads(self, lab, cells):
        (steps,) = lab.size.steps
        return lab.several({(d, k): self.experiment(d, k, int(steps)) for d, k in cells})

    def experiment(self, d: float, k: int, steps: int = 20_000) -> Experiment:
        """Training until the parity is learnt, for no more than so many steps."""
        network = MLP(
            width=self.width,
            init_scale=self.init_scale,
            output_scale=self.init_scale,
            bias_scale=self.bias_scale,
        )
        return Experiment(
            data=Stream(data=SparseParity(n=HELD_OUT, d=d, k=k), size=self.batch),  # type: ignore  (n and d are no fields here)
            network=network,
            objective=hinge,
            algorithm=GradientDescent(self.learning_rate),
            probes=[ProgressTimes(interval=LOOKS, learnt=1 - LEARNT)],
            steps=until(held_out_error(interval=LOOKS), LEARNT, at_most=steps),
        )


def _time(read, name: str) -> np.ndarray:
    """By seed, NaN where it did not come; none is known better than to one look."""
    return np.where(read[name] < 0, np.nan, np.maximum(read[name], LOOKS).astype(float))


def _facts(read) -> dict[str, Any]:
    trained = min(float(one["trained"].mean()) for one in read.values())
    return {"trained": trained, "cells": tuple(f"k = {k}, d = {d:g}" for d, k in read)}


def _exponents(sizes, steps: np.ndarray) -> np.ndarray:
    """One for each seed; with a single size there is none."""
    if len(sizes) < 2:
        return np.full(steps.shape[1], np.nan)
    return exponents(np.asarray(sizes, float), steps).overall
