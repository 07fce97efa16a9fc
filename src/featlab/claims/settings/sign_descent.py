r"""Sign descent on a transformer and sparse noise: the setting of Li et al. (2025), and what happens to products.

The formulas are derived from their update rules.
Times are $\eta t$: a step of size $\eta$ moves each product with the noise of a sample by $\eta\|\xi_i\|_1$, and
the mean value's product with the signal by $2\eta$, whatever the size of the gradient.
"""

from __future__ import annotations

import math
from typing import Any

from featlab.algorithms import Adam, GradientDescent, SignDescent
from featlab.claims import Assumption, Claim
from featlab.core.validation import real, whole
from featlab.data import SparseSignalNoise
from featlab.experiment import Experiment
from featlab.networks import TwoLayerTransformer
from featlab.probes import at_end, stage_times, stages, test_loss, train_loss, until

AT_MOST = 2000  # steps of Adam and of gradient descent; a run that needs more counts as not trained
TESTS = 2000  # inputs: test losses to a per cent


def noise_pace(sparsity: float, noise_scale: float) -> float:
    r"""What a step of size one adds to a product with noise: $\|\xi\|_1 \approx s \sigma_p \sqrt{2/\pi}$."""
    return sparsity * noise_scale * math.sqrt(2 / math.pi)


def time_to_loss(loss: float, sparsity: float, noise_scale: float) -> float:
    r"""$\eta T$ after which the loss is at most this: before attention helps, margins are $2\eta t\|\xi_i\|_1$."""
    return math.log(1 / loss) / (2 * noise_pace(sparsity, noise_scale))


def least_test_loss(time: float) -> float:
    r"""The least test loss at $\eta t$: $\log(1 + e^{-4\eta t})$.

    By then $\langle v, \mu \rangle = 2\eta t$, and fresh noise has a random sign: whatever the attention, by
    convexity the test loss is no less than that of the signal alone.
    """
    return math.log1p(math.exp(-4 * time))


def descent_test_loss(loss: float, sparsity: float, noise_scale: float, n: int) -> float:
    r"""The test loss of gradient descent at a training loss $\varepsilon$, $\varepsilon^{1/(1 + s\sigma_p^2/n)}$.

    Its values on signal and noise grow as $1 : s\sigma_p^2/n$. It is less where attention goes to the signal.
    """
    return loss ** (1 / (1 + sparsity * noise_scale**2 / n))


class SignDescentSetting(Claim):
    """Knobs, experiments and conditions of the claim on sign descent."""

    n: int = whole(default=11, at_least=1)  # odd: no vote is a tie; nine of them are four in five
    sparsity: int = whole(default=40, at_least=1)  # s
    noise_scale: float = real(default=12.0, above=0)  # sigma_p
    weak_noise: float = real(default=0.4, above=0)  # sigma_p in the second setting
    head: int = whole(default=32, at_least=1)  # m_k
    value_neurons: int = whole(default=16, at_least=1)  # m_v
    init_scale: float = real(default=2e-5, above=0)  # sigma_0
    loss: float = real(default=0.01, above=0, below=1)  # epsilon

    def experiment(self, algorithm, steps, d, noise, *, s=None, head=None, probes=()):
        """The theorem's network and data with any algorithm."""
        s, head = self.sparsity if s is None else s, self.head if head is None else head
        return Experiment(
            data=SparseSignalNoise(n=self.n, d=float(d), sparsity=s, noise_scale=noise),
            network=TwoLayerTransformer(head=head, value_neurons=self.value_neurons, init_scale=self.init_scale),
            algorithm=algorithm,
            probes=[train_loss.on(at_end), test_loss(count=TESTS).on(at_end), *probes],
            steps=steps,
        )

    def signs(self, time, steps, d, noise, **cells):
        r"""Sign descent until $\eta t$ is this time, with its stages."""
        probes = (stages.on(at_end), stage_times)
        return self.experiment(SignDescent(time / steps), steps, d, noise, probes=probes, **cells)

    def first_stages(self, ratio, steps, d, **cells):
        r"""Sign descent for a number of steps, of a size such that $\sigma_0 / \eta$ is the ratio."""
        return self.signs(self.init_scale * steps / ratio, steps, d, self.noise_scale, **cells)

    def beside(self, name, steps, d):
        """Adam or gradient descent in the second setting, to the training loss epsilon."""
        # A value neuron's gradient has the factor 1 / m_v.
        adam, descent = Adam(self.time(self.weak_noise) / steps), GradientDescent(self.value_neurons / 4)
        to_loss = until(train_loss, self.loss, at_most=AT_MOST)
        return self.experiment(adam if name == "Adam" else descent, to_loss, d, self.weak_noise)

    def time(self, noise) -> float:
        r"""$\eta T$, by which the training loss is at most epsilon."""
        return time_to_loss(self.loss, self.sparsity, noise)

    def assumptions(self, experiment: Any) -> list[Assumption]:
        data, network, algorithm = experiment.data, experiment.network, experiment.algorithm
        s, scale = data.sparsity, data.noise_scale
        pace = noise_pace(s, scale)
        scores = network.init_scale * s * scale * math.sqrt(network.head)
        settled = network.value_neurons / math.log(data.n)
        found = [
            Assumption("1 / (s sigma_p sqrt(2/pi)) (signs favour noise)", 1 / pace, "<< 1"),
            Assumption("n s / d (supports are nearly disjoint)", data.n * s / data.d, "<< 1"),
            Assumption("sigma_0 s sigma_p sqrt(m_k) (attention starts at one half)", scores, "<< 1"),
            Assumption("m_v / log n (the values settle before keys move)", settled, ">= 1"),
        ]
        if isinstance(algorithm, SignDescent):
            step = 2 * algorithm.learning_rate * pace
            found.append(Assumption("2 eta s sigma_p sqrt(2/pi) (a step changes outputs little)", step, "<< 1"))
        if scale != self.weak_noise:  # in the second setting no vote is judged, and this does not hold
            votes = math.sqrt(data.n / s) / scale
            found.append(Assumption("strong noise: sqrt(n / s) / sigma_p (votes are the samples')", votes, "<< 1"))
        return found
