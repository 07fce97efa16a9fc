r"""Sign descent trains a transformer in four stages, fast, by memorising noise.

Li, Huang, Han, Zhou, Suzuki, Zhu and Chen (2025): two tokens, $y\mu$ with $\mu = e_1$ and sparse noise $\xi$,
under softmax attention and two classes of value neurons. Each product with noise moves by $\eta\|\xi_i\|_1$ a step
and each one with the signal by $\eta$, whatever the size of the gradient. So signs settle one after the other:

* I, $T_1 \sim \sigma_0 / (\eta\sqrt{s m_v})$: the values' noise has the label's sign, then is linear in t;
* II, $T_2 \sim \sigma_0 / (\eta\sqrt s)$: queries and keys agree on the sign of each sample's noise;
* III, $T_3 \sim \sigma_0 / \eta$: the signal in queries and keys has the sign of the samples' majority vote;
* IV, $T_4 \sim 1 / (\eta s \sigma_p \sqrt{m_k})$: attention turns from the signal to noise, first that of the
  noise token, later, at $T_5$, that of the signal token.

The paper states orders of magnitude; clocks and constants are worked out from its update rules. $T_1$ to $T_3$ are
the first steps at which four signs in five are as they stay, $T_4$ and $T_5$ those at which attention on the
signal has fallen from one half to a quarter. Runs last for a time that theory gives, and no loss is required of
them: it is judged.

The theorem is about strong noise, $\|\xi\|^2 \gg n$, which gradient descent would memorise as well. A second
setting, $\|\xi\|^2 < n$ while $s\sigma_p \gg 1$, lies outside it and shows that the signs are to blame: sign
descent and Adam fit the noise all the same, and gradient descent, the control, learns the signal. The votes of
stage III are not the samples' own there, so stages I to III are read with strong noise only.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from featlab.claims import Size, at_least, at_most, equals, not_judged, scales_as, to
from featlab.claims.settings.sign_descent import (
    SignDescentSetting,
    descent_test_loss,
    least_test_loss,
    time_to_loss,
)
from featlab.probes import geometric, stages, train_loss

SMALLEST = 1e-30  # attention that float32 still tells from 0
DESCENT = "gradient descent"
SPANS, HEADS = (0.5, 1, 2), (16, 32, 64)
STAYS = "test loss over log(1 + exp(-4 eta T))"


class SignDescentStages(SignDescentSetting):
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
    sizes = {  # spans: how long runs of the first stages last, in units of sigma_0 / eta
        "tiny": Size(seeds=3, d=800, spans=(1.0, 2.0), steps=20, s=(20, 40), heads=(16, 32), adam=False),
        "smoke": Size(seeds=4, d=6600, spans=SPANS, steps=400, s=(10, 20, 40), heads=HEADS, adam=False),
        "laptop": Size(seeds=24, d=6600, spans=SPANS, steps=400, s=(10, 20, 40), heads=HEADS, adam=True),
        "full": Size(seeds=32, d=32_000, spans=SPANS, steps=1600, s=(10, 20, 40, 80), heads=HEADS, adam=True),
    }
    minutes = 4.0  # whole vectors: neither the data nor the algorithms commute with rotations
    control_changes = "gradient descent, judged as sign descent"

    clauses = {
        "T_1 << T_2 << T_3 << T_4": "each stage's time over the next one's",
        "stage I: values settle before keys move, then grow linearly": ("how far keys*", "slope of the values'*"),
        "stage II: T_2 is proportional to sigma_0 / eta": "exponent of T_2*",
        "stage IV: T_4 is proportional to 1 / s and to m_k^(-1/2)": "exponent of T_4*",
        "stage IV: attention on the signal decays exponentially": "halvings of attention*",
        "L_S <= epsilon at T": "training loss at T over epsilon",
        "L_D = Theta(1) at T, for Adam as for sign descent": "test loss over log*",
        "gradient descent generalises where signs do not": "test loss of gradient descent, weak noise",
        "T_1 is proportional to sigma_0 / (eta sqrt(s m_v))": not_judged(
            "T_1 is a handful of steps: too few for an exponent"
        ),
        "T_2 is proportional to s^(-1/2)": not_judged(
            "its exponent scatters by 0.18 between seeds from s = 10 to 40: 200 seeds would decide"
        ),
        "T_3 is proportional to sigma_0 / eta": not_judged("it scatters: votes near a tie change on the way"),
        "T_4 is proportional to 1 / (eta sigma_p)": not_judged(
            "eta and sigma_p enter as s does, through the length |xi|_1 that a step adds"
        ),
    }
    exploratory = "steps for the exponents of T_4 were made finer after a first run"
    perturb = {"init_scale": 0.5, "head": to(36), "n": to(13)}

    def typical(self):
        return self.signs(self.time(self.noise_scale), 400, 6600, self.noise_scale)

    def scene(self):
        return dataclasses.replace(self.typical(), probes=[p.on(geometric(60)) for p in (stages, train_loss)])

    def checks(self, lab):
        steps, d, strong, weak = lab.size.steps, lab.size.d, self.noise_scale, self.weak_noise
        # Small steps for the first stages, which end before the longest run does: larger ones are too coarse.
        ratios = sorted(steps / span for span in lab.size.spans)
        early = lab.run(self.first_stages, ratio=ratios, steps=steps, d=d)
        first = early.sel(ratio=ratios[0])
        last = lab.run(self.signs, time=self.time(strong), steps=steps, d=d, noise=strong)
        beside = lab.run(self.signs, time=self.time(weak), steps=steps, d=d, noise=weak)
        finer = (self.init_scale / ratios[0]) / (self.time(strong) / steps)  # a step of `first` over one of `last`

        shares = {
            "T_1 / T_2": first.value_time / first.alignment_time,
            "T_2 / T_3": first.alignment_time / first.vote_time,
            "T_3 / T_4": finer * first.vote_time / last.noise_query_time,
            "T_4 / T_5, weak noise": beside.noise_query_time / beside.signal_query_time,
        }
        yield at_most("each stage's time over the next one's", shares, 0.5)
        yield at_most("how far keys have moved at T_1, over their start", first.key_movement, 0.5)
        slopes = finer * last.mean_value_noise / first.mean_value_noise
        yield equals("slope of the values' noise, at the end over the beginning", slopes, 1.0)
        name, symbols = "exponent of T_2 in sigma_0 / eta", (r"\sigma_0 / \eta", "T_2")
        yield scales_as(name, early.alignment_time, "ratio", 1.0, rivals=(0.0,), symbols=symbols)
        # A quarter of the time, in as many steps: attention of the noise token turns early.
        soon = self.time(strong) / 4
        heads = lab.run(self.signs, time=soon, steps=steps, d=d, noise=strong, head=lab.size.heads)
        yield scales_as("exponent of T_4 in m_k", heads.noise_query_time, "head", -0.5, rivals=(0.0, -1.0))
        soon = time_to_loss(self.loss, min(lab.size.s), strong) / 4  # steps of one size
        sparse = lab.run(self.signs, time=soon, steps=steps, d=d, noise=strong, s=lab.size.s)
        yield scales_as("exponent of T_4 in s", sparse.noise_query_time, "s", -1.0, rivals=(0.0, -0.5))
        halved = {  # exponentially or faster
            "of the noise token": _halvings(last.noise_query, last.noise_query_time / steps),
            "of the noise token, weak noise": _halvings(beside.noise_query, beside.noise_query_time / steps),
            "of the signal token, weak noise": _halvings(beside.signal_query, beside.signal_query_time / steps),
        }
        yield at_least("halvings of attention on the signal, over those at the pace of the first", halved, 1.0)

        losses = {"strong noise": last.train_loss / self.loss, "weak noise": beside.train_loss / self.loss}
        yield at_most("training loss at T over epsilon", losses, 1.0)
        stays = {"strong noise": self._over_least(last, strong), "weak noise": self._over_least(beside, weak)}
        if lab.size.adam:
            adam = lab.run(self.beside, name="Adam", steps=steps, d=d)
            stays["Adam, weak noise"] = self._over_least(adam, weak)
        yield at_least(STAYS, stays, 1.0)
        descent = lab.run(self.beside, name=DESCENT, steps=steps, d=d)
        bound = descent_test_loss(self.loss, self.sparsity, weak, self.n)
        yield at_most("test loss of gradient descent, weak noise", descent.test_loss, bound)

    def control(self, lab):
        """The signal is learnt, and attention goes to it."""
        descent = lab.run(self.beside, name=DESCENT, steps=lab.size.steps, d=lab.size.d)
        return at_least(STAYS, self._over_least(descent, self.weak_noise), 1.0)

    def _over_least(self, runs, noise):
        return runs.test_loss / least_test_loss(self.time(noise))


def _halvings(attention, first):
    """How often attention on the signal was halved, over how often it would be at the pace of the first time."""
    return np.log2(0.5 / np.maximum(attention, SMALLEST)) * first
