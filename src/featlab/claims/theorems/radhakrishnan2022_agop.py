r"""Kernel machines and networks learn features through the average gradient outer product.

Radhakrishnan, Beaglehole, Pandit and Belkin (2022). $\mathrm{AGOP}(f) = \frac1n \sum_i \nabla f(x_i) \nabla
f(x_i)^\top$ says along which directions $f$ changes. A recursive feature machine is kernel ridge regression with
the kernel $\exp(-\|x - z\|_M / L)$ whose metric $M$ becomes the AGOP of its own function, again and again. The
neural feature ansatz is that first layers of trained networks do likewise: $W^\top W \propto
\mathrm{AGOP}^{1/2}$ with both layers trained from a small, balanced start. Under a fixed head linear networks have
$W^\top W \propto \mathrm{AGOP}$ (algebra, see `docs/agop.md`); ReLU networks have not.

Labels are $y = g(z_1, z_2)$ of two of the $d$ coordinates of $x \sim N(0, I)$. A product $z_1 z_2$ shows in
kernel regression once $n$ is of the order of $d^2$, the number of such products, and the first metric has to be
learnt from that. The AGOP of $z_1 z_2$ has two equal eigenvalues, so all its powers agree. The power, the s with
the largest cosine of $W^\top W$ with $\mathrm{AGOP}^s$, is therefore judged on $2 (z_1^2 - 1) + z_2^2 - 1$, whose
eigenvalues are as 4 to 1, and under a fixed head also on $z_1 + z_1 z_2$. It is to be nearer to 1/2 than to 1;
its interval says more. Cosines are taken of matrices
less their traces' share of $I$: otherwise an untrained network has a cosine of about 0.8 already.

The network is $\sum_{r \leq N} a_r\, \mathrm{ReLU}(\langle w_r, x \rangle)$, and a start is small and balanced
if $a_r \sim N(0, \sigma_0^2)$ and $w_r \sim N(0, \sigma_0^2 I/d)$. It is written as $N^{-p} \sum_r a_r
\mathrm{ReLU}(\langle w_r, x \rangle)$ with weights larger by $1/\sigma_0$, $\sigma_0^2 = N^{-p}$, and steps
larger by $1/\sigma_0^2$, which is the same. Steps are $\eta/(1 + N\sigma_0^2)$, for a large start has a large
kernel. Under the fixed head $a_r \sim N(0, 1/N)$, and steps are $4\eta$, since that kernel hardly grows.

The control, on the target that tells powers apart, begins with $\sigma_0 = 1$, from where both layers reach the
same loss lazily.
"""

from __future__ import annotations

import math
from typing import Any

from featlab.algorithms import GradientDescent, RecursiveFeatureMachine
from featlab.claims import Assumption, Claim, Size, at_least, at_most, not_judged
from featlab.core.validation import real, whole
from featlab.data import MultiIndex, product, sine_and_square, two_squares, two_stairs
from featlab.experiment import Experiment
from featlab.networks import KernelMachine, TwoLayer, relu
from featlab.objectives import squared
from featlab.probes import agop_subspace, at_end, feature_ansatz, test_loss, train_loss, until

LINKS = {link.__name__: link for link in (product, two_stairs, sine_and_square, two_squares)}
VARIANCES = {"product": 1.0, "two_stairs": 2.0, "sine_and_square": 2 + (1 - math.exp(-2)) / 2, "two_squares": 1.0}
MACHINES = ("product", "two_stairs", "sine_and_square")  # targets of kernel machines
ALIGNED = 0.9  # asked of cosines and of the share in a subspace; the paper states such numbers for data sets
GAIN = 0.3  # of the error of kernel ridge regression; not from the paper either
LEARNT = 5  # metrics
FITTED = 0.05  # of the loss of f = 0, at which a network stops
LARGE = 1.0  # sigma_0 of the control
NEARER = 0.75  # between the powers 1/2 and 1


class AverageGradientOuterProduct(Claim):
    """The claim of this file."""

    title = "metrics learnt from a function's own gradients find the directions of the labels, as first layers do"
    statement = (
        r"\mathrm{AGOP}(f) = \frac1n \sum_{i} \nabla f(x_i) \nabla f(x_i)^\top: \qquad M_{t+1} = "
        r"\mathrm{AGOP}(f_{M_t}) \to U^\top S\, U \text{ for } y = g(Ux), \qquad W^\top W \propto "
        r"\mathrm{AGOP}(f)^{1/2}; \quad \text{with a fixed head } W^\top W \sim \mathrm{AGOP}(f)^s, \ s < \tfrac34"
    )
    refuted_if = (
        "after five metrics a tenth of the two top eigenvectors lies outside the true plane or the error is above "
        "0.3 of that of kernel ridge regression, or a first layer has a cosine below 0.9 with the root of AGOP, "
        "a larger one with AGOP itself, or is closest to a power of it that is nearer to 1 than to 1/2"
    )
    reference = """@article{radhakrishnan2024mechanism,
  title   = {Mechanism for Feature Learning in Neural Networks and Backpropagation-Free Machine Learning Models},
  author  = {Radhakrishnan, Adityanarayanan and Beaglehole, Daniel and Pandit, Parthe and Belkin, Mikhail},
  journal = {Science},
  volume  = {383},
  number  = {6690},
  pages   = {1461--1467},
  year    = {2024}
}"""
    sizes = {
        "tiny": Size(seeds=3, targets=("product",), steps=4000, count=100),
        "smoke": Size(seeds=6, targets=("product",), steps=4000, count=1000),
        "laptop": Size(seeds=24, targets=MACHINES, steps=4000, count=2000),
        "full": Size(seeds=48, targets=MACHINES, steps=8000, count=10_000),
    }
    minutes = 2.0
    control_changes = "both layers begin large, at sigma_0 = 1"
    exploratory = (
        "The targets, width and steps of the ansatz and n >= d^2 were chosen after looking at other seeds, and "
        "the checks of the power were added after the others had been decided, with a bound between 1/2 and 1."
    )
    clauses = {
        "metrics of a recursive feature machine find the plane of the labels": "two top eigenvectors*",
        "it errs less than the kernel machine it began with": "test error over*",
        "W'W ~ AGOP^(1/2) with both layers trained": "cosine of W'W with the root of AGOP*",
        "the power is 1/2 and not 1": ("cosine of W'W with the root of AGOP less*", "power of AGOP, both*"),
        "with a fixed head the power is 1": not_judged(
            "so for linear networks, by algebra; for ReLU networks not: the next clause"
        ),
        "with a fixed head ReLU networks have a power nearer to 1/2 (measured)": "power of AGOP, fixed head",
        "with a fixed head AGOP fits z1 z2, of which all powers are alike": "cosine of W'W with AGOP, fixed head*",
        "the ansatz for every target": not_judged("seen not to hold for z1 + z1 z2, where no power of AGOP fits"),
        "deep networks and data sets": not_judged("two layers and Gaussian inputs are run"),
    }
    perturb = {"width": 2, "learning_rate": 0.5, "bandwidth": 0.5, "penalty": 10, "init_scale": 0.5}

    n: int = whole(default=400, at_least=2)
    d: float = real(default=20.0, at_least=2)
    bandwidth: float = real(default=10.0, above=0)  # L
    penalty: float = real(default=1e-3, above=0)  # lambda
    width: int = whole(default=100, at_least=2)  # N
    init_scale: float = real(default=0.01, above=0)  # sigma_0
    learning_rate: float = real(default=0.25, above=0)  # eta

    def typical(self):
        return self.machine("product")

    def assumptions(self, experiment: Any):
        samples = experiment.data.n / experiment.data.d**2
        network, small = experiment.network, 0.0
        if isinstance(network, TwoLayer):
            small = network.output_scale**0.5 if network.train_head else network.init_scale
        return [
            Assumption("n / d^2: products of two coordinates can be seen", samples, ">= 1"),
            Assumption("sigma_0: networks begin small", small, "<< 1"),
        ]

    # Kernel machines are solved, not trained; networks train until they fit.
    def checks(self, lab):
        size = lab.size
        machines = lab.run(self.machine, target=size.targets, learnt=[0, LEARNT], count=size.count)
        before, after = (machines.sel(learnt=learnt) for learnt in (0, LEARNT))
        yield at_least("two top eigenvectors in the true plane", after.agop_overlap, ALIGNED)
        gain = after.test_loss / before.test_loss
        yield at_most("test error over that of kernel ridge regression", gain, GAIN)
        told = lab.run(self.network(size.steps, target="two_squares"))
        yield self._root({"z1 z2": lab.run(self.network(size.steps)), "two squares": told})
        name = "cosine of W'W with the root of AGOP less that with AGOP, both layers trained"
        yield at_least(name, told.feature_root_cosine - told.feature_cosine, 0.0)
        yield at_most("power of AGOP, both layers trained", told.feature_power, NEARER)
        fixed = lab.run(self.network, steps=size.steps, fixed_head=True, target=["two_squares", "two_stairs"])
        yield at_most("power of AGOP, fixed head", fixed.feature_power, NEARER)
        alike = lab.run(self.network(size.steps, fixed_head=True))
        yield at_least("cosine of W'W with AGOP, fixed head, z1 z2", alike.feature_cosine, ALIGNED)

    def control(self, lab):
        large = lab.run(self.network(lab.size.steps, init_scale=LARGE, target="two_squares"))
        return self._root({"two squares": large})

    def _root(self, runs):
        name = "cosine of W'W with the root of AGOP, both layers trained"
        return at_least(name, {target: one.feature_root_cosine for target, one in runs.items()}, ALIGNED)

    def machine(self, target: str, learnt: int = LEARNT, count: int = 2000) -> Experiment:
        """A recursive feature machine that has learnt its metric this many times."""
        return Experiment(
            data=MultiIndex(n=self.n, d=self.d, link=LINKS[target]),
            network=KernelMachine(self.bandwidth),
            algorithm=RecursiveFeatureMachine(self.penalty),
            objective=squared,
            probes=[test_loss(count=count).on(at_end), agop_subspace.on(at_end)],
            steps=1 + learnt,  # the first one is kernel ridge regression
            precision=64,
        )

    def network(
        self, steps: int, *, fixed_head: bool = False, init_scale: float | None = None, target: str = "product"
    ) -> Experiment:
        """A network of two layers, trained until it fits, for no more than these steps."""
        scale = self.init_scale if init_scale is None else init_scale
        if fixed_head:
            power, first, rate = 0.5, scale, 4 * self.learning_rate
        else:
            power, first = -2 * math.log(scale) / math.log(self.width), 1.0
            rate = self.learning_rate / (scale**2 * (1 + self.width * scale**2))
        return Experiment(
            data=MultiIndex(n=self.n, d=self.d, link=LINKS[target]),
            network=TwoLayer(
                width=self.width,
                activation=relu,
                power=power,
                init_scale=first,
                centred=True,
                train_head=not fixed_head,
            ),  # fmt: skip
            algorithm=GradientDescent(rate),
            objective=squared,
            probes=[feature_ansatz.on(at_end)],
            steps=until(train_loss, FITTED * VARIANCES[target] / 2, at_most=steps),
        )
