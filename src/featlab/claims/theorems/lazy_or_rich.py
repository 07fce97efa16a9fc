r"""Wide networks are lazy in one scaling and rich in the other: how far weights and kernel move, as the width
grows.

Jacot, Gabriel and Hongler (2018), Chizat, Oyallon and Bach (2019), Mei, Montanari and Nguyen (2018). The
network $N^{-p} \sum_r a_r \sigma(\langle w_r, x \rangle)$ is trained to the same loss at every width, with a
step proportional to $N^{2p - 1}$, so that its output moves at the same pace. At $p = \frac12$ a neuron moves
by $O(N^{-1/2})$ of its length and the tangent kernel by $O(N^{-1})$ (the first order has as many heads of one
sign as of the other), so training is that of the kernel at the start. At $p = 1$ both move by $\Theta(1)$, and
features are learnt. In between, a neuron moves by $N^{p - 1}$: the control judges $p = \frac34$ by the law of
$p = \frac12$.

Training stops within one step of the loss, so steps must be many: with three or four, as many at one width as at
another by chance alone, the movement jumps by a third.
"""

from __future__ import annotations

import jax.numpy as jnp

from featlab.algorithms import GradientDescent
from featlab.claims import Assumption, Claim, Size, not_judged, scales_as
from featlab.core.validation import real, whole
from featlab.data import SingleIndex
from featlab.experiment import Experiment
from featlab.networks import TwoLayer
from featlab.objectives import squared
from featlab.probes import at_end, movement, tangent_kernel, train_loss, until

LAZY, BETWEEN, RICH = 0.5, 0.75, 1.0  # p
SYMBOLS = {"weight_movement": r"\|\Delta w\|/\|w\|", "kernel_movement": r"\|\Delta K\|/\|K\|"}


class LazyOrRich(Claim):
    """The claim of this file."""

    title = "weights of wide networks stay where they are under 1/sqrt N, and move under 1/N"
    statement = (
        r"f = N^{-p} \sum_r a_r \sigma(\langle w_r, x \rangle): \quad \frac{\|w_r - w_r^{(0)}\|}{\|w_r^{(0)}\|} = "
        r"\Theta(N^{-1/2}) \text{ for } p = \tfrac12, \quad \Theta(1) \text{ for } p = 1"
    )
    refuted_if = "an exponent of the movement in the width differs from the theory's by more than the margin"
    reference = """@inproceedings{chizat2019lazy,
  title     = {On Lazy Training in Differentiable Programming},
  author    = {Chizat, Lenaic and Oyallon, Edouard and Bach, Francis},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2019}
}"""
    sizes = {
        "tiny": Size(seeds=3, width=(8, 16, 32)),
        "smoke": Size(seeds=6, width=(512, 1024, 2048)),
        "laptop": Size(seeds=40, width=(512, 1024, 2048, 4096)),
        "full": Size(seeds=40, width=(1024, 4096, 16_384, 65_536)),
    }
    minutes = 2.0
    control_changes = "the output is scaled by N^-0.75 instead of N^-0.5"

    clauses = {
        "under 1/sqrt N a neuron moves by N^(-1/2) of its length": "exponent of the weight movement*p = 0.5",
        "under 1/sqrt N the tangent kernel moves by 1/N": "exponent of the kernel movement*p = 0.5",
        "under 1/N neurons move at every width": "exponent of the weight movement*p = 1",
        "under 1/N the kernel moves at every width": "exponent of the kernel movement*p = 1",
        "under 1/sqrt N the function is that of kernel regression": not_judged(
            "how far the kernel moves is measured; the trained function is not compared with that of the kernel"
        ),
        "under 1/N training follows a limit of infinite width": not_judged(
            "the limit itself is not computed here"
        ),
    }

    exploratory = (
        "The step was made ten times smaller after training was seen to stop at the third or fourth step, which "
        "scattered the exponents."
    )

    n: int = whole(default=40, at_least=2)
    d: float = real(default=20.0, at_least=2)
    learning_rate: float = real(default=0.05, above=0)  # eta / N^(2p - 1): 30 steps and more
    init_scale: float = real(default=1.0, above=0)  # s, of the first layer's start
    loss: float = real(default=0.05, above=0)  # at which training stops

    def typical(self):
        return self.experiment(1024, LAZY)

    def assumptions(self, experiment):
        return [Assumption("n / N: the network is wide", experiment.data.n / experiment.network.vectors(), "<< 1")]

    def checks(self, lab):
        runs = lab.run(self.experiment, width=lab.size.width, power=[LAZY, RICH])
        lazy, rich = runs.sel(power=LAZY), runs.sel(power=RICH)
        yield self._law(lazy, "weight_movement", LAZY, -0.5, rivals=(0.0, -1.0))
        yield self._law(lazy, "kernel_movement", LAZY, -1.0, rivals=(0.0, -0.5))
        yield self._law(rich, "weight_movement", RICH, 0.0, rivals=(-0.5,))
        yield self._law(rich, "kernel_movement", RICH, 0.0, rivals=(-0.5, -1.0))

    def control(self, lab):
        between = lab.run(self.experiment, width=lab.size.width, power=BETWEEN)
        return self._law(between, "weight_movement", LAZY, -0.5, rivals=(0.0, -1.0))

    def _law(self, runs, variable, power, exponent, rivals):
        name = f"exponent of the {variable.replace('_', ' ')} in the width, p = {power:g}"
        return scales_as(name, runs[variable], "width", exponent, rivals, symbols=("N", SYMBOLS[variable]))

    def experiment(self, width, power):
        """Training to the same loss at every width."""
        return Experiment(
            data=SingleIndex(n=self.n, d=self.d, link=jnp.tanh),
            network=TwoLayer(
                width=width, activation=jnp.tanh, power=power, init_scale=self.init_scale, centred=True
            ),
            algorithm=GradientDescent(self.learning_rate * width ** (2 * power - 1)),
            objective=squared,
            probes=[movement.on(at_end), tangent_kernel.on(at_end)],
            steps=until(train_loss, self.loss, at_most=2000),
        )
