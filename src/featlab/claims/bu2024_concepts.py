r"""A transformer that is trained on prompts learns semantics in its attention, and concepts and semantics in its
output layer.

Bu et al. (2024). A prompt shares one of $K$ concepts; its pairs are $x = a_k + y b_k + \xi$, $\mathbf{y} = c_k + y
d_k + \xi'$ with $y = \pm 1$, and the query's $y$ is to be said. The transformer $f(H) = r^\top \mathrm{ReLU}(W_O
\sum_\ell s_\ell \mathbf{y}_\ell)$, $s = \mathrm{softmax}(x_\ell^\top W_K^\top W_Q x_q)$, is trained by descent on
the logistic loss, on fresh prompts at every step, from $W_Q = W_K = \sigma_0 I$. Then $b_k^\top W_Q b_k$ and
$b_k^\top W_K b_k$ become $\Omega(1)$ while $a_k^\top W_Q a_k$ and $a_k^\top W_K a_k$ remain as small as they
began, $W_O$ learns both $c_k$ and $d_k$, and the 0-1 error falls exponentially, also for prompts of other lengths,
mixtures of concepts and proportions of labels than were trained on. What is measured, at the end unless said:

* *Semantics.* The smallest of $b_k^\top W_Q b_k$ over the concepts, the same for $W_K$. Demonstrations with and
  without the query's label differ in score by $2 b_k^\top W_K^\top W_Q b_k$; one alone among $L$ outvotes all
  others where that exceeds $\log(L - 1)$. So $\Omega(1)$ is judged as at least $\sqrt{\log(L - 1) / 2}$, 1.05.
* *Concepts.* $a_k^\top W_Q a_k / \sigma_0$ of the concept where it is furthest from 1, the same for $W_K$: 1
  within 5 %. The slides' "$\approx 0$" means that it stays at its start.
* *Output.* The mean over neurons of $\langle w_i, c_k \rangle$ and of $\mathrm{sign}(r_i) \langle w_i, d_k
  \rangle$, smallest over concepts: at least ten times $\sigma_1$, the size of the weights at the start.
* *Decay.* Exponential decay reaches the error $\varepsilon$ in $O(\log 1/\varepsilon)$ steps: going from 0.02 to
  0.002 must take no longer than from 0.2 to 0.02. Their ratio is 1 for an exponential and above 1 for every power
  of time. Steps at which a level is passed are interpolated, for each seed, in the logarithm of the error.
* *Error* on prompts of the training law, and on others: prompts four times as long, positive mixtures of all
  concepts, a quarter of the labels positive. All on prompts in which some demonstration has the query's label: one
  in $2^L$ has none and no answer. The error must be below that share, $2^{-L}$.

Time is told in units of $K/(\eta\sigma_0)$. At first $\langle w_O, d_k \rangle$ drifts by $\mu =
\eta\sigma_0^2/2K$ a step, the attention being tilted towards matches by $\sigma_0^2$, and $b_k^\top W_Q b_k$ grows
at the rate $\eta \langle w_O, d_k \rangle / 2K$: by a factor of e in $t_\star = 2\sqrt2\, K/(\eta\sigma_0)$ steps.
Meanwhile batches of $B$ prompts move $\langle w_O, d_k \rangle$ at random, by $s = \frac\eta2 (LBK)^{-1/2}$ a
step. If the walk wins, a concept's semantics shrink in attention, and it is learnt late or not at all; from
$\sigma_0 = 0.1$ that happens to some. So the drift is asked to be three deviations of the walk at $t_\star$: $\mu
\sqrt{t_\star} / s = \sqrt{2\sqrt2\, LB \sigma_0^3 / \eta} \geq 3$.

The control starts $W_Q$ and $W_K$ from Gaussian matrices of the same Frobenius norm. Prompts of the training law
are learnt in time too, but each concept is matched by a direction of its own, to demonstrations of the query's
label or of the other one, and $b_k^\top W_Q b_k$ does not become $\Omega(1)$: the statement needs the aligned
start.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from featlab.algorithms import GradientDescent
from featlab.claims._claim import MUCH_LESS, Assumption, Claim, Size
from featlab.claims._judge import agrees, bounded_by, exceeds
from featlab.claims._picture import MOMENTS
from featlab.data import ConceptPrompts, Stream
from featlab.experiment import Experiment
from featlab.fields import real, whole
from featlab.networks import ConceptTransformer
from featlab.probes import at_end, concept_components, geometric, prompt_errors, train_loss

LAWS = ("trained", "longer", "mixed", "imbalanced")
LEVELS = (0.2, 0.02, 0.002)  # of the error, a factor of ten apart
TIMES = (2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 10.0, 12.0, 20.0)  # eta sigma_0 t / K, at which the error is read
HELD_OUT = 128  # prompts that no step sees


class ConceptsAndSemantics(Claim):
    """The claim of this file."""

    title = "attention learns the semantics of prompts, the output layer both semantics and concepts"
    statement = (
        r"W_Q^{(0)} = W_K^{(0)} = \sigma_0 I: \quad a_k^\top W_{Q,K}\, a_k \approx \sigma_0, \quad "
        r"b_k^\top W_{Q,K}\, b_k = \Omega(1), \quad \langle w_O, c_k \rangle, \langle w_O, d_k \rangle = "
        r"\Omega(1), \qquad P(y_q f_t(H) \leq 0) \leq e^{-\Omega(t)}"
    )
    refuted_if = (
        "attention leaves semantics below what a single demonstration needs or moves concepts by 5 %, the output "
        "layer misses one of them, or the error falls slower than exponentially or stays above 1 in 2^L"
    )
    reference = """@inproceedings{bu2024concepts,
  title     = {Provably Transformers Harness Multi-Concept Word Semantics for Efficient In-Context Learning},
  author    = {Bu, Dake and Huang, Wei and Han, Andi and Nitanda, Atsushi and Suzuki, Taiji and Zhang, Qingfu and Wong, Hau-San},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2024}
}"""  # noqa: E501
    sizes = {
        "tiny": Size(seeds=3, times=(0.1, 0.2, 0.3), prompts=(50,)),
        "smoke": Size(seeds=8, times=(2.5, 4.0, 5.0, 6.0, 7.0, 8.0, 20.0), prompts=(2000,)),
        "laptop": Size(seeds=12, times=TIMES, prompts=(4000,)),
        "full": Size(seeds=48, times=TIMES, prompts=(20_000,)),
    }
    number_of_checks = 6
    minutes = 1.0
    control_changes = "the query and key matrices start from Gaussian matrices"

    concepts: int = whole(default=3, at_least=1)  # K
    length: int = whole(default=10, at_least=3)  # L
    d: float = real(default=40.0, at_least=4)  # d_X + d_Y
    noise_scale: float = real(default=0.1, at_least=0)  # sigma
    width: int = whole(default=40, at_least=2)  # m
    init_scale: float = real(default=0.2, above=0)  # sigma_0
    output_scale: float = real(default=0.1, above=0)  # sigma_1
    learning_rate: float = real(default=0.5, above=0)  # eta
    batch: int = whole(default=32, at_least=1)  # B, fresh prompts a step

    def typical(self):
        return self.experiment(TIMES[-1])

    def scene(self):
        probes = [train_loss, concept_components, prompt_errors(law=LAWS[:1], count=1000)]
        return dataclasses.replace(self.experiment(TIMES[-1] / 2), probes=probes, record=geometric(MOMENTS))

    def perturbed(self) -> dict[str, Claim]:
        # A start of half the size would leave the room that the noise of the steps allows.
        changes = {"width": 2, "learning_rate": 0.5, "noise_scale": 0.5, "concepts": 2}
        return {
            f"{name} {self.knobs[name]:g} -> {self.knobs[name] * factor:g}": dataclasses.replace(
                self, **{name: self.knobs[name] * factor}
            )
            for name, factor in changes.items()
        }

    def assumptions(self, experiment):
        stream, network = experiment.data, experiment.network
        assert isinstance(stream, Stream) and isinstance(network, ConceptTransformer)
        prompts, algorithm = stream.data, experiment.algorithm
        assert isinstance(prompts, ConceptPrompts) and isinstance(algorithm, GradientDescent)
        seen = prompts.length * stream.size * network.init_scale**3
        drift = math.sqrt(2 * math.sqrt(2) * seen / algorithm.learning_rate)
        return [
            Assumption("sigma: little noise", prompts.noise_scale, "<< 1"),
            Assumption("2 sigma_0^2: attention begins even", 2 * network.init_scale**2, "<< 1"),
            Assumption("drift of W_O over 3 deviations of its random walk", drift / 3, ">= 1"),
            Assumption("alpha: W_Q and W_K begin aligned", network.alignment, ">= 1"),
            Assumption("m / 2K: neurons for each concept", network.width / (2 * prompts.concepts), ">= 1"),
        ]

    def checks(self, lab):
        reads = self._reads(lab, lab.size.times)
        end = reads[-1]
        yield self._semantics(lab, end)
        start = self.init_scale
        kept = [_furthest(_by_concept(lab, end[f"{name}_concepts"]) / start) for name in ("query", "key")]
        cells = ("a'W_Q a", "a'W_K a")
        yield agrees("concept component of attention over that of its start", kept, 1.0, cells=cells)
        learnt = [_by_concept(lab, end[f"output_{kind}"]).min(axis=1) for kind in ("concepts", "semantics")]
        least = self.output_scale / MUCH_LESS
        cells = ("<w_O, c>", "<w_O, d>")
        yield exceeds("component of the output layer", learnt, 0.0, least, cells=cells)
        errors = np.array([one["prompt_error"] for one in reads])  # (time, seed, law)
        (prompts,) = lab.size.prompts
        steps = [self._steps(time) for time in lab.size.times]
        ratios = [_second_over_first(steps, one, 0.5 / prompts) for one in errors[:, :, 0].T]
        yield bounded_by("steps from error 0.02 to 0.002 over steps from 0.2 to 0.02", ratios, 1.0)
        nobody = 2.0**-self.length
        yield bounded_by("error on prompts of the training law", errors[-1, :, 0], nobody)
        yield bounded_by("error on prompts of other laws", errors[-1, :, 1:].T, nobody, cells=LAWS[1:])

    def control(self, lab):
        (read,) = self._reads(lab, lab.size.times[-1:], alignment=0.0)
        return self._semantics(lab, read)

    def _semantics(self, lab, end):
        learnt = [_by_concept(lab, end[f"{name}_semantics"]).min(axis=1) for name in ("query", "key")]
        outvotes = math.sqrt(math.log(self.length - 1) / 2)
        cells = ("b'W_Q b", "b'W_K b")
        return exceeds("semantic component of attention", learnt, 0.0, outvotes, cells=cells)

    def _reads(self, lab, times, alignment=1.0):
        (prompts,) = lab.size.prompts
        made = {(alignment, time): self.experiment(time, alignment, int(prompts)) for time in times}
        return list(lab.several(made).values())

    def _steps(self, time: float) -> int:
        return round(time * self.concepts / (self.learning_rate * self.init_scale))

    def experiment(self, time: float, alignment: float = 1.0, count: int = 4000) -> Experiment:
        r"""Training up to $\eta \sigma_0 t / K$, from this alignment; read on so many prompts of each law."""
        prompts = ConceptPrompts(
            n=HELD_OUT, d=self.d, concepts=self.concepts, length=self.length, noise_scale=self.noise_scale
        )
        network = ConceptTransformer(
            width=self.width, init_scale=self.init_scale, output_scale=self.output_scale, alignment=alignment
        )
        return Experiment(
            data=Stream(data=prompts, size=self.batch),  # type: ignore  (n and d are no fields here)
            network=network,
            algorithm=GradientDescent(self.learning_rate),
            probes=[concept_components.on(at_end), prompt_errors(law=LAWS, count=count).on(at_end)],
            steps=self._steps(time),
        )


def _by_concept(lab, values) -> np.ndarray:
    """(seed, concept)."""
    return np.reshape(values, (len(lab.seeds), -1))


def _furthest(values: np.ndarray) -> np.ndarray:
    """Of each row, the value furthest from 1."""
    return np.take_along_axis(values, np.abs(values - 1).argmax(axis=1)[:, None], axis=1)[:, 0]


def _second_over_first(steps, errors, least: float) -> float:
    """How long the second factor of ten takes, in units of the first; NaN where a level is not passed."""
    first, second = np.diff([_passed(steps, errors, level, least) for level in LEVELS])
    return float(second / first) if first > 0 else math.nan


def _passed(steps, errors, level: float, least: float) -> float:
    """The step at which the error falls to a level; errors too small to be counted are `least`."""
    below = np.flatnonzero(np.asarray(errors) <= level)
    if not len(below) or below[0] == 0:
        return math.nan
    last = below[0]
    above, under = np.log(np.maximum(errors[last - 1 : last + 1], least))
    share = (above - math.log(level)) / (above - under)
    return float(steps[last - 1] + share * (steps[last] - steps[last - 1]))
