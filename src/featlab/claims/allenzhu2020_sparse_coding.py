r"""Neurons that begin a little along one atom become pure features, and the network beats every linear model.

Allen-Zhu and Li (2020), in the form of lecture slides. Inputs are sparse sums of orthonormal atoms under dense
noise, $x = Mz + \xi$, $y = \mathrm{sign} \langle w^\star, z \rangle$; the network is $f(x) = \sum_i
[\mathrm{ReLU}(\langle w_i, x \rangle - b) - \mathrm{ReLU}(-\langle w_i, x \rangle - b)]$ with thresholds that
grow in training on the logistic loss, on fresh inputs at every step. Some neurons are *surely good* at the
start, by luck: large along one $M_j$ and small along all other atoms. They are so in the end, others that are
*potentially good* join them, and in the end a neuron that has grown is a multiple of one atom, and $f$ a sum of
thresholded features of the magnitudes $w^\star_j$. A linear model cannot get rid of the noise. Measured, for
each d:

* *Counts.* Surely good neurons among 100,000 at the start, over the closed form: 1 within 5 %. One binomial
  standard deviation of the mean over 12 seeds is 0.6 % at most.
* *Retention.* The share of the surely good neurons of the start that are not so at the end, for the same atom.
  In the theorem it tends to 0 as d grows; it is judged as what this library takes for $\ll 1$, at most 0.1.
* *Retention and d.* The slope of the share that is kept in $\log d$, fitted for each seed: at least $-0.05$, the
  margin of an exponent 0. Near 1 it cannot rise much, but it must not fall.
* *Entering.* Neurons that have become surely good were potentially good at the start at least ten times as often
  as any pair of a neuron and an atom was.
* *Purity.* The median over neurons that have grown (to half the mean length of the longest tenth) of the cosine
  with the nearest atom: at least 0.9.
* *Magnitudes.* $w^\star_j f(M_j)$, which should be the same positive number for all atoms: the smallest is at
  least half the mean.
* *Error* on fresh inputs: below that of the best linear model, $M w^\star$, on the same inputs.

The theorem has a width polynomial in d, so that every atom has surely good neurons at the start. The width here
follows from that: $m P(i \in S_{\mathrm{sure},j}) = 1$, the expected number of them for an atom, with $c_1 =
2.5$ and $c_2 = 0.2$ ($c_1 - c_2 > 2$, or the second factor of the closed form would tend to 0). Thresholds begin
between the two levels of the sets, $b_0 = \sigma_1 \sqrt{c_1 \log d}$, and grow at half the speed of a neuron that
is awake (`GrowingThresholds`), the largest speed at which, but for the noise of batches, they do not overtake a
neuron that is above them.

Sparsity is 3, at most $\sqrt d$; noise has the length $\sigma_0 \sqrt d = 1.32$ at every d, so that linear
models err equally often, 17 % of the time; training takes $6d/\eta$ steps. Sparsity, noise, start and the share
at which thresholds stop had been tried at d = 36 to find where the effect shows; the step and its duration were
chosen after looking at d = 36 to 100, on other seeds than any that decide. Laptop size ends at d = 64: at d = 100
a seed takes half a minute.

The slides leave the rule for thresholds open, and it is what retention depends on. A first version of this claim
let them follow the lengths of the longest tenth of the neurons, from $1.75$ standard deviations of $\langle w, x
\rangle$ on. That was decided: inconclusive at laptop size, and refuted at full size, with 2, 7 and 21 % lost at
d = 36, 64, 100. Who was lost was not above the threshold in the beginning: with $c_1 = 2.3$ the sets asked for 0.7
to 0.85 of it. Such neurons are in a race with the fastest, and lose it the more often the longer it lasts: from
starts of $\sigma_1 = 0.02$ and $0.005$ at d = 36, at the same relative step, 3 and 35 %. With the present rule it
was 1 and 2 % on the same scale. That was seen on other seeds, and is why the rule was changed; no margin was.

Slides say that no neuron ever leaves. Only start and end are judged here, because in between some do: a fifth is
out at d = 64 after an eighth of the training. They are large along their atom as before and have become too large
along another one; most come back as thresholds rise, the more slowly the larger d. After $4d/\eta$ steps 97 % were
back at d = 64, after $8d/\eta$ 99 %. Full size is inconclusive for that reason: at d = 100 6.6 % are still out,
and the slope in $\log d$ is $-0.060 \pm 0.010$. (Counts were of 20,000 neurons then, and are of 100,000 now.)

The control has no thresholds. Every neuron then moves along $M w^\star$, and none becomes pure.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from featlab.algorithms import GrowingThresholds
from featlab.claims._claim import MUCH_LESS, Assumption, Claim, Size
from featlab.claims._judge import ZERO_EXPONENT_MARGIN, agrees, bounded_by, exceeds
from featlab.claims._picture import MOMENTS
from featlab.data import SparseCoding, Stream
from featlab.experiment import Experiment
from featlab.fields import real, whole
from featlab.networks import SymmetricReLU
from featlab.probes import (
    at_end,
    errors_beside_linear,
    feature_purity,
    feature_responses,
    geometric,
    set_counts,
    train_loss,
)
from featlab.probes.neuron_sets import members
from featlab.space import Ambient
from featlab.task import unbatched
from featlab.theory.sparse_coding import first_threshold, potential_probability, sure_count, sure_probability

PURE = 0.9  # a cosine
BALANCED = 0.5  # the smallest response to an atom over the mean
HELD_OUT = 4000  # inputs that no step sees
COUNTED = 100_000  # neurons of the start
TIME = 6.0  # eta t / d at the end


class SparseFeatures(Claim):
    """The claim of this file."""

    title = "neurons that are lucky at the start become pure features of a sparse code, and beat linear models"
    statement = (
        r"P(i \in S_{\mathrm{sure},j}^{(0)}) = Q(\sqrt{(c_1 + c_2) \log d})\,[1 - 2 Q(\sqrt{(c_1 - c_2) \log "
        r"d})]^{d-1}; \qquad S_{\mathrm{sure},j}^{(0)} \subseteq S_{\mathrm{sure},j}^{(T)}, \qquad f_T(x) \approx "
        r"\sum_j w^\star_j [\mathrm{ReLU}(\langle M_j, x \rangle - b) - "
        r"\mathrm{ReLU}(-\langle M_j, x \rangle - b)]"
    )
    refuted_if = (
        "the counts of the start are not those of the closed form, a tenth of the surely good neurons is lost or "
        "more at larger d, grown neurons are not along one atom, an atom is missed, or a linear model errs less"
    )
    reference = """@inproceedings{allenzhu2021feature,
  title     = {Feature Purification: How Adversarial Training Performs Robust Deep Learning},
  author    = {Allen-Zhu, Zeyuan and Li, Yuanzhi},
  booktitle = {IEEE Symposium on Foundations of Computer Science},
  year      = {2021}
}"""
    sizes = {
        "tiny": Size(seeds=3, atoms=(16,), time=(0.05,), counted=(2000,)),
        "smoke": Size(seeds=4, atoms=(16, 25), time=(TIME,), counted=(COUNTED,)),
        "laptop": Size(seeds=12, atoms=(25, 36, 64), time=(TIME,), counted=(COUNTED,)),
        "full": Size(seeds=24, atoms=(36, 64, 100), time=(TIME,), counted=(COUNTED,)),
    }
    number_of_checks = 7
    minutes = 2.0
    control_changes = "the network has no thresholds"

    lucky: float = real(default=1.0, above=0)  # m P(i in S_sure,j), surely good neurons an atom at the start
    sparsity: int = whole(default=3, at_least=1)  # s
    noise: float = real(default=1.32, at_least=0)  # sigma_0 sqrt(d)
    init_scale: float = real(default=0.02, above=0)  # sigma_1
    learning_rate: float = real(default=0.1, above=0)  # eta
    batch: int = whole(default=256, at_least=1)  # fresh inputs a step
    share: float = real(default=0.4, at_least=0, below=1)  # alpha, of the longest weights, where thresholds stop
    c1: float = real(default=2.5, above=0)
    c2: float = real(default=0.2, above=0)

    def typical(self):
        return self.experiment(36)

    def scene(self):
        probes = [train_loss, set_counts, feature_purity, errors_beside_linear(count=1000)]
        one = self.experiment(25)
        data = dataclasses.replace(one.data, data=self._coding(25, 400))
        return dataclasses.replace(one, data=data, probes=probes, record=geometric(MOMENTS))

    def perturbed(self) -> dict[str, Claim]:
        changes = {"lucky": 1.5, "learning_rate": 0.5, "noise": 0.8, "init_scale": 1.5}
        return {
            f"{name} {self.knobs[name]:g} -> {self.knobs[name] * factor:g}": dataclasses.replace(
                self, **{name: self.knobs[name] * factor}
            )
            for name, factor in changes.items()
        }

    def assumptions(self, experiment):
        coding, network = unbatched(experiment.data), experiment.network
        assert isinstance(coding, SparseCoding) and isinstance(network, SymmetricReLU)
        d = float(coding.d)
        rest = math.sqrt(coding.sparsity + coding.noise_scale**2 * d)  # in units of sigma_1
        return [
            Assumption("(c1 - c2) / 2: other atoms are small", (self.c1 - self.c2) / 2, ">= 1"),
            Assumption("m P(i in S_sure,j): lucky neurons an atom", self._expected(network.width, d) / d, ">= 1"),
            Assumption("sqrt(d) / s: the code is sparse", math.sqrt(d) / coding.sparsity, ">= 1"),
            Assumption("sigma_0 sqrt(d): linear models feel the noise", coding.noise_scale * math.sqrt(d), ">= 1"),
            Assumption(
                "b_0 / sd <w, x>: first thresholds over all that is random", network.threshold / rest, ">= 1"
            ),
            Assumption("alpha / sigma_0: thresholds over noise", self.share / coding.noise_scale, ">= 1"),
            Assumption("sigma_1: the start is small", network.init_scale, "<< 1"),
        ]

    def checks(self, lab):
        atoms, (counted,) = lab.size.atoms, lab.size.counted
        cells = tuple(f"d = {d:g}" for d in atoms)
        ratios = [self.counts(d, int(counted), lab.seeds) / self._expected(counted, d) for d in atoms]
        yield agrees("surely good neurons at the start over the closed form", ratios, 1.0, cells=cells)
        read = lab.several({d: self.experiment(d, *lab.size.time) for d in atoms})
        ends = [read[d] for d in atoms]
        kept = np.array([one["retention"] for one in ends])
        yield bounded_by("share of surely good neurons that are lost", 1 - kept, MUCH_LESS, cells=cells)
        rise = _slopes(np.log(atoms), kept)
        yield exceeds("slope in log d of the share that is kept", rise, 0.0, -ZERO_EXPONENT_MARGIN)
        often = [one["promotion"] / potential_probability(d, self.c1, self.c2) for d, one in zip(atoms, ends)]
        name = "potentially good at the start: those that become surely good over any pair"
        yield exceeds(name, often, 0.0, 1 / MUCH_LESS, cells=cells)
        yield self._pure(ends, cells)
        responses = [np.reshape(one["feature_response"], (len(lab.seeds), -1)) for one in ends]  # (seed, atom)
        smallest = [one.min(axis=1) / np.maximum(np.abs(one).mean(axis=1), 1e-12) for one in responses]
        yield exceeds("smallest response to an atom over the mean", smallest, 0.0, BALANCED, cells=cells)
        linear, network = ([one[f"{kind}_error"] for one in ends] for kind in ("linear", "network"))
        yield exceeds("error of the best linear model above the network's", linear, network, cells=cells)

    def control(self, lab):
        d = min(lab.size.atoms)
        read = lab.several({("without", d): self.experiment(d, *lab.size.time, thresholds=False)})
        return self._pure([read["without", d]], (f"d = {d:g}",))

    def _pure(self, ends, cells):
        return exceeds("cosine of grown neurons with an atom", [e["purity"] for e in ends], 0.0, PURE, cells=cells)

    def _expected(self, width, d):
        return sure_count(width, d, self.c1, self.c2)[0]

    def experiment(self, d: float, time: float = TIME, *, thresholds: bool = True) -> Experiment:
        r"""Training for so many $d / \eta$ steps; of the control, without `thresholds`."""
        first, share = (first_threshold(d, self.c1), self.share) if thresholds else (0.0, 0.0)
        return Experiment(
            data=Stream(data=self._coding(d, HELD_OUT), size=self.batch),  # type: ignore  (n and d are no fields)
            network=SymmetricReLU(width=self.width(d), init_scale=self.init_scale, threshold=first),
            algorithm=GrowingThresholds(self.learning_rate, share=share),
            probes=[
                set_counts(c1=self.c1, c2=self.c2).on(at_end),
                feature_purity.on(at_end),
                feature_responses.on(at_end),
                errors_beside_linear(count=4000).on(at_end),
            ],
            steps=round(time * d / self.learning_rate),
        )

    def width(self, d: float) -> int:
        """So many neurons that an atom has `lucky` surely good ones among them, on average."""
        return math.ceil(self.lucky / sure_probability(d, self.c1, self.c2))

    def counts(self, d: float, width: int, seeds: Sequence[int]) -> np.ndarray:
        """How many neurons of the starts of networks of this width are surely good, for each seed."""
        network = SymmetricReLU(width=width, init_scale=self.init_scale)

        def count(seed):
            truth_key, start_key = jax.random.split(jax.random.key(seed))
            truth, space = self._coding(d, 1).truth(truth_key, Ambient(d))
            return jnp.sum(members(network.init(start_key, space)[0], truth, self.c1, self.c2)[0])

        return np.asarray(jax.jit(lambda all_seeds: jax.lax.map(count, all_seeds))(jnp.asarray(seeds)))

    def _coding(self, d, n):
        return SparseCoding(n=n, d=d, sparsity=self.sparsity, noise_scale=self.noise / math.sqrt(d))


def _slopes(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Least squares of each column of y on x; where a column has no value at some x, on the others."""

    def slope(column):
        there = np.isfinite(column)
        return np.polyfit(x[there], column[there], 1)[0] if there.sum() > 1 else math.nan

    return np.array([slope(column) for column in y.T])
