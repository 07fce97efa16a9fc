r"""A transformer of one nonlinear layer and linear attention learns the features that its tasks share.

Kim and Suzuki (2024), the experiment: $d = 20$, $k = 5$ true features, 500 sigmoid neurons, three models.
*Attention* trains particles and $\Gamma$ together, *static* the particles under the best $\Gamma$, *modified* is
static with birth and death of particles and a random perturbation. The paper reports that all reach the global
minimum, and that what they learnt also serves where the student has fewer features than the truth, $k = 5$ of 7,
and for tasks that are not linear in the features: the largest of them, and $\|f^\circ\|^2$.

Here every model is trained by Adam on fresh inputs, in the limit of long prompts and many tasks, and judged on
others by $\mathcal{L}(\mu)$ over $k_{\mathrm{true}} r^\circ / 2$, the share of the features' variance that is
missed. The teacher has 30 neurons of the same law as the student's start; the paper's is not known in detail.

* Global convergence is judged as two per cent of the variance missed at most: a tenth of what one missing feature
  costs.
* With 7 true features and a student of 5 the least possible share is 2/7, to be met within 5 %.
* "Serves for other tasks" is judged by what it must mean at least: with trained features attention errs no more
  than with those of the start, for either task, in both cases. The error is over $\mathbb{E}\, g^2$, the readout
  having no intercept.

The control judges the student with too few features as if it had enough.

The theorem is about the best $\Gamma$, and static and modified do as it says. Attention does in most runs; some,
two of 12 at laptop size, stay on the plateau of one missing feature, a fifth of the variance, after four times as
many steps too. So the average over seeds is undecided.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from featlab.algorithms import Adam, BirthDeath
from featlab.claims._claim import Assumption, Claim, Size
from featlab.claims._judge import agrees, bounded_by
from featlab.claims._picture import MOMENTS
from featlab.claims.kim2024_strict_saddle import StrictSaddle
from featlab.data import FeatureTasks, Stream
from featlab.experiment import Experiment
from featlab.fields import real, whole
from featlab.networks import MeanFieldFeatures
from featlab.objectives import InContextRisk
from featlab.probes import at_end, feature_residual, geometric, in_context_loss, nonlinear_tasks, train_loss

STUDENT, TOO_MANY = 5, 7  # k of the student, and true features of which it has too few
MODELS = ("attention", "static", "modified")
MISSED = 0.02  # share of the variance: a tenth of one feature in five
REPLACED, PUSHED = 1e-3, 0.1  # of the modified model: births a step and particle, size of the random field
EVERY = 110  # steps between pushes by the field: no run ends with one
TASKS = ("max", "squared norm")
HELD_OUT, TESTS = 4000, 10_000  # inputs that no step sees: the stream's own, and those of tests


class InContextLearning(Claim):
    """The claim of this file."""

    title = "mean-field networks under linear attention learn the features that tasks share"
    statement = (
        r"h_\mu = \tfrac1N \sum_r a_r \sigma(\langle w_r, x \rangle) \in \mathbb{R}^k: \quad "
        r"\mathcal{L}(\mu_t) \to 0 \ \text{for} \ k_{\mathrm{true}} = k, \qquad "
        r"\mathcal{L}(\mu_t) \to \left(1 - \tfrac{k}{k_{\mathrm{true}}}\right) "
        r"\tfrac{k_{\mathrm{true}} r^\circ}{2} \ \text{for} \ k_{\mathrm{true}} > k"
    )
    refuted_if = (
        "a model ends with more than 2 % of the variance missed, or more than 5 % from 2/7 where two of seven "
        "features are too many, or errs more than before training on a task that is not linear"
    )
    reference = StrictSaddle.reference
    sizes = {
        "tiny": Size(seeds=3, neurons=(20,), batch=(32,), steps=(20,)),
        "smoke": Size(seeds=4, neurons=(300,), batch=(256,), steps=(300,)),
        "laptop": Size(seeds=12, neurons=(500,), batch=(512,), steps=(600,)),
        "full": Size(seeds=24, neurons=(500,), batch=(1000,), steps=(3000,)),
    }
    number_of_checks = 8
    minutes = 3.0
    control_changes = "the truth has two features more than the student"

    d: float = real(default=20.0, at_least=2)
    learning_rate: float = real(default=0.02, above=0)  # eta, of Adam
    init_scale: float = real(default=2.0, above=0)  # of the student's first layer
    teacher: int = whole(default=30, at_least=TOO_MANY)  # M, neurons behind the true features

    def typical(self):
        return self.experiment("static", STUDENT, 500, 512, 600)

    def scene(self):
        small = self.experiment("static", STUDENT, 200, 256, 300)
        probes = [train_loss, in_context_loss(count=1000), feature_residual(count=1000)]
        return dataclasses.replace(small, probes=probes, record=geometric(MOMENTS))

    def assumptions(self, experiment):
        data: Any = experiment.data
        width = experiment.network.vectors()
        return [Assumption("M / N: the student is wide", data.data.width / width, "<< 1")]

    def checks(self, lab):
        read = self._read(lab, [(model, true) for true in (STUDENT, TOO_MANY) for model in MODELS])
        missed = {name: one["missed"] for name, one in read.items()}
        for model in MODELS:
            yield bounded_by(f"variance missed by {model}", missed[model, STUDENT], MISSED)
        floor = 1 - STUDENT / TOO_MANY
        for model in MODELS:
            yield agrees(f"variance missed by {model}, 5 of 7 features", missed[model, TOO_MANY], floor)
        for true in (STUDENT, TOO_MANY):
            ratios = np.concatenate([read[model, true]["ratio"].T for model in MODELS])
            cells = tuple(f"{model}, {task}" for model in MODELS for task in TASKS)
            name = f"error of nonlinear tasks over that of untrained features, k_true = {true}"
            yield bounded_by(name, ratios, 1.0, cells=cells)

    def control(self, lab):
        case = ("static", TOO_MANY)
        return bounded_by("variance missed by static", self._read(lab, [case])[case]["missed"], MISSED)

    def _read(self, lab, cases):
        (neurons,), (batch,), (steps,) = lab.size.neurons, lab.size.batch, lab.size.steps
        size = int(neurons), int(batch), int(steps)
        read = lab.several({(model, true): self.experiment(model, true, *size) for model, true in cases})
        return {
            (model, true): {
                "missed": one["in_context_loss"] / (true / 2),
                "ratio": one["task_error"] / one["untrained_error"],
            }
            for (model, true), one in read.items()
        }

    def experiment(self, model: str, true: int, neurons: int, batch: int, steps: int) -> Experiment:
        """One of the three models, with so many true features."""
        adam = Adam(self.learning_rate, bias_correction=True)
        attention, births = model == "attention", model == "modified"
        # Without births and field the modified model is the static one: one program for both.
        algorithm = adam if attention else BirthDeath(adam, REPLACED * births, PUSHED * births, EVERY)
        tasks = FeatureTasks(n=HELD_OUT, d=self.d, features=true, width=self.teacher, steepness=self.init_scale)
        return Experiment(
            data=Stream(data=tasks, size=batch),  # type: ignore  (n and d are no fields here)
            network=MeanFieldFeatures(width=neurons, outputs=STUDENT, init_scale=self.init_scale),
            objective=InContextRisk(model="attention" if attention else "static"),
            algorithm=algorithm,
            probes=[in_context_loss(count=TESTS).on(at_end), nonlinear_tasks(task=TASKS, count=TESTS).on(at_end)],
            steps=steps * (2 if attention else 1),  # it has the attention matrix to learn besides
        )
