r"""A transformer of one nonlinear layer and linear attention learns the features that its tasks share.

Kim and Suzuki (2024), the experiment: $d = 20$, $k = 5$ true features, 500 sigmoid neurons, three models.
*Attention* trains particles and $\Gamma$ together, *static* the particles under the best $\Gamma$, *modified* is
static with birth and death of particles and a random perturbation. The paper reports that all reach the global
minimum, and that what they learnt also serves where the student has fewer features than the truth, $k = 5$ of 7,
and for tasks that are not linear in the features: the largest of them, and $\|f^\circ\|^2$. The theorem is about
static and modified, which have the best $\Gamma$.

Here every model is trained by Adam on fresh inputs, in the limit of long prompts and many tasks, and judged on
others by $\mathcal{L}(\mu)$ over $k_{\mathrm{true}} r^\circ / 2$, the share of the features' variance that is
missed. The teacher has 30 neurons of the same law as the student's start; the paper's is not known in detail.

* Global convergence is judged as two per cent of the variance missed at most: a tenth of what one missing feature
  costs.
* With 7 true features and a student of 5 the least possible share is 2/7, to be met within 5 %.
* "Serves for other tasks" is judged by what it must mean at least: with trained features attention errs no more
  than with those of the start, for either task, in both cases. The error is over $\mathbb{E}\, g^2$, the readout
  having no intercept.

With enough features only static and modified are judged, the two that have the theorem's best $\Gamma$. In the
control, static, the first layer stays at its start. Whether training converges is the claim itself, so a run that
took all its steps counts as trained.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax

from featlab.algorithms import Adam, BirthDeath
from featlab.claims import Assumption, Claim, Size, at_most, equals, not_judged
from featlab.claims.picture import MOMENTS
from featlab.claims.settings.references import KIM_SUZUKI_2024
from featlab.core.validation import real, whole
from featlab.data import FeatureTasks, Stream
from featlab.experiment import Experiment
from featlab.networks import MeanFieldFeatures
from featlab.objectives import InContextRisk
from featlab.probes import at_end, feature_residual, geometric, in_context_loss, nonlinear_tasks, train_loss

STUDENT, TOO_MANY = 5, 7  # k of the student, and true features of which it has too few
MODELS = ("attention", "static", "modified")
BEST = ("static", "modified")  # those with the best attention
MISSED = 0.02  # share of the variance: a tenth of one feature in five
REPLACED, PUSHED = 1e-3, 0.1  # of the modified model: births a step and particle, size of the random field
EVERY = 110  # steps between pushes by the field: no run ends with one
TASKS = ("max", "squared norm")
HELD_OUT, TESTS = 4000, 10_000  # inputs that no step sees: the stream's own, and those of tests


class Frozen(MeanFieldFeatures):
    """The same network with a first layer that has no gradient."""

    def weights(self, params):
        return jax.lax.stop_gradient(params.weights)


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
    reference = KIM_SUZUKI_2024
    sizes = {
        "tiny": Size(seeds=3, neurons=20, batch=32, steps=20),
        "smoke": Size(seeds=4, neurons=300, batch=256, steps=300),
        "laptop": Size(seeds=24, neurons=500, batch=512, steps=600),
        "full": Size(seeds=24, neurons=500, batch=1000, steps=3000),
    }
    minutes = 5.0
    control_changes = "the first layer stays at its start"

    clauses = {
        "with the best attention the features are learnt": "variance missed by static",
        "so they are with births, deaths and perturbations": "variance missed by modified",
        "so they are with attention trained together with them, as in the paper's experiment": not_judged(
            "the theorem is about the best attention. Trained with the features, 3 of 24 runs and 2 of 12 "
            "others ended at the saddle of one missing feature, with four times the steps too; some 300 seeds "
            "would tell whether that is more than the 15 % of runs that a verdict allows"
        ),
        "with too few features as much is learnt as can be": "variance missed by *, 5 of 7 features",
        "what was learnt serves for tasks that are not linear": "error of nonlinear tasks*",
        "10,000 prompts of 1,000 pairs": not_judged(
            "training is on the expected risk of long prompts and many tasks, the limit that the theorem is "
            "about. With n pairs the least risk is higher by (k + 1)/n of the variance for Gaussian features, "
            "0.6 % here. At the paper's size static missed 5 % and attention 20 to 28 % (one schedule, 2 seeds)"
        ),
    }

    d: float = real(default=20.0, at_least=2)
    learning_rate: float = real(default=0.02, above=0)  # eta, of Adam
    init_scale: float = real(default=2.0, above=0)  # of the student's first layer
    teacher: int = whole(default=30, at_least=TOO_MANY)  # M, neurons behind the true features

    def experiment(
        self, model: str, k_true: int, neurons: int, batch: int, steps: int, frozen: bool = False
    ) -> Experiment:
        """One of the three models, with this number of true features."""
        adam = Adam(self.learning_rate, bias_correction=True)
        attention, births = model == "attention", model == "modified"
        # Without births and field the modified model is the static one: one program for both.
        algorithm = adam if attention else BirthDeath(adam, REPLACED * births, PUSHED * births, EVERY)
        tasks = FeatureTasks(n=HELD_OUT, d=self.d, features=k_true, width=self.teacher, steepness=self.init_scale)
        return Experiment(
            data=Stream(data=tasks, size=batch),
            network=(Frozen if frozen else MeanFieldFeatures)(neurons, STUDENT, init_scale=self.init_scale),
            objective=InContextRisk(model="attention" if attention else "static"),
            algorithm=algorithm,
            probes=[in_context_loss(count=TESTS).on(at_end), nonlinear_tasks(task=TASKS, count=TESTS).on(at_end)],
            steps=steps * (2 if attention else 1),  # it has the attention matrix to learn besides
        )

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
        enough, too_few = self._read(lab, BEST, STUDENT), self._read(lab, MODELS, TOO_MANY)
        for model in BEST:
            yield at_most(f"variance missed by {model}", enough.missed.sel(model=model), MISSED)
        for model in MODELS:
            least = 1 - STUDENT / TOO_MANY
            yield equals(f"variance missed by {model}, 5 of 7 features", too_few.missed.sel(model=model), least)
        for true, read in ((STUDENT, enough), (TOO_MANY, too_few)):
            name = f"error of nonlinear tasks over that of untrained features, k_true = {true}"
            yield at_most(name, read.task_error / read.untrained_error, 1)

    def control(self, lab):
        missed = self._read(lab, ["static"], STUDENT, frozen=True).missed
        return at_most("variance missed by static", missed, MISSED)

    def _read(self, lab, models, true, frozen=False):
        size = {"neurons": lab.size.neurons, "batch": lab.size.batch, "steps": lab.size.steps, "frozen": frozen}
        read = lab.run(self.experiment, model=models, k_true=true, **size)
        return read.assign(missed=read.in_context_loss / (true / 2))
