r"""Sign descent trains a transformer in four stages, fast, by memorising noise.

Li, Huang, Han, Zhou, Suzuki, Zhu and Chen (2025): two tokens, $y\mu$ with $\mu = e_1$ and sparse noise $\xi$
(`SparseSignalNoise` without feature noise is their law; which token comes first makes no difference), and a
softmax head under two classes of value neurons. A step changes each product with the noise of a sample by
$\eta\|\xi_i\|_1 \approx \eta s \sigma_p \sqrt{2/\pi}$ and each one with the signal by $\eta$, twice that in the
mean value $v$, whatever the size of the gradient. The products start at $\sigma_0\|\xi_i\|$ and $\sigma_0$, those
of $v$ at $\sqrt{2/m_v}$ times as much, so that their signs are decided one after the other:

* I, $T_1 \sim \sigma_0 / (\eta\sqrt{s m_v})$: the values' noise has the label's sign, then is linear in t;
* II, $T_2 \sim \sigma_0 / (\eta\sqrt s)$: queries and keys agree on the sign of each sample's noise;
* III, $T_3 \sim \sigma_0 / \eta$: the signal in queries and keys has the sign of the samples' majority vote;
* IV, $T_4 \sim 1 / (\eta s \sigma_p \sqrt{m_k})$: attention turns from the signal to noise, first that of the
  noise token, later, at $T_5$, that of the signal token.

The paper states orders of magnitude; the clocks and constants here are worked out from its update rules. $T_1$ to
$T_3$ are the first steps at which four signs in five are as they stay, $T_4$ and $T_5$ those at which attention on
the signal has fallen from one half to a quarter. What is judged:

* the order: each time is at most half of the next. $T_1$ to $T_3$ are read in runs of $2\sigma_0/\eta$ small
  steps, which lead that far, since the signal starts at $N(0, \sigma_0^2)$ and moves by $\eta$, and $T_4$ in runs
  of larger ones, too coarse for the first stages; times are $\eta t$;
* at $T_1$ keys have moved by less than half their start, and the values' noise has the same slope at the end,
  where the loss is small, as in the beginning;
* $T_2$ is proportional to $\sigma_0/\eta$, over a factor of four; so are $T_1$, of a handful of steps, too few
  for an exponent, and $T_3$, which scatters: with n not far below s a vote of 7 to 6 may change while the noise
  outgrows its start;
* attention decays exponentially, or faster: at the end it has been halved at least as often as at the pace of its
  first halving;
* fast training: the margin is at least $2\eta t\|\xi_i\|_1$ before attention helps, so that after $T = \log(1/
  \varepsilon) / (2\eta s\sigma_p\sqrt{2/\pi})$ steps the training loss is at most $\varepsilon$;
* test loss $\Theta(1)$: by then $\langle v, \mu \rangle = 2\eta T$, fresh noise has a random sign, and by
  convexity the test loss is at least $\log(1 + e^{-4\eta T})$ whatever the attention.

The theorem is about strong noise, $\|\xi\|^2 \gg n$, which gradient descent would memorise as well. That the signs
are to blame shows in a second setting, $\|\xi\|^2 < n$, where $s\sigma_p \gg 1$ still favours noise under signs:
the test loss of sign descent and of Adam has the same bound, and gradient descent learns the signal. Its values
on signal and noise grow as $1 : s\sigma_p^2/n$, so that at the training loss $\varepsilon$ its test loss is
$\varepsilon^{1/(1 + s\sigma_p^2/n)}$, or less where attention goes to the signal. $T_5$ is read there, for under
strong noise training is over before; so is Adam, at laptop size and above. The control is gradient descent under
the judgement of sign descent's test loss.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from featlab.algorithms import Adam, GradientDescent, SignDescent
from featlab.claims._claim import Assumption, Claim, Size
from featlab.claims._judge import agrees, bounded_by, exceeds, scales_as
from featlab.data import SparseSignalNoise
from featlab.experiment import Experiment
from featlab.fields import real, whole
from featlab.networks import TwoLayerTransformer
from featlab.probes import at_end, geometric, stage_times, stages, test_loss, train_loss, until

AT_MOST = 2000  # steps of Adam and of gradient descent; a run that needs more counts as not trained
TESTS = 2000  # inputs: test losses to a per cent
SMALLEST = 1e-30  # attention that float32 still tells from 0
DESCENT = "gradient descent"


class SignDescentStages(Claim):
    """The claim of this file."""

    title = "sign descent trains a transformer in four stages, fast, and its test loss stays of order one"
    statement = (
        r"T_1 \ll T_2 \ll T_3 \ll T_4; \qquad L_S(T) \le \varepsilon \ \text{ at } \ "
        r"T = O\left(\frac{\log(1/\varepsilon)}{\eta s \sigma_p}\right), \qquad L_D(T) = \Theta(1)"
    )
    refuted_if = (
        "the stages come in another order, the training loss is above epsilon at T, "
        "or the test loss falls below its constant"
    )
    reference = """@inproceedings{li2025optimization,
  title     = {On the Optimization and Generalization of Two-layer Transformers with Sign Gradient Descent},
  author    = {Li, Bingrui and Huang, Wei and Han, Andi and Zhou, Zhanpeng and Suzuki, Taiji and Zhu, Jun and Chen, Jianfei},
  booktitle = {International Conference on Learning Representations},
  year      = {2025}
}"""  # noqa: E501
    sizes = {
        "tiny": Size(seeds=3, d=(800,), spans=(1.0, 2.0), steps=(20,), adam=(0,)),
        "smoke": Size(seeds=4, d=(5400,), spans=(0.5, 1.0, 2.0), steps=(400,), adam=(0,)),
        "laptop": Size(seeds=16, d=(5400,), spans=(0.5, 1.0, 2.0), steps=(400,), adam=(1,)),
        "full": Size(seeds=32, d=(32_000,), spans=(0.25, 0.5, 1.0, 2.0), steps=(1600,), adam=(1,)),
    }
    number_of_checks = 8
    minutes = 2.0  # whole vectors: neither the data nor the algorithms commute with rotations
    control_changes = "gradient descent, judged as sign descent"

    n: int = whole(default=13, at_least=1)  # odd: no vote is a tie
    sparsity: int = whole(default=40, at_least=1)  # s
    noise_scale: float = real(default=6.0, above=0)  # sigma_p
    weak_noise: float = real(default=0.33, above=0)  # sigma_p in the second setting
    head: int = whole(default=32, at_least=1)  # m_k
    value_neurons: int = whole(default=16, at_least=1)  # m_v
    init_scale: float = real(default=6e-5, above=0)  # sigma_0
    loss: float = real(default=0.01, above=0, below=1)  # epsilon

    def experiment(self, algorithm, steps, d, noise, *, probes=()):
        """The theorem's network and data with any algorithm."""
        return Experiment(
            data=SparseSignalNoise(n=self.n, d=float(d), sparsity=self.sparsity, noise_scale=noise),
            network=TwoLayerTransformer(
                head=self.head, value_neurons=self.value_neurons, init_scale=self.init_scale
            ),
            algorithm=algorithm,
            probes=[train_loss.on(at_end), test_loss(count=TESTS).on(at_end), *probes],
            steps=steps,
        )

    def signs(self, time, steps, d, noise):
        r"""Sign descent until $\eta t$ is this time, with its stages."""
        probes = (stages.on(at_end), stage_times)
        return self.experiment(SignDescent(time / steps), steps, d, noise, probes=probes)

    def beside(self, name, steps, d):
        """Adam or gradient descent in the second setting, to the training loss epsilon."""
        # A value neuron's gradient has the factor 1 / m_v.
        adam, descent = Adam(self.time(self.weak_noise) / steps), GradientDescent(self.value_neurons / 4)
        to_loss = until(train_loss, self.loss, at_most=AT_MOST)
        return self.experiment(adam if name == "Adam" else descent, to_loss, d, self.weak_noise)

    def time(self, noise) -> float:
        r"""$\eta T$, by which the training loss is at most epsilon."""
        return math.log(1 / self.loss) / (2 * _pace(self.sparsity, noise))

    def typical(self):
        return self.signs(self.time(self.noise_scale), 400, 5400, self.noise_scale)

    def scene(self):
        one, moments = self.typical(), geometric(60)
        return dataclasses.replace(one, probes=tuple(p.on(moments) for p in (stages, train_loss)))

    def perturbed(self):
        more = {
            f"head {self.head} -> {self.head + 4}": dataclasses.replace(self, head=self.head + 4),
            f"n {self.n} -> {self.n - 2}": dataclasses.replace(self, n=self.n - 2),
        }
        return super().perturbed() | more

    def assumptions(self, experiment: Any) -> list[Assumption]:
        data, network, algorithm = experiment.data, experiment.network, experiment.algorithm
        s, scale = data.sparsity, data.noise_scale
        step = 2 * algorithm.learning_rate * _pace(s, scale) if isinstance(algorithm, SignDescent) else 0.0
        votes = math.sqrt(data.n / s) / scale if scale != self.weak_noise else 0.0
        return [
            Assumption("1 / (s sigma_p sqrt(2/pi)) (signs favour noise)", 1 / _pace(s, scale), "<< 1"),
            Assumption(
                "sqrt(n / s) / sigma_p, where votes are counted (they are the samples' own)", votes, "<< 1"
            ),
            Assumption("n s / d (supports are nearly disjoint)", data.n * s / data.d, "<< 1"),
            Assumption(
                "sigma_0 s sigma_p sqrt(m_k) (attention starts at one half)",
                network.init_scale * s * scale * math.sqrt(network.head),
                "<< 1",
            ),
            Assumption(
                "m_v / log n (the values settle before keys move)",
                network.value_neurons / math.log(data.n),
                ">= 1",
            ),
            Assumption("2 eta s sigma_p sqrt(2/pi) of sign descent (a step changes outputs little)", step, "<< 1"),
        ]

    def checks(self, lab):
        (d,), (steps,), spans = lab.size.d, lab.size.steps, lab.size.spans
        strong, weak = self.noise_scale, self.weak_noise
        others = ("Adam", DESCENT) if lab.size.adam[0] else (DESCENT,)
        beside = {name: self.beside(name, steps, d) for name in others}
        # One of each program first: where programs compile side by side, none is compiled twice.
        runs = lab.several(beside | {"weak": self.signs(self.time(weak), steps, d, weak)})
        early = {span: self.signs(span * self.init_scale, steps, d, strong) for span in spans}
        runs |= lab.several(early | {"late": self.signs(self.time(strong), steps, d, strong)})
        early_time, late_time = spans[-1] * self.init_scale, self.time(strong)
        sooner, later = runs[spans[-1]], runs["late"]

        yield _order(sooner, later, runs["weak"], early_time / late_time)
        yield bounded_by("how far keys have moved at T_1, over their start", sooner["key_movement"], 0.5)
        slopes = later["mean_value_noise"] / late_time, sooner["mean_value_noise"] / early_time
        yield agrees("slope of the values' noise, at the end over the beginning", slopes[0] / slopes[1], 1.0)
        times = np.array([_found(runs[span]["alignment_time"]) for span in reversed(spans)])
        yield scales_as(
            "exponent of T_2 in sigma_0 / eta", steps / np.array(spans[::-1]), times, 1.0, (0.0,),
            symbols=(r"\sigma_0 / \eta", "T_2"),
        )  # fmt: skip

        halved = {
            "of the noise token": _halvings(later, "noise") / steps,
            "of the noise token, weak noise": _halvings(runs["weak"], "noise") / steps,
            "of the signal token, weak noise": _halvings(runs["weak"], "signal") / steps,
        }
        name = "halvings of attention on the signal, over those at the pace of the first"
        yield exceeds(name, np.array(list(halved.values())), 0.0, by=1.0, cells=tuple(halved))

        yield bounded_by(
            "training loss at T over epsilon",
            np.array([run["train_loss"] / self.loss for run in (later, runs["weak"])]),
            1.0,
            cells=("strong noise", "weak noise"),
        )
        yield self._stays({"strong noise": later} | {name: runs[name] for name in ("weak", *others[:-1])})
        bound = self.loss ** (1 / (1 + self.sparsity * weak**2 / self.n))
        trained = float(runs[DESCENT]["trained"].mean())
        yield bounded_by(
            "test loss of gradient descent, weak noise", runs[DESCENT]["test_loss"], bound, trained=trained
        )

    def control(self, lab):
        """The signal is learnt, and attention goes to it."""
        (d,), (steps,) = lab.size.d, lab.size.steps
        return self._stays({DESCENT: lab.endings(self.beside(DESCENT, steps, d), remember=DESCENT)})

    def _stays(self, runs):
        """Test losses over the least that theory allows: in the second setting but for strong noise."""
        noise = {"strong noise": self.noise_scale}
        least = [math.log1p(math.exp(-4 * self.time(noise.get(name, self.weak_noise)))) for name in runs]
        losses = np.array([run["test_loss"] for run in runs.values()]) / np.array(least)[:, None]
        trained = min(float(run["trained"].mean()) for run in runs.values())
        name = "test loss over log(1 + exp(-4 eta T))"
        return exceeds(name, losses, 0.0, by=1.0, cells=tuple(runs), trained=trained)


def _order(sooner, later, weak, pace):
    """Each stage's time over the next one's; `pace` is a step of the sooner run over one of the later."""
    times = [pace * _found(sooner[f"{stage}_time"]) for stage in ("value", "alignment", "vote")]
    times.append(_found(later["noise_query_time"]))
    shares = [one / next_one for one, next_one in zip(times, times[1:])]
    shares.append(_found(weak["noise_query_time"]) / _found(weak["signal_query_time"]))
    cells = ("T_1 / T_2", "T_2 / T_3", "T_3 / T_4", "T_4 / T_5, weak noise")
    return bounded_by("each stage's time over the next one's", np.array(shares), 0.5, cells=cells)


def _halvings(run, token):
    """How often a token's attention on the signal was halved, over how often in a step at first."""
    halved = np.log2(0.5 / np.maximum(run[f"{token}_query"], SMALLEST))
    return halved * _found(run[f"{token}_query_time"])


def _found(times) -> np.ndarray:
    """Steps as numbers, NaN where it never happened."""
    return np.where(times < 0, np.nan, times).astype(float)


def _pace(sparsity, noise_scale) -> float:
    r"""What a step of size one adds to a product with noise: $s \sigma_p \sqrt{2/\pi}$."""
    return sparsity * noise_scale * math.sqrt(2 / math.pi)
