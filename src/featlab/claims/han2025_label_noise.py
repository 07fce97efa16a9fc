r"""With flipped labels, a network first learns the signal and ignores the flipped samples, then fits them too.

Han, Huang, Cao and co-authors (2025). Labels are flipped with probabilities $\tau_+$ and $\tau_-$, and
$n\,\mathrm{SNR}^2$ is a constant. At $T_1 = \Theta(nm/(\eta\sigma^2 d))$ all clean samples are fitted and all
flipped ones are not, so stopping there is safe (the test error is at most $\exp(-\Omega(d/n))$) and a loss of
$\log 2$ tells flipped samples from clean ones. Trained on, all samples are fitted, and the error is at least
$\frac12 \min(\tau_+, \tau_-)$.

That last statement is about tests whose noise patch is one of the training set: beside the noise of a flipped
sample, the class it was flipped from is misread, which is half the flipped fraction of all such tests. On fresh
noise the error stays near 0, since $(n\,\mathrm{SNR}^2)^2 d/n \gg 1$. Both are measured.

The early error is too small to be counted. What is followed is the exponent of its bound: with $M$ the signal's
margin and $F_-$ the response of the other class to noise,

$$P(y f(x) \le 0) \le P(F_-(\xi) \ge M) \le e^{-B}, \qquad
  B = \frac{(M - \mathbb{E} F_-)^2}{2 \sigma^2 \|W_-\|^2 / m},$$

because $F_-$ is Lipschitz in $\xi$; B must grow as $(d/n)^1$, and the error must lie below $e^{-B}$ where it can
be counted.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from featlab.algorithms import GradientDescent
from featlab.claims._claim import Assumption, Claim, Size
from featlab.claims._judge import agrees, bounded_by, exceeds, scales_as
from featlab.data import SignalNoise
from featlab.experiment import Experiment
from featlab.fields import probability, real, whole
from featlab.networks import TwoLayerCNN
from featlab.probes import (
    Variable,
    View,
    above,
    all_of,
    at_end,
    clean_noisy_split,
    first,
    probe,
    sample_selection,
    spurious_test_error,
    test_error,
    train_error,
    train_loss,
    until,
)

TESTS = 10_000
MOST = 40_000  # steps: several times as many as fitting takes


@probe(
    equivariant=True,
    in_products=True,
    concentration=Variable("", "B", "exponent of the bound on the error that Gaussian concentration gives"),
)
def concentration(view: View):
    r"""$B$ of this file's docstring, the smaller one of the two classes; 0 where the margin is below the mean."""
    draw = view.task.draw
    # Weights as fresh noise meets them: products with it are N(0, |row|^2).
    sigma = view.vectors.noise_length(draw.space) / jnp.sqrt(draw.space.dimension)
    directions = draw.truth.directions
    weights = view.weights
    on_signal = (weights @ draw.truth.vectors[0]).reshape(2, -1)
    rows = sigma * (weights - (weights @ directions.T) @ directions).reshape(2, on_signal.shape[1], -1)
    width = rows.shape[1]
    responses = jnp.stack([jnp.maximum(on_signal, 0).mean(1), jnp.maximum(-on_signal, 0).mean(1)])
    margins = jnp.array([responses[0, 0] - responses[0, 1], responses[1, 1] - responses[1, 0]])
    means = jnp.linalg.norm(rows, axis=-1).mean(-1) / math.sqrt(2 * math.pi)
    spread = jnp.stack([jnp.linalg.norm(one, 2) for one in rows]) ** 2 / width
    room = jnp.maximum(margins - means[::-1], 0)  # the other class misreads
    return jnp.min(room**2 / (2 * spread[::-1]))


class LabelNoise(Claim):
    """The claim of this file."""

    title = "with flipped labels the signal is learnt first and the flips are memorised later"
    statement = (
        r"T_1:\ \tilde y_i f_i > 0 \iff \tilde y_i = y_i, \quad L_D^{0-1} \le e^{-\Omega(d/n)};"
        r"\qquad t^*:\ \tilde y_i f_i > 0\ \forall i, \quad L_{D'}^{0-1} \ge \tfrac12 \min\{\tau_+, \tau_-\}"
    )
    refuted_if = (
        "flipped samples are fitted at T_1, the bound's exponent in d/n is not 1, or spurious tests do not err"
    )
    reference = """@inproceedings{han2025role,
  title     = {On the Role of Label Noise in the Feature Learning Process},
  author    = {Han, Andi and Huang, Wei and Zhou, Zhanpeng and Niu, Gang and Chen, Wuyang and others},
  booktitle = {International Conference on Machine Learning},
  year      = {2025}
}"""
    sizes = {
        "tiny": Size(seeds=3, ratios=(100, 1000), n=(16,)),
        "smoke": Size(seeds=4, ratios=(100, 1000, 10_000), n=(50,)),
        "laptop": Size(seeds=12, ratios=(100, 1000, 10_000, 100_000), n=(100,)),
        "full": Size(seeds=32, ratios=(400, 4000, 40_000, 400_000), n=(400,)),
    }
    number_of_checks = 8
    control_changes = "the signal is weaker, n SNR^2 = 1/2, so that noise is learnt before it"

    width: int = whole(default=16, at_least=1)  # m
    strength: float = real(default=32.0, above=0)  # n SNR^2
    learning_rate: float = real(default=0.1, above=0)  # eta, in units of n / (sigma^2 d)
    init_scale: float = real(default=1e-3, above=0)  # sigma_0, in units of sqrt(n) / (sigma d)
    flip: float = probability(default=0.2)  # tau_+
    negative_flip: float = probability(default=0.1)  # tau_-
    loss: float = real(default=0.02, above=0)  # at t*

    @property
    def early(self) -> int:
        r"""$T_1 = nm / (\eta \sigma^2 d)$."""
        return math.ceil(self.width / self.learning_rate)

    def experiment(self, ratio, n, *, strength=None, stop=None):
        """n samples in dimension `ratio` n, with noise of length one; to T_1, or until all is fitted."""
        strength = self.strength if strength is None else strength
        d = float(ratio * n)
        # Before training a sample is fitted by chance, so the flipped ones count once all clean ones are fitted.
        clean = above(clean_noisy_split, 1.0)
        flipped_too = all_of([clean, above(clean_noisy_split, 0.5, "fit_noisy")])
        moments = [
            clean_noisy_split.on(first(clean, "clean_fitted")),
            train_loss.on(first(flipped_too, "half_of_flipped_fitted")),
        ]
        readings = [train_error, test_error(count=TESTS), spurious_test_error, sample_selection, concentration]
        if stop is None:
            readings.append(clean_noisy_split)
        return Experiment(
            data=SignalNoise(
                n=n,
                d=d,
                snr=math.sqrt(strength / n),
                noise_scale=d**-0.5,
                label_flip=self.flip,
                negative_flip=self.negative_flip,
            ),
            network=TwoLayerCNN(width=self.width, init_scale=self.init_scale * math.sqrt(n / d)),
            algorithm=GradientDescent(self.learning_rate * n),
            probes=[one.on(at_end) for one in readings] + (moments if stop is not None else []),
            steps=self.early if stop is None else until(train_loss, stop, at_most=MOST),
        )

    def typical(self):
        return self.experiment(1000, 100, stop=self.loss)

    def assumptions(self, experiment: Any) -> list[Assumption]:
        data, network = experiment.data, experiment.network
        per_step = experiment.algorithm.learning_rate / (data.n * network.width)
        return [
            Assumption("the dimension is at least n^2: d / n^2", data.d / data.n**2, ">= 1"),
            Assumption("n SNR^2 is at least of order one", data.n * data.snr**2, ">= 1"),
            Assumption("flips are rarer than clean labels: 1 / (2 tau)", 1 / (2 * data.label_flip), ">= 1"),
            Assumption(
                "the start is small beside a step: sigma_0 n m / eta", network.init_scale / per_step, "<< 1"
            ),
            Assumption("steps are small: eta sigma^2 d / (n m)", per_step, "<< 1"),
        ]

    def checks(self, lab):
        (n,), ratios = lab.size.n, lab.size.ratios
        early = [lab.endings(self.experiment(ratio, n)) for ratio in ratios]
        late = [lab.endings(self.experiment(ratio, n, stop=self.loss)) for ratio in ratios]
        cells = tuple(f"d/n = {ratio:g}" for ratio in ratios)
        facts = {"cells": cells, "trained": float(min(run["trained"].mean() for run in early + late))}

        def of(runs, name):
            return np.array([run[name] for run in runs])

        yield self._stage_one(early, cells)
        passed = of(late, "half_of_flipped_fitted")
        yield exceeds("steps to half of the flipped samples less T_1", passed, self.early * 1.0, by=0.0, **facts)
        yield scales_as(
            "exponent of the bound B in d/n",
            ratios,
            of(early, "concentration"),
            1.0,
            rivals=(0.5, 2.0),
            symbols=("d/n", "B"),
            trained=facts["trained"],
        )
        above_bound = of(early, "clean_test_error") - np.exp(-of(early, "concentration"))
        yield bounded_by("early error less exp(-B)", above_bound, 0.0, **facts)
        found = np.minimum(of(early, "selection_precision"), of(early, "selection_recall"))
        yield exceeds("precision and recall of selection at loss log 2, at T_1", found, 0.0, by=0.95, **facts)
        yield bounded_by("training error at the end", of(late, "train_error"), 0.0, **facts)
        ratio = 2 * of(late, "spurious_test_error") / of(late, "flipped_fraction")
        yield agrees("spurious error at the end over half the flipped fraction", ratio, 1.0, **facts)
        yield bounded_by("error on fresh noise at the end", of(late, "clean_test_error"), 0.01, **facts)

    def control(self, lab):
        """Where noise grows faster than the signal, flipped samples are fitted along with the clean ones."""
        (n,), ratio = lab.size.n, lab.size.ratios[0]
        return self._stage_one([lab.endings(self.experiment(ratio, n, strength=0.5))], (f"d/n = {ratio:g}",))

    def _stage_one(self, runs, cells):
        wrong = [np.maximum(1 - run["fit_clean"], run["fit_noisy"]) for run in runs]
        trained = float(min(run["trained"].mean() for run in runs))
        name = "clean samples missed or flipped ones fitted at T_1"
        return bounded_by(name, np.array(wrong), 0.05, cells=cells, trained=trained)
